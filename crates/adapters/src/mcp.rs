//! Translates tool calls of the Model Context Protocol for a proxy between a client and a server:
//! arguments become [`InputFromMcpMessage`], a decision becomes the text that the model reads. It is
//! not in [`crate::ALL`], since no hook is involved: the proxy sees the messages themselves.

use checkrein_core::decision::ToolDecision;
use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::ids::ScopeId;
use checkrein_core::input::{Input, ToolOutcomeFacts};
use checkrein_core::tool_action::ToolAction;
use serde_json::{Map, Value};

use crate::tool_call::{AgentToolCall, ReportedToolOutcome};
use crate::wording::{refusal_until_call_approved, refusal_with_rewritten_call};

/// The agent's name of such sessions. The protocol does not say which agent is behind the client.
pub const AGENT: &str = "mcp";

/// Follows the reason of a halt.
const HALT_NOTE: &str = "checkrein: this task is over and no further tool of this server will run. Stop now and say what is left to do.";

/// One call of a server's tool.
#[derive(Debug, Clone, PartialEq)]
pub struct McpToolCall {
    /// The tool as logs, rules and approvals know it.
    tool: String,
    /// Identifies this call: the proxy's own number, not the client's id.
    id: String,
    args: Value,
}

/// What a message means to the core, and what the runtime needs in order to find out the facts.
#[derive(Debug, Clone, PartialEq)]
pub struct InputFromMcpMessage {
    /// Identifies the event, so that a repeated delivery counts once.
    pub key: Option<String>,
    /// What happened.
    pub input: Input,
    /// What a tool call does.
    pub action: ToolAction,
}

impl InputFromMcpMessage {
    /// Wraps an input about which there is nothing to find out.
    pub fn wrap_input_without_tool_action(input: Input) -> Self {
        Self {
            key: None,
            input,
            action: ToolAction::default(),
        }
    }
}

/// Returns `mcp__SERVER__TOOL`, as Claude Code and Codex call the tool of a server.
pub fn qualify_tool_name_with_server(server: &str, tool: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    // Only the server's name is made plain: the tool's name stays as the server gives it.
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

    fn as_agent_tool_call(&self) -> AgentToolCall<'_> {
        AgentToolCall {
            scope: ScopeId::main_scope(),
            id: Some(self.id.clone()),
            tool: &self.tool,
            args: &self.args,
        }
    }

    /// Returns the event that the call is requested.
    pub fn mcp_call_request_event(&self) -> InputFromMcpMessage {
        let action = self.as_agent_tool_call().classify_tool_call_action();
        let mut input = self.as_agent_tool_call().into_tool_request_input(&action);
        if let Input::ToolRequested(request) = &mut input {
            // The proxy sees each answer of the server, and also reports that there was none.
            request.reports_outcome = true;
        }
        InputFromMcpMessage {
            key: Some(format!("tools/call:{}", self.id)),
            input,
            action,
        }
    }

    /// The tool as logs, rules and approvals know it.
    pub fn qualified_mcp_tool_name(&self) -> &str {
        &self.tool
    }

    /// Returns the digest of tool and arguments, by which detectors tell calls apart.
    pub fn call_digest(&self) -> EightByteDigest {
        self.as_agent_tool_call().call_digest()
    }

    /// Returns the call's arguments.
    pub fn tool_call_arguments(&self) -> &Value {
        &self.args
    }

    /// Returns the event of what came back: the `result` of the answer, or its `error`.
    pub fn mcp_call_result_event(&self, answer: Result<&Value, &Value>) -> InputFromMcpMessage {
        match answer {
            Ok(result) => {
                let failed = result.get("isError").and_then(Value::as_bool);
                self.tool_call_outcome_event(ReportedToolOutcome::outcome_from_tool_result(
                    &self.tool,
                    &mcp_result_without_meta(result),
                    failed.unwrap_or(false),
                ))
            }
            Err(error) => self.tool_call_outcome_event(
                ReportedToolOutcome::outcome_from_tool_result(&self.tool, error, true),
            ),
        }
    }

    /// Returns the event that the call failed, for this reason.
    pub fn failed_mcp_call_event(&self, why: &str) -> InputFromMcpMessage {
        self.tool_call_outcome_event(ReportedToolOutcome {
            digest: Digest::hash_bytes(why.as_bytes()).to_eight_byte_digest(),
            failed: true,
            facts: ToolOutcomeFacts::default(),
        })
    }

    fn tool_call_outcome_event(&self, outcome: ReportedToolOutcome) -> InputFromMcpMessage {
        InputFromMcpMessage {
            key: Some(format!("tools/call result:{}", self.id)),
            ..InputFromMcpMessage::wrap_input_without_tool_action(
                self.as_agent_tool_call().into_tool_returned_input(outcome),
            )
        }
    }
}

/// Returns the text for the model about a call that must not run; `None` if it may run.
pub fn refused_call_message(decision: &ToolDecision) -> Option<String> {
    match decision {
        ToolDecision::Allow | ToolDecision::Nudge { .. } => None,
        // The client sent these arguments. Other arguments would be Checkrein's, not the agent's.
        ToolDecision::Rewrite { args, reason } => Some(refusal_with_rewritten_call(reason, args)),
        ToolDecision::Ask {
            reason, approval, ..
        } => Some(refusal_until_call_approved(reason, approval)),
        ToolDecision::Deny { reason } => Some(reason.clone()),
        ToolDecision::Halt { reason } => Some(format!("{reason}\n{HALT_NOTE}")),
    }
}

/// Returns a result that says only this, for a request with these `_meta`.
pub fn mcp_refusal_result(text: &str, meta: &Value) -> Value {
    let mut result = serde_json::json!({
        "content": [{ "type": "text", "text": text }],
        // A refusal is a failed result and no protocol error, so that the model reads it
        // (docs/mcp.md).
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

/// Appends a word of advice to what a tool said.
pub fn append_nudge_to_tool_result(result: &mut Value, text: &str) {
    let word = serde_json::json!({ "type": "text", "text": text });
    let Value::Object(result) = result else {
        return;
    };
    // Content that is no list is left as it is: the result is the server's, and advice is not worth
    // breaking it.
    if let Value::Array(content) = result
        .entry("content")
        .or_insert_with(|| Value::Array(Vec::new()))
    {
        content.push(word);
    }
}

/// Returns the result that middleware gives in place of `result`. A text replaces all content,
/// whatever its form, and only the error flag stays; an object is the result itself.
pub fn replace_tool_result(result: &Value, given: &Value) -> Value {
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

/// Returns a result without `_meta`, which may be new in each answer. The digest of the same result
/// twice must be the same, or loops would not be seen.
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
                replace_tool_result(&result, &json!("cut")),
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
        assert_eq!(replace_tool_result(&json!({"d": 1}), &whole), whole);
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
