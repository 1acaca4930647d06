//! An agent, as far as a verification loop has to know it.

use checkrein_models::BoxFuture;

/// Whatever can be sent back with a message.
pub trait Agent: Send + Sync {
    /// What a conversation is made of.
    type ConversationMessage: Send + Sync;
    /// How a run fails.
    type AgentRunError: Send;

    /// Goes on with a conversation, or begins one where the history is empty.
    fn run<'a>(
        &'a self,
        history: &'a [Self::ConversationMessage],
        message: &'a str,
    ) -> BoxFuture<'a, Result<AgentRun<Self::ConversationMessage>, Self::AgentRunError>>;
}

/// One run of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRun<M> {
    /// The whole conversation, the history that it went on with included.
    pub messages: Vec<M>,
    /// What it said last.
    pub output: String,
    /// How often it changed something in this run; `None` if nobody counts.
    pub edits: Option<u64>,
}
