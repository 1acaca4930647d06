//! Options with which a program only says what it would do. One removes effects, so it has to be
//! certain that the program reads it: its value, what undoes it and where it stands all count.

use super::program_spec::{OptionMeaning, ProgramSpec};
use crate::shell::CommandWord;

/// What a program's own reader makes of such an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DryRunOption {
    /// Values, attached with `=`, with which it still is one.
    pub(super) values: &'static [&'static str],
    /// Options that undo it, or do something beside it.
    pub(super) undone_by: &'static [&'static str],
    /// Options that take no value. Behind any other it could be the value.
    pub(super) flags: &'static [&'static str],
    /// It counts behind an operand too, whatever `POSIXLY_CORRECT` says.
    pub(super) anywhere: bool,
}

const PLAIN: DryRunOption = DryRunOption {
    values: &[],
    undone_by: &[],
    flags: &["v", "verbose", "q", "quiet", "f", "force"],
    anywhere: true,
};

pub(super) const GIT_APPLY: DryRunOption = DryRunOption {
    undone_by: &["apply", "build-fake-ancestor"],
    flags: &[
        "v",
        "verbose",
        "q",
        "quiet",
        "3",
        "3way",
        "R",
        "reverse",
        "index",
        "cached",
        "reject",
        "recount",
        "N",
        "intent-to-add",
        "unidiff-zero",
        "z",
    ],
    ..PLAIN
};
/// `git rm`, `git clean`: `-n` in a cluster of letters without values.
pub(super) const GIT_FILES: DryRunOption = DryRunOption {
    flags: &[
        "r",
        "f",
        "d",
        "x",
        "X",
        "q",
        "quiet",
        "force",
        "ignore-unmatch",
    ],
    ..PLAIN
};
pub(super) const GIT_PUSH: DryRunOption = DryRunOption {
    undone_by: &["receive-pack", "exec"],
    flags: &[
        "f",
        "force",
        "u",
        "set-upstream",
        "v",
        "verbose",
        "q",
        "quiet",
        "tags",
        "follow-tags",
        "all",
        "mirror",
        "prune",
        "d",
        "delete",
        "porcelain",
        "progress",
        "no-verify",
        "atomic",
        "force-with-lease",
        "force-if-includes",
    ],
    ..PLAIN
};
pub(super) const CARGO: DryRunOption = DryRunOption {
    undone_by: &["x", "execute"],
    flags: &[
        "v",
        "verbose",
        "q",
        "quiet",
        "allow-dirty",
        "no-verify",
        "locked",
        "offline",
        "frozen",
        "workspace",
        "all-features",
        "no-default-features",
        "keep-going",
    ],
    ..PLAIN
};
pub(super) const PACKAGES: DryRunOption = DryRunOption {
    values: &["true"],
    flags: &[
        "v",
        "verbose",
        "q",
        "quiet",
        "provenance",
        "build",
        "clean",
        "skip-publish",
        "snapshot",
    ],
    ..PLAIN
};
pub(super) const HELM: DryRunOption = DryRunOption {
    values: &["client", "server", "true"],
    undone_by: &["post-renderer", "post-renderer-args", "output-dir"],
    flags: &[
        "debug",
        "wait",
        "atomic",
        "force",
        "i",
        "install",
        "create-namespace",
        "dependency-update",
    ],
    ..PLAIN
};
pub(super) const KUBECTL: DryRunOption = DryRunOption {
    values: &["client", "server"],
    flags: &[
        "all",
        "force",
        "A",
        "all-namespaces",
        "R",
        "recursive",
        "now",
        "ignore-daemonsets",
    ],
    ..PLAIN
};
pub(super) const PATCH: DryRunOption = DryRunOption {
    undone_by: &["o", "output", "r", "reject-file"],
    flags: &[
        "f", "force", "N", "forward", "R", "reverse", "s", "silent", "quiet", "E", "l", "t", "u",
        "b", "verbose",
    ],
    anywhere: false,
    ..PLAIN
};
pub(super) const RSYNC: DryRunOption = DryRunOption {
    undone_by: &["write-batch", "only-write-batch"],
    flags: &[
        "a",
        "v",
        "z",
        "r",
        "l",
        "p",
        "t",
        "g",
        "o",
        "D",
        "h",
        "P",
        "c",
        "u",
        "x",
        "H",
        "A",
        "X",
        "S",
        "W",
        "q",
        "i",
        "K",
        "L",
        "k",
        "m",
        "O",
        "J",
        "R",
        "d",
        "archive",
        "verbose",
        "compress",
        "recursive",
        "delete",
        "progress",
        "stats",
        "human-readable",
        "itemize-changes",
        "delete-after",
    ],
    anywhere: false,
    ..PLAIN
};
/// Options that print something and end.
pub(super) const PRINTS: DryRunOption = DryRunOption {
    flags: &["F", "s", "fixed-strings"],
    ..PLAIN
};

/// Whether one of the options of this row that say so makes these words do nothing.
pub(super) fn is_dry_run_call(row: &ProgramSpec, words: &[CommandWord]) -> bool {
    let mut names = Vec::new();
    let mut meaning = None;
    for (name, on) in row.option_meanings {
        if let OptionMeaning::Inert(how) = on {
            names.push(*name);
            meaning = Some(*how);
        }
    }
    meaning.is_some_and(|how| {
        has_certain_dry_run_option(words, &names, how, row.value_letters, row.single_dash)
    })
}

/// Whether one of these options is read for certain and none undoes it. `values`: letters that take
/// a value; `one_dash`: long names stand behind one dash.
pub(super) fn has_certain_dry_run_option(
    words: &[CommandWord],
    names: &[&str],
    how: &DryRunOption,
    values: &str,
    one_dash: bool,
) -> bool {
    let mut found = false;
    let mut operands = false;
    // Whether the word before this one cannot take it for its value.
    let mut free = true;
    for (at, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.as_literal() else {
            // It may become any option.
            if word.known_word_prefix().is_empty() || word.known_word_prefix().starts_with('-') {
                return false;
            }
            (operands, free) = (true, true);
            continue;
        };
        if text == "--" {
            break;
        }
        if text == "-" || !text.starts_with('-') {
            (operands, free) = (true, true);
            continue;
        }
        let long = text
            .strip_prefix("--")
            .or_else(|| text.strip_prefix('-').filter(|_| one_dash));
        let counts = free && (how.anywhere || !operands);
        if let Some(long) = long {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            if undoes_dry_run_option(name, names, how) {
                return false;
            }
            free = value.is_some() || how.flags.contains(&name);
            if names.contains(&name) {
                let said = value.is_none_or(|value| how.values.contains(&value));
                if !said || value.is_none() && words.get(at + 1).is_some_and(may_be_falsy_value) {
                    return false;
                }
                found |= counts;
                free = true;
            }
        } else {
            let letters = text.get(1..).unwrap_or("");
            let takes_value = |letter: char| values.contains(letter);
            let lone = |letter: char| how.flags.contains(&letter.to_string().as_str());
            let named = |letter: char| names.contains(&letter.to_string().as_str());
            if letters
                .chars()
                .any(|c| how.undone_by.contains(&c.to_string().as_str()))
            {
                return false;
            }
            if letters.starts_with(takes_value) {
                free = letters.chars().nth(1).is_some();
                continue;
            }
            let known = letters.chars().take_while(|c| lone(*c) || named(*c));
            let (length, hit) = known.fold((0, false), |(length, hit), c| {
                (length + c.len_utf8(), hit || named(c))
            });
            found |= counts && hit;
            free = length == letters.len();
        }
    }
    found
}

/// Whether a long option, which may be cut short, takes it back or does something beside it.
fn undoes_dry_run_option(name: &str, names: &[&str], how: &DryRunOption) -> bool {
    let negated = |known: &&str| {
        let no = format!("no-{known}");
        name.len() > 3 && no.starts_with(name)
    };
    let beside = |known: &&&str| !name.is_empty() && known.len() > 1 && known.starts_with(name);
    !names.contains(&name)
        && (names.iter().any(negated) || how.undone_by.iter().any(|known| beside(&known)))
}

/// A value that some readers take for a switch that stands before it.
fn may_be_falsy_value(word: &CommandWord) -> bool {
    let off = ["false", "none", "null", "no", "off", "0"];
    word.as_literal().is_none_or(|text| off.contains(&text))
}
