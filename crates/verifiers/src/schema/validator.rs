//! Compiles a schema: any draft, `format` asserted, nothing fetched and no file opened, every bound
//! that the library offers set.

use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::budget::{self, ValidationBudget, ValidationStepCountingKeyword};
use super::json::{JsonAmbiguity, JsonLineMap};
use super::lint;
use super::messages::shorten_to_one_line;

/// References allowed in one schema: together with the depth of a document they bound how deep
/// validation can nest.
const MAX_REFERENCES: usize = 1_000;
/// Bytes that one compiled pattern may take, and backtracking steps that one match may take.
const MAX_PATTERN: usize = 1 << 20;
const MAX_STEPS_BACK: usize = 100_000;

/// Longest message of what is wrong with a schema, in characters.
const MAX_MESSAGE: usize = 300;

pub(super) struct CompiledSchema {
    pub(super) validator: Validator,
    /// What a validation may spend.
    pub(super) budget: Arc<ValidationBudget>,
    /// The schema as written, for its descriptions.
    pub(super) schema: Value,
}

/// Compiles the text of a schema. Its validations are charged to `budget`.
///
/// # Errors
/// What is wrong with it and where, for who wrote it.
pub(super) fn compile_schema(
    name: &str,
    text: &str,
    budget: Arc<ValidationBudget>,
) -> Result<CompiledSchema, String> {
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("{name}: is not JSON: {error}"))?;
    let places = JsonLineMap::parse_json_with_lines(text);
    if let Some(JsonAmbiguity { line, what, .. }) = places.first_json_ambiguity() {
        return Err(format!("{name}:{line}: {what}"));
    }
    if count_schema_references(&schema) > MAX_REFERENCES {
        return Err(format!(
            "{name}: holds more than {MAX_REFERENCES} references"
        ));
    }
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_STEPS_BACK)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN);
    let spent = budget.clone();
    let built = jsonschema::options()
        .with_keyword(budget::COUNTING_KEYWORD, move |_, _, _| {
            Ok(Box::new(ValidationStepCountingKeyword(spent.clone())))
        })
        // A reference to a URL is an error: what it leads to could change after the schema was
        // sealed.
        .offline()
        // Draft 2019-09 and later treat `format` as an annotation unless it is switched on.
        .should_validate_formats(true)
        .with_pattern_options(patterns)
        .build(&budget::add_validation_step_counter(&schema));
    match built {
        // After the build: a schema that is invalid is reported as such, not as empty.
        Ok(_) if !lint::schema_can_reject(&schema) => Err(format!(
            "{name}: asks for nothing: whatever there is would fit it"
        )),
        Ok(validator) => Ok(CompiledSchema {
            validator,
            budget,
            schema,
        }),
        Err(error) => {
            let pointer = error.instance_path().as_str();
            let line = places.line_at_json_pointer(pointer).unwrap_or(1);
            let place = if pointer.is_empty() { "" } else { " at " };
            let what = shorten_to_one_line(&error.masked().to_string(), MAX_MESSAGE);
            let hint = match error.kind() {
                jsonschema::error::ValidationErrorKind::Referencing(_) => {
                    "; only references within the file are followed"
                }
                _ => "",
            };
            Err(format!(
                "{name}:{line}: is no schema{place}{pointer}: {what}{hint}"
            ))
        }
    }
}

fn count_schema_references(schema: &Value) -> usize {
    match schema {
        Value::Object(object) => {
            let own = ["$ref", "$dynamicRef", "$recursiveRef"]
                .iter()
                .filter(|key| object.contains_key(**key));
            own.count() + object.values().map(count_schema_references).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(count_schema_references).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let what = compile_schema("s.json", text, Arc::default())
            .err()
            .unwrap();
        assert!(what.starts_with("s.json:"), "{what}");
        assert!(what.contains(expected), "{what}");
    }

    #[test]
    fn what_is_wrong_with_a_schema_and_where() {
        check(
            "{\n\"type\": \n",
            "is not JSON: EOF while parsing a value at line 3",
        );
        check(
            "{\n\"properties\": {\n \"a\": {\"minItems\": -1}}}",
            ":3: is no schema at /properties/a/minItems",
        );
        check(r#"{"type": "arrray"}"#, ":1: is no schema at /type");
        check(r#"{"pattern": "("}"#, "/pattern");
        check(
            r#"{"$ref": "https://example.com/other.json"}"#,
            "only references within the file are followed",
        );
        check(
            r#"{"$ref": "other.json"}"#,
            "only references within the file are followed",
        );
        check(r##"{"$ref": "#/$defs/none"}"##, "is no schema");
        check(
            r#"{"$schema": "https://example.com/no-such-draft"}"#,
            "is no schema",
        );
        for nothing in ["{}", "true", r##"{"$ref": "#"}"##, r#"{"requierd": ["a"]}"#] {
            check(nothing, "asks for nothing");
        }
        check(
            "{\"type\": \"object\",\n\"type\": \"array\"}",
            ":2: 'type' is named twice",
        );
        check(
            r#"{"const": 123456789012345678901234567890}"#,
            "more digits",
        );
        let many = vec![serde_json::json!({ "$ref": "#" }); MAX_REFERENCES + 1];
        check(
            &serde_json::json!({ "allOf": many }).to_string(),
            "more than 1000 references",
        );
    }

    #[test]
    fn every_draft_is_known() {
        for draft in [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-06/schema#",
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2019-09/schema",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let text = serde_json::json!({ "$schema": draft, "type": "object" }).to_string();
            let compiled = compile_schema("s.json", &text, Arc::default())
                .ok()
                .unwrap();
            let valid = || compiled.validator.is_valid(&Value::Null);
            assert!(
                !compiled
                    .budget
                    .run_with_validation_step_limit(9, valid)
                    .unwrap(),
                "{draft}"
            );
        }
    }
}
