//! Runs a program for one question: a document on its stdin, an answer on its stdout. Each question
//! is a process of its own, which is killed with everything it started at its time limit. The
//! answer is not interpreted here. Whatever the program does instead of answering is a
//! [`PluginError`], never an error of ours.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{PipeReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::command::definition::{CommandVerifierDefinition, DirectOrShellCommand};
use crate::command::process::{self, ProcessExit, ProcessTreeKillHandle};
use crate::command::withheld;
use crate::logs;

/// Interval at which the clock and `cancelled` are checked.
const TICK: Duration = Duration::from_millis(25);
/// How long the output may stay open once the tree is gone.
const HELD_OPEN: Duration = Duration::from_millis(250);
/// How long to wait for the end of a killed tree.
const FAREWELL: Duration = Duration::from_secs(1);
/// Bytes at the end of its stderr that are kept.
const COMPLAINT: usize = 2 * 1024;

/// A question to a program.
#[derive(Debug, Clone, Copy)]
pub struct PluginInvocation<'a> {
    /// The command line.
    pub run: &'a str,
    /// Where it runs.
    pub root: &'a Path,
    /// Its environment, from which the same variables are withheld as from checks.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// What is written to its stdin.
    pub input: &'a [u8],
    /// How long it may take.
    pub timeout: Duration,
    /// Largest answer in bytes.
    pub max_output_bytes: u64,
    /// Set when the program should be ended.
    pub cancelled: &'a AtomicBool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// The program does not exist or could not be started.
    #[error("it cannot be started: {0}")]
    NotStarted(String),
    /// It did not end in time.
    #[error("it took longer than {}", display_duration(*.0))]
    TimedOut(Duration),
    /// The answer was too large.
    #[error("it said more than {0} bytes")]
    OutputTooLarge(u64),
    /// It ended badly; with the last line of its stderr.
    #[error("{how}{}", stderr_suffix(.complaint))]
    Failed {
        /// How it ended.
        how: String,
        /// The last line of its stderr.
        complaint: String,
    },
    /// The question was cancelled.
    #[error("it was given up: somebody wanted the run to end")]
    Cancelled,
}

fn display_duration(span: Duration) -> String {
    match span.as_millis() {
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

fn stderr_suffix(complaint: &str) -> String {
    match complaint.is_empty() {
        true => String::new(),
        false => format!(": {complaint}"),
    }
}

enum PluginProcessEvent {
    Output(Vec<u8>),
    Ended(std::io::Result<(ProcessExit, bool)>),
}

/// Runs the program and returns its answer.
///
/// # Errors
/// If there is no answer.
pub fn run_plugin(question: &PluginInvocation<'_>) -> Result<Vec<u8>, PluginError> {
    let not_started = |error: std::io::Error| PluginError::NotStarted(error.to_string());
    let definition = CommandVerifierDefinition {
        run: question.run.to_owned(),
        env: Vec::new(),
    };
    let nonce = logs::unique_run_name();
    let (env, _) = withheld::filter_environment(question.env, &[]);
    let (stdin, to) = std::io::pipe().map_err(not_started)?;
    let (output, stdout) = std::io::pipe().map_err(not_started)?;
    let (complaints, stderr) = std::io::pipe().map_err(not_started)?;
    let mut command = match definition.direct_or_shell_invocation() {
        DirectOrShellCommand::Direct(program, arguments) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        DirectOrShellCommand::Shell(text) => process::build_shell_command(text),
    };
    command
        .current_dir(question.root)
        .env_clear()
        // A plug-in in Python would leave a `__pycache__` in the tree.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(env)
        .env("PWD", question.root)
        .env(withheld::CHECK_VARIABLE, &nonce)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    let until = Instant::now() + question.timeout;
    let (wait, kill) =
        process::spawn_killable_process_tree(command, &nonce).map_err(not_started)?;
    let input = question.input.to_vec();
    // A program that does not read all of its input may have its reasons: a broken pipe is no
    // failure.
    // On a thread: a program that writes before it reads would otherwise block both sides.
    std::thread::spawn(move || {
        let mut to = to;
        let _ = to.write_all(&input);
    });
    let (sender, news) = channel();
    let (ended, most) = (sender.clone(), question.max_output_bytes);
    std::thread::spawn(move || send_plugin_output_event(output, most, &sender));
    std::thread::spawn(move || {
        // The receiver is gone once the time is over.
        let _ = ended.send(PluginProcessEvent::Ended(wait.wait_for_command_end()));
    });
    let (tell, complaint) = channel();
    std::thread::spawn(move || {
        let _ = tell.send(read_last_stderr_line(complaints));
    });
    await_plugin_output(question, until, &news, kill, &complaint)
}

fn send_plugin_output_event(output: PipeReader, most: u64, to: &Sender<PluginProcessEvent>) {
    let mut said = Vec::new();
    // A read error ends the answer where it is; the exit status tells the rest.
    let _ = output.take(most.saturating_add(1)).read_to_end(&mut said);
    let _ = to.send(PluginProcessEvent::Output(said));
}

fn await_plugin_output(
    question: &PluginInvocation<'_>,
    until: Instant,
    news: &Receiver<PluginProcessEvent>,
    kill: ProcessTreeKillHandle,
    complaint: &Receiver<String>,
) -> Result<Vec<u8>, PluginError> {
    let mut kill = Some(kill);
    let (mut said, mut ended) = (None, None);
    let mut patience: Option<Instant> = None;
    // Kills the tree and waits a moment for it, so that nothing of it runs on after the answer.
    let mut end = |why: PluginError| {
        if let Some(kill) = kill.take() {
            kill.kill_process_tree();
        }
        let farewell = Instant::now() + FAREWELL;
        while let Some(left) = farewell.checked_duration_since(Instant::now()) {
            match news.recv_timeout(left) {
                Ok(PluginProcessEvent::Ended(_)) | Err(_) => break,
                Ok(PluginProcessEvent::Output(_)) => {}
            }
        }
        Err(why)
    };
    loop {
        if question.cancelled.load(Ordering::Relaxed) {
            return end(PluginError::Cancelled);
        }
        let now = Instant::now();
        if ended.is_none() && now >= until {
            return end(PluginError::TimedOut(question.timeout));
        }
        if patience.is_some_and(|until| now >= until) {
            // The program ended, but another process still holds its stdout open, so the end of the
            // answer never comes. It counts as empty.
            said = said.or(Some(Vec::new()));
        }
        // Both are needed: the status decides whether the answer counts.
        if let (Some(how), Some(said)) = (&ended, &said) {
            return plugin_output_or_failure(how, said, complaint);
        }
        match news.recv_timeout(TICK.min(until.saturating_duration_since(now).max(TICK / 25))) {
            Ok(PluginProcessEvent::Output(bytes)) => {
                if u64::try_from(bytes.len()).is_ok_and(|len| len > question.max_output_bytes) {
                    return end(PluginError::OutputTooLarge(question.max_output_bytes));
                }
                said = Some(bytes);
            }
            Ok(PluginProcessEvent::Ended(how)) => {
                ended = Some(how.map_or_else(|error| Err(error.to_string()), |(how, _)| Ok(how)));
                patience = Instant::now().checked_add(HELD_OPEN);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                said = said.or(Some(Vec::new()));
                ended = ended.or(Some(Ok(ProcessExit::Lost)));
            }
        }
    }
}

fn plugin_output_or_failure(
    how: &Result<ProcessExit, String>,
    said: &[u8],
    complaint: &Receiver<String>,
) -> Result<Vec<u8>, PluginError> {
    let how = match how {
        Ok(ProcessExit::Exited(0)) => return Ok(said.to_vec()),
        Ok(ProcessExit::Exited(code)) => format!("it ended with exit status {code}"),
        Ok(ProcessExit::Signalled(signal)) => format!("it was ended by signal {signal}"),
        Ok(ProcessExit::Lost) => "it was lost sight of".to_owned(),
        Err(error) => format!("how it ended cannot be told: {error}"),
    };
    Err(PluginError::Failed {
        how,
        // A process that was handed stderr may hold it open as well.
        complaint: complaint.recv_timeout(HELD_OPEN).unwrap_or_default(),
    })
}

/// Reads stderr to the end, so that the program is not blocked, and returns the last line that is
/// not blank.
fn read_last_stderr_line(mut from: PipeReader) -> String {
    let mut kept: VecDeque<u8> = VecDeque::new();
    let mut chunk = [0; 4096];
    while let Ok(count) = from.read(&mut chunk) {
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        kept.extend(read);
        let over = kept.len().saturating_sub(COMPLAINT);
        kept.drain(..over);
    }
    let kept: Vec<u8> = kept.into();
    let text = String::from_utf8_lossy(&kept);
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or("").to_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn ask_plugin_in_test(run: &str, input: &[u8], limit: Duration) -> Result<String, PluginError> {
        let root = std::env::temp_dir();
        let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        env.insert("OPENAI_API_KEY".into(), "sk-secret".into());
        let question = PluginInvocation {
            run,
            root: &root,
            env: &env,
            input,
            timeout: limit,
            max_output_bytes: 1000,
            cancelled: &AtomicBool::new(false),
        };
        run_plugin(&question).map(|said| String::from_utf8_lossy(&said).into_owned())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn test_plugin_stdin_and_stdout() {
        assert_eq!(ask_plugin_in_test("cat", b"hello", LONG).unwrap(), "hello");
        assert_eq!(
            ask_plugin_in_test("tr a-z A-Z", b"hello", LONG).unwrap(),
            "HELLO"
        );
        // Who reads nothing is not held up by what it is given, nor are we.
        let large = vec![b'x'; 4 << 20];
        assert_eq!(
            ask_plugin_in_test("echo done", &large, LONG).unwrap(),
            "done\n"
        );
        assert_eq!(
            ask_plugin_in_test("echo \"key: $OPENAI_API_KEY\"", b"", LONG).unwrap(),
            "key: \n"
        );
    }

    #[test]
    fn plugin_failures_are_reported() {
        let why = |run: &str, limit| {
            ask_plugin_in_test(run, b"{}", limit)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            why(
                "echo '{}'; echo one >&2; echo 'no such key' >&2; exit 3",
                LONG
            ),
            "it ended with exit status 3: no such key"
        );
        assert_eq!(why("kill -9 $$", LONG), "it was ended by signal 9");
        assert_eq!(why("yes", LONG), "it said more than 1000 bytes");
        assert!(why("no-such-program-here --x", LONG).starts_with("it cannot be started: "));
    }

    #[test]
    fn hanging_plugin_tree_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let hangs = format!("sh -c 'exec 3<>\"{0}\"; sleep 1000' & wait", pipe.display());
        let late = ask_plugin_in_test(&hangs, b"{}", Duration::from_millis(300));
        assert_eq!(late, Err(PluginError::TimedOut(Duration::from_millis(300))));
        let alive = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        let alive = String::from_utf8_lossy(&alive.stdout);
        assert!(!alive.contains(&pipe.display().to_string()), "{alive}");
    }
}
