//! Starts a process and ends everything that it started. A check owns its process tree: whatever is
//! left of it when the check ends or is ended is killed.

pub mod bounded_command;
#[cfg(target_os = "linux")]
pub mod detached;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod subreaper;
#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(all(unix, not(target_os = "linux")))]
use unix as platform;

#[cfg(not(unix))]
mod windows;
#[cfg(not(unix))]
use windows as platform;

pub use platform::{ProcessTreeKillHandle, ProcessTreeWaiter, spawn_holding_lock};

use std::process::Command;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Unknown: the keeper of its tree was killed.
    Lost,
}

/// Starts `command` in a process tree that can be killed as a whole.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn_killable_process_tree(
    command: Command,
    nonce: &str,
) -> std::io::Result<(ProcessTreeWaiter, ProcessTreeKillHandle)> {
    spawn_holding_lock(command, nonce, None)
}

/// Builds a command that the platform's shell interprets.
pub(crate) fn build_shell_command(text: &str) -> Command {
    // POSIX `sh`, not the user's shell: a check must mean the same on every machine.
    let (shell, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut command = Command::new(shell);
    command.arg(flag).arg(text);
    command
}

/// Converts a wait status.
#[cfg(unix)]
pub(crate) fn exit_from_status(status: std::process::ExitStatus) -> ProcessExit {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessExit::Exited(code),
        (None, Some(signal)) => ProcessExit::Signalled(signal),
        (None, None) => ProcessExit::Lost,
    }
}
