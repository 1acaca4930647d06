//! Reads what an agent recorded by itself: transcripts of Claude Code, rollouts of Codex, and traces in
//! our own format, told apart by their first lines. Whatever it is comes out as items of a trace.
//!
//! Streaming and tolerant: the caller hands in line after line, rows of unknown kinds are skipped, and no
//! row is kept but the answer that is being read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::claude_code::history::ClaudeCodeHistory;
use crate::codex::history::CodexHistory;
use crate::generic::trace::{AgentTraceLine, AgentTraceReader};

/// Whose file it is.
#[derive(Debug)]
enum HistoryFormat {
    /// No line has told yet.
    Unknown,
    /// Our own trace format.
    Trace,
    /// A transcript of Claude Code.
    ClaudeCode(Box<ClaudeCodeHistory>),
    /// A rollout of Codex.
    Codex(Box<CodexHistory>),
}

/// Reads a recorded history line by line.
#[derive(Debug)]
pub struct AgentHistoryReader {
    format: HistoryFormat,
    /// Lines that told nothing, not blank.
    untold: u32,
    trace: AgentTraceReader,
}

/// So many lines that tell nothing are those of a trace, each with a warning.
const MAX_UNTOLD_LINES: u32 = 100;

/// The keys by which formats are told apart.
#[derive(Deserialize)]
struct HistoryRowKeys<'a> {
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "sessionId")]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "parentUuid")]
    parent_uuid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
}

/// The kinds of lines of our own format.
const TRACE_KINDS: [&str; 9] = [
    "session",
    "user",
    "assistant",
    "tool_call",
    "tool_result",
    "stop",
    "end",
    "compaction",
    "run",
];

impl AgentHistoryReader {
    /// Creates a reader that makes its items with this reader of traces.
    pub fn new(trace: AgentTraceReader) -> Self {
        Self {
            format: HistoryFormat::Unknown,
            untold: 0,
            trace,
        }
    }

    /// Takes one line, with or without its line break.
    pub fn read_history_line(&mut self, line: &[u8]) {
        if let HistoryFormat::Unknown = self.format {
            self.find_out_format(line);
        }
        match &mut self.format {
            HistoryFormat::ClaudeCode(history) => {
                self.trace.count_line();
                history.read_transcript_row(line, &mut self.trace);
            }
            HistoryFormat::Codex(history) => {
                self.trace.count_line();
                history.read_rollout_row(line, &mut self.trace);
            }
            HistoryFormat::Trace | HistoryFormat::Unknown => self.trace.read_trace_line(line),
        }
    }

    fn find_out_format(&mut self, line: &[u8]) {
        self.format = format_of_line(line);
        match &self.format {
            // Bookkeeping came first: nothing to warn of.
            HistoryFormat::ClaudeCode(_) | HistoryFormat::Codex(_) => self.trace.forget_items(),
            HistoryFormat::Unknown if !line.trim_ascii().is_empty() => {
                self.untold += 1;
                if self.untold > MAX_UNTOLD_LINES {
                    self.format = HistoryFormat::Trace;
                }
            }
            HistoryFormat::Trace | HistoryFormat::Unknown => {}
        }
    }

    /// There are no more lines: what was being read is complete.
    pub fn end_history(&mut self) {
        match &mut self.format {
            HistoryFormat::ClaudeCode(history) => history.end_transcript(&mut self.trace),
            HistoryFormat::Unknown => self.format = HistoryFormat::Trace,
            HistoryFormat::Codex(_) | HistoryFormat::Trace => {}
        }
    }

    /// Returns the next item of the lines taken so far. There is none until a line tells the format, or
    /// the file is over.
    pub fn next_trace_item(&mut self) -> Option<AgentTraceLine> {
        match &self.format {
            HistoryFormat::Unknown => None,
            _ => self.trace.next_trace_item(),
        }
    }
}

fn format_of_line(line: &[u8]) -> HistoryFormat {
    let line = line.trim_ascii();
    if line.is_empty() {
        return HistoryFormat::Unknown;
    }
    match serde_json::from_slice::<HistoryRowKeys<'_>>(line) {
        Ok(row) if row.payload.is_some() && row.timestamp.is_some() => {
            HistoryFormat::Codex(Box::default())
        }
        Ok(row)
            if row.session_id.is_some() || row.parent_uuid.is_some() || row.message.is_some() =>
        {
            HistoryFormat::ClaudeCode(Box::default())
        }
        Ok(row) if TRACE_KINDS.contains(&&*row.kind) => HistoryFormat::Trace,
        // Bookkeeping may come first.
        Ok(_) | Err(_) => HistoryFormat::Unknown,
    }
}

/// Returns a line of a trace, made of these fields. Values are JSON.
pub(crate) fn trace_line(kind: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut line = format!("{{\"type\":\"{kind}\"");
    for (key, value) in fields {
        line.push_str(",\"");
        line.push_str(key);
        line.push_str("\":");
        line.push_str(value);
    }
    line.push('}');
    line.into_bytes()
}

/// Returns a text as a JSON string.
pub(crate) fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
