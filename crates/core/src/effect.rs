//! Effects: what the core asks the runtime to do. An effect is emitted only if it was not yet
//! requested for the pending stop, and is appended together with the events that request it.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{EventSeq, ScopeId, VerifierName};

/// A request to the runtime.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Run this verifier on this subject.
    RunVerifier {
        /// For the pending stop of this scope.
        scope: ScopeId,
        /// Which verifier.
        verifier: VerifierName,
        /// The subject it should be about.
        subject: Digest,
        /// Run it even if a result is known.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[serde(rename = "again")]
        force_run: bool,
    },
    /// Read the tree once more.
    ReadTree {
        /// For the pending stop of this scope.
        scope: ScopeId,
        /// Which stop that is; the answer names it.
        stop: EventSeq,
    },
}
