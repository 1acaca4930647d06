//! Implements the OpenAI Responses API as far as Codex uses it: parses requests and renders
//! responses as event streams.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::script::{ScriptedModelAction, ScriptedModelRequest, join_strings_in_json_value};

/// The shell tool, which every task is offered and side requests are not.
const SHELL_TOOL: &str = "exec_command";

/// Parses a request; `None` for a side request (the terminal UI asks for a title).
pub(crate) fn parse_responses_api_request(body: &Value) -> Option<ScriptedModelRequest> {
    let tools: Vec<String> = array_field_or_empty(body, "tools")
        .iter()
        .filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned))
        .collect();
    // Side requests may offer other tools, so an empty list is no criterion here.
    if !tools.iter().any(|tool| tool == SHELL_TOOL) {
        return None;
    }
    let items = array_field_or_empty(body, "input");
    let spoken = items
        .iter()
        .rposition(is_input_item_from_model)
        .map_or(0, |at| at + 1);
    let first = items
        .iter()
        .position(is_input_item_from_model)
        .unwrap_or(items.len());
    let content = |items: &[Value]| {
        items
            .iter()
            .map(response_item_text)
            .collect::<Vec<_>>()
            .join("\n")
    };
    Some(ScriptedModelRequest {
        number: 0,
        opening_text: content(items.get(..first).unwrap_or_default()),
        full_text: content(items),
        new_text: content(items.get(spoken..).unwrap_or_default()),
        tools,
    })
}

fn array_field_or_empty<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    body.get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns whether the model produced an item. Results of calls and other messages are input.
fn is_input_item_from_model(item: &Value) -> bool {
    match item.get("type").and_then(Value::as_str) {
        Some("function_call" | "custom_tool_call" | "reasoning") => true,
        _ => item.get("role").and_then(Value::as_str) == Some("assistant"),
    }
}

fn response_item_text(item: &Value) -> String {
    ["content", "output"]
        .iter()
        .filter_map(|field| item.get(field))
        .map(join_strings_in_json_value)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Renders the n-th response, which reports `tokens` output tokens; returns whether it is a stream.
pub(crate) fn scripted_responses_api_reply(
    body: &Value,
    number: usize,
    acts: &[ScriptedModelAction],
    tokens: u64,
) -> (bool, String) {
    let items: Vec<Value> = acts
        .iter()
        .enumerate()
        .map(|(at, act)| responses_output_item(act, &format!("{number}_{at}")))
        .collect();
    let usage = json!({
        "input_tokens": 1000, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": tokens, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 1000 + tokens,
    });
    let response = |status: &str, output: &[Value], usage: &Value| {
        json!({
            "id": format!("resp_scripted_{number}"), "object": "response", "created_at": 1,
            "model": body.get("model"), "status": status, "output": output, "usage": usage,
        })
    };
    let done = response("completed", &items, &usage);
    if body.get("stream").and_then(Value::as_bool) != Some(true) {
        return (false, done.to_string());
    }
    let mut out = String::new();
    let mut sequence = 0;
    let mut event = |kind: &str, name: &str, value: &Value, index: Option<usize>| {
        sequence += 1;
        let data = json!({ "type": kind, "sequence_number": sequence, "output_index": index, name: value });
        let _ = write!(out, "event: {kind}\ndata: {data}\n\n");
    };
    let begun = response("in_progress", &[], &Value::Null);
    event("response.created", "response", &begun, None);
    for (index, item) in items.iter().enumerate() {
        // Without deltas: Codex takes the item from `done`.
        event("response.output_item.added", "item", item, Some(index));
        event("response.output_item.done", "item", item, Some(index));
    }
    event("response.completed", "response", &done, None);
    (true, out)
}

fn responses_output_item(act: &ScriptedModelAction, id: &str) -> Value {
    let function = |name: &str, arguments: &Value| {
        let mut call = json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "status": "completed",
            "name": name, "arguments": arguments.to_string(),
        });
        // Codex keeps the tools of each MCP server in a namespace and expects it in a separate
        // field.
        let server = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"));
        if let (Some((server, tool)), Some(call)) = (server, call.as_object_mut()) {
            call.insert("namespace".to_owned(), json!(format!("mcp__{server}")));
            call.insert("name".to_owned(), json!(tool));
        }
        call
    };
    let custom = |name: &str, input: &str| {
        json!({
            "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": format!("call_{id}"), "status": "completed",
            "name": name, "input": input,
        })
    };
    let shell = |command: &str| function(SHELL_TOOL, &json!({ "cmd": command }));
    let patch = |text: String| {
        custom(
            "apply_patch",
            &format!("*** Begin Patch\n{text}*** End Patch\n"),
        )
    };
    match act {
        // This dialect has no sub-agents: a delegation is only a message.
        ScriptedModelAction::Say(text) | ScriptedModelAction::Delegate(text) => json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        ScriptedModelAction::Shell(command) => shell(command),
        // Codex has no tool for reading files.
        ScriptedModelAction::Read(path) => shell(&format!("cat {path}")),
        ScriptedModelAction::Write { path, text } => {
            let added: String = text.lines().map(|line| format!("+{line}\n")).collect();
            patch(format!("*** Add File: {path}\n{added}"))
        }
        ScriptedModelAction::Replace { path, old, new } => {
            patch(format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n"))
        }
        ScriptedModelAction::Call { tool, input } => match input {
            // A text is the input of a custom tool, which takes no JSON.
            Value::String(text) => custom(tool, text),
            arguments => function(tool, arguments),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_came_since_the_last_word() {
        let said = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
        let body = json!({
            "tools": [{ "name": SHELL_TOOL }],
            "input": [
                said("developer", "rules"),
                said("user", "the errand"),
                { "type": "function_call", "call_id": "c", "name": SHELL_TOOL, "arguments": "{}" },
                { "type": "function_call_output", "call_id": "c", "output": "blocked" },
            ],
        });
        let asked = parse_responses_api_request(&body).unwrap();
        assert!(
            asked.opening_text.contains("rules") && asked.opening_text.contains("the errand"),
            "{}",
            asked.opening_text
        );
        assert_eq!(asked.new_text, "blocked");
    }

    #[test]
    fn a_title_is_no_turn_of_the_task() {
        assert!(
            parse_responses_api_request(
                &json!({ "tools": [{ "name": "apply_patch" }], "input": [] })
            )
            .is_none()
        );
    }
}
