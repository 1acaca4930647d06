-- Every process parses this anew before its first query: few tables, few columns.
CREATE TABLE meta (schema INTEGER NOT NULL, min_reader INTEGER NOT NULL) STRICT;

-- With its state cache, if it has one: `cached` is the place of the last event folded in.
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  cached INTEGER,
  core_version INTEGER,
  policy BLOB,
  state BLOB
) STRICT;

-- `id` is the place: session << 40 | seq. So the log needs no index of its own, and
-- payloads of a few KB stay on leaf pages.
CREATE TABLE event (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  chain BLOB NOT NULL,
  key TEXT
) STRICT;
CREATE UNIQUE INDEX event_key ON event (key, id >> 40) WHERE key IS NOT NULL;

-- The outbox: a row goes when its effect is settled.
CREATE TABLE effect (
  session INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  key BLOB NOT NULL,
  verifier TEXT NOT NULL,
  PRIMARY KEY (session, stop, key)
) STRICT, WITHOUT ROWID;

-- Evidence by content key, and blobs by their digest: digests of different things.
CREATE TABLE kept (
  key BLOB PRIMARY KEY NOT NULL,
  final INTEGER NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

-- What a person was asked, as JSON: the n-th time about the same. Hooks read it where a rule
-- prompts, by key; people by id, of which there are few.
CREATE TABLE approval (
  key BLOB NOT NULL,
  nth INTEGER NOT NULL,
  row TEXT NOT NULL,
  PRIMARY KEY (key, nth)
) STRICT, WITHOUT ROWID;

-- What the bounded state forgets of a conversation once many others came after it: where its
-- transcript was read to, and the task in which it was halted. By the session's name: a number is given
-- anew once an older build, which does not know this table, has removed its session.
CREATE TABLE scope (
  session TEXT NOT NULL,
  name TEXT NOT NULL,
  cursor TEXT NOT NULL,
  halted_in INTEGER,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- What an agent of our own said and was told, by the session's name.
CREATE TABLE message (
  session TEXT NOT NULL,
  nth INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (session, nth)
) STRICT, WITHOUT ROWID;

-- The newest act of each session in a root, by how far it may reach (0 elsewhere, 1 outside, 2 unknown).
-- All acts are numbered in one row. An act outlives its session, whose name is empty then.
CREATE TABLE act (
  root TEXT NOT NULL,
  session TEXT NOT NULL,
  reach INTEGER NOT NULL,
  newest INTEGER NOT NULL,
  PRIMARY KEY (root, session, reach)
) STRICT, WITHOUT ROWID;

-- Summary rows, as JSON: statistics read them with json_extract, hooks never.
CREATE TABLE task (
  session INTEGER NOT NULL,
  task INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  row TEXT NOT NULL,
  PRIMARY KEY (session, task)
) STRICT, WITHOUT ROWID;
