//! Determines what a substitution of one plain command prints: `$(which rm)`, `<(echo rm -rf ~)`.
//! The shell runs this output as a command, or reads commands from it.

use super::fragments;
use super::stdin::{StdinSource, predicted_command_output};
use super::word::CommandWord;
use crate::rule_set::basename;

/// Returns what the text in `$(...)`, backquotes, `<(...)` or `=(...)` prints, if it is a single
/// command whose output is known.
pub(super) fn shell_substitution_output(text: &str) -> Option<StdinSource> {
    let inside = command_substitution_body(text.trim())?;
    let [piece] = fragments::split_script_fragments(inside).try_into().ok()?;
    let fragments::ScriptPipeline { members } = piece;
    let [member] = members.try_into().ok()?;
    let (words, written) = fragments::PipelineMember::words_and_write_targets(&member);
    // Output that goes to a file, or that depends on another substitution, is not known.
    if !written.is_empty() || !member.substitution_scripts().is_empty() {
        return None;
    }
    // `which rm` prints a path on this machine, of which only the name at its end is known.
    match program_queried_by_which(&words) {
        Some(name) => Some(StdinSource::Text {
            text: name.into(),
            sure: false,
        }),
        None => Some(predicted_command_output(&words, &StdinSource::PlainFile)),
    }
}

/// Returns the words that the shell makes of this output where a command is named.
pub(super) fn words_printed_by_substitution(text: &str) -> Option<Vec<CommandWord>> {
    match shell_substitution_output(text)? {
        StdinSource::Text { text, .. } => Some(
            text.split_whitespace()
                .map(CommandWord::new_literal_word)
                .collect(),
        ),
        _ => None,
    }
}

fn command_substitution_body(text: &str) -> Option<&str> {
    let opens = ["$(", "<(", "=("];
    match opens.iter().find_map(|open| text.strip_prefix(open)) {
        Some(inside) => inside.strip_suffix(')'),
        None => text.strip_prefix('`')?.strip_suffix('`'),
    }
}

/// Returns the program whose path these words ask for.
fn program_queried_by_which(words: &[CommandWord]) -> Option<&str> {
    let texts: Option<Vec<&str>> = words.iter().map(CommandWord::as_literal).collect();
    let texts = texts?;
    let (name, rest) = texts.split_first()?;
    let asks = match basename(name) {
        "which" | "whence" => true,
        "command" => rest.first() == Some(&"-v"),
        "type" => matches!(rest.first(), Some(&("-p" | "-P"))),
        _ => false,
    };
    rest.last().copied().filter(|_| asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_plain_command() {
        let check = |text: &str, expected: &[&str]| {
            let words = words_printed_by_substitution(text).unwrap_or_default();
            let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            assert_eq!(words, expected, "{text}");
        };
        check("$(which rm)", &["rm"]);
        check("`command -v rm`", &["rm"]);
        check("$(type -P rm)", &["rm"]);
        check("<(echo 'rm -rf ~; x')", &["rm", "-rf", "~;", "x"]);
        check("$(printf '%s ' rm x)", &["rm", "x"]);
        check("$(which rm; echo x)", &[]);
        check("$(cat x)", &[]);
        check("$(echo $(cat x))", &[]);
        check("$(echo x > y)", &[]);
        check("rm", &[]);
    }
}
