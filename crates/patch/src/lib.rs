//! Patches: V4A (`*** Begin ParsedPatch`) and unified diffs.
//!
//! [`parse_patch`] reads one, [`check_patch`] finds out against a [`FileTree`] what it comes to or why it is
//! refused, as a whole and before a byte is written; [`apply_patch_plan`] does it, all or nothing, and
//! [`recover_interrupted_apply`] takes up what a killed [`apply_patch_plan`] left. Where Codex's `apply_patch` has one
//! answer it is ours; where it loses data we refuse. No path leaves the root.

mod apply;
mod check;
mod disk;
mod hunks;
mod lines;
mod model;
mod nearest;
mod path;
mod plan;
mod refusal;
mod seek;
mod tree;
mod unified;
mod update;
mod v4a;

pub use apply::{
    PatchApplyError, PatchRecoveryOutcome, apply_patch_plan, recover_interrupted_apply,
};
pub use check::check_patch;
pub use disk::DiskTree;
pub use hunks::HunkMatchDialect;
pub use model::{ParsedPatch, PatchFormat};
pub use nearest::{LineComparisonRow, NearestMatch};
pub use path::PathBelowRoot;
pub use plan::{FileAction, ListedFileAction, PatchPlan, PlannedFile, PlannedFileContent};
pub use refusal::{PatchRefusal, PatchRefusalCause, render_refusals};
pub use tree::{FileTree, FileTreeError, MemoryTree, TreeNode};

/// Reads a patch, whichever way it is spelled. `strip`: names taken off the front of a diff's
/// paths, as by `-p`; without it what git puts there.
///
/// # Errors
/// If it is no patch, or holds what is not applied here.
pub fn parse_patch(text: &str, strip: Option<usize>) -> Result<ParsedPatch, PatchRefusal> {
    if !v4a::starts_v4a(text) && unified::looks_like_diff(text) {
        return unified::parse_unified(text, strip);
    }
    v4a::parse_v4a(text)
}

/// Reads a diff for programs that know no other patches: to them what stands before it is a
/// letter to people.
///
/// # Errors
/// As those of [`parse_patch`].
pub fn parse_diff(text: &str, strip: Option<usize>) -> Result<ParsedPatch, PatchRefusal> {
    unified::parse_unified(text, strip)
}
