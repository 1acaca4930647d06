//! Encodes evidence for the store: each run of a check under an id of its own, with the time at
//! which it was found; under the content key, a pointer to the newest of its runs. Older stores
//! hold the evidence itself there.

use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_core::digest::Digest;
use checkrein_core::evidence::Evidence;
use checkrein_core::ids::UnixMillis;
use checkrein_store::{EvidenceFinality, Store, StoreError};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct TimedEvidenceToStore<'a> {
    at: UnixMillis,
    began: UnixMillis,
    acts: u64,
    evidence: &'a Evidence,
}

#[derive(Deserialize)]
struct TimedEvidence {
    at: UnixMillis,
    /// Older builds did not say.
    began: Option<UnixMillis>,
    /// Older builds counted none.
    #[serde(default)]
    acts: u64,
    evidence: Evidence,
}

/// The times of evidence, and the acts that were counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EvidenceTimestamps {
    pub(crate) at: UnixMillis,
    /// When the run that found it began.
    pub(crate) began: UnixMillis,
    /// How many acts were counted then.
    pub(crate) acts: u64,
}

impl EvidenceTimestamps {
    /// The timing of evidence that was found by looking and not by a run.
    pub(crate) fn evidence_timing_without_run(at: UnixMillis) -> Self {
        Self {
            at,
            began: at,
            acts: 0,
        }
    }
}

/// What is kept under a content key: the newest run.
#[derive(Serialize, Deserialize)]
struct NewestCheckRunPointer {
    at: UnixMillis,
    run: String,
}

/// A run of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredCheckRun {
    /// Its own id.
    pub(crate) id: Digest,
    /// When it was found.
    pub(crate) at: UnixMillis,
    /// When it began.
    pub(crate) began: UnixMillis,
    /// How many acts were counted then.
    pub(crate) acts: u64,
    pub(crate) evidence: Evidence,
}

impl TimedEvidence {
    /// When the run began. Older builds kept only when it ended, so for their runs this is an
    /// estimate.
    fn start_of_check_run(&self) -> UnixMillis {
        let tries = u64::from(self.evidence.tries.max(1));
        let ran_ms = self.evidence.duration_ms.saturating_mul(tries);
        let before = UnixMillis(self.at.0.saturating_sub(ran_ms));
        self.began.unwrap_or(before)
    }
}

/// The id of the newest run of this key, from what is kept under the key.
pub(crate) fn newest_check_run_id(
    key: &Digest,
    kept: &checkrein_store::EvidenceBytesWithFinality,
) -> Digest {
    let named = serde_json::from_slice::<NewestCheckRunPointer>(&kept.bytes).ok();
    let named = named.and_then(|newest| Digest::from_hex(&newest.run));
    // A store of an older build has the evidence under the key itself, which is then its id.
    named.unwrap_or(*key)
}

/// The newest run of this key that can be read.
pub(crate) fn newest_stored_check_run(
    store: &dyn Store,
    key: &Digest,
) -> Result<Option<StoredCheckRun>, StoreError> {
    let Some(kept) = store.read_evidence(key)? else {
        return Ok(None);
    };
    let id = newest_check_run_id(key, &kept);
    // An older store holds the run under the key itself.
    let bytes = match id == *key {
        true => Some(kept.bytes),
        false => store.read_evidence(&id)?.map(|kept| kept.bytes),
    };
    Ok(bytes.and_then(|bytes| decode_check_run(id, &bytes)))
}

/// Decodes a run; `None` for an unknown shape, in which case the check runs anew.
pub(crate) fn decode_check_run(id: Digest, bytes: &[u8]) -> Option<StoredCheckRun> {
    let kept: TimedEvidence = serde_json::from_slice(bytes).ok()?;
    Some(StoredCheckRun {
        id,
        at: kept.at,
        began: kept.start_of_check_run(),
        acts: kept.acts,
        evidence: kept.evidence,
    })
}

/// Stores a run as the newest of its key. Its id equals no other run's.
pub(crate) fn put_check_run(
    store: &dyn Store,
    key: &Digest,
    found: EvidenceTimestamps,
    evidence: &Evidence,
) -> Result<Digest, StoreError> {
    let id = put_unindexed_evidence(store, key, found, evidence)?;
    let newest = NewestCheckRunPointer {
        at: found.at,
        run: id.to_hex(),
    };
    // Plain data: serialising cannot fail.
    let bytes = serde_json::to_vec(&newest).unwrap_or_default();
    // Not final: the next run replaces the pointer.
    store.put_evidence_under_key(key, &bytes, EvidenceFinality::Inconclusive)?;
    Ok(id)
}

/// Stores evidence under an id alone, not as the newest of its key.
pub(crate) fn put_unindexed_evidence(
    store: &dyn Store,
    key: &Digest,
    found: EvidenceTimestamps,
    evidence: &Evidence,
) -> Result<Digest, StoreError> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    // Time, process and counter together make the id unique, even for equal evidence.
    let id = Digest::hash_parts([
        &key.as_bytes()[..],
        &found.at.0.to_le_bytes(),
        &std::process::id().to_le_bytes(),
        &RUNS.fetch_add(1, Ordering::Relaxed).to_le_bytes(),
    ]);
    store.put_evidence_under_key(
        &id,
        &encode_evidence(found, evidence),
        EvidenceFinality::Final,
    )?;
    Ok(id)
}

/// When the evidence or pointer in these bytes was stored; `None` if they are neither.
pub(crate) fn stored_evidence_time(bytes: &[u8]) -> Option<UnixMillis> {
    let newest = || serde_json::from_slice::<NewestCheckRunPointer>(bytes).ok();
    match serde_json::from_slice::<TimedEvidence>(bytes) {
        Ok(kept) => Some(kept.at),
        Err(_) => newest().map(|newest| newest.at),
    }
}

pub(crate) fn encode_evidence(found: EvidenceTimestamps, evidence: &Evidence) -> Vec<u8> {
    let EvidenceTimestamps { at, began, acts } = found;
    let kept = TimedEvidenceToStore {
        at,
        began,
        acts,
        evidence,
    };
    // Plain data: serialising cannot fail.
    serde_json::to_vec(&kept).unwrap_or_default()
}

/// Decodes evidence of a store, for showing; `None` if it has another shape.
pub fn decode_evidence(bytes: &[u8]) -> Option<Evidence> {
    let kept = serde_json::from_slice::<TimedEvidence>(bytes).ok()?;
    Some(kept.evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_under_a_key_says_when_it_was_found() {
        let newest = NewestCheckRunPointer {
            at: UnixMillis(7),
            run: "ab".to_owned(),
        };
        let bytes = serde_json::to_vec(&newest).unwrap();
        assert_eq!(stored_evidence_time(&bytes), Some(UnixMillis(7)));
        assert_eq!(stored_evidence_time(b"{}"), None);
    }
}
