//! The patch that a script applies, where the script is little more than that: a heredoc or a
//! file for `apply_patch`, `git apply`, `patch`, or our own command. What else the script does
//! before it could change what the patch is for, so then it is only looked at for its paths.

use super::bash_parser;
use super::feed::Feed;
use super::unfold::{Inner, unfold};
use super::word::Word;
use super::{dirs, tree};
use crate::rules::basename;

/// Scripts inside scripts that are followed.
const MAX_DEPTH: usize = 4;

/// Who would apply it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchTool {
    /// Codex's.
    ApplyPatch,
    /// `git apply`.
    GitApply,
    /// GNU `patch`.
    Patch,
    /// `checkrein patch apply`.
    Own,
}

/// Where the patch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchText {
    /// In the script itself.
    Here(String),
    /// In this file, by a path from where the script begins.
    File(String),
}

/// A patch that a script applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchCommand {
    /// By which program.
    pub tool: PatchTool,
    /// From where.
    pub text: PatchText,
    /// `-p N`, if it says so.
    pub strip: Option<usize>,
    /// The folder that the script goes to first.
    pub folder: Option<String>,
    /// Nothing before it can change the files that it is for.
    pub first: bool,
}

/// The patches that a script applies, as far as they can be read beforehand.
pub fn patches(script: &str) -> Vec<PatchCommand> {
    let mut found = Vec::new();
    read(script, MAX_DEPTH, &mut found);
    // What is tried when it fails is not for us to refuse.
    if found.len() > 1 || script.contains("||") {
        for one in &mut found {
            one.first = false;
        }
    }
    found
}

/// The same for words that no shell reads.
pub fn patches_of_words<S: AsRef<str>>(words: &[S]) -> Vec<PatchCommand> {
    let words: Vec<Word> = words
        .iter()
        .map(|word| Word::fixed(word.as_ref()))
        .collect();
    let mut found = Vec::new();
    command(
        &words,
        &Feed::Nothing,
        (&mut Before::default(), MAX_DEPTH),
        &mut found,
    );
    found
}

/// What a script has done before the command that is looked at.
#[derive(Default)]
struct Before {
    folder: Option<String>,
    anything: bool,
}

fn read(script: &str, depth: usize, found: &mut Vec<PatchCommand>) {
    let Some(mut parser) = bash_parser() else {
        return;
    };
    let read = tree::read(&mut parser, script, &Feed::Nothing, &dirs::start());
    if read.broken {
        return;
    }
    let mut before = Before {
        anything: read.redirected.iter().any(|file| file.written),
        folder: None,
    };
    for one in &read.commands {
        let words = match (&one.feed, input_file(script)) {
            // `< FILE` feeds the one command that there is to feed.
            (Feed::Nothing, Some(file)) if is_fed(&one.words) => with_input(&one.words, file),
            _ => one.words.clone(),
        };
        command(&words, &one.feed, (&mut before, depth), found);
    }
}

fn is_fed(words: &[Word]) -> bool {
    let program = words.first().and_then(Word::as_program).map(basename);
    matches!(program, Some("patch" | "git" | "checkrein"))
}

/// `patch < x` says the same as `patch -i x`, and `git apply < x` as `git apply x`.
fn with_input(words: &[Word], file: &str) -> Vec<Word> {
    let mut words = words.to_vec();
    match words.first().and_then(Word::as_program).map(basename) {
        Some("patch") => words.extend([Word::fixed("-i"), Word::fixed(file)]),
        Some("git" | "checkrein") => words.push(Word::fixed(file)),
        _ => {}
    }
    words
}

/// The plain word behind the only `<` of a script.
fn input_file(script: &str) -> Option<&str> {
    let (_, behind) = script.split_once('<')?;
    let word = behind.split_whitespace().next()?;
    let plain = |char: char| char.is_alphanumeric() || "/._-+".contains(char);
    (!behind.contains('<') && word.chars().all(plain)).then_some(word)
}

fn command(
    words: &[Word],
    feed: &Feed,
    (before, depth): (&mut Before, usize),
    found: &mut Vec<PatchCommand>,
) {
    let Some(program) = words.first().and_then(Word::as_program).map(basename) else {
        before.anything = true;
        return;
    };
    let texts: Option<Vec<&str>> = words.iter().skip(1).map(Word::as_fixed).collect();
    let patching = texts.as_deref().and_then(|texts| match program {
        "apply_patch" | "applypatch" => apply_patch(texts, feed),
        "git" => git(texts, feed),
        "patch" => gnu(texts, feed),
        "checkrein" => own(texts, feed),
        _ => None,
    });
    if let Some((tool, text, strip)) = patching {
        found.push(PatchCommand {
            tool,
            text,
            strip,
            folder: before.folder.clone(),
            first: !before.anything,
        });
        before.anything = true;
        return;
    }
    match (program, texts.as_deref()) {
        ("cd", Some([folder])) if before.folder.is_none() && !folder.starts_with('-') => {
            before.folder = Some((*folder).to_owned());
        }
        ("echo" | "pwd" | "true" | "set" | ":", _) => {}
        _ => {
            for inner in unfold(program, words, feed).into_iter().take(8) {
                match inner {
                    Inner::Script { text, sure: true } if depth > 0 && !before.anything => {
                        let from = found.len();
                        read(&text, depth - 1, found);
                        for one in found.iter_mut().skip(from) {
                            one.first &= before.folder.is_none();
                        }
                    }
                    Inner::From(at) if depth > 0 => {
                        let rest = words.get(at..).unwrap_or_default();
                        command(rest, feed, (before, depth - 1), found);
                    }
                    _ => {}
                }
            }
            before.anything = true;
        }
    }
}

type Patching = (PatchTool, PatchText, Option<usize>);

fn fed(feed: &Feed) -> Option<PatchText> {
    match feed {
        Feed::Text { text, sure: true } => Some(PatchText::Here(text.to_string())),
        Feed::Text { .. } | Feed::Paths(_) | Feed::Open | Feed::Nothing | Feed::Unknown => None,
    }
}

fn apply_patch(words: &[&str], feed: &Feed) -> Option<Patching> {
    let text = match words {
        [] => fed(feed)?,
        [text] => PatchText::Here((*text).to_owned()),
        _ => return None,
    };
    Some((PatchTool::ApplyPatch, text, None))
}

/// Only with options that leave the patch what it is.
fn git(words: &[&str], feed: &Feed) -> Option<Patching> {
    let (first, rest) = words.split_first()?;
    if *first != "apply" {
        return None;
    }
    let mut strip = None;
    let mut file = None;
    for word in rest {
        match *word {
            "-v" | "--verbose" | "-q" | "--quiet" | "-" | "--index" => {}
            word if word.starts_with("-p") => strip = Some(word.get(2..)?.parse().ok()?),
            word if word.starts_with("--whitespace=") && !word.ends_with("fix") => {}
            word if word.starts_with('-') || file.is_some() => return None,
            word => file = Some(word.to_owned()),
        }
    }
    let text = match file {
        Some(file) => PatchText::File(file),
        None => fed(feed)?,
    };
    Some((PatchTool::GitApply, text, strip))
}

fn gnu(words: &[&str], feed: &Feed) -> Option<Patching> {
    let mut strip = None;
    let mut file = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "-i" => file = Some((*words.next()?).to_owned()),
            "-s" | "--silent" | "--quiet" | "-u" | "--unified" | "-N" | "--forward" => {}
            word if word.starts_with("--strip=") => {
                strip = Some(word.strip_prefix("--strip=")?.parse().ok()?);
            }
            word if word.starts_with("-p") => strip = Some(word.get(2..)?.parse().ok()?),
            word if word.starts_with("--input=") => {
                file = Some(word.strip_prefix("--input=")?.to_owned());
            }
            _ => return None,
        }
    }
    let text = match file {
        Some(file) => PatchText::File(file),
        None => fed(feed)?,
    };
    // Without it only the last name of a path counts, wherever that is.
    Some((PatchTool::Patch, text, Some(strip?)))
}

fn own(words: &[&str], feed: &Feed) -> Option<Patching> {
    let text = match words {
        ["patch", "apply"] | ["patch", "apply", "-"] => fed(feed)?,
        ["patch", "apply", file] if !file.starts_with('-') => PatchText::File((*file).to_owned()),
        _ => return None,
    };
    Some((PatchTool::Own, text, None))
}

/// The files that a unified diff says it changes, with and without the folder before their names.
pub(super) fn headed(text: &str) -> impl Iterator<Item = &str> {
    let names = text.lines().filter_map(|line| line.strip_prefix("+++ "));
    let names = names.map(|name| name.split('\t').next().unwrap_or(name).trim());
    names
        .flat_map(|name| [Some(name), name.split_once('/').map(|(_, rest)| rest)])
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(script: &str) -> Option<PatchCommand> {
        let mut found = patches(script);
        (found.len() == 1).then(|| found.remove(0))
    }

    #[test]
    fn heredocs_files_and_arguments() {
        let check = |script: &str, tool, text: PatchText, strip, folder: Option<&str>| {
            let expected = PatchCommand {
                tool,
                text,
                strip,
                folder: folder.map(str::to_owned),
                first: true,
            };
            assert_eq!(one(script), Some(expected), "{script}");
        };
        let here = |text: &str| PatchText::Here(text.to_owned());
        let file = |text: &str| PatchText::File(text.to_owned());
        let heredoc = "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF\n";
        let body = "*** Begin Patch\n*** End Patch\n";
        check(heredoc, PatchTool::ApplyPatch, here(body), None, None);
        check(
            &format!("cd sub && {heredoc}"),
            PatchTool::ApplyPatch,
            here(body),
            None,
            Some("sub"),
        );
        check(
            "apply_patch 'x'",
            PatchTool::ApplyPatch,
            here("x"),
            None,
            None,
        );
        check(
            "bash -lc \"apply_patch 'x'\"",
            PatchTool::ApplyPatch,
            here("x"),
            None,
            None,
        );
        check(
            "git apply -p2 a.diff",
            PatchTool::GitApply,
            file("a.diff"),
            Some(2),
            None,
        );
        check(
            "git apply < a.diff && cargo test",
            PatchTool::GitApply,
            file("a.diff"),
            None,
            None,
        );
        check(
            "git apply <<'E'\nx\nE",
            PatchTool::GitApply,
            here("x\n"),
            None,
            None,
        );
        check(
            "patch -p1 < a.diff",
            PatchTool::Patch,
            file("a.diff"),
            Some(1),
            None,
        );
        check(
            "patch -p1 -i a.diff",
            PatchTool::Patch,
            file("a.diff"),
            Some(1),
            None,
        );
        check(
            "checkrein patch apply a.diff",
            PatchTool::Own,
            file("a.diff"),
            None,
            None,
        );
    }

    #[test]
    fn what_only_looks_or_cannot_be_read_is_passed_over() {
        for script in [
            "git apply --check a.diff",
            "git apply --3way a.diff",
            "git apply -R a.diff",
            "patch < a.diff",
            "patch -R -p1 < a.diff",
            "apply_patch <<EOF\n$X\nEOF",
            "apply_patch \"$P\"",
            "cat a.diff | git apply",
            "checkrein patch check a.diff",
            "echo apply_patch x",
        ] {
            assert_eq!(patches(script), [], "{script}");
        }
    }

    #[test]
    fn a_patch_that_comes_after_something_else_is_not_first() {
        for script in [
            "sed -i s/a/b/ f; git apply a.diff",
            "git apply a.diff || patch -p1 < a.diff",
            "git checkout f && git apply a.diff",
            "echo x > f; apply_patch 'x'",
            "git apply a.diff; git apply b.diff",
        ] {
            let found = patches(script);
            assert!(!found.is_empty(), "{script}");
            assert!(found.iter().all(|one| !one.first), "{script}: {found:?}");
        }
    }
}
