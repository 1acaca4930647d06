//! What the core wants done. Effects are emitted only if not yet asked for the
//! pending stop, and are appended together with the events that ask for them.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{EventSeq, ScopeId, VerifierName};

/// A wish.
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
        /// What is known of it is not taken: it is to run.
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
