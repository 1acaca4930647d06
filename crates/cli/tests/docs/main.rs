//! What the pages say, against what is there: links, paths, defaults, hook settings,
//! reasons, transcripts. A page that no longer holds is a failing test.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

mod commands;
mod keys;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use checkrein_core::transition::Reason;
use checkrein_runtime::config::KEYS;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

fn read(name: &str) -> String {
    let text = std::fs::read_to_string(root().join(name));
    // A checkout may have turned the line breaks.
    text.unwrap_or_else(|error| panic!("{name}: {error}"))
        .replace("\r\n", "\n")
}

/// The pages of this repository, relative to its root.
fn pages() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/design"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                found.push(
                    Path::new(folder)
                        .join(name)
                        .to_string_lossy()
                        .replace('\\', "/"),
                );
            }
        }
    }
    found.sort();
    assert!(found.len() >= 10, "{found:?}");
    found
}

/// Fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match &mut open {
            Some(_) if line.trim_start().starts_with("```") => found.extend(open.take()),
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line.trim() == format!("```{language}") => open = Some(String::new()),
            None => {}
        }
    }
    found
}

/// What follows each `before` up to `after`.
fn between<'a>(text: &'a str, before: &str, after: char) -> Vec<&'a str> {
    text.split(before)
        .skip(1)
        .filter_map(|rest| rest.split_once(after))
        .map(|(inside, _)| inside)
        .collect()
}

/// The names that a page's headings have in links.
fn anchors(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
            heading
                .chars()
                .filter(kept)
                .collect::<String>()
                .replace(' ', "-")
        })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in between(&text, "](", ')') {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&page),
                file => folder.join(file),
            };
            let inside = || std::fs::read_to_string(&target).unwrap_or_default();
            if !link.contains("://")
                && (!target.exists() || !anchor.is_empty() && !anchors(&inside()).contains(anchor))
            {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_architecture_names_what_is_there() {
    let text = read("ARCHITECTURE.md");
    let starts = ["crates/", "laws/", "xtask/", "docs/", "schema/"];
    let mut seen = 0;
    for path in text
        .split('`')
        .filter(|part| starts.iter().any(|start| part.starts_with(start)))
    {
        seen += 1;
        let (folder, pattern) = path.rsplit_once('/').unwrap();
        let there = match pattern.split_once('*') {
            None => root().join(path).exists(),
            Some((begin, end)) => std::fs::read_dir(root().join(folder))
                .unwrap()
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .any(|name| name.starts_with(begin) && name.ends_with(end)),
        };
        assert!(there, "ARCHITECTURE.md names {path}");
    }
    assert!(seen > 30, "only {seen} paths found");
}

#[test]
fn the_configuration_page_shows_the_defaults() {
    let page = root().join("docs/configuration.md");
    let mut text = read("docs/configuration.md");
    let defaults = read("crates/runtime/src/config/defaults.toml");
    let shown = blocks(&text, "toml")
        .into_iter()
        .find(|block| block.starts_with("# Checkrein's defaults"));
    let shown = shown.expect("the page has no block that begins as the defaults do");
    if std::env::var_os("CHECKREIN_BLESS").is_some() && shown != defaults {
        text = text.replace(&shown, &defaults);
        std::fs::write(page, &text).unwrap();
    }
    assert!(text.contains(&defaults), "CHECKREIN_BLESS=1 rewrites it");
}

#[test]
fn the_configuration_page_names_what_is_not_there_yet() {
    let later = KEYS.iter().filter(|spec| spec.since.is_none());
    let keys: Vec<&str> = later.map(|spec| spec.path).collect();
    assert!(!keys.is_empty(), "{keys:?}");
    let page = read("docs/configuration.md");
    let named = page.split_once("## Not in this build").unwrap().1;
    let named = named.split_once("\n## ").unwrap().0;
    for key in &keys {
        assert!(
            named.contains(&format!("`{key}`")),
            "the page does not name '{key}'"
        );
    }
    for name in named
        .lines()
        .filter(|line| line.contains(" · "))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
    {
        assert!(keys.contains(&name), "'{name}' is in this build by now");
    }
}

#[test]
fn the_transitions_page_has_every_reason_and_number() {
    let page = read("docs/transitions.md");
    for reason in Reason::ALL {
        let number = reason
            .run_exit_code()
            .map_or("never".to_owned(), |code| code.to_string());
        let row = format!("| `{}` | {number} |", reason.as_str());
        assert!(page.contains(&row), "no row begins with {row}");
    }
}

/// Each handler: its event, the hook's words, its timeout, what it does when it fails.
fn handlers(settings: &Value) -> Vec<(String, Vec<String>, u64, Option<String>)> {
    let mut found = Vec::new();
    for (event, groups) in settings["hooks"].as_object().unwrap() {
        for handler in groups
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|group| group["hooks"].as_array().unwrap())
        {
            assert_eq!(handler["type"], "command");
            let mut words: Vec<String> = handler["command"]
                .as_str()
                .unwrap()
                .split(' ')
                .map(str::to_owned)
                .collect();
            for word in handler["args"].as_array().into_iter().flatten() {
                words.push(word.as_str().unwrap().to_owned());
            }
            let on_failure = handler["onFailure"].as_str().map(str::to_owned);
            found.push((
                event.clone(),
                words,
                handler["timeout"].as_u64().unwrap(),
                on_failure,
            ));
        }
    }
    found
}

fn check_settings(name: &str, settings: &Value, agent: &str) -> BTreeSet<String> {
    let adapter = checkrein_adapters::find_adapter(agent).unwrap();
    let mut events = BTreeSet::new();
    for (event, words, timeout, on_failure) in handlers(settings) {
        assert!(
            adapter.hook_events().contains(&event.as_str()),
            "{name}: {agent} has no event {event}"
        );
        let expected = [
            "checkrein",
            "hook",
            agent,
            "--source",
            "project",
            "--deadline",
            &timeout.to_string(),
        ];
        assert_eq!(words, expected, "{name}: {event}");
        let blocks = agent == "claude-code" && event == "PreToolUse";
        assert_eq!(
            on_failure.as_deref(),
            blocks.then_some("block"),
            "{name}: {event}"
        );
        events.insert(event);
    }
    events
}

#[test]
fn the_hook_settings_are_right_and_complete() {
    for (agent, file, page) in [
        (
            "claude-code",
            "examples/claude-code/settings.json",
            "docs/claude-code.md",
        ),
        ("codex", "examples/codex/hooks.json", "docs/codex.md"),
    ] {
        let text = read(file);
        let events = check_settings(file, &serde_json::from_str(&text).unwrap(), agent);
        let all: BTreeSet<String> = checkrein_adapters::find_adapter(agent)
            .unwrap()
            .hook_events()
            .iter()
            .map(|event| (*event).to_owned())
            .collect();
        assert_eq!(events, all, "{file}");
        assert!(
            blocks(&read(page), "json").contains(&text),
            "{page} does not show {file} as it is"
        );
    }
}

#[test]
fn the_readme_begins_with_the_demo_and_the_tests() {
    let consoles = blocks(&read("README.md"), "console");
    let mut commands = consoles
        .iter()
        .flat_map(|block| block.lines())
        .filter_map(|line| line.strip_prefix("$ "));
    let mut next = || {
        commands
            .next()
            .unwrap()
            .split(" #")
            .next()
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(next(), "cargo run -q -- demo");
    assert_eq!(next(), "cargo xtask ci");
}

fn checkrein(arguments: &[&str], folder: &Path, state: &Path) -> (String, Option<i32>) {
    let out = Command::new(env!("CARGO_BIN_EXE_checkrein"))
        .args(arguments)
        .current_dir(folder)
        .env("CHECKREIN_STATE", state)
        .env("XDG_CONFIG_HOME", state.join("config"))
        .output()
        .unwrap();
    (
        String::from_utf8_lossy(&out.stdout).into_owned(),
        out.status.code(),
    )
}

#[test]
fn the_trace_page_shows_what_replay_prints() {
    let state = tempfile::tempdir().unwrap();
    let page = read("docs/trace-format.md");
    let file = "examples/traces/poll-the-build.jsonl";
    let (printed, code) = checkrein(&["replay", file], &root(), state.path());
    assert_eq!(code, Some(0), "{printed}");
    let shown = format!("$ checkrein replay {file}\n{printed}");
    assert!(
        blocks(&page, "console").contains(&shown),
        "the page does not show:\n{shown}"
    );

    let (printed, _) = checkrein(&["replay", "--json", file], &root(), state.path());
    let printed: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shown = blocks(&page, "json");
    assert_eq!(shown.len(), 1);
    for line in shown.iter().flat_map(|block| block.lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(printed.contains(&line), "replay does not print {line}");
    }
}

#[test]
fn the_example_without_a_loop_has_none() {
    let state = tempfile::tempdir().unwrap();
    let (printed, _) = checkrein(
        &["replay", "--json", "examples/traces/fix-and-test.jsonl"],
        &root(),
        state.path(),
    );
    let summary: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!(summary["halted_at"], Value::Null);
    assert_eq!(
        (&summary["tool_calls"], &summary["warnings"]),
        (&Value::from(3), &Value::from(0))
    );
}

#[test]
fn the_example_repo_is_a_config() {
    use checkrein_runtime::config::{
        NamedConfigText, TaskDriverKind, compile_repo_and_personal_config,
    };
    let name = root().join("examples/repo/checkrein.toml");
    let source = NamedConfigText {
        text: std::fs::read_to_string(&name).unwrap(),
        name,
    };
    let compiled =
        compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook).unwrap();
    assert_eq!(compiled.warnings, Vec::<String>::new());
    assert!(
        compiled.policy.is_required_verifier(&"tests".into())
            && !compiled.policy.is_required_verifier(&"slow".into())
    );
}

#[test]
fn the_example_report_is_a_config_with_its_schema() {
    use checkrein_runtime::config::{
        NamedConfigText, TaskDriverKind, compile_repo_and_personal_config,
    };
    let name = root().join("examples/weekly-report/checkrein.toml");
    for schema in ["weekly.schema.json", "weekly-markdown.schema.json"] {
        let text = std::fs::read_to_string(&name).unwrap();
        let source = NamedConfigText {
            text: text.replace(
                "\nschema = \"weekly.schema.json\"",
                &format!("\nschema = \"{schema}\""),
            ),
            name: name.clone(),
        };
        let compiled =
            compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook).unwrap();
        let sources = compiled.sources.repo.unwrap();
        assert_eq!(sources.schemas.len(), 1);
        assert!(sources.schemas[0].name.ends_with(schema));
    }
}

#[test]
fn the_page_of_middleware_shows_the_examples_as_they_are() {
    let page = read("docs/middleware.md");
    for (file, kind) in [
        ("checkrein.toml", "toml"),
        ("freeze.sh", "sh"),
        ("cut_secrets.py", "python"),
    ] {
        let text = read(&format!("examples/middleware/{file}"));
        assert!(blocks(&page, kind).contains(&text), "{file}");
    }
}

#[test]
fn toml_on_the_pages_is_config() {
    use checkrein_runtime::config::{
        Goal, NamedConfigText, TaskDriverKind, compile_repo_and_personal_config,
    };
    let mut seen = 0;
    for page in [
        "README.md",
        "docs/claude-code.md",
        "docs/codex.md",
        "docs/configuration.md",
        "docs/middleware.md",
        "docs/schema.md",
        "docs/unattended.md",
    ] {
        for text in blocks(&read(page), "toml") {
            seen += 1;
            // A block inside a list is indented as the list is.
            let source = NamedConfigText {
                name: PathBuf::from(page),
                text,
            };
            if source.text.contains("[[criterion]]") {
                Goal::parse_goal(&source).unwrap_or_else(|error| panic!("{error}"));
                continue;
            }
            let compiled =
                compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook)
                    .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(compiled.warnings, Vec::<String>::new(), "{page}");
        }
    }
    assert!(seen >= 5, "only {seen} blocks found");
}
