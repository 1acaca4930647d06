//! Records which owners are at work in a state folder: one file each, locked as long as its owner
//! lives. A file that nobody has locked belongs to an owner that was lost; an owner that ends
//! removes its file.

use std::any::Any;
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use checkrein_core::digest::Digest;
use checkrein_core::ids::{SessionId, UnixMillis};
use checkrein_core::policy::VerifierSpec;
use checkrein_verifiers::private_file::{create_private_folder, open_private_file};
use serde::{Deserialize, Serialize};

use super::WorkerCheckBatch;
use crate::durable_file;
use crate::system::System;

const FOLDER: &str = "owners";
const RECORD: &str = "json";
/// The extension of the file that asks an owner to end, beside its record.
const CANCEL: &str = "cancel";
/// How long to wait for an owner that was asked to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An owner's batch, and when it began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkerRecord {
    /// When it began.
    pub(crate) since: UnixMillis,
    pub(crate) batch: WorkerCheckBatch,
}

/// An owner's own record, removed when this is dropped.
pub(super) struct WorkerRecordGuard {
    path: PathBuf,
    _locked: Box<dyn Any + Send + Sync>,
}

/// Registers an owner. Whoever finds the record finds it locked.
pub(super) fn register_worker(
    batch: &WorkerCheckBatch,
    system: &dyn System,
) -> io::Result<WorkerRecordGuard> {
    let folder = batch.state.join(FOLDER);
    create_private_folder(&folder)?;
    let path = folder.join(&batch.id).with_extension(RECORD);
    // Written and locked under another name, then renamed: nobody finds a record that is incomplete
    // or not locked yet.
    let fresh = folder.join(&batch.id).with_extension("new");
    let mut file = open_private_file(&fresh, File::options().write(true).truncate(true))?;
    file.try_lock()?;
    let record = WorkerRecord {
        since: system.now_millis(),
        batch: batch.clone(),
    };
    file.write_all(&serde_json::to_vec(&record)?)?;
    std::fs::rename(&fresh, &path)?;
    Ok(WorkerRecordGuard {
        path,
        _locked: system.locked_file_guard(file),
    })
}

impl WorkerRecordGuard {
    /// Whether the owner is asked to end, or its record was removed.
    pub(super) fn is_cancel_requested(&self) -> bool {
        durable_file::is_path_present(&self.path.with_extension(CANCEL))
            || !durable_file::is_path_present(&self.path)
    }
}

impl Drop for WorkerRecordGuard {
    fn drop(&mut self) {
        // A file that stays seems to be of a lost owner, which costs a needless run at most.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(self.path.with_extension(CANCEL));
    }
}

/// A record as another process finds it.
pub(super) struct FoundWorkerRecord {
    pub(super) record: WorkerRecord,
    path: PathBuf,
}

impl FoundWorkerRecord {
    pub(super) fn is_worker_alive(&self) -> bool {
        // A shared lock is refused exactly as long as the owner holds its own.
        File::open(&self.path)
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Asks the owner to end, and waits a while for that.
    pub(super) fn cancel_worker_and_wait(&self, system: &dyn System) {
        self.ask_worker_to_end();
        let until = system.monotonic_now() + CANCEL_TIMEOUT;
        while self.is_worker_alive() && system.monotonic_now() < until {
            system.sleep(POLL_INTERVAL);
        }
    }

    fn ask_worker_to_end(&self) {
        // A file, since signalling a process by its number could hit a later one.
        let cancel = self.path.with_extension(CANCEL);
        // If the folder cannot be written, its owners could record nothing either.
        let _ = open_private_file(&cancel, File::options().write(true));
        // It may have ended meanwhile, and would then not remove this file.
        if !durable_file::is_path_present(&self.path) {
            let _ = std::fs::remove_file(cancel);
        }
    }
}

/// Reads all records in this state folder, those of lost owners included, in order of their names.
pub(super) fn read_worker_records(state: &Path) -> Vec<FoundWorkerRecord> {
    let Ok(entries) = std::fs::read_dir(state.join(FOLDER)) else {
        return Vec::new();
    };
    let files = entries.flatten().map(|entry| entry.path());
    let records = files.filter(|path| path.extension().is_some_and(|end| end == RECORD));
    let mut records: Vec<PathBuf> = records.collect();
    // By name, because a folder lists its files in any order.
    records.sort();
    records
        .into_iter()
        .filter_map(|path| {
            let bytes = durable_file::read_regular_file(&path, durable_file::MAX_SMALL_BYTES)
                .ok()
                .flatten()?;
            let record = serde_json::from_slice(&bytes).ok()?;
            Some(FoundWorkerRecord { record, path })
        })
        .collect()
}

/// Returns since when an owner has been running this check on this content.
pub(crate) fn start_time_of_check_in_worker(
    state: &Path,
    root: &Path,
    spec: &VerifierSpec,
    content: Digest,
) -> Option<UnixMillis> {
    // The name alone does not suffice: an owner may run the same check about older content.
    let is_it = |owner: &FoundWorkerRecord| {
        let batch = &owner.record.batch;
        let mut checks = batch.checks.iter();
        batch.root == root
            && checks.any(|check| check.verifier == spec.name && check.content == content)
    };
    let owners = read_worker_records(state).into_iter();
    let mut owners = owners
        .filter(is_it)
        .filter(FoundWorkerRecord::is_worker_alive);
    owners.next().map(|owner| owner.record.since)
}

/// Asks every owner in this state folder to end, without waiting for it.
pub fn cancel_all_workers(state: &Path) {
    cancel_matching_workers(state, |_| true);
}

/// Asks the owners of a session that is over to end, without waiting for it.
pub fn cancel_session_workers(state: &Path, session: &SessionId) {
    cancel_matching_workers(state, |owner| owner.record.batch.session == *session);
}

fn cancel_matching_workers(state: &Path, is_meant: impl Fn(&FoundWorkerRecord) -> bool) {
    for owner in read_worker_records(state)
        .iter()
        .filter(|owner| is_meant(owner))
    {
        if owner.is_worker_alive() {
            owner.ask_worker_to_end();
        } else {
            // A lost owner cannot remove its record itself.
            let _ = std::fs::remove_file(&owner.path);
        }
    }
}

/// Removes what is left of owners that were lost before `before`; returns how many there were.
pub(crate) fn remove_lost_worker_records(state: &Path, before: SystemTime, dry: bool) -> usize {
    let is_old = |path: &Path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| modified < before)
    };
    let owners = read_worker_records(state);
    let lost = owners
        .iter()
        .filter(|owner| is_old(&owner.path) && !owner.is_worker_alive());
    let mut files = 0;
    for owner in lost {
        files += 1;
        if !dry {
            let _ = std::fs::remove_file(&owner.path);
            let _ = std::fs::remove_file(owner.path.with_extension(CANCEL));
        }
    }
    files
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::WorkerCheck;
    use super::*;
    use crate::config::{self, NamedConfigText, TaskDriverKind};
    use crate::owner::UniqueProcessId;
    use crate::set_clock::SetClock;

    fn sample_worker_check_batch(state: &Path, id: &str) -> WorkerCheckBatch {
        WorkerCheckBatch {
            id: id.to_owned(),
            root: PathBuf::from("/project"),
            state: state.to_owned(),
            addresses: true,
            session: SessionId::new("a session"),
            policy: Digest::hash_bytes(b"a policy"),
            since: None,
            checks: vec![WorkerCheck {
                verifier: "tests".into(),
                content: Digest::hash_bytes(b"files"),
                acts: 0,
                again: None,
            }],
            longest_wait_ms: 0,
            agent: UniqueProcessId::new(1, 1),
        }
    }

    pub(in crate::owner) fn sample_verifier_spec(name: &str) -> VerifierSpec {
        let text = format!("[[verifier]]\nname = \"{name}\"\nrun = \"true\"\n");
        let source = NamedConfigText {
            name: PathBuf::from("checkrein.toml"),
            text,
        };
        let compiled =
            config::compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook)
                .unwrap();
        compiled.policy.verifiers[0].clone()
    }

    #[test]
    fn running_check_is_found_by_content() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let registered =
            register_worker(&sample_worker_check_batch(state.path(), "one"), &*clock).unwrap();
        let runs = |root: &str, name: &str, files: &[u8]| {
            start_time_of_check_in_worker(
                state.path(),
                Path::new(root),
                &sample_verifier_spec(name),
                Digest::hash_bytes(files),
            )
            .is_some()
        };
        assert!(runs("/project", "tests", b"files"));
        assert!(!runs("/other", "tests", b"files"));
        assert!(!runs("/project", "lint", b"files"));
        assert!(!runs("/project", "tests", b"other files"));
        drop(registered);
        assert!(!runs("/project", "tests", b"files"));
    }

    #[test]
    fn worker_cancel_waits_up_to_timeout() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let registered =
            register_worker(&sample_worker_check_batch(state.path(), "one"), &*clock).unwrap();
        let found = read_worker_records(state.path());
        assert!(!registered.is_cancel_requested());
        found[0].cancel_worker_and_wait(&*clock);
        assert!(registered.is_cancel_requested());
        assert_eq!(clock.passed(), CANCEL_TIMEOUT);
        drop(registered);
        found[0].cancel_worker_and_wait(&*clock);
        assert_eq!(clock.passed(), CANCEL_TIMEOUT, "it has ended");
        let left = std::fs::read_dir(state.path().join(FOLDER)).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn session_cancel_spares_others() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let other = WorkerCheckBatch {
            session: SessionId::new("another"),
            ..sample_worker_check_batch(state.path(), "two")
        };
        let ours =
            register_worker(&sample_worker_check_batch(state.path(), "one"), &*clock).unwrap();
        let theirs = register_worker(&other, &*clock).unwrap();
        cancel_session_workers(state.path(), &SessionId::new("a session"));
        assert!(ours.is_cancel_requested() && !theirs.is_cancel_requested());
        cancel_all_workers(state.path());
        assert!(theirs.is_cancel_requested());
    }

    #[test]
    fn test_lost_worker_record_removal() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let lives =
            register_worker(&sample_worker_check_batch(state.path(), "lives"), &*clock).unwrap();
        let lost =
            register_worker(&sample_worker_check_batch(state.path(), "lost"), &*clock).unwrap();
        let text = std::fs::read(&lost.path).unwrap();
        let path = lost.path.clone();
        drop(lost);
        std::fs::write(&path, text).unwrap();
        let forget = |before, dry| remove_lost_worker_records(state.path(), before, dry);
        let (long_ago, later) = (
            SystemTime::now() - Duration::from_secs(60),
            SystemTime::now() + Duration::from_secs(60),
        );
        assert_eq!(forget(long_ago, false), 0);
        assert_eq!((forget(later, true), path.exists()), (1, true));
        assert_eq!((forget(later, false), path.exists()), (1, false));
        assert!(lives.path.exists());
    }
}
