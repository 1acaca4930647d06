//! Reads recorded runs from a trace file, one at a time, so that a file may be larger than the memory.

use std::io::{BufRead, Read};
use std::path::Path;

use checkrein_adapters::generic::trace::{AgentTraceLine, AgentTraceReader};
use checkrein_core::digest::Digest;
use checkrein_core::input::Input;

use crate::args::HalfOfTaskSet;
use crate::commands::trace_file::open_trace_file_for_reading;
use crate::ui;
use crate::ui::errors::CommandError;

/// Bytes of one line. A longer one is no trace, and reading on would fill the memory.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// What is known of a recorded run beside its inputs.
#[derive(Debug, Clone)]
pub(super) struct RecordedRun {
    /// What it is compared within: the agent that it names, else its id without the last part.
    pub(super) setup: String,
    /// The last part of its id.
    pub(super) task: String,
    /// Tool calls.
    pub(super) calls: u64,
    /// Whether it reached its goal, by its source's account.
    pub(super) success: Option<bool>,
}

impl RecordedRun {
    fn new(id: &str, agent: Option<&str>) -> Self {
        let (setup, task) = id.rsplit_once('/').unwrap_or(("", id));
        Self {
            setup: agent.unwrap_or(setup).to_owned(),
            task: task.to_owned(),
            calls: 0,
            success: None,
        }
    }

    /// Returns which half the run's task is in. All runs of a task are in the same half, so that what
    /// is chosen on one half has not seen the other.
    pub(super) fn half_containing_task(&self) -> HalfOfTaskSet {
        let [first, ..] = *Digest::hash_bytes(self.task.as_bytes()).as_bytes();
        match first % 2 {
            0 => HalfOfTaskSet::A,
            _ => HalfOfTaskSet::B,
        }
    }
}

/// Reads a trace file run by run.
pub(super) struct TraceFileRunReader {
    file: String,
    lines: Box<dyn BufRead>,
    trace: AgentTraceReader,
    /// The run whose first line has been read already.
    begun: Option<RecordedRun>,
    inputs: Vec<Input>,
    is_at_end: bool,
}

impl TraceFileRunReader {
    /// Opens a trace file; one that ends in `.gz` is unpacked on the way.
    pub(super) fn open_recorded_runs_file(path: &Path) -> Result<Self, CommandError> {
        let file = path.display().to_string();
        let lines = open_trace_file_for_reading(path).map_err(|error| {
            CommandError::usage_error(format!("{file}: {error}"), "name a trace file")
        })?;
        Ok(Self {
            file,
            lines,
            // One reading serves all presets.
            trace: AgentTraceReader::new_with_openclaw_facts(),
            begun: None,
            inputs: Vec::new(),
            is_at_end: false,
        })
    }

    /// Returns the next run with all its inputs; `None` after the last.
    pub(super) fn read_next_recorded_run(
        &mut self,
    ) -> Result<Option<(RecordedRun, Vec<Input>)>, CommandError> {
        let mut line = Vec::new();
        loop {
            while let Some(item) = self.trace.next_trace_item() {
                match item {
                    AgentTraceLine::Session {
                        id, agent, input, ..
                    } => {
                        let next =
                            RecordedRun::new(id.as_deref().unwrap_or_default(), agent.as_deref());
                        let before = self.begun.replace(next);
                        let inputs = std::mem::replace(&mut self.inputs, vec![input]);
                        if let Some(run) = before {
                            return Ok(Some((run, inputs)));
                        }
                    }
                    AgentTraceLine::Input { input, .. } => {
                        let run = self.begun.get_or_insert_with(|| RecordedRun::new("", None));
                        run.calls += u64::from(matches!(input, Input::ToolRequested(_)));
                        self.inputs.push(input);
                    }
                    AgentTraceLine::End { success, .. } => {
                        if let Some(run) = &mut self.begun {
                            run.success = success;
                        }
                    }
                    AgentTraceLine::Warning { line, what } => ui::print_wrapped_to_stderr(
                        &format!("checkrein: {}:{line}: {what}", self.file),
                    ),
                }
            }
            if self.is_at_end {
                let inputs = std::mem::take(&mut self.inputs);
                return Ok(self.begun.take().map(|run| (run, inputs)));
            }
            line.clear();
            let failed = |error| CommandError::cli_failure_error(format!("{}: {error}", self.file));
            let read = self
                .lines
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .map_err(failed)?;
            self.is_at_end = read == 0;
            self.trace.read_trace_line(&line);
        }
    }
}
