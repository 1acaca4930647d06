//! Unified diffs, plain or git's. diffy reads them: headers, quoted names, renames, counts.
//! What it does not tell is looked up in the text: which line of the patch a hunk stands at,
//! and whether a hunk was passed over.

use std::borrow::Cow;

use diffy::patch_set::{FileMode, FileOperation, FilePatch, ParseOptions, PatchKind, PatchSet};

use crate::model::{Change, Format, Hunk, Patch, What};
use crate::refusal::{Cause, Refusal};

/// Whether this text means to be one.
pub(crate) fn is_meant(text: &str) -> bool {
    let mut before = "";
    text.lines().any(|line| {
        let header = line.starts_with("diff --git ")
            || (before.starts_with("--- ") && line.starts_with("+++ "));
        before = line;
        header
    })
}

/// `strip`: how many names are taken off the front of paths; `None` takes off what git puts
/// there.
pub(crate) fn parse(text: &str, strip: Option<usize>) -> Result<Patch, Refusal> {
    let is_git = text.lines().any(|line| line.starts_with("diff --git "));
    let options = match is_git {
        true => ParseOptions::gitdiff(),
        false => ParseOptions::unidiff(),
    };
    // What was typed into a heredoc or an argument may lack the last line's end.
    let whole = match text.ends_with('\n') {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{text}\n")),
    };
    let mut hunks_at = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("@@ -"))
        .map(|(at, _)| at + 1);
    let mut changes = Vec::new();
    let mut line = 1;
    for parsed in PatchSet::parse(&whole, options) {
        let parsed = parsed.map_err(|error| malformed(&whole, &error.to_string(), line))?;
        let change = change(&parsed, strip, &mut hunks_at, &mut line)?;
        changes.push(change);
    }
    if let Some(lost) = hunks_at.next() {
        return Err(Refusal::of_patch(
            Cause::Malformed,
            lost,
            "this hunk belongs to no file: something stands between it and its header".to_owned(),
        ));
    }
    if changes.is_empty() {
        return Err(Refusal::of_patch(
            Cause::Empty,
            1,
            "the patch names no file".to_owned(),
        ));
    }
    Ok(Patch {
        format: Format::Unified,
        changes,
    })
}

/// diffy says where by a byte; people count lines.
fn malformed(text: &str, error: &str, line: usize) -> Refusal {
    let at = error
        .split_once("at byte ")
        .and_then(|(_, rest)| rest.split(':').next()?.parse::<usize>().ok());
    let what = error.rsplit_once(": ").map_or(error, |(_, what)| what);
    let before = at.and_then(|at| text.get(..at));
    // The place is counted from the file's own part on: good for the first, a hint for others.
    let line = before.map_or(line, |before| before.lines().count().max(line));
    let hint = match what {
        "hunk header does not match hunk" => {
            ": the counts of lines behind `@@` are not those of the hunk"
        }
        _ => "",
    };
    Refusal::of_patch(Cause::Malformed, line, format!("{what}{hint}"))
}

fn change(
    parsed: &FilePatch<'_, str>,
    strip: Option<usize>,
    hunks_at: &mut impl Iterator<Item = usize>,
    line: &mut usize,
) -> Result<Change, Refusal> {
    let hunks = match parsed.patch() {
        PatchKind::Text(patch) => {
            let hunks = patch.hunks().iter();
            hunks
                .map(|one| hunk(one, hunks_at.next().unwrap_or(*line)))
                .collect::<Vec<_>>()
        }
        PatchKind::Binary(_) => return Err(unsupported(*line, "binary data")),
    };
    *line = hunks.first().map_or(*line, |hunk| hunk.line);
    for mode in [parsed.old_mode(), parsed.new_mode()].into_iter().flatten() {
        match mode {
            FileMode::Regular | FileMode::Executable => {}
            FileMode::Symlink => return Err(unsupported(*line, "a symbolic link")),
            FileMode::Gitlink => return Err(unsupported(*line, "a submodule")),
        }
    }
    let executable = parsed.new_mode().map(|mode| *mode == FileMode::Executable);
    let named = |path: &str, what| Change {
        path: path.to_owned(),
        line: *line,
        what,
    };
    let whole = |hunks: &[Hunk]| hunks.iter().flat_map(|hunk| hunk.new.clone()).collect();
    Ok(match parsed.operation() {
        FileOperation::Create(path) => named(
            &stripped(path, strip, "b/"),
            What::Create {
                content: whole(&hunks),
                executable,
            },
        ),
        FileOperation::Delete(path) => named(&stripped(path, strip, "a/"), What::Remove(hunks)),
        FileOperation::Modify { original, modified } => {
            let (from, to) = (
                stripped(original, strip, "a/"),
                stripped(modified, strip, "b/"),
            );
            // `x.orig` and `x`: the new name is the one that is meant.
            let path = if from == to { from } else { to };
            named(
                &path,
                What::Hunks {
                    hunks,
                    to: None,
                    copies: false,
                    executable,
                },
            )
        }
        FileOperation::Rename { from, to } | FileOperation::Copy { from, to } => {
            // These lines have no `a/` and `b/` to take off.
            let less = strip.map(|strip| strip.saturating_sub(1));
            named(
                &stripped(from, less, ""),
                What::Hunks {
                    hunks,
                    to: Some(stripped(to, less, "")),
                    copies: matches!(parsed.operation(), FileOperation::Copy { .. }),
                    executable,
                },
            )
        }
    })
}

fn unsupported(line: usize, what: &str) -> Refusal {
    Refusal::of_patch(
        Cause::Unsupported,
        line,
        format!("{what} in a patch is not applied by checkrein; git apply does"),
    )
}

/// `x/y/z` without so many names in front.
fn stripped(path: &str, strip: Option<usize>, usual: &str) -> String {
    let Some(strip) = strip else {
        return path.strip_prefix(usual).unwrap_or(path).to_owned();
    };
    let mut rest = path;
    for _ in 0..strip {
        match rest.split_once('/') {
            Some((_, behind)) => rest = behind.trim_start_matches('/'),
            None => break,
        }
    }
    rest.to_owned()
}

fn hunk(parsed: &diffy::Hunk<'_, str>, line: usize) -> Hunk {
    let mut hunk = Hunk {
        line,
        old_start: parsed.old_range().start(),
        new_start: parsed.new_range().start(),
        old: Vec::new(),
        new: Vec::new(),
        leading: 0,
        trailing: 0,
    };
    let mut changed = false;
    for one in parsed.lines() {
        match one {
            diffy::Line::Context(text) => {
                hunk.old.push((*text).to_owned());
                hunk.new.push((*text).to_owned());
                match changed {
                    true => hunk.trailing += 1,
                    false => hunk.leading += 1,
                }
            }
            diffy::Line::Delete(text) => {
                hunk.old.push((*text).to_owned());
                (changed, hunk.trailing) = (true, 0);
            }
            diffy::Line::Insert(text) => {
                hunk.new.push((*text).to_owned());
                (changed, hunk.trailing) = (true, 0);
            }
        }
    }
    hunk
}
