//! The adapter for Codex: hooks arrive as JSON on stdin, answers are JSON. Its output schemas
//! forbid unknown fields, and a wrong answer counts as a failed hook, after which the action goes
//! ahead: only forms that the real program obeyed (0.169.0) are rendered.

mod headless;
pub(crate) mod history;
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

const NAME: &str = "codex";

/// Translates Codex's hook protocol.
#[derive(Debug)]
pub(crate) struct CodexAdapter;

impl Adapter for CodexAdapter {
    fn agent_name(&self) -> &'static str {
        NAME
    }

    fn agent_capabilities(&self) -> AgentCapabilities {
        AgentCapabilities {
            block_stop: true,
            deny_tool: true,
            ask_person: false,
            add_context: true,
            // `continue: false` counts as a failed hook at PreToolUse, after which the tool runs.
            halt: false,
            system_message: true,
            block_cap: None,
            own_session_ids: true,
            rounds: false,
            subagents: true,
            // A tool that fails before it says anything has no `PostToolUse`. What is typed into a
            // running program is shown to no hook (`write_stdin`).
            tool_requests: false,
            tool_outcomes: false,
            tool_errors: false,
            transcript_usage: true,
            deadlines: DefaultReplyDeadlinesByEvent {
                stop: 600,
                tool: 600,
                prompt: 600,
                session_end: 3,
                other: 600,
            },
        }
    }

    fn hook_events(&self) -> &'static [&'static str] {
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

    fn parse_agent_hook_message(
        &self,
        bytes: &[u8],
        _env: EnvLookup<'_>,
    ) -> Result<AgentEvent, AgentMessageParseError> {
        let fields = HookPayloadFields::parse_hook_message(
            NAME,
            "hook_event_name",
            codex_event_kind,
            bytes,
        )?;
        let mut knock = read_common_event_fields(&fields)?;
        match fields.native_event.as_str() {
            "PreToolUse" => tool::read_codex_tool_request(&fields, &mut knock)?,
            "PostToolUse" => tool::read_tool_result(&fields, &mut knock)?,
            "Stop" => stop::read_stop(&fields, &mut knock),
            "SubagentStop" => stop::read_subagent_stop(&fields, &mut knock),
            "SessionStart" => session::parse_session_start_hook(&fields, &mut knock),
            "SessionEnd" => session::read_session_end(&fields, &mut knock),
            "UserPromptSubmit" => session::read_prompt_hook_event(&fields, &mut knock),
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
            Decision::Tool(decision)
                if matches!(
                    form,
                    AwaitedHookReplyForm::Tool | AwaitedHookReplyForm::Unknown
                ) =>
            {
                tool::codex_tool_decision_reply(decision)
            }
            Decision::Stop(decision)
                if matches!(
                    form,
                    AwaitedHookReplyForm::Stop | AwaitedHookReplyForm::Unknown
                ) =>
            {
                stop::render_stop_reply(decision, answer.text.as_deref(), answer.notice.as_deref())
            }
            Decision::Noted if form == AwaitedHookReplyForm::Silent => answer
                .notice
                .as_deref()
                .map_or_else(HookReply::no_opinion_hook_reply, person_notice_reply),
            // Codex shows no rounds.
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
            // Codex cannot ask in a hook's name, so `ask` becomes the next stronger thing that it
            // obeys.
            (AwaitedHookReplyForm::Tool, Stance::Block | Stance::Ask) => tool::deny_reply(text),
            (AwaitedHookReplyForm::Stop, Stance::Block) => stop::stop_blocking_reply(text),
            // Status 2 with a text is "no" at every event that can be answered at all.
            (AwaitedHookReplyForm::Unknown, Stance::Block | Stance::Ask) => {
                HookReply::stderr_refusal_reply(text)
            }
            // `systemMessage` is valid at every event and changes nothing.
            (_, Stance::Allow) | (AwaitedHookReplyForm::Stop, Stance::Ask) => {
                person_notice_reply(text)
            }
        }
    }

    fn parse_hook_settings(&self, bytes: &[u8]) -> Option<ParsedHookSettings> {
        Some(settings::parse_hooks_file(bytes))
    }

    fn transcript_token_usage(&self, bytes: &[u8], cursor: &str) -> Option<TokenUsage> {
        rollout::rollout_token_usage(bytes, cursor)
    }

    fn headless_agent_if_supported(&self) -> Option<&dyn HeadlessAgent> {
        Some(self)
    }
}

/// Returns the kind of event that Codex calls by this name.
fn codex_event_kind(native: &str) -> AgentEventKind {
    match native {
        "PreToolUse" => AgentEventKind::ToolRequest,
        "PostToolUse" => AgentEventKind::ToolResult,
        "Stop" | "SubagentStop" => AgentEventKind::Stop,
        "SessionStart" => AgentEventKind::SessionStart,
        "SessionEnd" => AgentEventKind::SessionEnd,
        "UserPromptSubmit" => AgentEventKind::Prompt,
        _ => AgentEventKind::Other,
    }
}

/// Reads the fields that every message carries.
fn read_common_event_fields(
    fields: &HookPayloadFields,
) -> Result<AgentEvent, AgentMessageParseError> {
    let session = SessionId::new(fields.required_id_field("session_id")?);
    let mut knock = AgentEvent::new(session, fields.event, &fields.native_event);
    knock.cwd = fields.owned_id_field("cwd");
    knock.working_folder = knock.cwd.clone();
    let scope = main_or_subagent_scope(fields);
    // A sub-agent's own file is named only when it stops.
    if scope.is_main_scope() {
        knock.transcript = fields
            .owned_id_field("transcript_path")
            .map(|path| TranscriptFile { path, scope });
    }
    Ok(knock)
}

/// `agent_id` is there only inside a sub-agent.
fn main_or_subagent_scope(fields: &HookPayloadFields) -> ScopeId {
    fields
        .nonempty_payload_text_field("agent_id")
        .map_or_else(ScopeId::main_scope, ScopeId::from)
}

/// Shows one line to the person.
fn person_notice_reply(text: &str) -> HookReply {
    HookReply::json_stdout_reply(&serde_json::json!({ "systemMessage": text }))
}
