//! Beside an agent that runs: its model asks for calls, the supervisor's model judges them.

use std::sync::Arc;

use checkrein::models::{ChatMessage, LanguageModel, block_on};
use checkrein::{AgentLoop, Reason};
use serde_json::json;

use super::{both, standard};
use crate::agent_loop::{InProcess, calls, results, says};
use crate::scripted::{Scripted, last_message_text, veto};

/// Its tools are the ones that were wrapped; nothing else of it is changed.
#[test]
fn an_agent_goes_on_after_a_veto() {
    let cheap = Scripted::by(|body| {
        Ok(match last_message_text(body) {
            shown if shown.contains("#qa") => crate::scripted::allow(),
            _ => veto("0.92", "wrong channel; user said QA team"),
        })
    });
    let agent = InProcess::one_by_one(vec![
        calls("slack_send", json!({ "channel": "#engineering" })),
        calls("slack_send", json!({ "channel": "#qa" })),
        says("I reminded them."),
    ]);
    let network = standard(&cheap);
    let tools: Vec<_> = both(&network).into_iter().map(Arc::new).collect();
    let root = tempfile::tempdir().unwrap();
    let mut running = AgentLoop::new(agent.clone() as Arc<dyn LanguageModel>).root(root.path());
    for tool in &tools {
        running = running.tool(tool.clone());
    }
    let result = block_on(running.run("Remind QA.")).unwrap();
    assert_eq!(result.transition.reason, Reason::Unverified);
    let heard = results(&result);
    assert!(
        heard[0].1 && heard[0].0.starts_with("[verifier-veto] slack_send"),
        "{heard:?}"
    );
    assert_eq!(heard[1], ("sent", false));
    // It went on with what it was told.
    let asked = agent.asked.lock().unwrap().clone();
    let told = |message: &ChatMessage| matches!(message, ChatMessage::ToolResult { text, .. } if text.contains("wrong channel"));
    assert!(asked[1].messages.iter().any(told));
    assert_eq!(tools[1].sent(), [json!({ "channel": "#qa" })]);
    assert_eq!(
        (
            cheap.times(),
            network.veto_and_progress_stats().pretool_veto
        ),
        (2, 1)
    );
}
