//! The adapter for Claude Code: hooks arrive as JSON on stdin, and answers are JSON or exit status
//! 2. The facts were checked with the real program, version 2.1.330; see `fixtures/`.

mod headless;
pub(crate) mod history;
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

use crate::agent_event::{
    AgentEvent, AgentEventKind, AgentMessageParseError, AwaitedHookReplyForm, TranscriptFile,
};
use crate::capabilities::{AgentCapabilities, DefaultReplyDeadlinesByEvent};
use crate::fields::HookPayloadFields;
use crate::headless::HeadlessAgent;
use crate::reply::{HookDecisionWithTexts, HookReply};
use crate::settings::ParsedHookSettings;
use crate::wording::text_or_fallback_refusal;
use crate::{Adapter, EnvLookup};

const NAME: &str = "claude-code";

/// Translates Claude Code's hook protocol.
#[derive(Debug)]
pub(crate) struct ClaudeCodeAdapter;

impl Adapter for ClaudeCodeAdapter {
    fn agent_name(&self) -> &'static str {
        NAME
    }

    fn agent_capabilities(&self) -> AgentCapabilities {
        AgentCapabilities {
            block_stop: true,
            deny_tool: true,
            ask_person: true,
            add_context: true,
            halt: true,
            system_message: true,
            // A person can change this cap by an environment variable, which `stop` reads at each
            // stop.
            block_cap: Some(stop::DEFAULT_BLOCK_CAP),
            own_session_ids: true,
            rounds: true,
            subagents: true,
            tool_requests: true,
            tool_outcomes: true,
            tool_errors: true,
            transcript_usage: true,
            // These are the timeouts of 2.1.330 in whole seconds. SessionEnd has 1.5 s.
            deadlines: DefaultReplyDeadlinesByEvent {
                stop: 600,
                tool: 600,
                prompt: 30,
                session_end: 1,
                other: 600,
            },
        }
    }

    fn hook_events(&self) -> &'static [&'static str] {
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

    fn parse_agent_hook_message(
        &self,
        bytes: &[u8],
        env: EnvLookup<'_>,
    ) -> Result<AgentEvent, AgentMessageParseError> {
        let fields = HookPayloadFields::parse_hook_message(
            NAME,
            "hook_event_name",
            event_kind_from_hook_name,
            bytes,
        )?;
        let mut knock = agent_event_with_common_fields(&fields)?;
        // `cwd` follows the agent's `cd`: a session must not leave its repo's policy by leaving
        // the folder.
        if let Some(project) = env("CLAUDE_PROJECT_DIR").filter(|folder| !folder.is_empty()) {
            knock.cwd = Some(project);
        }
        // `CLAUDE_CODE_SESSION_ATTENDED` is `0` without a person at the terminal, and in the mode
        // `dontAsk` Claude Code refuses instead of asking.
        knock.can_ask = env("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0")
            && fields.owned_id_field("permission_mode").as_deref() != Some("dontAsk");
        match fields.native_event.as_str() {
            "PreToolUse" => tool::read_claude_tool_request(&fields, &mut knock)?,
            "PostToolUse" => tool::read_tool_result_event(&fields, &mut knock)?,
            "PostToolUseFailure" => tool::read_tool_failure(&fields, &mut knock)?,
            "PostToolBatch" => tool::parse_round_end_hook(&fields, &mut knock),
            "Stop" => stop::read_stop(&fields, env, &mut knock),
            "SubagentStop" => stop::read_subagent_stop(&fields, env, &mut knock),
            "StopFailure" => stop::read_stop_failure(&fields, &mut knock),
            "SessionStart" => session::read_session_start(&fields, &mut knock),
            "SessionEnd" => session::parse_session_end_hook(&fields, &mut knock),
            "UserPromptSubmit" => session::read_prompt_hook_event(&fields, &mut knock),
            // An event that means nothing to the core still yields an `AgentEvent`: it is answered,
            // without input.
            _ => {}
        }
        Ok(knock)
    }

    fn render_decision_reply(
        &self,
        form: AwaitedHookReplyForm,
        answer: &HookDecisionWithTexts,
    ) -> HookReply {
        match &answer.decision {
            // A decision is only ever said where the agent waits for one of its kind.
            Decision::Tool(decision)
                if matches!(
                    form,
                    AwaitedHookReplyForm::Tool | AwaitedHookReplyForm::Unknown
                ) =>
            {
                tool::render_tool_decision_reply(decision, answer.can_ask, answer.notice.as_deref())
            }
            Decision::Stop(decision)
                if matches!(
                    form,
                    AwaitedHookReplyForm::Stop | AwaitedHookReplyForm::Unknown
                ) =>
            {
                stop::render_stop_reply(decision, answer.text.as_deref(), answer.notice.as_deref())
            }
            // Nothing can be decided at other events, but a person may have to be told something.
            Decision::Noted if form == AwaitedHookReplyForm::Silent => answer
                .notice
                .as_deref()
                .map_or_else(HookReply::no_opinion_hook_reply, hook_reply_for_person_only),
            Decision::Round(decision) if form == AwaitedHookReplyForm::Silent => {
                tool::render_round_decision_reply(decision, answer.notice.as_deref())
            }
            Decision::Tool(_) | Decision::Stop(_) | Decision::Round(_) | Decision::Noted => {
                HookReply::no_opinion_hook_reply()
            }
        }
    }

    fn stance_as_hook_reply(
        &self,
        form: AwaitedHookReplyForm,
        stance: Stance,
        text: &str,
    ) -> HookReply {
        let text = text_or_fallback_refusal(text);
        match (form, stance) {
            (AwaitedHookReplyForm::Silent, _) => HookReply::no_opinion_hook_reply(),
            (AwaitedHookReplyForm::Tool, Stance::Block) => tool::deny_reply(text),
            // Headless, `ask` is a refusal with this text.
            (AwaitedHookReplyForm::Tool, Stance::Ask) => tool::hook_reply_asking_person(text),
            // Exit status 2 refuses at every event that can be refused, so it serves where the form
            // is unknown.
            (AwaitedHookReplyForm::Stop | AwaitedHookReplyForm::Unknown, Stance::Block)
            | (AwaitedHookReplyForm::Unknown, Stance::Ask) => HookReply::stderr_refusal_reply(text),
            // A stop has no question form: it is let through, and the person is told.
            (_, Stance::Allow) | (AwaitedHookReplyForm::Stop, Stance::Ask) => {
                hook_reply_for_person_only(text)
            }
        }
    }

    fn parse_hook_settings(&self, bytes: &[u8]) -> Option<ParsedHookSettings> {
        Some(settings::parse_claude_settings(bytes))
    }

    fn transcript_token_usage(&self, bytes: &[u8], cursor: &str) -> Option<TokenUsage> {
        transcript::transcript_token_usage(bytes, cursor)
    }

    fn headless_agent_if_supported(&self) -> Option<&dyn HeadlessAgent> {
        Some(self)
    }
}

/// Returns the kind of event that Claude Code calls by this name.
fn event_kind_from_hook_name(native: &str) -> AgentEventKind {
    match native {
        "PreToolUse" => AgentEventKind::ToolRequest,
        "PostToolUse" | "PostToolUseFailure" => AgentEventKind::ToolResult,
        "PostToolBatch" => AgentEventKind::Round,
        "Stop" | "SubagentStop" => AgentEventKind::Stop,
        "StopFailure" => AgentEventKind::StopFailure,
        "SessionStart" => AgentEventKind::SessionStart,
        "SessionEnd" => AgentEventKind::SessionEnd,
        "UserPromptSubmit" => AgentEventKind::Prompt,
        _ => AgentEventKind::Other,
    }
}

/// Reads the fields that every message carries.
fn agent_event_with_common_fields(
    fields: &HookPayloadFields,
) -> Result<AgentEvent, AgentMessageParseError> {
    let session = SessionId::new(fields.required_id_field("session_id")?);
    let mut knock = AgentEvent::new(session, fields.event, &fields.native_event);
    knock.cwd = fields.owned_id_field("cwd");
    knock.working_folder = knock.cwd.clone();
    let scope = main_or_subagent_scope(fields);
    // A scope whose id cannot be part of a path has no transcript: the path comes from the agent.
    knock.transcript = fields
        .nonempty_payload_text_field("transcript_path")
        .and_then(|path| transcript::transcript_path_of_scope(path, &scope))
        .map(|path| TranscriptFile { path, scope });
    Ok(knock)
}

/// `agent_id` is there only inside a sub-agent.
fn main_or_subagent_scope(fields: &HookPayloadFields) -> ScopeId {
    fields
        .nonempty_payload_text_field("agent_id")
        .map_or_else(ScopeId::main_scope, ScopeId::from)
}

/// Shows one line to the person. The model never sees it.
fn hook_reply_for_person_only(text: &str) -> HookReply {
    HookReply::json_stdout_reply(&serde_json::json!({ "systemMessage": text }))
}
