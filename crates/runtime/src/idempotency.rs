//! Recognises the same event delivered twice, and finds what was answered to it.

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::event::{DecisionOnInput, Event, InputWithoutNativeId};
use checkrein_core::evidence::MAX_RUN_AGE_MS;
use checkrein_core::explain::{DecisionExplanation, DecisionFactor};
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, SourceName, UnixMillis};
use checkrein_core::input::{Input, StopRequested, ToolRequested, TreeDigests, TreeReadError};
use checkrein_core::state::SessionState;
use checkrein_store::{ApprovalStatus, SessionTransactionView};

use crate::error::RuntimeError;
use crate::event_delivery::EventDelivery;
use crate::log_reader;

pub(crate) fn scope_id_of_input(input: &Input) -> ScopeId {
    input
        .conversation_scope_id()
        .cloned()
        .unwrap_or_else(ScopeId::main_scope)
}

/// Deliveries of one event within this time come from an agent that starts its hooks at once.
const TOGETHER_MS: u64 = 30_000;

/// The key by which a tool event is known, whichever entry delivers it: the native id together with
/// the call, since some agents begin their ids anew with every turn.
fn tool_event_dedup_key(delivery: &EventDelivery<'_>) -> Option<String> {
    let key = delivery.key.as_ref()?;
    match &delivery.input {
        Input::ToolRequested(request) => Some(format!("{key}:{:x}", request.call.0)),
        Input::ToolReturned(returned) => Some(format!("{key}:{:x}", returned.call.0)),
        _ => Some(key.clone()),
    }
}

/// What is known about a delivery.
pub(crate) struct IdempotencyKeyAndFirstSeq {
    /// The key to store it under.
    pub(crate) key: Option<String>,
    /// The place of its first delivery, if there was one.
    pub(crate) first: Option<EventSeq>,
}

/// Finds out whether the same event was delivered before. Later events under the same id are
/// chained behind the first; the chain is followed to its last. `asked` identifies what a person is
/// asked about this call.
pub(crate) fn idempotency_key_and_first_delivery(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
    delivery: &EventDelivery<'_>,
    (state, scope, now): (&SessionState, &ScopeId, UnixMillis),
    asked: Option<Digest>,
) -> Result<IdempotencyKeyAndFirstSeq, RuntimeError> {
    // Stops and prompts have no native id: they are compared by what they say.
    let Some(mut key) = tool_event_dedup_key(delivery) else {
        let first = find_original_of_redelivery(session, tail, delivery, state, scope, now)?;
        return Ok(IdempotencyKeyAndFirstSeq { key: None, first });
    };
    let mut known = tail.find_seq_by_idempotency_key(&key)?;
    // Each event under a reused id has a key that names the one before it.
    while let Some(first) = known {
        let approval = match asked {
            Some(asked) => {
                approval_forcing_call_reevaluation(session, tail, (first, asked, now), delivery)?
            }
            None => None,
        };
        // `+` stands for a person's answer, after which the call is judged anew; `#` for an id that
        // the agent used for another call.
        let next = match &approval {
            Some(approval) => format!("{key}+{approval}"),
            None => format!("{key}#{}", first.0),
        };
        let behind = tail.find_seq_by_idempotency_key(&next)?;
        let is_the_last = approval.is_none() && behind.is_none();
        // This delivery repeats the last event, unless that one is over and the id was reused.
        if is_the_last
            && (was_approval_requested(session, tail, first, &delivery.input)?
                || !is_reused_call_id(session, tail, first, delivery, (state, now))?)
        {
            break;
        }
        (key, known) = (next, behind);
    }
    let (key, first) = (Some(key), known);
    Ok(IdempotencyKeyAndFirstSeq { key, first })
}

/// Whether the event at `first` is over, so that this is another call of the same id, or the return
/// of one: some agents begin their ids anew. An agent waits for all of its entries before it goes
/// on, so anything delivered after that is new, whichever entry delivered the first.
fn is_reused_call_id(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
    first: EventSeq,
    delivery: &EventDelivery<'_>,
    (state, now): (&SessionState, UnixMillis),
) -> Result<bool, RuntimeError> {
    let newest = |request: &ToolRequested| {
        let scope = state.conversation_scope_by_id(&request.scope)?;
        let mut calls = scope.window.iter().rev();
        calls.find(|known| known.call == request.call)
    };
    let is_over = match &delivery.input {
        // It came back, or is forgotten. If it was denied, another entry may still be about to
        // deliver it.
        Input::ToolRequested(request) => newest(request).is_none_or(|call| call.outcome.is_some()),
        Input::ToolReturned(returned) if state.answers_open_tool_call(returned) => return Ok(true),
        Input::ToolReturned(_) => false,
        _ => return Ok(false),
    };
    let scope = scope_id_of_input(&delivery.input);
    let mut is_of_another_entry = false;
    // The read begins at `first` itself, which shows by which entry and when it came.
    for raw in tail.events_after(EventSeq(first.0.saturating_sub(1)))? {
        let Some(Event::Input(stamped)) = log_reader::decode_event(session, &raw)? else {
            continue;
        };
        if raw.seq == first {
            let together = now.0.abs_diff(stamped.at.0) <= TOGETHER_MS;
            is_of_another_entry = stamped.source != delivery.source && together;
        }
        // With a stop of this scope, or a prompt, the agent has gone on.
        let goes_on = match &stamped.input {
            Input::StopRequested(stop) => stop.scope == scope,
            Input::PromptSubmitted(_) => true,
            _ => false,
        };
        if goes_on || is_over && !is_of_another_entry {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether this call was put to a person; [`approval_forcing_call_reevaluation`] then decides what it
/// is.
fn was_approval_requested(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
    first: EventSeq,
    input: &Input,
) -> Result<bool, RuntimeError> {
    let answer = recorded_decision_on_input(session, tail, first, input)?;
    Ok(answer.is_some_and(|(decision, why)| {
        let asks = matches!(decision, Decision::Tool(ToolDecision::Ask { .. }));
        let is_approved = |why: &DecisionFactor| matches!(why, DecisionFactor::Approved { .. });
        asks || why.iter().any(is_approved)
    }))
}

/// Returns the id of the question if a person's part in it means that a call delivered at `first`
/// is judged anew. A recorded question that nobody can answer any more is no answer; and an
/// approved call is let through once, for all entries that deliver it together.
fn approval_forcing_call_reevaluation(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
    (first, key, now): (EventSeq, Digest, UnixMillis),
    delivery: &EventDelivery<'_>,
) -> Result<Option<String>, RuntimeError> {
    let Some((decision, why)) = recorded_decision_on_input(session, tail, first, &delivery.input)?
    else {
        return Ok(None);
    };
    if let Decision::Tool(ToolDecision::Ask {
        approval,
        until: Some(_),
        ..
    }) = decision
    {
        // A question that still waits is the answer to every repetition.
        let newest = tail.newest_approval_request_for_key(&key)?;
        let waits = newest.is_some_and(|row| {
            row.id == approval && row.approval_status_at(now) == ApprovalStatus::Asked
        });
        return Ok((!waits).then_some(approval));
    }
    let by = why.into_iter().find_map(|why| match why {
        DecisionFactor::Approved { approval, .. } => Some(approval),
        _ => None,
    });
    let Some(by) = by else { return Ok(None) };
    let recorded = tail.events_after(EventSeq(first.0.saturating_sub(1)))?;
    let known = recorded
        .first()
        .map(|raw| log_reader::decode_event(session, raw));
    let Some(Event::Input(stamped)) = known.transpose()?.flatten() else {
        return Ok(None);
    };
    let together = now.millis_since(stamped.at) <= TOGETHER_MS && stamped.source != delivery.source;
    Ok((!together).then_some(by))
}

/// Finds the stop or prompt that this delivery repeats. They have no native id, and an agent that
/// says "Done." four times sends the same bytes four times: only the newest one, delivered by other
/// entries and with no work since, can be meant. An agent goes on when all of its entries have
/// answered, so a stop may be delivered by the next entry long after the first, once that one has
/// waited for its checks.
fn find_original_of_redelivery(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
    delivery: &EventDelivery<'_>,
    state: &SessionState,
    scope: &ScopeId,
    now: UnixMillis,
) -> Result<Option<EventSeq>, RuntimeError> {
    if delivery.key.is_some() {
        return Ok(None);
    }
    let newest = match &delivery.input {
        Input::PromptSubmitted(_) => state.newest_prompt_if_nothing_followed(),
        Input::StopRequested(_) => state.newest_stop_if_nothing_followed(scope),
        _ => None,
    };
    // One entry delivers an event once, so anything more from it is new.
    let Some(newest) = newest.filter(|newest| !newest.sources.contains(&delivery.source)) else {
        return Ok(None);
    };
    let together = now.0.abs_diff(newest.at.0) <= TOGETHER_MS;
    let is_same = match &delivery.input {
        Input::StopRequested(stop) => {
            let first = DeliveredStop::load_delivered_stop(session, tail, newest.seq, &stop.scope)?;
            first.is_same_stop(stop, together, now)
        }
        _ => together,
    };
    Ok(is_same.then_some(newest.seq))
}

/// The first delivery of a stop, and its outcome.
struct DeliveredStop {
    message: Option<Digest>,
    /// The tree as it was read last for it.
    tree: Option<Result<TreeDigests, TreeReadError>>,
    answer: Option<Decision>,
    /// The time of the newest input.
    at: UnixMillis,
}

impl DeliveredStop {
    fn load_delivered_stop(
        session: &SessionId,
        tail: &dyn SessionTransactionView,
        first: EventSeq,
        scope: &ScopeId,
    ) -> Result<Self, RuntimeError> {
        let mut found = Self {
            message: None,
            tree: None,
            answer: None,
            at: UnixMillis(0),
        };
        for raw in tail.events_after(EventSeq(first.0.saturating_sub(1)))? {
            match log_reader::decode_event(session, &raw)? {
                Some(Event::Input(stamped)) => {
                    found.at = stamped.at;
                    match stamped.input {
                        Input::StopRequested(stop) if raw.seq == first => {
                            found.message = Some(stop.message_digest);
                            found.tree = Some(stop.tree);
                        }
                        Input::TreeRead(read) if read.stop == first => found.tree = Some(read.tree),
                        _ => {}
                    }
                }
                Some(event) if found.answer.is_none() => {
                    found.answer =
                        stop_decision_in_event(event, first, scope).map(|(decision, _)| decision);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether this delivery is the same stop. After a while, only if it says the same and the
    /// first was worked on just now. An accept is repeated only for what it was about.
    fn is_same_stop(&self, stop: &StopRequested, together: bool, now: UnixMillis) -> bool {
        // The bound is the age up to which a run is believed.
        let just_now = now.0.abs_diff(self.at.0) < MAX_RUN_AGE_MS;
        let says_the_same = self.message == Some(stop.message_digest);
        let is_meant = together || says_the_same && just_now;
        let is_accepted = matches!(
            self.answer,
            Some(Decision::Stop(StopDecision::Accept { .. }))
        );
        let is_about_the_same = match (&self.tree, &stop.tree) {
            (Some(Ok(before)), Ok(now)) => before.is_equivalent_tree(now),
            // Nothing tells two unreadable trees apart, so only deliveries at the same time count
            // as one.
            (Some(Err(_)), Err(_)) => together,
            _ => false,
        };
        is_meant && (!is_accepted || is_about_the_same)
    }
}

pub(crate) fn build_repeated_input_event(
    input: &Input,
    of: EventSeq,
    source: &SourceName,
    scope: &ScopeId,
) -> Option<Event> {
    let what = match input {
        Input::PromptSubmitted(_) => InputWithoutNativeId::Prompt,
        Input::StopRequested(_) => InputWithoutNativeId::Stop,
        _ => return None,
    };
    Some(Event::Repeated {
        of,
        source: source.clone(),
        what,
        scope: scope.clone(),
    })
}

/// Returns what was answered to the input at `known`; an input that is only noted was noted.
pub(crate) fn recorded_decision_on_input(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
    known: EventSeq,
    input: &Input,
) -> Result<Option<(Decision, DecisionExplanation)>, RuntimeError> {
    let scope = scope_id_of_input(input);
    let noted = || Some((Decision::Noted, DecisionExplanation::new()));
    // What was said at the end of a round.
    let mut of_round = None;
    for raw in tail.events_after(known)? {
        let Some(event) = log_reader::decode_event(session, &raw)? else {
            continue;
        };
        match event {
            Event::DecisionMade(made) if made.answers == known => match made.decision {
                Decision::Round(_) => of_round = Some((made.decision, made.why)),
                decision => return Ok(Some((decision, made.why))),
            },
            // It is said again only while no work has followed: agents that begin their ids anew
            // would have the end of an earlier task otherwise.
            event if of_round.is_some() && is_work_behind_round(&event) => return Ok(noted()),
            event if matches!(input, Input::StopRequested(_)) => {
                if let Some(answer) = stop_decision_in_event(event, known, &scope) {
                    return Ok(Some(answer));
                }
            }
            _ => {}
        }
    }
    if of_round.is_some() {
        return Ok(of_round);
    }
    // These wait for a decision. Any other input without one was only noted.
    let waits = matches!(
        input,
        Input::StopRequested(_) | Input::EvidenceArrived(_) | Input::TreeRead(_)
    );
    Ok(noted().filter(|_| !waits))
}

/// Whether the agent or a person went on. A resumed run begins with inputs that say nothing of the kind.
fn is_work_behind_round(event: &Event) -> bool {
    match event {
        Event::TaskOpened { .. } => true,
        Event::Input(stamped) => matches!(
            stamped.input,
            Input::PromptSubmitted(_)
                | Input::ToolRequested(_)
                | Input::ToolReturned(_)
                | Input::RoundEnded(_)
                | Input::StopRequested(_)
        ),
        _ => false,
    }
}

/// The decision on this stop, or on a newer one of its scope that took its place.
pub(crate) fn stop_decision_in_event(
    event: Event,
    stop: EventSeq,
    scope: &ScopeId,
) -> Option<(Decision, DecisionExplanation)> {
    match event {
        Event::DecisionMade(DecisionOnInput {
            answers,
            scope: of,
            decision,
            why,
        }) if answers >= stop && of == *scope && matches!(decision, Decision::Stop(_)) => {
            Some((decision, why))
        }
        _ => None,
    }
}
