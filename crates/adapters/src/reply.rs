//! Defines what the front door emits for an agent, and the decision that it is made from.

use checkrein_core::decision::Decision;

/// A decision with the words that go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDecisionWithTexts {
    /// The decision.
    pub decision: Decision,
    /// The rendered feedback of a refused stop.
    pub text: Option<String>,
    /// One line for the person, where the agent can show one.
    pub notice: Option<String>,
    /// A person can answer a question of the agent's.
    pub can_ask: bool,
}

impl HookDecisionWithTexts {
    /// A decision without further words.
    pub fn new(decision: Decision) -> Self {
        Self {
            decision,
            text: None,
            notice: None,
            can_ask: false,
        }
    }
}

/// Bytes and exit status that the agent obeys. stdout is one JSON object or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReply {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Exit status, by the agent's protocol.
    pub exit_code: u8,
}

impl HookReply {
    /// Returns the answer without an opinion: nothing printed, exit status 0.
    pub fn no_opinion_hook_reply() -> Self {
        Self::default()
    }

    /// Returns an answer of one JSON object with exit status 0.
    pub(crate) fn json_stdout_reply(value: &serde_json::Value) -> Self {
        Self {
            stdout: format!("{value}\n").into_bytes(),
            ..Self::default()
        }
    }

    /// Returns a text on stderr with exit status 2, which both agents read as "no".
    pub(crate) fn stderr_refusal_reply(text: &str) -> Self {
        Self {
            stderr: text.as_bytes().to_vec(),
            exit_code: 2,
            ..Self::default()
        }
    }
}
