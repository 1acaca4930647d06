//! Stands in for owners where no process may outlive its hook: a check is cut when the answer is
//! due.

use std::convert::Infallible;
use std::sync::mpsc::Sender;

use checkrein_core::digest::Digest;
use checkrein_core::ids::UnixMillis;
use checkrein_core::policy::VerifierSpec;

use crate::error::RuntimeError;
use crate::verification::{
    EvidenceOrDisturbedCheckResult, ReturnedEvidence, VerificationBatchContext, VerifierRunRequest,
};

/// Never exists on such a system.
pub(crate) struct RunningWorker {
    pub(crate) wanted: Vec<VerifierRunRequest>,
    never: Infallible,
}

impl<'a> VerificationBatchContext<'a> {
    pub(crate) fn hand_checks_to_worker(&self, _: &[VerifierRunRequest]) -> Option<RunningWorker> {
        None
    }

    pub(crate) fn relay_worker_results_until_due(
        &self,
        owned: RunningWorker,
        _: &Sender<EvidenceOrDisturbedCheckResult<'a>>,
    ) {
        match owned.never {}
    }

    pub(crate) fn worker_check_start_time(
        &self,
        _: &VerifierSpec,
        _: Digest,
    ) -> Option<UnixMillis> {
        None
    }

    pub(crate) fn still_running_evidence(
        &self,
        _: &VerifierSpec,
        _: Digest,
        _: UnixMillis,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        Err(RuntimeError::Deadline)
    }
}
