//! Recognizes dry-run options, with which a program only says what it would do. Such an option
//! removes effects, so it must be certain that the program reads it as one: its value, the options
//! that undo it and its position all count.

use super::program_spec::{OptionMeaning, ProgramEffectSpec};
use crate::shell::CommandWord;

/// How a program's own parser reads such an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramDryRunOption {
    /// Values, attached with `=`, with which it still is a dry run.
    pub(super) values: &'static [&'static str],
    /// Options that undo it, or have an effect in spite of it.
    pub(super) undone_by: &'static [&'static str],
    /// Options that take no value. Behind any other option the dry-run option could be its value.
    pub(super) flags: &'static [&'static str],
    /// Whether it also counts behind an operand. getopt stops there if `POSIXLY_CORRECT` is set.
    pub(super) anywhere: bool,
}

const PLAIN: ProgramDryRunOption = ProgramDryRunOption {
    values: &[],
    undone_by: &[],
    flags: &["v", "verbose", "q", "quiet", "f", "force"],
    anywhere: true,
};

// `--apply` applies the patch in spite of `--stat` or `--check`.
pub(super) const GIT_APPLY: ProgramDryRunOption = ProgramDryRunOption {
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
pub(super) const GIT_FILES: ProgramDryRunOption = ProgramDryRunOption {
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
// The two options name a program that runs on the other side, with `--dry-run` as well.
pub(super) const GIT_PUSH: ProgramDryRunOption = ProgramDryRunOption {
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
// `--execute` is how `cargo release` leaves its dry run.
pub(super) const CARGO: ProgramDryRunOption = ProgramDryRunOption {
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
pub(super) const PACKAGES: ProgramDryRunOption = ProgramDryRunOption {
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
// A post-renderer is a program that runs in a dry run, too; `--output-dir` writes files.
pub(super) const HELM: ProgramDryRunOption = ProgramDryRunOption {
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
pub(super) const KUBECTL: ProgramDryRunOption = ProgramDryRunOption {
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
// `patch --dry-run` still writes the files that `-o` and `-r` name.
pub(super) const PATCH: ProgramDryRunOption = ProgramDryRunOption {
    undone_by: &["o", "output", "r", "reject-file"],
    flags: &[
        "f", "force", "N", "forward", "R", "reverse", "s", "silent", "quiet", "E", "l", "t", "u",
        "b", "verbose",
    ],
    anywhere: false,
    ..PLAIN
};
// A batch file is written in a dry run, too.
pub(super) const RSYNC: ProgramDryRunOption = ProgramDryRunOption {
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
/// Options with which the program prints something and ends.
pub(super) const PRINTS: ProgramDryRunOption = ProgramDryRunOption {
    flags: &["F", "s", "fixed-strings"],
    ..PLAIN
};

/// Whether a dry-run option of this row makes these words do nothing.
pub(super) fn is_dry_run_call(row: &ProgramEffectSpec, words: &[CommandWord]) -> bool {
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

/// Whether one of these options is certain to be read and none undoes it. `values`: letters that
/// take a value; `one_dash`: long names follow a single dash.
pub(super) fn has_certain_dry_run_option(
    words: &[CommandWord],
    names: &[&str],
    how: &ProgramDryRunOption,
    values: &str,
    one_dash: bool,
) -> bool {
    let mut found = false;
    let mut operands = false;
    // Whether the word before this one cannot take it for its value.
    let mut free = true;
    for (at, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.as_literal() else {
            // It may expand to any option, one that undoes the dry run among them.
            if word.literal_prefix_of_word().is_empty()
                || word.literal_prefix_of_word().starts_with('-')
            {
                return false;
            }
            (operands, free) = (true, true);
            continue;
        };
        // Behind it all words are operands, whatever they look like.
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
        // An option is not counted where the word before may take it for its value.
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
                // `--dry-run=none` and `--dry-run false` switch it off in some programs.
                let said = value.is_none_or(|value| how.values.contains(&value));
                if !said
                    || value.is_none() && words.get(at + 1).is_some_and(may_be_off_value_of_switch)
                {
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
            // The rest of the cluster, or else the next word, is the value.
            if letters.starts_with(takes_value) {
                free = letters.chars().nth(1).is_some();
                continue;
            }
            // Only letters before the first unknown one count: that one may take the rest as its
            // value.
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

/// Whether a long option, possibly abbreviated, negates the dry run or acts in spite of it.
fn undoes_dry_run_option(name: &str, names: &[&str], how: &ProgramDryRunOption) -> bool {
    // Git accepts `--no-dry` for `--no-dry-run`.
    let negated = |known: &&str| {
        let no = format!("no-{known}");
        name.len() > 3 && no.starts_with(name)
    };
    let beside = |known: &&&str| !name.is_empty() && known.len() > 1 && known.starts_with(name);
    !names.contains(&name)
        && (names.iter().any(negated) || how.undone_by.iter().any(|known| beside(&known)))
}

/// Whether the word may be read as the value "off" of the switch before it.
fn may_be_off_value_of_switch(word: &CommandWord) -> bool {
    let off = ["false", "none", "null", "no", "off", "0"];
    word.as_literal().is_none_or(|text| off.contains(&text))
}
