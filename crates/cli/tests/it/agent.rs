//! Agents as their hooks see them: messages in each one's protocol, answers read as each
//! one reads them.

use std::cell::Cell;
use std::process::Command;

use checkrein_scripted::ScriptedReviewer;
use serde_json::{Value, json};

use crate::world::{Said, World, feed};

/// Agents whose hooks say the same things in different forms.
pub(crate) const BOTH: [&str; 2] = ["claude-code", "codex"];

/// One conversation.
pub(crate) struct Agent<'w> {
    pub(crate) world: &'w World,
    pub(crate) name: &'static str,
    pub(crate) session: String,
    /// More arguments of the hook.
    pub(crate) extra: Vec<String>,
    /// More of its environment.
    pub(crate) env: Vec<(&'static str, String)>,
    calls: Cell<u32>,
    refused: Cell<bool>,
}

/// What an agent takes an answer for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Go ahead.
    Nothing,
    /// Go ahead; a line for the person.
    Notice(String),
    /// Go ahead; a word for the model.
    Advice(String),
    /// This call does not run.
    Denied(String),
    /// Not done yet.
    SentBack(String),
    /// It is over.
    Halted(String),
}

impl Answer {
    #[track_caller]
    pub(crate) fn sent_back(&self) -> &str {
        match self {
            Answer::SentBack(text) => text,
            other => panic!("not sent back: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn denied(&self) -> &str {
        match self {
            Answer::Denied(text) => text,
            other => panic!("not denied: {other:?}"),
        }
    }

    /// Let stop, with a line for the person.
    #[track_caller]
    pub(crate) fn notice(&self) -> &str {
        match self {
            Answer::Notice(text) => text,
            other => panic!("no notice: {other:?}"),
        }
    }
}

impl<'w> Agent<'w> {
    pub(crate) fn new(world: &'w World, name: &'static str) -> Self {
        Self {
            world,
            name,
            session: format!("{name}-session"),
            extra: Vec::new(),
            env: Vec::new(),
            calls: Cell::new(0),
            refused: Cell::new(false),
        }
    }

    /// With a model on loopback that its hooks may ask.
    pub(crate) fn beside(world: &'w World, name: &'static str, model: &ScriptedReviewer) -> Self {
        let mut agent = Self::new(world, name);
        agent.env = vec![("OLLAMA_HOST", model.base_url())];
        agent
    }

    /// A conversation of this name.
    pub(crate) fn named(world: &'w World, name: &'static str, session: &str) -> Self {
        Self {
            session: session.to_owned(),
            ..Self::new(world, name)
        }
    }

    /// Another installed entry of the same conversation.
    pub(crate) fn source(world: &'w World, name: &'static str, source: &str) -> Self {
        Self {
            extra: vec!["--source".to_owned(), source.to_owned()],
            ..Self::new(world, name)
        }
    }

    pub(crate) fn prompt(&self, text: &str) {
        self.refused.set(false);
        let answer = self.tell(&self.message("UserPromptSubmit", json!({ "prompt": text })));
        assert_eq!(answer, Answer::Nothing);
    }

    /// Asks for a shell command and, if it may, hands in its result.
    pub(crate) fn shell(&self, command: &str, result: &str) -> Answer {
        let id = self.next_id();
        let answer = self.tell(&self.call(&id, command));
        if !matches!(answer, Answer::Denied(_) | Answer::Halted(_)) {
            self.tell(&self.result(&id, command, result));
        }
        answer
    }

    pub(crate) fn next_id(&self) -> String {
        self.calls.set(self.calls.get() + 1);
        format!("call-{}", self.calls.get())
    }

    pub(crate) fn call(&self, id: &str, command: &str) -> Value {
        let call =
            json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": id });
        self.message("PreToolUse", call)
    }

    pub(crate) fn result(&self, id: &str, command: &str, result: &str) -> Value {
        let result = match self.name {
            "claude-code" => json!({ "stdout": result, "stderr": "", "interrupted": false }),
            _ => json!(result),
        };
        let call = json!({
            "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": id, "tool_response": result,
        });
        self.message("PostToolUse", call)
    }

    /// "Done.", always in the same words.
    pub(crate) fn stop(&self) -> Answer {
        self.stop_saying("Done.")
    }

    pub(crate) fn stop_saying(&self, words: &str) -> Answer {
        let answer = self.tell(&self.stop_message(self.refused.get(), words));
        self.refused.set(matches!(answer, Answer::SentBack(_)));
        answer
    }

    pub(crate) fn stop_message(&self, active: bool, words: &str) -> Value {
        self.message(
            "Stop",
            json!({ "stop_hook_active": active, "last_assistant_message": words }),
        )
    }

    pub(crate) fn message(&self, event: &str, more: Value) -> Value {
        let mut message = json!({
            "session_id": self.session,
            "cwd": self.world.root(),
            "permission_mode": "default",
            "hook_event_name": event,
        });
        message
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        message
    }

    pub(crate) fn hook(&self) -> Command {
        let mut command = self.world.checkrein(&["hook", self.name]);
        command
            .args(&self.extra)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn tell(&self, message: &Value) -> Answer {
        read(
            self.name,
            message["hook_event_name"].as_str().unwrap(),
            &feed(&mut self.hook(), message.to_string().as_bytes()),
        )
    }
}

/// Reads an answer as strictly as the agent does: what it would take for a broken hook is
/// one, and a broken hook lets everything through.
pub(crate) fn read(agent: &str, event: &str, said: &Said) -> Answer {
    if said.code == Some(2) {
        assert!(!said.stderr.trim().is_empty(), "an empty refusal: {said:?}");
        assert_eq!(said.stdout, "", "status 2 speaks on stderr: {said:?}");
        return match event {
            "Stop" | "SubagentStop" => Answer::SentBack(said.stderr.clone()),
            _ => Answer::Denied(said.stderr.clone()),
        };
    }
    assert_eq!(said.code, Some(0), "a broken hook: {said:?}");
    if said.stdout.is_empty() {
        return Answer::Nothing;
    }
    let json = said.json();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let own = &json["hookSpecificOutput"];
    if event.ends_with("Stop") {
        assert!(own.is_null(), "{json}");
    } else if !own.is_null() {
        assert_eq!(own["hookEventName"], event, "{json}");
    }
    if agent == "codex" {
        assert!(
            json.get("continue").is_none(),
            "Codex takes this for a failed hook: {json}"
        );
    }
    let reason = text(&own["permissionDecisionReason"]);
    let denied = match own["permissionDecision"].as_str() {
        None => None,
        Some("deny") => Some(
            reason
                .filter(|reason| !reason.is_empty())
                .expect("a denial has a reason"),
        ),
        Some(other) => panic!("{other} is never said: {json}"),
    };
    if json["continue"] == json!(false) {
        return Answer::Halted(text(&json["stopReason"]).unwrap());
    }
    if let Some(reason) = denied {
        return Answer::Denied(reason);
    }
    if json["decision"] == "block" {
        return Answer::SentBack(
            text(&json["reason"])
                .filter(|reason| !reason.is_empty())
                .unwrap(),
        );
    }
    if let Some(advice) = text(&own["additionalContext"]) {
        return Answer::Advice(advice);
    }
    Answer::Notice(
        text(&json["systemMessage"]).unwrap_or_else(|| panic!("says nothing we know: {json}")),
    )
}
