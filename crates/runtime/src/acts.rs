//! Counts acts: tool calls that may have changed what checks find beside the files that count. The
//! store counts them at their requests and at their outcomes, since they do their work between the
//! two. What was found before the newest act that concerns a verifier is found out anew.

use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::evidence::GateOrManualOrigin;
use checkrein_core::ids::{ScopeId, SessionId};
use checkrein_core::input::{ActReach, Input, NewestCheckRun};
use checkrein_core::policy::{Policy, VerifierSpec};
use checkrein_core::state::SessionState;
use checkrein_store::{ActNumbersForRoot, SessionTransactionView, StoreError, ToolAct};
use checkrein_verifiers::tree::{TreeReadTimeoutAndCancel, TreeReaderError};

use crate::error::RuntimeError;
use crate::event_delivery::RequiredCheckAndRunKey;
use crate::evidence_codec;
use crate::runtime::Runtime;
use crate::tree_snapshots::TreeSnapshot;
use crate::workspace::TrackedFiles;

impl Runtime {
    /// The acts that were counted in this root so far, as they concern this session.
    pub(crate) fn act_numbers_in_root(
        &self,
        session: Option<&SessionId>,
    ) -> Result<ActNumbersForRoot, StoreError> {
        self.store
            // Numbers and not times: the clocks of two processes do not order what they did.
            .act_numbers_in_root_for_session(&self.place.workspace_root_path_text(), session)
    }

    /// Counts a tool call that comes or returns while nothing is judged. It may do anything, so
    /// everything that was found before it is found out anew.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn record_call_while_switched_off(&self, session: &SessionId) -> Result<(), StoreError> {
        self.count_unlogged_act(session, ActReach::Outside)
    }

    /// Counts an act that no event in the log records.
    pub(crate) fn count_unlogged_act(
        &self,
        session: &SessionId,
        reach: ActReach,
    ) -> Result<(), StoreError> {
        self.store
            .count_act_without_event(session, &self.tool_act_with_reach(reach))
    }

    /// Reads the tree for a stop of the main conversation. Acts are read first: one that comes
    /// while the tree is read is seen at the next reading.
    pub(crate) fn read_tree_and_newest_acts(
        &self,
        session: &SessionId,
        tracked: &TrackedFiles,
        policy: &Policy,
        limits: TreeReadTimeoutAndCancel<'_>,
    ) -> Result<Result<TreeSnapshot, TreeReaderError>, RuntimeError> {
        let (began, acts) = (
            self.place.system.monotonic_now(),
            self.act_numbers_in_root(Some(session))?,
        );
        let reading = self.place.read_tree(tracked, policy, limits);
        Ok(reading.map(|mut reading| {
            reading.fact.acts = Some(acts.newest);
            TreeSnapshot {
                began,
                took: self.place.system.elapsed_since(began),
                reading,
                acts: acts.total,
            }
        }))
    }

    /// The required checks, with the keys of what their runs find on this tree.
    pub(crate) fn required_check_content_keys(
        &self,
        policy: &Policy,
        look: &TreeSnapshot,
    ) -> Box<[RequiredCheckAndRunKey]> {
        let is_check = |spec: &&VerifierSpec| {
            spec.is_hard_tree_check() && policy.is_required_verifier(&spec.name)
        };
        let required = policy.verifiers.iter().filter(is_check);
        required
            .map(|spec| RequiredCheckAndRunKey {
                verifier: spec.name.clone(),
                key: self.evidence_key_from_check_inputs(
                    policy,
                    spec,
                    look.reading.fact.verifier_input_digest(spec),
                    GateOrManualOrigin::Gate,
                ),
            })
            .collect()
    }

    pub(crate) fn tool_act_with_reach(&self, reach: ActReach) -> ToolAct {
        ToolAct {
            root: self.place.workspace_root_path_text(),
            reach,
        }
    }
}

/// Whether a call with this decision goes ahead.
pub(crate) fn is_call_not_denied(decision: Option<&Decision>) -> bool {
    !matches!(
        decision,
        // Anything else may run: an agent can ask its person, or ignore a nudge.
        Some(Decision::Tool(
            ToolDecision::Deny { .. } | ToolDecision::Halt { .. }
        ))
    )
}

/// The newest runs of these checks, as the log's transaction sees them: whatever another session
/// finds out meanwhile comes before it or after.
pub(crate) fn newest_check_runs(
    tail: &dyn SessionTransactionView,
    required: &[RequiredCheckAndRunKey],
) -> Result<Box<[NewestCheckRun]>, StoreError> {
    let newest = |required: &RequiredCheckAndRunKey| {
        let kept = tail.read_evidence(&required.key)?;
        Ok(NewestCheckRun {
            verifier: required.verifier.clone(),
            run: kept.map(|kept| {
                evidence_codec::newest_check_run_id(&required.key, &kept).to_eight_byte_digest()
            }),
        })
    };
    required.iter().map(newest).collect()
}

/// The reach of the call that this input requests or returns from, before the input is folded in.
pub(crate) fn act_reach_of_call_in_input(state: &SessionState, input: &Input) -> Option<ActReach> {
    match input {
        Input::ToolRequested(request) => request.facts.reach,
        Input::ToolReturned(returned) => state.act_reach_of_returned_call(returned),
        _ => None,
    }
}

/// The reach of a call whose outcome nobody reports, now that its conversation goes on: if it did
/// its work at all, it has done so by now. A stop counts it before it begins.
pub(crate) fn reach_of_call_with_unreported_result(
    state: &SessionState,
    input: &Input,
) -> Option<ActReach> {
    match input {
        Input::ToolRequested(request) => state.reach_of_unreported_newest_call(&request.scope),
        Input::StopFailed(failed) => state.reach_of_unreported_newest_call(&failed.scope),
        // A stop that was let through: its session's next may be long after another's.
        Input::StanceUsed(used) => state.reach_of_unreported_newest_call(&used.scope),
        // These belong to the main conversation, whatever sub-agents still do.
        Input::PromptSubmitted(_) | Input::SessionEnded(_) | Input::Interrupted => {
            state.reach_of_unreported_newest_call(&ScopeId::main_scope())
        }
        _ => None,
    }
}

/// The reach that concerns the most sessions.
pub(crate) fn wider_of_two_act_reaches(reaches: [Option<ActReach>; 2]) -> Option<ActReach> {
    reaches
        .into_iter()
        .flatten()
        .max_by_key(|reach| match reach {
            // Its own session.
            ActReach::Unknown => 1,
            // All sessions, but for verifiers that declare their inputs.
            ActReach::Elsewhere => 2,
            ActReach::Outside => 3,
        })
}
