//! Patches: V4A (`*** Begin Patch`) and unified diffs.
//!
//! [`parse`] reads one, [`check`] finds out against a [`Tree`] what it comes to or why it is
//! refused, as a whole and before a byte is written; [`apply`] does it, all or nothing, and
//! [`recover`] takes up what a killed [`apply`] left. Where Codex's `apply_patch` has one
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

pub use apply::{ApplyError, Recovered, apply, recover};
pub use check::check;
pub use disk::Disk;
pub use hunks::Fit;
pub use model::{Format, Patch};
pub use nearest::{Nearest, Row};
pub use path::Within;
pub use plan::{Action, Content, Listed, Plan, Step};
pub use refusal::{Cause, Refusal, told};
pub use tree::{Memory, Node, Tree, TreeError};

/// Reads a patch, whichever way it is spelled. `strip`: names taken off the front of a diff's
/// paths, as by `-p`; without it what git puts there.
///
/// # Errors
/// If it is no patch, or holds what is not applied here.
pub fn parse(text: &str, strip: Option<usize>) -> Result<Patch, Refusal> {
    if !v4a::begins(text) && unified::is_meant(text) {
        return unified::parse(text, strip);
    }
    v4a::parse(text)
}

/// Reads a diff for programs that know no other patches: to them what stands before it is a
/// letter to people.
///
/// # Errors
/// As those of [`parse`].
pub fn parse_diff(text: &str, strip: Option<usize>) -> Result<Patch, Refusal> {
    unified::parse(text, strip)
}
