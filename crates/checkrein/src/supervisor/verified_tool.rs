//! Wraps a tool so that its calls are judged before they run. The agent sees the same tool: name,
//! description, schema and all other attributes are the wrapped tool's.

use std::ops::Deref;
use std::sync::Arc;

use checkrein_models::BoxFuture;
use serde_json::Value;

use super::pre_tool::{ProposedCall, StandaloneToolSchema};
use super::{PreToolDecision, PreToolVerifier, ToolCallVerdict};
use crate::tool::{CallActionDeclaredByTool, Tool, ToolInvocation, ToolOutcome, ToolOutput};

/// See [`wrap_tool_with_verifier`].
pub struct ToolWithVerifiedCalls<T> {
    tool: T,
    verifier: PreToolVerifier,
    goal: Arc<str>,
    /// The tool's own schema, unless the verifier knows the tool.
    standalone: Option<StandaloneToolSchema>,
}

/// Wraps a single tool so that its calls are judged before they run, without a network.
pub fn wrap_tool_with_verifier<T: Tool>(
    tool: T,
    verifier: &PreToolVerifier,
    goal: &str,
) -> ToolWithVerifiedCalls<T> {
    ToolWithVerifiedCalls {
        standalone: Some(StandaloneToolSchema::standalone_schema_of_wrapped_tool(
            &tool,
        )),
        tool,
        verifier: verifier.clone(),
        goal: goal.into(),
    }
}

impl<T> ToolWithVerifiedCalls<T> {
    pub(super) fn wrap_tool_of_supervisor_network(
        tool: T,
        verifier: PreToolVerifier,
        goal: Arc<str>,
    ) -> Self {
        Self {
            tool,
            verifier,
            goal,
            standalone: None,
        }
    }

    /// Returns the wrapped tool.
    pub fn into_inner(self) -> T {
        self.tool
    }
}

impl<T> Deref for ToolWithVerifiedCalls<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.tool
    }
}

impl<T: Tool> Tool for ToolWithVerifiedCalls<T> {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn tool_description(&self) -> &str {
        self.tool.tool_description()
    }

    fn input_schema(&self) -> Arc<Value> {
        self.tool.input_schema()
    }

    fn is_read_only_tool(&self) -> bool {
        self.tool.is_read_only_tool()
    }

    fn classify_tool_call<'a>(&self, arguments: &'a Value) -> CallActionDeclaredByTool<'a> {
        self.tool.classify_tool_call(arguments)
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            // The original arguments are judged; rewritten ones were checked by the verifier with
            // its answer.
            let planned = ProposedCall {
                goal: &self.goal,
                tool: self.tool.name(),
                arguments: call.arguments,
                history: call.history,
            };
            let mut decision = self
                .verifier
                .decide_tool_call_and_count_in_stats(planned, self.standalone.as_ref())
                .await;
            let output = match decision.verdict {
                // Unjudged calls run: a supervisor that fails must not stop the agent.
                ToolCallVerdict::Allow | ToolCallVerdict::Unjudged => self.tool.run(call).await,
                ToolCallVerdict::Veto => ToolOutput {
                    // Not an error: the agent reads a veto as advice and may go on with another
                    // call.
                    outcome: ToolOutcome::Vetoed,
                    ..ToolOutput::from_success(decision.blocked_call_message(self.tool.name()))
                },
                ToolCallVerdict::Rewrite => {
                    // Moved out and back below, so that large arguments are not cloned.
                    let new = Value::Object(decision.new_args.take().unwrap_or_default());
                    let rewritten = ToolInvocation {
                        arguments: &new,
                        ..call
                    };
                    let mut output = self.tool.run(rewritten).await;
                    output.text = format!(
                        "{}\n{}",
                        rewritten_arguments_note(&decision, &new),
                        output.text
                    );
                    if let Value::Object(new) = new {
                        decision.new_args = Some(new);
                    }
                    output
                }
            };
            ToolOutput {
                decision: Some(Box::new(decision)),
                ..output
            }
        })
    }
}

/// Tells the agent which arguments its call ran with; otherwise it would misread the result.
fn rewritten_arguments_note(decision: &PreToolDecision, arguments: &Value) -> String {
    format!(
        "[verifier-rewrite] ran with {arguments} instead: {}",
        decision.reason
    )
}
