//! Defines the journal of an apply: one small file that lists what is about to be done. It is
//! always replaced as a whole, so a reader sees an old or a new journal, never a part.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use serde::{Deserialize, Serialize};

use super::create_or_truncate_private_file;
use super::op_observer::PatchStepObserver;
use crate::tree_path::PathBelowRoot;

const JOURNAL_NAME: &str = "journal.json";

/// The phase that an apply has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PatchApplyPhase {
    /// Contents are being staged; recovery removes them.
    Staging,
    /// All contents are on disk; recovery finishes the apply.
    Decided,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PatchApplyJournal {
    pub(super) phase: PatchApplyPhase,
    #[serde(rename = "acts")]
    pub(super) entries: Vec<PatchJournalEntry>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PatchJournalEntry {
    pub(super) path: String,
    pub(super) before: Option<Digest>,
    pub(super) after: Option<Digest>,
    /// Where its new content is staged.
    pub(super) staged: Option<String>,
}

impl PatchJournalEntry {
    /// Returns the path of the file; `None` if it could lead out of the root or into `.git`. The
    /// journal's content is not trusted.
    pub(super) fn changed_path_inside_root(&self) -> Option<PathBelowRoot> {
        PathBelowRoot::parse_path_inside_tree(&self.path)
            .filter(|path| !path.has_dot_git_component())
    }

    pub(super) fn staged_path(&self) -> Option<PathBelowRoot> {
        let staged = PathBelowRoot::parse_path_inside_tree(self.staged.as_deref()?)?;
        let (_, name) = staged.parent_and_name()?;
        // Recovery deletes and renames this file. The prefix keeps a forged journal from naming
        // others.
        (name.starts_with(".checkrein-patch-") && !staged.has_dot_git_component()).then_some(staged)
    }
}

/// What is found in the journal's place.
#[derive(Debug)]
pub(super) enum JournalReadResult {
    Missing,
    Journal(PatchApplyJournal),
    /// Something that cannot be parsed as a journal.
    Unreadable,
}

impl PatchApplyJournal {
    /// Writes the journal and renames it into its place. After that it survives a power cut.
    pub(super) fn write_journal_durably(
        &self,
        memory: &Path,
        ops: &PatchStepObserver<'_>,
    ) -> io::Result<()> {
        let fresh = memory.join("journal.new");
        let bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        ops.call_hook_before_disk_operation("create the journal");
        let file = create_or_truncate_private_file(&fresh)?;
        ops.write_in_two_observed_halves(&file, &bytes)?;
        ops.call_hook_before_disk_operation("sync the journal");
        // Synced before the rename: after a power cut the name must not lead to an empty file.
        file.sync_all()?;
        ops.call_hook_before_disk_operation(match self.phase {
            PatchApplyPhase::Staging => "rename the journal: staging",
            PatchApplyPhase::Decided => "rename the journal: decided",
        });
        fs::rename(&fresh, memory.join(JOURNAL_NAME))?;
        ops.call_hook_before_disk_operation("sync the journal's folder");
        // The rename itself is durable only once the folder is synced.
        sync_folder(memory)
    }

    /// Reads the journal of an unfinished apply.
    pub(super) fn read_patch_journal(memory: &Path) -> JournalReadResult {
        match fs::read(memory.join(JOURNAL_NAME)) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_or(JournalReadResult::Unreadable, JournalReadResult::Journal),
            Err(error) if error.kind() == io::ErrorKind::NotFound => JournalReadResult::Missing,
            // A folder in its place, or missing permission.
            Err(_) => JournalReadResult::Unreadable,
        }
    }

    /// Renames an unreadable journal, so that it does not block every later patch and a person can
    /// look at it.
    pub(super) fn set_aside_unreadable_journal(memory: &Path) -> io::Result<PathBuf> {
        let mut number = 1;
        let aside = loop {
            let aside = memory.join(format!("unreadable-{number}.json"));
            if fs::symlink_metadata(&aside).is_err() {
                break aside;
            }
            number += 1;
        };
        fs::rename(memory.join(JOURNAL_NAME), &aside)?;
        sync_folder(memory)?;
        Ok(aside)
    }

    /// Deletes the journal. The apply is finished with that.
    pub(super) fn delete_patch_journal(
        memory: &Path,
        ops: &PatchStepObserver<'_>,
    ) -> io::Result<()> {
        ops.call_hook_before_disk_operation("remove the journal");
        fs::remove_file(memory.join(JOURNAL_NAME))?;
        ops.call_hook_before_disk_operation("sync the journal's folder");
        sync_folder(memory)
    }
}

pub(super) fn patch_journal_exists(memory: &Path) -> bool {
    fs::symlink_metadata(memory.join(JOURNAL_NAME)).is_ok()
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    // Folders cannot be opened there; the system orders its own records.
    Ok(())
}
