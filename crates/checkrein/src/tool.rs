//! A tool that an agent can call, as a host gives it to us.

use std::sync::Arc;

use checkrein_models::{BoxFuture, ChatMessage};
use serde_json::Value;

use crate::supervisor::PreToolDecision;

/// A tool. What else a host's tools can do stays reachable when they are wrapped: a wrapper derefs to
/// what it wraps.
pub trait Tool: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// What it is for, as the model is told.
    fn tool_description(&self) -> &str;

    /// JSON Schema of its arguments.
    fn input_schema(&self) -> Arc<Value>;

    /// Whether it only looks.
    fn is_read_only_tool(&self) -> bool {
        false
    }

    /// What a call with these arguments comes to, as far as the gates have to know it.
    fn classify_tool_call<'a>(&self, _arguments: &'a Value) -> DeclaredToolAction<'a> {
        DeclaredToolAction::Other
    }

    /// Runs it. Its own failure is an output, [`ToolOutput::failed`].
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput>;
}

/// What a call comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclaredToolAction<'a> {
    /// It runs this script in a shell: the exec policy judges it.
    Script(&'a str),
    /// It applies this patch: what that would write is judged.
    Patch(&'a str),
    /// It asks for the state of something that runs: to repeat it is no loop while the answer changes.
    Poll,
    /// Anything else.
    Other,
}

/// One use of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolInvocation<'a> {
    /// The arguments.
    pub arguments: &'a Value,
    /// The conversation so far, oldest first: whoever judges the call is shown its end.
    pub history: &'a [ChatMessage],
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// What the agent is told.
    pub text: String,
    /// How it ended.
    pub outcome: ToolOutcome,
    /// What the supervisor said of the call, if one was asked.
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
    /// Of a tool that did what it is for.
    pub fn from_success(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            outcome: ToolOutcome::Ran,
            decision: None,
        }
    }

    /// Of a tool that could not.
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            outcome: ToolOutcome::Failed,
            ..Self::from_success(text)
        }
    }
}

/// A tool as a model is told of it.
pub(crate) fn model_tool_definition(
    tool: &(impl Tool + ?Sized),
) -> checkrein_models::ToolDefinition {
    checkrein_models::ToolDefinition {
        name: tool.name().to_owned(),
        description: tool.tool_description().to_owned(),
        schema: tool.input_schema(),
    }
}

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

            fn classify_tool_call<'a>(&self, arguments: &'a Value) -> DeclaredToolAction<'a> {
                (**self).classify_tool_call(arguments)
            }

            fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
                (**self).run(call)
            }
        }
    )*};
}

tool_behind!(&T, Box<T>, Arc<T>);
