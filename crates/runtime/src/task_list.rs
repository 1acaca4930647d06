//! Reads `HEARTBEAT.md`, a list of standing tasks. It is no rule, so it is not sealed: it is read
//! when a task begins and again at each stop, and kept with the event that it was read for.

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::input::StandingTaskListSnapshot;
use checkrein_core::policy::{Policy, VerifierTier};

use crate::durable_file;
use checkrein_redaction::Redactor;

/// The file's name, beside the config.
const NAME: &str = "HEARTBEAT.md";
/// A larger file is not read.
const MAX_BYTES: u64 = 1024 * 1024;
/// How much of its text is kept in an event.
const MAX_KEPT: usize = 8 * 1024;

/// Reads the list where a judge of this policy may need it. Returns `None` if there is none, if it
/// cannot be read, or if it is a link, which could lead to what is nobody's business.
pub(crate) fn read_standing_task_list(
    root: &Path,
    policy: &Policy,
    redactor: &Redactor,
) -> Option<Box<StandingTaskListSnapshot>> {
    let judged = policy
        .verifiers
        .iter()
        .any(|spec| spec.tier == VerifierTier::Judge);
    let path = root.join(NAME);
    let is_link = || {
        let found = path.symlink_metadata();
        found.is_ok_and(|found| found.is_symlink())
    };
    if !judged || is_link() {
        return None;
    }
    let text = durable_file::read_limited_text_file(&path, MAX_BYTES)
        .ok()
        .flatten()?;
    let mut kept = redactor.redact_text(&text).into_owned();
    kept.truncate(kept.floor_char_boundary(MAX_KEPT));
    Some(Box::new(StandingTaskListSnapshot {
        // The digest is that of the whole text, so a change beyond the kept part is seen.
        digest: Digest::hash_bytes(text.as_bytes()),
        text: kept,
    }))
}
