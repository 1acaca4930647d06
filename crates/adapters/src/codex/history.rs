//! Reads a rollout of Codex as the history of a session.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::tool::split_exit_code_from_output;
use crate::generic::trace::AgentTraceReader;
use crate::history::{json_string, trace_line};

/// What is known of the rollout so far.
#[derive(Debug, Default)]
pub(crate) struct CodexHistory {
    begun: bool,
    /// Output and input tokens of the thread so far.
    total: (u64, u64),
}

#[derive(Deserialize)]
struct RolloutHistoryRow<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: RolloutHistoryPayload<'a>,
}

#[derive(Deserialize)]
struct RolloutHistoryPayload<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    /// JSON as a string.
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
    /// Of a tool that takes a text.
    #[serde(borrow, default)]
    input: Option<Cow<'a, str>>,
    /// Of a command in an older form.
    #[serde(borrow, default)]
    action: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(default)]
    info: Option<TokenCountHistory>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    item: Option<CompletedItem<'a>>,
    #[serde(borrow, default)]
    last_agent_message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct TokenCountHistory {
    total_token_usage: TotalTokenUsage,
}

#[derive(Deserialize)]
struct TotalTokenUsage {
    #[serde(default)]
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
struct CompletedItem<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    content: Vec<TextOfItem>,
}

#[derive(Deserialize)]
struct TextOfItem {
    #[serde(default)]
    text: String,
}

impl CodexHistory {
    /// Takes a row. One that cannot be read, or means nothing here, is skipped.
    pub(crate) fn read_rollout_row(&mut self, line: &[u8], trace: &mut AgentTraceReader) {
        let Ok(row) = serde_json::from_slice::<RolloutHistoryRow<'_>>(line) else {
            return;
        };
        let payload = &row.payload;
        match (&*row.kind, &*payload.kind) {
            // A thread that was forked repeats the rows of its parent, its head included.
            ("session_meta", _) if !self.begun => {
                self.begun = true;
                let id = payload.id.as_deref().map_or("null".to_owned(), json_string);
                let agent = json_string(super::NAME);
                trace.read_line_of_row(&trace_line("session", &[("id", &id), ("agent", &agent)]));
            }
            ("response_item", "function_call" | "custom_tool_call" | "local_shell_call") => {
                read_call(payload, trace);
            }
            ("response_item", "function_call_output" | "custom_tool_call_output") => {
                read_output(payload, trace);
            }
            ("event_msg", "token_count") => self.read_token_count(payload, trace),
            ("event_msg", "user_message") => {
                read_prompt(payload.message.as_deref().unwrap_or_default(), trace);
            }
            ("event_msg", "item_completed") => {
                if let Some(item) = payload
                    .item
                    .as_ref()
                    .filter(|item| item.kind == "UserMessage")
                {
                    let texts: Vec<&str> =
                        item.content.iter().map(|one| one.text.as_str()).collect();
                    read_prompt(&texts.join("\n"), trace);
                }
            }
            ("event_msg", "task_complete") => {
                let text = json_string(payload.last_agent_message.as_deref().unwrap_or_default());
                trace.read_line_of_row(&trace_line("stop", &[("text", &text)]));
            }
            ("compacted", _) => trace.read_line_of_row(&trace_line("compaction", &[])),
            _ => {}
        }
    }

    /// Each response is followed by the thread's totals.
    fn read_token_count(
        &mut self,
        payload: &RolloutHistoryPayload<'_>,
        trace: &mut AgentTraceReader,
    ) {
        let Some(info) = &payload.info else { return };
        let total = &info.total_token_usage;
        // Said again, with news of a rate limit: there was no response.
        if (total.output_tokens, total.input_tokens) == self.total {
            return;
        }
        // A total that shrank was begun anew.
        let before = match total.output_tokens < self.total.0 {
            true => (0, 0),
            false => self.total,
        };
        self.total = (total.output_tokens, total.input_tokens);
        let usage = format!(
            "{{\"output_tokens\":{},\"input_tokens\":{}}}",
            total.output_tokens - before.0,
            total.input_tokens.saturating_sub(before.1)
        );
        trace.read_line_of_row(&trace_line("assistant", &[("usage", &usage)]));
    }
}

fn read_call(payload: &RolloutHistoryPayload<'_>, trace: &mut AgentTraceReader) {
    let name = payload.name.as_deref().unwrap_or("local_shell");
    let args = match (&payload.arguments, &payload.input, payload.action) {
        // Arguments that are no JSON are a text.
        (Some(arguments), _, _) => match serde_json::from_str::<&RawValue>(arguments) {
            Ok(_) => arguments.to_string(),
            Err(_) => json_string(arguments),
        },
        (None, Some(input), _) => json_string(input),
        (None, None, Some(action)) => action.get().to_owned(),
        (None, None, None) => "null".to_owned(),
    };
    let id = payload
        .call_id
        .as_deref()
        .map_or("null".to_owned(), json_string);
    trace.read_line_of_row(&trace_line(
        "tool_call",
        &[("id", &id), ("tool", &json_string(name)), ("args", &args)],
    ));
}

fn read_output(payload: &RolloutHistoryPayload<'_>, trace: &mut AgentTraceReader) {
    let output: Value = payload
        .output
        .and_then(|output| serde_json::from_str(output.get()).ok())
        .unwrap_or_default();
    let text = match &output {
        Value::String(text) => Some(text.as_str()),
        other => other.get("content").and_then(Value::as_str),
    };
    let told = output
        .get("success")
        .and_then(Value::as_bool)
        .map(|success| !success);
    let exited = text.and_then(exit_code_in_output).map(|code| code != "0");
    let failed = told.or(exited).unwrap_or(false);
    let result = text.map_or_else(|| output.to_string(), json_string);
    let id = payload
        .call_id
        .as_deref()
        .map_or("null".to_owned(), json_string);
    trace.read_line_of_row(&trace_line(
        "tool_result",
        &[
            ("id", &id),
            ("result", &result),
            ("error", if failed { "true" } else { "false" }),
        ],
    ));
}

/// Returns the exit code in the head of a command's output, in either of its two forms.
fn exit_code_in_output(text: &str) -> Option<&str> {
    let head = || text.lines().take_while(|line| *line != "Output:").take(8);
    let newer = head().find_map(|line| line.strip_prefix("Process exited with code "));
    newer.or_else(|| split_exit_code_from_output(text).map(|(code, _)| code))
}

fn read_prompt(text: &str, trace: &mut AgentTraceReader) {
    if !text.is_empty() {
        trace.read_line_of_row(&trace_line("user", &[("text", &json_string(text))]));
    }
}
