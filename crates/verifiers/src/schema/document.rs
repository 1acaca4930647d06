//! Reads the document that a schema is validated against: a JSON text as it is, or Markdown as its
//! sections. Of a final message that contains JSON, the JSON is taken.

use serde_json::Value;

use super::json::{JsonAmbiguity, JsonLineMap};
use super::markdown::{self, MarkdownOutline};
use super::target::FileOrMessageSchemaTarget;

/// Why a document cannot be judged, in the words of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UncheckableDocumentError {
    /// Part of the finding's id.
    pub(super) id: &'static str,
    pub(super) line: Option<u32>,
    pub(super) what: String,
}

impl UncheckableDocumentError {
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
pub(super) enum JsonOrMarkdownSections {
    Json,
    Sections,
}

/// A document and the places of its parts.
#[derive(Debug)]
pub(super) struct DocumentWithPointerLines {
    pub(super) value: Value,
    pub(super) form: JsonOrMarkdownSections,
    places: JsonPointerLineSource,
}

/// Maps a JSON pointer to a line.
pub(super) type LineNumberOfJsonPointerFn<'a> = dyn Fn(&str) -> Option<u32> + 'a;

#[derive(Debug)]
enum JsonPointerLineSource {
    /// A JSON text that begins on this line of the target.
    Json(String, u32),
    Outline(MarkdownOutline),
}

impl DocumentWithPointerLines {
    /// Returns a lookup of the lines of JSON pointers.
    pub(super) fn json_pointer_line_lookup(&self) -> Box<LineNumberOfJsonPointerFn<'_>> {
        match &self.places {
            JsonPointerLineSource::Json(text, first) => {
                let places = JsonLineMap::parse_json_with_lines(text);
                Box::new(move |pointer| Some(places.line_at_json_pointer(pointer)? + first - 1))
            }
            JsonPointerLineSource::Outline(outline) => {
                Box::new(|pointer| outline.markdown_line_of_json_pointer(pointer))
            }
        }
    }
}

/// Parses the text of a target.
pub(super) fn parse_schema_checked_document(
    target: &FileOrMessageSchemaTarget,
    text: String,
) -> Result<DocumentWithPointerLines, UncheckableDocumentError> {
    match target {
        FileOrMessageSchemaTarget::File(_) if target.is_markdown() => {
            Ok(parse_markdown_document(&text))
        }
        FileOrMessageSchemaTarget::File(name) => parse_json_document(name, text, 1),
        FileOrMessageSchemaTarget::Message => parse_final_message_document(text),
    }
}

fn parse_final_message_document(
    text: String,
) -> Result<DocumentWithPointerLines, UncheckableDocumentError> {
    const NAME: &str = "the final message";
    if text.trim().is_empty() {
        return Err(UncheckableDocumentError::new(
            "empty",
            format!("{NAME} is empty"),
        ));
    }
    // The whole text is parsed: leading blank lines count as lines and mean nothing to a JSON
    // parser.
    if text.trim_start().starts_with(['{', '[']) {
        return parse_json_document(NAME, text, 1);
    }
    // With several blocks it is unclear which one is meant, so none is guessed.
    let mut fenced = markdown::json_code_blocks(&text);
    match (fenced.pop(), fenced.len()) {
        (None, _) => Ok(parse_markdown_document(&text)),
        (Some((block, line)), 0) => parse_json_document(NAME, block, line),
        (Some(_), more) => Err(UncheckableDocumentError::new(
            "json-blocks",
            format!(
                "{NAME} holds {} ```json blocks: leave only the one that is meant",
                more + 1
            ),
        )),
    }
}

fn parse_markdown_document(text: &str) -> DocumentWithPointerLines {
    let outline = MarkdownOutline::parse_diff_outline(text);
    DocumentWithPointerLines {
        value: outline.to_json(),
        form: JsonOrMarkdownSections::Sections,
        places: JsonPointerLineSource::Outline(outline),
    }
}

fn parse_json_document(
    name: &str,
    text: String,
    first: u32,
) -> Result<DocumentWithPointerLines, UncheckableDocumentError> {
    match serde_json::from_str(&text) {
        // `serde_json` takes the last of two equal names. Where readers of JSON differ nothing is
        // judged.
        Ok(value) => match JsonLineMap::parse_json_with_lines(&text).first_json_ambiguity() {
            Some(JsonAmbiguity { id, line, what }) => Err(UncheckableDocumentError {
                id,
                line: Some(line.saturating_add(first - 1)),
                what: format!("{name}: {what}"),
            }),
            None => Ok(DocumentWithPointerLines {
                value,
                form: JsonOrMarkdownSections::Json,
                places: JsonPointerLineSource::Json(text, first),
            }),
        },
        Err(error) => {
            let line = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1);
            let said = error.to_string();
            // The position is reported in fields of its own.
            let said = said.split(" at line ").next().unwrap_or(&said);
            Err(UncheckableDocumentError {
                id: "json",
                line: Some(line.saturating_add(first - 1)),
                what: format!("{name} is not JSON: {said} (column {})", error.column()),
            })
        }
    }
}
