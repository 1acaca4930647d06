//! On which line a JSON pointer stands: serde_json keeps no places.

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// A text that serde_json has read, with places.
pub(super) struct Places<'a> {
    root: Option<Value<'a>>,
    /// Where each line begins.
    lines: Vec<usize>,
}

/// As strict as serde_json.
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

impl<'a> Places<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let read = parse_to_ast(text, &CollectOptions::default(), &STRICT);
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            // Without places there are only fewer line numbers.
            root: read.ok().and_then(|read| read.value),
            lines: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// The line of what the pointer names, from 1: a property's is that of its name.
    pub(super) fn line(&self, pointer: &str) -> Option<u32> {
        let mut value = self.root.as_ref()?;
        let mut at = value.range().start;
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
        let line = self.lines.partition_point(|start| *start <= at);
        u32::try_from(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_have_lines() {
        let text = "\n{\n \"a\": [\n  1,\n  {\"b/c\":\n   2}\n ],\n \"a~b\": {}, \"x\": 1,\n \"x\": 2\n}\n";
        let places = Places::of(text);
        let check = |pointer: &str, line| assert_eq!(places.line(pointer), line, "{pointer}");
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
