//! One process of an agent. It is started under a keeper with its task on stdin. Its output is read
//! as it comes, and the end of its stderr is kept for error messages.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use checkrein_adapters::headless::{AgentOutputItem, AgentOutputReader, AgentOutputSummary};
use checkrein_verifiers::process::{self, ProcessExit, ProcessTreeKillHandle};
use checkrein_verifiers::withheld;

use super::new_unique_hex_id;

/// Longest line of output that is read in one piece.
const MAX_LINE: u64 = 32 * 1024 * 1024;
/// Bytes of the end of stderr that are kept.
const STDERR_TAIL: usize = 4 * 1024;

/// A process of the agent and the threads that read it.
pub(super) struct AgentProcess {
    pub(super) ended: Receiver<std::io::Result<(ProcessExit, bool)>>,
    kill: Option<ProcessTreeKillHandle>,
    shared: Arc<Mutex<CapturedAgentOutput>>,
    readers: Vec<JoinHandle<()>>,
}

struct CapturedAgentOutput {
    output: Box<dyn AgentOutputReader + Send>,
    said: Vec<AgentOutputItem>,
    stderr: Vec<u8>,
}

impl AgentProcess {
    /// Starts `command`, with `task` on its stdin.
    pub(super) fn spawn_with_task_on_stdin(
        mut command: Command,
        task: &str,
        output: Box<dyn AgentOutputReader + Send>,
    ) -> std::io::Result<Self> {
        // A file and not a pipe: an agent that does not read its task cannot block us, and one
        // that reads it sees its end.
        let mut stdin = tempfile::tempfile()?;
        std::io::Write::write_all(&mut stdin, task.as_bytes())?;
        std::io::Seek::rewind(&mut stdin)?;
        let (stdout, stdout_end) = std::io::pipe()?;
        let (stderr, stderr_end) = std::io::pipe()?;
        // The tag in the environment marks every descendant, also one that leaves the process
        // group.
        let tag = new_unique_hex_id();
        command
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout_end))
            .stderr(Stdio::from(stderr_end))
            .env(withheld::CHECK_VARIABLE, &tag);
        // The command owns our copies of the pipes' ends. Consuming it closes them, so that the
        // readers see the end.
        let (wait, kill) = process::spawn_killable_process_tree(command, &tag)?;
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            // There is no receiver only if the command is about to end.
            let _ = sender.send(wait.wait_for_command_end());
        });
        let shared = Arc::new(Mutex::new(CapturedAgentOutput {
            output,
            said: Vec::new(),
            stderr: Vec::new(),
        }));
        let (one, other) = (shared.clone(), shared.clone());
        let readers = vec![
            std::thread::spawn(move || read_agent_output(stdout, &one)),
            std::thread::spawn(move || capture_stderr_tail(stderr, &other)),
        ];
        Ok(Self {
            ended,
            kill: Some(kill),
            shared,
            readers,
        })
    }

    /// Kills the whole process tree.
    pub(super) fn kill_process_tree(&mut self) {
        if let Some(kill) = self.kill.take() {
            kill.kill_process_tree();
        }
    }

    /// Returns what was printed since the last call.
    pub(super) fn take_new_agent_output(&self) -> Vec<AgentOutputItem> {
        std::mem::take(&mut lock_agent_output_state(&self.shared).said)
    }

    /// Returns the facts known so far.
    pub(super) fn agent_output_summary(&self) -> AgentOutputSummary {
        lock_agent_output_state(&self.shared)
            .output
            .agent_output_summary_so_far()
            .clone()
    }

    /// Returns everything that the agent printed, once it has ended.
    pub(super) fn collect_final_agent_output(
        self,
    ) -> (AgentOutputSummary, Vec<AgentOutputItem>, String) {
        // The pipes are closed once the whole tree is gone, so the readers end by themselves.
        for reader in self.readers {
            // A reader that panicked has delivered all that it will.
            let _ = reader.join();
        }
        let mut shared = lock_agent_output_state(&self.shared);
        let said = std::mem::take(&mut shared.said);
        let stderr = String::from_utf8_lossy(&shared.stderr).trim().to_owned();
        (
            shared.output.agent_output_summary_so_far().clone(),
            said,
            stderr,
        )
    }
}

fn lock_agent_output_state(
    shared: &Mutex<CapturedAgentOutput>,
) -> MutexGuard<'_, CapturedAgentOutput> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_agent_output(from: impl Read, shared: &Mutex<CapturedAgentOutput>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        // A line beyond the limit arrives in several pieces; the adapter's reader takes each for
        // a line.
        line.clear();
        match from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let mut shared = lock_agent_output_state(shared);
                let said = shared.output.parse_agent_output_line(&line);
                shared.said.extend(said);
            }
        }
    }
}

fn capture_stderr_tail(mut from: impl Read, shared: &Mutex<CapturedAgentOutput>) {
    let mut buffer = [0_u8; 4096];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            return;
        }
        // An agent may log without end, and what it says last is the most telling.
        let tail = &mut lock_agent_output_state(shared).stderr;
        tail.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let surplus = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..surplus);
    }
}
