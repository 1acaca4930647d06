//! The SQLite store shared by real processes: this binary runs itself again as `child`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_store::{AppendBatch, HashChainStatus, NewEvent, SqliteStore, Store, StoreError};

fn session() -> SessionId {
    SessionId::from("session")
}

fn append(store: &dyn Store, payload: &str, durable: bool) -> Result<EventSeq, StoreError> {
    let appended = store.transact_on_session(&session(), &mut |tail| {
        assert_eq!(tail.events_after(tail.last_seq())?, []);
        let event = NewEvent {
            kind: "note",
            payload: payload.into(),
            key: None,
        };
        Ok(Some(AppendBatch {
            events: vec![event],
            durable,
            ..AppendBatch::default()
        }))
    })?;
    Ok(appended.unwrap().last)
}

/// Every event of the session, which has no gap and a whole chain.
fn log(store: &dyn Store) -> Vec<String> {
    let events = store.events_after(&session(), EventSeq(0)).unwrap();
    for (event, place) in events.iter().zip(1..) {
        assert_eq!(event.seq, EventSeq(place));
    }
    let (chain, count) = (store.verify_chain(&session()).unwrap(), events.len() as u64);
    assert!(
        matches!(chain, HashChainStatus::Whole { last, .. } if last == EventSeq(count)),
        "{chain:?}"
    );
    events
        .into_iter()
        .map(|event| String::from_utf8(event.payload).unwrap())
        .collect()
}

/// A process of this binary. It speaks on stderr, where the test harness does not, and
/// waits for a line on stdin where it says so.
struct ChildProcess {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl ChildProcess {
    fn spawn(role: &str, folder: &Path, prepare: impl FnOnce(Command) -> Command) -> Self {
        let mut command = prepare(Command::new(env::current_exe().unwrap()));
        command.args(["child", "--exact", "--ignored", "--nocapture"]);
        command.env("STORE_ROLE", role).env("STORE_FOLDER", folder);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, said }
    }

    fn hears(&mut self, expected: &str) {
        assert_eq!(self.said.next().unwrap().unwrap(), expected);
    }

    fn go(&mut self) {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"go\n")
            .unwrap();
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What it said until it ended well.
    fn end(mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let said = self.said.collect::<Result<Vec<_>, _>>().unwrap();
        assert!(self.child.wait().unwrap().success(), "{said:?}");
        said
    }
}

fn wait_for_go() {
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}

#[test]
#[ignore = "run by the other tests, in processes of their own"]
fn child() {
    let (Ok(role), Some(folder)) = (env::var("STORE_ROLE"), env::var_os("STORE_FOLDER")) else {
        return;
    };
    let folder = PathBuf::from(folder);
    match role.as_str() {
        "append 20" => {
            eprintln!("ready");
            wait_for_go();
            for n in 0..20 {
                // A new handle each time, as hooks have it.
                let store = SqliteStore::open_store_in_folder(&folder).unwrap();
                append(&store, &format!("{} {n}", std::process::id()), n % 10 == 9).unwrap();
            }
        }
        "append for ever" => {
            let store = SqliteStore::open_store_in_folder(&folder).unwrap();
            loop {
                let payload = "x".repeat(random(5000));
                let seq = append(&store, &payload, random(8) == 0).unwrap();
                eprintln!("{seq}");
            }
        }
        "claim" => {
            let store = SqliteStore::open_store_in_folder(&folder).unwrap();
            let _held = store
                .try_claim_effect(&Digest::hash_bytes(b"key"))
                .unwrap()
                .unwrap();
            eprintln!("claimed");
            wait_for_go();
        }
        "read" => {
            match SqliteStore::open_store_read_only(&folder) {
                Ok(store) => eprintln!("read {}", log(&store).join(",")),
                Err(error) => eprintln!("not read: {error}"),
            }
            let written = SqliteStore::open_store_in_folder(&folder)
                .and_then(|store| append(&store, "no", false));
            eprintln!("{}", matches!(written, Err(StoreError::ReadOnly { .. })));
        }
        role => panic!("no role {role}"),
    }
}

fn random(below: usize) -> usize {
    usize::try_from(RandomState::new().hash_one(()) >> 1).unwrap() % below
}

#[test]
fn sixteen_processes_make_one_store_and_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state/repo");
    let mut processes: Vec<_> = (0..16)
        .map(|_| ChildProcess::spawn("append 20", &folder, |command| command))
        .collect();
    processes
        .iter_mut()
        .for_each(|process| process.hears("ready"));
    processes.iter_mut().for_each(ChildProcess::go);
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for process in processes {
        let id = process.child.id().to_string();
        expected.insert(id, (0..20).map(|n| n.to_string()).collect());
        assert_eq!(process.end(), Vec::<String>::new());
    }

    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in log(&SqliteStore::open_store_in_folder(&folder).unwrap()) {
        let (id, n) = event.split_once(' ').unwrap();
        found.entry(id.to_owned()).or_default().push(n.to_owned());
    }
    assert_eq!(found, expected);

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(folder.parent().unwrap()), 0o700);
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn killed_appenders_leave_a_whole_log_with_all_they_were_told_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = 0;
    for round in 0..50 {
        let mut process = ChildProcess::spawn("append for ever", dir.path(), |command| command);
        let mut told: u64 = 0;
        for _ in 0..random(40) {
            told = process.said.next().unwrap().unwrap().parse().unwrap();
        }
        process.kill();
        // What it still said before it died; the last line may be cut.
        let last = process
            .said
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| line.parse().ok());
        told = last.fold(told, u64::max);
        let events = log(&SqliteStore::open_store_in_folder(dir.path()).unwrap()).len() as u64;
        assert!(
            events >= told.max(before),
            "round {round}: {events} events, told {told}"
        );
        before = events;
    }
    assert!(before > 50, "the appenders got somewhere");
}

#[test]
fn a_claim_ends_when_its_holder_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    let mut holder = ChildProcess::spawn("claim", dir.path(), |command| command);
    holder.hears("claimed");
    assert!(
        store
            .try_claim_effect(&Digest::hash_bytes(b"key"))
            .unwrap()
            .is_none()
    );
    assert!(
        store
            .try_claim_effect(&Digest::hash_bytes(b"other"))
            .unwrap()
            .is_some()
    );
    holder.kill();
    assert!(
        store
            .try_claim_effect(&Digest::hash_bytes(b"key"))
            .unwrap()
            .is_some()
    );
}

/// Root may write anywhere, so as root the reader is run as somebody else.
#[cfg(unix)]
#[test]
fn a_read_only_folder_can_be_read_and_says_that_it_cannot_be_written() {
    use std::fs::{self, Permissions, set_permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;

    let dir = tempfile::tempdir().unwrap();
    set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    // Somebody else may not reach the folder this binary was built in.
    let binary = dir.path().join("binary");
    fs::copy(env::current_exe().unwrap(), &binary).unwrap();
    set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    let is_root = dir.path().metadata().unwrap().uid() == 0;

    for what in ["log", "no log", "empty log"] {
        let folder = dir.path().join(what).join("odd name %3f?#");
        let store = SqliteStore::open_store_in_folder(&folder).unwrap();
        append(&store, "one", false).unwrap();
        append(&store, "two", true).unwrap();
        drop(store);
        let db = folder.join("store.db");
        if what != "log" {
            let conn = rusqlite::Connection::open(&db).unwrap();
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .unwrap();
            if what == "no log" {
                conn.close().unwrap();
                assert!(!folder.join("store.db-wal").exists());
            } else {
                std::mem::forget(conn);
                assert_eq!(folder.join("store.db-wal").metadata().unwrap().len(), 0);
                fs::remove_file(folder.join("store.db-shm")).unwrap();
            }
        }
        for entry in folder.read_dir().unwrap() {
            set_permissions(entry.unwrap().path(), Permissions::from_mode(0o444)).unwrap();
        }
        set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
        set_permissions(folder.parent().unwrap(), Permissions::from_mode(0o555)).unwrap();

        let reader = ChildProcess::spawn("read", &folder, |_| {
            let mut command = Command::new(&binary);
            command.current_dir("/");
            if is_root {
                command.uid(65534).gid(65534);
            }
            command
        });
        assert_eq!(reader.end(), ["read one,two", "true"], "{what}");
        for path in [folder.parent().unwrap(), folder.as_path()] {
            set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
    }
}
