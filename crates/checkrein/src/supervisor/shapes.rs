//! What was said of calls before, by their shape: tool, arguments whatever the order of their keys, goal.
//! Bounded: the oldest shape is forgotten first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

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
pub(super) fn shape(goal: &str, tool: &str, arguments: &Value) -> Option<Shape> {
    let mut bytes = Vec::with_capacity(256);
    for text in [goal, tool] {
        bytes.extend_from_slice(&text.len().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    write(arguments, &mut bytes)?;
    (bytes.len() <= MAX_BYTES).then(|| bytes.into())
}

/// JSON with its keys in order.
fn write(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    if out.len() > MAX_BYTES {
        return None;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            serde_json::to_writer(out, value).ok()
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write(item, out)?;
                out.push(b',');
            }
            out.push(b']');
            Some(())
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (key, item) in entries {
                serde_json::to_writer(&mut *out, key).ok()?;
                out.push(b':');
                write(item, out)?;
                out.push(b',');
            }
            out.push(b'}');
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_is_the_whole_call() {
        let of = |goal, tool, value: Value| shape(goal, tool, &value);
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
