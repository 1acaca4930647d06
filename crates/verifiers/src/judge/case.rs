//! Defines what a judge is shown of a stop.

/// What a judge is shown of a stop, with secrets hidden. All of it is data, the person's request
/// included: a judge decides whether the request was met and does not follow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgeInput {
    /// What the person asked for.
    pub request: String,
    /// The conversation before it, oldest first.
    pub history: Vec<RequestAndAnswer>,
    /// The agent's tool calls, one line each, oldest first.
    pub calls: Vec<String>,
    /// What it changed.
    pub changes: String,
    /// The findings of hard verifiers, one line each.
    pub evidence: Vec<String>,
    /// The agent, how long it worked, and how it stopped, one line each.
    pub about: Vec<String>,
    /// The feedback of judges on its earlier answers to the same request.
    pub feedback: Vec<String>,
    /// The answer.
    pub answer: String,
    /// Whether the answer is to a heartbeat, which no person asked for.
    pub heartbeat: bool,
    /// The project's standing tasks, if it has any.
    pub tasks: Option<StandingTasksThenAndNow>,
    /// The agent, as its adapter names it.
    pub agent: String,
}

/// The list of standing tasks, now and when the task began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingTasksThenAndNow {
    /// What it says at the stop; `None` if there is none any more, or none that can be read.
    pub now: Option<String>,
    /// What it said when the task began; `None` if that is not known.
    pub before: Option<String>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestAndAnswer {
    /// What was asked.
    pub request: String,
    /// What was answered.
    pub answer: String,
}
