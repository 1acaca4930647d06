//! One run: start, take in the output, wait, cut. Two threads block on the outside world
//! (the output, the end); this one listens to both and to the clock.

use std::io::Read as _;
use std::process::{Command as Process, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::capture::{CAPTURE_LIMITS, CaptureResult, OutputCapture};
use super::definition::{CommandInvocation, CommandVerifierDefinition};
use super::process::{self, ProcessExit, ProcessTreeKillHandle, ProcessWaiter};
use super::withheld;
use crate::{VerifierJob, logs};

/// How often the clock and `cancelled` are looked at.
const TICK: Duration = Duration::from_millis(25);
/// How long a killed tree may take to be gone. The keeper gives up before.
const DYING: Duration = Duration::from_secs(8);
/// How long the output may stay open once the tree is gone: only a process that is not of it
/// (a daemon that was handed the pipe) can still hold it.
const HELD_OPEN: Duration = Duration::from_millis(250);
const CHUNK: usize = 64 * 1024;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum CommandOutcome {
    /// By itself.
    Ended(ProcessExit),
    /// By us.
    Aborted(CommandAbortReason),
    /// The program is not there, or is not one.
    NoProgram(std::io::Error),
    /// We could not start it.
    NotStarted(std::io::Error),
}

/// Why we ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandAbortReason {
    /// Its own time was over.
    Timeout,
    /// The agent had to have its answer.
    ReplyDeadline,
    /// We were told to stop.
    Cancelled,
}

pub(crate) struct CheckCommandResult {
    pub(crate) how: CommandOutcome,
    pub(crate) captured: CaptureResult,
    /// Processes of the check that could not be killed, or a tree whose keeper was lost.
    pub(crate) survivors: bool,
}

enum CommandEvent {
    Output(Vec<u8>),
    OutputEnd,
    End(std::io::Result<(ProcessExit, bool)>),
}

pub(crate) fn run_check_command(
    definition: &CommandVerifierDefinition,
    job: &VerifierJob<'_>,
) -> CheckCommandResult {
    let nonce = logs::unique_run_name();
    let (env, withheld) = withheld::filter_environment(job.env, &definition.env);
    let log = logs::check_log_path(job, &nonce);
    let mut capture = OutputCapture::new(job.root, log, withheld, CAPTURE_LIMITS, job.redact);
    let clock = CommandDeadline::new(job);
    if let Some(cut) = clock.command_abort_reason() {
        return CheckCommandResult {
            how: CommandOutcome::Aborted(cut),
            captured: capture.finish_capture(),
            survivors: false,
        };
    }
    let mut command = match definition.direct_or_shell_invocation() {
        CommandInvocation::Direct(program, arguments) => {
            let mut command = Process::new(program);
            command.args(arguments);
            command
        }
        CommandInvocation::Shell(text) => process::build_shell_command(text),
    };
    command
        .current_dir(job.root)
        .env_clear()
        // A stale .pyc of a source that was mended within its second would be believed.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(env)
        .env("PWD", job.root)
        .env(withheld::CHECK_VARIABLE, &nonce)
        .stdin(Stdio::null());
    let (how, survivors) = match spawn_check_process(command, job, &nonce) {
        Ok((news, kill)) => await_command_end(&news, kill, &clock, &mut capture),
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
    // Else a missing folder would be taken for a missing program.
    if let Err(err) = std::fs::read_dir(job.root) {
        return Err(CommandOutcome::NotStarted(err));
    }
    let (output, write) = std::io::pipe().map_err(CommandOutcome::NotStarted)?;
    // One pipe for both, so that the log has them in the order in which they were written.
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
    let (sender, news) = sync_channel(4);
    let to_end = sender.clone();
    let threads = std::thread::Builder::new()
        .name("check-output".to_owned())
        .spawn(move || forward_command_output(output, &sender))
        .and_then(|_| {
            let builder = std::thread::Builder::new().name("check-end".to_owned());
            builder.spawn(move || send_process_end(wait, &to_end))
        });
    match threads {
        Ok(_) => Ok((news, kill)),
        Err(err) => {
            kill.kill_process_tree();
            Err(CommandOutcome::NotStarted(err))
        }
    }
}

fn send_process_end(wait: ProcessWaiter, to: &SyncSender<CommandEvent>) {
    // Nobody listens any more if the run was given up: then nobody needs it.
    let _ = to.send(CommandEvent::End(wait.wait_for_command_end()));
}

fn forward_command_output(mut output: std::io::PipeReader, to: &SyncSender<CommandEvent>) {
    loop {
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

fn await_command_end(
    news: &Receiver<CommandEvent>,
    kill: ProcessTreeKillHandle,
    clock: &CommandDeadline<'_>,
    capture: &mut OutputCapture,
) -> (CommandOutcome, bool) {
    let mut kill = Some(kill);
    let mut cut = None;
    let mut ended = None;
    let mut output_open = true;
    let mut patience = None;
    while ended.is_none() || output_open {
        if cut.is_none() && ended.is_none() {
            cut = clock.command_abort_reason();
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
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if patience.is_some_and(|until| Instant::now() > until) {
            break;
        }
    }
    let survivors = !matches!(ended, Some(Ok((_, false))));
    let how = match (cut, ended) {
        (Some(cut), _) => CommandOutcome::Aborted(cut),
        (None, Some(Ok((end, _)))) => CommandOutcome::Ended(end),
        (None, Some(Err(err))) => CommandOutcome::NotStarted(err),
        (None, None) => CommandOutcome::Ended(ProcessExit::Lost),
    };
    (how, survivors)
}

/// When a run is over although it has not ended.
struct CommandDeadline<'a> {
    job: &'a VerifierJob<'a>,
    timeout: Option<Instant>,
}

impl<'a> CommandDeadline<'a> {
    fn new(job: &'a VerifierJob<'a>) -> Self {
        let timeout = Instant::now().checked_add(Duration::from_millis(job.spec.timeout_ms));
        Self { job, timeout }
    }

    fn command_abort_reason(&self) -> Option<CommandAbortReason> {
        if self.job.cancelled.load(Ordering::Relaxed) {
            return Some(CommandAbortReason::Cancelled);
        }
        let now = Instant::now();
        let over = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        // Its own timeout first: at the same instant, it is its own fault.
        if over(self.timeout) {
            Some(CommandAbortReason::Timeout)
        } else if over(self.job.deadline) {
            Some(CommandAbortReason::ReplyDeadline)
        } else {
            None
        }
    }
}
