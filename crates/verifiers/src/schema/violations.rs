//! Turns the validator's errors into findings, in document order. Each is identified by its place
//! and by the constraint, so that it is recognised after a shift of lines.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;

use super::budget::ValidationBudgetExhausted;
use super::document::{
    DocumentWithPointerLines, JsonOrMarkdownSections, LineNumberOfJsonPointerFn,
};
use super::messages::{self, shorten_to_one_line};
use super::validator::CompiledSchema;

/// Validation steps that a verdict may take, and those that the list of violations may take: each
/// of the latter may leave an error behind.
const TO_JUDGE: u64 = 1_000_000;
const TO_LIST: u64 = 200_000;
/// Errors that are counted at most.
const MAX_COUNTED: usize = 10_000;
/// Longest message, in characters: what feedback shows of one.
const MAX_MESSAGE: usize = 240;
/// Longest identity, in characters.
const MAX_ID: usize = 160;

/// A violation of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaViolation {
    pub(super) id: String,
    pub(super) keyword: String,
    pub(super) line: Option<u32>,
    pub(super) message: String,
}

/// Returns all violations; the document fits if there are none.
pub(super) fn find_schema_violations(
    compiled: &CompiledSchema,
    document: &DocumentWithPointerLines,
) -> Result<Vec<SchemaViolation>, ValidationBudgetExhausted> {
    let CompiledSchema {
        validator, budget, ..
    } = compiled;
    let value = &document.value;
    // The verdict first, without errors to keep, so that a large document that fits does not need
    // the list's budget.
    if budget.run_with_validation_step_limit(TO_JUDGE, || validator.is_valid(value))? {
        return Ok(Vec::new());
    }
    let line = document.json_pointer_line_lookup();
    let all = || {
        let errors = validator.iter_errors(value).take(MAX_COUNTED);
        errors
            .map(|error| violation_from_error(compiled, document.form, &error, &*line))
            .collect()
    };
    let mut problems: Vec<SchemaViolation> =
        match budget.run_with_validation_step_limit(TO_LIST, all) {
            Ok(problems) => problems,
            Err(ValidationBudgetExhausted) => {
                // The verdict is known to be a failure by now, so running out of budget still gives one
                // finding.
                let first = || validator.validate(value).err();
                let first = budget
                    .run_with_validation_step_limit(TO_LIST, first)
                    .ok()
                    .flatten();
                let first = first
                    .map(|error| violation_from_error(compiled, document.form, &error, &*line));
                vec![too_faulty_document_violation(first)]
            }
        };
    // The library reports in the order of keywords; a reader fixes from top to bottom.
    problems.sort_by(|one, other| {
        (one.line, &one.id, &one.message).cmp(&(other.line, &other.id, &other.message))
    });
    problems.dedup();
    Ok(problems)
}

/// Returns the one finding for a document with too many violations to list.
fn too_faulty_document_violation(first: Option<SchemaViolation>) -> SchemaViolation {
    let what = "it does not fit, and more is wrong than can be listed";
    let message = match &first {
        Some(first) => format!("{what}: {}", first.message),
        None => what.to_owned(),
    };
    SchemaViolation {
        id: "/ too much".to_owned(),
        keyword: first
            .as_ref()
            .map_or_else(String::new, |first| first.keyword.clone()),
        line: first.and_then(|first| first.line),
        message: shorten_to_one_line(&message, MAX_MESSAGE),
    }
}

fn violation_from_error(
    compiled: &CompiledSchema,
    form: JsonOrMarkdownSections,
    error: &ValidationError<'_>,
    line: &LineNumberOfJsonPointerFn<'_>,
) -> SchemaViolation {
    let pointer = error.instance_path().as_str();
    let keyword = error.kind().keyword();
    let shown = if pointer.is_empty() { "/" } else { pointer };
    let asked = messages::constraint_as_finding_id_part(error.kind());
    let id = format!("{shown} {keyword}{asked}");
    let place = messages::describe_document_place(form, pointer);
    let what = messages::describe_schema_violation(compiled, form, error);
    let colon = if place.is_empty() { "" } else { ": " };
    let mut message = format!("{place}{colon}{what}");
    if let Some(said) = description_of_violated_schema(compiled, error) {
        message = format!("{message} ({said})");
    }
    SchemaViolation {
        id: shorten_to_one_line(&id, MAX_ID),
        keyword: keyword.to_owned(),
        line: line(pointer),
        message: shorten_to_one_line(&message, MAX_MESSAGE),
    }
}

/// Returns the description that the schema's author gave the violated part.
fn description_of_violated_schema<'a>(
    compiled: &'a CompiledSchema,
    error: &ValidationError<'_>,
) -> Option<&'a str> {
    let of = messages::schema_object_of_violation(compiled, error)?;
    let of = match error.kind() {
        // A missing property is described by its own schema, not by that of the object.
        Kind::Required { property } => of.get("properties")?.get(property.as_str()?)?,
        _ => of,
    };
    of.get("description")?.as_str()
}
