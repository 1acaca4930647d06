//! Tells whoever owns the agent's process whether the tree that a task was accepted on still
//! stands: what the agent left running, or a neighbour, may have changed it after the last stop.

use checkrein_core::ids::{SessionId, VerifierName};
use checkrein_core::policy::VerifierSpec;

use crate::error::RuntimeError;
use crate::event_delivery::Deadline;
use crate::runtime::Runtime;

impl Runtime {
    /// Whether the verdicts of the newest task's required checks are about the tree as it is now. A
    /// tree that cannot be read is not the accepted one.
    ///
    /// # Errors
    /// If the store or the log cannot be read, or the reading is cancelled.
    pub fn is_accepted_tree_current(
        &self,
        session: &SessionId,
        patience: Deadline<'_>,
    ) -> Result<bool, RuntimeError> {
        // Without a log or a task nothing was accepted that could have changed.
        let Some((state, policy)) = self.load_session_state_and_policy(session)? else {
            return Ok(true);
        };
        let Some(task) = &state.task else {
            return Ok(true);
        };
        let tracked = self
            .place
            .git_tracked_files_at_task_start(Some(session), patience);
        let Ok(look) = self.read_tree_and_newest_acts(
            session,
            &tracked,
            &policy,
            patience.tree_read_timeout_and_cancel(&*self.place.system),
        )?
        else {
            return Ok(false);
        };
        let is_check = |spec: &&VerifierSpec| {
            spec.is_hard_tree_check() && policy.is_required_verifier(&spec.name)
        };
        let stands = |spec: &VerifierSpec| {
            let of = |name: &VerifierName| {
                task.verdicts
                    .iter()
                    .find(|held| held.fact.verifier == *name)
            };
            let about = look.reading.fact.verdict_subject_digest(spec);
            // A check without a verdict was not part of what was accepted.
            of(&spec.name).is_none_or(|held| held.fact.subject == about)
        };
        Ok(policy.verifiers.iter().filter(is_check).all(stands))
    }
}
