//! What an apply was about to do, in one small file that is replaced as a whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use serde::{Deserialize, Serialize};

use super::create_private_file;
use super::watch::Ops;
use crate::path::Within;

const NAME: &str = "journal.json";

/// How far an apply had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Contents are being staged: all of it can be dropped.
    Staging,
    /// All contents are on disk: it is to be finished.
    Decided,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) phase: Phase,
    #[serde(rename = "acts")]
    pub(super) acts: Vec<Act>,
}

/// What is done to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Act {
    pub(super) path: String,
    pub(super) before: Option<Digest>,
    pub(super) after: Option<Digest>,
    /// Where its new content is staged.
    pub(super) staged: Option<String>,
}

impl Act {
    /// The file; `None` if this is no path of a root, whoever wrote it.
    pub(super) fn path(&self) -> Option<Within> {
        Within::read(&self.path).filter(|path| !path.is_in_git())
    }

    pub(super) fn staged(&self) -> Option<Within> {
        let staged = Within::read(self.staged.as_deref()?)?;
        let (_, name) = staged.split()?;
        (name.starts_with(".checkrein-patch-") && !staged.is_in_git()).then_some(staged)
    }
}

/// What lies in the journal's place.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Journal(Journal),
    /// Something that nobody can read as one.
    NoJournal,
}

impl Journal {
    /// Puts it in its place; after that it survives a power cut.
    pub(super) fn write(&self, memory: &Path, ops: &Ops<'_>) -> io::Result<()> {
        let fresh = memory.join("journal.new");
        let bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        ops.before("create the journal");
        let file = create_private_file(&fresh)?;
        ops.write(&file, &bytes)?;
        ops.before("sync the journal");
        file.sync_all()?;
        ops.before(match self.phase {
            Phase::Staging => "rename the journal: staging",
            Phase::Decided => "rename the journal: decided",
        });
        fs::rename(&fresh, memory.join(NAME))?;
        ops.before("sync the journal's folder");
        sync(memory)
    }

    /// The journal of an apply that did not come to its end.
    pub(super) fn read(memory: &Path) -> Found {
        match fs::read(memory.join(NAME)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_or(Found::NoJournal, Found::Journal),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
            // A folder in its place, or nobody may read it.
            Err(_) => Found::NoJournal,
        }
    }

    /// What is no journal must not stop every patch from now on: it goes where a person finds it.
    pub(super) fn put_aside(memory: &Path) -> io::Result<PathBuf> {
        let mut number = 1;
        let aside = loop {
            let aside = memory.join(format!("unreadable-{number}.json"));
            if fs::symlink_metadata(&aside).is_err() {
                break aside;
            }
            number += 1;
        };
        fs::rename(memory.join(NAME), &aside)?;
        sync(memory)?;
        Ok(aside)
    }

    /// Takes it away.
    pub(super) fn remove(memory: &Path, ops: &Ops<'_>) -> io::Result<()> {
        ops.before("remove the journal");
        fs::remove_file(memory.join(NAME))?;
        ops.before("sync the journal's folder");
        sync(memory)
    }
}

pub(super) fn exists(memory: &Path) -> bool {
    fs::symlink_metadata(memory.join(NAME)).is_ok()
}

#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync(_folder: &Path) -> io::Result<()> {
    // Folders cannot be opened there; the system orders its own records.
    Ok(())
}
