//! Reads agents' settings files: who judges the claim of done, what bounds the work, and whether a
//! person is asked.

use std::path::Path;

use serde_json::Value;

use super::{AuditedAgentSetupKind, DoctorAuditReport, StopCriterionTier};
use crate::commands::doctor::agents::{self, InspectableAgent, SettingsFile, SettingsScope};
use crate::commands::doctor::hook_entry;

pub(super) fn audit_agent_settings(root: &Path, found: &mut DoctorAuditReport) {
    for agent in agents::ALL {
        for settings in agent.settings_files(root) {
            audit_agent_settings_file(agent, &settings, root, found);
        }
    }
}

fn audit_agent_settings_file(
    agent: &InspectableAgent,
    settings: &SettingsFile,
    root: &Path,
    found: &mut DoctorAuditReport,
) {
    let place = match settings.path.strip_prefix(root) {
        Ok(below) => below.to_string_lossy().replace('\\', "/"),
        Err(_) => settings.path.display().to_string(),
    };
    let in_repo = settings.scope != SettingsScope::User;
    let kind = if agent.name == "codex" {
        AuditedAgentSetupKind::Codex
    } else {
        AuditedAgentSetupKind::ClaudeCode
    };
    let json = settings.parsed_settings();
    let mut ours = false;
    for (event, handler) in all_hook_handlers_with_event(json) {
        if hook_entry::is_checkrein_handler(handler, agent.name) {
            ours = true;
            continue;
        }
        // Hooks that a person has in all repos say nothing about this one.
        if !in_repo {
            continue;
        }
        let word = |field: &str| handler.get(field).and_then(Value::as_str);
        // A handler names its command, its address or its prompt, depending on its type.
        let what = word("command").or(word("url")).or(word("prompt"));
        let what: String = what.unwrap_or("?").chars().take(40).collect();
        match (event, word("type")) {
            ("Stop", Some("command" | "http")) if is_likely_check_command(&what) => {
                found.record_satisfied_stop_criterion(
                    StopCriterionTier::Hard,
                    format!("another tool at Stop: {what}"),
                    &place,
                );
            }
            ("Stop", Some("command" | "http")) => {
                found.add_near_miss_stop_criterion(
                    StopCriterionTier::Hard,
                    format!("no check, it seems: {what}"),
                    &place,
                );
            }
            ("Stop", Some("prompt" | "agent")) => {
                found.add_near_miss_stop_criterion(
                    StopCriterionTier::Hard,
                    format!("only a model's word at Stop: {what}"),
                    &place,
                );
            }
            // A hook before tools can forbid commands, but no claim of done reaches it.
            ("PreToolUse", _) => {
                found.add_near_miss_stop_criterion(
                    StopCriterionTier::Hard,
                    format!("gates commands, not done: {what}"),
                    &place,
                );
            }
            _ => {}
        }
    }
    if ours {
        found.has_own_hooks = true;
    }
    // A person's settings without our hooks are no set-up of this folder.
    if !in_repo && !ours {
        return;
    }
    found.record_agent_setup_found(kind, &place);
    found.record_satisfied_stop_criterion(
        StopCriterionTier::Lazy,
        format!("{}'s own end of turn", agent.label),
        &place,
    );
    let asks = json.pointer("/permissions/ask").and_then(Value::as_array);
    if asks.is_some_and(|rules| !rules.is_empty()) {
        found.record_satisfied_stop_criterion(StopCriterionTier::Human, "permissions.ask", &place);
    }
}

/// Whether the command looks like a check. Most hooks at Stop only notify somebody.
fn is_likely_check_command(command: &str) -> bool {
    const WORDS: &[&str] = &[
        "test", "lint", "check", "verify", "build", "tsc", "mypy", "ruff", "clippy", "gate",
    ];
    let command = command.to_ascii_lowercase();
    WORDS.iter().any(|word| command.contains(word))
}

/// Returns every handler with its event, also one without a group around it.
fn all_hook_handlers_with_event(settings: &Value) -> Vec<(&str, &Value)> {
    let events = settings.get("hooks").and_then(Value::as_object);
    events
        .into_iter()
        .flatten()
        .flat_map(|(event, groups)| {
            let groups = groups.as_array().map_or(&[][..], Vec::as_slice);
            groups.iter().flat_map(move |group| {
                let inner = group.get("hooks").and_then(Value::as_array);
                // A handler without a group is a mistake, but it shows what was meant.
                let inner = inner.map_or(std::slice::from_ref(group), Vec::as_slice);
                inner.iter().map(move |handler| (event.as_str(), handler))
            })
        })
        .collect()
}
