//! Starts a process and ends all that it started. A check owns its tree: whatever is left
//! of it when it ends, or when we end it, is killed.

pub mod brief;
#[cfg(target_os = "linux")]
pub mod detached;

#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod linux;
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

pub use platform::{Kill, Wait, spawn_locked};

use std::process::Command;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// We do not know: what kept its tree for us was killed.
    Lost,
}

/// Starts `command` and keeps its tree.
///
/// # Errors
/// As of `Command::spawn`.
pub fn spawn(command: Command, nonce: &str) -> std::io::Result<(Wait, Kill)> {
    spawn_locked(command, nonce, None)
}

/// A command that the platform's shell reads.
pub(crate) fn shell(text: &str) -> Command {
    let (shell, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut command = Command::new(shell);
    command.arg(flag).arg(text);
    command
}

/// What a wait status says.
#[cfg(unix)]
pub(crate) fn ended(status: std::process::ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, Some(signal)) => Ended::Signalled(signal),
        (None, None) => Ended::Lost,
    }
}
