//! Windows: `taskkill /T` ends a process and those it started that are still linked to it.

use std::process::{Child, Command, Stdio};

use super::Ended;

/// Waits for the end of a process.
pub struct ProcessWaiter {
    child: Child,
}

/// Ends a process and its descendants.
pub struct ProcessTreeKillHandle {
    id: u32,
}

/// Starts `command`. Nobody but us has `lock` open here.
///
/// # Errors
/// As of `Command::spawn`.
pub fn spawn_holding_lock(
    mut command: Command,
    _nonce: &str,
    _lock: Option<&std::fs::File>,
) -> std::io::Result<(ProcessWaiter, ProcessTreeKillHandle)> {
    let child = command.spawn()?;
    let id = child.id();
    Ok((ProcessWaiter { child }, ProcessTreeKillHandle { id }))
}

impl ProcessTreeKillHandle {
    /// Kills it and its descendants.
    pub fn kill_process_tree(self) {
        // The number stays its own as long as `ProcessWaiter` holds the process open.
        let _ = Command::new("taskkill")
            .args(["/T", "/F", "/PID", &self.id.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

impl ProcessWaiter {
    /// How it ended.
    ///
    /// # Errors
    /// If its status cannot be had.
    pub fn wait_for_command_end(mut self) -> std::io::Result<(Ended, bool)> {
        let status = self.child.wait()?;
        Ok((status.code().map_or(Ended::Lost, Ended::Exited), false))
    }
}
