//! Runs verifiers by hand, for `check`. Their evidence informs and satisfies nothing.

use std::sync::Arc;

use checkrein_core::accept::TruthValue;
use checkrein_core::digest::Digest;
use checkrein_core::evidence::{Evidence, GateOrManualOrigin, InconclusiveCause, Verdict};
use checkrein_core::ids::{SessionId, VerifierName};
use checkrein_core::policy::{Policy, Stance, VerifierSpec, VerifierTier};

use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, VerificationProgress};
use crate::external_writes;
use crate::runtime::Runtime;
use crate::tree_snapshots::{StopTreeSnapshots, TreeSnapshot};
use crate::verification::{ReturnedEvidence, VerifierRunRequest};

/// The result of `check`.
#[derive(Debug, Clone)]
pub struct ManualCheckReport {
    /// The value of `accept`, with stances applied; of the named verifiers only, if some were
    /// named.
    pub value: TruthValue,
    /// Digest of the tree.
    pub tree: Digest,
    /// One per verifier, in config order.
    pub checks: Vec<ManualVerifierResult>,
    /// Files too large to be read: they count by their size and their times.
    pub large_files: Vec<String>,
}

/// One verifier's part of a [`ManualCheckReport`].
#[derive(Debug, Clone)]
pub struct ManualVerifierResult {
    /// Whether `accept` names it.
    pub required: bool,
    /// What it found.
    pub evidence: Evidence,
    /// Taken from an earlier run on the same subject.
    pub cached: bool,
}

impl Runtime {
    /// Runs verifiers by hand; their evidence informs and satisfies nothing (`origin: manual`).
    ///
    /// # Errors
    /// If the config, the store or the tree cannot be read.
    pub fn run_checks_on_demand(
        &self,
        policy: &Policy,
        names: &[VerifierName],
        use_cache: bool,
        patience: Deadline<'_>,
        progress: &(dyn Fn(VerificationProgress) + Sync),
    ) -> Result<ManualCheckReport, RuntimeError> {
        // Acts are counted before the tree is read, as at a stop: one that comes meanwhile voids
        // what is found.
        let (began, acts) = (
            self.place.system.monotonic_now(),
            self.act_numbers_in_root(None)?,
        );
        let reading = self
            .place
            .read_tree(
                &self.place.git_tracked_files_at_task_start(None, patience),
                policy,
                patience.tree_read_timeout_and_cancel(&*self.place.system),
            )
            .map_err(RuntimeError::Tree)?;
        // A judge reads an agent's answer, and there is none here.
        let by_hand = |spec: &VerifierSpec| names.is_empty() && spec.tier != VerifierTier::Judge;
        let chosen = |spec: &&VerifierSpec| by_hand(spec) || names.contains(&spec.name);
        let wanted: Vec<VerifierRunRequest> = policy
            .verifiers
            .iter()
            .filter(chosen)
            .map(|spec| VerifierRunRequest {
                verifier: spec.name.clone(),
                subject: reading.fact.verifier_input_digest(spec),
                content: reading.fact.verifier_input_digest(spec),
                acts: acts.newest.newest_voiding_act(spec),
                // By hand nothing is forced: `use_cache` alone decides whether known verdicts
                // count.
                again: None,
            })
            .collect();
        let mut checks: Vec<ManualVerifierResult> = Vec::new();
        let mut collect = |done: ReturnedEvidence| {
            checks.push(ManualVerifierResult {
                required: policy.is_required_verifier(&done.evidence.verifier),
                evidence: done.evidence,
                cached: done.cached,
            });
            Ok(())
        };
        let session: Option<&SessionId> = None;
        let look = Arc::new(TreeSnapshot {
            began,
            took: self.place.system.elapsed_since(began),
            reading,
            acts: acts.total,
        });
        let looks = StopTreeSnapshots::new(
            Arc::clone(&self.place.system),
            Some(Arc::clone(&look)),
            external_writes::MAX_HOOK_WAIT,
        );
        self.run_verifications(
            session,
            policy,
            &wanted,
            GateOrManualOrigin::Manual,
            use_cache,
            None,
            None,
            None,
            patience,
            &looks,
            progress,
            &mut collect,
        )?;
        let reading = &look.reading;
        let place =
            |name: &VerifierName| policy.verifiers.iter().position(|spec| spec.name == *name);
        // Results arrive as checks end; a person reads them in the order of the config.
        checks.sort_by_key(|check| place(&check.evidence.verifier));
        let truth = |name: &VerifierName| match checks
            .iter()
            .find(|check| check.evidence.verifier == *name)
        {
            // No stance applies while a person can still answer.
            Some(check) if check.evidence.cause == Some(InconclusiveCause::Unanswered) => {
                TruthValue::Open
            }
            Some(check) => match (
                check.evidence.verdict,
                policy.verifier_spec(name).map(|spec| spec.stance),
            ) {
                (Verdict::Pass, _) => TruthValue::True,
                (Verdict::Fail, _) | (Verdict::Inconclusive, Some(Stance::Block) | None) => {
                    TruthValue::False
                }
                (Verdict::Inconclusive, Some(Stance::Allow)) => TruthValue::True,
                (Verdict::Inconclusive, Some(Stance::Ask)) => TruthValue::Open,
            },
            // A verifier that did not run leaves its part of `accept` open.
            None => TruthValue::Open,
        };
        let value = if names.is_empty() {
            policy.accept.evaluate(&truth)
        } else {
            // Named verifiers count by themselves: the worst of them is the result.
            names.iter().map(truth).min().unwrap_or(TruthValue::True)
        };
        Ok(ManualCheckReport {
            value,
            tree: reading.fact.tree,
            checks,
            large_files: reading.unread.clone(),
        })
    }
}
