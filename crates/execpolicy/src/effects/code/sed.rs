//! Sed: commands that run something (`e`, `s///e`) or name a file (`r`, `w`).

use crate::effects::row::Deed;
use crate::effects::{Act, Effect};
use crate::shell::{Known, Word};

/// What a script does beside editing.
pub(in crate::effects) fn sed(script: &Word, out: &mut Vec<Effect>) {
    let text = script.text.as_str();
    if script.known != Known::Fixed {
        // `s/$OLD/$NEW/g`: what comes in could end the command and begin another.
        let inner = text.starts_with(['s', 'y']) && is_simple(text) || is_lines(text);
        if !inner {
            out.push(Effect::Deed(Deed::Code));
        }
        return;
    }
    if read(text, out).is_none() {
        out.push(Effect::Deed(Deed::Code));
    }
}

/// A substitution whose flags stand at the end and are plain: a hole in it is taken for a text.
fn is_simple(text: &str) -> bool {
    let Some(delimiter) = text
        .chars()
        .nth(1)
        .filter(|c| c.is_ascii_punctuation() && *c != '\\')
    else {
        return false;
    };
    let flags = text.rsplit(delimiter).next().unwrap_or("");
    text.matches(delimiter).count() == 3
        && !text.contains('\n')
        && flags
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I'))
}

/// `$1,${2}p`: lines by number.
fn is_lines(text: &str) -> bool {
    text.ends_with(['p', 'd', 'q'])
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "$,{}_ +;-()".contains(c))
        && !text.contains("$(")
}

/// Reads it to the end; `None` if it is not understood, or runs something.
fn read(text: &str, out: &mut Vec<Effect>) -> Option<()> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        if rest.is_empty() {
            return Some(());
        }
        rest = address(rest)?;
        if let Some(after) = rest.trim_start().strip_prefix(',') {
            let after = after.trim_start();
            rest = address(after.trim_start_matches(['+', '~']))?;
        }
        rest = rest.trim_start_matches([' ', '\t', '!']);
        let Some(command) = rest.chars().next() else {
            return Some(());
        };
        let after = rest.get(command.len_utf8()..)?;
        rest = match command {
            '{' | '}' | ';' | '\n' => after,
            '#' => line(after).1,
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
                after
            }
            'l' | 'L' | 'q' | 'Q' => after
                .trim_start()
                .trim_start_matches(|c: char| c.is_ascii_digit()),
            'a' | 'i' | 'c' => text_of(after),
            // A label ends at a blank, too.
            ':' | 'b' | 't' | 'T' | 'v' => after
                .trim_start_matches([' ', '\t'])
                .split_once([';', '\n', '}', ' ', '\t'])
                .map_or("", |(_, rest)| rest),
            'r' | 'R' | 'w' | 'W' => {
                let (name, rest) = line(after);
                named(command, name, out);
                rest
            }
            's' => substitution(after, out)?,
            'y' => {
                let (delimiter, after) = first(after)?;
                part(part(after, delimiter)?, delimiter)?
            }
            // `e` runs a command, and what is not known may.
            _ => return None,
        };
    }
}

fn named(command: char, name: &str, out: &mut Vec<Effect>) {
    let act = if matches!(command, 'w' | 'W') {
        Act::Write
    } else {
        Act::Read
    };
    out.push(Effect::File(act, Word::fixed(name.trim())));
}

fn first(text: &str) -> Option<(char, &str)> {
    let c = text.chars().next().filter(|c| *c != '\n' && *c != '\\')?;
    Some((c, text.get(c.len_utf8()..)?))
}

fn line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// The text of `a`, `i`, `c`: to the end of the line, and further where the line ends in `\`.
fn text_of(text: &str) -> &str {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == '\n' && !escaped {
            return text.get(at + 1..).unwrap_or("");
        }
        escaped = c == '\\' && !escaped;
    }
    ""
}

/// What stands behind an address, if there is one.
fn address(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    let c = text.chars().next()?;
    match c {
        '0'..='9' => Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~')),
        '$' => text.get(1..),
        '/' => Some(pattern(text.get(1..)?, '/')?.trim_start_matches(['I', 'M'])),
        '\\' => {
            let (delimiter, after) = first(text.get(1..)?)?;
            Some(pattern(after, delimiter)?.trim_start_matches(['I', 'M']))
        }
        _ => Some(text),
    }
}

/// What stands behind the pattern: a delimiter in a class is one of its characters.
fn pattern(text: &str, delimiter: char) -> Option<&str> {
    let mut rest = text;
    loop {
        let at = rest.find([delimiter, '\\', '['])?;
        let c = rest.get(at..)?.chars().next()?;
        let after = rest.get(at + c.len_utf8()..)?;
        rest = match c {
            _ if c == delimiter => return Some(after),
            '\\' => after.get(after.chars().next()?.len_utf8()..)?,
            _ => {
                // `[]x]` and `[^]x]`: a bracket that comes first is one of the class.
                let inner = after.strip_prefix('^').unwrap_or(after);
                let inner = inner.strip_prefix(']').unwrap_or(inner);
                class(inner)?
            }
        };
    }
}

/// What stands behind a class; `[:alpha:]` in it has brackets of its own.
fn class(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let at = rest.find(['[', ']', '\n'])?;
        let after = rest.get(at + 1..)?;
        match rest.get(at..at + 1)? {
            "]" => return Some(after),
            "[" => match after.chars().next() {
                Some(kind @ (':' | '.' | '=')) => {
                    let end = format!("{kind}]");
                    rest = after.get(1..)?.split_once(end.as_str())?.1;
                }
                _ => rest = after,
            },
            _ => return None,
        }
    }
}

/// What stands behind the next delimiter that is not escaped.
fn part(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == delimiter {
            return text.get(at + c.len_utf8()..);
        }
    }
    None
}

fn substitution<'t>(text: &'t str, out: &mut Vec<Effect>) -> Option<&'t str> {
    let (delimiter, after) = first(text)?;
    let mut rest = part(pattern(after, delimiter)?, delimiter)?;
    loop {
        let Some(flag) = rest.chars().next() else {
            return Some(rest);
        };
        match flag {
            'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => rest = rest.get(1..)?,
            'w' => {
                let (name, after) = line(rest.get(1..)?);
                named('w', name, out);
                return Some(after);
            }
            ';' | '}' | '\n' | ' ' | '\t' | '#' | '\r' => return Some(rest),
            _ => return None,
        }
    }
}
