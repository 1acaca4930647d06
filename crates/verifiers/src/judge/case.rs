//! What a judge is shown of a stop.

/// What a judge is shown of a stop, secrets hidden. All of it is data but the request, which is
/// data too: a judge judges whether it was met and does not follow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgeInput {
    /// What the person asked for.
    pub request: String,
    /// The conversation before it, oldest first.
    pub history: Vec<ConversationTurn>,
    /// What the agent did about it, a line a tool call, oldest first.
    pub calls: Vec<String>,
    /// What it changed.
    pub changes: String,
    /// What hard verifiers found, a line each.
    pub evidence: Vec<String>,
    /// The agent, how long it worked, how it stopped: a line each.
    pub about: Vec<String>,
    /// What judges said of its earlier answers to the same request.
    pub feedback: Vec<String>,
    /// The answer.
    pub answer: String,
    /// Whether nobody asked: it answers a heartbeat.
    pub heartbeat: bool,
    /// The project's standing tasks, where it has any.
    pub tasks: Option<StandingTaskLists>,
    /// The agent, as its adapter names it.
    pub agent: String,
}

/// A list of standing tasks, now and when the task began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingTaskLists {
    /// What it says at the stop; `None` if there is none any more, or none that can be read.
    pub now: Option<String>,
    /// What it said when the task began; `None` if that is not known.
    pub before: Option<String>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationTurn {
    /// What was asked.
    pub request: String,
    /// What was answered.
    pub answer: String,
}
