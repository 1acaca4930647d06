//! Reads recorded runs from a trace file, one at a time, so that a file may be larger than the memory.

use std::io::BufRead;
use std::path::Path;

use checkrein_adapters::generic::trace::{AgentTraceLine, AgentTraceReader};
use checkrein_adapters::history::AgentHistoryReader;
use checkrein_core::digest::Digest;
use checkrein_core::input::Input;

use crate::args::HalfOfTaskSet;
use crate::commands::trace_file::{open_trace_file_for_reading, read_bounded_line};
use crate::ui;
use crate::ui::errors::CommandError;

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
    history: AgentHistoryReader,
    /// The run that is being read.
    begun: Option<RecordedRun>,
    /// Its first input, if the line that opened it ended the run before.
    first_input: Option<Input>,
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
            history: AgentHistoryReader::new(AgentTraceReader::new_with_openclaw_facts()),
            begun: None,
            first_input: None,
            is_at_end: false,
        })
    }

    /// Reads the next run and hands each of its inputs to `take`, with what is known of the run so far.
    /// Returns the run; `None` after the last. No input is kept: a run may be larger than the memory.
    pub(super) fn read_next_recorded_run(
        &mut self,
        take: &mut dyn FnMut(&RecordedRun, &Input),
    ) -> Result<Option<RecordedRun>, CommandError> {
        if let (Some(run), Some(input)) = (&self.begun, self.first_input.take()) {
            take(run, &input);
        }
        let mut line = Vec::new();
        loop {
            while let Some(item) = self.history.next_trace_item() {
                match item {
                    AgentTraceLine::Session {
                        id, agent, input, ..
                    } => {
                        let next =
                            RecordedRun::new(id.as_deref().unwrap_or_default(), agent.as_deref());
                        match self.begun.replace(next) {
                            Some(run) => {
                                self.first_input = Some(input);
                                return Ok(Some(run));
                            }
                            None => self.take_input(&input, take),
                        }
                    }
                    AgentTraceLine::Input { input, .. } => self.take_input(&input, take),
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
                return Ok(self.begun.take());
            }
            let has_more = read_bounded_line(&mut *self.lines, &mut line).map_err(|error| {
                CommandError::cli_failure_error(format!("{}: {error}", self.file))
            })?;
            match has_more {
                true => self.history.read_history_line(&line),
                false => {
                    self.history.end_history();
                    self.is_at_end = true;
                }
            }
        }
    }

    fn take_input(&mut self, input: &Input, take: &mut dyn FnMut(&RecordedRun, &Input)) {
        let run = self.begun.get_or_insert_with(|| RecordedRun::new("", None));
        take(run, input);
        run.calls += u64::from(matches!(input, Input::ToolRequested(_)));
    }
}
