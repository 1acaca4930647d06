//! Describes what an agent can be told. Other crates ask here instead of comparing agents' names.

use crate::agent_event::AgentEventKind;

/// The answers that an agent obeys, and the facts that it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// A stop can be refused, with a text that the model reads.
    pub block_stop: bool,
    /// A tool call can be refused, with a text that the model reads.
    pub deny_tool: bool,
    /// It can pass a question of Checkrein's to a person.
    pub ask_person: bool,
    /// A word can be put beside an allowed call.
    pub add_context: bool,
    /// A hook can stop it at once.
    pub halt: bool,
    /// It can show one line to the person.
    pub system_message: bool,
    /// After this many refused stops in a row it stops anyway, unless its environment says otherwise.
    pub block_cap: Option<u32>,
    /// It chooses the ids of its sessions itself, and no two are alike.
    pub own_session_ids: bool,
    /// It shows where a round ends.
    pub rounds: bool,
    /// Sub-agents are told apart from the main conversation.
    pub subagents: bool,
    /// It reports every call of every tool before the call runs.
    pub tool_requests: bool,
    /// It reports the outcome of each call that ran, so a call without an outcome is still running.
    pub tool_outcomes: bool,
    /// A tool's result says whether the tool failed.
    pub tool_errors: bool,
    /// Its transcript reports token use.
    pub transcript_usage: bool,
    /// How long it waits for a hook without a deadline of its own.
    pub deadlines: DefaultReplyDeadlinesByEvent,
}

/// Default reply deadlines in seconds, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultReplyDeadlinesByEvent {
    /// At a stop.
    pub stop: u32,
    /// At a tool request.
    pub tool: u32,
    /// At a prompt.
    pub prompt: u32,
    /// When the conversation is over.
    pub session_end: u32,
    /// At anything else.
    pub other: u32,
}

impl DefaultReplyDeadlinesByEvent {
    /// Returns the default deadline for this kind of event.
    pub fn default_hook_deadline_for_event(&self, event: AgentEventKind) -> u32 {
        match event {
            AgentEventKind::Stop => self.stop,
            AgentEventKind::ToolRequest => self.tool,
            AgentEventKind::Prompt => self.prompt,
            AgentEventKind::SessionEnd => self.session_end,
            // Exhaustive on purpose: a new kind of event needs a decision here.
            AgentEventKind::SessionStart
            | AgentEventKind::ToolResult
            | AgentEventKind::Round
            | AgentEventKind::StopFailure
            | AgentEventKind::Other => self.other,
        }
    }
}
