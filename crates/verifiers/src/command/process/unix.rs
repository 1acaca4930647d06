//! Unix without /proc and subreapers: the process group is all that can be ended. A process
//! that leaves it survives.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{Ended, ended};

/// Waits for the end of a group's leader, then ends the group.
pub struct ProcessWaiter {
    child: Child,
    group: Arc<Mutex<Option<Pid>>>,
}

/// Ends a group.
pub struct ProcessTreeKillHandle {
    /// `None` once the leader is reaped: its number may then be another group's.
    group: Arc<Mutex<Option<Pid>>>,
}

/// Starts `command` as the leader of a group of its own. Nobody but us has `lock` open here.
///
/// # Errors
/// As of `Command::spawn`.
pub fn spawn_holding_lock(
    mut command: Command,
    _nonce: &str,
    _lock: Option<&std::fs::File>,
) -> std::io::Result<(ProcessWaiter, ProcessTreeKillHandle)> {
    let child = command.process_group(0).spawn()?;
    let group = Arc::new(Mutex::new(Some(Pid::from_child(&child))));
    Ok((
        ProcessWaiter {
            child,
            group: Arc::clone(&group),
        },
        ProcessTreeKillHandle { group },
    ))
}

impl ProcessTreeKillHandle {
    /// Kills the group.
    pub fn kill_process_tree(self) {
        kill_group(*self.group.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ProcessWaiter {
    /// How the leader ended; what is left of its group is killed.
    ///
    /// # Errors
    /// If its status cannot be had.
    pub fn wait_for_command_end(mut self) -> std::io::Result<(Ended, bool)> {
        let leader = Pid::from_child(&self.child);
        // Unreaped, so that the group's number stays its own until the group is killed.
        while let Err(rustix::io::Errno::INTR) = waitid(
            WaitId::Pid(leader),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        ) {}
        let mut group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        kill_group(group.take());
        Ok((ended(self.child.wait()?), false))
    }
}

fn kill_process_group_if_any(group: Option<Pid>) {
    if let Some(group) = group {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
