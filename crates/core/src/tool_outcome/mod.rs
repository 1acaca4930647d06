//! Finds in a tool's result what detectors of loops need to know beside its digest: the same result
//! at another time, a failure of the same kind, something that still runs, a tool that does not
//! exist.
//!
//! It is called where a result is read, before anything is stamped: the state machine gets digests and
//! flags, and no text of a result.

pub mod openclaw;
mod volatile_spans;

use std::borrow::Cow;

use crate::digest::Digest;
use crate::input::ToolOutcomeFacts;
use serde_json::Value;

use volatile_spans::{MaskedVolatileSpanKinds, mask_spans_of_kinds};

/// Bytes of a text that are searched, half of them at its beginning and half at its end. An error is
/// said at one of the two.
const SEARCHED_BYTES: usize = 32 * 1024;
/// Longer texts do not say that a tool does not exist.
const MAX_UNKNOWN_TOOL_BYTES: usize = 400;

/// Returns the facts of what came back.
pub fn tool_outcome_facts(tool: &str, result: &Value, failed: bool) -> ToolOutcomeFacts {
    let steady = mask_volatile_spans_in_json_texts(result, MaskedVolatileSpanKinds::Volatile)
        .map(|masked| Digest::hash_json(&masked).to_eight_byte_digest());
    let family = failed.then(|| {
        let masked =
            mask_volatile_spans_in_json_texts(result, MaskedVolatileSpanKinds::VolatileAndNames);
        Digest::hash_json(masked.as_ref().unwrap_or(result)).to_eight_byte_digest()
    });
    ToolOutcomeFacts {
        steady,
        family,
        running: result_says_still_running(result),
        unknown_tool: failed
            && first_text(result).is_some_and(|text| says_tool_is_unknown(text, tool)),
        empty: is_empty_result(result),
        openclaw: None,
    }
}

/// As [`tool_outcome_facts`], for a result that is the inside of a JSON string without escapes.
pub fn text_outcome_facts(tool: &str, text: &str, failed: bool) -> ToolOutcomeFacts {
    // Digests are of the JSON text, so that both ways give the same.
    let digest =
        |text: &str| Digest::hash_bytes(format!("\"{text}\"").as_bytes()).to_eight_byte_digest();
    let steady = match mask_volatile_spans_near_ends(text, MaskedVolatileSpanKinds::Volatile) {
        Cow::Borrowed(_) => None,
        Cow::Owned(masked) => Some(digest(&masked)),
    };
    ToolOutcomeFacts {
        steady,
        family: failed.then(|| {
            digest(&mask_volatile_spans_near_ends(
                text,
                MaskedVolatileSpanKinds::VolatileAndNames,
            ))
        }),
        running: says_running(text),
        unknown_tool: failed && says_tool_is_unknown(text, tool),
        empty: text.trim_ascii().is_empty(),
        openclaw: None,
    }
}

/// Returns the value with all texts masked; `None` if nothing was to be masked.
fn mask_volatile_spans_in_json_texts(
    value: &Value,
    kinds: MaskedVolatileSpanKinds,
) -> Option<Value> {
    match value {
        Value::String(text) => match mask_volatile_spans_near_ends(text, kinds) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => Some(Value::String(masked)),
        },
        Value::Array(items) => {
            let masked: Vec<Option<Value>> = items
                .iter()
                .map(|item| mask_volatile_spans_in_json_texts(item, kinds))
                .collect();
            masked.iter().any(Option::is_some).then(|| {
                let whole = masked.into_iter().zip(items);
                Value::Array(
                    whole
                        .map(|(masked, item)| masked.unwrap_or_else(|| item.clone()))
                        .collect(),
                )
            })
        }
        Value::Object(map) => {
            let changed: Vec<(&String, Value)> = map
                .iter()
                .filter_map(|(key, item)| {
                    Some((key, mask_volatile_spans_in_json_texts(item, kinds)?))
                })
                .collect();
            (!changed.is_empty()).then(|| {
                let mut whole = map.clone();
                for (key, masked) in changed {
                    whole.insert(key.clone(), masked);
                }
                Value::Object(whole)
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Masks the beginning and the end of a text. What lies between counts as it is.
fn mask_volatile_spans_near_ends(text: &str, kinds: MaskedVolatileSpanKinds) -> Cow<'_, str> {
    if text.len() <= SEARCHED_BYTES {
        return mask_spans_of_kinds(text, kinds);
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(SEARCHED_BYTES / 2));
    let (middle, tail) = rest.split_at(rest.ceil_char_boundary(rest.len() - SEARCHED_BYTES / 2));
    match (
        mask_spans_of_kinds(head, kinds),
        mask_spans_of_kinds(tail, kinds),
    ) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(text),
        (head, tail) => Cow::Owned([&*head, middle, &*tail].concat()),
    }
}

/// Returns whether what was asked about is still at work, by a status field or by the words of an
/// agent's own tool: Claude Code's `<status>running</status>`, Codex' "Process running with session
/// ID".
fn result_says_still_running(result: &Value) -> bool {
    match result {
        Value::String(text) => says_running(text),
        Value::Array(items) => items.iter().any(result_says_still_running),
        Value::Object(map) => {
            let status = ["status", "state"]
                .iter()
                .find_map(|key| map.get(*key)?.as_str());
            match status {
                Some(status) => matches!(
                    status.to_ascii_lowercase().as_str(),
                    "running" | "in_progress" | "pending" | "queued"
                ),
                None => ["text", "output", "content", "stdout"]
                    .iter()
                    .any(|key| map.get(*key).is_some_and(result_says_still_running)),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn says_running(text: &str) -> bool {
    let head = text
        .get(..text.floor_char_boundary(400))
        .unwrap_or_default();
    head.contains("<status>running</status>")
        || head.contains("Process running with session ID")
        || head.trim_ascii().eq_ignore_ascii_case("running")
}

/// Returns the first text in the value, which is where an error is said.
fn first_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => items.iter().find_map(first_text),
        Value::Object(map) => ["error", "message", "text", "content"]
            .iter()
            .find_map(|key| first_text(map.get(*key)?)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Returns whether an error says that there is no tool of that name: "unknown tool: x", "tool 'x'
/// not found", "No such tool available: x".
fn says_tool_is_unknown(error: &str, tool: &str) -> bool {
    if error.len() > MAX_UNKNOWN_TOOL_BYTES {
        return false;
    }
    let error = error.to_ascii_lowercase();
    // A tool that looks for tools may say that of another one.
    let name = tool
        .rsplit("__")
        .next()
        .unwrap_or(tool)
        .to_ascii_lowercase();
    if name.is_empty() || !error.contains(&name) {
        return false;
    }
    let after_tool = error.split("tool").skip(1);
    error.contains("unknown tool")
        || error.contains("no such tool")
        || after_tool.into_iter().any(|rest| {
            // The name, perhaps in quotes, stands between.
            let mut words = rest.split_ascii_whitespace();
            words.next().is_some() && {
                let said: Vec<&str> = words.take(3).collect();
                said.starts_with(&["not", "found"])
                    || said.starts_with(&["is", "not", "available"])
                    || said.starts_with(&["does", "not", "exist"])
            }
        })
}

fn is_empty_result(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim_ascii().is_empty(),
        Value::Array(items) => items.iter().all(is_empty_result),
        Value::Object(map) => map.iter().all(|(key, item)| {
            // A field beside the text that says how the text is to be shown is no answer.
            matches!(item, Value::Bool(_)) || key == "type" || is_empty_result(item)
        }),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_gives_the_same_facts_as_its_value() {
        for text in [
            "",
            "ok",
            "took 3 ms",
            "open 'a': no such file",
            "unknown tool: x",
        ] {
            for failed in [false, true] {
                assert_eq!(
                    text_outcome_facts("x", text, failed),
                    tool_outcome_facts("x", &json!(text), failed),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn times_do_not_change_a_result_and_numbers_do() {
        let steady = |value: Value| {
            let facts = tool_outcome_facts("x", &value, false);
            facts
                .steady
                .unwrap_or_else(|| Digest::hash_json(&value).to_eight_byte_digest())
        };
        assert_eq!(
            steady(json!({"out": "Wall time: 5.0 seconds\nChunk ID: ab12\nrunning"})),
            steady(json!({"out": "Wall time: 10.2 seconds\nChunk ID: ff90\nrunning"}))
        );
        assert_ne!(steady(json!("3 failed")), steady(json!("2 failed")));
        assert_ne!(
            steady(json!("main.c:12: error")),
            steady(json!("main.c:13: error"))
        );
    }

    #[test]
    fn failures_of_one_kind_are_one_family() {
        let family = |text: &str| tool_outcome_facts("x", &json!(text), true).family;
        assert_eq!(
            family("cannot open 'a/b.txt': no such file"),
            family("cannot open 'c.txt': no such file")
        );
        assert_ne!(family("exit code 1"), family("exit code 2"));
        assert_ne!(family("2 passed, 1 failed"), family("1 passed, 2 failed"));
        assert_eq!(tool_outcome_facts("x", &json!("x"), false).family, None);
    }

    #[test]
    fn unknown_tools_and_running_processes() {
        for (said, unknown) in [
            ("Unknown tool: x", true),
            ("Unknown tool: frobnicate", false),
            ("Error: No such tool available: x", true),
            ("tool 'x' not found", true),
            ("Tool x is not available", true),
            ("the tool reported: file not found", false),
            ("cannot find tools", false),
        ] {
            assert_eq!(
                tool_outcome_facts("mcp__a__x", &json!(said), true).unknown_tool,
                unknown,
                "{said}"
            );
        }
        assert!(
            tool_outcome_facts("x", &json!({"status": "running", "output": "…"}), false).running
        );
        assert!(tool_outcome_facts("x", &json!("<status>running</status>\n"), false).running);
        assert!(!tool_outcome_facts("x", &json!({"status": "completed"}), false).running);
        assert!(tool_outcome_facts("x", &json!({"stdout": "", "interrupted": false}), false).empty);
        assert!(!tool_outcome_facts("x", &json!({"stdout": "x"}), false).empty);
    }
}
