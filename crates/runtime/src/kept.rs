//! Evidence as it is kept under its content key: with the time at which it was found.

use checkrein_core::evidence::Evidence;
use checkrein_core::ids::Millis;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct KeptRef<'a> {
    at: Millis,
    evidence: &'a Evidence,
}

#[derive(Deserialize)]
struct Kept {
    at: Millis,
    evidence: Evidence,
}

pub(crate) fn encode(at: Millis, evidence: &Evidence) -> Vec<u8> {
    // Plain data: serialising cannot fail.
    serde_json::to_vec(&KeptRef { at, evidence }).unwrap_or_default()
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
