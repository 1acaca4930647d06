//! Runs an agent's terminal UI under tmux, on a tmux server of its own: starts it, watches its
//! screen and ends it.

use std::ffi::OsString;
use std::io::{Error, Result};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::world::ProbeCaseFixture;

/// Columns of the terminal: wide enough that no line of Checkrein's is wrapped.
const WIDTH: &str = "230";
const HEIGHT: &str = "70";

/// A running terminal session. Dropping it ends its tmux server, and the agent with it.
pub(super) struct AgentTmuxSession {
    socket: PathBuf,
}

impl AgentTmuxSession {
    /// Starts the agent with a prompt.
    pub(super) fn start_agent_in_tmux(world: &ProbeCaseFixture<'_>, prompt: &str) -> Result<Self> {
        let mut words = vec![world.stage.program.clone().into_os_string()];
        words.extend(world.stage.agent.interactive_agent_arguments(prompt));
        Self::start_program_in_tmux(world, "agent", &words)
    }

    /// Starts a program with its arguments. `name` distinguishes it from others on screen at the
    /// same time.
    pub(super) fn start_program_in_tmux(
        world: &ProbeCaseFixture<'_>,
        name: &str,
        words: &[OsString],
    ) -> Result<Self> {
        let socket = world.folder.join(format!("tmux-{name}"));
        // A socket per screen makes a server per screen, so that `kill-server` cannot end one that
        // the developer uses. `-f /dev/null` keeps their tmux.conf from changing what is shown.
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
        // The shell outlives the program, so that its last output can still be captured.
        command.args(["sh", "-c", "\"$@\"; exec sleep 600", "screen"]);
        command.args(words);
        // A tmux server gives its own environment to the programs that it starts.
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

    /// Waits until the screen shows the text or the time is over. Returns the last screen in either
    /// case.
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

    /// Types a line and presses Enter.
    pub(super) fn type_line_into_terminal(&self, line: &str) -> Result<()> {
        self.run_tmux(&["send-keys", line, "Enter"]).map(|_| ())
    }

    /// Presses a key by tmux's name for it, or types a text.
    pub(super) fn press_key(&self, key: &str) -> Result<()> {
        self.run_tmux(&["send-keys", key]).map(|_| ())
    }

    fn screen_text(&self) -> String {
        // `-J` joins lines that the terminal has wrapped, `-S -400` adds what has scrolled off: a
        // text is found wherever the UI has moved it.
        let output = self.run_tmux(&["capture-pane", "-p", "-J", "-S", "-400"]);
        output.map_or_else(
            // A server that is not up yet or has ended shows nothing; the caller's patience bounds
            // the wait.
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
        // The server may have ended by itself.
        let _ = self.run_tmux(&["kill-server"]);
    }
}
