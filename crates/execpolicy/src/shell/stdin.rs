//! Models what a command reads on its standard input, as far as the source determines it: a shell
//! that reads commands from there runs them.

use std::rc::Rc;

use super::quoting;
use super::word::{CommandWord, WordKnowledge};
use crate::effects;

/// Standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum StdinSource {
    /// The agent's own input: what it types while the command runs is shown to no hook.
    Interactive,
    /// A plain file, or other input that this script does not make.
    PlainFile,
    /// This text; not `sure` if expansions stand in it.
    Text {
        /// The text.
        text: Rc<str>,
        /// Whether it holds no expansion.
        sure: bool,
    },
    /// A list of file names like these, one on each line.
    Paths(Rc<[CommandWord]>),
    /// The output of another command.
    CommandOutput,
    /// The output of another command, with content from the network.
    Downloaded,
}

impl StdinSource {
    /// Input that consists of this text.
    fn stdin_source_from_text(text: String, sure: bool) -> Self {
        Self::Text {
            text: text.into(),
            sure,
        }
    }

    /// Input from the body of a heredoc.
    pub(crate) fn stdin_from_heredoc(body: &str, expands: bool, sure: bool) -> Self {
        if !expands {
            return Self::stdin_source_from_text(body.to_owned(), true);
        }
        let mut text = String::with_capacity(body.len());
        quoting::unescape_double_quoted(body, false, &mut text);
        Self::stdin_source_from_text(text, sure)
    }

    /// Input from the word after `<<<`.
    pub(crate) fn stdin_from_herestring(word: &CommandWord) -> Self {
        Self::stdin_source_from_text(word.text.clone(), word.knowledge == WordKnowledge::Literal)
    }
}

/// Returns what a command with these words prints, if the words tell.
pub(crate) fn predicted_command_output(words: &[CommandWord], input: &StdinSource) -> StdinSource {
    let Some((name, arguments)) = words.split_first() else {
        return StdinSource::CommandOutput;
    };
    match name.as_literal() {
        Some("echo") => stdin_source_from_echo(arguments),
        Some("printf") => printf_piped_output(arguments),
        // `cat` without a file passes its input on.
        Some("cat" | "/bin/cat" | "/usr/bin/cat")
            if arguments.iter().all(|word| word.as_literal() == Some("-")) =>
        {
            match input {
                StdinSource::Text { .. } => input.clone(),
                StdinSource::Paths(_) => input.clone(),
                StdinSource::Downloaded => StdinSource::Downloaded,
                StdinSource::Interactive | StdinSource::PlainFile | StdinSource::CommandOutput => {
                    StdinSource::CommandOutput
                }
            }
        }
        // A filter that keeps whole lines makes a list of file names a shorter or reordered one.
        Some("sort" | "head" | "tail" | "uniq" | "tr" | "shuf" | "tac" | "grep" | "egrep")
            if matches!(input, StdinSource::Paths(_)) && filter_keeps_whole_lines(arguments) =>
        {
            input.clone()
        }
        Some(_) => effects::printed_file_names(words).map_or(StdinSource::CommandOutput, |names| {
            StdinSource::Paths(names.into())
        }),
        None => StdinSource::CommandOutput,
    }
}

/// Returns whether a filter leaves the lines as they are, and reads its input and no file.
fn filter_keeps_whole_lines(arguments: &[CommandWord]) -> bool {
    arguments.iter().all(|word| {
        word.as_literal().is_some_and(|text| {
            !text.contains('/')
                && !matches!(
                    text,
                    "-o" | "-oE" | "-Eo" | "-oP" | "-n" | "-c" | "-A" | "-B" | "-C"
                )
                || text.starts_with("-n")
        })
    })
}

fn stdin_source_from_echo(arguments: &[CommandWord]) -> StdinSource {
    let flag = |word: &&CommandWord| {
        word.as_literal().is_some_and(|text| {
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
    let sure = words
        .iter()
        .all(|word| word.knowledge == WordKnowledge::Literal)
        && !text.contains('\\');
    StdinSource::stdin_source_from_text(text, sure)
}

fn printf_piped_output(arguments: &[CommandWord]) -> StdinSource {
    let Some((format, values)) = arguments.split_first() else {
        return StdinSource::CommandOutput;
    };
    let format = format.text.replace("\\n", "\n");
    let sure = arguments
        .iter()
        .all(|word| word.knowledge == WordKnowledge::Literal);
    // Other directives and escapes are not modelled.
    if format.replace("%s", "").contains(['%', '\\']) || format.starts_with('-') {
        return StdinSource::CommandOutput;
    }
    let holes = format.matches("%s").count();
    if holes == 0 {
        return StdinSource::stdin_source_from_text(format, sure);
    }
    let mut text = String::new();
    // `printf` starts its format again as long as values are left.
    for round in values.chunks(holes) {
        let mut values = round.iter();
        for (at, piece) in format.split("%s").enumerate() {
            if at > 0 {
                text.push_str(values.next().map_or("", |word| word.text.as_str()));
            }
            text.push_str(piece);
        }
    }
    StdinSource::stdin_source_from_text(text, sure)
}
