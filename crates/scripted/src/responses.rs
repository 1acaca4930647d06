//! The OpenAI Responses API, as far as Codex uses it: what a request says, and a response
//! as a stream of events.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::script::{Act, Asked, texts};

/// The shell, which every task is given and a side request is not.
const SHELL: &str = "exec_command";

/// `None`: a side request (the terminal UI asks for a title).
pub(crate) fn read(body: &Value) -> Option<Asked> {
    let tools: Vec<String> = list(body, "tools")
        .iter()
        .filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned))
        .collect();
    if !tools.iter().any(|tool| tool == SHELL) {
        return None;
    }
    let items = list(body, "input");
    let spoken = items.iter().rposition(by_the_model).map_or(0, |at| at + 1);
    let first = items.iter().position(by_the_model).unwrap_or(items.len());
    let content = |items: &[Value]| items.iter().map(said).collect::<Vec<_>>().join("\n");
    Some(Asked {
        number: 0,
        opening: content(items.get(..first).unwrap_or_default()),
        whole: content(items),
        fresh: content(items.get(spoken..).unwrap_or_default()),
        tools,
    })
}

fn list<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    body.get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Results of calls and messages of others are not.
fn by_the_model(item: &Value) -> bool {
    match item.get("type").and_then(Value::as_str) {
        Some("function_call" | "custom_tool_call" | "reasoning") => true,
        _ => item.get("role").and_then(Value::as_str) == Some("assistant"),
    }
}

fn said(item: &Value) -> String {
    ["content", "output"]
        .iter()
        .filter_map(|field| item.get(field))
        .map(texts)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The n-th response. `tokens` is what it claims to have cost. True: as a stream.
pub(crate) fn reply(body: &Value, number: usize, acts: &[Act], tokens: u64) -> (bool, String) {
    let items: Vec<Value> = acts
        .iter()
        .enumerate()
        .map(|(at, act)| item(act, &format!("{number}_{at}")))
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
        event("response.output_item.added", "item", item, Some(index));
        event("response.output_item.done", "item", item, Some(index));
    }
    event("response.completed", "response", &done, None);
    (true, out)
}

fn item(act: &Act, id: &str) -> Value {
    let function = |name: &str, arguments: &Value| {
        let mut call = json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "status": "completed",
            "name": name, "arguments": arguments.to_string(),
        });
        // Codex keeps the tools of each server in a namespace of their own.
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
    let shell = |command: &str| function(SHELL, &json!({ "cmd": command }));
    let patch = |text: String| {
        custom(
            "apply_patch",
            &format!("*** Begin Patch\n{text}*** End Patch\n"),
        )
    };
    match act {
        Act::Say(text) | Act::Delegate(text) => json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Act::Shell(command) => shell(command),
        Act::Read(path) => shell(&format!("cat {path}")),
        Act::Write { path, text } => {
            let added: String = text.lines().map(|line| format!("+{line}\n")).collect();
            patch(format!("*** Add File: {path}\n{added}"))
        }
        Act::Replace { path, old, new } => {
            patch(format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n"))
        }
        Act::Call { tool, input } => match input {
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
            "tools": [{ "name": SHELL }],
            "input": [
                said("developer", "rules"),
                said("user", "the errand"),
                { "type": "function_call", "call_id": "c", "name": SHELL, "arguments": "{}" },
                { "type": "function_call_output", "call_id": "c", "output": "blocked" },
            ],
        });
        let asked = read(&body).unwrap();
        assert!(
            asked.opening.contains("rules") && asked.opening.contains("the errand"),
            "{}",
            asked.opening
        );
        assert_eq!(asked.fresh, "blocked");
    }

    #[test]
    fn a_title_is_no_turn_of_the_task() {
        assert!(read(&json!({ "tools": [{ "name": "apply_patch" }], "input": [] })).is_none());
    }
}
