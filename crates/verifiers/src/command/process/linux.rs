//! Linux: each check runs under a keeper (see [`super::subreaper`]), a process between us and
//! it. We hold one end of a pipe, the leash; when that end is closed, by [`ProcessTreeKillHandle`] or because
//! we died, even by `kill -9`, the keeper kills the whole tree.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{ProcessExit, exit_from_status, subreaper};
use crate::command::withheld::CHECK_VARIABLE;

/// How long we look for processes of a tree whose keeper was lost.
const SWEEP: Duration = Duration::from_secs(2);

/// Waits for the end of a tree.
pub struct ProcessWaiter {
    subreaper: Child,
    report: PipeReader,
    tag: Vec<u8>,
}

/// Ends a tree.
pub struct ProcessTreeKillHandle {
    leash: PipeWriter,
}

/// Starts `command` under a keeper, which has `lock` open until the tree is gone, whatever
/// becomes of us.
///
/// # Errors
/// As of `Command::spawn`: an error of `exec` is told as such.
pub fn spawn_holding_lock(
    command: Command,
    nonce: &str,
    lock: Option<&File>,
) -> std::io::Result<(ProcessWaiter, ProcessTreeKillHandle)> {
    let lock = lock.map(File::try_clone).transpose()?;
    let (leash_end, leash) = std::io::pipe()?;
    let (report, report_end) = std::io::pipe()?;
    let keeper = spawn_under_subreaper(
        command,
        leash_end.into(),
        report_end.into(),
        lock.map(OwnedFd::from),
    )?;
    let tag = format!("{CHECK_VARIABLE}={nonce}").into_bytes();
    Ok((
        ProcessWaiter {
            subreaper: keeper,
            report,
            tag,
        },
        ProcessTreeKillHandle { leash },
    ))
}

#[expect(
    unsafe_code,
    reason = "pre_exec: `keeper::stand_between` does nothing but system calls on memory of its own"
)]
fn spawn_under_subreaper(
    mut command: Command,
    leash: OwnedFd,
    report: OwnedFd,
    lock: Option<OwnedFd>,
) -> std::io::Result<Child> {
    // SAFETY: after the fork of a process with threads only async-signal-safe calls are
    // allowed, and the keeper makes no others: it neither allocates nor takes a lock.
    unsafe { command.pre_exec(move || subreaper::fork_subreaper(&leash, &report, lock.as_ref())) };
    // `command` owns our copies of the keeper's ends and closes them here.
    command.spawn()
}

impl ProcessTreeKillHandle {
    /// Kills the tree; [`ProcessWaiter`] comes back when it is gone.
    pub fn kill_process_tree(self) {
        drop(self.leash);
    }
}

impl ProcessWaiter {
    /// How the command ended, once its whole tree is gone; and whether some of it would not die.
    ///
    /// # Errors
    /// If the keeper's report cannot be read.
    pub fn wait_for_command_end(mut self) -> std::io::Result<(ProcessExit, bool)> {
        // Reaps the keeper. Its own status says nothing; if it cannot be had, neither is it missed.
        let _ = self.subreaper.wait();
        let mut report = Vec::new();
        self.report.read_to_end(&mut report)?;
        match report.as_slice() {
            [a, b, c, d, survivors] => {
                let status = ExitStatus::from_raw(i32::from_ne_bytes([*a, *b, *c, *d]));
                Ok((exit_from_status(status), *survivors != 0))
            }
            _ => Ok((ProcessExit::Lost, !kill_tagged_processes(&self.tag))),
        }
    }
}

/// Kills every process that carries `tag` in its environment; whether none is left. Only for
/// a tree whose keeper was killed, by the check or for lack of memory.
fn kill_tagged_processes(tag: &[u8]) -> bool {
    let until = Instant::now() + SWEEP;
    loop {
        let mut alive = false;
        for pid in running_pids() {
            let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
            if environment.is_ok_and(|text| text.split(|byte| *byte == 0).any(|var| var == tag)) {
                alive = true;
                // It may be gone already; then the next round does not see it.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if !alive || Instant::now() > until {
            return !alive;
        }
        std::thread::yield_now();
    }
}

fn running_pids() -> impl Iterator<Item = Pid> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
}
