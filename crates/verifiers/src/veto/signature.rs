//! Renders a schema of arguments in few words, like the parameters of a function. That is enough
//! for a reviewer, since calls are validated against the whole schema before.

use serde_json::{Map, Value};

/// Bytes of one enumeration's values; a longer one is shown by its type.
const MAX_WORDS: usize = 80;
/// Levels of nesting that are rendered.
const DEPTH: u32 = 2;
/// The type that is not written out.
const TEXT: &str = "string";

/// Renders `channel, level: integer, text?`: required parameters first, and no type means a string.
/// Empty if the schema names no properties.
pub(super) fn tool_parameter_signature(schema: &Value) -> String {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| format_tool_parameters(schema, properties, DEPTH))
        .unwrap_or_default()
}

fn format_tool_parameters(schema: &Value, properties: &Map<String, Value>, depth: u32) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    // Sorted here: the order of the map depends on features that other crates enable in serde_json.
    let mut named: Vec<_> = properties
        .iter()
        .map(|(name, schema)| (!is_required(name), name, schema))
        .collect();
    named.sort_by_key(|(optional, name, _)| (*optional, *name));
    let mut text = String::new();
    for (optional, name, schema) in named {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name);
        if optional {
            text.push('?');
        }
        let kind = schema_type_name(schema, depth);
        // Most are strings; leaving the type out saves tokens.
        if kind != TEXT {
            text.push_str(": ");
            text.push_str(&kind);
        }
    }
    text
}

fn schema_type_name(schema: &Value, depth: u32) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let word = |word: &Value| {
            word.as_str()
                .map_or_else(|| word.to_string(), str::to_owned)
        };
        let words: Vec<String> = words.iter().map(word).collect();
        let text = words.join("|");
        // A longer list falls through to the type.
        if text.len() <= MAX_WORDS {
            return text;
        }
    }
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join("|")
        }
        Some(Value::String(kind)) => match (kind.as_str(), depth.checked_sub(1)) {
            ("array", Some(depth)) => match schema.get("items") {
                Some(items) => format!("{}[]", self::schema_type_name(items, depth)),
                None => "array".to_owned(),
            },
            ("object", Some(depth)) => match schema.get("properties").and_then(Value::as_object) {
                Some(properties) => {
                    format!("{{{}}}", format_tool_parameters(schema, properties, depth))
                }
                None => "object".to_owned(),
            },
            (kind, _) => kind.to_owned(),
        },
        // Includes `$ref` and combinations, which are not resolved here.
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_in_few_words() {
        for (schema, expected) in [
            (json!({}), ""),
            (json!({"type": "object"}), ""),
            (
                json!({
                    "properties": {
                        "channel": {"type": "string"},
                        "to": {"type": "array", "items": {"type": "string"}},
                        "level": {"enum": ["low", "high"]},
                        "at": {"type": ["string", "null"]},
                        "more": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"x": {}}}}},
                        "other": {"$ref": "#/$defs/x"},
                    },
                    "required": ["channel", "to"],
                }),
                "channel, to: string[], at?: string|null, level?: low|high, more?: {deep?: {x?: any}}, other?: any",
            ),
            (
                json!({"properties": {"x": {"type": "string", "enum": ["y".repeat(100)]}}}),
                "x?",
            ),
        ] {
            assert_eq!(tool_parameter_signature(&schema), expected);
        }
    }
}
