//! Other people's programs, started with a bound on time and on what is read of them. Whatever
//! they started is ended with them.

use std::fs::File;
use std::io::{Read as _, Result};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use checkrein_verifiers::process::{self, ProcessExit};

use crate::signals;

/// More of what a program prints is not read.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// How often a person's Ctrl-C is looked at.
const TICK: Duration = Duration::from_millis(50);

/// How a program ended.
#[derive(Debug)]
pub(super) struct BoundedProcessResult {
    /// `None`: by a signal, ours included.
    pub(super) status: Option<i32>,
    /// We ended it.
    pub(super) timed_out: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl BoundedProcessResult {
    pub(super) fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim().to_owned()
    }
}

/// Of what a program said, as much as stands in a line of ours.
pub(super) fn short_first_line(said: &str) -> String {
    said.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(60)
        .collect()
}

/// Runs it without input. `scratch` holds its output meanwhile: a file, so that a grandchild
/// which keeps it open keeps nobody waiting.
pub(super) fn run_command_with_timeout(
    mut command: Command,
    patience: Duration,
    scratch: &Path,
) -> Result<BoundedProcessResult> {
    let (out, err) = (scratch.join("stdout"), scratch.join("stderr"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?);
    let nonce = format!("doctor-{}", std::process::id());
    let (wait, kill) = process::spawn_killable_process_tree(command, &nonce)?;
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody listens any more if we were in a hurry to go.
        let _ = ended.send(wait.wait_for_command_end());
    });
    let until = Instant::now() + patience;
    let (status, cut) = loop {
        match end.recv_timeout(TICK) {
            Ok(ended) => break (Some(ended?.0), false),
            Err(_) if Instant::now() > until || signals::is_interrupted_by_signal() => {
                kill.kill_process_tree();
                // The keeper of a killed tree gives up by itself.
                let _ = end.recv();
                break (None, true);
            }
            Err(_) => {}
        }
    };
    Ok(BoundedProcessResult {
        status: match status {
            Some(ProcessExit::Exited(code)) => Some(code),
            Some(ProcessExit::Signalled(_) | ProcessExit::Lost) | None => None,
        },
        timed_out: cut,
        stdout: read_file_head(&out)?,
        stderr: read_file_head(&err)?,
    })
}

fn read_file_head(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}
