//! The Anthropic Messages API, as far as Claude Code uses it: what a request says, and a
//! response as a stream of events.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::script::{Act, Asked, texts};

/// `None`: a side request, which offers no tools (a title, a summary).
pub(super) fn read(body: &Value) -> Option<Asked> {
    let tools: Vec<String> = list(body, "tools").iter().filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned)).collect();
    if tools.is_empty() {
        return None;
    }
    let messages = list(body, "messages");
    let spoken = messages.iter().rposition(|message| role(message) == "assistant").map_or(0, |at| at + 1);
    let first = messages.iter().position(|message| role(message) == "assistant").unwrap_or(messages.len());
    let content = |messages: &[Value]| messages.iter().filter_map(|message| message.get("content")).map(texts).collect::<Vec<_>>().join("\n");
    Some(Asked {
        number: 0,
        opening: content(messages.get(..first).unwrap_or_default()),
        whole: content(messages),
        fresh: content(messages.get(spoken..).unwrap_or_default()),
        tools,
    })
}

fn list<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    body.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// The n-th response. `tokens` is what it claims to have cost.
pub(super) fn reply(body: &Value, number: usize, acts: &[Act], tokens: u64, repo: &Path) -> (bool, String) {
    let blocks: Vec<Value> = acts.iter().enumerate().map(|(at, act)| block(act, &format!("toolu_{number}_{at}"), repo)).collect();
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let usage = json!({
        "input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": tokens, "service_tier": "standard",
    });
    let message = json!({
        "id": format!("msg_scripted_{number}"), "type": "message", "role": "assistant",
        "model": body.get("model"), "content": blocks, "stop_sequence": null,
        "stop_reason": if calls { "tool_use" } else { "end_turn" }, "usage": usage,
    });
    if body.get("stream").and_then(Value::as_bool) == Some(true) {
        (true, stream(&message, &blocks, &usage))
    } else {
        (false, message.to_string())
    }
}

fn block(act: &Act, id: &str, repo: &Path) -> Value {
    let whole = |path: &str| repo.join(path).display().to_string();
    let (name, input) = match act {
        Act::Say(text) => return json!({ "type": "text", "text": text }),
        Act::Shell(command) => ("Bash", json!({ "command": command, "description": "scripted" })),
        Act::Write { path, text } => ("Write", json!({ "file_path": whole(path), "content": text })),
        Act::Replace { path, old, new } => ("Edit", json!({ "file_path": whole(path), "old_string": old, "new_string": new })),
        Act::Read(path) => ("Read", json!({ "file_path": whole(path) })),
        Act::Delegate(prompt) => {
            // In the background, which is the default, the main stop may come before its end.
            let input = json!({
                "description": "scripted", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": false,
            });
            ("Agent", input)
        }
    };
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

/// The count of output tokens is known at the end only, as with the real service.
fn stream(message: &Value, blocks: &[Value], usage: &Value) -> String {
    let mut out = String::new();
    let mut event = |value: Value| {
        let _ = write!(out, "event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default());
    };
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    event(json!({ "type": "message_start", "message": start }));
    for (index, block) in blocks.iter().enumerate() {
        let (opening, delta) = match block["type"].as_str() {
            Some("tool_use") => {
                let mut opening = block.clone();
                opening["input"] = json!({});
                (opening, json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }))
            }
            _ => (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": block["text"] })),
        };
        event(json!({ "type": "content_block_start", "index": index, "content_block": opening }));
        event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        event(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": message["stop_reason"], "stop_sequence": null });
    event(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    event(json!({ "type": "message_stop" }));
    out
}
