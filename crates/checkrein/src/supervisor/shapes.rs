//! What was said of calls before, by their shape: tool, arguments whatever the order of their keys, goal.
//! Bounded: the oldest shape is forgotten first.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use checkrein_runtime::witness;
use serde_json::Value;

use super::PreToolDecision;

/// So many shapes are remembered.
const MAX_SHAPES: usize = 256;
/// A longer shape is not.
const MAX_BYTES: usize = 16 * 1024;

/// A call's shape. The whole of it and no hash: nobody finds two calls that share one.
pub(super) type Shape = Arc<[u8]>;

#[derive(Debug, Default)]
pub(super) struct Shapes {
    said: HashMap<Shape, PreToolDecision>,
    order: VecDeque<Shape>,
}

impl Shapes {
    pub(super) fn get(&self, shape: &Shape) -> Option<PreToolDecision> {
        self.said.get(shape).cloned()
    }

    pub(super) fn insert(&mut self, shape: Shape, decision: PreToolDecision) {
        if self.said.insert(shape.clone(), decision).is_some() {
            return;
        }
        self.order.push_back(shape);
        if self.order.len() > MAX_SHAPES
            && let Some(oldest) = self.order.pop_front()
        {
            self.said.remove(&oldest);
        }
    }
}

/// The shape of a call; `None` if it is too long to be remembered.
pub(super) fn shape(goal: &str, tool: &str, arguments: &str) -> Option<Shape> {
    let length = goal.len() + tool.len() + arguments.len() + 16;
    if length > MAX_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(length);
    for text in [goal, tool] {
        bytes.extend_from_slice(&text.len().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(arguments.as_bytes());
    Some(bytes.into())
}

/// Arguments as JSON, the keys of every object in order.
pub(super) fn canonical(arguments: &Value) -> String {
    let mut out = String::with_capacity(256);
    write(arguments, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Value::Number(_) => {
            // Writing to a string does not fail.
            let _ = fmt::Write::write_fmt(out, format_args!("{value}"));
        }
        Value::String(text) => witness::string(out, text, usize::MAX),
        Value::Array(items) => {
            out.push('[');
            for (nth, item) in items.iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (nth, (key, item)) in entries.into_iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                witness::string(out, key, usize::MAX);
                out.push(':');
                write(item, out);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_is_the_whole_call() {
        let of = |goal, tool, value: Value| shape(goal, tool, &canonical(&value));
        let nested = json!({"b": {"d": "x\n\"", "c": [1, null]}, "a": -1.5});
        assert_eq!(
            canonical(&nested),
            r#"{"a":-1.5,"b":{"c":[1,null],"d":"x\n\""}}"#
        );
        let call = of("g", "t", json!({"a": 1, "b": {"c": [], "d": "x"}}));
        assert!(call.is_some());
        assert_eq!(
            of("g", "t", json!({"b": {"d": "x", "c": []}, "a": 1})),
            call
        );
        for other in [
            of("h", "t", json!({"a": 1, "b": {"c": [], "d": "x"}})),
            of("g", "u", json!({"a": 1, "b": {"c": [], "d": "x"}})),
            of("g", "t", json!({"a": "1", "b": {"c": [], "d": "x"}})),
            of("g", "t", json!({"a": 1, "b": {"c": [0], "d": "x"}})),
            of("g", "t", json!({"a": 1})),
        ] {
            assert_ne!(other, call);
        }
        assert_ne!(of("ab", "c", json!({})), of("a", "bc", json!({})));
        assert_eq!(of("g", "t", json!("x".repeat(MAX_BYTES))), None);
    }
}
