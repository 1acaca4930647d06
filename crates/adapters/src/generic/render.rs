//! Answers: `{"decision":D,"reason":T|null,"text":T|null,"transition":{...}|null}`, always one
//! object, so that a caller which waits for a line never waits in vain. Where there is nothing
//! to decide, `decision` is null. The word `allow` is a decision of ours and grants nothing.

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::policy::Stance;
use checkrein_core::transition::Transition;
use serde::Serialize;

use crate::knock::ReplyForm;
use crate::reply::{Answer, Reply};
use crate::wording::{ended, not_done};

#[derive(Default, Serialize)]
struct AnswerWire<'a> {
    decision: Option<&'a str>,
    reason: Option<&'a str>,
    text: Option<&'a str>,
    transition: Option<&'a Transition>,
}

impl AnswerWire<'_> {
    fn reply(&self) -> Reply {
        // Strings and plain structs only: serialising cannot fail.
        let mut stdout = serde_json::to_vec(self).unwrap_or_default();
        stdout.push(b'\n');
        Reply {
            stdout,
            ..Reply::default()
        }
    }
}

pub(super) fn reply(form: ReplyForm, answer: &Answer) -> Reply {
    let notice = answer.notice.as_deref();
    match (&answer.decision, form) {
        (Decision::Tool(decision), ReplyForm::Tool | ReplyForm::Unknown) => tool(decision, notice),
        (Decision::Stop(decision), ReplyForm::Stop | ReplyForm::Unknown) => {
            stop(decision, answer.text.as_deref(), notice)
        }
        (Decision::Tool(_) | Decision::Stop(_) | Decision::Noted, _) => AnswerWire {
            text: notice,
            ..AnswerWire::default()
        }
        .reply(),
    }
}

fn tool(decision: &ToolDecision, notice: Option<&str>) -> Reply {
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
    AnswerWire {
        decision: Some(word),
        reason,
        text,
        transition: None,
    }
    .reply()
}

fn stop(decision: &StopDecision, text: Option<&str>, notice: Option<&str>) -> Reply {
    match decision {
        StopDecision::Accept { transition } => AnswerWire {
            decision: Some("accept"),
            reason: None,
            text: notice,
            transition: transition.as_ref(),
        }
        .reply(),
        StopDecision::Continue { feedback } => {
            let line = not_done(feedback);
            let text = text.filter(|text| !text.trim().is_empty()).unwrap_or(&line);
            AnswerWire {
                decision: Some("continue"),
                reason: Some(&line),
                text: Some(text),
                transition: None,
            }
            .reply()
        }
        StopDecision::Halt { transition } => AnswerWire {
            decision: Some("halt"),
            reason: Some(&ended(transition)),
            text: notice,
            transition: Some(transition),
        }
        .reply(),
    }
}

pub(super) fn stance(form: ReplyForm, stance: Stance, text: &str) -> Reply {
    let (decision, reason, text) = match (form, stance) {
        (ReplyForm::Silent, _) => (None, None, Some(text)),
        (ReplyForm::Tool, Stance::Allow) => (Some("allow"), None, Some(text)),
        (ReplyForm::Tool | ReplyForm::Unknown, Stance::Ask) => (Some("ask"), Some(text), None),
        (ReplyForm::Tool | ReplyForm::Unknown, Stance::Block) => (Some("deny"), Some(text), None),
        (ReplyForm::Stop, Stance::Block) => (Some("continue"), Some(text), Some(text)),
        (ReplyForm::Stop, Stance::Allow | Stance::Ask) => (Some("accept"), None, Some(text)),
        (ReplyForm::Unknown, Stance::Allow) => (None, None, Some(text)),
    };
    AnswerWire {
        decision,
        reason,
        text,
        transition: None,
    }
    .reply()
}
