//! Runs other people's programs with a bound on time and on the output that is read. Descendants
//! are killed with them.

use std::fs::File;
use std::io::{Read as _, Result};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use checkrein_verifiers::process::{self, ProcessExit};

use crate::signals;

/// Bytes of a program's output that are read.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// How often Ctrl-C is looked at.
const TICK: Duration = Duration::from_millis(50);

/// How a program ended.
#[derive(Debug)]
pub(super) struct BoundedProcessResult {
    /// Exit status; `None` if a signal ended it, ours included.
    pub(super) status: Option<i32>,
    /// Whether we ended it.
    pub(super) timed_out: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl BoundedProcessResult {
    pub(super) fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim().to_owned()
    }
}

/// Shortens a program's words to what fits into a line of ours.
pub(super) fn short_first_line(said: &str) -> String {
    said.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(60)
        .collect()
}

/// Runs the command without input. Its output goes to files in `scratch`, so that a grandchild that
/// keeps them open keeps nobody waiting.
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
        // There is no receiver only if we gave up already.
        let _ = ended.send(wait.wait_for_command_end());
    });
    let until = Instant::now() + patience;
    let (status, cut) = loop {
        match end.recv_timeout(TICK) {
            Ok(ended) => break (Some(ended?.0), false),
            Err(_) if Instant::now() > until || signals::is_process_cancelled() => {
                kill.kill_process_tree();
                // The keeper of a killed tree ends by itself.
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
    // The program can have printed gigabytes.
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}
