-- `one` makes a second row impossible.
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  schema INTEGER NOT NULL,
  min_reader INTEGER NOT NULL
) STRICT;

CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- With rowids, not clustered by the key: payloads of a few KB stay on leaf pages.
CREATE TABLE event (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  key TEXT,
  chain BLOB NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT;
CREATE UNIQUE INDEX event_key ON event (session, key) WHERE key IS NOT NULL;

-- The outbox: a row goes when its effect is settled.
CREATE TABLE effect (
  session INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  key BLOB NOT NULL,
  verifier TEXT NOT NULL,
  PRIMARY KEY (session, stop, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE evidence (
  key BLOB PRIMARY KEY NOT NULL,
  final INTEGER NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE blob (
  digest BLOB PRIMARY KEY NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE cache (
  session INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  core_version INTEGER NOT NULL,
  policy BLOB NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE task (
  session INTEGER NOT NULL,
  task INTEGER NOT NULL,
  agent TEXT NOT NULL,
  level TEXT,
  opened_at INTEGER NOT NULL,
  ended_at INTEGER,
  reason TEXT,
  detail TEXT,
  native_reason TEXT,
  stops INTEGER NOT NULL,
  continues INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  rounds INTEGER,
  output_tokens INTEGER,
  policy BLOB NOT NULL,
  goal TEXT,
  root TEXT NOT NULL,
  PRIMARY KEY (session, task)
) STRICT, WITHOUT ROWID;
