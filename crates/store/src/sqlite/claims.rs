//! Claims as OS file locks, which the kernel releases however their holder dies.
//!
//! There is one file per key. Hashing keys into a fixed set of files would need no cleaning up, but
//! two effects in one file would exclude each other. A process that performs one and waits for the
//! other would wait for itself, and others would wait for evidence that nobody makes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;

use crate::sqlite::folder;
use crate::{EffectClaimGuard, StoreError};

const FOLDER: &str = "claims";

/// Takes the claim on `key` in the store folder `store`, unless it is held.
pub(crate) fn try_claim_effect(
    store: &Path,
    key: &Digest,
) -> Result<Option<EffectClaimGuard>, StoreError> {
    let path = store.join(FOLDER).join(key.to_hex());
    let failed = |error| StoreError::from_io_error("claim", &path, error);
    loop {
        // The first claim creates the folder, so a store whose sessions run no checks has none.
        let file = match open_claim_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                folder::create_private_folder(&store.join(FOLDER)).map_err(failed)?;
                open_claim_file(&path)
            }
            opened => opened,
        }
        .map_err(failed)?;
        match try_lock_file(file, &path).map_err(failed)? {
            FileLockOutcome::Locked(held) => {
                // A second handle to the same lock, which a child process can inherit to keep the
                // claim until it ends.
                let lock = held.locked.try_clone().map_err(failed)?;
                return Ok(Some(EffectClaimGuard::new_claim_holding_lock_file(
                    held, lock,
                )));
            }
            FileLockOutcome::Busy => return Ok(None),
            // Try again on the file that is there now.
            FileLockOutcome::Removed => {}
        }
    }
}

enum FileLockOutcome {
    Locked(LockedClaimFile),
    Busy,
    /// The last holder removed the file between our open and our lock. Somebody else may have
    /// created and locked another file, so this lock excludes nobody.
    Removed,
}

fn try_lock_file(file: File, path: &Path) -> io::Result<FileLockOutcome> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(FileLockOutcome::Busy),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) if is_same_file_at_path(&file, path)? => {
            Ok(FileLockOutcome::Locked(LockedClaimFile {
                path: path.to_owned(),
                locked: file,
            }))
        }
        Ok(()) => Ok(FileLockOutcome::Removed),
    }
}

struct LockedClaimFile {
    path: PathBuf,
    locked: File,
}

impl Drop for LockedClaimFile {
    /// Removes the file while it is still locked, so it cannot be another holder's file. The lock
    /// is released with the handle right after. A file left by a killed holder is unlocked, and the
    /// next holder of its key removes it.
    fn drop(&mut self) {
        if cfg!(unix) {
            // A file that cannot be removed stays unlocked and does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open_claim_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Not `create_new`: a file that a killed holder left is taken over.
    options.read(true).write(true).create(true).truncate(false);
    folder::set_open_options_owner_only(&mut options);
    options.open(path)
}

#[cfg(unix)]
fn is_same_file_at_path(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Always true on other systems, where claim files are never removed.
#[cfg(not(unix))]
fn is_same_file_at_path(_: &File, _: &Path) -> io::Result<bool> {
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
                        if let Some(claim) = try_claim_effect(store.path(), &key).unwrap() {
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
        let early = open_claim_file(&path).unwrap();
        let (early_too, late) = (
            open_claim_file(&path).unwrap(),
            open_claim_file(&path).unwrap(),
        );
        let FileLockOutcome::Locked(held) = try_lock_file(early, &path).unwrap() else {
            panic!("free at first")
        };
        assert!(matches!(
            try_lock_file(late, &path).unwrap(),
            FileLockOutcome::Busy
        ));
        drop(held);
        let another = open_claim_file(&path).unwrap();
        assert!(matches!(
            try_lock_file(early_too, &path).unwrap(),
            FileLockOutcome::Removed
        ));
        assert!(matches!(
            try_lock_file(another, &path).unwrap(),
            FileLockOutcome::Locked(_)
        ));
    }

    #[test]
    fn a_file_left_by_a_killed_holder_does_not_hold() {
        let store = tempfile::tempdir().unwrap();
        let key = Digest::hash_bytes(b"key");
        fs::create_dir(store.path().join(FOLDER)).unwrap();
        fs::write(store.path().join(FOLDER).join(key.to_hex()), "").unwrap();
        assert!(try_claim_effect(store.path(), &key).unwrap().is_some());
    }
}
