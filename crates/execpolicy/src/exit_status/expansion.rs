//! What a word of a shell script comes to, as far as exit statuses and the variables that
//! keep them are concerned.

use std::collections::BTreeMap;

/// A word, in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expansion(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `$name`; with what stands for it where it is empty: `${name:-0}`.
    Variable(String, Option<String>),
    /// `$?`
    Status,
    /// `${PIPESTATUS[0]}`
    PipeStatus(usize),
    /// `$((a + 1))`
    Sum(String),
    Unknown,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Text(String),
    /// A number above 0: the status of something that failed.
    Failure,
    Unknown,
}

/// A status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Zero,
    Failed,
}

/// What expansions look at.
pub(super) struct Scope<'a> {
    pub(super) variables: &'a BTreeMap<String, Value>,
    pub(super) status: Status,
    pub(super) pipe: &'a [Status],
}

impl Status {
    fn value(self) -> Value {
        match self {
            Self::Zero => Value::Text("0".to_owned()),
            Self::Failed => Value::Failure,
        }
    }
}

impl Value {
    /// `exit VALUE`; `None`: either way.
    pub(super) fn as_status(&self) -> Option<Status> {
        match self {
            Self::Text(text) => Some(match text.trim().parse::<i64>() {
                Ok(number) if number.rem_euclid(256) == 0 => Status::Zero,
                _ => Status::Failed,
            }),
            Self::Failure => Some(Status::Failed),
            Self::Unknown => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Failure | Self::Unknown => None,
        }
    }
}

impl Expansion {
    pub(super) fn unknown() -> Self {
        Self(vec![Piece::Unknown])
    }

    /// The word, if nothing in it is expanded.
    pub(super) fn literal(&self) -> Option<String> {
        let texts = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(super) fn value(&self, scope: &Scope<'_>) -> Value {
        match self.0.as_slice() {
            [] => Value::Text(String::new()),
            [piece] => piece.value(scope),
            pieces => {
                let texts = pieces.iter().map(|piece| match piece.value(scope) {
                    Value::Text(text) => Some(text),
                    Value::Failure | Value::Unknown => None,
                });
                let text: Option<String> = texts.collect();
                text.map_or(Value::Unknown, Value::Text)
            }
        }
    }
}

impl Piece {
    fn value(&self, scope: &Scope<'_>) -> Value {
        match self {
            Self::Text(text) => Value::Text(text.clone()),
            Self::Variable(name, default) => {
                let known = scope.variables.get(name);
                match (known, default) {
                    (Some(Value::Text(text)), Some(default)) if text.is_empty() => {
                        Value::Text(default.clone())
                    }
                    (Some(value), _) => value.clone(),
                    (None, _) => Value::Unknown,
                }
            }
            Self::Status => scope.status.value(),
            Self::PipeStatus(at) => scope
                .pipe
                .get(*at)
                .map_or(Value::Unknown, |status| status.value()),
            Self::Sum(text) => sum(text, scope),
            Self::Unknown => Value::Unknown,
        }
    }
}

/// The value of an arithmetic expression: sums and alternatives of numbers that are not negative.
pub(super) fn sum(text: &str, scope: &Scope<'_>) -> Value {
    // `$?` is no `a ? b : c`.
    if text
        .replace("$?", "")
        .contains(['-', '*', '/', '%', '&', '?', '<', '>', '=', '!', '^', '~'])
    {
        return Value::Unknown;
    }
    let parts = text
        .split(['+', '|'])
        .map(|part| part.trim_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ')')));
    let mut failed = false;
    for part in parts.filter(|part| !part.is_empty()) {
        let part = match part.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            true => format!("${part}"),
            false => part.to_owned(),
        };
        match read_expansion(&part).value(scope).as_status() {
            Some(Status::Zero) => {}
            Some(Status::Failed) => failed = true,
            None => return Value::Unknown,
        }
    }
    match failed {
        true => Value::Failure,
        false => Value::Text("0".to_owned()),
    }
}

/// Whether a test holds; `None` if nobody knows. `exists` answers `-f NAME` and the like.
pub(super) fn holds(words: &[Value], exists: &dyn Fn(&str, &str) -> Option<bool>) -> Option<bool> {
    match words {
        [Value::Text(not), rest @ ..] if not == "!" && !rest.is_empty() => {
            holds(rest, exists).map(|holds| !holds)
        }
        [] => Some(false),
        [Value::Text(one)] => Some(!one.is_empty()),
        [Value::Failure] => Some(true),
        [Value::Text(operator), word] => match (operator.as_str(), word) {
            ("-z", Value::Text(text)) => Some(text.is_empty()),
            ("-n", Value::Text(text)) => Some(!text.is_empty()),
            ("-z", Value::Failure) => Some(false),
            ("-n", Value::Failure) => Some(true),
            (operator, Value::Text(path)) => exists(operator, path),
            _ => None,
        },
        [left, Value::Text(operator), right] => compared(left, operator, right),
        _ => {
            let at = |wanted: &[&str]| {
                words
                    .iter()
                    .position(|word| word.text().is_some_and(|word| wanted.contains(&word)))
            };
            if words
                .iter()
                .any(|word| matches!(word.text(), Some("(" | ")")))
            {
                return None;
            }
            if let Some(at) = at(&["-o", "||"]) {
                let (left, right) = words.split_at(at);
                let right = right.get(1..).unwrap_or(&[]);
                return match (holds(left, exists), holds(right, exists)) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                };
            }
            let (left, right) = words.split_at(at(&["-a", "&&"])?);
            let right = right.get(1..).unwrap_or(&[]);
            match (holds(left, exists), holds(right, exists)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }
        }
    }
}

/// `a = b`, `a -ne b`; `None` if nobody knows.
pub(super) fn compared(left: &Value, operator: &str, right: &Value) -> Option<bool> {
    match (left, right) {
        // A number that is empty is 0 to `[[`, and an error to `[`.
        (Value::Text(left), Value::Text(_)) if left.is_empty() && operator.starts_with('-') => {
            let as_zero = compared(&Value::Text("0".to_owned()), operator, right);
            as_zero.filter(|holds| !holds)
        }
        (Value::Text(left), Value::Text(right)) => {
            let numbers = || Some((left.trim().parse::<i64>().ok()?, right.trim().parse().ok()?));
            match operator {
                "=" | "==" if right.contains(['*', '?']) => None,
                "!=" if right.contains(['*', '?']) => None,
                "=" | "==" => Some(left == right),
                "!=" => Some(left != right),
                "-eq" => numbers().map(|(left, right)| left == right),
                "-ne" => numbers().map(|(left, right)| left != right),
                "-gt" | ">" => numbers().map(|(left, right)| left > right),
                "-ge" | ">=" => numbers().map(|(left, right)| left >= right),
                "-lt" | "<" => numbers().map(|(left, right)| left < right),
                "-le" | "<=" => numbers().map(|(left, right)| left <= right),
                _ => None,
            }
        }
        // A failure is some number from 1 to 255.
        (Value::Failure, Value::Text(right)) => {
            let right: i64 = right.trim().parse().ok()?;
            match operator {
                "=" | "==" | "-eq" => (!(1..=255).contains(&right)).then_some(false),
                "!=" | "-ne" => (!(1..=255).contains(&right)).then_some(true),
                "-gt" | ">" => (right < 1).then_some(true),
                "-ge" | ">=" => (right <= 1).then_some(true),
                "-lt" | "<" => (right <= 1).then_some(false),
                "-le" | "<=" => (right < 1).then_some(false),
                _ => None,
            }
        }
        (Value::Text(_), Value::Failure) => {
            let turned = match operator {
                "-gt" | ">" => "-lt",
                "-ge" | ">=" => "-le",
                "-lt" | "<" => "-gt",
                "-le" | "<=" => "-ge",
                same => same,
            };
            compared(right, turned, left)
        }
        _ => None,
    }
}

/// The word, if nothing in it is expanded.
pub(super) fn literal(source: &str) -> Option<String> {
    read_expansion(source).literal()
}

/// Words, each with its quotes.
pub(super) fn split_words(source: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut begins, mut quote, mut depth, mut escaped) = (None, None, 0_usize, false);
    for (at, c) in source.char_indices() {
        if c.is_whitespace() && quote.is_none() && depth == 0 && !escaped {
            if let Some(begins) = begins.take() {
                words.extend(source.get(begins..at));
            }
            continue;
        }
        begins = begins.or(Some(at));
        if escaped {
            escaped = false;
            continue;
        }
        match (c, quote) {
            ('\\', None | Some('"')) => escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if let Some(begins) = begins {
        words.extend(source.get(begins..));
    }
    words
}

/// Reads one word.
pub(super) fn read_expansion(source: &str) -> Expansion {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut was_quoted = false;
    let mut double = false;
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or("");
        match c {
            '\\' => {
                let next = after.chars().next();
                text.extend(next.filter(|c| *c != '\n'));
                rest = after.get(next.map_or(0, char::len_utf8)..).unwrap_or("");
                continue;
            }
            '\'' if !double => {
                was_quoted = true;
                let (inner, end) = after.split_once('\'').unwrap_or((after, ""));
                text.push_str(inner);
                rest = end;
                continue;
            }
            '"' => {
                was_quoted = true;
                double = !double;
            }
            '`' => {
                pieces.push(Piece::Unknown);
                rest = after.split_once('`').map_or("", |(_, rest)| rest);
                continue;
            }
            '$' => {
                let (piece, end) = variable(after);
                if let Some(piece) = piece {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(piece);
                } else {
                    text.push('$');
                }
                rest = end;
                continue;
            }
            c => text.push(c),
        }
        rest = after;
    }
    if !text.is_empty() || pieces.is_empty() && was_quoted {
        pieces.push(Piece::Text(text));
    }
    Expansion(pieces)
}

/// What stands after a `$`, and the rest.
fn variable(after: &str) -> (Option<Piece>, &str) {
    let name_end = |text: &str| {
        text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(text.len())
    };
    if let Some(rest) = after.strip_prefix('?') {
        return (Some(Piece::Status), rest);
    }
    if after.starts_with('(') {
        let mut depth = 0_usize;
        let end = after.char_indices().find_map(|(at, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at + 1)
        });
        let (inside, rest) = after.split_at(end.unwrap_or(after.len()));
        let sum = inside
            .strip_prefix("((")
            .and_then(|inside| inside.strip_suffix("))"));
        return (
            Some(sum.map_or(Piece::Unknown, |sum| Piece::Sum(sum.to_owned()))),
            rest,
        );
    }
    if let Some(inside) = after.strip_prefix('{') {
        let (inside, rest) = inside.split_once('}').unwrap_or((inside, ""));
        return (Some(braced(inside)), rest);
    }
    if after.starts_with(|c: char| c.is_ascii_digit()) {
        let (name, rest) = after.split_at(1);
        return (Some(Piece::Variable(name.to_owned(), None)), rest);
    }
    let (name, rest) = after.split_at(name_end(after));
    match name.is_empty() {
        false => (Some(named(name, None)), rest),
        true if after.starts_with(['#', '@', '*', '!', '$', '-']) => {
            (Some(Piece::Unknown), after.get(1..).unwrap_or(""))
        }
        true => (None, after),
    }
}

fn named(name: &str, default: Option<String>) -> Piece {
    // Without an index it is another thing in each shell.
    match name {
        "PIPESTATUS" | "pipestatus" => Piece::Unknown,
        name => Piece::Variable(name.to_owned(), default),
    }
}

fn braced(inside: &str) -> Piece {
    if inside == "?" {
        return Piece::Status;
    }
    let index = |rest: &str| rest.strip_suffix(']')?.parse::<usize>().ok();
    if let Some(at) = inside.strip_prefix("PIPESTATUS[").and_then(index) {
        return Piece::PipeStatus(at);
    }
    if let Some(at) = inside.strip_prefix("pipestatus[").and_then(index) {
        return at.checked_sub(1).map_or(Piece::Unknown, Piece::PipeStatus);
    }
    let end = inside
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    if name.is_empty() {
        return Piece::Unknown;
    }
    match (
        rest,
        rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-')),
    ) {
        ("", _) => named(name, None),
        (_, Some(default)) => match literal(default) {
            Some(default) => named(name, Some(default)),
            None => Piece::Unknown,
        },
        _ => Piece::Unknown,
    }
}
