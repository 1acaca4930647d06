//! Evidence as it is kept: each run of a check under an id of its own, with the time at which it was found;
//! under the content key the newest of its runs. Older stores have the evidence itself there.

use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_core::digest::Digest;
use checkrein_core::evidence::Evidence;
use checkrein_core::ids::Millis;
use checkrein_store::{Standing, Store, StoreError};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct KeptRef<'a> {
    at: Millis,
    acts: u64,
    evidence: &'a Evidence,
}

#[derive(Deserialize)]
struct Kept {
    at: Millis,
    /// Older builds counted none.
    #[serde(default)]
    acts: u64,
    evidence: Evidence,
}

/// What is kept under a content key.
#[derive(Serialize, Deserialize)]
struct Newest {
    at: Millis,
    run: String,
}

/// A run of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Its own id.
    pub(crate) id: Digest,
    /// When it was found.
    pub(crate) at: Millis,
    /// How many acts were counted when it began.
    pub(crate) acts: u64,
    pub(crate) evidence: Evidence,
}

impl Run {
    /// When it began, or before.
    pub(crate) fn began(&self) -> Millis {
        began(self.at, &self.evidence)
    }
}

/// When a run began that was found at this time, or before: the time between its tries is not kept.
pub(crate) fn began(found: Millis, evidence: &Evidence) -> Millis {
    let tries = u64::from(evidence.tries.max(1));
    Millis(
        found
            .0
            .saturating_sub(evidence.duration_ms.saturating_mul(tries)),
    )
}

/// The id of the newest run of this key, of what is kept under it.
pub(crate) fn run_id(key: &Digest, kept: &checkrein_store::Evidence) -> Digest {
    let named = serde_json::from_slice::<Newest>(&kept.bytes).ok();
    let named = named.and_then(|newest| Digest::from_hex(&newest.run));
    named.unwrap_or(*key)
}

/// The newest run of this key that can be read.
pub(crate) fn newest(store: &dyn Store, key: &Digest) -> Result<Option<Run>, StoreError> {
    let Some(kept) = store.evidence(key)? else {
        return Ok(None);
    };
    let id = run_id(key, &kept);
    let bytes = match id == *key {
        true => Some(kept.bytes),
        false => store.evidence(&id)?.map(|kept| kept.bytes),
    };
    let found = bytes.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
    Ok(found.map(|kept| Run {
        id,
        at: kept.at,
        acts: kept.acts,
        evidence: kept.evidence,
    }))
}

/// Keeps a run, and that it is the newest of its key. The id is no other run's.
pub(crate) fn put(
    store: &dyn Store,
    key: &Digest,
    (at, acts): (Millis, u64),
    evidence: &Evidence,
) -> Result<Digest, StoreError> {
    let id = put_apart(store, key, (at, acts), evidence)?;
    let newest = Newest {
        at,
        run: id.to_hex(),
    };
    // Plain data: serialising cannot fail.
    let bytes = serde_json::to_vec(&newest).unwrap_or_default();
    store.put_evidence(key, &bytes, Standing::Inconclusive)?;
    Ok(id)
}

/// Keeps what was not found by a run, under an id alone.
pub(crate) fn put_apart(
    store: &dyn Store,
    key: &Digest,
    (at, acts): (Millis, u64),
    evidence: &Evidence,
) -> Result<Digest, StoreError> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let id = Digest::of_parts([
        &key.as_bytes()[..],
        &at.0.to_le_bytes(),
        &std::process::id().to_le_bytes(),
        &RUNS.fetch_add(1, Ordering::Relaxed).to_le_bytes(),
    ]);
    store.put_evidence(&id, &encode(at, acts, evidence), Standing::Final)?;
    Ok(id)
}

/// When what is kept under a key or an id was found; `None` if it is neither.
pub(crate) fn found_at(bytes: &[u8]) -> Option<Millis> {
    let newest = || serde_json::from_slice::<Newest>(bytes).ok();
    match decode(bytes) {
        Some((at, _)) => Some(at),
        None => newest().map(|newest| newest.at),
    }
}

pub(crate) fn encode(at: Millis, acts: u64, evidence: &Evidence) -> Vec<u8> {
    // Plain data: serialising cannot fail.
    serde_json::to_vec(&KeptRef { at, acts, evidence }).unwrap_or_default()
}

/// The evidence in these bytes of a store, for showing; `None` if they are of another shape.
pub fn evidence_of(bytes: &[u8]) -> Option<Evidence> {
    decode(bytes).map(|(_, evidence)| evidence)
}

/// `None` for bytes of a shape that we do not know: then it is found out anew.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Millis, Evidence)> {
    let kept: Kept = serde_json::from_slice(bytes).ok()?;
    Some((kept.at, kept.evidence))
}
