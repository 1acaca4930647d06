//! Reads a transcript of Claude Code as the history of a session. A response is one row per content
//! block with the same message id, a result is a row of a user, and what hooks and commands say are rows
//! marked as no person's.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::generic::trace::AgentTraceReader;
use crate::history::{json_string, trace_line};

/// What is known of the transcript so far.
#[derive(Debug, Default)]
pub(crate) struct ClaudeCodeHistory {
    begun: bool,
    /// The file is a sub-agent's: all its rows are of a side chain.
    is_side_chain: Option<bool>,
    /// The response whose rows are being read.
    /// Results may stand between them, and the last has the final counts.
    response: Option<OpenResponse>,
}

/// Bytes of a response's text that are kept.
const MAX_TEXT: usize = 24 * 1024;

#[derive(Debug)]
struct OpenResponse {
    id: String,
    /// The use, as JSON.
    usage: Option<String>,
    text: String,
    /// It ends its turn.
    ends_turn: bool,
}

#[derive(Deserialize)]
struct TranscriptHistoryRow<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "sessionId")]
    session_id: Option<Cow<'a, str>>,
    #[serde(default, rename = "isSidechain")]
    is_side_chain: bool,
    /// Nothing that a person said.
    #[serde(default, rename = "isMeta")]
    is_meta: bool,
    #[serde(default, rename = "isCompactSummary")]
    is_compact_summary: bool,
    #[serde(borrow, default)]
    message: Option<TranscriptHistoryMessage<'a>>,
}

#[derive(Deserialize)]
struct TranscriptHistoryMessage<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ContentBlock<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
}

impl ClaudeCodeHistory {
    /// Takes a row. One that cannot be read, or means nothing here, is skipped: most rows are
    /// bookkeeping.
    pub(crate) fn read_transcript_row(&mut self, line: &[u8], trace: &mut AgentTraceReader) {
        let Ok(row) = serde_json::from_slice::<TranscriptHistoryRow<'_>>(line) else {
            return;
        };
        if !self.begun
            && let Some(id) = &row.session_id
        {
            self.begun = true;
            let agent = json_string(super::NAME);
            trace.read_line_of_row(&trace_line(
                "session",
                &[("id", &json_string(id)), ("agent", &agent)],
            ));
        }
        let is_message = matches!(&*row.kind, "user" | "assistant");
        if is_message && *self.is_side_chain.get_or_insert(row.is_side_chain) != row.is_side_chain {
            return;
        }
        match (&*row.kind, &row.message) {
            ("assistant", Some(message)) => self.read_response_row(message, trace),
            ("user", Some(message)) if !row.is_compact_summary => {
                self.read_user_row(message, row.is_meta, trace);
            }
            ("system", _) if row.subtype.as_deref() == Some("compact_boundary") => {
                self.end_response(trace);
                trace.read_line_of_row(&trace_line("compaction", &[]));
            }
            _ => {}
        }
    }

    /// The file is over.
    pub(crate) fn end_transcript(&mut self, trace: &mut AgentTraceReader) {
        self.end_response(trace);
    }

    fn read_response_row(
        &mut self,
        message: &TranscriptHistoryMessage<'_>,
        trace: &mut AgentTraceReader,
    ) {
        let id = message.id.as_deref().unwrap_or_default();
        if self
            .response
            .as_ref()
            .is_some_and(|response| response.id != id)
        {
            self.end_response(trace);
        }
        let response = self.response.get_or_insert_with(|| OpenResponse {
            id: id.to_owned(),
            usage: None,
            text: String::new(),
            ends_turn: false,
        });
        if let Some(usage) = message.usage {
            response.usage = Some(usage.get().to_owned());
        }
        response.ends_turn |= message.stop_reason.as_deref() == Some("end_turn");
        for block in content_blocks(message.content) {
            match (&*block.kind, &block.name) {
                ("tool_use", Some(name)) => {
                    let id = block.id.as_deref().map_or("null".to_owned(), json_string);
                    let args = block.input.map_or("null", RawValue::get);
                    trace.read_line_of_row(&trace_line(
                        "tool_call",
                        &[("id", &id), ("tool", &json_string(name)), ("args", args)],
                    ));
                }
                ("text", _) if response.text.len() < MAX_TEXT => {
                    let text = block.text.as_deref().unwrap_or_default();
                    let end = text.floor_char_boundary(text.len().min(MAX_TEXT));
                    response.text.push_str(text.get(..end).unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    /// The response is complete: it was a round, and perhaps a claim of done.
    fn end_response(&mut self, trace: &mut AgentTraceReader) {
        let Some(response) = self.response.take() else {
            return;
        };
        let usage = response.usage.as_deref().unwrap_or("null");
        trace.read_line_of_row(&trace_line("assistant", &[("usage", usage)]));
        if response.ends_turn {
            let text = json_string(&response.text);
            trace.read_line_of_row(&trace_line("stop", &[("text", &text)]));
        }
    }

    fn read_user_row(
        &mut self,
        message: &TranscriptHistoryMessage<'_>,
        is_meta: bool,
        trace: &mut AgentTraceReader,
    ) {
        // Whether rows without an id are one response, nothing says.
        if self
            .response
            .as_ref()
            .is_some_and(|response| response.id.is_empty())
        {
            self.end_response(trace);
        }
        let content = message.content.map_or("null", RawValue::get);
        let mut prompt = serde_json::from_str::<String>(content).unwrap_or_default();
        for block in content_blocks(message.content) {
            match (&*block.kind, &block.tool_use_id) {
                ("tool_result", Some(id)) => {
                    let result = block.content.map_or("null", RawValue::get);
                    let error = if block.is_error == Some(true) {
                        "true"
                    } else {
                        "false"
                    };
                    trace.read_line_of_row(&trace_line(
                        "tool_result",
                        &[
                            ("id", &json_string(id)),
                            ("result", result),
                            ("error", error),
                        ],
                    ));
                }
                ("text", _) => prompt.push_str(block.text.as_deref().unwrap_or_default()),
                _ => {}
            }
        }
        if !is_meta && !prompt.is_empty() {
            self.end_response(trace);
            trace.read_line_of_row(&trace_line("user", &[("text", &json_string(&prompt))]));
        }
    }
}

fn content_blocks(content: Option<&RawValue>) -> Vec<ContentBlock<'_>> {
    content
        .and_then(|content| serde_json::from_str(content.get()).ok())
        .unwrap_or_default()
}
