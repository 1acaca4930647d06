//! Patches: V4A (`*** Begin ParsedPatch`) and unified diffs.
//!
//! [`parse_patch`] reads one, [`check_patch`] finds out against a [`FileTree`] what it comes to or why it is
//! refused, as a whole and before a byte is written; [`apply_patch_plan`] does it, all or nothing, and
//! [`recover_interrupted_apply`] takes up what a killed [`apply_patch_plan`] left. Where Codex's `apply_patch` has one
//! answer it is ours; where it loses data we refuse. No path leaves the root.

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
    PatchApplyError, PatchRecoveryOutcome, apply_patch_plan, recover_interrupted_apply,
};
pub use check::check_patch;
pub use disk::DiskTree;
pub use file_tree::{FileTree, FileTreeError, MemoryTree, TreeNode};
pub use hunks::HunkMatchDialect;
pub use nearest_match::{LineComparisonRow, NearestMatch};
pub use parsed_patch::{ParsedPatch, PatchFormat};
pub use plan::{FileAction, ListedFileAction, PatchPlan, PlannedFile, PlannedFileContent};
pub use refusal::{PatchRefusal, PatchRefusalCause, render_refusals};
pub use tree_path::PathBelowRoot;

/// Reads a patch, whichever way it is spelled. `strip`: names taken off the front of a diff's
/// paths, as by `-p`; without it what git puts there.
///
/// # Errors
/// If it is no patch, or holds what is not applied here.
pub fn parse_patch(text: &str, strip: Option<usize>) -> Result<ParsedPatch, PatchRefusal> {
    if !v4a::starts_v4a(text) && unified_diff::looks_like_diff(text) {
        return unified_diff::parse_unified(text, strip);
    }
    v4a::parse_v4a(text)
}

/// Reads a diff for programs that know no other patches: to them what stands before it is a
/// letter to people.
///
/// # Errors
/// As those of [`parse_patch`].
pub fn parse_diff(text: &str, strip: Option<usize>) -> Result<ParsedPatch, PatchRefusal> {
    unified_diff::parse_unified(text, strip)
}
