//! Asks a program one question: a document on its stdin, an answer on its stdout, one process a
//! question, which is ended with all that it started at its time limit. What it says is not read
//! here, and whatever it does instead of answering is an [`Unanswered`], never an error of ours.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{PipeReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::command::definition::{Definition, Start};
use crate::command::process::{self, Ended, Kill};
use crate::command::withheld;
use crate::logs;

/// How often the clock and `cancelled` are looked at.
const TICK: Duration = Duration::from_millis(25);
/// How long the output may stay open once the tree is gone.
const HELD_OPEN: Duration = Duration::from_millis(250);
/// How long we wait for the end of what was killed.
const FAREWELL: Duration = Duration::from_secs(1);
/// Bytes at the end of its stderr that are looked at.
const COMPLAINT: usize = 2 * 1024;

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The command, as one types it.
    pub run: &'a str,
    /// Where it runs.
    pub root: &'a Path,
    /// Its environment, but for what is withheld from checks.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// What it reads.
    pub input: &'a [u8],
    /// How long it may take.
    pub limit: Duration,
    /// Bytes that it may answer.
    pub most: u64,
    /// Whoever sets it wants it to end.
    pub cancelled: &'a AtomicBool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Its program is not there, or we could not start it.
    #[error("it cannot be started: {0}")]
    NotStarted(String),
    /// It did not end in time.
    #[error("it took longer than {}", span(*.0))]
    Late(Duration),
    /// It said too much.
    #[error("it said more than {0} bytes")]
    TooMuch(u64),
    /// It ended badly; with the last line of its stderr.
    #[error("{how}{}", after(.complaint))]
    Failed {
        /// How.
        how: String,
        /// What it complained of.
        complaint: String,
    },
    /// We were told to go.
    #[error("it was given up: somebody wanted the run to end")]
    Cancelled,
}

fn span(span: Duration) -> String {
    match span.as_millis() {
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

fn after(complaint: &str) -> String {
    match complaint.is_empty() {
        true => String::new(),
        false => format!(": {complaint}"),
    }
}

enum News {
    Output(Vec<u8>),
    Ended(std::io::Result<(Ended, bool)>),
}

/// Asks.
///
/// # Errors
/// If there is no answer.
pub fn ask(question: &Question<'_>) -> Result<Vec<u8>, Unanswered> {
    let not_started = |error: std::io::Error| Unanswered::NotStarted(error.to_string());
    let definition = Definition {
        run: question.run.to_owned(),
        env: Vec::new(),
    };
    let nonce = logs::nonce();
    let (env, _) = withheld::filtered(question.env, &[]);
    let (stdin, to) = std::io::pipe().map_err(not_started)?;
    let (output, stdout) = std::io::pipe().map_err(not_started)?;
    let (complaints, stderr) = std::io::pipe().map_err(not_started)?;
    let mut command = match definition.start() {
        Start::Direct(program, arguments) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        Start::Shell(text) => process::shell(text),
    };
    command
        .current_dir(question.root)
        .env_clear()
        // Of a plug-in of two lines, nothing is left in the tree.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(env)
        .env("PWD", question.root)
        .env(withheld::CHECK_VARIABLE, &nonce)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    let until = Instant::now() + question.limit;
    let (wait, kill) = process::spawn(command, &nonce).map_err(not_started)?;
    let input = question.input.to_vec();
    // Who does not read all of it, or any, has its reasons: a broken pipe is no failure.
    std::thread::spawn(move || {
        let mut to = to;
        let _ = to.write_all(&input);
    });
    let (sender, news) = channel();
    let (ended, most) = (sender.clone(), question.most);
    std::thread::spawn(move || read(output, most, &sender));
    std::thread::spawn(move || {
        // Nobody listens any more once the time is over.
        let _ = ended.send(News::Ended(wait.wait()));
    });
    let (tell, complaint) = channel();
    std::thread::spawn(move || {
        let _ = tell.send(last_line(complaints));
    });
    listen(question, until, &news, kill, &complaint)
}

fn read(output: PipeReader, most: u64, to: &Sender<News>) {
    let mut said = Vec::new();
    // What cannot be read any more is taken as far as it came: how it ended says the rest.
    let _ = output.take(most.saturating_add(1)).read_to_end(&mut said);
    let _ = to.send(News::Output(said));
}

fn listen(
    question: &Question<'_>,
    until: Instant,
    news: &Receiver<News>,
    kill: Kill,
    complaint: &Receiver<String>,
) -> Result<Vec<u8>, Unanswered> {
    let mut kill = Some(kill);
    let (mut said, mut ended) = (None, None);
    let mut patience: Option<Instant> = None;
    let mut end = |why: Unanswered| {
        if let Some(kill) = kill.take() {
            kill.kill();
        }
        let farewell = Instant::now() + FAREWELL;
        while let Some(left) = farewell.checked_duration_since(Instant::now()) {
            match news.recv_timeout(left) {
                Ok(News::Ended(_)) | Err(_) => break,
                Ok(News::Output(_)) => {}
            }
        }
        Err(why)
    };
    loop {
        if question.cancelled.load(Ordering::Relaxed) {
            return end(Unanswered::Cancelled);
        }
        let now = Instant::now();
        if ended.is_none() && now >= until {
            return end(Unanswered::Late(question.limit));
        }
        if patience.is_some_and(|until| now >= until) {
            // A process that was handed the pipe holds it still.
            said = said.or(Some(Vec::new()));
        }
        if let (Some(how), Some(said)) = (&ended, &said) {
            return answer(how, said, complaint);
        }
        match news.recv_timeout(TICK.min(until.saturating_duration_since(now).max(TICK / 25))) {
            Ok(News::Output(bytes)) => {
                if u64::try_from(bytes.len()).is_ok_and(|len| len > question.most) {
                    return end(Unanswered::TooMuch(question.most));
                }
                said = Some(bytes);
            }
            Ok(News::Ended(how)) => {
                ended = Some(how.map_or_else(|error| Err(error.to_string()), |(how, _)| Ok(how)));
                patience = Instant::now().checked_add(HELD_OPEN);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                said = said.or(Some(Vec::new()));
                ended = ended.or(Some(Ok(Ended::Lost)));
            }
        }
    }
}

fn answer(
    how: &Result<Ended, String>,
    said: &[u8],
    complaint: &Receiver<String>,
) -> Result<Vec<u8>, Unanswered> {
    let how = match how {
        Ok(Ended::Exited(0)) => return Ok(said.to_vec()),
        Ok(Ended::Exited(code)) => format!("it ended with exit status {code}"),
        Ok(Ended::Signalled(signal)) => format!("it was ended by signal {signal}"),
        Ok(Ended::Lost) => "it was lost sight of".to_owned(),
        Err(error) => format!("how it ended cannot be told: {error}"),
    };
    Err(Unanswered::Failed {
        how,
        complaint: complaint.recv_timeout(HELD_OPEN).unwrap_or_default(),
    })
}

/// Reads to the end, so that nobody is held up, and keeps little.
fn last_line(mut from: PipeReader) -> String {
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

    fn asked(run: &str, input: &[u8], limit: Duration) -> Result<String, Unanswered> {
        let root = std::env::temp_dir();
        let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        env.insert("OPENAI_API_KEY".into(), "sk-secret".into());
        let question = Question {
            run,
            root: &root,
            env: &env,
            input,
            limit,
            most: 1000,
            cancelled: &AtomicBool::new(false),
        };
        ask(&question).map(|said| String::from_utf8_lossy(&said).into_owned())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn it_reads_the_question_and_its_output_is_the_answer() {
        assert_eq!(asked("cat", b"hello", LONG).unwrap(), "hello");
        assert_eq!(asked("tr a-z A-Z", b"hello", LONG).unwrap(), "HELLO");
        // Who reads nothing is not held up by what it is given, nor are we.
        let large = vec![b'x'; 4 << 20];
        assert_eq!(asked("echo done", &large, LONG).unwrap(), "done\n");
        assert_eq!(
            asked("echo \"key: $OPENAI_API_KEY\"", b"", LONG).unwrap(),
            "key: \n"
        );
    }

    #[test]
    fn whatever_it_does_instead_of_answering_is_said() {
        let why = |run: &str, limit| asked(run, b"{}", limit).unwrap_err().to_string();
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
    fn who_hangs_is_ended_with_all_that_it_started() {
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
        let late = asked(&hangs, b"{}", Duration::from_millis(300));
        assert_eq!(late, Err(Unanswered::Late(Duration::from_millis(300))));
        let alive = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        let alive = String::from_utf8_lossy(&alive.stdout);
        assert!(!alive.contains(&pipe.display().to_string()), "{alive}");
    }
}
