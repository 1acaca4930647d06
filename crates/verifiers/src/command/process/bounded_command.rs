//! Runs programs that are only asked for some output, bounded in time and in bytes, and ends them
//! with everything that they started. Whatever a hook starts and waits for that is not a check goes
//! through here: a program that hangs must not make a hook miss its deadline.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::{ProcessExit, spawn_killable_process_tree};
use crate::command::withheld::CHECK_VARIABLE;

/// How long to wait for the end of a killed tree.
const FAREWELL: Duration = Duration::from_secs(1);

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct CommandLimits {
    /// How long it may take.
    pub timeout: Duration,
    /// Bytes of output; more is an error.
    pub max_bytes: u64,
    /// Whether stderr is part of the output.
    pub include_stderr: bool,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitedCommandResult {
    /// It ended with status 0 and printed this.
    Complete(Vec<u8>),
    /// It could not be started, or failed.
    Failed,
    /// It was killed at one of its limits.
    OverLimit,
}

/// Runs `command` without input.
pub fn run_command_with_limits(command: Command, bounds: CommandLimits) -> LimitedCommandResult {
    try_run_with_limits(command, bounds).unwrap_or(LimitedCommandResult::Failed)
}

fn try_run_with_limits(
    mut command: Command,
    bounds: CommandLimits,
) -> std::io::Result<LimitedCommandResult> {
    let until = Instant::now() + bounds.timeout;
    let (read, write) = std::io::pipe()?;
    let errors = match bounds.include_stderr {
        true => Stdio::from(write.try_clone()?),
        false => Stdio::null(),
    };
    let nonce = format!("asked-{}", std::process::id());
    command
        .env(CHECK_VARIABLE, &nonce)
        .stdin(Stdio::null())
        .stdout(write)
        .stderr(errors);
    let (wait, kill) = spawn_killable_process_tree(command, &nonce)?;
    // Both ends are awaited on threads: a read of a pipe cannot be given a timeout.
    let said = spawn_thread_with_receiver(move || {
        let mut said = Vec::new();
        let read = read.take(bounds.max_bytes + 1).read_to_end(&mut said);
        read.map(|_| said)
    });
    let ended = spawn_thread_with_receiver(move || wait.wait_for_command_end());
    // A program that prints too much is not waited for any longer.
    let said = receive_until_deadline(&said, until)
        .transpose()?
        .filter(|said| u64::try_from(said.len()).is_ok_and(|len| len <= bounds.max_bytes));
    let end = match said {
        Some(said) => receive_until_deadline(&ended, until).map(|end| (end, said)),
        None => None,
    };
    match end {
        Some((Ok((ProcessExit::Exited(0), _)), said)) => Ok(LimitedCommandResult::Complete(said)),
        Some(_) => Ok(LimitedCommandResult::Failed),
        None => {
            kill.kill_process_tree();
            let _ = ended.recv_timeout(FAREWELL);
            Ok(LimitedCommandResult::OverLimit)
        }
    }
}

/// Runs `work` on a thread that is never joined: it ends when what it waits for does.
fn spawn_thread_with_receiver<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // The receiver is gone once the time is over.
        let _ = sender.send(work());
    });
    receiver
}

fn receive_until_deadline<T>(receiver: &Receiver<T>, until: Instant) -> Option<T> {
    let left = until.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::command::process::build_shell_command;

    fn run_limited_script(script: &str, time: Duration) -> LimitedCommandResult {
        let bounds = CommandLimits {
            timeout: time,
            max_bytes: 1000,
            include_stderr: false,
        };
        run_command_with_limits(build_shell_command(script), bounds)
    }

    #[test]
    fn unclean_exit_discards_output() {
        let long = Duration::from_secs(60);
        assert_eq!(
            run_limited_script("echo a; echo b >&2; echo c", long),
            LimitedCommandResult::Complete(b"a\nc\n".to_vec())
        );
        assert_eq!(
            run_limited_script("echo a; exit 3", long),
            LimitedCommandResult::Failed
        );
        assert_eq!(
            run_limited_script("echo a; kill -9 $$", long),
            LimitedCommandResult::Failed
        );
        // Too much, and who keeps what it writes to open.
        assert_eq!(
            run_limited_script("yes", long),
            LimitedCommandResult::OverLimit
        );
        #[cfg(target_os = "linux")]
        assert_eq!(
            run_limited_script("echo a; sleep 1000 & exit 0", long),
            LimitedCommandResult::Complete(b"a\n".to_vec())
        );
    }

    #[test]
    fn hanging_process_tree_is_killed() {
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
        assert_eq!(
            run_limited_script(&script, Duration::from_millis(300)),
            LimitedCommandResult::OverLimit
        );
        let mut ps = Command::new("ps");
        ps.args(["-eo", "args"]);
        let alive = ps.output().unwrap();
        let alive = String::from_utf8_lossy(&alive.stdout);
        assert!(!alive.contains(&pipe.display().to_string()), "{alive}");
    }
}
