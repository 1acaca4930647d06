-- From the first schema, of which every table was read by every process.
ALTER TABLE session ADD COLUMN cached INTEGER;
ALTER TABLE session ADD COLUMN core_version INTEGER;
ALTER TABLE session ADD COLUMN policy BLOB;
ALTER TABLE session ADD COLUMN state BLOB;
UPDATE session SET (cached, core_version, policy, state) =
  (SELECT seq, core_version, policy, bytes FROM cache WHERE cache.session = session.id);
DROP TABLE cache;

DROP INDEX event_key;
ALTER TABLE event RENAME TO event_1;
CREATE TABLE event (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  chain BLOB NOT NULL,
  key TEXT
) STRICT;
INSERT INTO event SELECT session << 40 | seq, kind, payload, chain, key FROM event_1 ORDER BY session, seq;
DROP TABLE event_1;
CREATE UNIQUE INDEX event_key ON event (key, id >> 40) WHERE key IS NOT NULL;

CREATE TABLE kept (
  key BLOB PRIMARY KEY NOT NULL,
  final INTEGER NOT NULL,
  bytes BLOB NOT NULL
) STRICT;
INSERT INTO kept SELECT key, final, bytes FROM evidence;
INSERT OR IGNORE INTO kept SELECT digest, 1, bytes FROM blob;
DROP TABLE evidence;
DROP TABLE blob;

ALTER TABLE task RENAME TO task_1;
CREATE TABLE task (
  session INTEGER NOT NULL,
  task INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  row TEXT NOT NULL,
  PRIMARY KEY (session, task)
) STRICT, WITHOUT ROWID;
INSERT INTO task SELECT session, task, opened_at, json_object(
  'session', (SELECT name FROM session WHERE session.id = task_1.session), 'task', task,
  'agent', agent, 'level', level, 'opened_at', opened_at, 'ended_at', ended_at,
  'reason', reason, 'detail', detail, 'native_reason', native_reason, 'stops', stops,
  'continues', continues, 'tool_calls', tool_calls, 'rounds', rounds,
  'output_tokens', output_tokens, 'policy', lower(hex(policy)), 'goal', goal, 'root', root)
FROM task_1;
DROP TABLE task_1;

UPDATE meta SET schema = 2, min_reader = 2;
