//! Lists what layers of middleware said in a task, each answer with its time: a chain of them is
//! hard to follow otherwise.

use checkrein_core::event::Event;
use checkrein_core::ids::EventSeq;
use checkrein_core::input::Input;
use checkrein_core::middleware::MiddlewareAnswerFact;
use serde_json::{Value, json};

use crate::ui::explanations;
use crate::ui::printable::escape_to_one_line;
use crate::ui::timeline;

/// A step at which layers were asked.
struct StepWithMiddlewareAnswers<'a> {
    seq: EventSeq,
    /// The input of the step.
    what: String,
    layers: &'a [MiddlewareAnswerFact],
}

fn logged_middleware_consultations(
    events: &[(EventSeq, Event)],
) -> impl Iterator<Item = StepWithMiddlewareAnswers<'_>> {
    events.iter().filter_map(|(seq, event)| match event {
        Event::Input(stamped) if !stamped.layers.is_empty() => Some(StepWithMiddlewareAnswers {
            seq: *seq,
            what: summarize_event_input(&stamped.input, events)?,
            layers: &stamped.layers,
        }),
        _ => None,
    })
}

/// Returns a line for each step, and one below it for each answer.
pub(super) fn middleware_answer_lines(events: &[(EventSeq, Event)]) -> Vec<String> {
    let mut lines = Vec::new();
    for step in logged_middleware_consultations(events) {
        if lines.is_empty() {
            lines.push("middleware:".to_owned());
        }
        lines.push(escape_to_one_line(&format!("  {}", step.what)));
        lines.extend(step.layers.iter().map(|fact| {
            let stage = format!("{:<15}", fact.stage.as_str());
            escape_to_one_line(&format!(
                "    {stage} {}",
                explanations::middleware_answer_text(fact)
            ))
        }));
    }
    lines
}

/// Returns the answers as JSON, one object for each.
pub(super) fn middleware_answers_json(events: &[(EventSeq, Event)]) -> Value {
    let of = |step: StepWithMiddlewareAnswers<'_>| {
        let fact = |fact: &MiddlewareAnswerFact| {
            json!({
                "seq": step.seq,
                "layer": fact.layer,
                "stage": fact.stage,
                "says": fact.says,
                "reason": fact.reason,
                "ms": fact.ms,
            })
        };
        step.layers.iter().map(fact).collect::<Vec<Value>>()
    };
    Value::Array(
        logged_middleware_consultations(events)
            .flat_map(of)
            .collect(),
    )
}

fn summarize_event_input(input: &Input, events: &[(EventSeq, Event)]) -> Option<String> {
    Some(match input {
        Input::ToolRequested(request) => {
            let args = timeline::truncate_to_one_line(&timeline::main_argument(&request.args));
            format!("{} {args}", request.tool)
        }
        Input::ToolReturned(returned) => {
            // A result names its call only by an id, so the tool's name comes from the request.
            let of = |event: &(EventSeq, Event)| match &event.1 {
                Event::Input(stamped) => match &stamped.input {
                    Input::ToolRequested(request) => {
                        let same = request.call_id.is_some() && request.call_id == returned.call_id;
                        same.then(|| request.tool.clone())
                    }
                    _ => None,
                },
                _ => None,
            };
            let tool = events.iter().find_map(of);
            format!("{} came back", tool.as_deref().unwrap_or("a tool"))
        }
        Input::StopRequested(stop) => {
            format!(
                "agent wants to stop: {}",
                timeline::truncate_to_one_line(&stop.message)
            )
        }
        Input::RoundEnded(_) => "a round was over".to_owned(),
        Input::SessionStarted(_) => "the session began".to_owned(),
        Input::SessionEnded(_) => "the session ended".to_owned(),
        // Layers are asked about nothing else.
        _ => return None,
    })
}
