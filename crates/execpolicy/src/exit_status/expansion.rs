//! Expands the words of a shell script as far as exit statuses, and the variables that keep them,
//! are concerned.

use std::collections::BTreeMap;

/// A word, split into pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWordPieces(Vec<ExpansionPiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum ExpansionPiece {
    Text(String),
    /// `$name`, with what replaces it if it is empty: `${name:-0}`.
    Variable(String, Option<String>),
    /// `$?`
    Status,
    /// `${PIPESTATUS[0]}`
    PipeStatus(usize),
    /// `$((a + 1))`
    Sum(String),
    Unknown,
}

/// The value of a word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShellValue {
    Text(String),
    /// A number above 0: the status of something that failed.
    Failure,
    Unknown,
}

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ZeroOrNonzeroStatus {
    Zero,
    Failed,
}

/// The state that expansions depend on.
pub(super) struct ShellExpansionContext<'a> {
    pub(super) variables: &'a BTreeMap<String, ShellValue>,
    pub(super) status: ZeroOrNonzeroStatus,
    pub(super) pipe_statuses: &'a [ZeroOrNonzeroStatus],
}

impl ZeroOrNonzeroStatus {
    fn symbolic_value_of_exit_status(self) -> ShellValue {
        match self {
            Self::Zero => ShellValue::Text("0".to_owned()),
            Self::Failed => ShellValue::Failure,
        }
    }
}

impl ShellValue {
    /// Returns the status of `exit VALUE`; `None` if it may be either.
    pub(super) fn as_shell_exit_status(&self) -> Option<ZeroOrNonzeroStatus> {
        match self {
            Self::Text(text) => Some(match text.trim().parse::<i64>() {
                // The shell keeps the low eight bits of a status. What is no number is an error.
                Ok(number) if number.rem_euclid(256) == 0 => ZeroOrNonzeroStatus::Zero,
                _ => ZeroOrNonzeroStatus::Failed,
            }),
            Self::Failure => Some(ZeroOrNonzeroStatus::Failed),
            Self::Unknown => None,
        }
    }

    pub(super) fn shell_text_if_known(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Failure | Self::Unknown => None,
        }
    }
}

impl ShellWordPieces {
    pub(super) fn unknown_expansion() -> Self {
        Self(vec![ExpansionPiece::Unknown])
    }

    /// Returns the word, if nothing in it is expanded.
    pub(super) fn literal_text(&self) -> Option<String> {
        let texts = self.0.iter().map(|piece| match piece {
            ExpansionPiece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(super) fn evaluate_expansion(&self, scope: &ShellExpansionContext<'_>) -> ShellValue {
        match self.0.as_slice() {
            [] => ShellValue::Text(String::new()),
            [piece] => piece.evaluate_expansion_piece(scope),
            // A failure is some number that is not known, and so is a text with one in it.
            pieces => {
                let texts =
                    pieces
                        .iter()
                        .map(|piece| match piece.evaluate_expansion_piece(scope) {
                            ShellValue::Text(text) => Some(text),
                            ShellValue::Failure | ShellValue::Unknown => None,
                        });
                let text: Option<String> = texts.collect();
                text.map_or(ShellValue::Unknown, ShellValue::Text)
            }
        }
    }
}

impl ExpansionPiece {
    fn evaluate_expansion_piece(&self, scope: &ShellExpansionContext<'_>) -> ShellValue {
        match self {
            Self::Text(text) => ShellValue::Text(text.clone()),
            Self::Variable(name, default) => {
                let known = scope.variables.get(name);
                match (known, default) {
                    (Some(ShellValue::Text(text)), Some(default)) if text.is_empty() => {
                        ShellValue::Text(default.clone())
                    }
                    (Some(value), _) => value.clone(),
                    // A variable without a known value may come from the environment.
                    (None, _) => ShellValue::Unknown,
                }
            }
            Self::Status => scope.status.symbolic_value_of_exit_status(),
            Self::PipeStatus(at) => scope
                .pipe_statuses
                .get(*at)
                .map_or(ShellValue::Unknown, |status| {
                    status.symbolic_value_of_exit_status()
                }),
            Self::Sum(text) => evaluate_arithmetic(text, scope),
            Self::Unknown => ShellValue::Unknown,
        }
    }
}

/// Returns the value of an arithmetic expression of sums and alternatives of non-negative numbers.
pub(super) fn evaluate_arithmetic(text: &str, scope: &ShellExpansionContext<'_>) -> ShellValue {
    // `$?` is no part of `a ? b : c`.
    if text
        .replace("$?", "")
        .contains(['-', '*', '/', '%', '&', '?', '<', '>', '=', '!', '^', '~'])
    {
        return ShellValue::Unknown;
    }
    // A sum of numbers that are not negative is zero only if all of them are.
    let parts = text
        .split(['+', '|'])
        .map(|part| part.trim_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ')')));
    let mut failed = false;
    for part in parts.filter(|part| !part.is_empty()) {
        let part = match part.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            true => format!("${part}"),
            false => part.to_owned(),
        };
        match parse_word_pieces(&part)
            .evaluate_expansion(scope)
            .as_shell_exit_status()
        {
            Some(ZeroOrNonzeroStatus::Zero) => {}
            Some(ZeroOrNonzeroStatus::Failed) => failed = true,
            None => return ShellValue::Unknown,
        }
    }
    match failed {
        true => ShellValue::Failure,
        false => ShellValue::Text("0".to_owned()),
    }
}

/// Returns whether a test holds; `None` if that is not known. `exists` answers `-f NAME` and the
/// like.
pub(super) fn evaluate_shell_test_command(
    words: &[ShellValue],
    exists: &dyn Fn(&str, &str) -> Option<bool>,
) -> Option<bool> {
    match words {
        [ShellValue::Text(not), rest @ ..] if not == "!" && !rest.is_empty() => {
            evaluate_shell_test_command(rest, exists).map(|holds| !holds)
        }
        [] => Some(false),
        [ShellValue::Text(one)] => Some(!one.is_empty()),
        [ShellValue::Failure] => Some(true),
        [ShellValue::Text(operator), word] => match (operator.as_str(), word) {
            ("-z", ShellValue::Text(text)) => Some(text.is_empty()),
            ("-n", ShellValue::Text(text)) => Some(!text.is_empty()),
            ("-z", ShellValue::Failure) => Some(false),
            ("-n", ShellValue::Failure) => Some(true),
            (operator, ShellValue::Text(path)) => exists(operator, path),
            _ => None,
        },
        [left, ShellValue::Text(operator), right] => compare_test_operands(left, operator, right),
        _ => {
            let at = |wanted: &[&str]| {
                words.iter().position(|word| {
                    word.shell_text_if_known()
                        .is_some_and(|word| wanted.contains(&word))
                })
            };
            // Groups in brackets are not followed.
            if words
                .iter()
                .any(|word| matches!(word.shell_text_if_known(), Some("(" | ")")))
            {
                return None;
            }
            // `-o` binds less tightly than `-a`, so it splits the test first.
            if let Some(at) = at(&["-o", "||"]) {
                let (left, right) = words.split_at(at);
                let right = right.get(1..).unwrap_or(&[]);
                return match (
                    evaluate_shell_test_command(left, exists),
                    evaluate_shell_test_command(right, exists),
                ) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                };
            }
            let (left, right) = words.split_at(at(&["-a", "&&"])?);
            let right = right.get(1..).unwrap_or(&[]);
            match (
                evaluate_shell_test_command(left, exists),
                evaluate_shell_test_command(right, exists),
            ) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }
        }
    }
}

/// Returns whether `a = b`, `a -ne b` and the like hold; `None` if that is not known.
pub(super) fn compare_test_operands(
    left: &ShellValue,
    operator: &str,
    right: &ShellValue,
) -> Option<bool> {
    match (left, right) {
        // An empty number is 0 to `[[` and an error to `[`, so only "no" is certain.
        (ShellValue::Text(left), ShellValue::Text(_))
            if left.is_empty() && operator.starts_with('-') =>
        {
            let as_zero = compare_test_operands(&ShellValue::Text("0".to_owned()), operator, right);
            as_zero.filter(|holds| !holds)
        }
        (ShellValue::Text(left), ShellValue::Text(right)) => {
            // To compare a text as a number is an error, whose effect is not followed.
            let numbers = || Some((left.trim().parse::<i64>().ok()?, right.trim().parse().ok()?));
            match operator {
                // `[[` takes this for a pattern, and `[` for a text.
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
        (ShellValue::Failure, ShellValue::Text(right)) => {
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
        // The operands are swapped, so the operator is turned round.
        (ShellValue::Text(_), ShellValue::Failure) => {
            let turned = match operator {
                "-gt" | ">" => "-lt",
                "-ge" | ">=" => "-le",
                "-lt" | "<" => "-gt",
                "-le" | "<=" => "-ge",
                same => same,
            };
            compare_test_operands(right, turned, left)
        }
        _ => None,
    }
}

/// Returns the word, if nothing in it is expanded.
pub(super) fn word_text_if_no_expansion(source: &str) -> Option<String> {
    parse_word_pieces(source).literal_text()
}

/// Splits a text into words, each with its quotes.
pub(super) fn split_shell_words_keeping_quotes(source: &str) -> Vec<&str> {
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

/// Parses one word.
pub(super) fn parse_word_pieces(source: &str) -> ShellWordPieces {
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
                pieces.push(ExpansionPiece::Unknown);
                rest = after.split_once('`').map_or("", |(_, rest)| rest);
                continue;
            }
            '$' => {
                let (piece, end) = parse_dollar_expansion(after);
                if let Some(piece) = piece {
                    if !text.is_empty() {
                        pieces.push(ExpansionPiece::Text(std::mem::take(&mut text)));
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
    // `""` is an empty word; without quotes there is no word at all.
    if !text.is_empty() || pieces.is_empty() && was_quoted {
        pieces.push(ExpansionPiece::Text(text));
    }
    ShellWordPieces(pieces)
}

/// Returns the piece after a `$`, and the rest of the text.
fn parse_dollar_expansion(after: &str) -> (Option<ExpansionPiece>, &str) {
    let name_end = |text: &str| {
        text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(text.len())
    };
    if let Some(rest) = after.strip_prefix('?') {
        return (Some(ExpansionPiece::Status), rest);
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
        // `$((...))` is arithmetic. Any other bracket is a command, whose output is not known.
        let sum = inside
            .strip_prefix("((")
            .and_then(|inside| inside.strip_suffix("))"));
        return (
            Some(sum.map_or(ExpansionPiece::Unknown, |sum| {
                ExpansionPiece::Sum(sum.to_owned())
            })),
            rest,
        );
    }
    if let Some(inside) = after.strip_prefix('{') {
        let (inside, rest) = inside.split_once('}').unwrap_or((inside, ""));
        return (Some(parse_braced_expansion(inside)), rest);
    }
    // `$10` is `$1` followed by a `0`.
    if after.starts_with(|c: char| c.is_ascii_digit()) {
        let (name, rest) = after.split_at(1);
        return (Some(ExpansionPiece::Variable(name.to_owned(), None)), rest);
    }
    let (name, rest) = after.split_at(name_end(after));
    match name.is_empty() {
        false => (Some(named_variable_piece(name, None)), rest),
        true if after.starts_with(['#', '@', '*', '!', '$', '-']) => {
            (Some(ExpansionPiece::Unknown), after.get(1..).unwrap_or(""))
        }
        true => (None, after),
    }
}

fn named_variable_piece(name: &str, default: Option<String>) -> ExpansionPiece {
    // Without an index its meaning differs from shell to shell.
    match name {
        "PIPESTATUS" | "pipestatus" => ExpansionPiece::Unknown,
        name => ExpansionPiece::Variable(name.to_owned(), default),
    }
}

fn parse_braced_expansion(inside: &str) -> ExpansionPiece {
    if inside == "?" {
        return ExpansionPiece::Status;
    }
    let index = |rest: &str| rest.strip_suffix(']')?.parse::<usize>().ok();
    if let Some(at) = inside.strip_prefix("PIPESTATUS[").and_then(index) {
        return ExpansionPiece::PipeStatus(at);
    }
    // The array of zsh begins at 1.
    if let Some(at) = inside.strip_prefix("pipestatus[").and_then(index) {
        return at
            .checked_sub(1)
            .map_or(ExpansionPiece::Unknown, ExpansionPiece::PipeStatus);
    }
    let end = inside
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    if name.is_empty() {
        return ExpansionPiece::Unknown;
    }
    match (
        rest,
        rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-')),
    ) {
        ("", _) => named_variable_piece(name, None),
        (_, Some(default)) => match word_text_if_no_expansion(default) {
            Some(default) => named_variable_piece(name, Some(default)),
            None => ExpansionPiece::Unknown,
        },
        _ => ExpansionPiece::Unknown,
    }
}
