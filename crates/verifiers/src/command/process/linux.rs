//! Linux: runs each check under a keeper (see [`super::subreaper`]), a process between Checkrein
//! and the check. Checkrein holds one end of a pipe, the leash. When that end is closed, by
//! [`ProcessTreeKillHandle`] or because Checkrein died, even by `kill -9`, the keeper kills the
//! whole tree.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{ProcessExit, exit_from_status, subreaper};
use crate::command::withheld::CHECK_VARIABLE;

/// How long processes of a tree whose keeper was lost are searched for.
const SWEEP: Duration = Duration::from_secs(2);

/// Waits for the end of a tree.
pub struct ProcessTreeWaiter {
    subreaper: Child,
    report: PipeReader,
    tag: Vec<u8>,
}

/// Ends a tree.
pub struct ProcessTreeKillHandle {
    leash: PipeWriter,
}

/// Starts `command` under a keeper. The keeper has `lock` open until the tree is gone, whatever
/// becomes of this process.
///
/// # Errors
/// As [`Command::spawn`]; an error of `exec` is returned as such.
pub fn spawn_holding_lock(
    command: Command,
    nonce: &str,
    lock: Option<&File>,
) -> std::io::Result<(ProcessTreeWaiter, ProcessTreeKillHandle)> {
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
        ProcessTreeWaiter {
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
    // `command` owns this process's copies of the keeper's ends and closes them when it is dropped
    // here. Held open, the leash would never break.
    command.spawn()
}

impl ProcessTreeKillHandle {
    /// Kills the tree. [`ProcessTreeWaiter`] returns when it is gone.
    pub fn kill_process_tree(self) {
        drop(self.leash);
    }
}

impl ProcessTreeWaiter {
    /// Returns how the command ended, once its whole tree is gone, and whether some of the tree
    /// would not die.
    ///
    /// # Errors
    /// If the keeper's report cannot be read.
    pub fn wait_for_command_end(mut self) -> std::io::Result<(ProcessExit, bool)> {
        // Reaps the keeper, whose own status says nothing; if it cannot be had, nothing is lost.
        let _ = self.subreaper.wait();
        let mut report = Vec::new();
        // Ends at once: the keeper is gone, and it alone had the other end.
        self.report.read_to_end(&mut report)?;
        match report.as_slice() {
            [a, b, c, d, survivors] => {
                let status = ExitStatus::from_raw(i32::from_ne_bytes([*a, *b, *c, *d]));
                Ok((exit_from_status(status), *survivors != 0))
            }
            // No complete report: the keeper itself was killed.
            _ => Ok((ProcessExit::Lost, !kill_tagged_processes(&self.tag))),
        }
    }
}

/// Kills every process that has `tag` in its environment and returns whether none is left. Used
/// only for a tree whose keeper was killed, by the check or by the kernel for lack of memory.
fn kill_tagged_processes(tag: &[u8]) -> bool {
    let until = Instant::now() + SWEEP;
    loop {
        let mut alive = false;
        for pid in all_process_ids() {
            let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
            if environment.is_ok_and(|text| text.split(|byte| *byte == 0).any(|var| var == tag)) {
                alive = true;
                // The process may be gone already; the next round does not see it then.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        // Until a round finds none: a process may fork between its listing and its death.
        if !alive || Instant::now() > until {
            return !alive;
        }
        std::thread::yield_now();
    }
}

fn all_process_ids() -> impl Iterator<Item = Pid> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
}
