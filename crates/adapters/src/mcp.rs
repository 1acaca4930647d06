//! Tool calls of the Model Context Protocol, as whoever stands between a client and a server sees
//! them: arguments → [`McpInputAndAction`], decision → the text that the model reads. Not in [`crate::ALL`]:
//! nobody hooks this, the messages themselves pass by.

use checkrein_core::decision::ToolDecision;
use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::ids::ScopeId;
use checkrein_core::input::Input;
use checkrein_core::tool_action::ToolAction;
use serde_json::{Map, Value};

use crate::tool_call::{AgentToolCall, tool_outcome_digest};
use crate::wording::{awaiting_approval_text, refusal_with_rewritten_call};

/// The agent's name of such sessions: who is behind the client is not told.
pub const AGENT: &str = "mcp";

/// Goes with the reason of a halt.
const HALT_NOTE: &str = "checkrein: this task is over and no further tool of this server will run. Stop now and say what is left to do.";

/// One call of a server's tool.
#[derive(Debug, Clone, PartialEq)]
pub struct McpToolCall {
    /// The tool as logs, rules and approvals know it.
    tool: String,
    /// What this call is known by: a number of whoever counts, not the client's own.
    id: String,
    args: Value,
}

/// What it means to the core, and what the runtime needs to find out the facts.
#[derive(Debug, Clone, PartialEq)]
pub struct McpInputAndAction {
    /// The same for everyone who tells of it.
    pub key: Option<String>,
    /// What happened.
    pub input: Input,
    /// What a tool call does.
    pub action: ToolAction,
}

impl McpInputAndAction {
    /// With nothing to find out.
    pub fn mcp_event_from_input(input: Input) -> Self {
        Self {
            key: None,
            input,
            action: ToolAction::default(),
        }
    }
}

/// `mcp__SERVER__TOOL`, as Claude Code and Codex call the tool of a server.
pub fn qualify_tool_name_with_server(server: &str, tool: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    let server: String = server.chars().map(plain).collect();
    format!("mcp__{server}__{tool}")
}

impl McpToolCall {
    /// The `nth` call of a connection.
    pub fn new(server: &str, tool: &str, args: Value, nth: u64) -> Self {
        Self {
            tool: qualify_tool_name_with_server(server, tool),
            id: nth.to_string(),
            args,
        }
    }

    fn as_agent_call(&self) -> AgentToolCall<'_> {
        AgentToolCall {
            scope: ScopeId::main_scope(),
            id: Some(self.id.clone()),
            tool: &self.tool,
            args: &self.args,
        }
    }

    /// That it is asked for.
    pub fn mcp_call_request_event(&self) -> McpInputAndAction {
        let action = self.as_agent_call().classify_tool_call_action();
        let mut input = self.as_agent_call().into_tool_request_input(&action);
        if let Input::ToolRequested(request) = &mut input {
            // Each answer of the server passes by, and that it gave none is told, too.
            request.reports_outcome = true;
        }
        McpInputAndAction {
            key: Some(format!("tools/call:{}", self.id)),
            input,
            action,
        }
    }

    /// The tool as logs, rules and approvals know it.
    pub fn mcp_tool_name(&self) -> &str {
        &self.tool
    }

    /// Its tool and arguments, as detectors tell calls apart.
    pub fn call_digest(&self) -> EightByteDigest {
        self.as_agent_call().call_digest()
    }

    /// What it was called with.
    pub fn tool_call_arguments(&self) -> &Value {
        &self.args
    }

    /// What came back: the `result` of the answer, or its `error`.
    pub fn mcp_call_result_event(&self, answer: Result<&Value, &Value>) -> McpInputAndAction {
        match answer {
            Ok(result) => {
                let failed = result.get("isError").and_then(Value::as_bool);
                self.tool_call_outcome_event(
                    tool_outcome_digest(&mcp_result_without_meta(result)),
                    failed.unwrap_or(false),
                )
            }
            Err(error) => self.tool_call_outcome_event(tool_outcome_digest(error), true),
        }
    }

    /// That it came to nothing, for this reason.
    pub fn failed_tool_call_event(&self, why: &str) -> McpInputAndAction {
        self.tool_call_outcome_event(Digest::hash_bytes(why.as_bytes()).to_short_digest(), true)
    }

    fn tool_call_outcome_event(&self, outcome: EightByteDigest, error: bool) -> McpInputAndAction {
        McpInputAndAction {
            key: Some(format!("tools/call result:{}", self.id)),
            ..McpInputAndAction::mcp_event_from_input(
                self.as_agent_call()
                    .into_tool_returned_input(outcome, error),
            )
        }
    }
}

/// What the model is told of a call that must not run; `None` if it may.
pub fn refused_call_message(decision: &ToolDecision) -> Option<String> {
    match decision {
        ToolDecision::Allow | ToolDecision::Nudge { .. } => None,
        // The client sent these arguments: others would be ours, not the agent's.
        ToolDecision::Rewrite { args, reason } => Some(refusal_with_rewritten_call(reason, args)),
        ToolDecision::Ask {
            reason, approval, ..
        } => Some(awaiting_approval_text(reason, approval)),
        ToolDecision::Deny { reason } => Some(reason.clone()),
        ToolDecision::Halt { reason } => Some(format!("{reason}\n{HALT_NOTE}")),
    }
}

/// A result that says this and nothing else, for a request with these `_meta`.
pub fn refusal_result(text: &str, meta: &Value) -> Value {
    let mut result = serde_json::json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
    });
    // Since 2026-07-28 every request says its version, and every result its kind.
    if meta
        .get("io.modelcontextprotocol/protocolVersion")
        .is_some()
        && let Some(result) = result.as_object_mut()
    {
        result.insert("resultType".to_owned(), Value::from("complete"));
    }
    result
}

/// Puts a word of advice behind what a tool said.
pub fn append_nudge_to_tool_result(result: &mut Value, text: &str) {
    let word = serde_json::json!({ "type": "text", "text": text });
    let Value::Object(result) = result else {
        return;
    };
    if let Value::Array(content) = result
        .entry("content")
        .or_insert_with(|| Value::Array(Vec::new()))
    {
        content.push(word);
    }
}

/// A result in whose place this comes: a text takes the place of all that it says, whatever its
/// form, and nothing else of it stays but whether it failed; an object is the result itself.
pub fn rewrite_tool_result(result: &Value, given: &Value) -> Value {
    if given.is_object() {
        return given.clone();
    }
    let text = match given {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let failed = result.get("isError").and_then(Value::as_bool);
    let mut made = serde_json::json!({
        "content": [{ "type": "text", "text": text }],
        "isError": failed.unwrap_or(false),
    });
    if result.get("resultType").is_some()
        && let Some(made) = made.as_object_mut()
    {
        made.insert("resultType".to_owned(), Value::from("complete"));
    }
    made
}

/// What a result says: without what is new in each answer.
fn mcp_result_without_meta(result: &Value) -> Value {
    let Value::Object(result) = result else {
        return result.clone();
    };
    let kept = result.iter().filter(|(name, _)| *name != "_meta");
    Value::Object(
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map<_, _>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_named_as_agents_name_it() {
        assert_eq!(
            qualify_tool_name_with_server("files", "read"),
            "mcp__files__read"
        );
        assert_eq!(
            qualify_tool_name_with_server("a/b c.d", "x"),
            "mcp__a_b_c_d__x"
        );
    }

    #[test]
    fn the_same_answer_is_the_same_outcome() {
        let call = McpToolCall::new("s", "t", json!({}), 1);
        let outcome =
            |result: Result<&Value, &Value>| match call.mcp_call_result_event(result).input {
                Input::ToolReturned(returned) => (returned.outcome, returned.error),
                other => panic!("{other:?}"),
            };
        let one = json!({"content": [{"type": "text", "text": "x"}], "_meta": {"n": 1}});
        let two = json!({"content": [{"type": "text", "text": "x"}], "_meta": {"n": 2}});
        assert_eq!(outcome(Ok(&one)), outcome(Ok(&two)));
        assert!(outcome(Ok(&json!({"isError": true}))).1);
        assert!(outcome(Err(&json!({"code": 1}))).1);
    }

    #[test]
    fn a_text_takes_the_place_of_all_of_a_result() {
        let check = |result: Value, expected: Value| {
            assert_eq!(
                rewrite_tool_result(&result, &json!("cut")),
                expected,
                "{result}"
            );
        };
        let cut = json!([{"type": "text", "text": "cut"}]);
        check(
            json!({"content": [], "structuredContent": {"a": "x"}, "_meta": {"b": "x"}, "c": "x"}),
            json!({"content": cut, "isError": false}),
        );
        check(
            json!({"content": "x", "isError": true, "resultType": "x"}),
            json!({"content": cut, "isError": true, "resultType": "complete"}),
        );
        check(
            json!({"content": [], "isError": "x"}),
            json!({"content": cut, "isError": false}),
        );
        check(json!("x"), json!({"content": cut, "isError": false}));
        let whole = json!({"content": [], "_meta": {}});
        assert_eq!(rewrite_tool_result(&json!({"d": 1}), &whole), whole);
    }

    #[test]
    fn advice_stands_behind_what_the_tool_said() {
        let mut result =
            json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {}});
        append_nudge_to_tool_result(&mut result, "stop");
        assert_eq!(
            result,
            json!({"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "stop"}],
                   "structuredContent": {}})
        );
        let mut result = json!({"toolResult": 1});
        append_nudge_to_tool_result(&mut result, "stop");
        assert_eq!(result["content"][0]["text"], "stop");
    }
}
