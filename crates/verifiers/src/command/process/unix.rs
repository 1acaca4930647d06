//! Unix without /proc and subreapers: only the process group can be killed. A process that leaves
//! the group survives.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{ProcessExit, exit_from_status};

/// Waits for the end of a group's leader, then ends the group.
pub struct ProcessTreeWaiter {
    child: Child,
    group: Arc<Mutex<Option<Pid>>>,
}

/// Ends a group.
pub struct ProcessTreeKillHandle {
    /// `None` once the leader is reaped: its number may then be another group's.
    group: Arc<Mutex<Option<Pid>>>,
}

/// Starts `command` as the leader of its own process group. The lock is held by this process alone:
/// it is free as soon as this process dies.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn_holding_lock(
    mut command: Command,
    _nonce: &str,
    _lock: Option<&std::fs::File>,
) -> std::io::Result<(ProcessTreeWaiter, ProcessTreeKillHandle)> {
    let child = command.process_group(0).spawn()?;
    let group = Arc::new(Mutex::new(Some(Pid::from_child(&child))));
    Ok((
        ProcessTreeWaiter {
            child,
            group: Arc::clone(&group),
        },
        ProcessTreeKillHandle { group },
    ))
}

impl ProcessTreeKillHandle {
    /// Kills the group.
    pub fn kill_process_tree(self) {
        kill_process_group_if_any(*self.group.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ProcessTreeWaiter {
    /// Returns how the leader ended, and kills what is left of its group.
    ///
    /// # Errors
    /// If its status cannot be had.
    pub fn wait_for_command_end(mut self) -> std::io::Result<(ProcessExit, bool)> {
        let leader = Pid::from_child(&self.child);
        // `NOWAIT` leaves the leader unreaped, so that the group's number is not reused before the
        // group is killed.
        while let Err(rustix::io::Errno::INTR) = waitid(
            WaitId::Pid(leader),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        ) {}
        // Taken under the lock: a concurrent kill sees `None` instead of a number that may be
        // another's.
        let mut group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        kill_process_group_if_any(group.take());
        Ok((exit_from_status(self.child.wait()?), false))
    }
}

fn kill_process_group_if_any(group: Option<Pid>) {
    if let Some(group) = group {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
