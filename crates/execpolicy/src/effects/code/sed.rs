//! Judges sed scripts: commands that run something (`e`, `s///e`) or name a file (`r`, `w`). A
//! script that is not understood to its end counts as unreadable. Follows GNU sed.

use crate::effects::program_spec::NonFileEffectKind;
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

/// Adds what a script does besides editing its input.
pub(in crate::effects) fn sed_script_effects(script: &CommandWord, out: &mut Vec<CommandEffect>) {
    let text = script.text.as_str();
    if script.knowledge != WordKnowledge::Literal {
        // A value in `s/$OLD/$NEW/g` could end the command and begin another one. Plain
        // substitutions and line ranges are accepted all the same, because they are everyday work.
        let inner = text.starts_with(['s', 'y']) && is_plain_sed_substitution(text)
            || is_sed_line_range(text);
        if !inner {
            out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        }
        return;
    }
    if analyze_sed_script(text, out).is_none() {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

/// Whether this is one substitution with harmless flags at its end. A variable in it counts as
/// text.
fn is_plain_sed_substitution(text: &str) -> bool {
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

/// Whether the script selects lines by number: `$1,${2}p`.
fn is_sed_line_range(text: &str) -> bool {
    text.ends_with(['p', 'd', 'q'])
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "$,{}_ +;-()".contains(c))
        && !text.contains("$(")
}

/// Parses a script to its end. Returns `None` if it is not understood or runs something.
fn analyze_sed_script(text: &str, out: &mut Vec<CommandEffect>) -> Option<()> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        if rest.is_empty() {
            return Some(());
        }
        // Phase 1 of each command: up to two addresses.
        rest = skip_sed_address(rest)?;
        if let Some(after) = rest.trim_start().strip_prefix(',') {
            let after = after.trim_start();
            rest = skip_sed_address(after.trim_start_matches(['+', '~']))?;
        }
        rest = rest.trim_start_matches([' ', '\t', '!']);
        // Phase 2: the command letter, and its arguments as far as they must be skipped.
        let Some(command) = rest.chars().next() else {
            return Some(());
        };
        let after = rest.get(command.len_utf8()..)?;
        rest = match command {
            '{' | '}' | ';' | '\n' => after,
            '#' => split_first_line(after).1,
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
                after
            }
            'l' | 'L' | 'q' | 'Q' => after
                .trim_start()
                .trim_start_matches(|c: char| c.is_ascii_digit()),
            'a' | 'i' | 'c' => skip_sed_text(after),
            // A label ends at a blank, too, so that the command behind it is not skipped.
            ':' | 'b' | 't' | 'T' | 'v' => after
                .trim_start_matches([' ', '\t'])
                .split_once([';', '\n', '}', ' ', '\t'])
                .map_or("", |(_, rest)| rest),
            // A file name goes on to the end of the line; `;` and `}` are part of it.
            'r' | 'R' | 'w' | 'W' => {
                let (name, rest) = split_first_line(after);
                add_sed_r_or_w_command_effect(command, name, out);
                rest
            }
            's' => sed_substitution_effects(after, out)?,
            'y' => {
                let (delimiter, after) = take_sed_delimiter(after)?;
                text_after_unescaped_delimiter(
                    text_after_unescaped_delimiter(after, delimiter)?,
                    delimiter,
                )?
            }
            // `e` runs a command; an unknown command may do so, too.
            _ => return None,
        };
    }
}

fn add_sed_r_or_w_command_effect(command: char, name: &str, out: &mut Vec<CommandEffect>) {
    let act = if matches!(command, 'w' | 'W') {
        FileAccess::Write
    } else {
        FileAccess::Read
    };
    out.push(CommandEffect::File(
        act,
        CommandWord::new_literal_word(name.trim()),
    ));
}

fn take_sed_delimiter(text: &str) -> Option<(char, &str)> {
    let c = text.chars().next().filter(|c| *c != '\n' && *c != '\\')?;
    Some((c, text.get(c.len_utf8()..)?))
}

fn split_first_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// Skips the text of `a`, `i` or `c`, which goes on to the next line after a `\`.
fn skip_sed_text(text: &str) -> &str {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == '\n' && !escaped {
            return text.get(at + 1..).unwrap_or("");
        }
        escaped = c == '\\' && !escaped;
    }
    ""
}

/// Skips an address, if there is one.
fn skip_sed_address(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    let c = text.chars().next()?;
    match c {
        '0'..='9' => Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~')),
        '$' => text.get(1..),
        '/' => Some(text_after_sed_pattern(text.get(1..)?, '/')?.trim_start_matches(['I', 'M'])),
        '\\' => {
            let (delimiter, after) = take_sed_delimiter(text.get(1..)?)?;
            Some(text_after_sed_pattern(after, delimiter)?.trim_start_matches(['I', 'M']))
        }
        _ => Some(text),
    }
}

/// Skips a pattern. A delimiter inside of a bracket expression does not end it.
fn text_after_sed_pattern(text: &str, delimiter: char) -> Option<&str> {
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
                skip_sed_bracket_class(inner)?
            }
        };
    }
}

/// Skips a bracket expression; `[:alpha:]` in it has brackets of its own.
fn skip_sed_bracket_class(text: &str) -> Option<&str> {
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

/// Skips to behind the next delimiter that is not escaped.
fn text_after_unescaped_delimiter(text: &str, delimiter: char) -> Option<&str> {
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

fn sed_substitution_effects<'t>(text: &'t str, out: &mut Vec<CommandEffect>) -> Option<&'t str> {
    let (delimiter, after) = take_sed_delimiter(text)?;
    let mut rest =
        text_after_unescaped_delimiter(text_after_sed_pattern(after, delimiter)?, delimiter)?;
    loop {
        let Some(flag) = rest.chars().next() else {
            return Some(rest);
        };
        match flag {
            'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => rest = rest.get(1..)?,
            // The flag `w` writes a file; `e`, which runs the result, is refused below.
            'w' => {
                let (name, after) = split_first_line(rest.get(1..)?);
                add_sed_r_or_w_command_effect('w', name, out);
                return Some(after);
            }
            ';' | '}' | '\n' | ' ' | '\t' | '#' | '\r' => return Some(rest),
            _ => return None,
        }
    }
}
