//! Stories of a host that embeds the loop: its functions as verifiers and as middleware.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use checkrein::models::{
    AnswerTokenUsage, BoxFuture, ChatMessage, FinishReason, LanguageModel, ModelError, ModelReply,
    ModelRequest, RequestedToolCall, block_on,
};
use checkrein::{
    AgentLoop, BeforeToolQuestion, HardVerifier, Middleware, MiddlewareLayer, MiddlewareStage,
    MiddlewareToolCallAnswer, MiddlewareToolResultAnswer, ShellTool, ToolResult,
};
use checkrein_store::MemoryStore;
use serde_json::json;

use super::logs::Told;

/// A model in this process that says one thing after the other.
struct InOrder(Vec<ModelReply>);

impl LanguageModel for InOrder {
    fn model_name(&self) -> &str {
        "openai/gpt-4.1"
    }

    fn ask_model<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let before = request.messages.iter();
        let answers = before.filter(|one| matches!(one, ChatMessage::Assistant { .. }));
        let reply = self.0[answers.count()].clone();
        Box::pin(async move { Ok(reply) })
    }
}

/// Runs this command, or says that it is done.
fn reply(command: Option<&str>) -> ModelReply {
    let call = |command: &str| RequestedToolCall {
        id: "call".to_owned(),
        tool: "shell".to_owned(),
        arguments: Ok(json!({ "command": command })),
        provider_state: None,
    };
    let calls: Vec<RequestedToolCall> = command.map(call).into_iter().collect();
    ModelReply {
        text: "Done.".to_owned(),
        finish_reason: match calls.is_empty() {
            true => FinishReason::EndOfTurn,
            false => FinishReason::Calls,
        },
        calls,
        usage: AnswerTokenUsage {
            input: Some(1000),
            output: Some(100),
            ..AnswerTokenUsage::default()
        },
    }
}

/// What is recorded of a loop of the library.
fn looped(replies: Vec<ModelReply>, with: impl FnOnce(AgentLoop) -> AgentLoop) -> Told {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let agent = AgentLoop::new(Arc::new(InOrder(replies)))
        .root(root.path())
        .store(store.clone())
        .tool(ShellTool::shell_in_folder(root.path()));
    let agent = with(agent);
    let result = block_on(agent.run("Do it.")).unwrap();
    Told::in_store(&*store, &result.session)
}

struct Cut;

impl Middleware for Cut {
    fn before_tool(&self, call: &BeforeToolQuestion) -> MiddlewareToolCallAnswer {
        match format!("{}", call.args).contains("forbidden") {
            true => MiddlewareToolCallAnswer::Deny("not that".to_owned()),
            false => MiddlewareToolCallAnswer::Pass,
        }
    }

    fn after_tool(&self, result: &ToolResult) -> MiddlewareToolResultAnswer {
        match result.text.contains("hunter") {
            true => MiddlewareToolResultAnswer::Text("[cut]".to_owned()),
            false => MiddlewareToolResultAnswer::Keep,
        }
    }

    fn rewrite_result_for_later_rounds(&self, _: &ToolResult) -> MiddlewareToolResultAnswer {
        MiddlewareToolResultAnswer::CannotTell("no room for it".to_owned())
    }
}

pub(super) fn middleware() -> Told {
    let commands = [Some("echo forbidden"), Some("echo hunter"), None];
    looped(commands.map(reply).to_vec(), |agent| {
        let layer = MiddlewareLayer::new("cut", MiddlewareStage::ALL, Cut).with_fail_open();
        agent.middleware_registry().register_middleware_layer(layer);
        agent.config("verify_on = \"always\"\n[[verifier]]\nname = \"ok\"\nrun = \"test -d .\"\n")
    })
}

/// What is missing can be mended, and what is missing then cannot.
pub(super) fn host_verifiers() -> Told {
    let stops = AtomicU32::new(0);
    let owner = HardVerifier::new("owner", move |_| {
        match stops.fetch_add(1, Ordering::Relaxed) {
            0 => HardVerifier::failed("there is no owner", true),
            _ => HardVerifier::failed("there is no approval", false),
        }
    });
    let commands = [None, Some("echo ada > owner"), None];
    looped(commands.map(reply).to_vec(), |agent| agent.verifier(owner))
}
