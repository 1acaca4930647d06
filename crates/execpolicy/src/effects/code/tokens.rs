//! Splits a program into names, strings and signs, without its grammar. Serves Python, JavaScript
//! and PHP, whose comment sign the caller passes.

/// Returns the identifiers in a text, also those inside of strings and comments.
pub(super) fn identifiers_in_code(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// A token of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CodeToken<'t> {
    /// A name or a keyword.
    Name(&'t str),
    /// A string with its escapes unresolved; `true` if it can hold expressions.
    Quoted(&'t str, bool),
    /// One character of anything else that is not blank.
    Sign(char),
    /// Digits with what follows them; also a regular expression.
    Number,
    /// The end of a line.
    Line,
}

/// Splits a text into tokens; `None` if a string, comment or regular expression is not closed.
pub(super) fn tokenize_code<'t>(text: &'t str, comment: &str) -> Option<Vec<CodeToken<'t>>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        // A regular expression can hold what looks like a quote or a comment, so it is taken first.
        if c == '/' && comment == "//" && begins_regex(tokens.last(), rest) {
            let end = regex_literal_length(rest)?;
            tokens.push(CodeToken::Number);
            rest = rest.get(end..)?;
            continue;
        }
        if rest.starts_with(comment) {
            rest = rest.find('\n').and_then(|at| rest.get(at..)).unwrap_or("");
            continue;
        }
        // Only JavaScript has block comments; in Python `/*` are two signs.
        if let Some(after) = rest.strip_prefix("/*").filter(|_| comment == "//") {
            rest = after.split_once("*/")?.1;
            continue;
        }
        if matches!(c, '"' | '\'' | '`') {
            // The prefix of an f-string was read as a name before it.
            let format = matches!(
                tokens.last(),
                Some(CodeToken::Name(
                    "f" | "F" | "rf" | "fr" | "Rf" | "fR" | "RF" | "FR" | "rF" | "Fr"
                ))
            );
            let (inner, after) = split_off_quoted_text(rest, c)?;
            tokens.push(CodeToken::Quoted(inner, format || c == '`'));
            rest = after;
            continue;
        }
        let name = |c: char| c.is_alphanumeric() || c == '_' || c == '$' && comment == "//";
        let end = rest.find(|c| !name(c)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at_checked(end)?;
        if c.is_ascii_digit() {
            tokens.push(CodeToken::Number);
            rest = after;
        } else if !piece.is_empty() {
            tokens.push(CodeToken::Name(piece));
            rest = after;
        } else {
            match c {
                '\n' => tokens.push(CodeToken::Line),
                c if c.is_whitespace() => {}
                c => tokens.push(CodeToken::Sign(c)),
            }
            rest = rest.get(c.len_utf8()..)?;
        }
    }
    Some(tokens)
}

/// Splits off the string that a text begins with, triple quotes included.
fn split_off_quoted_text(text: &str, quote: char) -> Option<(&str, &str)> {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let (open, long) = match text.strip_prefix(triple.as_str()) {
        Some(inner) if quote != '`' => (inner, true),
        _ => (text.get(1..)?, false),
    };
    let mut escaped = false;
    for (at, c) in open.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if long && open.get(at..)?.starts_with(triple.as_str()) {
            return Some((open.get(..at)?, open.get(at + 3..)?));
        } else if !long && c == quote {
            return Some((open.get(..at)?, open.get(at + 1..)?));
        }
    }
    None
}

/// Splits the arguments of a call at its commas; `at` is the index after the opening bracket.
pub(super) fn split_code_call_arguments<'a, 't>(
    tokens: &'a [CodeToken<'t>],
    at: usize,
) -> Vec<&'a [CodeToken<'t>]> {
    let mut depth = 0_usize;
    let mut from = at;
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token {
            CodeToken::Sign('(' | '[' | '{') => depth += 1,
            CodeToken::Sign(')' | ']' | '}') if depth == 0 => {
                found.push(tokens.get(from..index).unwrap_or(&[]));
                return found;
            }
            CodeToken::Sign(')' | ']' | '}') => depth -= 1,
            // Commas of nested calls, lists and maps belong to one argument.
            CodeToken::Sign(',') if depth == 0 => {
                found.push(tokens.get(from..index).unwrap_or(&[]));
                from = index + 1;
            }
            _ => {}
        }
    }
    found
}

/// Whether a slash begins a regular expression: it does where no value has ended.
fn begins_regex(last: Option<&CodeToken<'_>>, rest: &str) -> bool {
    let comment = rest.starts_with("//") || rest.starts_with("/*");
    match last {
        // After a keyword an expression begins; after any other name the slash divides.
        Some(CodeToken::Name(name)) => {
            matches!(*name, "return" | "typeof" | "in" | "of" | "case" | "void")
        }
        Some(CodeToken::Number | CodeToken::Quoted(..) | CodeToken::Sign(')' | ']' | '}')) => false,
        _ => !comment,
    }
}

/// Returns the length of a regular expression; `None` if it does not end on its line.
fn regex_literal_length(text: &str) -> Option<usize> {
    let (mut escaped, mut class) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // Inside of a class the slash does not end the expression.
            '[' => class = true,
            ']' => class = false,
            '/' if !class => return Some(at + 1),
            _ => {}
        }
    }
    None
}
