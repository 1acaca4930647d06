//! From the validator's errors to findings: in the order of the document, each by its place
//! and by what was asked for, so that it is known again after a shift of lines.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;

use super::budget::Exhausted;
use super::document::{Document, Form, Lines};
use super::validator::Compiled;
use super::words::{self, shorten};

/// Questions that a verdict may take, and those that the list of what is wrong may: each of
/// these may leave an error behind.
const TO_JUDGE: u64 = 1_000_000;
const TO_LIST: u64 = 200_000;
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

/// All of them; none, and the document fits.
pub(super) fn problems(
    compiled: &Compiled,
    document: &Document,
) -> Result<Vec<Problem>, Exhausted> {
    let Compiled {
        validator, budget, ..
    } = compiled;
    let value = &document.value;
    if budget.within(TO_JUDGE, || validator.is_valid(value))? {
        return Ok(Vec::new());
    }
    let line = document.lines();
    let all = || {
        let errors = validator.iter_errors(value).take(MAX_COUNTED);
        errors
            .map(|error| problem(compiled, document.form, &error, &*line))
            .collect()
    };
    let mut problems: Vec<Problem> = match budget.within(TO_LIST, all) {
        Ok(problems) => problems,
        Err(Exhausted) => {
            let first = || validator.validate(value).err();
            let first = budget.within(TO_LIST, first).ok().flatten();
            let first = first.map(|error| problem(compiled, document.form, &error, &*line));
            vec![too_many(first)]
        }
    };
    problems.sort_by(|one, other| {
        (one.line, &one.id, &one.message).cmp(&(other.line, &other.id, &other.message))
    });
    problems.dedup();
    Ok(problems)
}

/// Where the list would have no end.
fn too_many(first: Option<Problem>) -> Problem {
    let what = "it does not fit, and more is wrong than can be listed";
    let message = match &first {
        Some(first) => format!("{what}: {}", first.message),
        None => what.to_owned(),
    };
    Problem {
        id: "/ too much".to_owned(),
        keyword: first
            .as_ref()
            .map_or_else(String::new, |first| first.keyword.clone()),
        line: first.and_then(|first| first.line),
        message: shorten(&message, MAX_MESSAGE),
    }
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
