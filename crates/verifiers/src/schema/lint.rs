//! Whether a schema asks for anything at all, and which of its words nobody knows. A schema that
//! every document fits would be evidence of nothing; the standard ignores unknown keywords, so a
//! slip of the pen is one.

use std::cell::Cell;

use serde_json::{Map, Value};

/// Keywords that ask for something whatever stands behind them.
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
/// Keywords that ask for nothing where they say 0, nothing, or no.
const ASKING_UNLESS_EMPTY: &[&str] = &[
    "dependentRequired",
    "minItems",
    "minLength",
    "minProperties",
    "required",
    "uniqueItems",
];
/// Keywords of which each schema counts; those of lists and of names as well.
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
/// Keywords that say something of a schema, and ask for nothing of a document.
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
/// Keywords below which names are not keywords.
const NAMES: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose value means itself.
const LITERALS: &[&str] = &[
    "const",
    "default",
    "dependentRequired",
    "enum",
    "examples",
    "required",
];

/// References make a short schema unfold without end: more parts of one are not looked at.
const MAX_PARTS: u32 = 20_000;

/// Whether there could be a document that does not fit. Where that is not plain, there could.
pub(super) fn schema_can_reject(schema: &Value) -> bool {
    let asking = SchemaConstraintSearch {
        root: schema,
        alone: is_draft_7_or_older(schema),
        left: Cell::new(MAX_PARTS),
    };
    asking.subschema_can_reject(schema, &mut Vec::new())
}

/// Up to draft 7 nothing counts beside a reference.
fn is_draft_7_or_older(schema: &Value) -> bool {
    let draft = schema.get("$schema").and_then(Value::as_str);
    draft.is_some_and(|draft| draft.contains("/draft-0"))
}

struct SchemaConstraintSearch<'a> {
    root: &'a Value,
    alone: bool,
    left: Cell<u32>,
}

impl<'a> SchemaConstraintSearch<'a> {
    /// `through` are the references that lead here.
    fn subschema_can_reject(&self, schema: &'a Value, through: &mut Vec<&'a str>) -> bool {
        let Some(left) = self.left.get().checked_sub(1) else {
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
        if refers || (self.alone && keywords.contains_key("$ref")) {
            return refers;
        }
        keywords.iter().any(|(word, value)| {
            let word = word.as_str();
            match value {
                _ if ASKING.contains(&word) => true,
                value if ASKING_UNLESS_EMPTY.contains(&word) => !is_falsy_json_value(value),
                // One that asks for nothing is enough.
                Value::Array(any) if word == "anyOf" => any
                    .iter()
                    .all(|one| self.subschema_can_reject(one, through)),
                Value::Array(all) if BELOW.contains(&word) => all
                    .iter()
                    .any(|one| self.subschema_can_reject(one, through)),
                Value::Object(named) if BELOW.contains(&word) && NAMES.contains(&word) => named
                    .values()
                    .any(|one| self.subschema_can_reject(one, through) || !is_empty_list(one)),
                value if BELOW.contains(&word) => self.subschema_can_reject(value, through),
                _ => false,
            }
        })
    }

    fn schema_reference_can_reject(&self, to: &'a str, through: &mut Vec<&'a str>) -> bool {
        // What leads back here asks for nothing more.
        if through.contains(&to) {
            return false;
        }
        // A name, or a place that is written in another way, may lead to anything.
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

fn is_falsy_json_value(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::String(_) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(named) => named.is_empty(),
    }
}

/// Names that are required beside another one are a list.
fn is_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(names) => names.is_empty(),
        _ => true,
    }
}

/// Keywords that nobody knows and that are nearly one that everybody does: both, each once.
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
    // Of a short word hardly anything is left after two changes.
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
