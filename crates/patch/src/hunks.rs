//! Hunks of a unified diff put into a file, at the places where git would put them: as they
//! stand, nearest to the line that they name, in no piece that another hunk has touched.

use std::borrow::Cow;

use crate::lines;
use crate::model::Hunk;
use crate::nearest;
use crate::refusal::{Cause, Refusal};
use crate::seek::Index;

/// Failures of one file that are looked into.
const MOST: usize = 3;
/// Lines of context that GNU patch goes without.
const FUZZ: usize = 2;

/// Whose idea of "fits" counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// `git apply`: every line of context, and the ends of the file where the hunk has them.
    Git,
    /// GNU `patch`: up to two lines of context at either end may differ.
    Gnu,
}

/// Lines `start..start + old` give way to `new`.
struct Placed<'h> {
    start: usize,
    old: usize,
    new: &'h [String],
}

pub(crate) fn put(
    path: &str,
    bytes: &[u8],
    hunks: &[Hunk],
    fit: Fit,
) -> Result<Vec<u8>, Vec<Refusal>> {
    let file = lines::with_ends(bytes);
    let index = Index::new(file.iter().map(|line| Cow::Borrowed(*line)));
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let mut refusals = Vec::new();
    for hunk in hunks {
        match place(&index, file.len(), &placed, hunk, fit) {
            Some(one) => placed.push(one),
            None => refusals.push(missed(path, &file, hunk)),
        }
        if refusals.len() >= MOST {
            break;
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    placed.sort_by_key(|one| (one.start, one.start + one.old));
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut next = 0;
    for one in &placed {
        out.extend(file.get(next..one.start).unwrap_or_default().concat());
        out.extend(one.new.concat().as_bytes());
        next = one.start + one.old;
    }
    out.extend(file.get(next..).unwrap_or_default().concat());
    Ok(out)
}

fn place<'h>(
    index: &Index<'_>,
    length: usize,
    placed: &[Placed<'_>],
    hunk: &'h Hunk,
    fit: Fit,
) -> Option<Placed<'h>> {
    let most = match fit {
        Fit::Git => 0,
        Fit::Gnu => FUZZ.min(hunk.leading.max(hunk.trailing)),
    };
    (0..=most).find_map(|fuzz| {
        let (front, back) = (fuzz.min(hunk.leading), fuzz.min(hunk.trailing));
        let old = hunk.old.get(front..hunk.old.len().checked_sub(back)?)?;
        let new = hunk.new.get(front..hunk.new.len().checked_sub(back)?)?;
        let start = find(index, length, placed, hunk, (old, front), fit)?;
        Some(Placed {
            start,
            old: old.len(),
            new,
        })
    })
}

fn find(
    index: &Index<'_>,
    length: usize,
    placed: &[Placed<'_>],
    hunk: &Hunk,
    (old, front): (&[String], usize),
    fit: Fit,
) -> Option<usize> {
    let at_begin = fit == Fit::Git && hunk.old_start <= 1;
    let at_end = fit == Fit::Git && hunk.trailing == 0;
    let fits = |start: usize| {
        let end = start + old.len();
        let free = |one: &Placed<'_>| {
            end <= one.start || one.start + one.old <= start && (one.old > 0 || one.start < start)
        };
        (!at_begin || start == 0) && (!at_end || end == length) && placed.iter().all(free)
    };
    // Where it would stand in the file as the hunks before have left it.
    let shift = |start: usize| -> i64 {
        let before = placed.iter().filter(|one| one.start < start);
        before
            .map(|one| one.new.len() as i64 - one.old as i64)
            .sum()
    };
    let wanted = hunk.new_start.saturating_sub(1) as i64 + front as i64;
    if old.is_empty() {
        let start = match (at_begin, at_end) {
            (true, _) => 0,
            (false, true) => length,
            (false, false) => hunk.old_start.min(length),
        };
        return fits(start).then_some(start);
    }
    let block = index.block(old.iter().map(|line| Cow::Borrowed(line.as_bytes())))?;
    index
        .all(&block, 0)
        .filter(|start| index.spend(2 * placed.len()) && fits(*start))
        .min_by_key(|start| {
            let stands = *start as i64 + shift(*start);
            // As far away, the later one comes first.
            ((stands - wanted).abs(), stands < wanted)
        })
}

fn missed(path: &str, file: &[&[u8]], hunk: &Hunk) -> Refusal {
    let text = |line: &[u8]| {
        String::from_utf8_lossy(line)
            .trim_end_matches(['\n', '\r'])
            .to_owned()
    };
    let theirs: Vec<String> = file.iter().map(|line| text(line)).collect();
    let ours: Vec<String> = hunk.old.iter().map(|line| text(line.as_bytes())).collect();
    let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let bytes = |lines: &[&str]| -> Vec<Vec<u8>> {
        lines.iter().map(|line| line.as_bytes().to_vec()).collect()
    };
    let (their_bytes, our_bytes) = (bytes(&theirs), bytes(&ours));
    let index = Index::new(their_bytes.iter().map(Cow::from));
    let block = index.block(our_bytes.iter().map(Cow::from));
    let whole = block.is_some_and(|block| index.all(&block, 0).next().is_some());
    let message = match (file.is_empty(), whole) {
        (true, _) => "the file is empty".to_owned(),
        (_, true) if hunk.trailing == 0 => "the lines of this hunk are in the file, but not where it says: a hunk without context behind its change belongs to the end of the file".to_owned(),
        (_, true) => "the lines of this hunk are in the file, but at a place that is taken, or with other line ends".to_owned(),
        (_, false) => format!("the lines that this hunk is about ({}) are not in the file", ours.len()),
    };
    Refusal {
        nearest: match whole {
            true => None,
            false => nearest::nearest(&theirs, &ours, hunk.old_start.saturating_sub(1), true),
        },
        ..Refusal::of_file(Cause::NoMatch, path, hunk.line, message)
    }
}
