//! What a command reads on its standard input, as far as the source fixes it: a shell
//! that reads commands from there runs them.

use std::rc::Rc;

use super::quote;
use super::word::{Known, Word};
use crate::effects;

/// Standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Feed {
    /// The agent's own: what it types while the command runs is shown to no hook.
    Open,
    /// A plain file: nothing of this script's making.
    Nothing,
    /// This text; not `sure` if expansions stand in it.
    Text {
        /// The text.
        text: Rc<str>,
        /// Whether it holds no expansion.
        sure: bool,
    },
    /// Names of files like these, one a line.
    Paths(Rc<[Word]>),
    /// Some other command's output.
    Unknown,
    /// The same, and what it is made of comes from the network.
    Fetched,
}

impl Feed {
    /// A text from words, as `echo` joins them.
    fn of(text: String, sure: bool) -> Self {
        Self::Text {
            text: text.into(),
            sure,
        }
    }

    /// The body of a heredoc.
    pub(crate) fn heredoc(body: &str, expands: bool, sure: bool) -> Self {
        if !expands {
            return Self::of(body.to_owned(), true);
        }
        let mut text = String::with_capacity(body.len());
        quote::double_quoted(body, false, &mut text);
        Self::of(text, sure)
    }

    /// The word after `<<<`.
    pub(crate) fn herestring(word: &Word) -> Self {
        Self::of(word.text.clone(), word.known == Known::Fixed)
    }
}

/// What a command with these words prints, if that can be told from them.
pub(crate) fn printed(words: &[Word], input: &Feed) -> Feed {
    let Some((name, arguments)) = words.split_first() else {
        return Feed::Unknown;
    };
    match name.as_fixed() {
        Some("echo") => echo(arguments),
        Some("printf") => printf(arguments),
        Some("cat" | "/bin/cat" | "/usr/bin/cat")
            if arguments.iter().all(|word| word.as_fixed() == Some("-")) =>
        {
            match input {
                Feed::Text { .. } => input.clone(),
                Feed::Paths(_) => input.clone(),
                Feed::Fetched => Feed::Fetched,
                Feed::Open | Feed::Nothing | Feed::Unknown => Feed::Unknown,
            }
        }
        Some("sort" | "head" | "tail" | "uniq" | "tr" | "shuf" | "tac" | "grep" | "egrep")
            if matches!(input, Feed::Paths(_)) && filters(arguments) =>
        {
            input.clone()
        }
        Some(_) => {
            effects::names_printed(words).map_or(Feed::Unknown, |names| Feed::Paths(names.into()))
        }
        None => Feed::Unknown,
    }
}

/// Whether a filter leaves the lines as they are, and reads no file instead.
fn filters(arguments: &[Word]) -> bool {
    arguments.iter().all(|word| {
        word.as_fixed().is_some_and(|text| {
            !text.contains('/')
                && !matches!(
                    text,
                    "-o" | "-oE" | "-Eo" | "-oP" | "-n" | "-c" | "-A" | "-B" | "-C"
                )
                || text.starts_with("-n")
        })
    })
}

fn echo(arguments: &[Word]) -> Feed {
    let flag = |word: &&Word| {
        word.as_fixed().is_some_and(|text| {
            text.len() > 1
                && text
                    .strip_prefix('-')
                    .is_some_and(|f| f.chars().all(|c| "neE".contains(c)))
        })
    };
    let flags = arguments.iter().take_while(flag).count();
    let words = arguments.get(flags..).unwrap_or(&[]);
    let text = words
        .iter()
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    // Whether `echo` itself reads backslashes depends on the shell and its options.
    let sure = words.iter().all(|word| word.known == Known::Fixed) && !text.contains('\\');
    Feed::of(text, sure)
}

fn printf(arguments: &[Word]) -> Feed {
    let Some((format, values)) = arguments.split_first() else {
        return Feed::Unknown;
    };
    let format = format.text.replace("\\n", "\n");
    let sure = arguments.iter().all(|word| word.known == Known::Fixed);
    if format.replace("%s", "").contains(['%', '\\']) || format.starts_with('-') {
        return Feed::Unknown;
    }
    let holes = format.matches("%s").count();
    if holes == 0 {
        return Feed::of(format, sure);
    }
    let mut text = String::new();
    for round in values.chunks(holes) {
        let mut values = round.iter();
        for (at, piece) in format.split("%s").enumerate() {
            if at > 0 {
                text.push_str(values.next().map_or("", |word| word.text.as_str()));
            }
            text.push_str(piece);
        }
    }
    Feed::of(text, sure)
}
