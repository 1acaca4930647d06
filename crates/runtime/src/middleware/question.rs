//! The questions that a layer is asked, and its possible answers. A program gets the same as one
//! JSON document.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

/// The session, as every question describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MiddlewareSessionContext {
    /// The session.
    pub session: String,
    /// The sub-agent; `None` for the main conversation.
    pub scope: Option<String>,
    /// The agent, if it is known.
    pub agent: Option<String>,
    /// The tree that is worked in.
    pub root: PathBuf,
    /// The goal of the task, if the config has one.
    pub goal: Option<String>,
}

/// A call that the agent wants to make.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeToolQuestion {
    /// The session.
    #[serde(flatten)]
    pub about: MiddlewareSessionContext,
    /// The agent's id of the call.
    pub call: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments of the call.
    pub args: Value,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    /// The session.
    #[serde(flatten)]
    pub about: MiddlewareSessionContext,
    /// The agent's id of the call.
    pub call: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments of the call.
    pub args: Value,
    /// Whether it failed.
    pub failed: bool,
    /// The text of the result, as a model reads it.
    pub text: String,
    /// The result as it is: a text, or the result of an MCP server's tool.
    pub result: Value,
}

/// A claim of done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeStopQuestion {
    /// The session.
    #[serde(flatten)]
    pub about: MiddlewareSessionContext,
    /// The number of this stop within the task, from 1.
    pub stop: u32,
    /// Whether the tree differs from the one at the task's start; `None` if nobody knows.
    pub changed: Option<bool>,
    /// The agent's final message.
    pub message: String,
}

/// The end of a round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundEndForMiddleware {
    /// The session.
    #[serde(flatten)]
    pub about: MiddlewareSessionContext,
    /// Rounds of the task, this one included.
    pub round: u64,
    /// Calls of the task so far.
    pub tool_calls: u64,
    /// Output tokens of the task so far; `None` if they are not known.
    pub output_tokens: Option<u64>,
    /// The last calls of the conversation, at most thirty, the newest last.
    pub recent_calls: Vec<RecentCallForMiddleware>,
}

/// A recent call. Equal calls have equal digests, and so have equal outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecentCallForMiddleware {
    /// Digest of tool and arguments, in hex.
    pub call: String,
    /// Digest of what came back, in hex; `None` if nothing has.
    pub outcome: Option<String>,
    /// It failed.
    pub failed: bool,
}

/// The beginning of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionStart {
    /// The session.
    #[serde(flatten)]
    pub about: MiddlewareSessionContext,
    /// How it began: `startup`, `resume`, `clear`, `compact`, `fork`, `other`.
    pub how: String,
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionEndForMiddleware {
    /// The session.
    #[serde(flatten)]
    pub about: MiddlewareSessionContext,
    /// The agent's word for why.
    pub why: String,
}

/// The answer about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum MiddlewareToolCallAnswer {
    /// No opinion: the decision is left to the others.
    Pass,
    /// The call may run; the agent gets this advice.
    Nudge(String),
    /// It should run with other arguments.
    Rewrite {
        /// The arguments that it should have: an object.
        args: Value,
        /// Why.
        reason: String,
    },
    /// A person decides, for this reason.
    Ask(String),
    /// It must not run, for this reason.
    Deny(String),
    /// It must not run, and the loop is over, for this reason.
    Halt(String),
    /// Why it cannot be judged.
    CannotTell(String),
}

/// The answer about a result.
#[derive(Debug, Clone, PartialEq)]
pub enum MiddlewareToolResultAnswer {
    /// It stays as it is.
    Keep,
    /// This text takes its place.
    Text(String),
    /// This value takes its place; it has the shape of the result that was shown.
    Replacement(Value),
    /// Why it cannot be judged.
    CannotTell(String),
}

/// The answer about a stop.
#[derive(Debug, Clone, PartialEq)]
pub enum BeforeStopAnswer {
    /// No opinion: it is judged as any other.
    Pass,
    /// The agent goes on, for this reason.
    Deny(String),
    /// Why it cannot be judged.
    CannotTell(String),
}

/// The answer about a round.
#[derive(Debug, Clone, PartialEq)]
pub enum RoundEndAnswer {
    /// No opinion: the agent goes on.
    Pass,
    /// The agent goes on and gets this advice.
    Nudge(String),
    /// The loop is over, for this reason.
    Halt(String),
    /// Why it cannot be judged. The agent goes on.
    CannotTell(String),
}

/// Any of the questions.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub(super) enum MiddlewareQuestion {
    SessionStart(SessionStart),
    BeforeTool(BeforeToolQuestion),
    AfterTool(ToolResult),
    PersistResult(ToolResult),
    RoundEnd(RoundEndForMiddleware),
    BeforeStop(BeforeStopQuestion),
    SessionEnd(SessionEndForMiddleware),
}

/// Any of the answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AnyMiddlewareAnswer {
    Call(MiddlewareToolCallAnswer),
    Result(MiddlewareToolResultAnswer),
    Stop(BeforeStopAnswer),
    Round(RoundEndAnswer),
    Acknowledged,
}

/// The text that a model can read of a result: its texts, those of files that it carries, and its
/// structured content, unless a text says the same.
pub fn tool_result_text(result: &Value) -> String {
    if let Value::String(text) = result {
        return text.clone();
    }
    let structured = result.get("structuredContent");
    let structured = structured.filter(|structured| !structured.is_null());
    let Some(content) = result.get("content").and_then(Value::as_array) else {
        // A result without content: an error of the protocol has a message; anything else is shown
        // as JSON.
        let message = result.get("message").and_then(Value::as_str);
        let message = message.filter(|_| structured.is_none());
        return message.map_or_else(|| result.to_string(), str::to_owned);
    };
    // A block of content has its own text, or an embedded resource that has one.
    let text = |one: &Value| one.get("text").and_then(Value::as_str).map(str::to_owned);
    let mut texts: Vec<String> = content
        .iter()
        .flat_map(|one| [text(one), one.get("resource").and_then(text)])
        .flatten()
        .collect();
    // MCP servers often repeat structured content as a text, which a model need not read twice.
    let said = |structured: &&Value| {
        let mut read = texts.iter().map(|text| serde_json::from_str::<Value>(text));
        read.any(|read| read.is_ok_and(|read| read == **structured))
    };
    let unsaid = structured.filter(|structured| !said(structured));
    texts.extend(unsaid.map(Value::to_string));
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_that_a_model_can_read_is_left_out() {
        let check = |result: Value, expected: &str| {
            assert_eq!(tool_result_text(&result), expected, "{result}");
        };
        check(json!("a"), "a");
        check(json!({"code": 1, "message": "gone"}), "gone");
        check(json!({"other": 1}), r#"{"other":1}"#);
        let a = json!({"type": "text", "text": "a"});
        let file = json!({"type": "resource", "resource": {"uri": "file:///b", "text": "b"}});
        check(json!({"content": [a, file]}), "a\nb");
        let structured = json!({"n": 1, "m": [2]});
        check(
            json!({"content": [a], "structuredContent": structured}),
            "a\n{\"m\":[2],\"n\":1}",
        );
        check(
            json!({"structuredContent": {"n": 1}, "message": "m"}),
            r#"{"message":"m","structuredContent":{"n":1}}"#,
        );
        // As servers do for clients that read no other.
        let same = json!({"type": "text", "text": "{ \"n\": 1, \"m\": [2] }"});
        check(
            json!({"content": [same], "structuredContent": structured}),
            "{ \"n\": 1, \"m\": [2] }",
        );
    }
}
