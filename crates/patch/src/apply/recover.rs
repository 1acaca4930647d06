//! The end of an apply, also of one that was killed: each act is done if its file is as it
//! was, passed over if it is as it is to be, and left alone if somebody else has changed it.

use std::io;
use std::path::Path;

use super::journal::{Act, Found, Journal, Phase};
use super::watch::Ops;
use super::{ApplyError, digest, unfinished, untouched};
use crate::disk::Disk;
use crate::path::Within;
use crate::tree::Node;

/// What was found of an apply that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// None was.
    Nothing,
    /// It had not been decided: the tree is as before it.
    TakenBack,
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

pub(super) fn recover(disk: &Disk, memory: &Path, ops: &Ops<'_>) -> Result<Recovered, ApplyError> {
    let journal = match Journal::read(memory) {
        Found::Nothing => return Ok(Recovered::Nothing),
        Found::Journal(journal) => journal,
        Found::NoJournal => {
            let kept = Journal::put_aside(memory).map_err(untouched)?;
            return Ok(Recovered::Unreadable {
                kept: kept.display().to_string(),
            });
        }
    };
    match journal.phase {
        Phase::Staging => {
            take_back(&journal, disk, memory, ops).map_err(untouched)?;
            Ok(Recovered::TakenBack)
        }
        Phase::Decided => {
            let left_alone = finish(&journal, disk, memory, ops).map_err(unfinished)?;
            Ok(Recovered::Finished { left_alone })
        }
    }
}

fn take_back(journal: &Journal, disk: &Disk, memory: &Path, ops: &Ops<'_>) -> io::Result<()> {
    for act in &journal.acts {
        drop_staged(act, disk, ops)?;
    }
    Journal::remove(memory, ops)
}

/// Does what is decided; answers the files that were left alone.
pub(super) fn finish(
    journal: &Journal,
    disk: &Disk,
    memory: &Path,
    ops: &Ops<'_>,
) -> io::Result<Vec<String>> {
    let mut left_alone = Vec::new();
    let mut folders: Vec<Within> = Vec::new();
    // A file may have to go before a folder can come in its place.
    let (comes, goes): (Vec<&Act>, Vec<&Act>) =
        journal.acts.iter().partition(|act| act.after.is_some());
    for act in goes.into_iter().chain(comes) {
        let Some(path) = act.path() else { continue };
        if !one(act, &path, disk, ops, &mut folders)? {
            left_alone.push(act.path.clone());
        }
        if let Some((folder, _)) = path.split() {
            folders.push(folder);
        }
        if let Some((folder, _)) = act.staged().as_ref().and_then(Within::split) {
            folders.push(folder);
        }
    }
    folders.sort();
    folders.dedup();
    for folder in &folders {
        ops.before("sync a folder");
        match disk.root().sync_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Journal::remove(memory, ops)?;
    Ok(left_alone)
}

/// Whether the file is as it is to be now.
fn one(
    act: &Act,
    path: &Within,
    disk: &Disk,
    ops: &Ops<'_>,
    folders: &mut Vec<Within>,
) -> io::Result<bool> {
    let Some(after) = act.after else {
        return gone(act, path, disk, ops);
    };
    let staged = match act.staged() {
        Some(staged) => digest(disk, &staged)?.map(|_| staged),
        None => None,
    };
    // What cannot be read as a file any more is somebody else's change as well.
    let now = digest(disk, path).ok();
    let Some(staged) = staged else {
        return Ok(now == Some(Some(after)));
    };
    if now == Some(act.before) || now == Some(Some(after)) {
        let put = make_folders(path, disk, ops, folders).and_then(|()| {
            ops.before("rename a staged file");
            disk.root().rename(&staged, path)
        });
        match put {
            Ok(()) => return Ok(true),
            Err(error) if is_in_the_way(&error) => {}
            Err(error) => return Err(error),
        }
    }
    drop_staged(act, disk, ops)?;
    Ok(false)
}

fn gone(act: &Act, path: &Within, disk: &Disk, ops: &Ops<'_>) -> io::Result<bool> {
    match disk.root().look(path)? {
        // A folder may stand there by the same patch already.
        Node::Missing | Node::Folder => Ok(true),
        Node::File { .. } if digest(disk, path)? == act.before => {
            ops.before("remove a file");
            disk.root().remove(path)?;
            Ok(true)
        }
        Node::File { .. } | Node::Link(_) | Node::Other => Ok(false),
    }
}

/// Somebody has put something else where a file or a folder was to be.
fn is_in_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::DirectoryNotEmpty
    )
}

fn make_folders(
    path: &Within,
    disk: &Disk,
    ops: &Ops<'_>,
    folders: &mut Vec<Within>,
) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = path.clone();
    while at.pop() && disk.root().look(&at)? != Node::Folder {
        missing.push(at.clone());
    }
    for folder in missing.iter().rev() {
        ops.before("make a folder");
        disk.root().make_folder(folder)?;
        folders.extend(folder.split().map(|(above, _)| above));
    }
    Ok(())
}

fn drop_staged(act: &Act, disk: &Disk, ops: &Ops<'_>) -> io::Result<()> {
    let Some(staged) = act.staged() else {
        return Ok(());
    };
    ops.before("remove a staged file");
    match disk.root().remove(&staged) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
