//! Finds the files that Checkrein itself prints into: `checkrein run > out.json` grows a file of
//! the tree while checks run. Their content is no part of the tree.
//!
//! `run` also announces them to the hooks inside of it, which are processes of their own: by a file
//! in the state folder, since an agent can set the environment of its hooks and could hide any file
//! that way.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use checkrein_verifiers::private_file::{create_private_folder, open_private_file};
use checkrein_verifiers::tree::FileId;

use crate::durable_file;

/// Set in the environment of agents that `run` has started.
const RUN_VARIABLE: &str = "CHECKREIN_RUN";
/// The folder in the state folder that holds one file per `run` at work, named by its process.
const FOLDER: &str = "printed";

/// An announcement, which holds as long as the run lives: the file is locked.
#[derive(Debug)]
pub struct RunOutputFileAnnouncement {
    path: PathBuf,
    _locked: File,
}

impl Drop for RunOutputFileAnnouncement {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Announces what this process prints into to every process that judges in this state folder.
/// Returns `None` if that is no file.
pub fn register_stdout_stderr_files(state: &Path) -> Option<RunOutputFileAnnouncement> {
    let ids = own_stdout_stderr_file_ids();
    if ids.is_empty() {
        return None;
    }
    let lines: Vec<String> = ids
        .iter()
        .map(|FileId { device, inode }| format!("{device} {inode}\n"))
        .collect();
    let path = state.join(FOLDER).join(std::process::id().to_string());
    create_private_folder(&state.join(FOLDER)).ok()?;
    let mut file = open_private_file(&path, File::options().write(true).truncate(true)).ok()?;
    // Locked before it is written: a reader takes only what a living process holds.
    file.try_lock().ok()?;
    file.write_all(lines.concat().as_bytes()).ok()?;
    Some(RunOutputFileAnnouncement {
        path,
        _locked: file,
    })
}

/// Whether this process may print into a file of this tree.
#[cfg(unix)]
pub(crate) fn stdout_may_be_tree_file(root: &Path) -> bool {
    // Where the file's path cannot be read, it may be any file.
    let elsewhere = |fd: &u32| {
        let file = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        file.is_ok_and(|file| !file.starts_with(root))
    };
    !own_stdout_stderr_file_ids().is_empty() && ![1, 2].iter().all(elsewhere)
}

/// The files that this process prints into, and, for a hook inside of a run, those of each run at
/// work in this state folder. Nobody else's agent can hide a file by a run of its own.
pub(crate) fn own_output_file_ids(
    state: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> BTreeSet<FileId> {
    let mut ids = own_stdout_stderr_file_ids();
    // Outside of a run, a hook believes nobody's announcement.
    if !env.contains_key(OsStr::new(RUN_VARIABLE)) {
        return ids;
    }
    let Ok(entries) = std::fs::read_dir(state.join(FOLDER)) else {
        return ids;
    };
    for entry in entries.flatten() {
        if is_announcement_of_live_run(&entry.path()) {
            let text =
                durable_file::read_limited_text_file(&entry.path(), durable_file::MAX_SMALL_BYTES);
            ids.extend(
                text.ok()
                    .flatten()
                    .iter()
                    .flat_map(|text| text.lines())
                    .filter_map(parse_file_id),
            );
        }
    }
    ids
}

fn parse_file_id(line: &str) -> Option<FileId> {
    let (device, inode) = line.split_once(' ')?;
    Some(FileId {
        device: device.parse().ok()?,
        inode: inode.parse().ok()?,
    })
}

#[cfg(unix)]
fn own_stdout_stderr_file_ids() -> BTreeSet<FileId> {
    use std::os::fd::AsFd as _;
    // Duplicates are asked, so that closing them leaves the process's own descriptors open.
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let copies = [out.as_fd(), err.as_fd()].map(|fd| fd.try_clone_to_owned().ok());
    let of = |fd| FileId::from_metadata(&File::from(fd).metadata().ok()?);
    copies.into_iter().flatten().filter_map(of).collect()
}

#[cfg(not(unix))]
fn own_stdout_stderr_file_ids() -> BTreeSet<FileId> {
    BTreeSet::new()
}

/// Whether the process that made the file still runs: what a killed one left does not count.
fn is_announcement_of_live_run(file: &Path) -> bool {
    File::open(file)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
