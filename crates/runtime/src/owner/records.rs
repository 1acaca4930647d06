//! Which owners are at work in a state folder: one file each, locked as long as its owner lives. A file
//! that nobody has locked is of an owner that was lost; one that ends takes its file away.

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

use super::OwnedBatch;
use crate::system::System;
use crate::whole;

const FOLDER: &str = "owners";
const RECORD: &str = "json";
/// Beside the record of an owner that is to end.
const CANCEL: &str = "cancel";
/// How long an owner that is to end may take.
const ENDING: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What is known of an owner.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    /// When it began.
    pub(crate) since: UnixMillis,
    pub(crate) batch: OwnedBatch,
}

/// An owner's own record; it goes with this.
pub(super) struct Registered {
    path: PathBuf,
    _locked: Box<dyn Any + Send + Sync>,
}

/// Enters an owner. Who finds the record finds it locked.
pub(super) fn register(batch: &OwnedBatch, system: &dyn System) -> io::Result<Registered> {
    let folder = batch.state.join(FOLDER);
    create_private_folder(&folder)?;
    let path = folder.join(&batch.id).with_extension(RECORD);
    let fresh = folder.join(&batch.id).with_extension("new");
    let mut file = open_private_file(&fresh, File::options().write(true).truncate(true))?;
    file.try_lock()?;
    let record = OwnerRecord {
        since: system.millis(),
        batch: batch.clone(),
    };
    file.write_all(&serde_json::to_vec(&record)?)?;
    std::fs::rename(&fresh, &path)?;
    Ok(Registered {
        path,
        _locked: system.keep_locked(file),
    })
}

impl Registered {
    /// Whether somebody wants it to end, or took the record away.
    pub(super) fn is_cancelled(&self) -> bool {
        whole::is_there(&self.path.with_extension(CANCEL)) || !whole::is_there(&self.path)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // What stays is of an owner that seems lost: once more is run than need be.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(self.path.with_extension(CANCEL));
    }
}

/// A record as somebody else finds it.
pub(super) struct FoundOwner {
    pub(super) record: OwnerRecord,
    path: PathBuf,
}

impl FoundOwner {
    pub(super) fn lives(&self) -> bool {
        File::open(&self.path)
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Has it end, and waits a while for that.
    pub(super) fn cancel(&self, system: &dyn System) {
        self.ask_to_end();
        let until = system.monotonic_now() + ENDING;
        while self.lives() && system.monotonic_now() < until {
            system.sleep(LOOK_AGAIN);
        }
    }

    fn ask_to_end(&self) {
        let cancel = self.path.with_extension(CANCEL);
        // A folder that cannot be written has no owners that could record anything.
        let _ = open_private_file(&cancel, File::options().write(true));
        // It may have ended meanwhile, and would not take this away.
        if !whole::is_there(&self.path) {
            let _ = std::fs::remove_file(cancel);
        }
    }
}

/// All that are entered in this state folder, lost ones included, by their names.
pub(super) fn entered(state: &Path) -> Vec<FoundOwner> {
    let Ok(entries) = std::fs::read_dir(state.join(FOLDER)) else {
        return Vec::new();
    };
    let files = entries.flatten().map(|entry| entry.path());
    let records = files.filter(|path| path.extension().is_some_and(|end| end == RECORD));
    let mut records: Vec<PathBuf> = records.collect();
    records.sort();
    records
        .into_iter()
        .filter_map(|path| {
            let bytes = whole::read(&path, whole::SMALL).ok().flatten()?;
            let record = serde_json::from_slice(&bytes).ok()?;
            Some(FoundOwner { record, path })
        })
        .collect()
}

/// Since when an owner runs this check about this content.
pub(crate) fn running(
    state: &Path,
    root: &Path,
    spec: &VerifierSpec,
    content: Digest,
) -> Option<UnixMillis> {
    let is_it = |owner: &FoundOwner| {
        let batch = &owner.record.batch;
        let mut checks = batch.checks.iter();
        batch.root == root
            && checks.any(|check| check.verifier == spec.name && check.content == content)
    };
    let owners = entered(state).into_iter();
    let mut owners = owners.filter(is_it).filter(FoundOwner::lives);
    owners.next().map(|owner| owner.record.since)
}

/// Has every owner in this state folder end; nobody waits for that.
pub fn cancel_all(state: &Path) {
    cancel_where(state, |_| true);
}

/// The same for the owners of a session that is over.
pub fn cancel_session(state: &Path, session: &SessionId) {
    cancel_where(state, |owner| owner.record.batch.session == *session);
}

fn cancel_where(state: &Path, is_meant: impl Fn(&FoundOwner) -> bool) {
    for owner in entered(state).iter().filter(|owner| is_meant(owner)) {
        if owner.lives() {
            owner.ask_to_end();
        } else {
            let _ = std::fs::remove_file(&owner.path);
        }
    }
}

/// Removes what is left of owners that were lost before `before`; says how much that is.
pub(crate) fn forget_lost(state: &Path, before: SystemTime, dry: bool) -> usize {
    let is_old = |path: &Path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| modified < before)
    };
    let owners = entered(state);
    let lost = owners
        .iter()
        .filter(|owner| is_old(&owner.path) && !owner.lives());
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
    use super::super::OwnedCheck;
    use super::*;
    use crate::config::{self, Driver, Source};
    use crate::owner::ProcessId;
    use crate::set_clock::SetClock;

    fn batch(state: &Path, id: &str) -> OwnedBatch {
        OwnedBatch {
            id: id.to_owned(),
            root: PathBuf::from("/project"),
            state: state.to_owned(),
            addresses: true,
            session: SessionId::new("a session"),
            policy: Digest::hash_bytes(b"a policy"),
            since: None,
            checks: vec![OwnedCheck {
                verifier: "tests".into(),
                content: Digest::hash_bytes(b"files"),
                acts: 0,
                again: None,
            }],
            longest_wait_ms: 0,
            agent: ProcessId::new(1, 1),
        }
    }

    pub(in crate::owner) fn spec(name: &str) -> VerifierSpec {
        let text = format!("[[verifier]]\nname = \"{name}\"\nrun = \"true\"\n");
        let source = Source {
            name: PathBuf::from("checkrein.toml"),
            text,
        };
        let compiled = config::compile(Some(&source), None, Driver::Hook).unwrap();
        compiled.policy.verifiers[0].clone()
    }

    #[test]
    fn what_runs_is_of_this_tree_this_check_and_these_files() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let registered = register(&batch(state.path(), "one"), &*clock).unwrap();
        let runs = |root: &str, name: &str, files: &[u8]| {
            running(
                state.path(),
                Path::new(root),
                &spec(name),
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
    fn who_is_to_end_is_waited_for_for_five_seconds() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let registered = register(&batch(state.path(), "one"), &*clock).unwrap();
        let found = entered(state.path());
        assert!(!registered.is_cancelled());
        found[0].cancel(&*clock);
        assert!(registered.is_cancelled());
        assert_eq!(clock.passed(), ENDING);
        drop(registered);
        found[0].cancel(&*clock);
        assert_eq!(clock.passed(), ENDING, "it has ended");
        let left = std::fs::read_dir(state.path().join(FOLDER)).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn only_those_of_the_session_are_to_end_with_it() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let other = OwnedBatch {
            session: SessionId::new("another"),
            ..batch(state.path(), "two")
        };
        let ours = register(&batch(state.path(), "one"), &*clock).unwrap();
        let theirs = register(&other, &*clock).unwrap();
        cancel_session(state.path(), &SessionId::new("a session"));
        assert!(ours.is_cancelled() && !theirs.is_cancelled());
        cancel_all(state.path());
        assert!(theirs.is_cancelled());
    }

    #[test]
    fn what_old_lost_owners_left_is_forgotten() {
        let (state, clock) = (tempfile::tempdir().unwrap(), SetClock::new());
        let lives = register(&batch(state.path(), "lives"), &*clock).unwrap();
        let lost = register(&batch(state.path(), "lost"), &*clock).unwrap();
        let text = std::fs::read(&lost.path).unwrap();
        let path = lost.path.clone();
        drop(lost);
        std::fs::write(&path, text).unwrap();
        let forget = |before, dry| forget_lost(state.path(), before, dry);
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
