//! Carries out a plan, all or nothing. New contents are staged beside their targets and synced.
//! Then a journal with the decided changes is renamed into its place. Then the changes are made.
//!
//! A kill or a power cut before that rename leaves the old tree and staged files, which
//! [`recovery`] removes. After it the tree may be half changed, and [`recover_interrupted_apply`]
//! completes the change. Several files cannot be renamed at one instant: meanwhile a reader can see
//! some files old and some new, each of them whole.

mod journal;
mod op_observer;
mod recovery;

#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;

use crate::disk::DiskTree;
use crate::file_tree::{FileTreeReader as _, PathEntryKind};
use crate::plan::{PatchPlan, PlannedFileChange};
use crate::tree_path::PathBelowRoot;
use journal::{PatchApplyJournal, PatchApplyPhase, PatchJournalEntry};
use op_observer::PatchStepObserver;
use recovery::roll_patch_forward;

pub use recovery::PatchRecoveryOutcome;

/// Longest wait for another apply in the same root.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Why a plan was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PatchWriteError {
    /// The tree is unchanged.
    #[error("nothing was changed: {0}")]
    Untouched(String),
    /// Other files were changed by somebody else during the apply and left alone; the rest is done.
    #[error("done but for what somebody else changed at the same moment and was left alone: {0}")]
    Overtaken(String),
    /// The change is recorded but not finished; the next call finishes it.
    #[error("the change is decided but could not be finished: {0}; run the command again")]
    Unfinished(String),
}

/// Carries out a plan. `memory` is a folder outside of the root for this root's journal.
///
/// # Errors
/// If the tree is not what it was when the patch was checked, or the system says no.
pub fn apply_patch_plan(
    plan: &PatchPlan,
    disk: &DiskTree,
    memory: &Path,
) -> Result<(), PatchWriteError> {
    apply_patch_plan_observed(
        plan,
        disk,
        memory,
        &PatchStepObserver::no_patch_step_observer(),
    )
}

/// Completes or reverts what a killed [`apply_patch_plan`] left in this root. It is idempotent: it
/// can itself be killed and called again.
///
/// # Errors
/// If the system says no; nothing is lost by that.
pub fn recover_interrupted_apply(
    disk: &DiskTree,
    memory: &Path,
) -> Result<PatchRecoveryOutcome, PatchWriteError> {
    // Checked without the lock, which would create the folder even if there is nothing to recover.
    if !journal::patch_journal_exists(memory) {
        return Ok(PatchRecoveryOutcome::Nothing);
    }
    let _held = lock_patch_root(memory).map_err(patch_left_tree_untouched_error)?;
    recovery::recover_patch_journal(disk, memory, &PatchStepObserver::no_patch_step_observer())
}

fn apply_patch_plan_observed(
    plan: &PatchPlan,
    disk: &DiskTree,
    memory: &Path,
    ops: &PatchStepObserver<'_>,
) -> Result<(), PatchWriteError> {
    let _held = lock_patch_root(memory).map_err(patch_left_tree_untouched_error)?;
    // An unfinished apply comes first: its journal would be overwritten below.
    recovery::recover_patch_journal(disk, memory, ops)?;
    let (acts, staged) =
        journal_entries_of_plan(plan, disk).map_err(patch_left_tree_untouched_error)?;
    let mut journal = PatchApplyJournal {
        phase: PatchApplyPhase::Staging,
        entries: acts,
    };
    let staging = || -> io::Result<()> {
        // Written before the first staged file, so that recovery knows which files to remove.
        journal.write_journal_durably(memory, ops)?;
        create_staged_files(plan, disk, &journal, &staged, ops)?;
        // The last check before the decision. What changes after it is found file by file when
        // rolling forward.
        ensure_tree_matches_plan(plan, disk)
    };
    if let Err(error) = staging() {
        // An error here is ignored: the journal stays, and the next call cleans up.
        let _ = recovery::recover_patch_journal(disk, memory, ops);
        return Err(patch_left_tree_untouched_error(error));
    }
    // The commit point: from here on the change is completed, not reverted.
    journal.phase = PatchApplyPhase::Decided;
    if let Err(error) = journal.write_journal_durably(memory, ops) {
        // The error may have come before or after the rename. Recovery reads the journal and
        // decides by what it finds.
        return Err(half_applied_patch_error(error));
    }
    let left_alone =
        roll_patch_forward(&journal, disk, memory, ops).map_err(half_applied_patch_error)?;
    match left_alone.is_empty() {
        true => Ok(()),
        false => Err(PatchWriteError::Overtaken(left_alone.join(", "))),
    }
}

fn patch_left_tree_untouched_error(error: io::Error) -> PatchWriteError {
    PatchWriteError::Untouched(error.to_string())
}

fn half_applied_patch_error(error: io::Error) -> PatchWriteError {
    PatchWriteError::Unfinished(error.to_string())
}

/// Locks the root for one apply at a time. The kernel releases the lock when the process dies.
fn lock_patch_root(memory: &Path) -> io::Result<File> {
    create_private_folder(memory)?;
    let file = create_or_truncate_private_file(&memory.join("lock"))?;
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if since.elapsed() > LONGEST_WAIT => {
                return Err(io::Error::other(
                    "another patch is being applied in this folder; try again",
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Creates a folder, and the missing folders above it, for the owner only.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.recursive(true).create(folder)
}

/// Creates or truncates a file that only its owner can read.
fn create_or_truncate_private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(path)
}

/// Returns the journal entries, with a name for each staged file, and the folders of the staged
/// files.
fn journal_entries_of_plan(
    plan: &PatchPlan,
    disk: &DiskTree,
) -> io::Result<(Vec<PatchJournalEntry>, Vec<PathBelowRoot>)> {
    let mut folders = Vec::new();
    let mut acts = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        let staged = match &step.after {
            None => None,
            Some(_) => {
                // Staged in or above the target's folder: `rename` is atomic only within one file
                // system.
                let mut place = nearest_existing_folder(&step.path, disk)?;
                if !folders.contains(&place) {
                    folders.push(place.clone());
                }
                place.push_path_component(&format!(
                    ".checkrein-patch-{:x}-{at}",
                    std::process::id()
                ));
                Some(place.to_string())
            }
        };
        acts.push(PatchJournalEntry {
            path: step.path.to_string(),
            before: step.before,
            after: step
                .after
                .as_ref()
                .map(|content| Digest::hash_bytes(&content.bytes)),
            staged,
        });
    }
    Ok((acts, folders))
}

/// Returns the nearest folder above a path that exists.
fn nearest_existing_folder(path: &PathBelowRoot, disk: &DiskTree) -> io::Result<PathBelowRoot> {
    let mut folder = path.clone();
    while folder.pop_last_component() {
        match disk.root_folder().disk_node_at_path(&folder)? {
            PathEntryKind::Folder => return Ok(folder),
            // A file in the folder's place is removed by the same patch before the folder is
            // created.
            PathEntryKind::Missing | PathEntryKind::File { .. } => {}
            PathEntryKind::Link(_) | PathEntryKind::Other => {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
    }
    Ok(PathBelowRoot::tree_root_path())
}

fn create_staged_files(
    plan: &PatchPlan,
    disk: &DiskTree,
    journal: &PatchApplyJournal,
    folders: &[PathBelowRoot],
    ops: &PatchStepObserver<'_>,
) -> io::Result<()> {
    for (step, act) in plan.steps.iter().zip(&journal.entries) {
        let (Some(content), Some(staged)) = (&step.after, act.staged_path()) else {
            continue;
        };
        ops.call_hook_before_disk_operation("create a staged file");
        let file = disk.root_folder().create_empty_file(
            &staged,
            content.permissions_from.as_ref(),
            content.executable,
        )?;
        ops.write_in_two_observed_halves(&file, &content.bytes)?;
        ops.call_hook_before_disk_operation("sync a staged file");
        file.sync_all()?;
    }
    for folder in folders {
        ops.call_hook_before_disk_operation("sync a folder of staged files");
        disk.root_folder().sync_folder(folder)?;
    }
    Ok(())
}

/// Checks that the tree still is what the plan was made for.
fn ensure_tree_matches_plan(plan: &PatchPlan, disk: &DiskTree) -> io::Result<()> {
    for PlannedFileChange { path, before, .. } in &plan.steps {
        if file_digest(disk, path)? != *before {
            let what =
                format!("{path} was changed by somebody else meanwhile; check the patch again");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

/// Returns the digest of a file's content; `None` if there is no file.
fn file_digest(disk: &DiskTree, path: &PathBelowRoot) -> io::Result<Option<Digest>> {
    match disk
        .file_tree_node_at_path(path)
        .map_err(io::Error::other)?
    {
        PathEntryKind::File { .. } => {
            let bytes = disk
                .root_folder()
                .read_file(path, u64::MAX)?
                .unwrap_or_default();
            Ok(Some(Digest::hash_bytes(&bytes)))
        }
        PathEntryKind::Missing => Ok(None),
        PathEntryKind::Folder | PathEntryKind::Link(_) | PathEntryKind::Other => {
            Err(io::Error::other(format!("{path} is not a file any more")))
        }
    }
}
