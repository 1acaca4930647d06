//! Parses, checks and applies patches: V4A (`*** Begin Patch`) and unified diffs.
//!
//! [`parse_patch`] reads a patch. [`plan_patch_against_tree`] checks it against a [`FileTreeReader`] as a whole and
//! returns a plan or the reasons for a refusal, before a byte is written. [`apply_patch_plan`]
//! carries a plan out, all or nothing, and [`recover_interrupted_apply`] finishes what a killed
//! [`apply_patch_plan`] left. The result is that of Codex's `apply_patch`, except where that would
//! lose data: such a patch is refused. No path leaves the root.

mod apply;
mod check;
mod disk;
mod file_tree;
mod hunks;
mod line_search;
mod lines;
mod nearest_match;
mod parsed_patch;
mod plan;
mod refusal;
mod tree_path;
mod unified_diff;
mod update_chunks;
mod v4a;

pub use apply::{
    PatchRecoveryOutcome, PatchWriteError, apply_patch_plan, recover_interrupted_apply,
};
pub use check::plan_patch_against_tree;
pub use disk::DiskTree;
pub use file_tree::{FileTreeReader, InMemoryFileTree, PathEntryKind, TreeFileReadError};
pub use hunks::HunkMatchDialect;
pub use nearest_match::{NearestBlockMatch, QuotedFileOrPatchLine};
pub use parsed_patch::{ParsedPatch, PatchFormat};
pub use plan::{
    FileAction, FileActionForDisplay, PatchPlan, PlannedFileChange, PlannedFileContent,
};
pub use refusal::{PatchRefusal, PatchRefusalCause, render_patch_refusals};
pub use tree_path::PathBelowRoot;

/// Parses a patch of either format. `strip` is the number of leading names removed from a diff's
/// paths, as with `-p`; without it the prefixes that git adds are removed.
///
/// # Errors
/// If it is no patch, or holds what is not applied here.
pub fn parse_patch(text: &str, strip: Option<usize>) -> Result<ParsedPatch, PatchRefusal> {
    // V4A first: an added file may contain a diff. Text that is neither is refused as V4A, whose
    // message says how a patch begins.
    if !v4a::starts_with_v4a_patch(text) && unified_diff::looks_like_diff(text) {
        return unified_diff::parse_unified_diff(text, strip);
    }
    v4a::parse_v4a(text)
}

/// Parses a diff for programs that know no other patches and ignore the text before it.
///
/// # Errors
/// As those of [`parse_patch`].
pub fn parse_diff(text: &str, strip: Option<usize>) -> Result<ParsedPatch, PatchRefusal> {
    unified_diff::parse_unified_diff(text, strip)
}
