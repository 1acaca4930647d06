//! A tool whose calls are judged before they run. To an agent it is the tool that it was: name, description,
//! schema and every other attribute are the wrapped one's.

use std::ops::Deref;
use std::sync::Arc;

use checkrein_models::BoxFuture;
use serde_json::Value;

use super::pre_tool::{Call, Own};
use super::{PreToolDecision, PreToolVerifier, VerifierVerdict};
use crate::tool::{Does, Tool, ToolEnded, ToolOutput, ToolUse};

/// See [`wrap_tool_with_verifier`].
pub struct Verified<T> {
    tool: T,
    verifier: PreToolVerifier,
    goal: Arc<str>,
    /// Unless the verifier knows the tool.
    own: Option<Own>,
}

/// Has a tool's calls judged before they run, on its own and without a network.
pub fn wrap_tool_with_verifier<T: Tool>(
    tool: T,
    verifier: &PreToolVerifier,
    goal: &str,
) -> Verified<T> {
    Verified {
        own: Some(Own::of(&tool)),
        tool,
        verifier: verifier.clone(),
        goal: goal.into(),
    }
}

impl<T> Verified<T> {
    pub(super) fn known(tool: T, verifier: PreToolVerifier, goal: Arc<str>) -> Self {
        Self {
            tool,
            verifier,
            goal,
            own: None,
        }
    }

    /// The tool without us.
    pub fn into_inner(self) -> T {
        self.tool
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.tool
    }
}

impl<T: Tool> Tool for Verified<T> {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn schema(&self) -> Arc<Value> {
        self.tool.schema()
    }

    fn read_only(&self) -> bool {
        self.tool.read_only()
    }

    fn does<'a>(&self, arguments: &'a Value) -> Does<'a> {
        self.tool.does(arguments)
    }

    fn run<'a>(&'a self, call: ToolUse<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let planned = Call {
                goal: &self.goal,
                tool: self.tool.name(),
                arguments: call.arguments,
                history: call.history,
            };
            let mut decision = self.verifier.judge(planned, self.own.as_ref()).await;
            let output = match decision.verdict {
                VerifierVerdict::Allow | VerifierVerdict::Unjudged => self.tool.run(call).await,
                VerifierVerdict::Veto => ToolOutput {
                    ended: ToolEnded::Vetoed,
                    ..ToolOutput::ran(decision.told(self.tool.name()))
                },
                VerifierVerdict::Rewrite => {
                    let new = Value::Object(decision.new_args.take().unwrap_or_default());
                    let rewritten = ToolUse {
                        arguments: &new,
                        ..call
                    };
                    let mut output = self.tool.run(rewritten).await;
                    output.text = format!("{}\n{}", told(&decision, &new), output.text);
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

/// An agent that does not know with what its call ran misreads what came of it.
fn told(decision: &PreToolDecision, arguments: &Value) -> String {
    format!(
        "[verifier-rewrite] ran with {arguments} instead: {}",
        decision.reason
    )
}
