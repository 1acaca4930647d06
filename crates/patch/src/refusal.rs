//! Represents why a patch is refused, in words that help to write it again: the line of the patch,
//! what was searched for, and what the file has there. The text is bounded, whatever the patch
//! contains.

use std::fmt;

use serde::Serialize;

use crate::nearest_match::NearestBlockMatch;

/// Longest text in bytes of one refusal, and of several together.
const MAX_TEXT_BYTES: usize = 1500;
/// Refusals that are rendered in full.
const MAX_TOLD: usize = 3;

/// What kind of refusal it is; the names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchRefusalCause {
    /// The patch cannot be read.
    Malformed,
    /// It holds nothing to do.
    Empty,
    /// It holds what this build does not apply: binary data, symlinks, submodules.
    Unsupported,
    /// A path that leads out of the root.
    OutsideRoot,
    /// A path into a `.git` folder.
    InsideGit,
    /// A path that names no file: empty, a folder, something below a file.
    BadPath,
    /// The file is not there.
    Missing,
    /// The file is there already.
    Exists,
    /// The file cannot be read as text.
    NotText,
    /// The file cannot be read at all, or is too large.
    Unreadable,
    /// The line behind `@@` is not in the file.
    NoContext,
    /// The lines are not in the file.
    NoMatch,
    /// Its hunks overlap.
    Overlap,
    /// Codex's tool would delete the file: it is moved onto itself.
    SelfMove,
    /// Two names of one file.
    SameFile,
}

impl PatchRefusalCause {
    /// Returns whether the refusal depends on the tree and not on the patch alone.
    pub fn patch_refusal_depends_on_tree(self) -> bool {
        match self {
            PatchRefusalCause::Missing
            | PatchRefusalCause::Exists
            | PatchRefusalCause::NotText
            | PatchRefusalCause::Unreadable
            | PatchRefusalCause::NoContext
            | PatchRefusalCause::NoMatch
            | PatchRefusalCause::Overlap => true,
            PatchRefusalCause::Malformed
            | PatchRefusalCause::Empty
            | PatchRefusalCause::Unsupported
            | PatchRefusalCause::OutsideRoot
            | PatchRefusalCause::InsideGit
            | PatchRefusalCause::BadPath
            | PatchRefusalCause::SelfMove
            | PatchRefusalCause::SameFile => false,
        }
    }
}

/// Why a patch is not applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchRefusal {
    /// What kind.
    pub cause: PatchRefusalCause,
    /// The file it is about, as the patch spells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line of the patch, from 1.
    pub patch_line: usize,
    /// What is wrong, in a line.
    pub message: String,
    /// The lines of the file that come nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestBlockMatch>,
}

impl PatchRefusal {
    pub(crate) fn refusal_at_patch_line(
        cause: PatchRefusalCause,
        patch_line: usize,
        message: String,
    ) -> Self {
        Self {
            cause,
            path: None,
            patch_line,
            message: truncate_text(message, 400),
            nearest: None,
        }
    }

    pub(crate) fn refusal_for_file(
        cause: PatchRefusalCause,
        path: &str,
        patch_line: usize,
        message: String,
    ) -> Self {
        Self {
            path: Some(truncate_text(path.to_owned(), 200)),
            ..Self::refusal_at_patch_line(cause, patch_line, message)
        }
    }
}

impl fmt::Display for PatchRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = match &self.path {
            Some(path) => format!("{path}: {} (patch line {})", self.message, self.patch_line),
            None => format!("patch line {}: {}", self.patch_line, self.message),
        };
        if let Some(nearest) = &self.nearest {
            text.push('\n');
            text.push_str(&nearest.to_string());
        }
        f.write_str(&truncate_text(text, MAX_TEXT_BYTES))
    }
}

impl std::error::Error for PatchRefusal {}

/// Renders several refusals as one text: the first ones in full, the others as a count.
pub fn render_patch_refusals(refusals: &[PatchRefusal]) -> String {
    let mut text = String::new();
    for (at, refusal) in refusals.iter().enumerate() {
        let one = refusal.to_string();
        // The first refusal is always rendered: without it the agent learns nothing.
        if at >= MAX_TOLD || (at > 0 && text.len() + one.len() > MAX_TEXT_BYTES) {
            text.push_str(&format!("\nand {} more", refusals.len() - at));
            break;
        }
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&one);
    }
    text
}

pub(crate) fn truncate_text(mut text: String, most: usize) -> String {
    if text.len() > most {
        // `…` has three bytes in UTF-8.
        text.truncate(text.floor_char_boundary(most.saturating_sub(3)));
        text.push('…');
    }
    text
}
