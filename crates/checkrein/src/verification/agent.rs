//! Defines [`Agent`], what a verification loop needs to know of an agent.

use checkrein_models::BoxFuture;

/// An agent that can be run again with a message.
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
    /// Its last text.
    pub output: String,
    /// Number of edits in this run; `None` if they are not counted.
    pub edits: Option<u64>,
}
