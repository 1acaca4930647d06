//! Finishes an apply, including one that was killed. Each entry is carried out if its file has the
//! old content, skipped if it has the new content, and left alone if somebody else has changed it.

use std::io;
use std::path::Path;

use super::journal::{JournalReadResult, PatchApplyJournal, PatchApplyPhase, PatchJournalEntry};
use super::op_observer::PatchStepObserver;
use super::{
    PatchWriteError, file_digest, half_applied_patch_error, patch_left_tree_untouched_error,
};
use crate::disk::DiskTree;
use crate::file_tree::PathEntryKind;
use crate::tree_path::PathBelowRoot;

/// What recovery did about a killed apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchRecoveryOutcome {
    /// There was none.
    Nothing,
    /// It had not been decided; the tree is unchanged.
    RolledBack,
    /// It had been decided and was completed.
    Finished {
        /// Files that somebody else changed after the kill; they were left alone.
        left_alone: Vec<String>,
    },
    /// Its journal cannot be read and was put aside. The tree may be half changed.
    Unreadable {
        /// The path of the file that was put aside.
        kept: String,
    },
}

pub(super) fn recover_patch_journal(
    disk: &DiskTree,
    memory: &Path,
    ops: &PatchStepObserver<'_>,
) -> Result<PatchRecoveryOutcome, PatchWriteError> {
    let journal = match PatchApplyJournal::read_patch_journal(memory) {
        JournalReadResult::Missing => return Ok(PatchRecoveryOutcome::Nothing),
        JournalReadResult::Journal(journal) => journal,
        // Set aside and not deleted: it may be all that is known of a half-finished change.
        JournalReadResult::Unreadable => {
            let kept = PatchApplyJournal::set_aside_unreadable_journal(memory)
                .map_err(patch_left_tree_untouched_error)?;
            return Ok(PatchRecoveryOutcome::Unreadable {
                kept: kept.display().to_string(),
            });
        }
    };
    match journal.phase {
        PatchApplyPhase::Staging => {
            discard_staged_patch(&journal, disk, memory, ops)
                .map_err(patch_left_tree_untouched_error)?;
            Ok(PatchRecoveryOutcome::RolledBack)
        }
        PatchApplyPhase::Decided => {
            let left_alone = roll_patch_forward(&journal, disk, memory, ops)
                .map_err(half_applied_patch_error)?;
            Ok(PatchRecoveryOutcome::Finished { left_alone })
        }
    }
}

fn discard_staged_patch(
    journal: &PatchApplyJournal,
    disk: &DiskTree,
    memory: &Path,
    ops: &PatchStepObserver<'_>,
) -> io::Result<()> {
    for act in &journal.entries {
        // The journal is deleted last: if this is interrupted, the next recovery starts over.
        delete_staged_file(act, disk, ops)?;
    }
    PatchApplyJournal::delete_patch_journal(memory, ops)
}

/// Carries out a decided journal; returns the files that were left alone.
pub(super) fn roll_patch_forward(
    journal: &PatchApplyJournal,
    disk: &DiskTree,
    memory: &Path,
    ops: &PatchStepObserver<'_>,
) -> io::Result<Vec<String>> {
    let mut left_alone = Vec::new();
    let mut folders: Vec<PathBelowRoot> = Vec::new();
    // Removals first: a file may have to go before a folder can be created in its place.
    let (comes, goes): (Vec<&PatchJournalEntry>, Vec<&PatchJournalEntry>) =
        journal.entries.iter().partition(|act| act.after.is_some());
    for act in goes.into_iter().chain(comes) {
        // An entry that could lead out of the root is skipped: whoever can write the journal must
        // not gain a way to write elsewhere.
        let Some(path) = act.changed_path_inside_root() else {
            continue;
        };
        if !finish_journaled_file(act, &path, disk, ops, &mut folders)? {
            left_alone.push(act.path.clone());
        }
        if let Some((folder, _)) = path.parent_and_name() {
            folders.push(folder);
        }
        if let Some((folder, _)) = act
            .staged_path()
            .as_ref()
            .and_then(PathBelowRoot::parent_and_name)
        {
            folders.push(folder);
        }
    }
    folders.sort();
    folders.dedup();
    for folder in &folders {
        ops.call_hook_before_disk_operation("sync a folder");
        // All folders are synced before the journal is deleted, or a power cut could lose a rename
        // that nothing would repeat.
        match disk.root_folder().sync_folder(folder) {
            // Somebody removed the folder meanwhile: there is nothing to make durable.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    PatchApplyJournal::delete_patch_journal(memory, ops)?;
    Ok(left_alone)
}

/// Carries out one entry; returns whether the file has its new content now.
fn finish_journaled_file(
    act: &PatchJournalEntry,
    path: &PathBelowRoot,
    disk: &DiskTree,
    ops: &PatchStepObserver<'_>,
    folders: &mut Vec<PathBelowRoot>,
) -> io::Result<bool> {
    let Some(after) = act.after else {
        return recover_file_removal(act, path, disk, ops);
    };
    let staged = match act.staged_path() {
        Some(staged) => file_digest(disk, &staged)?.map(|_| staged),
        None => None,
    };
    // A path that is no readable file any more counts as changed by somebody else.
    let now = file_digest(disk, path).ok();
    // Without a staged file the rename has happened: the content shows whether it is still there.
    let Some(staged) = staged else {
        return Ok(now == Some(Some(after)));
    };
    // The new content counts, too: a rename onto it changes nothing and removes the staged file.
    if now == Some(act.before) || now == Some(Some(after)) {
        let put = create_missing_parent_folders(path, disk, ops, folders).and_then(|()| {
            ops.call_hook_before_disk_operation("rename a staged file");
            disk.root_folder().rename_file(&staged, path)
        });
        match put {
            Ok(()) => return Ok(true),
            Err(error) if is_obstruction_error(&error) => {}
            Err(error) => return Err(error),
        }
    }
    delete_staged_file(act, disk, ops)?;
    Ok(false)
}

fn recover_file_removal(
    act: &PatchJournalEntry,
    path: &PathBelowRoot,
    disk: &DiskTree,
    ops: &PatchStepObserver<'_>,
) -> io::Result<bool> {
    match disk.root_folder().disk_node_at_path(path)? {
        // Done before, or the same patch has already created a folder in its place.
        PathEntryKind::Missing | PathEntryKind::Folder => Ok(true),
        PathEntryKind::File { .. } if file_digest(disk, path)? == act.before => {
            ops.call_hook_before_disk_operation("remove a file");
            disk.root_folder().remove_file_below_root(path)?;
            Ok(true)
        }
        PathEntryKind::File { .. } | PathEntryKind::Link(_) | PathEntryKind::Other => Ok(false),
    }
}

/// Returns whether the error means that something else is in the place of a file or folder.
fn is_obstruction_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::DirectoryNotEmpty
    )
}

fn create_missing_parent_folders(
    path: &PathBelowRoot,
    disk: &DiskTree,
    ops: &PatchStepObserver<'_>,
    folders: &mut Vec<PathBelowRoot>,
) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = path.clone();
    while at.pop_last_component()
        && disk.root_folder().disk_node_at_path(&at)? != PathEntryKind::Folder
    {
        missing.push(at.clone());
    }
    for folder in missing.iter().rev() {
        ops.call_hook_before_disk_operation("make a folder");
        disk.root_folder().create_folder_below_root(folder)?;
        folders.extend(folder.parent_and_name().map(|(above, _)| above));
    }
    Ok(())
}

fn delete_staged_file(
    act: &PatchJournalEntry,
    disk: &DiskTree,
    ops: &PatchStepObserver<'_>,
) -> io::Result<()> {
    let Some(staged) = act.staged_path() else {
        return Ok(());
    };
    ops.call_hook_before_disk_operation("remove a staged file");
    match disk.root_folder().remove_file_below_root(&staged) {
        // An interrupted recovery may have removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
