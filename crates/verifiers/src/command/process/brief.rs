//! Programs that are only asked something: bounded in time and in what is read of them, and
//! ended with all that they started. Whatever a hook starts and waits for, and is no check,
//! goes through here: what hangs must not make a hook outstay its deadline.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::{Ended, spawn};
use crate::command::withheld::CHECK_VARIABLE;

/// How long we wait for the end of what was killed.
const FAREWELL: Duration = Duration::from_secs(1);

/// What may be taken of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How long it may take.
    pub time: Duration,
    /// Bytes; more is no answer.
    pub bytes: u64,
    /// What it says on stderr is part of the answer.
    pub errors: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It ended well, and said this.
    Said(Vec<u8>),
    /// It cannot be started, or did not end well.
    None,
    /// It was ended at one of its bounds.
    Cut,
}

/// Runs `command` without input.
pub fn ask(command: Command, bounds: Bounds) -> Answer {
    run(command, bounds).unwrap_or(Answer::None)
}

fn run(mut command: Command, bounds: Bounds) -> std::io::Result<Answer> {
    let until = Instant::now() + bounds.time;
    let (read, write) = std::io::pipe()?;
    let errors = match bounds.errors {
        true => Stdio::from(write.try_clone()?),
        false => Stdio::null(),
    };
    let nonce = format!("asked-{}", std::process::id());
    command
        .env(CHECK_VARIABLE, &nonce)
        .stdin(Stdio::null())
        .stdout(write)
        .stderr(errors);
    let (wait, kill) = spawn(command, &nonce)?;
    let said = beside(move || {
        let mut said = Vec::new();
        let read = read.take(bounds.bytes + 1).read_to_end(&mut said);
        read.map(|_| said)
    });
    let ended = beside(move || wait.wait());
    // Who says too much is waited for no longer.
    let said = within(&said, until)
        .transpose()?
        .filter(|said| u64::try_from(said.len()).is_ok_and(|len| len <= bounds.bytes));
    let end = match said {
        Some(said) => within(&ended, until).map(|end| (end, said)),
        None => None,
    };
    match end {
        Some((Ok((Ended::Exited(0), _)), said)) => Ok(Answer::Said(said)),
        Some(_) => Ok(Answer::None),
        None => {
            kill.kill();
            let _ = ended.recv_timeout(FAREWELL);
            Ok(Answer::Cut)
        }
    }
}

/// A thread that is not waited for: it ends when what it waits for does.
fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // Nobody listens any more once the time is over.
        let _ = sender.send(work());
    });
    receiver
}

fn within<T>(receiver: &Receiver<T>, until: Instant) -> Option<T> {
    let left = until.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::command::process::shell;

    fn said(script: &str, time: Duration) -> Answer {
        let bounds = Bounds {
            time,
            bytes: 1000,
            errors: false,
        };
        ask(shell(script), bounds)
    }

    #[test]
    fn an_answer_is_all_that_was_said_by_who_ended_well() {
        let long = Duration::from_secs(60);
        assert_eq!(
            said("echo a; echo b >&2; echo c", long),
            Answer::Said(b"a\nc\n".to_vec())
        );
        assert_eq!(said("echo a; exit 3", long), Answer::None);
        assert_eq!(said("echo a; kill -9 $$", long), Answer::None);
        // Too much, and who keeps what it writes to open.
        assert_eq!(said("yes", long), Answer::Cut);
        #[cfg(target_os = "linux")]
        assert_eq!(
            said("echo a; sleep 1000 & exit 0", long),
            Answer::Said(b"a\n".to_vec())
        );
    }

    #[test]
    fn who_hangs_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        // The inner one opens the pipe for reading and then holds it: a writer gets through
        // only while it lives.
        let script = format!(
            "sh -c 'exec 3<>\"{0}\"; echo on >&3; sleep 1000' & wait",
            pipe.display()
        );
        assert_eq!(said(&script, Duration::from_millis(300)), Answer::Cut);
        let mut ps = Command::new("ps");
        ps.args(["-eo", "args"]);
        let alive = ps.output().unwrap();
        let alive = String::from_utf8_lossy(&alive.stdout);
        assert!(!alive.contains(&pipe.display().to_string()), "{alive}");
    }
}
