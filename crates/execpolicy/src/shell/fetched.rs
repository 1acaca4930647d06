//! Code from the network that nobody has read: what a program fetches and an interpreter runs in
//! the same request.

use super::feed::Feed;
use super::unfold::{Inner, unfold};
use super::word::{Known, Word};
use crate::effects::means::Names;
use crate::rules::basename;

/// Why a person is asked about it, and what to do instead.
pub(super) const HAZARD: &str =
    "runs code from the network that nobody has read: save it to a file, read it, then run that";

/// Programs that print or save what lies at an address.
const FETCHERS: &[&str] = &[
    "curl", "curlie", "wget", "wget2", "aria2c", "axel", "http", "https", "xh", "xhs", "fetch",
    "lynx", "w3m",
];

/// Wrappers inside one another.
const DEEPEST: usize = 4;

/// Whether this program, without its folder, is one of those.
pub(super) fn is_fetcher(name: &str) -> bool {
    FETCHERS.contains(&name)
}

/// Whether these words call one, also behind `sudo`, `env`, `timeout` and the like; a `file:` is
/// no address of the network.
pub(super) fn calls_fetcher(words: &[Word]) -> bool {
    let mut words = words.to_vec();
    for _ in 0..DEEPEST {
        let Some(name) = words.first().and_then(Word::as_program).map(basename) else {
            return false;
        };
        if is_fetcher(name) {
            return !words.iter().any(|word| word.text.starts_with("file:"));
        }
        words = match unfold(name, &words, &Feed::Nothing).pop() {
            Some(Inner::From(at)) => words.split_off(at.min(words.len())),
            Some(Inner::Command(words)) => words,
            _ => return false,
        };
    }
    false
}

/// Whether a text that stands for code is what a fetcher prints: `$(curl …)`, `<(curl …)`,
/// `` `curl …` ``, or a variable that is set to that.
pub(super) fn is_fetched(text: &str, names: &Names) -> bool {
    let text = text.trim_start();
    substitutes(text) || text.starts_with('$') && names.sets(text, |value| substitutes(&value.text))
}

/// Whether the text begins with a substitution in which a fetcher is called.
fn substitutes(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'']);
    let opens = ["$(", "<(", "=(", "`"];
    let Some(inside) = opens.iter().find_map(|open| text.strip_prefix(open)) else {
        return false;
    };
    let mut pieces = inside.split(['|', ';', '&', '(', '`', '\n', '{']);
    pieces.any(|piece| {
        let words = piece.split_whitespace();
        let words = words.skip_while(|word| Word::fixed(*word).is_assignment());
        let words: Vec<Word> = words
            .map(|word| match word.contains('$') {
                true => Word::open(word, Known::One),
                false => Word::fixed(word),
            })
            .collect();
        calls_fetcher(&words)
    })
}
