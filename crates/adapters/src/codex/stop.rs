//! Reads and answers stops. Plain text on stdout would be a failed hook, and a refusal needs a
//! reason. Codex has no cap on refusals of its own: ours are the only ones.

use checkrein_core::decision::StopDecision;
use checkrein_core::digest::Digest;
use checkrein_core::input::{AgentAnswerFacts, Input, StopRequested, TreeReadError};
use serde_json::json;

use crate::agent_event::{AgentEvent, TranscriptFile};
use crate::fields::HookPayloadFields;
use crate::reply::HookReply;
use crate::wording::{how_task_ended_line, unmet_checks_line};

pub(super) fn read_stop(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let message = fields
        .text_field("last_assistant_message")
        .unwrap_or_default();
    knock.first_stop = fields.bool_field("stop_hook_active").map(|active| !active);
    knock.input = Some(Input::StopRequested(StopRequested {
        scope: super::main_or_subagent_scope(fields),
        message: message.to_owned(),
        message_digest: Digest::hash_bytes(message.as_bytes()),
        // The runtime reads the tree; this crate does no I/O.
        tree: Err(TreeReadError {
            why: "not read".to_owned(),
            cut: false,
        }),
        block_cap: None,
        truncated: false,
        background: 0,
        agent_ending: None,
        answer: AgentAnswerFacts::default(),
        judges: Box::default(),
        tokens: None,
    }));
}

pub(super) fn read_subagent_stop(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    knock.transcript = fields
        .owned_id_field("agent_transcript_path")
        .map(|path| TranscriptFile {
            path,
            scope: super::main_or_subagent_scope(fields),
        });
    read_stop(fields, knock);
}

pub(super) fn render_stop_reply(
    decision: &StopDecision,
    text: Option<&str>,
    notice: Option<&str>,
) -> HookReply {
    match decision {
        StopDecision::Accept { .. } => {
            notice.map_or_else(HookReply::no_opinion_hook_reply, super::person_notice_reply)
        }
        StopDecision::Continue { feedback } => match text {
            Some(text) if !text.trim().is_empty() => stop_blocking_reply(text),
            _ => stop_blocking_reply(&unmet_checks_line(feedback)),
        },
        // Letting the stop through ends the turn, and Codex has nothing stronger.
        StopDecision::Halt { transition } => super::person_notice_reply(
            &notice.map_or_else(|| how_task_ended_line(transition), str::to_owned),
        ),
    }
}

pub(super) fn stop_blocking_reply(reason: &str) -> HookReply {
    HookReply::json_stdout_reply(&json!({ "decision": "block", "reason": reason }))
}
