//! The exact lines that fill the empty tiers, and where they go.

use std::path::Path;

use checkrein_runtime::whole;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Found, Kind, Tier};
use crate::detect::{self, Tree};
use crate::locate::CONFIG;

/// Events without which our hooks decide nothing.
const EVENTS: &[(&str, u32)] = &[("UserPromptSubmit", 10), ("PreToolUse", 30), ("Stop", 660)];
/// The rules file that leaves something to a person.
const RULES_FILE: &str = "rules/ask.rules";
const RULES: &str = "prefix_rule(\n    pattern = [\"git\", \"push\"],\n    decision = \"prompt\",\n    justification = \"a person decides what leaves this machine\",\n)\n";

/// What is done with the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    /// A new file.
    Create,
    /// At the end of the file.
    Append,
    /// JSON: objects merged, lists joined; a new file if there is none.
    Merge,
    /// After this line.
    After(usize),
    /// A command.
    Run,
}

impl How {
    pub(super) fn words(&self) -> String {
        match self {
            How::Create => "Write".to_owned(),
            How::Append => "Add to the end of".to_owned(),
            How::Merge => "Merge into".to_owned(),
            How::After(line) => format!("After line {line} of"),
            How::Run => "Run in".to_owned(),
        }
    }
}

/// Lines to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Addition {
    pub(super) tiers: Vec<Tier>,
    pub(super) file: String,
    pub(super) how: How,
    pub(super) text: String,
    /// What else is to be done.
    pub(super) then: Option<String>,
}

/// What fills these tiers.
pub(super) fn for_empty(root: &Path, found: &Found, empty: &[Tier]) -> Vec<Addition> {
    let lacks = |tier| empty.contains(&tier);
    let hooked = [Kind::ClaudeCode, Kind::Codex]
        .into_iter()
        .find(|kind| found.of(kind).next().is_some())
        .or_else(|| found.started.clone());
    let program = [Kind::LangGraph, Kind::BareLoop, Kind::CapsOnly]
        .iter()
        .find_map(|kind| found.of(kind).next());
    let mut additions = Vec::new();
    // What a program of its own runs is not shown to us: it asks people by itself.
    let by_rules = lacks(Tier::Human) && (program.is_none() || hooked.is_some());
    additions.extend(config(
        root,
        found,
        empty,
        by_rules,
        program.map(|setup| setup.file.as_str()),
    ));
    if by_rules {
        additions.push(Addition {
            tiers: vec![Tier::Human],
            file: RULES_FILE.to_owned(),
            how: How::Create,
            text: RULES.to_owned(),
            then: None,
        });
    }
    if !found.hooks && (lacks(Tier::Hard) || lacks(Tier::Soft) || by_rules) {
        let tiers: Vec<Tier> = empty
            .iter()
            .copied()
            .filter(|tier| *tier != Tier::Lazy)
            .collect();
        match hooked {
            Some(Kind::ClaudeCode) => {
                additions.push(hooks(tiers, ".claude/settings.local.json", claude_code));
            }
            Some(_) => additions.push(hooks(tiers, ".codex/hooks.json", codex)),
            None if program.is_none() => additions.push(Addition {
                tiers,
                file: "this folder".to_owned(),
                how: How::Run,
                text: "checkrein init\n".to_owned(),
                then: None,
            }),
            None => {}
        }
    }
    if let Some(setup) = program.filter(|_| hooked.is_none()) {
        let text = whole::read_limited_text_file(&root.join(&setup.file), whole::MAX_CONFIG_BYTES);
        let text = text.ok().flatten().unwrap_or_default();
        let inside = |tier| {
            inside(&setup.kind, &setup.file, &text, tier)
                .filter(|_| lacks(tier))
                .map(|(how, text)| Addition {
                    tiers: vec![tier],
                    file: setup.file.clone(),
                    how,
                    text,
                    then: None,
                })
        };
        additions.extend(inside(Tier::Lazy));
        additions.extend(inside(Tier::Human));
    }
    additions
}

/// What `checkrein.toml` lacks.
fn config(
    root: &Path,
    found: &Found,
    empty: &[Tier],
    by_rules: bool,
    program: Option<&str>,
) -> Option<Addition> {
    let there = whole::read_limited_text_file(&root.join(CONFIG), whole::MAX_CONFIG_BYTES);
    let there = there.ok().flatten();
    let (mut tiers, mut text) = (Vec::new(), String::new());
    let has_check = found
        .fillings
        .iter()
        .any(|filling| filling.tier == Tier::Hard && filling.what.starts_with("check '"));
    if empty.contains(&Tier::Soft) && there.is_none() {
        tiers.push(Tier::Soft);
        text.push_str("[caps]\nwall_clock = \"1h\"\nattempts = 3\n\n");
    }
    if by_rules {
        tiers.push(Tier::Human);
        let open = there
            .as_deref()
            .is_some_and(|text| text.lines().any(|line| line.trim() == "[policy]"));
        let rules = format!("rules = [\"{RULES_FILE}\"]\n\n");
        if open {
            // A table can be opened only once.
            text.push_str(&format!(
                "# in [policy], which is there already:\n# {rules}"
            ));
        } else {
            text.push_str(&format!("[policy]\n{rules}"));
        }
    }
    if empty.contains(&Tier::Hard) && !has_check {
        tiers.push(Tier::Hard);
        text.push_str(&format!(
            "[[verifier]]\nname = \"tests\"\nrun = {}\n",
            json!(suggested(root, program))
        ));
    }
    if tiers.is_empty() {
        return None;
    }
    tiers.sort();
    Some(Addition {
        tiers,
        file: CONFIG.to_owned(),
        how: if there.is_some() {
            How::Append
        } else {
            How::Create
        },
        text: format!("{}\n", text.trim_end()),
        then: program.map(|file| format!("and start it as: checkrein run -- {}", started(file))),
    })
}

/// How a program is started.
fn started(file: &str) -> String {
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

/// The check that this folder looks as if it had.
fn suggested(root: &Path, program: Option<&str>) -> String {
    let found = detect::detect(&Tree::read(root));
    match found.into_iter().next() {
        Some(check) => check.run,
        None if program.is_some_and(|file| file.ends_with(".py")) => {
            "python3 -B -m unittest".to_owned()
        }
        None => "sh ./check.sh".to_owned(),
    }
}

fn hooks(tiers: Vec<Tier>, file: &str, entry: fn(&str, u32) -> Value) -> Addition {
    let events: Map<String, Value> = EVENTS
        .iter()
        .map(|(event, seconds)| {
            let group = json!([{ "hooks": [entry(event, *seconds)] }]);
            ((*event).to_owned(), group)
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({ "hooks": events })).unwrap_or_default();
    Addition {
        tiers,
        file: file.to_owned(),
        how: How::Merge,
        text: format!("{text}\n"),
        then: Some("or let `checkrein init` write all of its hooks".to_owned()),
    }
}

fn claude_code(event: &str, seconds: u32) -> Value {
    let mut handler = json!({
        "type": "command", "command": "checkrein", "timeout": seconds,
        "args": ["hook", "claude-code", "--source", "local", "--deadline", seconds.to_string()],
    });
    if event == "PreToolUse"
        && let Some(fields) = handler.as_object_mut()
    {
        fields.insert("onFailure".to_owned(), Value::from("block"));
    }
    handler
}

fn codex(_event: &str, seconds: u32) -> Value {
    json!({
        "type": "command", "timeout": seconds,
        "command": format!("checkrein hook codex --source project --deadline {seconds}"),
    })
}

/// Lines of the program itself.
fn inside(kind: &Kind, file: &str, text: &str, tier: Tier) -> Option<(How, String)> {
    let python = file.ends_with(".py");
    let shell = file.ends_with(".sh") || file.ends_with(".bash");
    if *kind == Kind::LangGraph {
        return graph(text, tier);
    }
    let (at, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| super::code::is_loop(line))?;
    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    let code = match tier {
        Tier::Human if python => "if input(\"go on? [y/N] \") != \"y\": break",
        Tier::Human if shell => "printf 'go on? [y/N] '; read -r yes; [ \"$yes\" = y ] || break",
        Tier::Lazy if python => {
            "if \"reply\" in locals() and reply.stop_reason == \"end_turn\": break  # reply: what the model said last"
        }
        Tier::Lazy if shell => {
            "case \"$reply\" in *'\"DONE\"'*) break ;; esac  # reply: what the model said last"
        }
        _ => return None,
    };
    // A shell's `do` may stand on a line of its own.
    let after = match text.lines().nth(at + 1) {
        Some(next) if shell && next.trim() == "do" => at + 2,
        _ => at + 1,
    };
    Some((How::After(after), format!("{indent}    {code}\n")))
}

/// A graph is told where it is made.
fn graph(text: &str, tier: Tier) -> Option<(How, String)> {
    let word = match tier {
        Tier::Human => ".compile(",
        Tier::Lazy => "StateGraph(",
        Tier::Hard | Tier::Soft => return None,
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
        // Needs a checkpointer, or nothing can be resumed.
        Tier::Human => format!("{name}.interrupt_before_nodes = [\"tools\"]"),
        _ => format!(
            "{name}.add_conditional_edges(\"agent\", tools_condition)  # from langgraph.prebuilt"
        ),
    };
    Some((How::After(at + 1), format!("{indent}{code}\n")))
}
