//! Where no process may outlive its hook, a check is cut when the answer is due.

use std::convert::Infallible;
use std::sync::mpsc::Sender;

use checkrein_core::digest::Digest;
use checkrein_core::ids::Millis;
use checkrein_core::policy::VerifierSpec;

use crate::error::RuntimeError;
use crate::perform::{Answer, Batch, Done, Wanted};

/// There is none.
pub(crate) struct RunningWorker {
    pub(crate) wanted: Vec<Wanted>,
    never: Infallible,
}

impl<'a> Batch<'a> {
    pub(crate) fn hand_to_worker(&self, _: &[Wanted]) -> Option<RunningWorker> {
        None
    }

    pub(crate) fn wait_for_worker(&self, owned: RunningWorker, _: &Sender<Answer<'a>>) {
        match owned.never {}
    }

    pub(crate) fn worker_check_start_time(&self, _: &VerifierSpec, _: Digest) -> Option<Millis> {
        None
    }

    pub(crate) fn still_running_evidence(
        &self,
        _: &VerifierSpec,
        _: Digest,
        _: Millis,
    ) -> Result<Done, RuntimeError> {
        Err(RuntimeError::Deadline)
    }
}
