//! Defines what an adapter makes of an agent's message: the input that it means to the core, what
//! the runtime needs in order to find out the facts, and the form of answer that the agent waits
//! for.

use checkrein_core::ids::{ScopeId, SessionId};
use checkrein_core::input::Input;
use checkrein_core::tool_action::ToolAction;
use serde_json::Value;

/// An agent's message, translated. Fields that only the runtime can fill (a tool's facts, the tree,
/// token use) are empty in the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEvent {
    /// The conversation it belongs to.
    pub session: SessionId,
    /// The folder that the session is about: the project's, or the one that the agent names as its
    /// own.
    pub cwd: Option<String>,
    /// What kind of event it is.
    pub event: AgentEventKind,
    /// The agent's own name of the event.
    pub native_event: String,
    /// The native id with the event's name, where there is one. Stops and prompts never have one:
    /// they are counted per installed entry, and the two ways of counting must not be mixed.
    pub key: Option<String>,
    /// The input it means to the core; `None` for events that the core does not need.
    pub input: Option<Input>,
    /// A second input after `input`, for a call that came with its result.
    pub result_input: Option<Input>,
    /// The key of `result_input`.
    pub result_key: Option<String>,
    /// What a tool said, of an event that brings it.
    pub tool_response: Option<OwnedToolResponse>,
    /// The classified action of a tool call.
    pub action: ToolAction,
    /// The folder in which its tools work at the moment, if the agent says so.
    pub working_folder: Option<String>,
    /// The file in which token use can be read.
    pub transcript: Option<TranscriptFile>,
    /// The form of answer that the agent waits for.
    pub reply_form: AwaitedHookReplyForm,
    /// At a stop, whether the agent says that it is the first of its turn. Without a store nothing
    /// else bounds the continuations (law 2).
    pub first_stop: Option<bool>,
    /// A person can answer a question of the agent's.
    pub can_ask: bool,
}

impl AgentEvent {
    /// Creates an event that means nothing to the core. The adapter then fills in what it finds.
    pub(crate) fn new(session: SessionId, event: AgentEventKind, native: &str) -> Self {
        Self {
            session,
            cwd: None,
            event,
            native_event: native.to_owned(),
            key: None,
            input: None,
            result_input: None,
            result_key: None,
            tool_response: None,
            action: ToolAction::default(),
            working_folder: None,
            transcript: None,
            // The form depends on the event alone, so that a message with missing fields is still
            // answered rightly.
            reply_form: AwaitedHookReplyForm::reply_form_for_event(event),
            first_stop: None,
            can_ask: false,
        }
    }

    /// Keeps what a tool said, for rules that read more of it than its digest.
    pub(crate) fn keep_tool_response(&mut self, tool: &str, args: &Value, result: &Value) {
        self.tool_response = Some(OwnedToolResponse {
            tool: tool.to_owned(),
            args: args.clone(),
            result: result.clone(),
        });
    }
}

/// A call with what came back for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedToolResponse {
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub args: Value,
    /// The result or, if the call failed, the error.
    pub result: Value,
}

/// A file in which the agent writes what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Where it is.
    pub path: String,
    /// The scope whose tokens it reports.
    pub scope: ScopeId,
}

/// The kind of an agent's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentEventKind {
    /// A conversation begins.
    SessionStart,
    /// A prompt, whoever wrote it.
    Prompt,
    /// The agent wants to use a tool.
    ToolRequest,
    /// A tool came back.
    ToolResult,
    /// A round is over.
    Round,
    /// The agent, or a sub-agent, wants to stop.
    Stop,
    /// The turn ended by an error.
    StopFailure,
    /// A conversation is over.
    SessionEnd,
    /// Anything else.
    Other,
}

/// The form of answer that an agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AwaitedHookReplyForm {
    /// The answer to a tool request.
    Tool,
    /// The answer to a stop.
    Stop,
    /// Nothing that we would say.
    Silent,
    /// We cannot tell: the message could not be read.
    Unknown,
}

impl AwaitedHookReplyForm {
    /// Every form, for tests that walk them.
    pub const ALL: [AwaitedHookReplyForm; 4] = [
        AwaitedHookReplyForm::Tool,
        AwaitedHookReplyForm::Stop,
        AwaitedHookReplyForm::Silent,
        AwaitedHookReplyForm::Unknown,
    ];

    /// Returns the form of answer that this kind of event waits for.
    pub(crate) fn reply_form_for_event(event: AgentEventKind) -> Self {
        match event {
            AgentEventKind::ToolRequest => AwaitedHookReplyForm::Tool,
            AgentEventKind::Stop => AwaitedHookReplyForm::Stop,
            // Listed one by one, so that a new kind of event has to be decided about here.
            AgentEventKind::SessionStart
            | AgentEventKind::Prompt
            | AgentEventKind::ToolResult
            | AgentEventKind::Round
            | AgentEventKind::StopFailure
            | AgentEventKind::SessionEnd
            | AgentEventKind::Other => AwaitedHookReplyForm::Silent,
        }
    }
}

/// A message that cannot be judged. It carries what is needed to answer it all the same, by a
/// stance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the message of {agent}: {what} ({place})")]
pub struct AgentMessageParseError {
    /// The agent whose message it is.
    pub agent: &'static str,
    /// What kind of event it seems to be.
    pub event: Option<AgentEventKind>,
    /// What is wrong.
    pub what: String,
    /// Where: `line 1, column 7` or `field "tool_name"`.
    pub place: String,
    /// What to do about it.
    pub hint: &'static str,
    /// The form of answer that the agent seems to wait for.
    pub reply_form: AwaitedHookReplyForm,
}
