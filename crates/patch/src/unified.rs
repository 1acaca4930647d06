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
    let outline = Outline::of(text)?;
    let mut hunks_at = outline.hunks.into_iter();
    let mut stamps = outline.stamps.into_iter();
    let mut changes = Vec::new();
    let mut line = 1;
    for parsed in PatchSet::parse(&whole, options) {
        let parsed = parsed.map_err(|error| malformed(&whole, &error.to_string(), line))?;
        // In a diff of git's own every file that comes or goes is said to.
        let stamp = match is_git {
            true => Stamps::default(),
            false => stamps.next().unwrap_or_default(),
        };
        let change = change(&parsed, (strip, is_git), stamp, &mut hunks_at, &mut line)?;
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

/// Which sides of a file are dated at the beginning of time, as `diff -N` dates what is not
/// there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stamps {
    old: bool,
    new: bool,
}

/// Where things stand in the text.
#[derive(Default)]
struct Outline {
    /// The lines at which hunks begin, from 1.
    hunks: Vec<usize>,
    /// For each `---` and `+++`.
    stamps: Vec<Stamps>,
}

impl Outline {
    fn of(text: &str) -> Result<Self, Refusal> {
        let mut outline = Self::default();
        // Lines of the hunk that are still to come.
        let (mut old, mut new) = (0_usize, 0_usize);
        let mut lines = text.lines().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            if old > 0 || new > 0 {
                let kind = line.bytes().next();
                old -= usize::from(matches!(kind, None | Some(b' ' | b'-')) && old > 0);
                new -= usize::from(matches!(kind, None | Some(b' ' | b'+')) && new > 0);
                continue;
            }
            if line.starts_with("@@ -") {
                outline.hunks.push(at + 1);
                (old, new) = counts(line);
            } else if line.starts_with("diff --cc ")
                || line.starts_with("diff --combined ")
                || line.starts_with("@@@ -")
            {
                let what = "the combined diff of a merge is not applied by checkrein, nor by git: make one against one of its parents (`git diff PARENT`)";
                return Err(Refusal::of_patch(
                    Cause::Unsupported,
                    at + 1,
                    what.to_owned(),
                ));
            } else if line.starts_with("@@") && !outline.stamps.is_empty() {
                let what = "a hunk begins with `@@ -LINE,COUNT +LINE,COUNT @@`: without the numbers nobody applies it";
                return Err(Refusal::of_patch(Cause::Malformed, at + 1, what.to_owned()));
            } else if let Some(from) = line.strip_prefix("--- ")
                && let Some((_, to)) = lines.peek()
                && let Some(to) = to.strip_prefix("+++ ")
            {
                outline.stamps.push(Stamps {
                    old: is_beginning_of_time(from),
                    new: is_beginning_of_time(to),
                });
            }
        }
        Ok(outline)
    }
}

/// The counts of lines of `@@ -1,2 +3,4 @@`; one where there is none.
fn counts(head: &str) -> (usize, usize) {
    let count = |sign: char| {
        let range = head
            .split_whitespace()
            .find_map(|word| word.strip_prefix(sign))?;
        match range.split_once(',') {
            Some((_, count)) => count.parse().ok(),
            None => Some(1),
        }
    };
    (count('-').unwrap_or(0), count('+').unwrap_or(0))
}

/// Whether a header's date is midnight of 1 January 1970 in Greenwich, wherever it was written.
fn is_beginning_of_time(header: &str) -> bool {
    let minutes = || -> Option<i64> {
        let (_, stamp) = header.rsplit_once('\t')?;
        let mut parts = stamp.split_whitespace();
        let day = match parts.next()? {
            "1970-01-01" => 0,
            "1969-12-31" => -24 * 60,
            _ => return None,
        };
        let mut time = parts.next()?.split([':', '.']);
        let hours: i64 = time.next()?.parse().ok()?;
        let minutes: i64 = time.next()?.parse().ok()?;
        if !time.all(|rest| rest.bytes().all(|byte| byte == b'0')) {
            return None;
        }
        let zone: i64 = parts.next()?.parse().ok()?;
        Some(day + hours * 60 + minutes - (zone / 100 * 60 + zone % 100))
    };
    minutes() == Some(0)
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
    (strip, is_git): (Option<usize>, bool),
    stamps: Stamps,
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
            if stamps.old {
                let content = whole(&hunks);
                return Ok(named(
                    &to,
                    What::Create {
                        content,
                        executable,
                    },
                ));
            }
            if stamps.new {
                return Ok(named(&from, What::Remove(hunks)));
            }
            if hunks.is_empty() && parsed.old_mode() == parsed.new_mode() {
                let what = format!("nothing is changed in {to}: no hunk belongs to it");
                return Err(Refusal::of_patch(Cause::Malformed, *line, what));
            }
            let makes = matches!(hunks.as_slice(), [one] if one.old.is_empty());
            // `x.orig` and `x`: the new name is the one that is meant.
            let path = if from == to { from } else { to };
            named(
                &path,
                What::Hunks {
                    hunks,
                    to: None,
                    copies: false,
                    executable,
                    // Git says so where it makes a file.
                    makes: makes && !is_git,
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
                    makes: false,
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
