//! What two runs of one story have alike: fields, types, and words that are names. No number, no
//! path, no digest, no sentence.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// A value with all that differs from run to run taken out.
pub(super) fn of(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(_) => json!(0),
        Value::String(text) => match serde_json::from_str(text) {
            // Rules and definitions are documents in a document.
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => json!({ "in text": of(&inner) }),
            _ if is_name(text) => value.clone(),
            _ => json!("a text"),
        },
        Value::Array(values) => values.iter().map(of).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), of(value)));
            Value::Object(fields.collect())
        }
    }
}

/// The same of bytes that may be a document.
pub(super) fn of_bytes(bytes: &[u8]) -> String {
    let value = serde_json::from_slice(bytes);
    value.map_or_else(|_| "bytes".to_owned(), |value| of(&value).to_string())
}

/// A tag, a cause, a verdict; the name and version of a document.
fn is_name(text: &str) -> bool {
    let schema = text.strip_prefix("checkrein/").unwrap_or_default();
    let is_schema = schema
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/-".contains(c));
    let is_tag = text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    is_tag || !schema.is_empty() && is_schema
}

/// What of a recorded document is not in today's: fields that went, fields of another type, names
/// that nobody says any more. Fields and names that are new are no fault.
pub(super) fn lost(recorded: &Value, today: &Value) -> Vec<String> {
    let (recorded, today) = (Fields::of(recorded), Fields::of(today));
    let mut lost = Vec::new();
    for (path, before) in &recorded.0 {
        let Some(now) = today.0.get(path) else {
            lost.push(format!("{path} is gone"));
            continue;
        };
        for kind in now.kinds.difference(&before.kinds) {
            let was: Vec<&str> = before.kinds.iter().copied().collect();
            lost.push(format!("{path} is {kind} and was {}", was.join(" or ")));
        }
        for name in before.names.difference(&now.names) {
            lost.push(format!("{path} is never \"{name}\""));
        }
    }
    lost
}

/// By path; elements of one list are one.
#[derive(Default)]
struct Fields(BTreeMap<String, Field>);

#[derive(Default)]
struct Field {
    kinds: BTreeSet<&'static str>,
    names: BTreeSet<String>,
}

impl Fields {
    fn of(value: &Value) -> Self {
        let mut fields = Self::default();
        fields.add("", value);
        fields
    }

    fn add(&mut self, path: &str, value: &Value) {
        let field = self.0.entry(path.to_owned()).or_default();
        field.kinds.insert(match value {
            Value::Null => "null",
            Value::Bool(_) => "a bool",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        });
        match value {
            Value::String(text) if !text.is_empty() && is_name(text) => {
                field.names.insert(text.clone());
            }
            Value::Array(values) => {
                let path = format!("{path}[]");
                values.iter().for_each(|value| self.add(&path, value));
            }
            Value::Object(inner) => {
                for (key, value) in inner {
                    self.add(&format!("{path}.{key}"), value);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn lost_keys_types_and_values_of_a_document_are_named() {
    let recorded =
        json!({ "verdict": "pass", "n": 1, "list": [{ "a": 1 }, { "a": null, "b": true }] });
    let lost = |today| lost(&recorded, &today);
    let more =
        json!({ "verdict": "pass", "n": 7, "new": "x", "list": [{ "a": 5, "b": true, "c": 1 }] });
    assert_eq!(lost(more), [""; 0]);
    let less = json!({ "verdict": "passed", "n": "1", "list": [{ "a": 5 }] });
    let told = [
        ".list[].b is gone",
        ".n is a text and was a number",
        ".verdict is never \"pass\"",
    ];
    assert_eq!(lost(less), told);
}
