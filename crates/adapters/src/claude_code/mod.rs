//! Claude Code: hooks as JSON on stdin, answers as JSON or as exit status 2. Facts were
//! checked with the real program, version 2.1.330; see `fixtures/`.

mod headless;
pub mod permissions;
mod session;
mod settings;
mod stop;
mod stream;
mod tool;
mod transcript;

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

const NAME: &str = "claude-code";

/// The adapter.
#[derive(Debug)]
pub(crate) struct ClaudeCode;

impl Adapter for ClaudeCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            block_stop: true,
            deny_tool: true,
            ask_person: true,
            add_context: true,
            halt: true,
            system_message: true,
            block_cap: Some(stop::DEFAULT_BLOCK_CAP),
            own_session_ids: true,
            rounds: true,
            subagents: true,
            tool_requests: true,
            tool_outcomes: true,
            tool_errors: true,
            transcript_usage: true,
            deadlines: Deadlines {
                stop: 600,
                tool: 600,
                prompt: 30,
                session_end: 1,
                other: 600,
            },
        }
    }

    fn events(&self) -> &'static [&'static str] {
        &[
            "PostToolBatch",
            "PostToolUse",
            "PostToolUseFailure",
            "PreToolUse",
            "SessionEnd",
            "SessionStart",
            "Stop",
            "StopFailure",
            "SubagentStop",
            "UserPromptSubmit",
        ]
    }

    fn read(&self, bytes: &[u8], env: Env<'_>) -> Result<Knock, Unreadable> {
        let fields = Fields::read(NAME, "hook_event_name", kind, bytes)?;
        let mut knock = begin(&fields)?;
        // `cwd` follows the agent's `cd`: a session must not leave its repo's policy by leaving
        // the folder.
        if let Some(project) = env("CLAUDE_PROJECT_DIR").filter(|folder| !folder.is_empty()) {
            knock.cwd = Some(project);
        }
        // Attended, and not told to refuse instead of asking.
        knock.can_ask = env("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0")
            && fields.owned("permission_mode").as_deref() != Some("dontAsk");
        match fields.native.as_str() {
            "PreToolUse" => tool::requested(&fields, &mut knock)?,
            "PostToolUse" => tool::returned(&fields, &mut knock)?,
            "PostToolUseFailure" => tool::failed(&fields, &mut knock)?,
            "PostToolBatch" => tool::round(&fields, &mut knock),
            "Stop" => stop::requested(&fields, env, &mut knock),
            "SubagentStop" => stop::subagent(&fields, env, &mut knock),
            "StopFailure" => stop::failed(&fields, &mut knock),
            "SessionStart" => session::started(&fields, &mut knock),
            "SessionEnd" => session::ended(&fields, &mut knock),
            "UserPromptSubmit" => session::prompt(&fields, &mut knock),
            _ => {}
        }
        Ok(knock)
    }

    fn reply(&self, form: ReplyForm, answer: &Answer) -> Reply {
        match &answer.decision {
            // A decision is only ever said where the agent waits for one of its kind.
            Decision::Tool(decision) if matches!(form, ReplyForm::Tool | ReplyForm::Unknown) => {
                tool::reply(decision, answer.can_ask, answer.notice.as_deref())
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
            (ReplyForm::Tool, Stance::Block) => tool::deny(text),
            // Headless, `ask` is a refusal with this text.
            (ReplyForm::Tool, Stance::Ask) => tool::ask(text),
            (ReplyForm::Stop | ReplyForm::Unknown, Stance::Block)
            | (ReplyForm::Unknown, Stance::Ask) => Reply::refuse(text),
            (_, Stance::Allow) | (ReplyForm::Stop, Stance::Ask) => said(text),
        }
    }

    fn settings(&self, bytes: &[u8]) -> Option<Reading> {
        Some(settings::read(bytes))
    }

    fn usage(&self, bytes: &[u8], cursor: &str) -> Option<TokenUsage> {
        transcript::usage(bytes, cursor)
    }

    fn headless(&self) -> Option<&dyn Headless> {
        Some(self)
    }
}

/// What kind of event goes by this name.
fn kind(native: &str) -> EventKind {
    match native {
        "PreToolUse" => EventKind::ToolRequest,
        "PostToolUse" | "PostToolUseFailure" => EventKind::ToolResult,
        "PostToolBatch" => EventKind::Round,
        "Stop" | "SubagentStop" => EventKind::Stop,
        "StopFailure" => EventKind::StopFailure,
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
    knock.transcript = fields
        .id("transcript_path")
        .and_then(|path| transcript::path(path, &scope))
        .map(|path| Transcript { path, scope });
    Ok(knock)
}

/// `agent_id` is there only inside a sub-agent.
fn scope(fields: &Fields) -> ScopeId {
    fields
        .id("agent_id")
        .map_or_else(ScopeId::main_scope, ScopeId::from)
}

/// One line for the person. The model never sees it.
fn said(text: &str) -> Reply {
    Reply::json(&serde_json::json!({ "systemMessage": text }))
}
