//! Reads trace files: JSON Lines, one happening a line, any number of trajectories, each opened by
//! a `session` line. The reader is sans-IO: the caller hands in line after line.
//!
//! Unknown fields are ignored, unknown types and unreadable lines are warnings, ids are optional,
//! and a call's result stands in its own line or in a later one.

use std::borrow::Cow;
use std::collections::VecDeque;

use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::ids::{AgentName, ScopeId};
use checkrein_core::input::{
    AgentAnswerFacts, Input, OpenClawCallFacts, PromptSubmitted, RoundEnded, SessionEnded,
    SessionStartKind, SessionStarted, StopRequested, TokenUsage, ToolKind, ToolOutcomeFacts,
    ToolRequestFacts, ToolRequested, ToolReturned, TreeReadError,
};
use checkrein_core::tool_action::classify_call;
use checkrein_core::tool_outcome::openclaw::{
    OpenClawResult, OpenClawTool, openclaw_outcome_facts,
};
use checkrein_core::tool_outcome::text_outcome_facts;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::tool_call::{ReportedToolOutcome, tool_call_digest};

/// Calls that may wait for their result at the same time. The oldest is dropped first: it never had
/// one.
const MAX_OPEN_CALLS: usize = 256;

/// What a line of a trace says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentTraceLine {
    /// A trajectory begins.
    Session {
        /// The trajectory's id.
        id: Option<String>,
        /// The agent's name.
        agent: Option<String>,
        /// The agent's goal.
        goal: Option<String>,
        /// The input that begins the session in the core.
        input: Input,
    },
    /// News for the core.
    Input {
        /// The news, without facts.
        input: Input,
        /// The call it is about.
        call: Option<TraceToolCallIndex>,
    },
    /// A trajectory ended.
    End {
        /// Whether it reached its goal, by its source's own account.
        success: Option<bool>,
        /// What its source calls the result.
        label: Option<String>,
    },
    /// A line that cannot be understood.
    Warning {
        /// Its number in the stream, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// A call of a trajectory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceToolCallIndex {
    /// Its number among the trajectory's calls, from 0.
    pub index: u64,
    /// The tool's name.
    pub tool: String,
}

/// Returns every item of a trace that is in memory as a whole.
pub fn read_generic_trace_items(bytes: &[u8]) -> impl Iterator<Item = AgentTraceLine> {
    let mut reader = AgentTraceReader::default();
    let mut lines = bytes.split(|byte| *byte == b'\n');
    std::iter::from_fn(move || {
        loop {
            // A line may give no item or two, so what is ready goes out before the next line is
            // read.
            if let Some(item) = reader.next_trace_item() {
                return Some(item);
            }
            reader.read_trace_line(lines.next()?);
        }
    })
}

/// Reads a trace line by line.
#[derive(Debug, Default)]
pub struct AgentTraceReader {
    line: u64,
    calls: u64,
    open: VecDeque<OpenCall>,
    ready: VecDeque<AgentTraceLine>,
    /// The agent's own name of its run, as the last `run` line said.
    run: Option<String>,
    with_openclaw_facts: bool,
    is_for_openclaw_alone: bool,
}

/// A call whose result has not come yet.
#[derive(Debug)]
struct OpenCall {
    id: Option<String>,
    index: u64,
    tool: String,
    call: EightByteDigest,
    kind: ToolKind,
    /// What OpenClaw's rules read of it, and its arguments, which they read again with the result.
    openclaw: Option<(OpenClawCallFacts, Value)>,
}

impl AgentTraceReader {
    /// Creates a reader that also says what OpenClaw's rules read of each call.
    pub fn new_with_openclaw_facts() -> Self {
        Self {
            with_openclaw_facts: true,
            ..Self::default()
        }
    }

    /// As [`Self::new_with_openclaw_facts`], where no detector of ours is asked beside OpenClaw's rules.
    pub fn new_for_openclaw_alone() -> Self {
        Self {
            is_for_openclaw_alone: true,
            ..Self::new_with_openclaw_facts()
        }
    }

    /// Takes one line, with or without its line break. Blank lines are skipped.
    pub fn read_trace_line(&mut self, line: &[u8]) {
        self.count_line();
        self.read_line_of_row(line);
    }

    /// Counts a line of the file, by which warnings name it.
    pub(crate) fn count_line(&mut self) {
        self.line = self.line.saturating_add(1);
    }

    /// Takes what a row of another format comes to. The row is counted by itself.
    pub(crate) fn read_line_of_row(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        match serde_json::from_slice::<TraceLineWire<'_>>(line) {
            Ok(wire) => self.read_trace_line_by_kind(&wire),
            Err(error) => self.push_warning(format!("cannot be read: {error}")),
        }
    }

    /// Returns the next item of the lines taken so far. A call with its result gives two items.
    pub fn next_trace_item(&mut self) -> Option<AgentTraceLine> {
        self.ready.pop_front()
    }

    /// Drops what was read so far.
    pub(crate) fn forget_items(&mut self) {
        self.ready.clear();
    }

    fn read_trace_line_by_kind(&mut self, wire: &TraceLineWire<'_>) {
        match &*wire.kind {
            "tool_call" => self.read_traced_tool_call(wire),
            "tool_result" => self.read_trace_tool_result(wire),
            "assistant" => {
                let tokens = parse_token_usage(
                    &parse_json_or_null(wire.tokens),
                    &parse_json_or_null(wire.usage),
                );
                self.queue_input_from_trace(round_end_input(tokens), None);
            }
            "user" => self.queue_input_from_trace(
                prompt_submitted_input(
                    &json_string_or_raw_json_text(wire.text).unwrap_or_default(),
                ),
                None,
            ),
            "stop" => {
                let text = json_string_or_raw_json_text(wire.text).unwrap_or_default();
                self.queue_input_from_trace(
                    stop_input_from_trace(&text, AgentAnswerFacts::default()),
                    None,
                );
            }
            "session" => {
                // Calls are numbered and matched within one trajectory: ids of the last one mean
                // nothing here.
                self.calls = 0;
                self.open.clear();
                self.run = None;
                let agent = json_string_or_raw_json_text(wire.agent).map(Cow::into_owned);
                self.ready.push_back(AgentTraceLine::Session {
                    id: json_string_or_raw_json_text(wire.id).map(Cow::into_owned),
                    input: session_start_input_from_trace(agent.as_deref()),
                    agent,
                    goal: json_string_or_raw_json_text(wire.goal).map(Cow::into_owned),
                });
            }
            "run" => self.run = json_string_or_raw_json_text(wire.id).map(Cow::into_owned),
            "compaction" => self.queue_input_from_trace(compaction_input(), None),
            "end" => self.ready.push_back(AgentTraceLine::End {
                success: parse_json_or_null(wire.success).as_bool(),
                label: json_string_or_raw_json_text(wire.label).map(Cow::into_owned),
            }),
            other => self.push_warning(format!("unknown type {other:?}")),
        }
    }

    fn read_traced_tool_call(&mut self, wire: &TraceLineWire<'_>) {
        let Some(tool) = json_string_or_raw_json_text(wire.tool) else {
            return self.push_warning("a tool_call without a tool".to_owned());
        };
        let raw = wire.args.map_or("null", RawValue::get);
        let (action, digest, args) = match serde_json::from_str::<Value>(raw) {
            Ok(args) => (classify_call(&tool, &args), Digest::hash_json(&args), args),
            // Arguments nested too deep for a canonical form are identified by their bytes.
            Err(_) => (
                classify_call(&tool, &Value::Null),
                Digest::hash_bytes(raw.as_bytes()),
                Value::from(raw),
            ),
        };
        let (kind, waits) = (action.kind, action.runs_waiting_command());
        let call = tool_call_digest(&tool, &digest);
        let index = self.calls;
        self.calls = index.saturating_add(1);
        let id = json_string_or_raw_json_text(wire.id).map(Cow::into_owned);
        let openclaw = self.with_openclaw_facts.then(|| {
            let run = json_string_or_raw_json_text(wire.run);
            let run = run.as_deref().or(self.run.as_deref());
            let tool = OpenClawTool::from_tool_name(&tool);
            let digest = tool.call_digest(&args);
            let mut facts = tool.call_facts(digest, &args, id.as_deref(), run);
            facts.runs_regardless = true;
            facts.alone = self.is_for_openclaw_alone;
            (facts, args)
        });
        let tool = tool.into_owned();
        self.queue_input_from_trace(
            Input::ToolRequested(ToolRequested {
                scope: ScopeId::main_scope(),
                call_id: id.clone(),
                tool: tool.clone(),
                kind,
                args: raw.to_owned(),
                call,
                // A trace is analysed, not gated: there is nobody to ask, and no machine to find
                // facts on.
                facts: ToolRequestFacts::default(),
                can_ask: false,
                may_act: false,
                reports_outcome: false,
                openclaw: openclaw.as_ref().map(|(facts, _)| *facts),
                waits,
                tokens: None,
            }),
            Some(TraceToolCallIndex {
                index,
                tool: tool.clone(),
            }),
        );
        // The result follows at once if it stands in the call's own line; else the call waits for
        // it.
        let open = OpenCall {
            id,
            index,
            tool,
            call,
            kind,
            openclaw,
        };
        if is_json_value_non_null(wire.result) || is_json_value_non_null(wire.error) {
            self.emit_tool_return_as_input(open, wire);
        } else {
            if self.open.len() >= MAX_OPEN_CALLS {
                self.open.pop_front();
            }
            self.open.push_back(open);
        }
    }

    fn read_trace_tool_result(&mut self, wire: &TraceLineWire<'_>) {
        let id = json_string_or_raw_json_text(wire.id);
        // Some agents use ids again, so the newest call of that id is meant. Results without an id
        // come in the order of their calls.
        let at = match &id {
            Some(id) => self
                .open
                .iter()
                .rposition(|open| open.id.as_deref() == Some(id)),
            None => (!self.open.is_empty()).then_some(0),
        };
        match at.and_then(|at| self.open.remove(at)) {
            Some(open) => self.emit_tool_return_as_input(open, wire),
            None => self.push_warning("a tool_result without its tool_call".to_owned()),
        }
    }

    fn emit_tool_return_as_input(&mut self, open: OpenCall, wire: &TraceLineWire<'_>) {
        let outcome = outcome_from_raw_json(&open.tool, wire.result, wire.error);
        let openclaw = open.openclaw.and_then(|(call, args)| {
            let (mut result, mut error) = (
                parse_json_or_null(wire.result),
                parse_json_or_null(wire.error),
            );
            // `true` is a flag here: the error itself stands in the result.
            if error == Value::Bool(true) && !result.is_null() {
                error = std::mem::take(&mut result);
            }
            let came_back = OpenClawResult {
                result: &result,
                error: &error,
                result_json: wire.result.map(RawValue::get),
            };
            openclaw_outcome_facts(&args, came_back, call)
        });
        self.queue_input_from_trace(
            Input::ToolReturned(ToolReturned {
                excerpt: None,
                scope: ScopeId::main_scope(),
                call_id: open.id,
                call: open.call,
                outcome: outcome.digest,
                error: outcome.failed,
                // A write that failed is not counted as one.
                wrote: open.kind == ToolKind::Write && !outcome.failed,
                facts: ToolOutcomeFacts {
                    openclaw,
                    ..outcome.facts
                },
                tokens: None,
            }),
            Some(TraceToolCallIndex {
                index: open.index,
                tool: open.tool,
            }),
        );
    }

    fn queue_input_from_trace(&mut self, input: Input, call: Option<TraceToolCallIndex>) {
        self.ready.push_back(AgentTraceLine::Input { input, call });
    }

    fn push_warning(&mut self, what: String) {
        self.ready.push_back(AgentTraceLine::Warning {
            line: self.line,
            what,
        });
    }
}

/// A line, borrowed. Values stay raw until it is known that they matter.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TraceLineWire<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    agent: Option<&'a RawValue>,
    #[serde(borrow, default)]
    goal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    args: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    error: Option<&'a RawValue>,
    /// The agent's own name of the run that a call belongs to.
    #[serde(borrow, default)]
    run: Option<&'a RawValue>,
    #[serde(borrow, default)]
    success: Option<&'a RawValue>,
    #[serde(borrow, default)]
    label: Option<&'a RawValue>,
}

/// Reads a value as it stands, `null` included: `Option` would take `null` for a missing field.
fn deserialize_present<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

fn is_json_value_non_null(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() != "null")
}

fn parse_json_or_null(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or(Value::Null)
}

/// Returns a text, or the JSON of what stands in its place (a number as an id, for example).
fn json_string_or_raw_json_text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let raw = raw?.get();
    match json_string_without_escapes(raw) {
        Some(inner) => Some(Cow::Borrowed(inner)),
        None if raw == "null" => None,
        None => match serde_json::from_str::<String>(raw) {
            Ok(text) => Some(Cow::Owned(text)),
            Err(_) => Some(Cow::Borrowed(raw)),
        },
    }
}

/// Returns the inside of a JSON string that holds no escape.
fn json_string_without_escapes(raw: &str) -> Option<&str> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.as_bytes().contains(&b'\\')).then_some(inner)
}

fn outcome_from_raw_json(
    tool: &str,
    result: Option<&RawValue>,
    error: Option<&RawValue>,
) -> ReportedToolOutcome {
    match (result, error.map_or("null", RawValue::get)) {
        // A string without escapes is its own canonical form: no need to build the value.
        (Some(raw), flag @ ("null" | "false" | "true" | "\"\""))
            if let Some(text) = json_string_without_escapes(raw.get()) =>
        {
            let failed = flag == "true";
            ReportedToolOutcome {
                digest: Digest::hash_bytes(raw.get().as_bytes()).to_eight_byte_digest(),
                failed,
                facts: text_outcome_facts(tool, text, failed),
            }
        }
        (result, _) => {
            // As above: a value nested too deep is identified by its bytes.
            let value = |raw: Option<&RawValue>| match raw {
                None => Value::Null,
                Some(raw) => serde_json::from_str(raw.get())
                    .unwrap_or_else(|_| Value::String(raw.get().to_owned())),
            };
            reported_call_outcome(tool, &value(result), &value(error))
        }
    }
}

/// Returns what came back. An error is `false`, `null` or empty for none, `true`, or the error itself.
pub(super) fn reported_call_outcome(
    tool: &str,
    result: &Value,
    error: &Value,
) -> ReportedToolOutcome {
    match (result, error) {
        (_, Value::Null | Value::Bool(false)) => {
            ReportedToolOutcome::outcome_from_tool_result(tool, result, false)
        }
        (_, Value::Bool(true)) => ReportedToolOutcome::outcome_from_tool_result(tool, result, true),
        (_, Value::String(none)) if none.is_empty() => {
            ReportedToolOutcome::outcome_from_tool_result(tool, result, false)
        }
        (Value::Null, error) => ReportedToolOutcome::outcome_from_tool_result(tool, error, true),
        (result, error) => ReportedToolOutcome::outcome_from_tool_result(
            tool,
            &Value::Array(vec![result.clone(), error.clone()]),
            true,
        ),
    }
}

/// Reads the token use of a response: `tokens` counts the output, `usage` is the provider's own
/// account.
pub(super) fn parse_token_usage(tokens: &Value, usage: &Value) -> Option<TokenUsage> {
    let count = |names: &[&str]| names.iter().find_map(|name| usage.get(*name)?.as_u64());
    // Without a count of the output nothing is known: an input alone would make a use of zero look
    // real.
    let output = tokens
        .as_u64()
        .or_else(|| count(&["output_tokens", "completion_tokens"]))?;
    // OpenAI's counts include what was cached, Anthropic's leave it out.
    let input = count(&["input_tokens", "prompt_tokens"])
        .unwrap_or(0)
        .saturating_add(count(&["cache_creation_input_tokens"]).unwrap_or(0))
        .saturating_add(count(&["cache_read_input_tokens"]).unwrap_or(0));
    Some(TokenUsage {
        output,
        input,
        cost: None,
        cursor: String::new(),
    })
}

pub(super) fn session_start_input_from_trace(agent: Option<&str>) -> Input {
    Input::SessionStarted(SessionStarted {
        agent: AgentName::from(agent.unwrap_or(super::NAME)),
        how: SessionStartKind::Startup,
        parent: None,
        tokens: None,
    })
}

/// The context of the conversation was compacted.
fn compaction_input() -> Input {
    Input::SessionStarted(SessionStarted {
        agent: AgentName::from(super::NAME),
        how: SessionStartKind::Compact,
        parent: None,
        tokens: None,
    })
}

pub(super) fn prompt_submitted_input(text: &str) -> Input {
    Input::PromptSubmitted(PromptSubmitted {
        text: text.to_owned(),
        tree: None,
        tokens: None,
        tells_calls: false,
        acts: None,
    })
}

/// One message of the model is one round.
pub(super) fn round_end_input(tokens: Option<TokenUsage>) -> Input {
    Input::RoundEnded(RoundEnded {
        scope: ScopeId::main_scope(),
        tokens,
    })
}

pub(super) fn stop_input_from_trace(text: &str, answer: AgentAnswerFacts) -> Input {
    Input::StopRequested(StopRequested {
        scope: ScopeId::main_scope(),
        message: text.to_owned(),
        message_digest: Digest::hash_bytes(text.as_bytes()),
        tree: Err(TreeReadError {
            why: "not read".to_owned(),
            cut: false,
        }),
        block_cap: None,
        truncated: false,
        background: 0,
        agent_ending: None,
        answer,
        judges: Box::default(),
        tokens: None,
    })
}

pub(super) fn session_end_input_from_trace(success: Option<bool>, label: Option<&str>) -> Input {
    let native_reason = label.unwrap_or(match success {
        Some(true) => "success",
        Some(false) => "failure",
        None => "end",
    });
    Input::SessionEnded(SessionEnded {
        native_reason: native_reason.to_owned(),
    })
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
