//! Code from the network that nobody has read: what a program fetches and an interpreter runs in
//! the same request.

use super::nested_code::{NestedCode, nested_code};
use super::stdin::StdinSource;
use super::word::{CommandWord, WordKnowledge};
use crate::effects::word_expansion::KnownShellVariables;
use crate::rule_set::basename;

/// Why a person is asked about it, and what to do instead.
pub(super) const DOWNLOAD_HAZARD: &str =
    "runs code from the network that nobody has read: save it to a file, read it, then run that";

/// Programs that print or save what lies at an address.
const DOWNLOADERS: &[&str] = &[
    "curl", "curlie", "wget", "wget2", "aria2c", "axel", "http", "https", "xh", "xhs", "fetch",
    "lynx", "w3m",
];

/// Wrappers inside one another.
const DEEPEST: usize = 4;

/// Whether this program, without its folder, is one of those.
pub(super) fn is_downloader(name: &str) -> bool {
    DOWNLOADERS.contains(&name)
}

/// Whether these words call one, also behind `sudo`, `env`, `timeout` and the like; a `file:` is
/// no address of the network.
pub(super) fn calls_downloader(words: &[CommandWord]) -> bool {
    let mut words = words.to_vec();
    for _ in 0..DEEPEST {
        let Some(name) = words
            .first()
            .and_then(CommandWord::as_program_name)
            .map(basename)
        else {
            return false;
        };
        if is_downloader(name) {
            return !words.iter().any(|word| word.text.starts_with("file:"));
        }
        words = match nested_code(name, &words, &StdinSource::PlainFile).pop() {
            Some(NestedCode::WordsFrom(at)) => words.split_off(at.min(words.len())),
            Some(NestedCode::Command(words)) => words,
            _ => return false,
        };
    }
    false
}

/// Whether a text that stands for code is what a fetcher prints: `$(curl …)`, `<(curl …)`,
/// `` `curl …` ``, or a variable that is set to that.
pub(super) fn is_output_of_download_command(text: &str, names: &KnownShellVariables) -> bool {
    let text = text.trim_start();
    substitutes_download(text)
        || text.starts_with('$')
            && names.leading_variable_matches(text, |value| substitutes_download(&value.text))
}

/// Whether the text begins with a substitution in which a fetcher is called.
fn substitutes_download(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'']);
    let opens = ["$(", "<(", "=(", "`"];
    let Some(inside) = opens.iter().find_map(|open| text.strip_prefix(open)) else {
        return false;
    };
    let mut pieces = inside.split(['|', ';', '&', '(', '`', '\n', '{']);
    pieces.any(|piece| {
        let words = piece.split_whitespace();
        let words = words.skip_while(|word| CommandWord::new_literal_word(*word).is_assignment());
        let words: Vec<CommandWord> = words
            .map(|word| match word.contains('$') {
                true => CommandWord::word_from_unresolved_text(word, WordKnowledge::SingleWord),
                false => CommandWord::new_literal_word(word),
            })
            .collect();
        calls_downloader(&words)
    })
}
