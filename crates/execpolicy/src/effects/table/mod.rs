//! The rows, a file for each family of programs.

mod archives;
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
mod loads;
mod network;
mod node;
mod packages;
mod shells;
mod system;
mod system_packages;
mod text;
mod toolchains;

pub(super) use http::is_local;
pub(crate) use loads::loads;

use super::row::Row;
use crate::shell::Word;

/// Programs that write what they make of the project, or what a registry brings.
const BUILDERS: &[&[Row]] = &[
    git::ROWS,
    checkers::ROWS,
    builds::ROWS,
    compilers::ROWS,
    toolchains::ROWS,
    node::ROWS,
    packages::ROWS,
    system_packages::ROWS,
    containers::ROWS,
];

const OTHERS: &[&[Row]] = &[
    text::ROWS,
    files::ROWS,
    shells::ROWS,
    http::ROWS,
    forges::ROWS,
    network::ROWS,
    editors::ROWS,
    archives::ROWS,
    data::ROWS,
    system::ROWS,
    disks::ROWS,
];

/// Whether a program is one of those.
pub(super) fn builds(name: &str) -> bool {
    let mut rows = BUILDERS.iter().flat_map(|family| family.iter());
    rows.any(|row| row.names.contains(&name))
}

/// The row of a program without its folder.
pub(super) fn find(name: &str) -> Option<&'static Row> {
    let row = |name: &str| {
        (OTHERS.iter().chain(BUILDERS))
            .flat_map(|family| family.iter())
            .find(|row| row.names.contains(&name))
    };
    let kind = || disks::family(name).and_then(row);
    row(name).or_else(kind).or_else(|| {
        // `python3.12`, `gcc-13`, `clang++-17`: the number is not part of the name.
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        (plain != name && !plain.is_empty())
            .then(|| row(plain))
            .flatten()
    })
}

/// Names of files that a command prints, one a line, if it prints nothing else.
pub(crate) fn names_printed(words: &[Word]) -> Option<Vec<Word>> {
    let (first, rest) = words.split_first()?;
    let name = crate::rules::basename(first.as_fixed()?);
    let flag = |wanted: &[&str]| {
        rest.iter()
            .any(|word| word.as_fixed().is_some_and(|text| wanted.contains(&text)))
    };
    let lists = |wanted: char| {
        rest.iter().any(|word| {
            let text = word.lead();
            text.starts_with('-') && !text.starts_with("--") && text.contains(wanted)
        })
    };
    let operands: Vec<&Word> = rest
        .iter()
        .filter(|word| !word.lead().starts_with('-'))
        .collect();
    let below = |folders: &[&Word]| -> Vec<Word> {
        let all = |folder: &&Word| files::found(folder, None, true);
        match folders {
            [] => vec![Word::fixed("**/?*")],
            folders => folders.iter().map(all).collect(),
        }
    };
    match name {
        "find" | "gfind" => {
            let shaped = flag(&["-printf", "-fprintf", "-ls", "-exec", "-execdir", "-fls"]);
            (!shaped).then(|| found_by(words))
        }
        "git" => match rest
            .iter()
            .find_map(|word| word.as_fixed().filter(|text| !text.starts_with('-')))
        {
            Some("ls-files") => Some(vec![Word::fixed("**/?*")]),
            Some("diff" | "show" | "log" | "diff-tree" | "diff-index")
                if flag(&["--name-only"]) =>
            {
                Some(vec![Word::fixed("**/?*")])
            }
            Some("grep") if lists('l') || flag(&["--name-only", "--files-with-matches"]) => {
                Some(vec![Word::fixed("**/?*")])
            }
            _ => None,
        },
        "grep" | "egrep" | "fgrep"
            if lists('l') || lists('L') || flag(&["--files-with-matches"]) =>
        {
            Some(match operands.get(1..) {
                Some(folders) if lists('r') || lists('R') || flag(&["--recursive"]) => {
                    // A folder, or a file by its own name.
                    let mut found = below(folders);
                    found.extend(folders.iter().map(|word| (*word).clone()));
                    found
                }
                Some(files) => files.iter().map(|word| (*word).clone()).collect(),
                None => below(&[]),
            })
        }
        "rg" if lists('l') || flag(&["--files-with-matches", "--files"]) => {
            let skip = usize::from(!flag(&["--files"]));
            let folders = operands.get(skip..).unwrap_or(&[]);
            let mut found = below(folders);
            found.extend(folders.iter().map(|word| (*word).clone()));
            Some(found)
        }
        "fd" | "fdfind" => Some(files::found_by_fd(words)),
        "ls" if !lists('l') && !lists('R') && !lists('s') && !lists('i') => {
            Some(match operands.as_slice() {
                // Names without their folder.
                [] => vec![Word::fixed("?*")],
                folders => folders
                    .iter()
                    .flat_map(|word| match word.known {
                        crate::shell::Known::Many => vec![(*word).clone()],
                        // Whoever reads them here means them there.
                        _ => {
                            let mut there = (*word).clone();
                            there.append(&Word::fixed("/?*"));
                            vec![Word::fixed("?*"), there]
                        }
                    })
                    .collect(),
            })
        }
        _ => None,
    }
}

/// What `{}` stands for in the commands of `find`.
pub(crate) fn found_by(words: &[Word]) -> Vec<Word> {
    let (starts, names) = files::find_scope(words);
    let mut found = files::found_below(&starts, &names, true);
    // The folder itself is found, too, unless something is asked of what is.
    if !files::chooses(words) {
        found.extend(starts);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names that stand in two of these rows, or below one of them.
    fn twice<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let mut twice = Vec::new();
        for row in rows {
            twice.extend(row.names.iter().filter(|name| !seen.insert(**name)));
            twice.extend(super::tests::twice(row.subs.iter()));
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
