//! Bounds how many parts of a schema are validated against parts of a document. References let a
//! short schema unfold into millions of steps, each with an error to keep, and the library performs
//! them all. So each part of the schema gets a keyword that counts, and that ends the validation by
//! unwinding when the budget is spent or nobody waits any more. It stands last in an `allOf`: the
//! library evaluates custom keywords last of all, but `allOf` before the keywords that go on after
//! a failure (`anyOf`, `oneOf`, `not`, `if`).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

/// The counting keyword. No schema in use has a keyword of this name.
pub(super) const COUNTING_KEYWORD: &str = "$checkrein:step";

/// The validation steps that are left.
#[derive(Debug, Default)]
pub(super) struct ValidationBudget {
    left: AtomicU64,
    given_up: AtomicBool,
}

/// The budget was spent, or the validation was cancelled.
#[derive(Debug)]
pub(super) struct ValidationBudgetExhausted;

impl ValidationBudget {
    /// Makes a running validation stop at its next step.
    pub(super) fn cancel_schema_validation(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Runs a validation of at most this many steps.
    pub(super) fn run_with_validation_step_limit<T>(
        &self,
        questions: u64,
        work: impl FnOnce() -> T,
    ) -> Result<T, ValidationBudgetExhausted> {
        self.left.store(questions, Ordering::Relaxed);
        // `AssertUnwindSafe`: nothing that is unwound through is used again.
        catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
            match payload.downcast::<ValidationBudgetExhausted>() {
                Ok(exhausted) => *exhausted,
                // Any other panic goes on.
                Err(other) => resume_unwind(other),
            }
        })
    }

    fn spend_validation_step_or_unwind(&self) {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 || self.given_up.load(Ordering::Relaxed) {
            // `resume_unwind` and not `panic!`: it runs no panic hook, which would print a message.
            resume_unwind(Box::new(ValidationBudgetExhausted));
        }
        // Only one thread validates, so nothing is lost between load and store.
        self.left.store(left - 1, Ordering::Relaxed);
    }
}

/// The compiled counting keyword.
pub(super) struct ValidationStepCountingKeyword(pub(super) Arc<ValidationBudget>);

impl<'i> Keyword<'i> for ValidationStepCountingKeyword {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        self.0.spend_validation_step_or_unwind();
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        self.0.spend_validation_step_or_unwind();
        true
    }
}

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value holds schemas by name.
const MAPS: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Keywords whose value is a literal.
const LITERALS: &[&str] = &["const", "default", "enum", "examples"];

/// Returns the schema with the counting keyword in each of its parts.
pub(super) fn add_validation_step_counter(schema: &Value) -> Value {
    let mut counted = schema.clone();
    add_step_counting_keyword(&mut counted);
    // A reference can make any part of the document a schema, not only those below known keywords.
    let mut pointers = Vec::new();
    collect_schema_references(schema, &mut pointers);
    for pointer in pointers {
        // A step inside of a literal would change what the schema compares with.
        let literal = pointer.split('/').any(|token| LITERALS.contains(&token));
        if !literal && let Some(part) = counted.pointer_mut(pointer) {
            add_step_counting_keyword(part);
        }
    }
    counted
}

fn add_step_counting_keyword(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    // A part that a reference leads to may have been visited already: it is counted once.
    if keywords
        .get("allOf")
        .is_some_and(all_of_ends_with_counting_keyword)
    {
        return;
    }
    for (keyword, value) in keywords.iter_mut() {
        match value {
            Value::Array(many) if SCHEMAS.contains(&keyword.as_str()) => {
                many.iter_mut().for_each(add_step_counting_keyword);
            }
            value if SCHEMAS.contains(&keyword.as_str()) => add_step_counting_keyword(value),
            Value::Object(map) if MAPS.contains(&keyword.as_str()) => {
                map.values_mut().for_each(add_step_counting_keyword);
            }
            _ => {}
        }
    }
    let all = keywords
        .entry("allOf")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(all) = all {
        all.push(serde_json::json!({ COUNTING_KEYWORD: true }));
    }
}

fn all_of_ends_with_counting_keyword(all: &Value) -> bool {
    let last = all.as_array().and_then(|all| all.last());
    last.is_some_and(|last| last.get(COUNTING_KEYWORD).is_some())
}

/// Collects the pointers of all references within the schema.
fn collect_schema_references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(keywords) => {
            found.extend(local_ref_pointer(keywords));
            keywords
                .values()
                .for_each(|value| collect_schema_references(value, found));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_schema_references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn local_ref_pointer(keywords: &Map<String, Value>) -> Option<&str> {
    let (_, pointer) = keywords.get("$ref")?.as_str()?.split_once('#')?;
    Some(pointer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_counted_and_literals_left_alone() {
        let schema = json!({
            "properties": { "a": { "const": { "items": {} } }, "items": { "not": true } },
            "allOf": [{ "enum": [{}] }, { "$ref": "#/else where/x" }],
            "else where": { "x": { "items": {} }, "y": {} },
            "dependencies": { "a": ["b"] },
        });
        let step = json!({ COUNTING_KEYWORD: true });
        assert_eq!(
            add_validation_step_counter(&schema),
            json!({
                "properties": {
                    "a": { "const": { "items": {} }, "allOf": [step] },
                    "items": { "not": true, "allOf": [step] },
                },
                "allOf": [
                    { "enum": [{}], "allOf": [step] },
                    { "$ref": "#/else where/x", "allOf": [step] },
                    step,
                ],
                "else where": { "x": { "items": { "allOf": [step] }, "allOf": [step] }, "y": {} },
                "dependencies": { "a": ["b"] },
            })
        );
    }
}
