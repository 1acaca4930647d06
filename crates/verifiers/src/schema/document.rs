//! What a schema is laid against: a JSON text as it is, or Markdown as its sections. Of a
//! message, the JSON in it if there is any.

use serde_json::Value;

use super::json::{Doubt, Places};
use super::markdown::{self, Outline};
use super::target::Target;

/// Why there is nothing to judge, as a finding says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfit {
    /// Part of the finding's id.
    pub(super) id: &'static str,
    pub(super) line: Option<u32>,
    pub(super) what: String,
}

impl Unfit {
    pub(super) fn new(id: &'static str, what: String) -> Self {
        Self {
            id,
            line: None,
            what,
        }
    }
}

/// How a document was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Sections,
}

/// A document and where its parts stand.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) form: Form,
    places: Where,
}

/// The line of a JSON pointer.
pub(super) type Lines<'a> = dyn Fn(&str) -> Option<u32> + 'a;

#[derive(Debug)]
enum Where {
    /// A JSON text that begins on this line of the target.
    Json(String, u32),
    Outline(Outline),
}

impl Document {
    /// Says on which lines these JSON pointers stand.
    pub(super) fn lines(&self) -> Box<Lines<'_>> {
        match &self.places {
            Where::Json(text, first) => {
                let places = Places::of(text);
                Box::new(move |pointer| Some(places.line(pointer)? + first - 1))
            }
            Where::Outline(outline) => Box::new(|pointer| outline.line(pointer)),
        }
    }
}

/// Reads a target's text.
pub(super) fn read(target: &Target, text: String) -> Result<Document, Unfit> {
    match target {
        Target::File(_) if target.is_markdown() => Ok(sections(&text)),
        Target::File(name) => json(name, text, 1),
        Target::Message => message(text),
    }
}

fn message(text: String) -> Result<Document, Unfit> {
    const NAME: &str = "the final message";
    if text.trim().is_empty() {
        return Err(Unfit::new("empty", format!("{NAME} is empty")));
    }
    // Leading blank lines count as lines and mean nothing to a JSON reader.
    if text.trim_start().starts_with(['{', '[']) {
        return json(NAME, text, 1);
    }
    let mut fenced = markdown::json_blocks(&text);
    match (fenced.pop(), fenced.len()) {
        (None, _) => Ok(sections(&text)),
        (Some((block, line)), 0) => json(NAME, block, line),
        (Some(_), more) => Err(Unfit::new(
            "json-blocks",
            format!(
                "{NAME} holds {} ```json blocks: leave only the one that is meant",
                more + 1
            ),
        )),
    }
}

fn sections(text: &str) -> Document {
    let outline = Outline::of(text);
    Document {
        value: outline.value(),
        form: Form::Sections,
        places: Where::Outline(outline),
    }
}

fn json(name: &str, text: String, first: u32) -> Result<Document, Unfit> {
    match serde_json::from_str(&text) {
        Ok(value) => match Places::of(&text).doubt() {
            Some(Doubt { id, line, what }) => Err(Unfit {
                id,
                line: Some(line.saturating_add(first - 1)),
                what: format!("{name}: {what}"),
            }),
            None => Ok(Document {
                value,
                form: Form::Json,
                places: Where::Json(text, first),
            }),
        },
        Err(error) => {
            let line = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1);
            let said = error.to_string();
            // The place is told as a place.
            let said = said.split(" at line ").next().unwrap_or(&said);
            Err(Unfit {
                id: "json",
                line: Some(line.saturating_add(first - 1)),
                what: format!("{name} is not JSON: {said} (column {})", error.column()),
            })
        }
    }
}
