//! What came in: the input it means to the core, what the runtime needs to find out the
//! facts, and the form of answer the agent waits for.

use checkrein_core::ids::{ScopeId, SessionId};
use checkrein_core::input::Input;
use checkrein_core::tool_action::ToolAction;

/// An agent's message, translated. What only the runtime can know is empty in the inputs:
/// facts of a tool, the tree, token use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knock {
    /// The conversation it belongs to.
    pub session: SessionId,
    /// The folder the session is about: the project's, or where the agent says that it works.
    pub cwd: Option<String>,
    /// What kind of event it is.
    pub event: EventKind,
    /// The agent's own name of the event.
    pub native: String,
    /// Native id with the event's name, where there is one. Stops and prompts never have one:
    /// they are counted per installed entry, and the two ways of telling must not be mixed.
    pub key: Option<String>,
    /// What it means; `None` = nothing that we take an interest in.
    pub input: Option<Input>,
    /// What it means as well, after `input`: a call that came with its result.
    pub then: Option<Input>,
    /// The key of `then`.
    pub then_key: Option<String>,
    /// What a tool call does.
    pub action: ToolAction,
    /// The folder in which its tools work at the moment, if the agent says so.
    pub works_in: Option<String>,
    /// Where token use can be read.
    pub transcript: Option<Transcript>,
    /// What the agent waits for.
    pub form: ReplyForm,
    /// At a stop: whether the agent says that it is the first of its turn. Without a store
    /// nothing else bounds the continuations (law 2).
    pub first_stop: Option<bool>,
    /// A person can answer a question of the agent's.
    pub can_ask: bool,
}

impl Knock {
    /// A message that means nothing to the core.
    pub(crate) fn new(session: SessionId, event: EventKind, native: &str) -> Self {
        Self {
            session,
            cwd: None,
            event,
            native: native.to_owned(),
            key: None,
            input: None,
            then: None,
            then_key: None,
            action: ToolAction::default(),
            works_in: None,
            transcript: None,
            form: ReplyForm::of(event),
            first_stop: None,
            can_ask: false,
        }
    }
}

/// A file in which the agent writes what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// Where it is.
    pub path: String,
    /// Whose tokens it tells.
    pub scope: ScopeId,
}

/// What kind of event an agent's message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
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

/// What the agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplyForm {
    /// The answer to a tool request.
    Tool,
    /// The answer to a stop.
    Stop,
    /// Nothing that we would say.
    Silent,
    /// We cannot tell: the message could not be read.
    Unknown,
}

impl ReplyForm {
    /// Every form, for tests that walk them.
    pub const ALL: [ReplyForm; 4] = [
        ReplyForm::Tool,
        ReplyForm::Stop,
        ReplyForm::Silent,
        ReplyForm::Unknown,
    ];

    /// The form that goes with this kind of event.
    pub(crate) fn of(event: EventKind) -> Self {
        match event {
            EventKind::ToolRequest => ReplyForm::Tool,
            EventKind::Stop => ReplyForm::Stop,
            EventKind::SessionStart
            | EventKind::Prompt
            | EventKind::ToolResult
            | EventKind::Round
            | EventKind::StopFailure
            | EventKind::SessionEnd
            | EventKind::Other => ReplyForm::Silent,
        }
    }
}

/// A message that cannot be judged. It carries what is needed to answer all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the message of {agent}: {what} ({place})")]
pub struct Unreadable {
    /// Whose message it is.
    pub agent: &'static str,
    /// What kind of event it seems to be.
    pub event: Option<EventKind>,
    /// What is wrong.
    pub what: String,
    /// Where: `line 1, column 7` or `field "tool_name"`.
    pub place: String,
    /// What to do about it.
    pub hint: &'static str,
    /// What the agent seems to wait for.
    pub form: ReplyForm,
}
