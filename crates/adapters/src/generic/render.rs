//! Renders answers: `{"decision":D,"reason":T|null,"text":T|null,"transition":{...}|null}`, always
//! one object, so that a caller which waits for a line never waits in vain. Where there is nothing
//! to decide, `decision` is null. The word `allow` is a decision of ours and grants nothing.

use checkrein_core::decision::{Decision, RoundDecision, StopDecision, ToolDecision};
use checkrein_core::policy::Stance;
use checkrein_core::transition::Transition;
use serde::Serialize;

use crate::agent_event::AwaitedHookReplyForm;
use crate::reply::{HookDecisionWithTexts, HookReply};
use crate::wording::{how_task_ended_line, unmet_checks_line};

#[derive(Default, Serialize)]
struct GenericReplyWire<'a> {
    decision: Option<&'a str>,
    reason: Option<&'a str>,
    text: Option<&'a str>,
    transition: Option<&'a Transition>,
}

impl GenericReplyWire<'_> {
    fn to_hook_reply(&self) -> HookReply {
        // Strings and plain structs only: serialising cannot fail.
        let mut stdout = serde_json::to_vec(self).unwrap_or_default();
        stdout.push(b'\n');
        HookReply {
            stdout,
            ..HookReply::default()
        }
    }
}

pub(super) fn render_generic_hook_reply(
    form: AwaitedHookReplyForm,
    answer: &HookDecisionWithTexts,
) -> HookReply {
    let notice = answer.notice.as_deref();
    match (&answer.decision, form) {
        (Decision::Tool(decision), AwaitedHookReplyForm::Tool | AwaitedHookReplyForm::Unknown) => {
            render_tool_decision_reply(decision, notice)
        }
        (Decision::Stop(decision), AwaitedHookReplyForm::Stop | AwaitedHookReplyForm::Unknown) => {
            render_stop_reply(decision, answer.text.as_deref(), notice)
        }
        (Decision::Round(decision), AwaitedHookReplyForm::Silent) => {
            render_round_decision_reply(decision, notice)
        }
        (Decision::Tool(_) | Decision::Stop(_) | Decision::Round(_) | Decision::Noted, _) => {
            GenericReplyWire {
                text: notice,
                ..GenericReplyWire::default()
            }
            .to_hook_reply()
        }
    }
}

fn render_round_decision_reply(decision: &RoundDecision, notice: Option<&str>) -> HookReply {
    let (word, reason, text) = match decision {
        RoundDecision::Nudge { text } => ("nudge", None, Some(text.as_str())),
        RoundDecision::Halt { reason } => ("halt", Some(reason.as_str()), notice),
    };
    GenericReplyWire {
        decision: Some(word),
        reason,
        text,
        transition: None,
    }
    .to_hook_reply()
}

fn render_tool_decision_reply(decision: &ToolDecision, notice: Option<&str>) -> HookReply {
    let (word, reason, text) = match decision {
        ToolDecision::Allow => ("allow", None, notice),
        ToolDecision::Nudge { text } => ("nudge", None, Some(text.as_str())),
        // `text` is the suggested call's arguments: the caller makes the call, or does not.
        ToolDecision::Rewrite { args, reason } => {
            ("rewrite", Some(reason.as_str()), Some(args.as_str()))
        }
        ToolDecision::Ask {
            reason, approval, ..
        } => ("ask", Some(reason.as_str()), Some(approval.as_str())),
        ToolDecision::Deny { reason } => ("deny", Some(reason.as_str()), notice),
        ToolDecision::Halt { reason } => ("halt", Some(reason.as_str()), notice),
    };
    GenericReplyWire {
        decision: Some(word),
        reason,
        text,
        transition: None,
    }
    .to_hook_reply()
}

fn render_stop_reply(
    decision: &StopDecision,
    text: Option<&str>,
    notice: Option<&str>,
) -> HookReply {
    match decision {
        StopDecision::Accept { transition } => GenericReplyWire {
            decision: Some("accept"),
            reason: None,
            text: notice,
            transition: transition.as_ref(),
        }
        .to_hook_reply(),
        StopDecision::Continue { feedback } => {
            // `text` is what the model gets; `reason` is one line.
            let line = unmet_checks_line(feedback);
            let text = text.filter(|text| !text.trim().is_empty()).unwrap_or(&line);
            GenericReplyWire {
                decision: Some("continue"),
                reason: Some(&line),
                text: Some(text),
                transition: None,
            }
            .to_hook_reply()
        }
        StopDecision::Halt { transition } => GenericReplyWire {
            decision: Some("halt"),
            reason: Some(&how_task_ended_line(transition)),
            text: notice,
            transition: Some(transition),
        }
        .to_hook_reply(),
    }
}

pub(super) fn render_cannot_judge_reply(
    form: AwaitedHookReplyForm,
    stance: Stance,
    text: &str,
) -> HookReply {
    let (decision, reason, text) = match (form, stance) {
        // Nothing is decided where the caller waits for no decision, whatever the stance is.
        (AwaitedHookReplyForm::Silent, _) => (None, None, Some(text)),
        (AwaitedHookReplyForm::Tool, Stance::Allow) => (Some("allow"), None, Some(text)),
        (AwaitedHookReplyForm::Tool | AwaitedHookReplyForm::Unknown, Stance::Ask) => {
            (Some("ask"), Some(text), None)
        }
        // Where the form is unknown, the caller gets the words for a tool, which refuse.
        (AwaitedHookReplyForm::Tool | AwaitedHookReplyForm::Unknown, Stance::Block) => {
            (Some("deny"), Some(text), None)
        }
        (AwaitedHookReplyForm::Stop, Stance::Block) => (Some("continue"), Some(text), Some(text)),
        // A stop cannot be held open for a person: it is accepted, and the task waits as
        // `awaiting_human`.
        (AwaitedHookReplyForm::Stop, Stance::Allow | Stance::Ask) => {
            (Some("accept"), None, Some(text))
        }
        (AwaitedHookReplyForm::Unknown, Stance::Allow) => (None, None, Some(text)),
    };
    GenericReplyWire {
        decision,
        reason,
        text,
        transition: None,
    }
    .to_hook_reply()
}
