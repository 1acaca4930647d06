//! Runs one command: starts it, captures its output, waits for its end, and kills it if it takes
//! too long. Two threads block on the outside world (the output, the end); the calling thread
//! listens to both and to the clock.

use std::io::Read as _;
use std::process::{Command as Process, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::capture::{CAPTURE_LIMITS, OutputCapture, OutputCaptureResult};
use super::definition::{CommandVerifierDefinition, DirectOrShellCommand};
use super::process::{self, ProcessExit, ProcessTreeKillHandle, ProcessTreeWaiter};
use super::withheld;
use crate::{VerifierJob, logs};

/// Interval at which the clock and `cancelled` are checked.
const TICK: Duration = Duration::from_millis(25);
/// How long a killed process tree may take to disappear. The keeper gives up before that.
const DYING: Duration = Duration::from_secs(8);
/// How long the output may stay open once the tree is gone. Only a process outside the tree (a
/// daemon that was handed the pipe) can still hold it open then.
const HELD_OPEN: Duration = Duration::from_millis(250);
const CHUNK: usize = 64 * 1024;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum CommandOutcome {
    /// It ended by itself.
    Ended(ProcessExit),
    /// Checkrein ended it.
    Aborted(CommandAbortReason),
    /// The program does not exist, or is not executable.
    NoProgram(std::io::Error),
    /// The command could not be started.
    NotStarted(std::io::Error),
}

/// Why Checkrein ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandAbortReason {
    /// Its own timeout passed.
    Timeout,
    /// The agent had to be answered.
    ReplyDeadline,
    /// The check was cancelled.
    Cancelled,
}

pub(crate) struct CheckCommandResult {
    pub(crate) how: CommandOutcome,
    pub(crate) captured: OutputCaptureResult,
    /// Whether processes of the check could not be killed, or the keeper of the tree was lost.
    pub(crate) survivors: bool,
}

enum CommandEvent {
    Output(Vec<u8>),
    OutputEnd,
    End(std::io::Result<(ProcessExit, bool)>),
}

pub(crate) fn run_verifier_command(
    definition: &CommandVerifierDefinition,
    job: &VerifierJob<'_>,
) -> CheckCommandResult {
    let nonce = logs::unique_run_name();
    let (env, withheld) = withheld::filter_environment(job.env, &definition.env);
    let log = logs::check_log_path(job, &nonce);
    let mut capture = OutputCapture::new(job.root, log, withheld, CAPTURE_LIMITS, job.redact);
    // A deadline that has passed already starts no process.
    let clock = CommandDeadline::new(job);
    if let Some(cut) = clock.reason_to_abort_command() {
        return CheckCommandResult {
            how: CommandOutcome::Aborted(cut),
            captured: capture.finish_capture(),
            survivors: false,
        };
    }
    let mut command = match definition.direct_or_shell_invocation() {
        DirectOrShellCommand::Direct(program, arguments) => {
            let mut command = Process::new(program);
            command.args(arguments);
            command
        }
        DirectOrShellCommand::Shell(text) => process::build_shell_command(text),
    };
    // The order matters: a later variable replaces an earlier one, so the environment of the job
    // may override the first of the three below and not the last two.
    command
        .current_dir(job.root)
        .env_clear()
        // Python takes a `.pyc` for current if size and whole-second time of the source match: a
        // source that is fixed within the same second would be ignored.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(env)
        // `current_dir` does not set `PWD`, which shells and some tools believe.
        .env("PWD", job.root)
        .env(withheld::CHECK_VARIABLE, &nonce)
        // A check that asks a question gets an end of file instead of waiting for ever.
        .stdin(Stdio::null());
    let (how, survivors) = match spawn_check_process(command, job, &nonce) {
        Ok((news, kill)) => wait_for_command_or_abort(&news, kill, &clock, &mut capture),
        Err(how) => (how, false),
    };
    CheckCommandResult {
        how,
        captured: capture.finish_capture(),
        survivors,
    }
}

fn spawn_check_process(
    mut command: Process,
    job: &VerifierJob<'_>,
    nonce: &str,
) -> Result<(Receiver<CommandEvent>, ProcessTreeKillHandle), CommandOutcome> {
    // A missing working folder makes `exec` fail with `NotFound` too, and would be taken for a
    // missing program.
    if let Err(err) = std::fs::read_dir(job.root) {
        return Err(CommandOutcome::NotStarted(err));
    }
    let (output, write) = std::io::pipe().map_err(CommandOutcome::NotStarted)?;
    // One pipe for both streams, so that the log has them in the order in which they were written.
    command
        .stderr(write.try_clone().map_err(CommandOutcome::NotStarted)?)
        .stdout(write);
    let (wait, kill) =
        process::spawn_holding_lock(command, nonce, job.lock).map_err(|err| match err.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                CommandOutcome::NoProgram(err)
            }
            _ => CommandOutcome::NotStarted(err),
        })?;
    // Bounded: a check that prints faster than its output is read blocks on the pipe instead of
    // filling our memory.
    let (sender, news) = sync_channel(4);
    let to_end = sender.clone();
    let threads = std::thread::Builder::new()
        .name("check-output".to_owned())
        .spawn(move || send_command_output_events(output, &sender))
        .and_then(|_| {
            let builder = std::thread::Builder::new().name("check-end".to_owned());
            builder.spawn(move || wait_and_send_command_end(wait, &to_end))
        });
    match threads {
        Ok(_) => Ok((news, kill)),
        Err(err) => {
            // Without its threads nobody would see the end of the process, so it is not left
            // running.
            kill.kill_process_tree();
            Err(CommandOutcome::NotStarted(err))
        }
    }
}

fn wait_and_send_command_end(wait: ProcessTreeWaiter, to: &SyncSender<CommandEvent>) {
    // The receiver is gone if the run was given up; the event is not needed then.
    let _ = to.send(CommandEvent::End(wait.wait_for_command_end()));
}

fn send_command_output_events(mut output: std::io::PipeReader, to: &SyncSender<CommandEvent>) {
    loop {
        // A new buffer each time: the capture moves chunks into its tail without a copy.
        let mut chunk = vec![0; CHUNK];
        match output.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => {
                chunk.truncate(length);
                if to.send(CommandEvent::Output(chunk)).is_err() {
                    return;
                }
            }
            Err(err) if err.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = to.send(CommandEvent::OutputEnd);
}

fn wait_for_command_or_abort(
    news: &Receiver<CommandEvent>,
    kill: ProcessTreeKillHandle,
    clock: &CommandDeadline<'_>,
    capture: &mut OutputCapture,
) -> (CommandOutcome, bool) {
    let mut kill = Some(kill);
    let mut cut = None;
    let mut ended = None;
    let mut output_open = true;
    // Set once only a bounded wait is left: for a killed tree to die, or for the pipe to close.
    let mut patience = None;
    while ended.is_none() || output_open {
        // Not after the end: a command that ended in time keeps its status, even if its output is
        // still open at the deadline.
        if cut.is_none() && ended.is_none() {
            cut = clock.reason_to_abort_command();
            if cut.is_some() {
                if let Some(kill) = kill.take() {
                    kill.kill_process_tree();
                }
                patience = Some(Instant::now() + DYING);
            }
        }
        match news.recv_timeout(TICK) {
            Ok(CommandEvent::Output(chunk)) => capture.capture_output_chunk(chunk),
            Ok(CommandEvent::OutputEnd) => output_open = false,
            Ok(CommandEvent::End(end)) => {
                ended = Some(end);
                patience = Some(Instant::now() + HELD_OPEN);
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Both threads are gone without an end: it is reported as lost.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if patience.is_some_and(|until| Instant::now() > until) {
            break;
        }
    }
    // An end that was not seen counts as survivors: the tree may still be running.
    let survivors = !matches!(ended, Some(Ok((_, false))));
    let how = match (cut, ended) {
        // The abort comes first: the status of a killed command would say "signal 9".
        (Some(cut), _) => CommandOutcome::Aborted(cut),
        (None, Some(Ok((end, _)))) => CommandOutcome::Ended(end),
        (None, Some(Err(err))) => CommandOutcome::NotStarted(err),
        (None, None) => CommandOutcome::Ended(ProcessExit::Lost),
    };
    (how, survivors)
}

/// The limits at which a run is aborted.
struct CommandDeadline<'a> {
    job: &'a VerifierJob<'a>,
    timeout: Option<Instant>,
}

impl<'a> CommandDeadline<'a> {
    fn new(job: &'a VerifierJob<'a>) -> Self {
        let timeout = Instant::now().checked_add(Duration::from_millis(job.spec.timeout_ms));
        Self { job, timeout }
    }

    fn reason_to_abort_command(&self) -> Option<CommandAbortReason> {
        if self.job.cancelled.load(Ordering::Relaxed) {
            return Some(CommandAbortReason::Cancelled);
        }
        let now = Instant::now();
        let over = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        // The command's own timeout comes first: if both pass at once, the command was too slow.
        if over(self.timeout) {
            Some(CommandAbortReason::Timeout)
        } else if over(self.job.deadline) {
            Some(CommandAbortReason::ReplyDeadline)
        } else {
            None
        }
    }
}
