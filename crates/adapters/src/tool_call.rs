//! Computes what identifies a call and its outcome: digests over canonical JSON, so that key order
//! and blanks make no difference.

use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::ids::ScopeId;
use checkrein_core::input::{
    Input, ToolKind, ToolOutcomeFacts, ToolRequestFacts, ToolRequested, ToolReturned,
};
use checkrein_core::tool_action::{ToolAction, classify_call};
use checkrein_core::tool_outcome::tool_outcome_facts;
use serde_json::Value;

/// Returns the digest of a tool's name and canonical arguments.
pub(crate) fn tool_call_digest(tool: &str, args: &Digest) -> EightByteDigest {
    Digest::hash_parts([tool.as_bytes(), args.as_bytes().as_slice()]).to_eight_byte_digest()
}

/// Returns the digest of what came back. Fields that only tell how long it took are left out: the
/// same answer in another time is the same answer.
pub(crate) fn tool_outcome_digest(result: &Value) -> EightByteDigest {
    const TIMES: [&str; 6] = [
        "durationMs",
        "duration_ms",
        "durationSeconds",
        "duration_seconds",
        "totalDurationMs",
        "wall_time",
    ];
    match result {
        // Only the top level is searched: a field of that name deeper down may be the tool's real
        // answer.
        Value::Object(map) if TIMES.iter().any(|key| map.contains_key(*key)) => {
            let mut map = map.clone();
            map.retain(|key, _| !TIMES.contains(&key.as_str()));
            Digest::hash_json(&Value::Object(map)).to_eight_byte_digest()
        }
        _ => Digest::hash_json(result).to_eight_byte_digest(),
    }
}

/// What came back for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportedToolOutcome {
    pub(crate) digest: EightByteDigest,
    pub(crate) failed: bool,
    pub(crate) facts: ToolOutcomeFacts,
}

impl ReportedToolOutcome {
    /// Returns the outcome of a call that gave this result.
    pub(crate) fn outcome_from_tool_result(tool: &str, result: &Value, failed: bool) -> Self {
        Self {
            digest: tool_outcome_digest(result),
            failed,
            facts: tool_outcome_facts(tool, result, failed),
        }
    }
}

/// A tool call as an agent names it.
#[derive(Debug)]
pub(crate) struct AgentToolCall<'a> {
    pub(crate) scope: ScopeId,
    pub(crate) id: Option<String>,
    pub(crate) tool: &'a str,
    pub(crate) args: &'a Value,
}

impl AgentToolCall<'_> {
    pub(crate) fn call_digest(&self) -> EightByteDigest {
        tool_call_digest(self.tool, &Digest::hash_json(self.args))
    }

    /// Classifies what the call does.
    pub(crate) fn classify_tool_call_action(&self) -> ToolAction {
        classify_call(self.tool, self.args)
    }

    /// Returns the request, without facts.
    pub(crate) fn into_tool_request_input(self, action: &ToolAction) -> Input {
        Input::ToolRequested(ToolRequested {
            call: self.call_digest(),
            scope: self.scope,
            call_id: self.id,
            tool: self.tool.to_owned(),
            kind: action.kind,
            args: self.args.to_string(),
            // The runtime finds out the facts, and the adapter overrides the next field where the
            // agent can ask.
            facts: ToolRequestFacts::default(),
            can_ask: false,
            may_act: action.call_may_have_unknown_effects(),
            reports_outcome: false,
            openclaw: None,
            waits: action.runs_waiting_command(),
            tokens: None,
        })
    }

    /// Returns the input for the call's result.
    pub(crate) fn into_tool_returned_input(self, outcome: ReportedToolOutcome) -> Input {
        Input::ToolReturned(ToolReturned {
            excerpt: None,
            call: self.call_digest(),
            // A write that failed is not counted as one.
            wrote: self.classify_tool_call_action().kind == ToolKind::Write && !outcome.failed,
            scope: self.scope,
            call_id: self.id,
            outcome: outcome.digest,
            error: outcome.failed,
            facts: outcome.facts,
            tokens: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_answer_in_another_time_is_the_same_answer() {
        let outcome = |value: Value| tool_outcome_digest(&value);
        assert_eq!(
            outcome(json!({"result": "ok", "durationMs": 3})),
            outcome(json!({"durationMs": 900, "result": "ok"}))
        );
        assert_ne!(
            outcome(json!({"result": "ok"})),
            outcome(json!({"result": "ko"}))
        );
        assert_ne!(outcome(json!("1")), outcome(json!(1)));
    }

    #[test]
    fn a_call_is_its_tool_and_its_arguments() {
        let digest = |tool: &str, args: Value| tool_call_digest(tool, &Digest::hash_json(&args));
        assert_eq!(
            digest("a", json!({"x": 1, "y": 2})),
            digest("a", json!({"y": 2, "x": 1}))
        );
        assert_ne!(digest("a", json!({"x": 1})), digest("b", json!({"x": 1})));
        assert_ne!(digest("a", json!({"x": 1})), digest("a", json!({"x": 2})));
    }
}
