//! What a substitution of one plain command prints: `$(which rm)`, `<(echo rm -rf ~)`. The shell runs
//! it as a command, or reads it as one.

use super::feed::{Feed, printed};
use super::pieces;
use super::word::Word;
use crate::rules::basename;

/// What stands in `$(...)`, backquotes, `<(...)` or `=(...)` prints, if it is one command of which
/// that is known.
pub(super) fn of(text: &str) -> Option<Feed> {
    let inside = inside(text.trim())?;
    let [piece] = pieces::of(inside).try_into().ok()?;
    let pieces::Piece { members } = piece;
    let [member] = members.try_into().ok()?;
    let (words, written) = pieces::Member::words(&member);
    if !written.is_empty() || !member.substitutions().is_empty() {
        return None;
    }
    match looked_up(&words) {
        Some(name) => Some(Feed::Text {
            text: name.into(),
            sure: false,
        }),
        None => Some(printed(&words, &Feed::Nothing)),
    }
}

/// The words that the shell makes of it where a command is named.
pub(super) fn words_of(text: &str) -> Option<Vec<Word>> {
    match of(text)? {
        Feed::Text { text, .. } => Some(text.split_whitespace().map(Word::fixed).collect()),
        _ => None,
    }
}

fn inside(text: &str) -> Option<&str> {
    let opens = ["$(", "<(", "=("];
    match opens.iter().find_map(|open| text.strip_prefix(open)) {
        Some(inside) => inside.strip_suffix(')'),
        None => text.strip_prefix('`')?.strip_suffix('`'),
    }
}

/// The program whose path these words ask for.
fn looked_up(words: &[Word]) -> Option<&str> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::as_fixed).collect();
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
            let words = words_of(text).unwrap_or_default();
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
