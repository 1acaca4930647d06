//! Implements the Anthropic Messages API as far as Claude Code uses it: parses requests and renders
//! responses as event streams.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::script::{ScriptedModelAction, ScriptedModelRequest, join_strings_in_json_value};

/// Parses a request; `None` for a side request, which offers no tools (a title, a summary).
pub(crate) fn parse_anthropic_request(body: &Value) -> Option<ScriptedModelRequest> {
    let tools: Vec<String> = array_field_or_empty(body, "tools")
        .iter()
        .filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned))
        .collect();
    if tools.is_empty() {
        return None;
    }
    let messages = array_field_or_empty(body, "messages");
    // Everything after the model's last message is new to it: tool results, prompts, hook feedback.
    let spoken = messages
        .iter()
        .rposition(|message| message_role(message) == "assistant")
        .map_or(0, |at| at + 1);
    let first = messages
        .iter()
        .position(|message| message_role(message) == "assistant")
        .unwrap_or(messages.len());
    let content = |messages: &[Value]| {
        messages
            .iter()
            .filter_map(|message| message.get("content"))
            .map(join_strings_in_json_value)
            .collect::<Vec<_>>()
            .join("\n")
    };
    Some(ScriptedModelRequest {
        // The caller numbers requests, under the lock of the log.
        number: 0,
        opening_text: content(messages.get(..first).unwrap_or_default()),
        full_text: content(messages),
        new_text: content(messages.get(spoken..).unwrap_or_default()),
        tools,
    })
}

fn array_field_or_empty<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    body.get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn message_role(message: &Value) -> &str {
    message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A part of a response.
enum ResponseBlock<'a> {
    Text(&'a str),
    Call {
        id: String,
        name: &'a str,
        input: Value,
    },
}

/// Renders the n-th response, which reports `tokens` output tokens; returns whether it is a stream.
pub(crate) fn render_scripted_anthropic_reply(
    body: &Value,
    number: usize,
    acts: &[ScriptedModelAction],
    tokens: u64,
    repo: &Path,
) -> (bool, String) {
    let blocks: Vec<ResponseBlock<'_>> = acts
        .iter()
        .enumerate()
        .map(|(at, act)| scripted_content_block(act, format!("toolu_{number}_{at}"), repo))
        .collect();
    let calls = blocks
        .iter()
        .any(|block| matches!(block, ResponseBlock::Call { .. }));
    // An agent runs tool calls only if the stop reason announces them.
    let stop_reason = if calls { "tool_use" } else { "end_turn" };
    let usage = |output: u64| {
        json!({
            "input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "output_tokens": output, "service_tier": "standard",
        })
    };
    let message = |content: &[Value], stop_reason: Option<&str>, usage: Value| {
        json!({
            "id": format!("msg_scripted_{number}"), "type": "message", "role": "assistant",
            "model": body.get("model"), "content": content, "stop_reason": stop_reason,
            "stop_sequence": null, "usage": usage,
        })
    };
    if body.get("stream").and_then(Value::as_bool) != Some(true) {
        let content: Vec<Value> = blocks.iter().map(content_block_json).collect();
        let all = message(&content, Some(stop_reason), usage(tokens));
        return (false, all.to_string());
    }
    let mut out = String::new();
    let mut event = |kind: &str, value: Value| {
        let _ = write!(out, "event: {kind}\ndata: {value}\n\n");
    };
    // As with the real service, the number of output tokens is known only at the end.
    event(
        "message_start",
        json!({ "type": "message_start", "message": message(&[], None, usage(1)) }),
    );
    for (index, block) in blocks.iter().enumerate() {
        let (opening, delta) = split_content_block_for_stream(block);
        for (kind, name, value) in [
            ("content_block_start", "content_block", opening),
            ("content_block_delta", "delta", delta),
        ] {
            event(kind, json!({ "type": kind, "index": index, name: value }));
        }
        event(
            "content_block_stop",
            json!({ "type": "content_block_stop", "index": index }),
        );
    }
    let delta = json!({ "stop_reason": stop_reason, "stop_sequence": null });
    event(
        "message_delta",
        json!({ "type": "message_delta", "delta": delta, "usage": usage(tokens) }),
    );
    event("message_stop", json!({ "type": "message_stop" }));
    (true, out)
}

fn scripted_content_block<'a>(
    act: &'a ScriptedModelAction,
    id: String,
    repo: &Path,
) -> ResponseBlock<'a> {
    // Claude Code's file tools take absolute paths.
    let absolute = |path: &str| repo.join(path).display().to_string();
    let (name, input) = match act {
        ScriptedModelAction::Say(text) => return ResponseBlock::Text(text),
        ScriptedModelAction::Shell(command) => (
            "Bash",
            json!({ "command": command, "description": "scripted" }),
        ),
        ScriptedModelAction::Write { path, text } => (
            "Write",
            json!({ "file_path": absolute(path), "content": text }),
        ),
        ScriptedModelAction::Replace { path, old, new } => (
            "Edit",
            json!({ "file_path": absolute(path), "old_string": old, "new_string": new }),
        ),
        ScriptedModelAction::Read(path) => ("Read", json!({ "file_path": absolute(path) })),
        ScriptedModelAction::Delegate(prompt) => {
            // In the background, which is the default, a sub-agent may end after the stop of the
            // main agent.
            let input = json!({
                "description": "scripted", "prompt": prompt,
                "subagent_type": "general-purpose", "run_in_background": false,
            });
            ("Agent", input)
        }
        ScriptedModelAction::Call { tool, input } => (tool.as_str(), input.clone()),
    };
    ResponseBlock::Call { id, name, input }
}

fn content_block_json(block: &ResponseBlock<'_>) -> Value {
    match block {
        ResponseBlock::Text(text) => json!({ "type": "text", "text": text }),
        ResponseBlock::Call { id, name, input } => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }
    }
}

/// Splits a block for a stream: the empty block, and the delta that fills it.
fn split_content_block_for_stream(block: &ResponseBlock<'_>) -> (Value, Value) {
    match block {
        ResponseBlock::Text(text) => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
        ),
        ResponseBlock::Call { id, name, input } => (
            json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_came_since_the_last_word() {
        let body = json!({
            "tools": [{ "name": "Bash" }],
            "messages": [
                { "role": "user", "content": "the errand" },
                { "role": "assistant", "content": [{ "type": "text", "text": "done" }] },
                { "role": "user", "content": [{ "type": "text", "text": "not yet" }] },
            ],
        });
        let asked = parse_anthropic_request(&body).unwrap();
        assert_eq!(asked.tools, ["Bash"]);
        assert_eq!(asked.opening_text, "the errand");
        assert!(
            asked.new_text.contains("not yet") && !asked.new_text.contains("errand"),
            "{}",
            asked.new_text
        );
        assert!(parse_anthropic_request(&json!({ "messages": [] })).is_none());
    }

    #[test]
    fn a_call_arrives_in_a_stream_with_its_cost_at_the_end() {
        let acts = [ScriptedModelAction::Shell("ls".to_owned())];
        let (streamed, text) = render_scripted_anthropic_reply(
            &json!({ "stream": true, "model": "m" }),
            3,
            &acts,
            42,
            Path::new("repo"),
        );
        assert!(streamed);
        let delta = text
            .split("\n\n")
            .find(|event| event.starts_with("event: message_delta"))
            .unwrap();
        assert!(
            delta.contains("\"output_tokens\":42") && delta.contains("\"tool_use\""),
            "{delta}"
        );
        assert!(text.contains("\\\"command\\\":\\\"ls\\\""), "{text}");
    }
}
