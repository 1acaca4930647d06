//! Parses a JSON text into values with their places, and every comma and comment. Comments and
//! trailing commas are accepted; whether the agent accepts them is another question.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::SettingsEditError;

/// A parsed text.
#[derive(Debug)]
pub(super) struct JsonWithPositions {
    pub(super) root: JsonValueWithSpan,
    marks: Vec<JsonToken>,
}

/// A value.
#[derive(Debug)]
pub(super) struct JsonValueWithSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: JsonNodeKind,
}

/// The kind of a value, with what it holds.
#[derive(Debug)]
pub(super) enum JsonNodeKind {
    Object(Vec<JsonMember>),
    List(Vec<JsonValueWithSpan>),
    Text(String),
    Other,
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct JsonMember {
    pub(super) key: String,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: JsonValueWithSpan,
}

/// A token: a comma, a comment, or anything else that is no blank.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonToken {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) comma: bool,
    /// A line comment: what follows must not move up to its line.
    pub(super) to_line_end: bool,
}

impl JsonWithPositions {
    pub(super) fn parse_commented_json(text: &str) -> Result<Self, SettingsEditError> {
        let collect = CollectOptions {
            comments: CommentCollectionStrategy::AsTokens,
            tokens: true,
        };
        // Looser forms are refused: an edit would be planned for a file that no agent can read.
        let strict = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let result = parse_to_ast(text, &collect, &strict).map_err(|error| SettingsEditError {
            place: format!(
                "line {}, column {}",
                error.line_display(),
                error.column_display()
            ),
            what: format!("not JSON: {}", error.kind()),
        })?;
        let root = result
            .value
            .as_ref()
            .map(json_value_with_span)
            // A text without a value has no place for an entry. Blank files are handled by the
            // caller.
            .ok_or_else(|| SettingsEditError {
                place: "line 1, column 1".to_owned(),
                what: "nothing but blanks and comments".to_owned(),
            })?;
        let marks = result.tokens.into_iter().flatten().map(|token| JsonToken {
            start: token.range.start,
            end: token.range.end,
            comma: token.token == Token::Comma,
            // A text that follows a `//` comment on its line would become part of the comment.
            to_line_end: matches!(token.token, Token::CommentLine(_)),
        });
        Ok(Self {
            root,
            marks: marks.collect(),
        })
    }

    /// Returns the tokens between two places.
    pub(super) fn json_tokens_between(
        &self,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = &JsonToken> {
        self.marks
            .iter()
            .filter(move |mark| mark.start >= from && mark.end <= to)
    }

    /// Returns the token that ends at a place.
    pub(super) fn token_ending_at(&self, at: usize) -> Option<&JsonToken> {
        self.marks.iter().find(|mark| mark.end == at)
    }

    /// Returns the first token at or after a place.
    pub(super) fn next_json_token_from(&self, from: usize) -> Option<&JsonToken> {
        self.marks.iter().find(|mark| mark.start >= from)
    }
}

impl JsonValueWithSpan {
    /// Returns the value of a key; of several the last, as agents take it.
    pub(super) fn json_value_of_key(&self, key: &str) -> Option<&JsonValueWithSpan> {
        self.members_if_object_node()
            .iter()
            .rev()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }

    // These accessors give nothing for other kinds, so that a walk simply ends at a value of
    // another shape.
    pub(super) fn members_if_object_node(&self) -> &[JsonMember] {
        match &self.kind {
            JsonNodeKind::Object(members) => members,
            JsonNodeKind::List(_) | JsonNodeKind::Text(_) | JsonNodeKind::Other => &[],
        }
    }

    pub(super) fn items_if_json_list(&self) -> &[JsonValueWithSpan] {
        match &self.kind {
            JsonNodeKind::List(items) => items,
            JsonNodeKind::Object(_) | JsonNodeKind::Text(_) | JsonNodeKind::Other => &[],
        }
    }

    pub(super) fn json_string_value(&self) -> Option<&str> {
        match &self.kind {
            JsonNodeKind::Text(text) => Some(text),
            JsonNodeKind::Object(_) | JsonNodeKind::List(_) | JsonNodeKind::Other => None,
        }
    }

    /// Returns the places of its children.
    pub(super) fn child_ranges(&self) -> Vec<(usize, usize)> {
        match &self.kind {
            JsonNodeKind::Object(members) => {
                members.iter().map(|one| (one.start, one.end)).collect()
            }
            JsonNodeKind::List(items) => items.iter().map(|item| (item.start, item.end)).collect(),
            JsonNodeKind::Text(_) | JsonNodeKind::Other => Vec::new(),
        }
    }

    pub(super) fn is_json_object(&self) -> bool {
        matches!(self.kind, JsonNodeKind::Object(_))
    }

    pub(super) fn is_json_array(&self) -> bool {
        matches!(self.kind, JsonNodeKind::List(_))
    }
}

fn json_value_with_span(value: &Value<'_>) -> JsonValueWithSpan {
    let range = value.range();
    let kind = match value {
        Value::Object(object) => JsonNodeKind::Object(
            object
                .properties
                .iter()
                .map(|property| JsonMember {
                    key: property.name.as_str().to_owned(),
                    start: property.range.start,
                    end: property.range.end,
                    value: json_value_with_span(&property.value),
                })
                .collect(),
        ),
        Value::Array(list) => {
            JsonNodeKind::List(list.elements.iter().map(json_value_with_span).collect())
        }
        Value::StringLit(text) => JsonNodeKind::Text(text.value.clone().into_owned()),
        Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => JsonNodeKind::Other,
    };
    JsonValueWithSpan {
        start: range.start,
        end: range.end,
        kind,
    }
}
