//! Decides the end of a round: layers may have a word for the next one, or end the loop. Everything else
//! about rounds is counted in the fold.

use crate::decision::{Decision, RoundDecision};
use crate::explain::DecisionFactor;
use crate::ids::{EventSeq, ScopeId};
use crate::middleware::{MiddlewareAnswer, MiddlewareAnswerFact};
use crate::step::StateMachineStepBuilder;
use crate::transition::{Reason, Transition};

pub(crate) fn evaluate_round_end(
    draft: &mut StateMachineStepBuilder<'_>,
    seq: EventSeq,
    scope: &ScopeId,
    layers: &[MiddlewareAnswerFact],
) {
    let is_over = match draft.state.current_open_task() {
        None => true,
        Some(task) => task
            .conversation_scope_by_id(scope)
            .is_some_and(|scope| scope.halted),
    };
    let halting = layers
        .iter()
        .find(|fact| fact.says == MiddlewareAnswer::Halt);
    let words: Vec<String> = layers
        .iter()
        .filter(|fact| fact.says == MiddlewareAnswer::Nudge)
        .map(|fact| fact.middleware_message_for_agent("this round"))
        .collect();
    let decision = match halting {
        _ if is_over => return draft.set_noted_decision(),
        Some(fact) => RoundDecision::Halt {
            reason: fact.middleware_message_for_agent("this round"),
        },
        None if words.is_empty() => return draft.set_noted_decision(),
        None => RoundDecision::Nudge {
            text: words.join("\n"),
        },
    };
    let why = layers.iter().cloned().map(DecisionFactor::Layer).collect();
    draft.record_decision_on_input(seq, scope, Decision::Round(decision), why);
    if let Some(fact) = halting.filter(|_| scope.is_main_scope()) {
        let ended = Transition::new(Reason::LoopDetected, fact.layer.as_str());
        let ended = draft.prevailing_transition(ended);
        draft.end_task(ended);
    }
}
