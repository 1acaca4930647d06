//! Checks whether a schema can reject anything at all, and finds misspelt keywords. A schema that
//! every document satisfies would be evidence of nothing. The JSON Schema standard ignores unknown
//! keywords, so a typo can make a schema empty.

use std::cell::Cell;

use serde_json::{Map, Value};

/// Keywords that constrain whatever their value is.
const ASKING: &[&str] = &[
    "const",
    "contains",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "type",
];
/// Keywords that constrain nothing if their value is 0, empty or false.
const ASKING_UNLESS_EMPTY: &[&str] = &[
    "dependentRequired",
    "minItems",
    "minLength",
    "minProperties",
    "required",
    "uniqueItems",
];
/// Keywords whose subschemas all apply, in lists and by name as well.
const BELOW: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "dependencies",
    "dependentSchemas",
    "else",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that describe a schema and constrain nothing by themselves.
const SAYING: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "anyOf",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "id",
    "if",
    "minContains",
    "readOnly",
    "title",
    "writeOnly",
];
/// Keywords whose value maps names, which are not keywords, to schemas.
const NAMES: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose value is a literal.
const LITERALS: &[&str] = &[
    "const",
    "default",
    "dependentRequired",
    "enum",
    "examples",
    "required",
];

/// Subschemas that are looked at: references can make a short schema unfold without end.
const MAX_PARTS: u32 = 20_000;

/// Returns whether a document could fail the schema. In doubt the answer is yes.
pub(super) fn schema_can_reject(schema: &Value) -> bool {
    let asking = TrivialSchemaDetector {
        root: schema,
        alone: is_draft_7_or_older(schema),
        left: Cell::new(MAX_PARTS),
    };
    asking.subschema_can_reject(schema, &mut Vec::new())
}

/// Returns whether the schema is of draft 7 or older, where keywords beside a `$ref` are ignored.
fn is_draft_7_or_older(schema: &Value) -> bool {
    let draft = schema.get("$schema").and_then(Value::as_str);
    draft.is_some_and(|draft| draft.contains("/draft-0"))
}

struct TrivialSchemaDetector<'a> {
    root: &'a Value,
    alone: bool,
    left: Cell<u32>,
}

impl<'a> TrivialSchemaDetector<'a> {
    /// `through` holds the references that lead here.
    fn subschema_can_reject(&self, schema: &'a Value, through: &mut Vec<&'a str>) -> bool {
        let Some(left) = self.left.get().checked_sub(1) else {
            // Too large to tell: a schema of this size is not taken for an empty one.
            return true;
        };
        self.left.set(left);
        let keywords = match schema {
            Value::Bool(all) => return !all,
            Value::Object(keywords) => keywords,
            _ => return false,
        };
        let refers = ["$ref", "$dynamicRef", "$recursiveRef"]
            .iter()
            .filter_map(|word| keywords.get(*word)?.as_str())
            .any(|to| self.schema_reference_can_reject(to, through));
        // In draft 7 and older the reference alone decides.
        if refers || (self.alone && keywords.contains_key("$ref")) {
            return refers;
        }
        keywords.iter().any(|(word, value)| {
            let word = word.as_str();
            match value {
                _ if ASKING.contains(&word) => true,
                value if ASKING_UNLESS_EMPTY.contains(&word) => {
                    !is_falsy_json_except_strings(value)
                }
                // One alternative that accepts everything makes the whole accept everything.
                Value::Array(any) if word == "anyOf" => any
                    .iter()
                    .all(|one| self.subschema_can_reject(one, through)),
                Value::Array(all) if BELOW.contains(&word) => all
                    .iter()
                    .any(|one| self.subschema_can_reject(one, through)),
                Value::Object(named) if BELOW.contains(&word) && NAMES.contains(&word) => {
                    named.values().any(|one| {
                        self.subschema_can_reject(one, through) || !is_empty_list_or_not_list(one)
                    })
                }
                value if BELOW.contains(&word) => self.subschema_can_reject(value, through),
                _ => false,
            }
        })
    }

    fn schema_reference_can_reject(&self, to: &'a str, through: &mut Vec<&'a str>) -> bool {
        // A reference back to where it came from adds no constraint.
        if through.contains(&to) {
            return false;
        }
        // An anchor or an escaped pointer is not resolved here and may lead to anything.
        let Some(there) = to.strip_prefix('#').filter(|place| !place.contains('%')) else {
            return true;
        };
        let Some(there) = self.root.pointer(there) else {
            return true;
        };
        through.push(to);
        let asks = self.subschema_can_reject(there, through);
        through.pop();
        asks
    }
}

fn is_falsy_json_except_strings(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::String(_) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(named) => named.is_empty(),
    }
}

/// In `dependencies` a list of names constrains unless it is empty.
fn is_empty_list_or_not_list(value: &Value) -> bool {
    match value {
        Value::Array(names) => names.is_empty(),
        _ => true,
    }
}

/// Returns unknown keywords that are nearly a known one, each with that one, once.
pub(super) fn misspelled_schema_keywords(schema: &Value) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    collect_misspelt_schema_keywords(schema, &mut found);
    found.sort();
    found.dedup();
    found
}

fn collect_misspelt_schema_keywords(schema: &Value, found: &mut Vec<(String, &'static str)>) {
    let keywords: &Map<String, Value> = match schema {
        Value::Object(keywords) => keywords,
        Value::Array(all) => {
            return all
                .iter()
                .for_each(|one| collect_misspelt_schema_keywords(one, found));
        }
        _ => return,
    };
    for (word, value) in keywords {
        if let Some(known) = nearest_schema_keyword(word) {
            found.push((word.clone(), known));
        }
        match value {
            _ if LITERALS.contains(&word.as_str()) => {}
            // Names below `properties` and the like are the author's own and are not checked.
            Value::Object(named) if NAMES.contains(&word.as_str()) => {
                named
                    .values()
                    .for_each(|one| collect_misspelt_schema_keywords(one, found));
            }
            value => collect_misspelt_schema_keywords(value, found),
        }
    }
}

fn nearest_schema_keyword(word: &str) -> Option<&'static str> {
    let known = [ASKING, ASKING_UNLESS_EMPTY, BELOW, SAYING].concat();
    if known.contains(&word) {
        return None;
    }
    let near = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(known, word), known));
    // At most a third of the letters may differ: of a short word little is left after two changes.
    let near = near.filter(|(distance, known)| *distance <= 2 && 3 * distance <= known.len());
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_every_document_fits_asks_for_nothing() {
        for schema in [
            json!({}),
            json!(true),
            json!({"$ref": "#"}),
            json!({"requierd": ["a"]}),
            json!({"title": "t", "description": "d", "default": {"type": "object"}}),
            json!({"required": [], "minItems": 0, "uniqueItems": false}),
            json!({"properties": {"a": {}, "type": true}}),
            json!({"allOf": [{}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"items": {"$ref": "#"}}}}),
            json!({"anyOf": [{"type": "object"}, {}]}),
            json!({"$defs": {"a": {"type": "string"}}}),
            json!({"if": {"type": "string"}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "type": "object", "definitions": {"a": {}}}),
        ] {
            assert!(!schema_can_reject(&schema), "{schema}");
        }
        for schema in [
            json!(false),
            json!({"type": "object"}),
            json!({"properties": {"a": {"minLength": 1}}}),
            json!({"additionalProperties": false}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"required": ["a"]}}}),
            json!({"$ref": "#named", "$defs": {"a": {"$anchor": "named"}}}),
            json!({"dependencies": {"a": ["b"]}}),
            json!({"anyOf": [{"type": "object"}, {"minItems": 1}]}),
            json!({"if": {"type": "string"}, "then": {"minLength": 2}}),
            json!({"not": {}}),
        ] {
            assert!(schema_can_reject(&schema), "{schema}");
        }
    }

    #[test]
    fn slips_are_known_by_what_they_nearly_are() {
        let schema = json!({
            "requierd": ["a"],
            "properties": {"requird": {"typ": "string", "minLenght": 3}, "tpye": {}},
            "enum": [{"requierd": 1}],
            "x-mine": 1,
            "names": 1,
        });
        let found = misspelled_schema_keywords(&schema);
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), *b)).collect();
        let expected = [
            ("minLenght", "minLength"),
            ("requierd", "required"),
            ("typ", "type"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            misspelled_schema_keywords(&json!({"type": "object", "$comment": "x"})),
            []
        );
    }
}
