//! The entries themselves: which command an agent is told to call at which event, how long it
//! is to wait, and what it is to do if we are not there.

use std::path::Path;

use checkrein_adapters::ours::{
    REFUSE_IF_MISSING, SKIP_IF_MISSING, missing_checkrein_warning_script,
};
use checkrein_core::layers::MiddlewareStage;
use checkrein_core::policy::{Policy, VerifierSpec, VerifierTier};

use super::agents::Agent;
use crate::settings::Fresh;
use crate::settings::json::Entry;
use crate::settings::record::Scope;
use crate::shell::quoted;

/// At the end of a session agents wait no longer than this.
const SESSION_END: u64 = 3;
/// Where an answer is a look into the store.
const QUICK: u64 = 10;
/// Where rules are judged.
const TOOL: u64 = 30;
/// Beside the longest check: reading the tree, waiting for others, writing the answer.
const SPARE: u64 = 60;
/// No agent is made to wait longer.
const LONGEST: u64 = 3_600;

/// What entries depend on.
pub(super) struct Plan<'a> {
    pub(super) agent: &'a Agent,
    pub(super) scope: Scope,
    /// This program, by its absolute path.
    pub(super) program: &'a str,
    /// State folder of all repos.
    pub(super) state: &'a Path,
    /// The file they go into, as people read it.
    pub(super) file: &'a str,
    /// Seconds that a stop may take.
    pub(super) stop: u64,
}

/// How long an agent has to wait at a stop: the longest required check, each time it may be
/// tried, then the slowest judge; before them middleware; and some. Whether that is cut short is the second answer.
pub(super) fn stop_seconds(policy: Option<&Policy>) -> (u64, bool) {
    let Some(policy) = policy else {
        // Hooks for all repos: whatever their checks take.
        return (LONGEST, false);
    };
    let required = policy
        .verifiers
        .iter()
        .filter(|spec| spec.tier == VerifierTier::Judge || policy.is_required_verifier(&spec.name));
    let (judges, checks): (Vec<_>, Vec<_>) =
        required.partition(|spec| spec.tier == VerifierTier::Judge);
    let longest = |specs: Vec<&VerifierSpec>| {
        let seconds = specs.into_iter().map(|spec| {
            let tries = u64::from(spec.retries).saturating_add(1);
            spec.timeout_ms.div_ceil(1_000).saturating_mul(tries)
        });
        seconds.max().unwrap_or(0)
    };
    // Before the checks, one after the other.
    let layers = policy.middleware.iter();
    let layers = layers.filter(|layer| layer.on.contains(&MiddlewareStage::BeforeStop));
    let layers: u64 = layers.map(|layer| layer.timeout_ms.div_ceil(1_000)).sum();
    let wanted = longest(checks)
        .saturating_add(layers)
        .saturating_add(longest(judges))
        .saturating_add(SPARE);
    (wanted.min(LONGEST), wanted > LONGEST)
}

impl Plan<'_> {
    /// One entry per event of the agent's, in the order in which they happen.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let events: &[&'static str] = match self.agent.name {
            "codex" => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "SubagentStop",
                "Stop",
                "SessionEnd",
            ],
            _ => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "PostToolBatch",
                "SubagentStop",
                "Stop",
                "StopFailure",
                "SessionEnd",
            ],
        };
        let group = |handler| Fresh::Object(vec![("hooks", Fresh::List(vec![handler]))]);
        events
            .iter()
            .map(|event| (*event, group(self.handler(event))))
            .collect()
    }

    fn seconds(&self, event: &str) -> u64 {
        match event {
            "Stop" | "SubagentStop" => self.stop,
            "PreToolUse" => TOOL,
            "SessionEnd" => SESSION_END,
            _ => QUICK,
        }
    }

    fn handler(&self, event: &str) -> Fresh {
        let seconds = self.seconds(event);
        let mut fields = vec![("type", Fresh::text("command"))];
        match (self.agent.name, self.scope) {
            ("codex", _) => fields.push(("command", Fresh::Text(self.shell_line(event)))),
            (_, Scope::Shared) => {
                let script = self.script(event);
                fields.push(("command", Fresh::text("sh")));
                fields.push((
                    "args",
                    Fresh::List(vec![Fresh::text("-c"), Fresh::Text(script)]),
                ));
            }
            _ => {
                let mut args = self.arguments(event);
                if event == "PreToolUse" {
                    // If we are not there, the agent shows this line to say what failed: so
                    // the line says what to do.
                    args.push("--note".to_owned());
                    args.push(self.way_out());
                }
                let args = args.into_iter().map(Fresh::Text).collect();
                fields.push(("command", Fresh::text(self.program)));
                fields.push(("args", Fresh::List(args)));
            }
        }
        fields.push(("timeout", Fresh::Number(seconds)));
        if let "Stop" | "SubagentStop" | "PreToolUse" = event {
            let doing = match event {
                "PreToolUse" => "checkrein: may this run?",
                _ => "checkrein: is it done?",
            };
            fields.push(("statusMessage", Fresh::text(doing)));
        }
        if event == "PreToolUse" && self.agent.name != "codex" && self.scope != Scope::Shared {
            fields.push(("onFailure", Fresh::text("block")));
        }
        Fresh::Object(fields)
    }

    /// Everything after the program.
    fn arguments(&self, event: &str) -> Vec<String> {
        let source = match self.scope {
            Scope::User => "user",
            Scope::Person | Scope::Shared => "project",
        };
        let seconds = self.seconds(event).to_string();
        let mut words: Vec<String> = [
            "hook",
            self.agent.name,
            "--source",
            source,
            "--deadline",
            &seconds,
        ]
        .map(str::to_owned)
        .into();
        if self.scope == Scope::User {
            words.push("--require-trust".to_owned());
            words.push("--state".to_owned());
            words.push(self.state.display().to_string());
        }
        words
    }

    fn way_out(&self) -> String {
        format!(
            "If checkrein is gone: install it again, or take its hooks out of {}",
            self.file
        )
    }

    /// A command for whatever shell a person has.
    fn shell_line(&self, event: &str) -> String {
        let arguments: Vec<String> = self
            .arguments(event)
            .iter()
            .map(|word| quoted(word))
            .collect();
        let arguments = arguments.join(" ");
        let program = quoted(self.program);
        match (self.scope, event) {
            (Scope::Shared, _) => format!("sh -c {}", quoted(&self.script(event))),
            (_, "PreToolUse") => {
                // This agent has no word for "block if it fails": the shell says it.
                let script = format!("{REFUSE_IF_MISSING}{arguments}");
                let gone = format!("Nothing judges this call. {}", self.way_out());
                format!("sh -c {} {program} {}", quoted(&script), quoted(&gone))
            }
            _ => format!("{program} {arguments}"),
        }
    }

    /// What is committed: where Checkrein is not installed the agent goes on, and a person is
    /// told once a session.
    fn script(&self, event: &str) -> String {
        let call = format!("checkrein {}", self.arguments(event).join(" "));
        let told = (event == "SessionStart").then(|| {
            missing_checkrein_warning_script(&format!(
                "checkrein is not installed here: nothing checks what the agent calls done in this repo. Its hooks are in {}.",
                self.file
            ))
        });
        let guard = told.flatten();
        format!("{}{call}", guard.as_deref().unwrap_or(SKIP_IF_MISSING))
    }
}
