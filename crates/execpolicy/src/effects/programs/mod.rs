//! Holds the program table: the rows, with one file per family of programs, and the lookup by name.

mod archives;
mod autoload;
mod builds;
mod checkers;
mod compilers;
mod containers;
mod data;
mod disks;
mod editors;
mod files;
mod forges;
mod git;
mod http;
mod network;
mod node;
mod packages;
mod shells;
mod system;
mod system_packages;
mod text;
mod toolchains;

pub(crate) use autoload::files_autoloaded_by_program;
pub(super) use http::is_url_of_this_machine;

use super::program_spec::ProgramEffectSpec;
use crate::shell::CommandWord;

/// Families whose programs write what they build from the project or fetch from a registry.
const BUILDERS: &[&[ProgramEffectSpec]] = &[
    git::SPECS,
    checkers::SPECS,
    builds::SPECS,
    compilers::SPECS,
    toolchains::SPECS,
    node::SPECS,
    packages::SPECS,
    system_packages::SPECS,
    containers::SPECS,
];

const OTHERS: &[&[ProgramEffectSpec]] = &[
    text::SPECS,
    files::SPECS,
    shells::SPECS,
    http::SPECS,
    forges::SPECS,
    network::SPECS,
    editors::SPECS,
    archives::SPECS,
    data::SPECS,
    system::SPECS,
    disks::SPECS,
];

/// Whether a program belongs to one of the [`BUILDERS`].
pub(super) fn is_build_program(name: &str) -> bool {
    let mut rows = BUILDERS.iter().flat_map(|family| family.iter());
    rows.any(|row| row.names.contains(&name))
}

/// Returns the row of a program, given its name without folder.
pub(super) fn find_program_spec(name: &str) -> Option<&'static ProgramEffectSpec> {
    let row = |name: &str| {
        (OTHERS.iter().chain(BUILDERS))
            .flat_map(|family| family.iter())
            .find(|row| row.names.contains(&name))
    };
    // `mkfs.ext4` has no row of its own, and counts as `mkfs`.
    let kind = || disks::mkfs_program_family(name).and_then(row);
    row(name).or_else(kind).or_else(|| {
        // A version is not part of the name: `python3.12`, `gcc-13`, `clang++-17`.
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        (plain != name && !plain.is_empty())
            .then(|| row(plain))
            .flatten()
    })
}

/// Returns the file names that a command prints one per line, if it prints nothing else.
pub(crate) fn printed_file_names(words: &[CommandWord]) -> Option<Vec<CommandWord>> {
    let (first, rest) = words.split_first()?;
    let name = crate::rule_set::basename(first.as_literal()?);
    let flag = |wanted: &[&str]| {
        rest.iter()
            .any(|word| word.as_literal().is_some_and(|text| wanted.contains(&text)))
    };
    let lists = |wanted: char| {
        rest.iter().any(|word| {
            let text = word.literal_prefix_of_word();
            text.starts_with('-') && !text.starts_with("--") && text.contains(wanted)
        })
    };
    let operands: Vec<&CommandWord> = rest
        .iter()
        .filter(|word| !word.literal_prefix_of_word().starts_with('-'))
        .collect();
    let below = |folders: &[&CommandWord]| -> Vec<CommandWord> {
        let all = |folder: &&CommandWord| files::path_pattern_of_find_results(folder, None, true);
        match folders {
            [] => vec![CommandWord::new_literal_word("**/?*")],
            folders => folders.iter().map(all).collect(),
        }
    };
    match name {
        "find" | "gfind" => {
            // With these it prints more than names, or runs something.
            let shaped = flag(&["-printf", "-fprintf", "-ls", "-exec", "-execdir", "-fls"]);
            (!shaped).then(|| paths_found_by_find(words))
        }
        "git" => match rest
            .iter()
            .find_map(|word| word.as_literal().filter(|text| !text.starts_with('-')))
        {
            Some("ls-files") => Some(vec![CommandWord::new_literal_word("**/?*")]),
            Some("diff" | "show" | "log" | "diff-tree" | "diff-index")
                if flag(&["--name-only"]) =>
            {
                Some(vec![CommandWord::new_literal_word("**/?*")])
            }
            Some("grep") if lists('l') || flag(&["--name-only", "--files-with-matches"]) => {
                Some(vec![CommandWord::new_literal_word("**/?*")])
            }
            _ => None,
        },
        "grep" | "egrep" | "fgrep"
            if lists('l') || lists('L') || flag(&["--files-with-matches"]) =>
        {
            Some(match operands.get(1..) {
                Some(folders) if lists('r') || lists('R') || flag(&["--recursive"]) => {
                    // The operand may be a folder, or a file that is printed under its own name.
                    let mut found = below(folders);
                    found.extend(folders.iter().map(|word| (*word).clone()));
                    found
                }
                Some(files) => files.iter().map(|word| (*word).clone()).collect(),
                None => below(&[]),
            })
        }
        "rg" if lists('l') || flag(&["--files-with-matches", "--files"]) => {
            // With `--files` there is no pattern before the folders.
            let skip = usize::from(!flag(&["--files"]));
            let folders = operands.get(skip..).unwrap_or(&[]);
            let mut found = below(folders);
            found.extend(folders.iter().map(|word| (*word).clone()));
            Some(found)
        }
        "fd" | "fdfind" => Some(files::paths_found_by_fd(words)),
        "ls" if !lists('l') && !lists('R') && !lists('s') && !lists('i') => {
            Some(match operands.as_slice() {
                // `ls` prints names without their folder.
                [] => vec![CommandWord::new_literal_word("?*")],
                folders => folders
                    .iter()
                    .flat_map(|word| match word.knowledge {
                        crate::shell::WordKnowledge::Unbounded => vec![(*word).clone()],
                        // A script that uses these names without the folder means the files in it,
                        // so both are returned.
                        _ => {
                            let mut there = (*word).clone();
                            there.append_word_without_blank(&CommandWord::new_literal_word("/?*"));
                            vec![CommandWord::new_literal_word("?*"), there]
                        }
                    })
                    .collect(),
            })
        }
        _ => None,
    }
}

/// Returns what `{}` stands for in the commands of `find`.
pub(crate) fn paths_found_by_find(words: &[CommandWord]) -> Vec<CommandWord> {
    let (starts, names) = files::starts_and_names_of_find(words);
    let mut found = files::path_patterns_of_find_results(&starts, &names, true);
    // Without a filter `find` also yields the starting points themselves.
    if !files::has_find_filter(words) {
        found.extend(starts);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names that stand in two of these rows, or below one of them.
    fn twice<'a>(rows: impl Iterator<Item = &'a ProgramEffectSpec>) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let mut twice = Vec::new();
        for row in rows {
            twice.extend(row.names.iter().filter(|name| !seen.insert(**name)));
            twice.extend(super::tests::twice(row.subcommands.iter()));
        }
        twice
    }

    /// The second one would say nothing.
    #[test]
    fn a_program_has_one_row() {
        let rows = OTHERS.iter().chain(BUILDERS).flat_map(|family| *family);
        assert_eq!(twice(rows), [""; 0]);
    }
}
