//! Parses unified diffs, plain or git's, with diffy. What diffy does not report is looked up in the
//! text: the patch line of each hunk, and whether a hunk was skipped.

use std::borrow::Cow;

use diffy::patch_set::{FileMode, FileOperation, FilePatch, ParseOptions, PatchKind, PatchSet};

use crate::parsed_patch::{Hunk, ParsedPatch, PatchFileChange, PatchFileSection, PatchFormat};
use crate::refusal::{PatchRefusal, PatchRefusalCause};

/// Returns whether a text looks like a unified diff.
pub(crate) fn looks_like_diff(text: &str) -> bool {
    let mut before = "";
    text.lines().any(|line| {
        let header = line.starts_with("diff --git ")
            || (before.starts_with("--- ") && line.starts_with("+++ "));
        before = line;
        header
    })
}

/// Parses a diff. `strip` is the number of leading names removed from paths; `None` removes the
/// prefixes that git adds.
pub(crate) fn parse_unified_diff(
    text: &str,
    strip: Option<usize>,
) -> Result<ParsedPatch, PatchRefusal> {
    let is_git = text.lines().any(|line| line.starts_with("diff --git "));
    let options = match is_git {
        true => ParseOptions::gitdiff(),
        false => ParseOptions::unidiff(),
    };
    // A patch from a here-document or an argument may lack the last line's ending.
    let whole = match text.ends_with('\n') {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{text}\n")),
    };
    // The outline comes first: its refusals are more precise than diffy's errors.
    let outline = DiffHunkLinesAndEpochDates::parse_diff_outline(text)?;
    let mut hunks_at = outline.hunks.into_iter();
    let mut stamps = outline.stamps.into_iter();
    let mut changes = Vec::new();
    let mut line = 1;
    for parsed in PatchSet::parse(&whole, options) {
        let parsed =
            parsed.map_err(|error| malformed_diff_refusal(&whole, &error.to_string(), line))?;
        // A git diff marks created and deleted files explicitly; dates do not count there.
        let stamp = match is_git {
            true => EpochDatedSides::default(),
            false => stamps.next().unwrap_or_default(),
        };
        let change = change_from_unified_file_patch(
            &parsed,
            (strip, is_git),
            stamp,
            &mut hunks_at,
            &mut line,
        )?;
        changes.push(change);
    }
    // diffy skips a hunk that it cannot assign. Applying the rest would silently drop a change.
    if let Some(lost) = hunks_at.next() {
        return Err(PatchRefusal::refusal_at_patch_line(
            PatchRefusalCause::Malformed,
            lost,
            "this hunk belongs to no file: something stands between it and its header".to_owned(),
        ));
    }
    if changes.is_empty() {
        return Err(PatchRefusal::refusal_at_patch_line(
            PatchRefusalCause::Empty,
            1,
            "the patch names no file".to_owned(),
        ));
    }
    Ok(ParsedPatch {
        format: PatchFormat::Unified,
        changes,
    })
}

/// Which sides of a file are dated at the epoch, as `diff -N` dates missing files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct EpochDatedSides {
    old: bool,
    new: bool,
}

/// Positions in the text of a diff.
#[derive(Default)]
struct DiffHunkLinesAndEpochDates {
    /// The lines at which hunks begin, from 1.
    hunks: Vec<usize>,
    /// One entry for each pair of `---` and `+++`.
    stamps: Vec<EpochDatedSides>,
}

impl DiffHunkLinesAndEpochDates {
    fn parse_diff_outline(text: &str) -> Result<Self, PatchRefusal> {
        let mut outline = Self::default();
        // Lines of the current hunk that remain. Inside of a hunk, a line such as `--- x` is
        // content.
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
                (old, new) = hunk_line_counts(line);
            } else if line.starts_with("diff --cc ")
                || line.starts_with("diff --combined ")
                || line.starts_with("@@@ -")
            {
                let what = "the combined diff of a merge is not applied by checkrein, nor by git: make one against one of its parents (`git diff PARENT`)";
                return Err(PatchRefusal::refusal_at_patch_line(
                    PatchRefusalCause::Unsupported,
                    at + 1,
                    what.to_owned(),
                ));
            } else if line.starts_with("@@") && !outline.stamps.is_empty() {
                let what = "a hunk begins with `@@ -LINE,COUNT +LINE,COUNT @@`: without the numbers nobody applies it";
                return Err(PatchRefusal::refusal_at_patch_line(
                    PatchRefusalCause::Malformed,
                    at + 1,
                    what.to_owned(),
                ));
            } else if let Some(from) = line.strip_prefix("--- ")
                && let Some((_, to)) = lines.peek()
                && let Some(to) = to.strip_prefix("+++ ")
            {
                outline.stamps.push(EpochDatedSides {
                    old: diff_header_has_epoch_date(from),
                    new: diff_header_has_epoch_date(to),
                });
            }
        }
        Ok(outline)
    }
}

/// Returns the line counts of `@@ -1,2 +3,4 @@`; a missing count means 1.
fn hunk_line_counts(head: &str) -> (usize, usize) {
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

/// Returns whether a header's date is the epoch, in any time zone.
fn diff_header_has_epoch_date(header: &str) -> bool {
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

/// Converts an error of diffy, which reports a byte offset, to a refusal with a line.
fn malformed_diff_refusal(text: &str, error: &str, line: usize) -> PatchRefusal {
    let at = error
        .split_once("at byte ")
        .and_then(|(_, rest)| rest.split(':').next()?.parse::<usize>().ok());
    let what = error.rsplit_once(": ").map_or(error, |(_, what)| what);
    let before = at.and_then(|at| text.get(..at));
    // diffy counts from the current file's part on, so the line is exact for the first file and
    // only a lower bound for others.
    let line = before.map_or(line, |before| before.lines().count().max(line));
    let hint = match what {
        "hunk header does not match hunk" => {
            ": the counts of lines behind `@@` are not those of the hunk"
        }
        _ => "",
    };
    PatchRefusal::refusal_at_patch_line(PatchRefusalCause::Malformed, line, format!("{what}{hint}"))
}

fn change_from_unified_file_patch(
    parsed: &FilePatch<'_, str>,
    (strip, is_git): (Option<usize>, bool),
    stamps: EpochDatedSides,
    hunks_at: &mut impl Iterator<Item = usize>,
    line: &mut usize,
) -> Result<PatchFileSection, PatchRefusal> {
    let hunks = match parsed.patch() {
        PatchKind::Text(patch) => {
            let hunks = patch.hunks().iter();
            hunks
                .map(|one| hunk_from_diffy(one, hunks_at.next().unwrap_or(*line)))
                .collect::<Vec<_>>()
        }
        PatchKind::Binary(_) => return Err(unsupported_patch_refusal(*line, "binary data")),
    };
    *line = hunks.first().map_or(*line, |hunk| hunk.line);
    // Only regular files are applied here; git would create the link or change the submodule.
    for mode in [parsed.old_mode(), parsed.new_mode()].into_iter().flatten() {
        match mode {
            FileMode::Regular | FileMode::Executable => {}
            FileMode::Symlink => return Err(unsupported_patch_refusal(*line, "a symbolic link")),
            FileMode::Gitlink => return Err(unsupported_patch_refusal(*line, "a submodule")),
        }
    }
    let executable = parsed.new_mode().map(|mode| *mode == FileMode::Executable);
    let named = |path: &str, what| PatchFileSection {
        path: path.to_owned(),
        line: *line,
        kind: what,
    };
    let whole = |hunks: &[Hunk]| hunks.iter().flat_map(|hunk| hunk.new.clone()).collect();
    Ok(match parsed.operation() {
        FileOperation::Create(path) => named(
            &strip_leading_path_parts(path, strip, "b/"),
            PatchFileChange::Create {
                content: whole(&hunks),
                executable,
            },
        ),
        FileOperation::Delete(path) => named(
            &strip_leading_path_parts(path, strip, "a/"),
            PatchFileChange::Remove(hunks),
        ),
        FileOperation::Modify { original, modified } => {
            let (from, to) = (
                strip_leading_path_parts(original, strip, "a/"),
                strip_leading_path_parts(modified, strip, "b/"),
            );
            // The epoch marks a missing file: this is a creation, whatever the names say.
            if stamps.old {
                let content = whole(&hunks);
                return Ok(named(
                    &to,
                    PatchFileChange::Create {
                        content,
                        executable,
                    },
                ));
            }
            if stamps.new {
                return Ok(named(&from, PatchFileChange::Remove(hunks)));
            }
            // Headers without a hunk: applying it would do nothing and report success.
            if hunks.is_empty() && parsed.old_mode() == parsed.new_mode() {
                let what = format!("nothing is changed in {to}: no hunk belongs to it");
                return Err(PatchRefusal::refusal_at_patch_line(
                    PatchRefusalCause::Malformed,
                    *line,
                    what,
                ));
            }
            let makes = matches!(hunks.as_slice(), [one] if one.old.is_empty());
            // Names may differ without a rename, such as `x.orig` and `x`: the new one is meant.
            let path = if from == to { from } else { to };
            named(
                &path,
                PatchFileChange::Hunks {
                    hunks,
                    to: None,
                    is_copy: false,
                    executable,
                    // A git diff says explicitly that it creates a file.
                    creates_if_missing: makes && !is_git,
                },
            )
        }
        FileOperation::Rename { from, to } | FileOperation::Copy { from, to } => {
            // `rename from` and `copy from` lines have no `a/` and `b/` prefixes.
            let less = strip.map(|strip| strip.saturating_sub(1));
            named(
                &strip_leading_path_parts(from, less, ""),
                PatchFileChange::Hunks {
                    hunks,
                    to: Some(strip_leading_path_parts(to, less, "")),
                    is_copy: matches!(parsed.operation(), FileOperation::Copy { .. }),
                    executable,
                    creates_if_missing: false,
                },
            )
        }
    })
}

fn unsupported_patch_refusal(line: usize, what: &str) -> PatchRefusal {
    PatchRefusal::refusal_at_patch_line(
        PatchRefusalCause::Unsupported,
        line,
        format!("{what} in a patch is not applied by checkrein; git apply does"),
    )
}

/// Removes leading names from `x/y/z`; without a number, the usual prefix.
fn strip_leading_path_parts(path: &str, strip: Option<usize>, usual: &str) -> String {
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

fn hunk_from_diffy(parsed: &diffy::Hunk<'_, str>, line: usize) -> Hunk {
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
                // Only context after the last change is trailing.
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
