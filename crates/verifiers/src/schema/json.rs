//! Maps JSON pointers to lines (serde_json keeps no positions), and finds JSON that readers
//! interpret differently.

use std::collections::BTreeSet;

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::messages::shorten_to_one_line;

/// Significant digits up to which a number survives a double: programs write no more, except for
/// whole numbers of 64 bits.
const MAX_DIGITS: usize = 17;

/// A part that readers interpret differently.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JsonAmbiguity {
    pub(super) id: &'static str,
    pub(super) line: u32,
    pub(super) what: String,
}

/// A text that serde_json accepted, with positions.
pub(super) struct JsonLineMap<'a> {
    root: Option<Value<'a>>,
    /// Offset at which each line begins.
    lines: Vec<usize>,
}

/// Options that make the parser as strict as serde_json.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

impl<'a> JsonLineMap<'a> {
    pub(super) fn parse_json_with_lines(text: &'a str) -> Self {
        let read = parse_to_ast(text, &CollectOptions::default(), &STRICT);
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            // On failure there are no positions, and messages go without line numbers.
            root: read.ok().and_then(|read| read.value),
            lines: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// Returns the first part that two readers may interpret differently.
    pub(super) fn first_json_ambiguity(&self) -> Option<JsonAmbiguity> {
        let Some(root) = &self.root else {
            return Some(JsonAmbiguity {
                id: "json",
                line: 1,
                what: "is not read by every reader of JSON".to_owned(),
            });
        };
        let (id, at, what) = find_ambiguity_in_json(root)?;
        Some(JsonAmbiguity {
            id,
            line: self.line_number_at_offset(at),
            what,
        })
    }

    fn line_number_at_offset(&self, at: usize) -> u32 {
        let line = self.lines.partition_point(|start| *start <= at);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    /// Returns the line of what the pointer names, from 1; for a property, the line of its name.
    pub(super) fn line_at_json_pointer(&self, pointer: &str) -> Option<u32> {
        let mut value = self.root.as_ref()?;
        let mut at = value.range().start;
        // RFC 6901: `~1` stands for `/` and is unescaped before `~0`, which stands for `~`.
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            value = match value {
                Value::Object(object) => {
                    // Like serde_json, the last one of a name counts.
                    let named = |prop: &&ObjectProp<'_>| prop.name.as_str() == token;
                    let prop = object.properties.iter().rev().find(named)?;
                    at = prop.range.start;
                    &prop.value
                }
                Value::Array(array) => {
                    let element = array.elements.get(token.parse::<usize>().ok()?)?;
                    at = element.range().start;
                    element
                }
                _ => return None,
            };
        }
        Some(self.line_number_at_offset(at))
    }
}

/// Returns the id, the offset and the description of the first ambiguity.
fn find_ambiguity_in_json(value: &Value<'_>) -> Option<(&'static str, usize, String)> {
    match value {
        Value::Object(object) => {
            let mut names = BTreeSet::new();
            object.properties.iter().find_map(|prop| {
                let name = prop.name.as_str();
                if !names.insert(name) {
                    let what = format!("'{name}' is named twice in one object: keep one of them");
                    return Some(("twice", prop.range.start, what));
                }
                find_ambiguity_in_json(&prop.value)
            })
        }
        Value::Array(array) => array.elements.iter().find_map(find_ambiguity_in_json),
        Value::NumberLit(number) if number_loses_precision(number.value) => {
            let what = format!(
                "the number {} has more digits than can be compared: write it as a string",
                shorten_to_one_line(number.value, 60)
            );
            Some(("digits", number.range.start, what))
        }
        _ => None,
    }
}

/// Returns whether other numbers would be taken for the same value.
fn number_loses_precision(number: &str) -> bool {
    // Whole numbers of 64 bits are compared exactly.
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    let digits = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    // Zeros at either end are no significant digits.
    digits.trim_matches('0').len() > MAX_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_readers_take_for_two_things_is_in_doubt() {
        let check = |text: &str, expected: Option<(&str, u32)>| {
            let doubt = JsonLineMap::parse_json_with_lines(text).first_json_ambiguity();
            let found = doubt.as_ref().map(|doubt| (doubt.id, doubt.line));
            assert_eq!(found, expected, "{text}: {doubt:?}");
        };
        check(
            r#"{"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 1}]}"#,
            None,
        );
        check("{\"a\": 2,\n \"a\": 1}", Some(("twice", 2)));
        check(
            "[1,\n{\"b\": {\"a\": 2,\n \"\\u0061\": 1}}]",
            Some(("twice", 3)),
        );
        for exact in [
            "0",
            "-1",
            "18446744073709551615",
            "-9223372036854775808",
            "0.30000000000000004",
            "1e300",
            "1.7976931348623157e308",
            "100000000000000000000000",
        ] {
            check(exact, None);
        }
        for inexact in [
            "18446744073709551617",
            "123456789012345678901234567891",
            "-9223372036854775809",
            "0.123456789012345678",
        ] {
            check(inexact, Some(("digits", 1)));
        }
    }

    #[test]
    fn pointers_have_lines() {
        let text = "\n{\n \"a\": [\n  1,\n  {\"b/c\":\n   2}\n ],\n \"a~b\": {}, \"x\": 1,\n \"x\": 2\n}\n";
        let places = JsonLineMap::parse_json_with_lines(text);
        let check = |pointer: &str, line| {
            assert_eq!(places.line_at_json_pointer(pointer), line, "{pointer}")
        };
        check("", Some(2));
        check("/a", Some(3));
        check("/a/0", Some(4));
        check("/a/1", Some(5));
        check("/a/1/b~1c", Some(5));
        check("/a~0b", Some(8));
        check("/x", Some(9));
        check("/a/2", None);
        check("/none", None);
    }
}
