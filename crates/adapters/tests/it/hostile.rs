//! Whatever bytes come in: an answer, never a panic.

use checkrein_adapters::generic::trace;
use checkrein_adapters::{ALL, Adapter, AgentMessageParseError, AwaitedHookReplyForm};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::decisions::fixtures;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((".{0,6}", inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn knocks(adapter: &dyn Adapter, bytes: &[u8]) {
    let form = match adapter.parse_agent_hook_message(bytes, &|_| Some("7".to_owned())) {
        Ok(knock) => knock.reply_form,
        Err(AgentMessageParseError {
            reply_form: form, ..
        }) => form,
    };
    let reply = adapter.stance_as_hook_reply(form, checkrein_core::policy::Stance::Block, "why");
    assert!(
        form == AwaitedHookReplyForm::Silent
            || reply != checkrein_adapters::HookReply::no_opinion_hook_reply()
    );
}

/// What an agent without a person prints.
fn printed(adapter: &dyn Adapter, bytes: &[u8]) {
    let Some(headless) = adapter.headless_agent_if_supported() else {
        return;
    };
    let mut output = headless.agent_output_reader();
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = output.parse_agent_output_line(line);
    }
    let _ = (
        output.agent_output_summary_so_far(),
        headless.prior_conversation_usage(bytes),
    );
}

proptest! {
    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), cursor in ".{0,30}") {
        for adapter in ALL {
            knocks(*adapter, &bytes);
            let _ = adapter.transcript_token_usage(&bytes, &cursor);
            let _ = adapter.transcript_offset(&cursor);
            printed(*adapter, &bytes);
        }
        trace::read_generic_trace_items(&bytes).for_each(drop);
    }

    /// A row of an agent's output with anything at all in its fields.
    #[test]
    fn a_row_of_any_kind(
        kind in prop::sample::select(vec!["system", "assistant", "user", "result", "item.completed", "turn.completed", "turn.failed"]),
        field in prop::sample::select(vec!["message", "usage", "item", "error", "result", "model_usage_since_last_result", "terminal_reason"]),
        value in any_json(),
    ) {
        let row = serde_json::json!({ "type": kind, field: value });
        ALL.iter().for_each(|adapter| printed(*adapter, row.to_string().as_bytes()));
    }

    /// A recorded message with one field replaced by anything at all.
    #[test]
    fn a_field_of_any_kind(pick in any::<prop::sample::Index>(), field in any::<prop::sample::Index>(), value in any_json()) {
        for adapter in ALL {
            let fixtures = fixtures(adapter.agent_name());
            let (_, _, bytes) = pick.get(&fixtures);
            let mut message: Map<String, Value> = serde_json::from_slice(bytes).unwrap();
            let keys: Vec<String> = message.keys().cloned().collect();
            message.insert(field.get(&keys).clone(), value.clone());
            knocks(*adapter, Value::Object(message).to_string().as_bytes());
        }
    }

    /// A recorded message cut off anywhere, or with a byte changed.
    #[test]
    fn damaged(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for adapter in ALL {
            let fixtures = fixtures(adapter.agent_name());
            let (_, _, bytes) = pick.get(&fixtures);
            let at = at.index(bytes.len());
            knocks(*adapter, &bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] = byte;
            knocks(*adapter, &changed);
        }
    }

    #[test]
    fn trace_lines(value in any_json(), kind in "session|user|assistant|tool_call|tool_result|stop|end") {
        let mut line = Map::new();
        for field in ["id", "tool", "args", "result", "error", "text", "tokens", "usage", "label"] {
            line.insert(field.to_owned(), value.clone());
        }
        line.insert("type".to_owned(), Value::from(kind));
        trace::read_generic_trace_items(Value::Object(line).to_string().as_bytes()).for_each(drop);
    }

    /// Usage rows of any shape.
    #[test]
    fn rows(value in any_json(), output in any::<u64>()) {
        for text in [
            format!("{{\"type\":\"assistant\",\"message\":{{\"id\":\"a\",\"usage\":{{\"output_tokens\":{output},\"input_tokens\":{output},\"cache_read_input_tokens\":{output}}}}}}}\n"),
            format!("{{\"type\":\"assistant\",\"message\":{value}}}\n"),
            format!("{{\"type\":\"event_msg\",\"payload\":{{\"type\":\"token_count\",\"info\":{value}}}}}\n"),
        ] {
            for adapter in ALL {
                let _ = adapter.transcript_token_usage(text.as_bytes(), "");
            }
        }
    }
}

#[test]
fn nesting_without_bound_does_not_recurse() {
    for adapter in ALL {
        let name = if adapter.agent_name() == "generic" {
            "type"
        } else {
            "hook_event_name"
        };
        let event = adapter.hook_events()[0];
        let deep = "[".repeat(200_000);
        let bytes =
            format!("{{\"{name}\":\"{event}\",\"session_id\":\"s\",\"session\":\"s\",\"x\":{deep}");
        let error = adapter
            .parse_agent_hook_message(bytes.as_bytes(), &|_| None)
            .unwrap_err();
        assert!(error.event.is_some(), "{error:?}");
    }
}
