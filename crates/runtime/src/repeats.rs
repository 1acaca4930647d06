//! The same news twice: which deliveries are one event, and what was answered to it.

use checkrein_core::decision::Decision;
use checkrein_core::event::{DecisionMade, Event, Repeatable};
use checkrein_core::explain::Why;
use checkrein_core::ids::{ScopeId, Seq, SessionId, SourceName};
use checkrein_core::input::Input;
use checkrein_core::state::State;
use checkrein_store::Tail;

use crate::delivery::Delivery;
use crate::error::RuntimeError;
use crate::load;

pub(crate) fn scope_of(input: &Input) -> ScopeId {
    match input {
        Input::ToolRequested(request) => request.scope.clone(),
        Input::ToolReturned(returned) => returned.scope.clone(),
        Input::RoundEnded(round) => round.scope.clone(),
        Input::StopRequested(stop) => stop.scope.clone(),
        Input::EvidenceArrived(arrived) => arrived.scope.clone(),
        Input::TreeRead(read) => read.scope.clone(),
        _ => ScopeId::main(),
    }
}

/// Stops and prompts have no native id, and an agent that says "Done." four times sends
/// the same bytes four times: the n-th from one entry is the n-th from another.
pub(crate) fn counted_key(
    state: &State,
    delivery: &Delivery<'_>,
    scope: &ScopeId,
) -> Option<String> {
    match &delivery.input {
        Input::PromptSubmitted(_) => Some(format!(
            "prompt:{}",
            state.prompts_from(&delivery.source) + 1
        )),
        Input::StopRequested(_) => {
            let task = state.task.as_ref().map_or(1, |task| task.id.0);
            let nth = state.stops_from(scope, &delivery.source) + 1;
            Some(format!("stop:{task}:{scope}:{nth}"))
        }
        _ => None,
    }
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
