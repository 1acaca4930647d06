//! Manages placeholders: an empty file or folder where a guarded one is missing, so that an agent
//! cannot create it. They exist for one run and are removed after it. A journal names them, so that
//! the next run removes what a killed run left behind. Runs at the same time share them.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use checkrein_runtime::durable_file;
use checkrein_verifiers::private_file::{create_private_folder, open_private_file};
use serde::{Deserialize, Serialize};

/// The file whose lock a run holds as long as it lives.
const ALIVE_LOCK: &str = "alive";
const JOURNAL: &str = "journal.json";
/// The file whose lock is held while placeholders are created or removed.
const RUNS_LOCK: &str = "mutex";

/// A file or folder that stands in for a missing one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MissingPathStandIn {
    pub(crate) path: PathBuf,
    /// The contents of a file; none = a folder.
    pub(crate) text: Option<String>,
}

/// The placeholders of one run.
#[derive(Debug)]
pub(super) struct SandboxPlaceholderFiles {
    runs: PathBuf,
    folder: PathBuf,
    alive: File,
}

impl SandboxPlaceholderFiles {
    /// Begins a run.
    pub(super) fn create_folder_of_confined_run(runs: &Path) -> io::Result<Self> {
        create_private_folder(runs)?;
        let mutex = lock_runs_folder(runs)?;
        remove_placeholder_files_of_dead_runs(runs)?;
        // A process id may come back while the folder of its former owner is still there.
        let folder = (0_u32..)
            .map(|nth| runs.join(format!("{}-{nth}", std::process::id())))
            .find(|folder| !folder.exists())
            .unwrap_or_else(|| runs.join("run"));
        create_private_folder(&folder)?;
        let mut options = File::options();
        options.write(true).truncate(true);
        let alive = open_private_file(&folder.join(ALIVE_LOCK), &mut options)?;
        alive.lock()?;
        drop(mutex);
        Ok(Self {
            runs: runs.to_owned(),
            folder,
            alive,
        })
    }

    /// Returns the folder of this run.
    pub(super) fn sandboxed_run_folder(&self) -> &Path {
        &self.folder
    }

    /// Creates what is missing, and returns everything that is only a placeholder.
    pub(super) fn create_sandbox_placeholders(
        &mut self,
        wanted: impl Iterator<Item = MissingPathStandIn>,
    ) -> io::Result<Vec<MissingPathStandIn>> {
        let _mutex = lock_runs_folder(&self.runs)?;
        let others = placeholder_files_of_living_runs(&self.runs, Some(&self.folder));
        let mut lent = Vec::new();
        for placeholder in wanted {
            // A placeholder that exists already counts for this run too: whichever run ends last
            // removes it.
            let shared = others.contains(&placeholder) || lent.contains(&placeholder);
            if placeholder.path.symlink_metadata().is_err() || shared {
                lent.push(placeholder);
            }
        }
        // The journal is written before the first placeholder: a run that is killed from here on
        // has recorded what to remove.
        let journal = serde_json::to_vec(&lent).unwrap_or_default();
        durable_file::write_atomically(&self.folder.join(JOURNAL), &journal)?;
        for placeholder in &lent {
            if placeholder.path.symlink_metadata().is_ok() {
                continue;
            }
            match &placeholder.text {
                Some(text) => std::fs::write(&placeholder.path, text)?,
                None => std::fs::create_dir(&placeholder.path)?,
            }
        }
        Ok(lent)
    }
}

impl Drop for SandboxPlaceholderFiles {
    fn drop(&mut self) {
        if let Ok(_mutex) = lock_runs_folder(&self.runs) {
            // What cannot be removed now stays in the journal for the next run.
            let _ = self.alive.unlock();
            let _ = remove_run_placeholder_files(&self.runs, &self.folder);
        }
    }
}

/// Removes the placeholders of runs that are gone.
pub(super) fn remove_dead_runs_mount_placeholders(runs: &Path) -> io::Result<()> {
    let _mutex = lock_runs_folder(runs)?;
    remove_placeholder_files_of_dead_runs(runs)
}

fn remove_placeholder_files_of_dead_runs(runs: &Path) -> io::Result<()> {
    for folder in folders_of_confined_runs(runs) {
        if !is_confined_run_alive(&folder) {
            remove_run_placeholder_files(runs, &folder)?;
        }
    }
    Ok(())
}

/// Removes what this run created, unless another run still needs it or somebody changed it.
fn remove_run_placeholder_files(runs: &Path, folder: &Path) -> io::Result<()> {
    let others = placeholder_files_of_living_runs(runs, Some(folder));
    let mut mine = read_sandbox_placeholder_journal(folder);
    // Files before the folders that they are in.
    mine.sort_by_key(|placeholder| std::cmp::Reverse(placeholder.path.components().count()));
    for placeholder in mine.iter().filter(|mine| !others.contains(mine)) {
        let gone = match &placeholder.text {
            Some(text) => match durable_file::read_regular_file(
                &placeholder.path,
                durable_file::MAX_SMALL_BYTES,
            ) {
                // A file with other contents is somebody's work by now.
                Ok(Some(bytes)) if bytes == text.as_bytes() => {
                    std::fs::remove_file(&placeholder.path)
                }
                _ => Ok(()),
            },
            // A folder that somebody uses by now is not empty, and stays.
            None => std::fs::remove_dir(&placeholder.path).or(Ok(())),
        };
        gone?;
    }
    std::fs::remove_dir_all(folder)
}

fn lock_runs_folder(runs: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).truncate(false);
    let file = open_private_file(&runs.join(RUNS_LOCK), &mut options)?;
    file.lock()?;
    Ok(file)
}

fn folders_of_confined_runs(runs: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(runs).into_iter().flatten();
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

fn is_confined_run_alive(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(ALIVE_LOCK)) else {
        return false;
    };
    // The kernel frees the lock when its holder dies, so a lock that can be taken belongs to
    // nobody.
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Returns the placeholders of living runs other than this one.
fn placeholder_files_of_living_runs(runs: &Path, but: Option<&Path>) -> Vec<MissingPathStandIn> {
    folders_of_confined_runs(runs)
        .iter()
        .filter(|folder| Some(folder.as_path()) != but && is_confined_run_alive(folder))
        .flat_map(|folder| read_sandbox_placeholder_journal(folder))
        .collect()
}

fn read_sandbox_placeholder_journal(folder: &Path) -> Vec<MissingPathStandIn> {
    durable_file::read_regular_file(&folder.join(JOURNAL), durable_file::MAX_CONFIG_BYTES)
        .ok()
        .flatten()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str) -> MissingPathStandIn {
        MissingPathStandIn {
            path: folder.join(name),
            text: Some("{}\n".to_owned()),
        }
    }

    #[test]
    fn given_back_by_the_last_that_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let (runs, repo) = (folder.path().join("runs"), folder.path().join("repo"));
        std::fs::create_dir(&repo).unwrap();
        std::fs::write(repo.join("there"), "a person's").unwrap();
        let wanted = || {
            let tree = MissingPathStandIn {
                path: repo.join("made"),
                text: None,
            };
            [
                tree,
                file(&repo.join("made"), "in"),
                file(&repo, "there"),
                file(&repo, "new"),
            ]
        };
        let mut one = SandboxPlaceholderFiles::create_folder_of_confined_run(&runs).unwrap();
        let lent = one
            .create_sandbox_placeholders(wanted().into_iter())
            .unwrap();
        assert_eq!(lent.len(), 3, "{lent:?}");
        let mut two = SandboxPlaceholderFiles::create_folder_of_confined_run(&runs).unwrap();
        assert_eq!(
            two.create_sandbox_placeholders(wanted().into_iter())
                .unwrap()
                .len(),
            3
        );
        drop(one);
        assert!(repo.join("made/in").exists() && repo.join("new").exists());
        drop(two);
        assert!(!repo.join("made").exists() && !repo.join("new").exists());
        assert_eq!(std::fs::read(repo.join("there")).unwrap(), b"a person's");
    }

    #[test]
    fn what_a_killed_run_left_is_given_back_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (runs, repo) = (folder.path().join("runs"), folder.path().join("repo"));
        std::fs::create_dir(&repo).unwrap();
        let mut killed = SandboxPlaceholderFiles::create_folder_of_confined_run(&runs).unwrap();
        killed
            .create_sandbox_placeholders([file(&repo, "new"), file(&repo, "changed")].into_iter())
            .unwrap();
        std::fs::write(repo.join("changed"), "by a person meanwhile").unwrap();
        // The kernel lets go of the lock; nothing else is done.
        killed.alive.unlock().unwrap();
        std::mem::forget(killed);
        assert!(repo.join("new").exists());
        remove_dead_runs_mount_placeholders(&runs).unwrap();
        assert!(!repo.join("new").exists());
        assert!(repo.join("changed").exists());
        assert_eq!(folders_of_confined_runs(&runs), Vec::<PathBuf>::new());
    }
}
