-- What the bounded state forgets of a sub-agent is new; an older build misses nothing that it would use.
CREATE TABLE scope (
  session TEXT NOT NULL,
  name TEXT NOT NULL,
  cursor TEXT NOT NULL,
  halted_in INTEGER,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

UPDATE meta SET schema = 5;
