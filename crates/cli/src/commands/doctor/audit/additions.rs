//! The exact lines that fill the empty tiers, and where they belong.

use std::path::Path;

use checkrein_runtime::durable_file;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{AuditedAgentSetupKind, DoctorAuditReport, StopCriterionTier};
use crate::detect::{self, RepoFilesForDetection};
use crate::locate::CONFIG;

/// Events without which our hooks decide nothing, with their timeouts in seconds.
const REQUIRED_EVENTS: &[(&str, u32)] =
    &[("UserPromptSubmit", 10), ("PreToolUse", 30), ("Stop", 660)];
/// The rules file that asks a person about one command.
const RULES_FILE: &str = "rules/ask.rules";
const RULES: &str = "prefix_rule(\n    pattern = [\"git\", \"push\"],\n    decision = \"prompt\",\n    justification = \"a person decides what leaves this machine\",\n)\n";

/// How a text is to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SuggestedEditKind {
    /// A new file.
    Create,
    /// At the end of the file.
    Append,
    /// JSON: objects merged, lists joined; a new file if there is none.
    Merge,
    /// After the line of this number.
    After(usize),
    /// A command to run.
    Run,
}

impl SuggestedEditKind {
    pub(super) fn suggested_edit_verb_phrase(&self) -> String {
        match self {
            SuggestedEditKind::Create => "Write".to_owned(),
            SuggestedEditKind::Append => "Add to the end of".to_owned(),
            SuggestedEditKind::Merge => "Merge into".to_owned(),
            SuggestedEditKind::After(line) => format!("After line {line} of"),
            SuggestedEditKind::Run => "Run in".to_owned(),
        }
    }
}

/// Lines to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AuditSuggestedAddition {
    pub(super) tiers: Vec<StopCriterionTier>,
    pub(super) file: String,
    pub(super) how: SuggestedEditKind,
    pub(super) text: String,
    /// What else has to be done.
    pub(super) then: Option<String>,
}

/// Returns what fills these tiers.
pub(super) fn suggestions_for_empty_stop_tiers(
    root: &Path,
    found: &DoctorAuditReport,
    empty: &[StopCriterionTier],
) -> Vec<AuditSuggestedAddition> {
    let lacks = |tier| empty.contains(&tier);
    // Hooks go to an agent that is set up here, else to one that a script starts headless.
    let hooked = [
        AuditedAgentSetupKind::ClaudeCode,
        AuditedAgentSetupKind::Codex,
    ]
    .into_iter()
    .find(|kind| found.agent_setups_of_kind(kind).next().is_some())
    .or_else(|| found.headless_agent.clone());
    let program = [
        AuditedAgentSetupKind::LangGraph,
        AuditedAgentSetupKind::BareLoop,
        AuditedAgentSetupKind::CapsOnly,
    ]
    .iter()
    .find_map(|kind| found.agent_setups_of_kind(kind).next());
    let mut additions = Vec::new();
    // Checkrein sees no calls of a person's own program, which has to ask people itself.
    let by_rules = lacks(StopCriterionTier::Human) && (program.is_none() || hooked.is_some());
    additions.extend(suggested_config_addition(
        root,
        found,
        empty,
        by_rules,
        program.map(|setup| setup.file.as_str()),
    ));
    if by_rules {
        additions.push(AuditSuggestedAddition {
            tiers: vec![StopCriterionTier::Human],
            file: RULES_FILE.to_owned(),
            how: SuggestedEditKind::Create,
            text: RULES.to_owned(),
            then: None,
        });
    }
    // Hooks bring the hard and the soft tier, and rules need them to see commands. They do
    // nothing for the lazy tier.
    if !found.has_own_hooks
        && (lacks(StopCriterionTier::Hard) || lacks(StopCriterionTier::Soft) || by_rules)
    {
        let tiers: Vec<StopCriterionTier> = empty
            .iter()
            .copied()
            .filter(|tier| *tier != StopCriterionTier::Lazy)
            .collect();
        match hooked {
            Some(AuditedAgentSetupKind::ClaudeCode) => {
                additions.push(proposed_hooks_for_settings(
                    tiers,
                    ".claude/settings.local.json",
                    claude_code_hook_handler_json,
                ));
            }
            Some(_) => additions.push(proposed_hooks_for_settings(
                tiers,
                ".codex/hooks.json",
                suggested_codex_hook_json,
            )),
            None if program.is_none() => additions.push(AuditSuggestedAddition {
                tiers,
                file: "this folder".to_owned(),
                how: SuggestedEditKind::Run,
                text: "checkrein init\n".to_owned(),
                then: None,
            }),
            None => {}
        }
    }
    // A program without hooks is extended in its own code, where its loop begins.
    if let Some(setup) = program.filter(|_| hooked.is_none()) {
        let text = durable_file::read_limited_text_file(
            &root.join(&setup.file),
            durable_file::MAX_CONFIG_BYTES,
        );
        let text = text.ok().flatten().unwrap_or_default();
        let inside = |tier| {
            suggested_agent_loop_code_line(&setup.kind, &setup.file, &text, tier)
                .filter(|_| lacks(tier))
                .map(|(how, text)| AuditSuggestedAddition {
                    tiers: vec![tier],
                    file: setup.file.clone(),
                    how,
                    text,
                    then: None,
                })
        };
        additions.extend(inside(StopCriterionTier::Lazy));
        additions.extend(inside(StopCriterionTier::Human));
    }
    additions
}

/// Returns what `checkrein.toml` lacks.
fn suggested_config_addition(
    root: &Path,
    found: &DoctorAuditReport,
    empty: &[StopCriterionTier],
    by_rules: bool,
    program: Option<&str>,
) -> Option<AuditSuggestedAddition> {
    let there =
        durable_file::read_limited_text_file(&root.join(CONFIG), durable_file::MAX_CONFIG_BYTES);
    let there = there.ok().flatten();
    let (mut tiers, mut text) = (Vec::new(), String::new());
    // A check that exists but gets no stops needs hooks, and no second check.
    let has_check = found.entries.iter().any(|filling| {
        filling.tier == StopCriterionTier::Hard && filling.what.starts_with("check '")
    });
    // With a config there are caps already, be it the defaults.
    if empty.contains(&StopCriterionTier::Soft) && there.is_none() {
        tiers.push(StopCriterionTier::Soft);
        text.push_str("[caps]\nwall_clock = \"1h\"\nattempts = 3\n\n");
    }
    if by_rules {
        tiers.push(StopCriterionTier::Human);
        let open = there
            .as_deref()
            .is_some_and(|text| text.lines().any(|line| line.trim() == "[policy]"));
        let rules = format!("rules = [\"{RULES_FILE}\"]\n\n");
        if open {
            // TOML lets a table be opened only once.
            text.push_str(&format!(
                "# in [policy], which is there already:\n# {rules}"
            ));
        } else {
            text.push_str(&format!("[policy]\n{rules}"));
        }
    }
    if empty.contains(&StopCriterionTier::Hard) && !has_check {
        tiers.push(StopCriterionTier::Hard);
        text.push_str(&format!(
            "[[verifier]]\nname = \"tests\"\nrun = {}\n",
            json!(suggested_check_command(root, program))
        ));
    }
    if tiers.is_empty() {
        return None;
    }
    // The order of the tiers, whatever order the text has.
    tiers.sort();
    Some(AuditSuggestedAddition {
        tiers,
        file: CONFIG.to_owned(),
        how: if there.is_some() {
            SuggestedEditKind::Append
        } else {
            SuggestedEditKind::Create
        },
        text: format!("{}\n", text.trim_end()),
        then: program.map(|file| {
            format!(
                "and start it as: checkrein run -- {}",
                suggest_agent_script_start_command(file)
            )
        }),
    })
}

/// Suggests how a program is started.
fn suggest_agent_script_start_command(file: &str) -> String {
    let ending = Path::new(file)
        .extension()
        .and_then(|ending| ending.to_str());
    match ending {
        Some("py") => format!("python3 {file} {{task}}"),
        Some("js" | "mjs" | "cjs") => format!("node {file} {{task}}"),
        Some("ts" | "mts") => format!("npx tsx {file} {{task}}"),
        Some("sh" | "bash") => format!("sh {file} {{task}}"),
        _ => "YOUR-AGENT {task}".to_owned(),
    }
}

/// Suggests the check that this folder seems to have.
fn suggested_check_command(root: &Path, program: Option<&str>) -> String {
    let found = detect::detect_checks(&RepoFilesForDetection::read_files_to_detect_checks(root));
    match found.into_iter().next() {
        Some(check) => check.run,
        None if program.is_some_and(|file| file.ends_with(".py")) => {
            "python3 -B -m unittest".to_owned()
        }
        None => "sh ./check.sh".to_owned(),
    }
}

fn proposed_hooks_for_settings(
    tiers: Vec<StopCriterionTier>,
    file: &str,
    entry: fn(&str, u32) -> Value,
) -> AuditSuggestedAddition {
    let events: Map<String, Value> = REQUIRED_EVENTS
        .iter()
        .map(|(event, seconds)| {
            let group = json!([{ "hooks": [entry(event, *seconds)] }]);
            ((*event).to_owned(), group)
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({ "hooks": events })).unwrap_or_default();
    AuditSuggestedAddition {
        tiers,
        file: file.to_owned(),
        how: SuggestedEditKind::Merge,
        text: format!("{text}\n"),
        then: Some("or let `checkrein init` write all of its hooks".to_owned()),
    }
}

fn claude_code_hook_handler_json(event: &str, seconds: u32) -> Value {
    let mut handler = json!({
        "type": "command", "command": "checkrein", "timeout": seconds,
        "args": ["hook", "claude-code", "--source", "local", "--deadline", seconds.to_string()],
    });
    // Only PreToolUse has a failure that can block: Claude Code ignores onFailure at Stop.
    if event == "PreToolUse"
        && let Some(fields) = handler.as_object_mut()
    {
        fields.insert("onFailure".to_owned(), Value::from("block"));
    }
    handler
}

fn suggested_codex_hook_json(_event: &str, seconds: u32) -> Value {
    json!({
        "type": "command", "timeout": seconds,
        "command": format!("checkrein hook codex --source project --deadline {seconds}"),
    })
}

/// Returns a line for the program's own loop.
fn suggested_agent_loop_code_line(
    kind: &AuditedAgentSetupKind,
    file: &str,
    text: &str,
    tier: StopCriterionTier,
) -> Option<(SuggestedEditKind, String)> {
    let python = file.ends_with(".py");
    let shell = file.ends_with(".sh") || file.ends_with(".bash");
    if *kind == AuditedAgentSetupKind::LangGraph {
        return langgraph_line_to_add(text, tier);
    }
    // Without a loop there is no place for the line.
    let (at, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| super::program_scan::is_code_loop_start_line(line))?;
    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    let code = match tier {
        StopCriterionTier::Human if python => "if input(\"go on? [y/N] \") != \"y\": break",
        StopCriterionTier::Human if shell => {
            "printf 'go on? [y/N] '; read -r yes; [ \"$yes\" = y ] || break"
        }
        StopCriterionTier::Lazy if python => {
            "if \"reply\" in locals() and reply.stop_reason == \"end_turn\": break  # reply: what the model said last"
        }
        StopCriterionTier::Lazy if shell => {
            "case \"$reply\" in *'\"DONE\"'*) break ;; esac  # reply: what the model said last"
        }
        _ => return None,
    };
    // In a shell the `do` may stand on a line of its own.
    let after = match text.lines().nth(at + 1) {
        Some(next) if shell && next.trim() == "do" => at + 2,
        _ => at + 1,
    };
    Some((
        SuggestedEditKind::After(after),
        format!("{indent}    {code}\n"),
    ))
}

/// Returns a line to add where the graph is made.
fn langgraph_line_to_add(
    text: &str,
    tier: StopCriterionTier,
) -> Option<(SuggestedEditKind, String)> {
    let word = match tier {
        StopCriterionTier::Human => ".compile(",
        StopCriterionTier::Lazy => "StateGraph(",
        StopCriterionTier::Hard | StopCriterionTier::Soft => return None,
    };
    let (at, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains(word) && line.contains('='))?;
    let name = line.split('=').next()?;
    let (indent, name) = (
        name.split_at(name.len() - name.trim_start().len()).0,
        name.trim(),
    );
    let code = match tier {
        // The graph needs a checkpointer as well, or nothing can be resumed.
        StopCriterionTier::Human => format!("{name}.interrupt_before_nodes = [\"tools\"]"),
        _ => format!(
            "{name}.add_conditional_edges(\"agent\", tools_condition)  # from langgraph.prebuilt"
        ),
    };
    Some((
        SuggestedEditKind::After(at + 1),
        format!("{indent}{code}\n"),
    ))
}
