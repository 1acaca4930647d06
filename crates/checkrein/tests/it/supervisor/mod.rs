//! The supervisor: rows of its document, and what is known to go wrong with such a thing.

mod config;
mod decisions;
mod gates;
mod memory;
mod methods;
mod running_agent;
mod shown;
mod standalone;
mod traces;
mod worthwhile;

use std::sync::Arc;

use checkrein::models::{ChatMessage, LanguageModel};
use checkrein::supervisor::{ToolWithVerifiedCalls, VerifierNetwork};
use checkrein::{ToolCallVerdict, VerifierConfig, wrap_tool_with_verifier};
use serde_json::{Value, json};

use crate::scripted::{Scripted, Sender, now};

const GOAL: &str = "Send a friendly reminder to the QA team about Friday's release.";

fn network(model: &Arc<Scripted>, config: VerifierConfig) -> VerifierNetwork {
    VerifierNetwork::new(model.clone() as Arc<dyn LanguageModel>, config, GOAL).unwrap()
}

fn standard(model: &Arc<Scripted>) -> VerifierNetwork {
    network(model, VerifierConfig::default())
}

/// Arguments that no other call has.
fn nth(number: usize) -> Value {
    json!({ "channel": format!("#{number}") })
}

fn verdict(network: &VerifierNetwork, arguments: &Value) -> ToolCallVerdict {
    now(network.check_tool_call("slack_send", arguments, &[])).verdict
}

fn nudge_text(message: Option<ChatMessage>) -> Option<String> {
    message.map(|message| match message {
        ChatMessage::User(text) => text,
        other => panic!("not a user's message: {other:?}"),
    })
}

/// A tool of its own, whose calls are put to this model.
fn sender(model: &Arc<Scripted>) -> ToolWithVerifiedCalls<Sender> {
    wrap_tool_with_verifier(
        Sender::named("slack_send"),
        standard(model).pre_tool(),
        GOAL,
    )
}

/// An agent's two tools: one looks, one sends.
fn both(network: &VerifierNetwork) -> Vec<ToolWithVerifiedCalls<Sender>> {
    network.wrap_tools(["slack_search", "slack_send"].map(Sender::named).into())
}
