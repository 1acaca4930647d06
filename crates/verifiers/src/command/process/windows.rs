//! Windows: `taskkill /T` ends a process and those of its descendants whose parent is still alive.

use std::process::{Child, Command, Stdio};

use super::ProcessExit;

/// Waits for the end of a process.
pub struct ProcessTreeWaiter {
    child: Child,
}

/// Ends a process and its descendants.
pub struct ProcessTreeKillHandle {
    id: u32,
}

/// Starts `command`. The lock is held by this process alone: it is free as soon as this process
/// dies.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn_holding_lock(
    mut command: Command,
    _nonce: &str,
    _lock: Option<&std::fs::File>,
) -> std::io::Result<(ProcessTreeWaiter, ProcessTreeKillHandle)> {
    let child = command.spawn()?;
    let id = child.id();
    Ok((ProcessTreeWaiter { child }, ProcessTreeKillHandle { id }))
}

impl ProcessTreeKillHandle {
    /// Kills it and its descendants.
    pub fn kill_process_tree(self) {
        // The process id is not reused as long as `ProcessTreeWaiter` holds the process open.
        let _ = Command::new("taskkill")
            .args(["/T", "/F", "/PID", &self.id.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

impl ProcessTreeWaiter {
    /// Returns how the process ended.
    ///
    /// # Errors
    /// If its status cannot be had.
    pub fn wait_for_command_end(mut self) -> std::io::Result<(ProcessExit, bool)> {
        let status = self.child.wait()?;
        Ok((
            status.code().map_or(ProcessExit::Lost, ProcessExit::Exited),
            false,
        ))
    }
}
