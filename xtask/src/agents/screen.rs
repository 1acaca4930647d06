//! An agent's terminal UI under tmux, on a server of its own: started, watched, ended.

use std::ffi::OsString;
use std::io::{Error, Result};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::world::ProbeCaseFixture;

/// Wide enough that no line of ours is broken.
const WIDTH: &str = "230";
const HEIGHT: &str = "70";

/// A running one; dropped, its tmux server ends and the agent with it.
pub(super) struct AgentTmuxSession {
    socket: PathBuf,
}

impl AgentTmuxSession {
    /// The agent, with a prompt.
    pub(super) fn start_agent_in_tmux(world: &ProbeCaseFixture<'_>, prompt: &str) -> Result<Self> {
        let mut words = vec![world.stage.program.clone().into_os_string()];
        words.extend(world.stage.agent.interactive_agent_arguments(prompt));
        Self::start_program_in_tmux(world, "agent", &words)
    }

    /// Any program and its arguments; `name` tells it from others that are shown meanwhile.
    pub(super) fn start_program_in_tmux(
        world: &ProbeCaseFixture<'_>,
        name: &str,
        words: &[OsString],
    ) -> Result<Self> {
        let socket = world.folder.join(format!("tmux-{name}"));
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&socket).args([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            WIDTH,
            "-y",
            HEIGHT,
        ]);
        // What a program that ends has said stays to be seen.
        command.args(["sh", "-c", "\"$@\"; exec sleep 600", "screen"]);
        command.args(words);
        // The server takes its environment from whoever starts it.
        world.isolate_environment(&mut command);
        let started = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Error::other(format!("tmux: {error}")))?;
        if started.status.success() {
            Ok(Self { socket })
        } else {
            Err(Error::other(format!(
                "tmux: {}",
                String::from_utf8_lossy(&started.stderr).trim()
            )))
        }
    }

    /// Watches until the text is there or the time is over; the last screen either way.
    pub(super) fn wait_for_screen_text(&self, needle: &str, patience: Duration) -> (bool, String) {
        let until = Instant::now() + patience;
        loop {
            let screen = self.screen_text();
            let found = screen.contains(needle);
            if found || Instant::now() > until {
                return (found, screen);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Types a line, as a person would.
    pub(super) fn type_line_into_terminal(&self, line: &str) -> Result<()> {
        self.run_tmux(&["send-keys", line, "Enter"]).map(|_| ())
    }

    /// Presses a key, by tmux's name for it, or types a text.
    pub(super) fn press_key(&self, key: &str) -> Result<()> {
        self.run_tmux(&["send-keys", key]).map(|_| ())
    }

    fn screen_text(&self) -> String {
        let output = self.run_tmux(&["capture-pane", "-p", "-J", "-S", "-400"]);
        output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    fn run_tmux(&self, arguments: &[&str]) -> Result<std::process::Output> {
        Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
    }
}

impl Drop for AgentTmuxSession {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.run_tmux(&["kill-server"]);
    }
}
