//! The entries themselves: which command an agent calls at which event, how long it waits, and what
//! it does if Checkrein is missing.

use std::path::Path;

use checkrein_adapters::own_hook::{
    REFUSE_IF_MISSING, SKIP_IF_MISSING, missing_checkrein_warning_script,
};
use checkrein_core::middleware::MiddlewareStage;
use checkrein_core::policy::{Policy, VerifierSpec, VerifierTier};

use super::agents::InitAgent;
use crate::settings::OrderedJson;
use crate::settings::install_record::InstallScope;
use crate::settings::json::HookEventEntry;
use crate::shell::quote_shell_word;

/// Longest time that agents wait at the end of a session.
const SESSION_END_SECONDS: u64 = 3;
/// Time for events whose answer is a look into the store.
const QUICK_SECONDS: u64 = 10;
/// Time for events at which rules are judged.
const TOOL_SECONDS: u64 = 30;
/// Time beside the longest check: reading the tree, waiting for others, writing the answer.
const STOP_SPARE_SECONDS: u64 = 60;
/// Longest time that an agent is made to wait.
const MAX_STOP_SECONDS: u64 = 3_600;

/// The facts that entries depend on.
pub(super) struct HookEntryParameters<'a> {
    pub(super) agent: &'a InitAgent,
    pub(super) scope: InstallScope,
    /// The absolute path of this program.
    pub(super) program: &'a str,
    /// The state folder of all repos.
    pub(super) state: &'a Path,
    /// The file that the entries go into, as people read it.
    pub(super) file: &'a str,
    /// Seconds that a stop may take.
    pub(super) stop_seconds: u64,
}

/// Returns how long an agent has to wait at a stop, and whether the limit cut that: the longest
/// required check with its retries, then the slowest judge, middleware before them, and a margin.
pub(super) fn stop_hook_timeout_seconds(policy: Option<&Policy>) -> (u64, bool) {
    let Some(policy) = policy else {
        // Hooks for all repos have to wait for any repo's checks.
        return (MAX_STOP_SECONDS, false);
    };
    let required = policy
        .verifiers
        .iter()
        .filter(|spec| spec.tier == VerifierTier::Judge || policy.is_required_verifier(&spec.name));
    // Checks run at the same time, so the longest counts; judges are asked after them.
    let (judges, checks): (Vec<_>, Vec<_>) =
        required.partition(|spec| spec.tier == VerifierTier::Judge);
    let longest = |specs: Vec<&VerifierSpec>| {
        let seconds = specs.into_iter().map(|spec| {
            let tries = u64::from(spec.retries).saturating_add(1);
            spec.timeout_ms.div_ceil(1_000).saturating_mul(tries)
        });
        seconds.max().unwrap_or(0)
    };
    // Layers are asked before the checks, one after the other.
    let layers = policy.middleware.iter();
    let layers = layers.filter(|layer| layer.on.contains(&MiddlewareStage::BeforeStop));
    let layers: u64 = layers.map(|layer| layer.timeout_ms.div_ceil(1_000)).sum();
    let wanted = longest(checks)
        .saturating_add(layers)
        .saturating_add(longest(judges))
        .saturating_add(STOP_SPARE_SECONDS);
    (wanted.min(MAX_STOP_SECONDS), wanted > MAX_STOP_SECONDS)
}

impl HookEntryParameters<'_> {
    /// Returns one entry per event of the agent, in the order in which the events happen.
    pub(super) fn planned_hook_entries(&self) -> Vec<HookEventEntry> {
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
        let group =
            |handler| OrderedJson::Object(vec![("hooks", OrderedJson::List(vec![handler]))]);
        events
            .iter()
            .map(|event| (*event, group(self.build_hook_settings_entry(event))))
            .collect()
    }

    fn event_timeout_seconds(&self, event: &str) -> u64 {
        match event {
            "Stop" | "SubagentStop" => self.stop_seconds,
            "PreToolUse" => TOOL_SECONDS,
            "SessionEnd" => SESSION_END_SECONDS,
            _ => QUICK_SECONDS,
        }
    }

    fn build_hook_settings_entry(&self, event: &str) -> OrderedJson {
        let seconds = self.event_timeout_seconds(event);
        let mut fields = vec![("type", OrderedJson::new_json_string("command"))];
        match (self.agent.name, self.scope) {
            // Codex knows command lines only; Claude Code can start a program without a shell,
            // which no profile can disturb.
            ("codex", _) => {
                fields.push(("command", OrderedJson::Text(self.shell_hook_command(event))))
            }
            (_, InstallScope::Shared) => {
                let script = self.committed_hook_script(event);
                fields.push(("command", OrderedJson::new_json_string("sh")));
                fields.push((
                    "args",
                    OrderedJson::List(vec![
                        OrderedJson::new_json_string("-c"),
                        OrderedJson::Text(script),
                    ]),
                ));
            }
            _ => {
                let mut args = self.hook_arguments(event);
                if event == "PreToolUse" {
                    // If Checkrein is missing, the agent shows this line to say what failed, so the
                    // line says what to do.
                    args.push("--note".to_owned());
                    args.push(self.missing_checkrein_hint());
                }
                let args = args.into_iter().map(OrderedJson::Text).collect();
                fields.push(("command", OrderedJson::new_json_string(self.program)));
                fields.push(("args", OrderedJson::List(args)));
            }
        }
        fields.push(("timeout", OrderedJson::Number(seconds)));
        // A person sees this while the agent waits for the answer.
        if let "Stop" | "SubagentStop" | "PreToolUse" = event {
            let doing = match event {
                "PreToolUse" => "checkrein: may this run?",
                _ => "checkrein: is it done?",
            };
            fields.push(("statusMessage", OrderedJson::new_json_string(doing)));
        }
        // A committed entry must not block people who have not installed Checkrein.
        if event == "PreToolUse" && self.agent.name != "codex" && self.scope != InstallScope::Shared
        {
            fields.push(("onFailure", OrderedJson::new_json_string("block")));
        }
        OrderedJson::Object(fields)
    }

    /// Returns everything after the program.
    fn hook_arguments(&self, event: &str) -> Vec<String> {
        let source = match self.scope {
            InstallScope::User => "user",
            InstallScope::Person | InstallScope::Shared => "project",
        };
        let seconds = self.event_timeout_seconds(event).to_string();
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
        // Hooks for all repos also run in strangers' clones, where nothing runs untrusted.
        if self.scope == InstallScope::User {
            words.push("--require-trust".to_owned());
            words.push("--state".to_owned());
            words.push(self.state.display().to_string());
        }
        words
    }

    fn missing_checkrein_hint(&self) -> String {
        format!(
            "If checkrein is gone: install it again, or take its hooks out of {}",
            self.file
        )
    }

    /// Returns a command line that any shell of a person understands.
    fn shell_hook_command(&self, event: &str) -> String {
        let arguments: Vec<String> = self
            .hook_arguments(event)
            .iter()
            .map(|word| quote_shell_word(word))
            .collect();
        let arguments = arguments.join(" ");
        let program = quote_shell_word(self.program);
        match (self.scope, event) {
            (InstallScope::Shared, _) => format!(
                "sh -c {}",
                quote_shell_word(&self.committed_hook_script(event))
            ),
            (_, "PreToolUse") => {
                // Codex has no setting for "block if the hook fails", so the shell does it.
                let script = format!("{REFUSE_IF_MISSING}{arguments}");
                let gone = format!(
                    "Nothing judges this call. {}",
                    self.missing_checkrein_hint()
                );
                format!(
                    "sh -c {} {program} {}",
                    quote_shell_word(&script),
                    quote_shell_word(&gone)
                )
            }
            _ => format!("{program} {arguments}"),
        }
    }

    /// Returns the script of a committed entry: without Checkrein the agent goes on, and a person
    /// is told once a session.
    fn committed_hook_script(&self, event: &str) -> String {
        let call = format!("checkrein {}", self.hook_arguments(event).join(" "));
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
