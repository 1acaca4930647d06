//! Acts: tool calls that may have changed what checks find beside the files that count. The store counts
//! them at their requests and at their outcomes, since they do their work between the two; what was found before
//! the newest that concerns a verifier is found out anew.

use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::evidence::Origin;
use checkrein_core::ids::SessionId;
use checkrein_core::input::{Input, NewestRun, Reach};
use checkrein_core::policy::{Policy, SubjectKind, Tier, VerifierSpec};
use checkrein_core::state::State;
use checkrein_store::{Act, ActCount, StoreError, Tail};
use checkrein_verifiers::tree::{Limits, TreeError};

use crate::delivery::RequiredRun;
use crate::driver::Runtime;
use crate::error::RuntimeError;
use crate::kept;
use crate::looks::Look;
use crate::workspace::Tracked;

impl Runtime {
    /// The acts that were counted in this root so far, as they concern this session.
    pub(crate) fn acts(&self, session: Option<&SessionId>) -> Result<ActCount, StoreError> {
        self.store.acts(&self.place.root_text(), session)
    }

    /// The tree for a stop of the main conversation. Acts are read first: one that comes while the tree
    /// is read is seen at the next look.
    pub(crate) fn read_with_acts(
        &self,
        session: &SessionId,
        tracked: &Tracked,
        policy: &Policy,
        limits: Limits<'_>,
    ) -> Result<Result<Look, TreeError>, RuntimeError> {
        let (began, acts) = (self.place.system.monotonic(), self.acts(Some(session))?);
        let reading = self.place.read(tracked, policy, limits);
        Ok(reading.map(|mut reading| {
            reading.fact.acts = Some(acts.newest);
            Look {
                began,
                took: began.elapsed(),
                reading,
                acts: acts.counted,
            }
        }))
    }

    /// The required checks, with the keys of what their runs find on this tree.
    pub(crate) fn required_runs(&self, policy: &Policy, look: &Look) -> Box<[RequiredRun]> {
        let is_check = |spec: &&VerifierSpec| {
            let is_about_files = spec.tier == Tier::Hard && spec.subject == SubjectKind::Tree;
            is_about_files && policy.is_required(&spec.name)
        };
        let required = policy.verifiers.iter().filter(is_check);
        required
            .map(|spec| RequiredRun {
                verifier: spec.name.clone(),
                key: self.content_key(policy, spec, look.reading.fact.content(spec), Origin::Gate),
            })
            .collect()
    }

    /// The act of a call that reaches so far, unless it may not run.
    pub(crate) fn act_of(&self, reach: Reach, decision: Option<&Decision>) -> Option<Act> {
        let runs = !matches!(
            decision,
            Some(Decision::Tool(
                ToolDecision::Deny { .. } | ToolDecision::Halt { .. }
            ))
        );
        runs.then(|| Act {
            root: self.place.root_text(),
            reach,
        })
    }
}

/// The newest runs of these, as the log's transaction sees them: what another session finds out meanwhile comes
/// before it or after.
pub(crate) fn newest_runs(
    tail: &dyn Tail,
    required: &[RequiredRun],
) -> Result<Box<[NewestRun]>, StoreError> {
    let newest = |required: &RequiredRun| {
        let kept = tail.evidence(&required.key)?;
        Ok(NewestRun {
            verifier: required.verifier.clone(),
            run: kept.map(|kept| kept::run_id(&required.key, &kept).short()),
        })
    };
    required.iter().map(newest).collect()
}

/// How far the call reaches that these news are of, or came back of, as it stands before they are folded in.
pub(crate) fn reach_of(state: &State, input: &Input) -> Option<Reach> {
    match input {
        Input::ToolRequested(request) => request.facts.reach,
        Input::ToolReturned(returned) => state.reach_of(returned),
        _ => None,
    }
}
