-- Approvals are new; an older build could not read the events that go with them.
CREATE TABLE approval (
  key BLOB NOT NULL,
  nth INTEGER NOT NULL,
  row TEXT NOT NULL,
  PRIMARY KEY (key, nth)
) STRICT, WITHOUT ROWID;

UPDATE meta SET schema = 3, min_reader = 3;
