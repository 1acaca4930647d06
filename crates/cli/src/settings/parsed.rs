//! Where things stand in a JSON text: values with their places, and every comma and comment.
//! Comments and trailing commas are read; whether the agent reads them is another question.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::Trouble;

/// A parsed text.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: Node,
    marks: Vec<Mark>,
}

/// A value.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// See [`Node`].
#[derive(Debug)]
pub(super) enum Kind {
    Object(Vec<Member>),
    List(Vec<Node>),
    Text(String),
    Other,
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: Node,
}

/// A comma, a comment, or anything else that is no blank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) comma: bool,
    /// It ends with its line: what follows must not move up to it.
    pub(super) to_line_end: bool,
}

impl Parsed {
    pub(super) fn of(text: &str) -> Result<Self, Trouble> {
        let collect = CollectOptions {
            comments: CommentCollectionStrategy::AsTokens,
            tokens: true,
        };
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
        let result = parse_to_ast(text, &collect, &strict).map_err(|error| Trouble {
            place: format!(
                "line {}, column {}",
                error.line_display(),
                error.column_display()
            ),
            what: format!("not JSON: {}", error.kind()),
        })?;
        let root = result.value.as_ref().map(node).ok_or_else(|| Trouble {
            place: "line 1, column 1".to_owned(),
            what: "nothing but blanks and comments".to_owned(),
        })?;
        let marks = result.tokens.into_iter().flatten().map(|token| Mark {
            start: token.range.start,
            end: token.range.end,
            comma: token.token == Token::Comma,
            to_line_end: matches!(token.token, Token::CommentLine(_)),
        });
        Ok(Self {
            root,
            marks: marks.collect(),
        })
    }

    /// Marks between two places.
    pub(super) fn between(&self, from: usize, to: usize) -> impl Iterator<Item = &Mark> {
        self.marks
            .iter()
            .filter(move |mark| mark.start >= from && mark.end <= to)
    }

    /// The mark that ends at a place.
    pub(super) fn ending(&self, at: usize) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.end == at)
    }

    /// The first mark at or after a place.
    pub(super) fn next(&self, from: usize) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.start >= from)
    }
}

impl Node {
    /// The value of a key; of several the last, as agents take it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.members()
            .iter()
            .rev()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }

    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            Kind::List(_) | Kind::Text(_) | Kind::Other => &[],
        }
    }

    pub(super) fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            Kind::Object(_) | Kind::Text(_) | Kind::Other => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Object(_) | Kind::List(_) | Kind::Other => None,
        }
    }

    /// Places of what it holds.
    pub(super) fn children(&self) -> Vec<(usize, usize)> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|one| (one.start, one.end)).collect(),
            Kind::List(items) => items.iter().map(|item| (item.start, item.end)).collect(),
            Kind::Text(_) | Kind::Other => Vec::new(),
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(_))
    }
}

fn node(value: &Value<'_>) -> Node {
    let range = value.range();
    let kind = match value {
        Value::Object(object) => Kind::Object(
            object
                .properties
                .iter()
                .map(|property| Member {
                    key: property.name.as_str().to_owned(),
                    start: property.range.start,
                    end: property.range.end,
                    value: node(&property.value),
                })
                .collect(),
        ),
        Value::Array(list) => Kind::List(list.elements.iter().map(node).collect()),
        Value::StringLit(text) => Kind::Text(text.value.clone().into_owned()),
        Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => Kind::Other,
    };
    Node {
        start: range.start,
        end: range.end,
        kind,
    }
}
