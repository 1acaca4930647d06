//! Claims as OS locks, which the kernel gives back however their holder dies.
//!
//! One file per key. Hashing keys into a fixed set of files would need no cleaning up,
//! but two effects in one file would exclude each other: a process that performs one and
//! waits for the other would wait for itself, and others for evidence nobody makes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;

use crate::sqlite::folder;
use crate::{Claim, StoreError};

const FOLDER: &str = "claims";

/// Takes the claim on `key` in the store folder `store`, unless it is held.
pub(crate) fn take(store: &Path, key: &Digest) -> Result<Option<Claim>, StoreError> {
    let path = store.join(FOLDER).join(key.to_hex());
    let failed = |error| StoreError::io("claim", &path, error);
    loop {
        let file = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                folder::make(&store.join(FOLDER)).map_err(failed)?;
                open(&path)
            }
            opened => opened,
        }
        .map_err(failed)?;
        match lock(file, &path).map_err(failed)? {
            Tried::Ours(held) => {
                let lock = held.locked.try_clone().map_err(failed)?;
                return Ok(Some(Claim::locked(held, lock)));
            }
            Tried::Theirs => return Ok(None),
            Tried::Removed => {}
        }
    }
}

enum Tried {
    Ours(Held),
    Theirs,
    /// Between our opening and our locking, the last holder removed the file, and
    /// somebody else may have made and locked another: ours locks nothing.
    Removed,
}

fn lock(file: File, path: &Path) -> io::Result<Tried> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(Tried::Theirs),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) if is_still(&file, path)? => Ok(Tried::Ours(Held {
            path: path.to_owned(),
            locked: file,
        })),
        Ok(()) => Ok(Tried::Removed),
    }
}

struct Held {
    path: PathBuf,
    locked: File,
}

impl Drop for Held {
    /// Removes the file while it is still locked, so no one else's file can be meant;
    /// the lock goes with the handle, right after. A file left by a killed holder is
    /// unlocked, and the next who claims its key removes it.
    fn drop(&mut self) {
        if cfg!(unix) {
            // If it cannot be removed it stays, unlocked, and is of no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    folder::only_ours(&mut options);
    options.open(path)
}

#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere claim files are never removed.
#[cfg(not(unix))]
fn is_still(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Threads open the file apart from each other, so their locks exclude as processes' do.
    #[test]
    fn taking_and_giving_back_never_lets_two_in() {
        let store = tempfile::tempdir().unwrap();
        let key = Digest::hash_bytes(b"key");
        let (inside, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(claim) = take(store.path(), &key).unwrap() {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                            taken.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(claim);
                        }
                    }
                });
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 0);
        let left = fs::read_dir(store.path().join(FOLDER)).unwrap().count();
        assert_eq!(left, 0, "claim files are cleaned up");
    }

    #[cfg(unix)]
    #[test]
    fn a_removed_file_locks_nothing() {
        let store = tempfile::tempdir().unwrap();
        let path = store.path().join("key");
        let early = open(&path).unwrap();
        let (early_too, late) = (open(&path).unwrap(), open(&path).unwrap());
        let Tried::Ours(held) = lock(early, &path).unwrap() else {
            panic!("free at first")
        };
        assert!(matches!(lock(late, &path).unwrap(), Tried::Theirs));
        drop(held);
        let another = open(&path).unwrap();
        assert!(matches!(lock(early_too, &path).unwrap(), Tried::Removed));
        assert!(matches!(lock(another, &path).unwrap(), Tried::Ours(_)));
    }

    #[test]
    fn a_file_left_by_a_killed_holder_does_not_hold() {
        let store = tempfile::tempdir().unwrap();
        let key = Digest::hash_bytes(b"key");
        fs::create_dir(store.path().join(FOLDER)).unwrap();
        fs::write(store.path().join(FOLDER).join(key.to_hex()), "").unwrap();
        assert!(take(store.path(), &key).unwrap().is_some());
    }
}
