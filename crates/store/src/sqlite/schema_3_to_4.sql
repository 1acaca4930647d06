-- Conversations are new; an older build misses nothing by not knowing them.
CREATE TABLE message (
  session TEXT NOT NULL,
  nth INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (session, nth)
) STRICT, WITHOUT ROWID;

UPDATE meta SET schema = 4;
