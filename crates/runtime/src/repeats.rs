//! The same news twice: which deliveries are one event, and what was answered to it.

use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::event::{DecisionMade, Event, Repeatable};
use checkrein_core::explain::{Because, Why};
use checkrein_core::ids::{Millis, ScopeId, Seq, SessionId, SourceName};
use checkrein_core::input::Input;
use checkrein_core::state::State;
use checkrein_store::{Stands, Tail};

use crate::delivery::Delivery;
use crate::error::RuntimeError;
use crate::load;

pub(crate) fn scope_of(input: &Input) -> ScopeId {
    input.scope().cloned().unwrap_or_else(ScopeId::main)
}

/// Two deliveries of one event come within this time: an agent starts its hooks at once.
const TOGETHER_MS: u64 = 30_000;

/// The key by which the same tool event is known, whichever entry delivers it: the native
/// id with the call, since some agents begin their ids anew with every turn.
pub(crate) fn native_key(delivery: &Delivery<'_>) -> Option<String> {
    let key = delivery.key.as_ref()?;
    match &delivery.input {
        Input::ToolRequested(request) => Some(format!("{key}:{:x}", request.call.0)),
        Input::ToolReturned(returned) => Some(format!("{key}:{:x}", returned.call.0)),
        _ => Some(key.clone()),
    }
}

/// Whether an entry that delivered this call at `first` means another one now: the newest
/// call of its kind has come back already, so an agent's ids have begun anew.
pub(crate) fn begins_anew(
    session: &SessionId,
    tail: &dyn Tail,
    first: Seq,
    delivery: &Delivery<'_>,
    state: &State,
) -> Result<bool, RuntimeError> {
    let Input::ToolRequested(request) = &delivery.input else {
        return Ok(false);
    };
    let newest = state.scope(&request.scope).and_then(|scope| {
        scope
            .window
            .iter()
            .rev()
            .find(|known| known.call == request.call)
    });
    if newest.is_none_or(|call| call.outcome.is_none()) {
        return Ok(false);
    }
    let recorded = tail.events_after(Seq(first.0.saturating_sub(1)))?;
    let known = recorded
        .first()
        .map(|raw| load::decode(session, raw))
        .transpose()?;
    Ok(matches!(known.flatten(), Some(Event::Input(stamped)) if stamped.source == delivery.source))
}

/// What a person has to do with it that a call, delivered at `first`, is judged anew: the id of
/// the question. A recorded question that nobody can answer any more is no answer; and a call
/// that a person let through is let through once, for all entries that deliver it together.
pub(crate) fn after_a_person(
    session: &SessionId,
    tail: &dyn Tail,
    (first, key, now): (Seq, Digest, Millis),
    delivery: &Delivery<'_>,
) -> Result<Option<String>, RuntimeError> {
    let Some((decision, why)) = recorded_answer(session, tail, first, &delivery.input)? else {
        return Ok(None);
    };
    if let Decision::Tool(ToolDecision::Ask {
        approval,
        until: Some(_),
        ..
    }) = decision
    {
        let newest = tail.approval(&key)?;
        let waits =
            newest.is_some_and(|row| row.id == approval && row.stands(now) == Stands::Asked);
        return Ok((!waits).then_some(approval));
    }
    let by = why.into_iter().find_map(|why| match why {
        Because::Approved { approval, .. } => Some(approval),
        _ => None,
    });
    let Some(by) = by else { return Ok(None) };
    let recorded = tail.events_after(Seq(first.0.saturating_sub(1)))?;
    let known = recorded.first().map(|raw| load::decode(session, raw));
    let Some(Event::Input(stamped)) = known.transpose()?.flatten() else {
        return Ok(None);
    };
    let together = now.since(stamped.at) <= TOGETHER_MS && stamped.source != delivery.source;
    Ok((!together).then_some(by))
}

/// The stop or prompt that this delivery repeats. They have no native id, and an agent that
/// says "Done." four times sends the same bytes four times: only the newest one, delivered
/// by other entries a moment ago and with no work since, can be meant.
pub(crate) fn repeats(
    delivery: &Delivery<'_>,
    state: &State,
    scope: &ScopeId,
    now: Millis,
) -> Option<Seq> {
    if delivery.key.is_some() {
        return None;
    }
    let newest = match &delivery.input {
        Input::PromptSubmitted(_) => state.newest_prompt()?,
        Input::StopRequested(_) => state.newest_stop(scope)?,
        _ => return None,
    };
    let together = now.since(newest.at) <= TOGETHER_MS && newest.at.since(now) <= TOGETHER_MS;
    (together && !newest.sources.contains(&delivery.source)).then_some(newest.seq)
}

pub(crate) fn repeated(
    input: &Input,
    of: Seq,
    source: &SourceName,
    scope: &ScopeId,
) -> Option<Event> {
    let what = match input {
        Input::PromptSubmitted(_) => Repeatable::Prompt,
        Input::StopRequested(_) => Repeatable::Stop,
        _ => return None,
    };
    Some(Event::Repeated {
        of,
        source: source.clone(),
        what,
        scope: scope.clone(),
    })
}

/// What was answered to the input at `known`; inputs that are only noted were noted.
pub(crate) fn recorded_answer(
    session: &SessionId,
    tail: &dyn Tail,
    known: Seq,
    input: &Input,
) -> Result<Option<(Decision, Why)>, RuntimeError> {
    let scope = scope_of(input);
    for raw in tail.events_after(known)? {
        let Some(event) = load::decode(session, &raw)? else {
            continue;
        };
        match event {
            Event::DecisionMade(made) if made.answers == known => {
                return Ok(Some((made.decision, made.why)));
            }
            event if matches!(input, Input::StopRequested(_)) => {
                if let Some(answer) = stop_answer(event, known, &scope) {
                    return Ok(Some(answer));
                }
            }
            _ => {}
        }
    }
    let waits = matches!(
        input,
        Input::StopRequested(_) | Input::EvidenceArrived(_) | Input::TreeRead(_)
    );
    Ok((!waits).then(|| (Decision::Noted, Why::new())))
}

/// The decision on this stop, or on a newer one of its scope that took its place.
pub(crate) fn stop_answer(event: Event, stop: Seq, scope: &ScopeId) -> Option<(Decision, Why)> {
    match event {
        Event::DecisionMade(DecisionMade {
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
