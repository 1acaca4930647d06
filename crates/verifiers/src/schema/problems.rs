//! From the validator's errors to findings: in the order of the document, each by its place
//! and by what was asked for, so that it is known again after a shift of lines.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;

use super::document::{Document, Form, Lines};
use super::validator::Compiled;
use super::words::{self, shorten};

/// More errors than this are not counted.
const MAX_COUNTED: usize = 10_000;
/// Longest message, in characters: what feedback shows of one.
const MAX_MESSAGE: usize = 240;
/// Longest identity, in characters.
const MAX_ID: usize = 160;

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) id: String,
    pub(super) keyword: String,
    pub(super) line: Option<u32>,
    pub(super) message: String,
}

/// All of them.
pub(super) fn problems(compiled: &Compiled, document: &Document) -> Vec<Problem> {
    let mut errors = compiled
        .validator
        .iter_errors(&document.value)
        .take(MAX_COUNTED)
        .peekable();
    if errors.peek().is_none() {
        return Vec::new();
    }
    let line = document.lines();
    let mut problems: Vec<Problem> = errors
        .map(|error| problem(compiled, document.form, &error, &*line))
        .collect();
    problems.sort_by(|one, other| {
        (one.line, &one.id, &one.message).cmp(&(other.line, &other.id, &other.message))
    });
    problems.dedup();
    problems
}

fn problem(
    compiled: &Compiled,
    form: Form,
    error: &ValidationError<'_>,
    line: &Lines<'_>,
) -> Problem {
    let pointer = error.instance_path().as_str();
    let keyword = error.kind().keyword();
    let shown = if pointer.is_empty() { "/" } else { pointer };
    let asked = words::asked(error.kind());
    let id = format!("{shown} {keyword}{asked}");
    let place = words::place(form, pointer);
    let what = words::what(compiled, form, error);
    let colon = if place.is_empty() { "" } else { ": " };
    let mut message = format!("{place}{colon}{what}");
    if let Some(said) = said_of_it(compiled, error) {
        message = format!("{message} ({said})");
    }
    Problem {
        id: shorten(&id, MAX_ID),
        keyword: keyword.to_owned(),
        line: line(pointer),
        message: shorten(&message, MAX_MESSAGE),
    }
}

/// What the schema's author says of the part that does not fit.
fn said_of_it<'a>(compiled: &'a Compiled, error: &ValidationError<'_>) -> Option<&'a str> {
    let of = words::parent(compiled, error)?;
    let of = match error.kind() {
        Kind::Required { property } => of.get("properties")?.get(property.as_str()?)?,
        _ => of,
    };
    of.get("description")?.as_str()
}
