//! What an apply was about to do, in one small file that is replaced as a whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use serde::{Deserialize, Serialize};

use super::create_private_file;
use super::op_observer::PatchStepObserver;
use crate::tree_path::PathBelowRoot;

const JOURNAL_NAME: &str = "journal.json";

/// How far an apply had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PatchApplyPhase {
    /// Contents are being staged: all of it can be dropped.
    Staging,
    /// All contents are on disk: it is to be finished.
    Decided,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PatchApplyJournal {
    pub(super) phase: PatchApplyPhase,
    #[serde(rename = "acts")]
    pub(super) entries: Vec<PatchJournalEntry>,
}

/// What is done to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PatchJournalEntry {
    pub(super) path: String,
    pub(super) before: Option<Digest>,
    pub(super) after: Option<Digest>,
    /// Where its new content is staged.
    pub(super) staged: Option<String>,
}

impl PatchJournalEntry {
    /// The file; `None` if this is no path of a root, whoever wrote it.
    pub(super) fn patch_journal_entry_path(&self) -> Option<PathBelowRoot> {
        PathBelowRoot::parse_path_inside_tree(&self.path)
            .filter(|path| !path.has_dot_git_component())
    }

    pub(super) fn staged_path(&self) -> Option<PathBelowRoot> {
        let staged = PathBelowRoot::parse_path_inside_tree(self.staged.as_deref()?)?;
        let (_, name) = staged.parent_and_name()?;
        (name.starts_with(".checkrein-patch-") && !staged.has_dot_git_component()).then_some(staged)
    }
}

/// What lies in the journal's place.
#[derive(Debug)]
pub(super) enum JournalReadResult {
    Missing,
    Journal(PatchApplyJournal),
    /// Something that nobody can read as one.
    Unreadable,
}

impl PatchApplyJournal {
    /// Puts it in its place; after that it survives a power cut.
    pub(super) fn write_journal_durably(
        &self,
        memory: &Path,
        ops: &PatchStepObserver<'_>,
    ) -> io::Result<()> {
        let fresh = memory.join("journal.new");
        let bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        ops.call_hook_before_disk_operation("create the journal");
        let file = create_private_file(&fresh)?;
        ops.write_in_two_observed_halves(&file, &bytes)?;
        ops.call_hook_before_disk_operation("sync the journal");
        file.sync_all()?;
        ops.call_hook_before_disk_operation(match self.phase {
            PatchApplyPhase::Staging => "rename the journal: staging",
            PatchApplyPhase::Decided => "rename the journal: decided",
        });
        fs::rename(&fresh, memory.join(JOURNAL_NAME))?;
        ops.call_hook_before_disk_operation("sync the journal's folder");
        sync_folder(memory)
    }

    /// The journal of an apply that did not come to its end.
    pub(super) fn read_patch_journal(memory: &Path) -> JournalReadResult {
        match fs::read(memory.join(JOURNAL_NAME)) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_or(JournalReadResult::Unreadable, JournalReadResult::Journal),
            Err(error) if error.kind() == io::ErrorKind::NotFound => JournalReadResult::Missing,
            // A folder in its place, or nobody may read it.
            Err(_) => JournalReadResult::Unreadable,
        }
    }

    /// What is no journal must not stop every patch from now on: it goes where a person finds it.
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

    /// Takes it away.
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
