//! Stops. Plain text on stdout would be a failed hook, and a refusal needs a reason. Codex has
//! no cap on refusals of its own: ours are the only ones.

use checkrein_core::decision::StopDecision;
use checkrein_core::digest::Digest;
use checkrein_core::input::{AgentAnswerFlags, Input, StopRequested, TreeReadError};
use serde_json::json;

use crate::fields::Fields;
use crate::knock::{Knock, Transcript};
use crate::reply::Reply;
use crate::wording::{ended, not_done};

pub(super) fn requested(fields: &Fields, knock: &mut Knock) {
    let message = fields.text("last_assistant_message").unwrap_or_default();
    knock.first_stop = fields.flag("stop_hook_active").map(|active| !active);
    knock.input = Some(Input::StopRequested(StopRequested {
        scope: super::scope(fields),
        message: message.to_owned(),
        message_digest: Digest::hash_bytes(message.as_bytes()),
        tree: Err(TreeReadError {
            why: "not read".to_owned(),
            cut: false,
        }),
        block_cap: None,
        truncated: false,
        background: 0,
        agent_ending: None,
        answer: AgentAnswerFlags::default(),
        judges: Box::default(),
        tokens: None,
    }));
}

pub(super) fn subagent(fields: &Fields, knock: &mut Knock) {
    knock.transcript = fields
        .owned("agent_transcript_path")
        .map(|path| Transcript {
            path,
            scope: super::scope(fields),
        });
    requested(fields, knock);
}

pub(super) fn reply(decision: &StopDecision, text: Option<&str>, notice: Option<&str>) -> Reply {
    match decision {
        StopDecision::Accept { .. } => notice.map_or_else(Reply::nothing, super::said),
        StopDecision::Continue { feedback } => match text {
            Some(text) if !text.trim().is_empty() => block(text),
            _ => block(&not_done(feedback)),
        },
        // A stop that is let through is the strongest stop there is.
        StopDecision::Halt { transition } => {
            super::said(&notice.map_or_else(|| ended(transition), str::to_owned))
        }
    }
}

pub(super) fn block(reason: &str) -> Reply {
    Reply::json(&json!({ "decision": "block", "reason": reason }))
}
