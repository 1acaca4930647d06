//! Renders one check's part of the feedback into a given number of bytes. Its verdict and how to
//! reproduce it are always written, every finding at least by its id, and as many findings in full
//! as fit.

use std::fmt::Write as _;

/// Widths that ids are cut to, in characters, down to the least that still tells them apart.
const ID_WIDTHS: [usize; 6] = [200, 60, 36, 24, 18, 12];

/// What is to be said about one check.
#[derive(Default)]
pub(super) struct CheckFeedbackSection<'a> {
    /// Which check, and how it ended.
    pub(super) head: String,
    /// Findings not sent before: id, and all there is to say.
    pub(super) new: Vec<(&'a str, String)>,
    /// Ids of findings sent before.
    pub(super) still: Vec<&'a str>,
    /// Advice about the check itself. It is dropped first if space is short.
    pub(super) notes: String,
    /// The last lines of output of a check without findings.
    pub(super) output: Vec<String>,
    /// The number of further findings, how to reproduce it, and where the full output is.
    pub(super) foot: String,
}

impl CheckFeedbackSection<'_> {
    /// Returns the bytes that are written whatever space is left.
    pub(super) fn fixed_feedback_byte_count(&self) -> usize {
        self.head.len() + self.notes.len() + self.foot.len()
    }

    /// Returns the bytes of the complete section.
    pub(super) fn full_feedback_section_len(&self) -> usize {
        let output: usize = self
            .output
            .iter()
            .map(|line| line.len() + OUTPUT_LINE_OVERHEAD)
            .sum();
        self.fixed_feedback_byte_count()
            + self.format_new_findings(self.new.len(), usize::MAX).len()
            + output
    }

    pub(super) fn clear_section_notes(&mut self) {
        self.notes.clear();
    }

    /// Appends what fits into `room`. Ids are written even if they do not fit: a finding that was
    /// not named would count as told.
    pub(super) fn write_feedback_section_within(&self, text: &mut String, room: usize) {
        let room = room.saturating_sub(self.fixed_feedback_byte_count());
        text.push_str(&self.head);
        let named = self.findings_text_within_bytes(room);
        text.push_str(&named);
        text.push_str(&self.notes);
        let mut left = room.saturating_sub(named.len());
        let fits = |line: &&String| {
            let bytes = line.len() + OUTPUT_LINE_OVERHEAD;
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        };
        // The last lines of output say more than the first.
        let last: Vec<&String> = self.output.iter().rev().take_while(fits).collect();
        for line in last.into_iter().rev() {
            let _ = writeln!(text, "  | {line}");
        }
        text.push_str(&self.foot);
    }

    fn findings_text_within_bytes(&self, room: usize) -> String {
        let all = self.format_new_findings(self.new.len(), usize::MAX);
        if all.len() <= room {
            return all;
        }
        let least = ID_WIDTHS.last().copied().unwrap_or(usize::MAX);
        // First choose the widest ids with which all findings can be named at all, then expand as
        // many as still fit.
        let width = ID_WIDTHS
            .into_iter()
            .find(|width| self.format_new_findings(0, *width).len() <= room)
            .unwrap_or(least);
        let mut best = self.format_new_findings(0, width);
        for full in 1..self.new.len() {
            let more = self.format_new_findings(full, width);
            // Each further finding in full makes the text longer, so the first that does not fit
            // ends the search.
            if more.len() > room {
                break;
            }
            best = more;
        }
        best
    }

    /// Formats the first `full` new findings in full, and all others by ids of at most `width`
    /// characters.
    fn format_new_findings(&self, full: usize, width: usize) -> String {
        let mut text = String::new();
        for (_, words) in self.new.iter().take(full) {
            let _ = writeln!(text, "  - {words}");
        }
        let list = |ids: &mut dyn Iterator<Item = &str>| {
            ids.map(|id| shorten_test_id(id, width))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let others = list(&mut self.new.iter().skip(full).map(|(id, _)| *id));
        if !others.is_empty() {
            let word = if full == 0 { "-" } else { "- also" };
            let _ = writeln!(text, "  {word} {others}");
        }
        let still = list(&mut self.still.iter().copied());
        if !still.is_empty() {
            let _ = writeln!(text, "  as before: {still}");
        }
        text
    }
}

/// Bytes around a line of output.
const OUTPUT_LINE_OVERHEAD: usize = "  | \n".len();

/// Cuts an id in its middle: it begins with modules and ends with the test's own name.
fn shorten_test_id(id: &str, width: usize) -> String {
    let count = id.chars().count();
    if count <= width {
        return id.to_owned();
    }
    let kept = width.saturating_sub(1);
    // Two thirds go to the end, where tests of one file differ.
    let head = kept / 3;
    let tail = count - (kept - head);
    let first = id.chars().take(head);
    let last = id.chars().skip(tail);
    first.chain(['…']).chain(last).collect()
}
