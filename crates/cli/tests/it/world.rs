//! A world of its own for each test: home, state folder, repo, and no mark of an agent's
//! session in the environment.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use checkrein_core::event::{self, Event};
use checkrein_core::ids::{EventSeq, SessionId, UnixMillis};
use checkrein_core::input::Input;
use checkrein_store::{AppendBatch, HashChainStatus, NewEvent, SqliteStore, Store as _, TaskRow};
use serde_json::Value;

/// The variable by which all that a world started is known.
const MARK: &str = "WORLD_MARK";

pub(crate) struct World {
    folder: tempfile::TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    /// A git repo with one commit.
    pub(crate) fn new() -> Self {
        let world = Self::without_git();
        world.write("README", "a project\n");
        world.git(&["init", "-q"]);
        world.commit();
        world
    }

    pub(crate) fn without_git() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "repo"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// A repo whose one check says so in `runs`, outside of the tree, and then runs `check`.
    pub(crate) fn with_check(check: &str) -> Self {
        let world = Self::new();
        world.config(&world.counted("tests", check));
        world.commit();
        world
    }

    /// A `[[verifier]]` that leaves a line in the file of its name for each time it runs.
    pub(crate) fn counted(&self, name: &str, check: &str) -> String {
        let run = format!("echo run >> '{}'; {check}", self.outside(name).display());
        // A test that waits for a check which never comes is to fail, not to hang.
        format!("[[verifier]]\nname = \"{name}\"\ntimeout = \"60s\"\nrun = '''{run}'''\n")
    }

    pub(crate) fn runs(&self, name: &str) -> usize {
        self.lines_outside(name).len()
    }

    pub(crate) fn lines_outside(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.outside(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn config(&self, text: &str) {
        self.write("checkrein.toml", text);
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let done = self.hermetic("git").args(args).output().unwrap();
        assert!(
            done.status.success(),
            "git {args:?}: {}",
            text(&done.stderr)
        );
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "step",
        ]);
    }

    /// A pipe with a name, outside of the tree: whoever opens it waits for the other side.
    pub(crate) fn pipe(&self, name: &str) -> PathBuf {
        let path = self.outside(name);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    /// `program` in the repo, with nothing of our own environment but the search path.
    pub(crate) fn hermetic(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let home = self.outside("home");
        command
            .current_dir(self.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LC_ALL", "C")
            .env("CHECKREIN_STATE", self.state())
            .env("BIN", env!("CARGO_BIN_EXE_checkrein"))
            .env(MARK, self.mark());
        command
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.outside("state")
    }

    pub(crate) fn checkrein(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic(env!("CARGO_BIN_EXE_checkrein"));
        command.args(args);
        command
    }

    pub(crate) fn says(&self, args: &[&str]) -> Said {
        Said::of(&self.checkrein(args).stdin(Stdio::null()).output().unwrap())
    }

    /// The one folder of what is kept about this repo.
    pub(crate) fn store_folder(&self) -> PathBuf {
        let mut folders = std::fs::read_dir(self.state())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            // Named after the repo's folder; what else is there is no repo's.
            .filter(|folder| {
                folder
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with("repo-")
            });
        let folder = folders.next().unwrap();
        assert!(folders.next().is_none(), "one repo, one folder");
        folder
    }

    /// `sessions --json`: tasks, newest first.
    pub(crate) fn tasks(&self) -> Vec<Value> {
        let said = self.says(&["sessions", "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The newest task.
    pub(crate) fn task(&self) -> Value {
        self.tasks()
            .into_iter()
            .next()
            .expect("no task is recorded")
    }

    /// How the newest task ended: `reason/detail`.
    pub(crate) fn ending(&self) -> String {
        ending(&self.task()["transition"])
    }

    /// `show --why` of the newest task, which never says why it ended in more than five lines. What it says of
    /// each stop and of the tree comes after them.
    pub(crate) fn why(&self) -> String {
        let said = self.says(&["show", "--why"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let lines = said.stdout.lines();
        let ending = lines.take_while(|line| *line != "checks:" && !line.starts_with("left out"));
        assert!((1..=5).contains(&ending.count()), "{}", said.stdout);
        said.stdout
    }

    /// What `show --why` of the newest task says of its checks, a line for each stop, and of what is left out of
    /// the tree.
    pub(crate) fn runs_told(&self) -> Vec<String> {
        let why = self.why();
        let lines = why.lines().map(str::trim).map(str::to_owned);
        let told = |line: &String| line.starts_with("stop ") || line.starts_with("left out");
        lines.filter(told).collect()
    }

    /// All events of a session: no gap, a whole chain, every one readable.
    pub(crate) fn log(&self, session: &str) -> Vec<Event> {
        let store = SqliteStore::open_store_read_only(&self.store_folder()).unwrap();
        let session = SessionId::from(session);
        let rows = store.events_after(&session, EventSeq(0)).unwrap();
        for (row, place) in rows.iter().zip(1..) {
            assert_eq!(row.seq, EventSeq(place), "a gap in the log");
        }
        let chain = store.verify_chain(&session).unwrap();
        assert!(matches!(chain, HashChainStatus::Whole { .. }), "{chain:?}");
        rows.iter()
            .map(|row| event::decode_event(&row.payload).unwrap())
            .collect()
    }

    /// The inputs among them.
    pub(crate) fn inputs(&self, session: &str) -> Vec<Input> {
        self.log(session)
            .into_iter()
            .filter_map(|event| match event {
                Event::Input(stamped) => Some(stamped.input),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn replays(&self, session: &str) {
        let said = self.says(&["replay", session]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.stdout.matches("same ").count(), 2, "{said:?}");
    }

    /// Records a session once more under another name, as if it had been at other times: `at` says for each
    /// time that its log and its rows name when that was.
    pub(crate) fn record_again(&self, session: &str, name: &str, at: impl Fn(u64) -> u64) {
        let store = SqliteStore::open_store_in_folder(&self.store_folder()).unwrap();
        let session = SessionId::from(session);
        let rows = store.events_after(&session, EventSeq(0)).unwrap();
        let events = rows.iter().map(|row| NewEvent {
            kind: Box::leak(row.kind.clone().into_boxed_str()),
            payload: at_other_times(&row.payload, &at),
            key: None,
        });
        let tasks = store.newest_task_summaries(Some(&session), 10).unwrap();
        let then = |time: UnixMillis| UnixMillis(at(time.0));
        let tasks = tasks.iter().map(|row| TaskRow {
            opened_at: then(row.opened_at),
            ended_at: row.ended_at.map(then),
            ..row.clone()
        });
        let batch = AppendBatch {
            events: events.collect(),
            tasks: tasks.collect(),
            ..AppendBatch::default()
        };
        let recorded =
            store.transact_on_session(&SessionId::from(name), &mut |_| Ok(Some(batch.clone())));
        recorded.unwrap();
    }

    /// Damages the store behind everybody's back; false where no Python is at hand.
    pub(crate) fn damage(&self, sql: &str) -> bool {
        let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
            n = c.execute(sys.argv[2]).rowcount; c.commit(); assert n > 0, n";
        let mut python = self.hermetic("python3");
        python.args(["-c", script]);
        python.arg(self.store_folder().join("store.db")).arg(sql);
        let Ok(done) = python.output() else {
            return false;
        };
        assert!(done.status.success(), "{sql}: {}", text(&done.stderr));
        true
    }

    fn mark(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Command lines of what is alive of all that this world started.
    #[cfg(target_os = "linux")]
    pub(crate) fn alive(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.mark());
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|process| {
                // A zombie's environment is empty: it is dead, only not buried.
                let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == mark.as_bytes())
            })
            .map(|process| {
                text(&std::fs::read(process.path().join("cmdline")).unwrap_or_default())
                    .replace('\0', " ")
            })
            .filter(|command| !command.is_empty())
            .collect()
    }

    /// Elsewhere a process's environment cannot be looked at.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn alive(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The same event at other times. As text: an event's bytes are compared.
fn at_other_times(payload: &[u8], at: &impl Fn(u64) -> u64) -> Vec<u8> {
    let mut text = String::from_utf8(payload.to_vec()).unwrap();
    for key in ["\"at\":", "\"began\":"] {
        let Some((head, rest)) = text.split_once(key) else {
            continue;
        };
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        let time = at(rest[..digits].parse().unwrap());
        text = format!("{head}{key}{time}{}", &rest[digits..]);
    }
    text.into_bytes()
}

impl Said {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Hands `bytes` to a command and waits for what it says.
pub(crate) fn feed(command: &mut Command, bytes: &[u8]) -> Said {
    Said::of(&start(command, bytes).wait_with_output().unwrap())
}

/// The same without waiting.
pub(crate) fn start(command: &mut Command, bytes: &[u8]) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who does not want to read it all has said so, or is dead.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child
}

/// `reason/detail`, or `open`.
pub(crate) fn ending(transition: &Value) -> String {
    match (transition["reason"].as_str(), transition["detail"].as_str()) {
        (None, _) => "open".to_owned(),
        (Some(reason), None) => reason.to_owned(),
        (Some(reason), Some(detail)) => format!("{reason}/{detail}"),
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits for another process to say a line into a pipe with a name.
pub(crate) fn read_line(path: &Path) -> String {
    let (said, heard) = std::sync::mpsc::channel();
    let path = path.to_owned();
    // Opening waits for a writer, for ever if need be: not so the test.
    std::thread::spawn(move || said.send(std::fs::read_to_string(path).unwrap()));
    heard
        .recv_timeout(Duration::from_secs(90))
        .expect("nobody said anything")
}

/// A killed process's tree dies with it, but a moment later: nobody is left to wait for it.
pub(crate) fn gone(world: &World) {
    let until = Instant::now() + Duration::from_secs(10);
    while !world.alive().is_empty() {
        assert!(Instant::now() < until, "still alive: {:?}", world.alive());
        std::thread::sleep(Duration::from_millis(5));
    }
}
