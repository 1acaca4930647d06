//! Defines [`Tool`], the interface of tools that a host gives to an agent.

use std::sync::Arc;

use checkrein_models::{BoxFuture, ChatMessage};
use serde_json::Value;

use crate::supervisor::PreToolDecision;

/// A tool. A wrapper dereferences to the tool it wraps, so the other methods of a host's tool stay
/// reachable.
pub trait Tool: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Its description for the model.
    fn tool_description(&self) -> &str;

    /// JSON Schema of its arguments.
    fn input_schema(&self) -> Arc<Value>;

    /// Returns whether it only reads.
    fn is_read_only_tool(&self) -> bool {
        false
    }

    /// Classifies a call with these arguments for the gates.
    fn classify_tool_call<'a>(&self, _arguments: &'a Value) -> CallActionDeclaredByTool<'a> {
        CallActionDeclaredByTool::Other
    }

    /// Runs it. Its own failure is an output, [`ToolOutput::failed`].
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput>;
}

/// What a call does, as declared by its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallActionDeclaredByTool<'a> {
    /// It runs this script in a shell: the exec policy judges it.
    Script(&'a str),
    /// It applies this patch: what that would write is judged.
    Patch(&'a str),
    /// It asks for the state of something that runs. Repeating it is no loop while the answer
    /// changes.
    Poll,
    /// Anything else.
    Other,
}

/// One use of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolInvocation<'a> {
    /// The arguments.
    pub arguments: &'a Value,
    /// The conversation so far, oldest first. The judge of the call sees its end.
    pub history: &'a [ChatMessage],
}

/// The output of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The text for the agent.
    pub text: String,
    /// How it ended.
    pub outcome: ToolOutcome,
    /// The supervisor's decision about the call, if there is one.
    pub decision: Option<Box<PreToolDecision>>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It ran.
    Ran,
    /// It ran and failed.
    Failed,
    /// It did not run: the supervisor was against it.
    Vetoed,
}

impl ToolOutput {
    /// Returns the output of a tool that succeeded.
    pub fn from_success(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            outcome: ToolOutcome::Ran,
            decision: None,
        }
    }

    /// Returns the output of a tool that failed.
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            outcome: ToolOutcome::Failed,
            ..Self::from_success(text)
        }
    }
}

/// Returns the definition of a tool that a model is sent.
pub(crate) fn model_tool_definition(
    tool: &(impl Tool + ?Sized),
) -> checkrein_models::ToolDefinition {
    checkrein_models::ToolDefinition {
        name: tool.name().to_owned(),
        description: tool.tool_description().to_owned(),
        schema: tool.input_schema(),
    }
}

// Every method is forwarded, defaults included: a pointer that fell back to a default would declare
// a shell tool as `Other`, and the exec policy would not see its script.
macro_rules! tool_behind {
    ($($pointer:ty),*) => {$(
        impl<T: Tool + ?Sized> Tool for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn tool_description(&self) -> &str {
                (**self).tool_description()
            }

            fn input_schema(&self) -> Arc<Value> {
                (**self).input_schema()
            }

            fn is_read_only_tool(&self) -> bool {
                (**self).is_read_only_tool()
            }

            fn classify_tool_call<'a>(&self, arguments: &'a Value) -> CallActionDeclaredByTool<'a> {
                (**self).classify_tool_call(arguments)
            }

            fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
                (**self).run(call)
            }
        }
    )*};
}

tool_behind!(&T, Box<T>, Arc<T>);
