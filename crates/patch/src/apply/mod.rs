//! A plan carried out, all or nothing. New contents are staged beside their targets and synced;
//! then a journal that says what is to happen is renamed into its place; then it happens.
//!
//! What a kill, or a power cut, leaves: before that rename the old tree and staged files,
//! which [`recover`] removes; after it a tree that may be half way, which [`recover`] brings to
//! the new one. Nobody can rename several files at one instant: until then a reader can see
//! some files old and some new, each whole.

mod journal;
mod recover;
mod watch;

#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;

use crate::disk::Disk;
use crate::path::Within;
use crate::plan::{Plan, Step};
use crate::tree::{Node, Tree as _};
use journal::{Act, Journal, Phase};
use recover::finish;
use watch::Ops;

pub use recover::Recovered;

/// How long another apply in the same root is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Why a plan was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The tree is as it was.
    #[error("nothing was changed: {0}")]
    Untouched(String),
    /// Somebody changed files at the very moment: the rest is done.
    #[error("done but for what somebody else changed at the same moment and was left alone: {0}")]
    Overtaken(String),
    /// The change is on record and not done yet: the next call takes it up.
    #[error("the change is decided but could not be finished: {0}; run the command again")]
    Unfinished(String),
}

/// Carries out a plan. `memory` is a folder of this root's own, outside of it, for the
/// journal.
///
/// # Errors
/// If the tree is not what it was when the patch was checked, or the system says no.
pub fn apply(plan: &Plan, disk: &Disk, memory: &Path) -> Result<(), ApplyError> {
    apply_with(plan, disk, memory, &Ops::plain())
}

/// Takes up what a killed [`apply`] left in this root. It may be killed itself, and be called
/// again: the end is the same.
///
/// # Errors
/// If the system says no; nothing is lost by that.
pub fn recover(disk: &Disk, memory: &Path) -> Result<Recovered, ApplyError> {
    if !journal::exists(memory) {
        return Ok(Recovered::Nothing);
    }
    let _held = hold(memory).map_err(untouched)?;
    recover::recover(disk, memory, &Ops::plain())
}

fn apply_with(plan: &Plan, disk: &Disk, memory: &Path, ops: &Ops<'_>) -> Result<(), ApplyError> {
    let _held = hold(memory).map_err(untouched)?;
    recover::recover(disk, memory, ops)?;
    let (acts, staged) = acts(plan, disk).map_err(untouched)?;
    let mut journal = Journal {
        phase: Phase::Staging,
        acts,
    };
    let staging = || -> io::Result<()> {
        journal.write(memory, ops)?;
        stage(plan, disk, &journal, &staged, ops)?;
        unchanged(plan, disk)
    };
    if let Err(error) = staging() {
        // What cannot be taken back now is, by the next call.
        let _ = recover::recover(disk, memory, ops);
        return Err(untouched(error));
    }
    journal.phase = Phase::Decided;
    if let Err(error) = journal.write(memory, ops) {
        // Whether it is in its place is for whoever reads it to see.
        return Err(unfinished(error));
    }
    let left_alone = finish(&journal, disk, memory, ops).map_err(unfinished)?;
    match left_alone.is_empty() {
        true => Ok(()),
        false => Err(ApplyError::Overtaken(left_alone.join(", "))),
    }
}

fn untouched(error: io::Error) -> ApplyError {
    ApplyError::Untouched(error.to_string())
}

fn unfinished(error: io::Error) -> ApplyError {
    ApplyError::Unfinished(error.to_string())
}

/// One at a time in this root; the kernel lets go when the process dies.
fn hold(memory: &Path) -> io::Result<File> {
    private_folder(memory)?;
    let file = create_private_file(&memory.join("lock"))?;
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

/// Nobody else reads there; so it is of every folder above that is not there yet.
fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.recursive(true).create(folder)
}

/// Makes a file that nobody else reads, or empties it.
fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(path)
}

/// What is to be done, with a name for each staged file; and the folders these lie in.
fn acts(plan: &Plan, disk: &Disk) -> io::Result<(Vec<Act>, Vec<Within>)> {
    let mut folders = Vec::new();
    let mut acts = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        let staged = match &step.after {
            None => None,
            Some(_) => {
                let mut place = nearest_folder(&step.path, disk)?;
                if !folders.contains(&place) {
                    folders.push(place.clone());
                }
                place.push(&format!(".checkrein-patch-{:x}-{at}", std::process::id()));
                Some(place.to_string())
            }
        };
        acts.push(Act {
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

/// The folder that a path lies in, or the nearest above it that is there.
fn nearest_folder(path: &Within, disk: &Disk) -> io::Result<Within> {
    let mut folder = path.clone();
    while folder.pop() {
        match disk.root().look(&folder)? {
            Node::Folder => return Ok(folder),
            // A file in its place goes before the folder comes.
            Node::Missing | Node::File { .. } => {}
            Node::Link(_) | Node::Other => return Err(io::ErrorKind::NotADirectory.into()),
        }
    }
    Ok(Within::root())
}

fn stage(
    plan: &Plan,
    disk: &Disk,
    journal: &Journal,
    folders: &[Within],
    ops: &Ops<'_>,
) -> io::Result<()> {
    for (step, act) in plan.steps.iter().zip(&journal.acts) {
        let (Some(content), Some(staged)) = (&step.after, act.staged()) else {
            continue;
        };
        ops.before("create a staged file");
        let file = disk
            .root()
            .create(&staged, content.like.as_ref(), content.executable)?;
        ops.write(&file, &content.bytes)?;
        ops.before("sync a staged file");
        file.sync_all()?;
    }
    for folder in folders {
        ops.before("sync a folder of staged files");
        disk.root().sync_folder(folder)?;
    }
    Ok(())
}

/// Whether the tree is what the plan was made for.
fn unchanged(plan: &Plan, disk: &Disk) -> io::Result<()> {
    for Step { path, before, .. } in &plan.steps {
        if digest(disk, path)? != *before {
            let what =
                format!("{path} was changed by somebody else meanwhile; check the patch again");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

/// What a file holds; `None` if there is none.
fn digest(disk: &Disk, path: &Within) -> io::Result<Option<Digest>> {
    match disk.look(path).map_err(io::Error::other)? {
        Node::File { .. } => {
            let bytes = disk.root().read(path, u64::MAX)?.unwrap_or_default();
            Ok(Some(Digest::hash_bytes(&bytes)))
        }
        Node::Missing => Ok(None),
        Node::Folder | Node::Link(_) | Node::Other => {
            Err(io::Error::other(format!("{path} is not a file any more")))
        }
    }
}
