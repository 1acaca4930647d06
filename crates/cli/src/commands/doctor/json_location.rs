//! Finds the line of a value in a JSON text: `hooks.PreToolUse[0].hooks[1].timeout` → its line.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonPathStep {
    Key(String),
    Index(usize),
}

/// Parses a path like `hooks.Stop[0].matcher` into steps.
pub(super) fn parse_json_path(place: &str) -> Vec<JsonPathStep> {
    let mut steps = Vec::new();
    for part in place.split('.') {
        let mut pieces = part.split('[');
        if let Some(key) = pieces.next().filter(|key| !key.is_empty()) {
            steps.push(JsonPathStep::Key(key.to_owned()));
        }
        for piece in pieces {
            if let Ok(at) = piece.trim_end_matches(']').parse() {
                steps.push(JsonPathStep::Index(at));
            }
        }
    }
    steps
}

/// Returns the line, from 1, of the value at these steps, or of the nearest value around it.
pub(super) fn line_number_of_json_path(text: &str, steps: &[JsonPathStep]) -> usize {
    // The positions in the tree are those of the text without its byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let tree = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let root = tree.ok().and_then(|tree| tree.value);
    let (mut begin, mut value) = (0, root.as_ref());
    for step in steps {
        let (at, next) = match (step, value) {
            (JsonPathStep::Key(key), Some(Value::Object(object))) => match object.get(key) {
                Some(property) => (property.range().start, &property.value),
                None => break,
            },
            (JsonPathStep::Index(at), Some(Value::Array(array))) => match array.elements.get(*at) {
                Some(element) => (element.range().start, element),
                None => break,
            },
            _ => break,
        };
        // A step that leads nowhere keeps the place reached so far: a line nearby is better than
        // none.
        (begin, value) = (at, Some(next));
    }
    let before = text.as_bytes().get(..begin).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_its_line() {
        let text = "\u{feff}{\n  \"a\": [1, \"]\\\"\", {}],\n  \"hooks\": {\n    \"Stop\": [\n      {},\n      {\n        \"hooks\": [\n          { \"x\": 1 },\n          { \"type\": \"command\",\n            \"timeout\": \"30\" }\n        ]\n      }\n    ]\n  }\n}\n";
        for (place, line) in [
            ("a", 2),
            ("hooks", 3),
            ("hooks.Stop[0]", 5),
            ("hooks.Stop[1]", 6),
            ("hooks.Stop[1].hooks[1].timeout", 10),
            ("hooks.Stop[1].hooks[1].absent", 9),
            ("hooks.Absent[3]", 3),
        ] {
            assert_eq!(
                line_number_of_json_path(text, &parse_json_path(place)),
                line,
                "{place}"
            );
        }
        assert_eq!(
            line_number_of_json_path("not json", &parse_json_path("a.b")),
            1
        );
    }
}
