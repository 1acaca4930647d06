//! One run: start, take in the output, wait, cut. Two threads block on the outside world
//! (the output, the end); this one listens to both and to the clock.

use std::io::Read as _;
use std::process::{Command as Process, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::capture::{BOUNDS, Capture, Captured};
use super::definition::{Definition, Start};
use super::process::{self, Ended, Kill, Wait};
use super::withheld;
use crate::{Job, logs};

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
pub(crate) enum How {
    /// By itself.
    Ended(Ended),
    /// By us.
    Cut(Cut),
    /// The program is not there, or is not one.
    NoProgram(std::io::Error),
    /// We could not start it.
    NotStarted(std::io::Error),
}

/// Why we ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Its own time was over.
    Timeout,
    /// The agent had to have its answer.
    ReplyDeadline,
    /// We were told to stop.
    Cancelled,
}

pub(crate) struct Ran {
    pub(crate) how: How,
    pub(crate) captured: Captured,
    /// Processes of the check that could not be killed, or a tree whose keeper was lost.
    pub(crate) survivors: bool,
}

enum News {
    Output(Vec<u8>),
    OutputEnd,
    End(std::io::Result<(Ended, bool)>),
}

pub(crate) fn run(definition: &Definition, job: &Job<'_>) -> Ran {
    let nonce = logs::nonce();
    let (env, withheld) = withheld::filtered(job.env, &definition.env);
    let log = logs::path(job, &nonce);
    let mut capture = Capture::new(job.root, log, withheld, BOUNDS, job.redact);
    let clock = Clock::new(job);
    if let Some(cut) = clock.over() {
        return Ran {
            how: How::Cut(cut),
            captured: capture.finish(),
            survivors: false,
        };
    }
    let mut command = match definition.start() {
        Start::Direct(program, arguments) => {
            let mut command = Process::new(program);
            command.args(arguments);
            command
        }
        Start::Shell(text) => process::shell(text),
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
    let (how, survivors) = match started(command, job, &nonce) {
        Ok((news, kill)) => listen(&news, kill, &clock, &mut capture),
        Err(how) => (how, false),
    };
    Ran {
        how,
        captured: capture.finish(),
        survivors,
    }
}

fn started(
    mut command: Process,
    job: &Job<'_>,
    nonce: &str,
) -> Result<(Receiver<News>, Kill), How> {
    // Else a missing folder would be taken for a missing program.
    if let Err(err) = std::fs::read_dir(job.root) {
        return Err(How::NotStarted(err));
    }
    let (output, write) = std::io::pipe().map_err(How::NotStarted)?;
    // One pipe for both, so that the log has them in the order in which they were written.
    command
        .stderr(write.try_clone().map_err(How::NotStarted)?)
        .stdout(write);
    let (wait, kill) = process::spawn_locked(command, nonce, job.lock).map_err(|err| match err
        .kind()
    {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => How::NoProgram(err),
        _ => How::NotStarted(err),
    })?;
    let (sender, news) = sync_channel(4);
    let to_end = sender.clone();
    let threads = std::thread::Builder::new()
        .name("check-output".to_owned())
        .spawn(move || read(output, &sender))
        .and_then(|_| {
            let builder = std::thread::Builder::new().name("check-end".to_owned());
            builder.spawn(move || report_end(wait, &to_end))
        });
    match threads {
        Ok(_) => Ok((news, kill)),
        Err(err) => {
            kill.kill();
            Err(How::NotStarted(err))
        }
    }
}

fn report_end(wait: Wait, to: &SyncSender<News>) {
    // Nobody listens any more if the run was given up: then nobody needs it.
    let _ = to.send(News::End(wait.wait()));
}

fn read(mut output: std::io::PipeReader, to: &SyncSender<News>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        match output.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => {
                chunk.truncate(length);
                if to.send(News::Output(chunk)).is_err() {
                    return;
                }
            }
            Err(err) if err.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = to.send(News::OutputEnd);
}

fn listen(
    news: &Receiver<News>,
    kill: Kill,
    clock: &Clock<'_>,
    capture: &mut Capture,
) -> (How, bool) {
    let mut kill = Some(kill);
    let mut cut = None;
    let mut ended = None;
    let mut output_open = true;
    let mut patience = None;
    while ended.is_none() || output_open {
        if cut.is_none() && ended.is_none() {
            cut = clock.over();
            if cut.is_some() {
                if let Some(kill) = kill.take() {
                    kill.kill();
                }
                patience = Some(Instant::now() + DYING);
            }
        }
        match news.recv_timeout(TICK) {
            Ok(News::Output(chunk)) => capture.feed(chunk),
            Ok(News::OutputEnd) => output_open = false,
            Ok(News::End(end)) => {
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
        (Some(cut), _) => How::Cut(cut),
        (None, Some(Ok((end, _)))) => How::Ended(end),
        (None, Some(Err(err))) => How::NotStarted(err),
        (None, None) => How::Ended(Ended::Lost),
    };
    (how, survivors)
}

/// When a run is over although it has not ended.
struct Clock<'a> {
    job: &'a Job<'a>,
    timeout: Option<Instant>,
}

impl<'a> Clock<'a> {
    fn new(job: &'a Job<'a>) -> Self {
        let timeout = Instant::now().checked_add(Duration::from_millis(job.spec.timeout_ms));
        Self { job, timeout }
    }

    fn over(&self) -> Option<Cut> {
        if self.job.cancelled.load(Ordering::Relaxed) {
            return Some(Cut::Cancelled);
        }
        let now = Instant::now();
        let over = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        // Its own timeout first: at the same instant, it is its own fault.
        if over(self.timeout) {
            Some(Cut::Timeout)
        } else if over(self.job.deadline) {
            Some(Cut::ReplyDeadline)
        } else {
            None
        }
    }
}
