//! Detects code that a program downloads and an interpreter runs in the same request, so that
//! nobody has read it.

use super::nested_code::{NestedCode, code_run_by_command};
use super::stdin::StdinSource;
use super::word::{CommandWord, WordKnowledge};
use crate::effects::word_expansion::KnownShellVariables;
use crate::rule_set::basename;

/// The reason given to the person, with what to do instead.
pub(super) const DOWNLOAD_HAZARD: &str =
    "runs code from the network that nobody has read: save it to a file, read it, then run that";

/// Programs that print or save what they download.
const DOWNLOADERS: &[&str] = &[
    "curl", "curlie", "wget", "wget2", "aria2c", "axel", "http", "https", "xh", "xhs", "fetch",
    "lynx", "w3m",
];

/// The number of wrappers inside one another that are followed.
const DEEPEST: usize = 4;

/// Returns whether this program, given without its folder, is a downloader.
pub(super) fn is_downloader(name: &str) -> bool {
    DOWNLOADERS.contains(&name)
}

/// Returns whether these words call a downloader, also behind `sudo`, `env`, `timeout` and other
/// wrappers. A `file:` address does not count as a download.
pub(super) fn calls_downloader(words: &[CommandWord]) -> bool {
    let mut words = words.to_vec();
    for _ in 0..DEEPEST {
        let Some(name) = words
            .first()
            .and_then(CommandWord::program_path_if_known)
            .map(basename)
        else {
            return false;
        };
        if is_downloader(name) {
            return !words.iter().any(|word| word.text.starts_with("file:"));
        }
        // One wrapper is taken off in each round, so `sudo env curl` is found as well.
        words = match code_run_by_command(name, &words, &StdinSource::PlainFile).pop() {
            Some(NestedCode::WordsFrom(at)) => words.split_off(at.min(words.len())),
            Some(NestedCode::Command(words)) => words,
            _ => return false,
        };
    }
    false
}

/// Returns whether a text that stands for code is the output of a downloader: `$(curl …)`, `<(curl
/// …)`, `` `curl …` ``, or a variable that is set to one of these.
pub(super) fn is_code_from_downloader(text: &str, names: &KnownShellVariables) -> bool {
    let text = text.trim_start();
    begins_with_download_substitution(text)
        || text.starts_with('$')
            && names.leading_variable_may_satisfy(text, |value| {
                begins_with_download_substitution(&value.text)
            })
}

/// Returns whether the text begins with a substitution that calls a downloader.
fn begins_with_download_substitution(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'']);
    let opens = ["$(", "<(", "=(", "`"];
    let Some(inside) = opens.iter().find_map(|open| text.strip_prefix(open)) else {
        return false;
    };
    // The text is split at every character behind which a command can begin. Splitting inside
    // quotes can only add candidates, and a candidate only leads to a question.
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
