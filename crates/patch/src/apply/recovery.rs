//! The end of an apply, also of one that was killed: each act is done if its file is as it
//! was, passed over if it is as it is to be, and left alone if somebody else has changed it.

use std::io;
use std::path::Path;

use super::journal::{JournalReadResult, PatchApplyJournal, PatchApplyPhase, PatchJournalEntry};
use super::op_observer::PatchStepObserver;
use super::{
    PatchApplyError, file_digest, patch_left_tree_untouched_error, unfinished_patch_error,
};
use crate::disk::DiskTree;
use crate::file_tree::TreeNode;
use crate::tree_path::PathBelowRoot;

/// What was found of an apply that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchRecoveryOutcome {
    /// None was.
    Nothing,
    /// It had not been decided: the tree is as before it.
    RolledBack,
    /// It had been decided: the tree is as after it.
    Finished {
        /// But for these, which somebody changed after the kill: they were left alone.
        left_alone: Vec<String>,
    },
    /// Nobody can read what it left behind: that was put aside, and it may have been half way.
    Unreadable {
        /// Where it lies now.
        kept: String,
    },
}

pub(super) fn recover_patch_journal(
    disk: &DiskTree,
    memory: &Path,
    ops: &PatchStepObserver<'_>,
) -> Result<PatchRecoveryOutcome, PatchApplyError> {
    let journal = match PatchApplyJournal::read_patch_journal(memory) {
        JournalReadResult::Missing => return Ok(PatchRecoveryOutcome::Nothing),
        JournalReadResult::Journal(journal) => journal,
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
            roll_back_patch(&journal, disk, memory, ops)
                .map_err(patch_left_tree_untouched_error)?;
            Ok(PatchRecoveryOutcome::RolledBack)
        }
        PatchApplyPhase::Decided => {
            let left_alone =
                roll_patch_forward(&journal, disk, memory, ops).map_err(unfinished_patch_error)?;
            Ok(PatchRecoveryOutcome::Finished { left_alone })
        }
    }
}

fn roll_back_patch(
    journal: &PatchApplyJournal,
    disk: &DiskTree,
    memory: &Path,
    ops: &PatchStepObserver<'_>,
) -> io::Result<()> {
    for act in &journal.entries {
        delete_staged_file(act, disk, ops)?;
    }
    PatchApplyJournal::delete_patch_journal(memory, ops)
}

/// Does what is decided; answers the files that were left alone.
pub(super) fn roll_patch_forward(
    journal: &PatchApplyJournal,
    disk: &DiskTree,
    memory: &Path,
    ops: &PatchStepObserver<'_>,
) -> io::Result<Vec<String>> {
    let mut left_alone = Vec::new();
    let mut folders: Vec<PathBelowRoot> = Vec::new();
    // A file may have to go before a folder can come in its place.
    let (comes, goes): (Vec<&PatchJournalEntry>, Vec<&PatchJournalEntry>) =
        journal.entries.iter().partition(|act| act.after.is_some());
    for act in goes.into_iter().chain(comes) {
        let Some(path) = act.patch_journal_entry_path() else {
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
        match disk.root_folder().sync_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    PatchApplyJournal::delete_patch_journal(memory, ops)?;
    Ok(left_alone)
}

/// Whether the file is as it is to be now.
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
    // What cannot be read as a file any more is somebody else's change as well.
    let now = file_digest(disk, path).ok();
    let Some(staged) = staged else {
        return Ok(now == Some(Some(after)));
    };
    if now == Some(act.before) || now == Some(Some(after)) {
        let put = create_folders(path, disk, ops, folders).and_then(|()| {
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
    match disk.root_folder().tree_node_at(path)? {
        // A folder may stand there by the same patch already.
        TreeNode::Missing | TreeNode::Folder => Ok(true),
        TreeNode::File { .. } if file_digest(disk, path)? == act.before => {
            ops.call_hook_before_disk_operation("remove a file");
            disk.root_folder().remove_file_below_root(path)?;
            Ok(true)
        }
        TreeNode::File { .. } | TreeNode::Link(_) | TreeNode::Other => Ok(false),
    }
}

/// Somebody has put something else where a file or a folder was to be.
fn is_obstruction_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::DirectoryNotEmpty
    )
}

fn create_folders(
    path: &PathBelowRoot,
    disk: &DiskTree,
    ops: &PatchStepObserver<'_>,
    folders: &mut Vec<PathBelowRoot>,
) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = path.clone();
    while at.pop_path_name() && disk.root_folder().tree_node_at(&at)? != TreeNode::Folder {
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
