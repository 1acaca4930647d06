//! Codex: hooks as JSON on stdin, answers as JSON. Its output schemas forbid unknown fields
//! and a wrong answer counts as a failed hook, after which the action goes ahead: only forms
//! that the real program obeyed (0.169.0) are rendered.

mod headless;
mod rollout;
mod session;
mod settings;
mod stop;
mod stream;
mod tool;
pub mod trust;

use checkrein_core::decision::Decision;
use checkrein_core::ids::{ScopeId, SessionId};
use checkrein_core::input::TokenUsage;
use checkrein_core::policy::Stance;

use crate::capabilities::{Capabilities, Deadlines};
use crate::fields::Fields;
use crate::headless::Headless;
use crate::knock::{EventKind, Knock, ReplyForm, Transcript, Unreadable};
use crate::reply::{Answer, Reply};
use crate::settings::Reading;
use crate::wording::or_cannot_judge;
use crate::{Adapter, Env};

const NAME: &str = "codex";

/// The adapter.
#[derive(Debug)]
pub(crate) struct Codex;

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            block_stop: true,
            deny_tool: true,
            ask_person: false,
            add_context: true,
            halt: false,
            system_message: true,
            block_cap: None,
            own_session_ids: true,
            rounds: false,
            subagents: true,
            // A tool that fails before it says anything has no `PostToolUse`.
            // What is typed at a running program is shown to no hook (`write_stdin`).
            tool_requests: false,
            tool_outcomes: false,
            tool_errors: false,
            transcript_usage: true,
            deadlines: Deadlines {
                stop: 600,
                tool: 600,
                prompt: 600,
                session_end: 3,
                other: 600,
            },
        }
    }

    fn events(&self) -> &'static [&'static str] {
        &[
            "PostToolUse",
            "PreToolUse",
            "SessionEnd",
            "SessionStart",
            "Stop",
            "SubagentStop",
            "UserPromptSubmit",
        ]
    }

    fn read(&self, bytes: &[u8], _env: Env<'_>) -> Result<Knock, Unreadable> {
        let fields = Fields::read(NAME, "hook_event_name", kind, bytes)?;
        let mut knock = begin(&fields)?;
        match fields.native.as_str() {
            "PreToolUse" => tool::requested(&fields, &mut knock)?,
            "PostToolUse" => tool::returned(&fields, &mut knock)?,
            "Stop" => stop::requested(&fields, &mut knock),
            "SubagentStop" => stop::subagent(&fields, &mut knock),
            "SessionStart" => session::started(&fields, &mut knock),
            "SessionEnd" => session::ended(&fields, &mut knock),
            "UserPromptSubmit" => session::prompt(&fields, &mut knock),
            _ => {}
        }
        Ok(knock)
    }

    fn reply(&self, form: ReplyForm, answer: &Answer) -> Reply {
        match &answer.decision {
            Decision::Tool(decision) if matches!(form, ReplyForm::Tool | ReplyForm::Unknown) => {
                tool::reply(decision)
            }
            Decision::Stop(decision) if matches!(form, ReplyForm::Stop | ReplyForm::Unknown) => {
                stop::reply(decision, answer.text.as_deref(), answer.notice.as_deref())
            }
            Decision::Noted if form == ReplyForm::Silent => {
                answer.notice.as_deref().map_or_else(Reply::nothing, said)
            }
            Decision::Tool(_) | Decision::Stop(_) | Decision::Noted => Reply::nothing(),
        }
    }

    fn stance(&self, form: ReplyForm, stance: Stance, text: &str) -> Reply {
        let text = or_cannot_judge(text);
        match (form, stance) {
            (ReplyForm::Silent, _) => Reply::nothing(),
            (ReplyForm::Tool, Stance::Block | Stance::Ask) => tool::deny(text),
            (ReplyForm::Stop, Stance::Block) => stop::block(text),
            // Status 2 with a text is "no" at every event that can be answered at all.
            (ReplyForm::Unknown, Stance::Block | Stance::Ask) => Reply::refuse(text),
            (_, Stance::Allow) | (ReplyForm::Stop, Stance::Ask) => said(text),
        }
    }

    fn settings(&self, bytes: &[u8]) -> Option<Reading> {
        Some(settings::read(bytes))
    }

    fn usage(&self, bytes: &[u8], cursor: &str) -> Option<TokenUsage> {
        rollout::usage(bytes, cursor)
    }

    fn headless(&self) -> Option<&dyn Headless> {
        Some(self)
    }
}

/// What kind of event goes by this name.
fn kind(native: &str) -> EventKind {
    match native {
        "PreToolUse" => EventKind::ToolRequest,
        "PostToolUse" => EventKind::ToolResult,
        "Stop" | "SubagentStop" => EventKind::Stop,
        "SessionStart" => EventKind::SessionStart,
        "SessionEnd" => EventKind::SessionEnd,
        "UserPromptSubmit" => EventKind::Prompt,
        _ => EventKind::Other,
    }
}

/// What every message carries.
fn begin(fields: &Fields) -> Result<Knock, Unreadable> {
    let session = SessionId::new(fields.required("session_id")?);
    let mut knock = Knock::new(session, fields.event, &fields.native);
    knock.cwd = fields.owned("cwd");
    knock.works_in = knock.cwd.clone();
    let scope = scope(fields);
    // A sub-agent's own file is named only when it stops.
    if scope.is_main_scope() {
        knock.transcript = fields
            .owned("transcript_path")
            .map(|path| Transcript { path, scope });
    }
    Ok(knock)
}

/// `agent_id` is there only inside a sub-agent.
fn scope(fields: &Fields) -> ScopeId {
    fields
        .id("agent_id")
        .map_or_else(ScopeId::main_scope, ScopeId::from)
}

/// One line for the person.
fn said(text: &str) -> Reply {
    Reply::json(&serde_json::json!({ "systemMessage": text }))
}
