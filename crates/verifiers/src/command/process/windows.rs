//! Windows: `taskkill /T` ends a process and those it started that are still linked to it.

use std::process::{Child, Command, Stdio};

use super::Ended;

/// Waits for the end of a process.
pub struct Wait {
    child: Child,
}

/// Ends a process and its descendants.
pub struct Kill {
    id: u32,
}

/// Starts `command`. Nobody but us has `lock` open here.
///
/// # Errors
/// As of `Command::spawn`.
pub fn spawn_locked(
    mut command: Command,
    _nonce: &str,
    _lock: Option<&std::fs::File>,
) -> std::io::Result<(Wait, Kill)> {
    let child = command.spawn()?;
    let id = child.id();
    Ok((Wait { child }, Kill { id }))
}

impl Kill {
    /// Kills it and its descendants.
    pub fn kill(self) {
        // The number stays its own as long as `Wait` holds the process open.
        let _ = Command::new("taskkill")
            .args(["/T", "/F", "/PID", &self.id.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

impl Wait {
    /// How it ended.
    ///
    /// # Errors
    /// If its status cannot be had.
    pub fn wait(mut self) -> std::io::Result<(Ended, bool)> {
        let status = self.child.wait()?;
        Ok((status.code().map_or(Ended::Lost, Ended::Exited), false))
    }
}
