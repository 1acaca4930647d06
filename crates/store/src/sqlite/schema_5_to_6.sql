-- Acts are counted from here on; what was found before is as fresh as it ever was.
CREATE TABLE act (
  root TEXT NOT NULL,
  session TEXT NOT NULL,
  reach INTEGER NOT NULL,
  newest INTEGER NOT NULL,
  PRIMARY KEY (root, session, reach)
) STRICT, WITHOUT ROWID;

UPDATE meta SET schema = 6;
