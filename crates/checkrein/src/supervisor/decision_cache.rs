//! Caches decisions by the shape of a call: its tool, its goal, and its arguments regardless of the
//! order of their keys. The cache is bounded; the oldest shape is dropped first.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use checkrein_runtime::reviewer;
use serde_json::Value;

use super::PreToolDecision;

/// Most shapes in the cache.
const MAX_ENTRIES: usize = 256;
/// Longest shape that is cached.
const MAX_KEY_BYTES: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct PreToolDecisionCache {
    decisions: HashMap<u64, Box<CachedPreToolDecision>, BuildHasherDefault<IdentityHasher>>,
    /// Oldest first.
    order: VecDeque<u64>,
    /// Random hash keys, so that an agent cannot construct arguments that collide.
    keys: RandomState,
}

/// A call's shape: arguments, tool and goal in one text, where the first two end, and a hash. The
/// whole text is kept and compared, so that no other call passes for this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallDecisionCacheKey {
    hash: u64,
    text: String,
    ends: (usize, usize),
}

#[derive(Debug)]
struct CachedPreToolDecision {
    key: CallDecisionCacheKey,
    decision: PreToolDecision,
}

impl CallDecisionCacheKey {
    /// Returns the arguments, as [`canonical_json`] writes them.
    pub(super) fn canonical_arguments(&self) -> &str {
        self.text.get(..self.ends.0).unwrap_or_default()
    }
}

impl PreToolDecisionCache {
    /// The shape of a call with such arguments, as [`canonical_json`] writes them.
    pub(super) fn identical_call_key(
        &self,
        goal: &str,
        tool: &str,
        arguments: String,
    ) -> CallDecisionCacheKey {
        let mut text = arguments;
        let arguments = text.len();
        text.push_str(tool);
        let ends = (arguments, text.len());
        text.push_str(goal);
        CallDecisionCacheKey {
            hash: self.keys.hash_one(text.as_bytes()),
            text,
            ends,
        }
    }

    /// Returns the cached decision about a call of this shape.
    pub(super) fn cached_call_decision(
        &self,
        shape: &CallDecisionCacheKey,
    ) -> Option<&PreToolDecision> {
        let kept = self.decisions.get(&shape.hash)?;
        // Equal hashes are not enough: on a collision a vetoed call could get another call's
        // `Allow`.
        (kept.key == *shape).then_some(&kept.decision)
    }

    pub(super) fn cache_call_decision(
        &mut self,
        shape: CallDecisionCacheKey,
        said: PreToolDecision,
    ) {
        if shape.text.len() > MAX_KEY_BYTES {
            return;
        }
        let hash = shape.hash;
        let kept = Box::new(CachedPreToolDecision {
            key: shape,
            decision: said,
        });
        // The hash is in `order` already. A second entry would evict the shape too early.
        if self.decisions.insert(hash, kept).is_some() {
            return;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_ENTRIES
            && let Some(oldest) = self.order.pop_front()
        {
            self.decisions.remove(&oldest);
        }
    }
}

/// A hasher for keys that are hashes already.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Only numbers are written.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Arguments as JSON, the keys of every object in order.
pub(super) fn canonical_json(arguments: &Value) -> String {
    let mut out = String::with_capacity(256);
    write_canonical_json(arguments, &mut out);
    out
}

fn write_canonical_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Value::Number(number) => match number.as_u64() {
            Some(number) => write_digits(number, out),
            None => {
                // Writing to a string does not fail.
                let _ = fmt::Write::write_fmt(out, format_args!("{value}"));
            }
        },
        Value::String(text) => reviewer::push_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (nth, item) in items.iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                write_canonical_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            // A model may send the same object with its keys in another order; it is the same call.
            if !entries.is_sorted_by_key(|(key, _)| *key) {
                entries.sort_unstable_by_key(|(key, _)| *key);
            }
            out.push('{');
            for (nth, (key, item)) in entries.into_iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                reviewer::push_json_string(out, key);
                out.push(':');
                write_canonical_json(item, out);
            }
            out.push('}');
        }
    }
}

/// Writes a number in decimal. Most numbers are short, and the general formatter takes longer than
/// everything else here.
fn write_digits(number: u64, out: &mut String) {
    if number >= 10 {
        write_digits(number / 10, out);
    }
    // One digit of ten: it is a byte.
    out.push(char::from(b'0' + (number % 10) as u8));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::supervisor::UnjudgedReason;

    #[test]
    fn arguments_are_the_same_whatever_the_order_of_their_keys() {
        let nested = json!({"b": {"d": "x\n\"", "c": [1, null]}, "a": -1.5});
        assert_eq!(
            canonical_json(&nested),
            r#"{"a":-1.5,"b":{"c":[1,null],"d":"x\n\""}}"#
        );
        for number in [0, 7, 10, 90_210, u64::MAX] {
            assert_eq!(canonical_json(&json!(number)), number.to_string());
        }
        let other: Value =
            serde_json::from_str(r#"{"a":-1.5,"b":{"c":[1,null],"d":"x\n\""}}"#).unwrap();
        assert_eq!(canonical_json(&other), canonical_json(&nested));
    }

    #[test]
    fn a_shape_is_the_whole_call() {
        let mut shapes = PreToolDecisionCache::default();
        let said = PreToolDecision::unjudged_tool_call_decision(UnjudgedReason::Disabled);
        let call = shapes.identical_call_key("goal", "tool", "{}".to_owned());
        assert_eq!(call.canonical_arguments(), "{}");
        shapes.cache_call_decision(call.clone(), said.clone());
        assert_eq!(shapes.cached_call_decision(&call), Some(&said));
        for (goal, tool, arguments) in [
            ("other", "tool", "{}"),
            ("goal", "other", "{}"),
            ("goal", "tool", "[]"),
            ("lgoal", "too", "{}"),
            ("oal", "toolg", "{}"),
        ] {
            let other = shapes.identical_call_key(goal, tool, arguments.to_owned());
            assert_eq!(shapes.cached_call_decision(&other), None);
            // One that has the same hash.
            let forged = CallDecisionCacheKey {
                hash: call.hash,
                ..other
            };
            assert_eq!(shapes.cached_call_decision(&forged), None);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut shapes = PreToolDecisionCache::default();
        let said = PreToolDecision::unjudged_tool_call_decision(UnjudgedReason::Disabled);
        for number in 0..1_000 {
            shapes.cache_call_decision(
                shapes.identical_call_key("", "tool", number.to_string()),
                said.clone(),
            );
        }
        assert_eq!(
            (shapes.decisions.len(), shapes.order.len()),
            (MAX_ENTRIES, MAX_ENTRIES)
        );
        let known = |text: &str| {
            shapes.cached_call_decision(&shapes.identical_call_key("", "tool", text.to_owned()))
        };
        assert!(known("999").is_some() && known("743").is_none());
        let long = shapes.identical_call_key("", "tool", "x".repeat(MAX_KEY_BYTES));
        shapes.cache_call_decision(long.clone(), said);
        assert!(shapes.cached_call_decision(&long).is_none());
    }
}
