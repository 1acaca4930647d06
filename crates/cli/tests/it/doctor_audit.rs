//! `doctor --audit` on five set-ups: the empty tiers are named, and the lines it says to add,
//! applied as they stand, fill them.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::World;

/// Hooks of ours, as an agent has them.
const OURS: &str = r#"{ "hooks": { "Stop": [{ "hooks": [
    { "type": "command", "command": "checkrein", "args": ["hook", "claude-code", "--deadline", "60"], "timeout": 60 }
] }] } }"#;

fn audit(world: &World) -> Value {
    let said = world.says(&["doctor", "--audit", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

/// Names of the tiers that are empty.
fn empty(audit: &Value) -> Vec<&str> {
    audit["tiers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tier| tier["filled"] == false)
        .map(|tier| tier["tier"].as_str().unwrap())
        .collect()
}

fn kinds(audit: &Value) -> Vec<&str> {
    let setups = audit["setups"].as_array().unwrap();
    setups
        .iter()
        .map(|setup| setup["kind"].as_str().unwrap())
        .collect()
}

/// Does with a file what the addition says.
fn apply(world: &World, addition: &Value) {
    let file = addition["file"].as_str().unwrap();
    let text = addition["text"].as_str().unwrap();
    let path = world.root().join(file);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let after = match (&addition["how"], addition["how"]["after"].as_u64()) {
        (Value::String(how), _) if how == "create" => {
            assert!(!path.exists(), "{file} is there already");
            text.to_owned()
        }
        (Value::String(how), _) if how == "append" => format!("{before}\n{text}"),
        (Value::String(how), _) if how == "merge" => {
            let mut json: Value = serde_json::from_str(&before).unwrap_or_default();
            merge(&mut json, serde_json::from_str(text).unwrap());
            json.to_string()
        }
        (_, Some(line)) => {
            let mut lines: Vec<&str> = before.lines().collect();
            lines.insert(line as usize, text.trim_end_matches('\n'));
            lines.join("\n") + "\n"
        }
        (how, _) => panic!("{how} cannot be applied"),
    };
    world.write(file, &after);
}

/// Objects merged, lists joined.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

/// The kinds and empty tiers named at first, then: all that is said to be added is, and no
/// tier is empty any more. Gives what the audit said at first.
fn fills(world: &World, expected: &[&str], named: &[&str]) -> Value {
    let first = audit(world);
    assert_eq!(kinds(&first), expected, "{first:#}");
    assert_eq!(empty(&first), named, "{first:#}");
    let said = world.says(&["doctor", "--audit"]).stdout;
    assert!(
        said.contains(&format!("Empty: {}.", named.join(", "))),
        "{said}"
    );
    assert!(said.contains("hard = a check must pass"), "{said}");
    let blanks: Vec<&str> = said.lines().filter(|line| line.ends_with(' ')).collect();
    assert!(blanks.is_empty(), "{blanks:?}");
    for addition in first["add"].as_array().unwrap() {
        let text = addition["text"].as_str().unwrap();
        for line in text.lines() {
            assert!(
                said.contains(line),
                "the table for people lacks {line:?}:\n{said}"
            );
        }
        apply(world, addition);
    }
    let second = audit(world);
    assert!(empty(&second).is_empty(), "{second:#}");
    assert_eq!(second["add"].as_array().unwrap().len(), 0, "{second:#}");
    first
}

/// Python's own word that a file is Python, where there is one.
fn compiles(world: &World, file: &str) {
    let compiled = Command::new("python3")
        .args([
            "-B",
            "-c",
            "import ast, sys; ast.parse(open(sys.argv[1]).read())",
        ])
        .arg(world.root().join(file))
        .stdin(Stdio::null())
        .output();
    if let Ok(compiled) = compiled {
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{file}: {said}");
    }
}

#[test]
fn a_broken_config_is_mended_first() {
    let world = World::new();
    world.write("checkrein.toml", "[verifier]\nname = \"tests\"\n");
    let said = world.says(&["doctor", "--audit"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr.contains("[[verifier]]; mend it first") && said.stdout.is_empty(),
        "{said:?}"
    );
}

#[test]
fn a_bare_loop_has_nothing_and_is_told_what_to_add() {
    let world = World::new();
    world.write(
        "agent.py",
        "import anthropic\n\nclient = anthropic.Anthropic()\nmessages = []\nwhile True:\n    reply = client.messages.create(model=\"m\", max_tokens=900, messages=messages)\n    messages.append({\"role\": \"assistant\", \"content\": reply.content})\n",
    );
    let first = fills(&world, &["bare_loop"], &["hard", "soft", "lazy", "human"]);
    let then = first["add"][0]["then"].as_str().unwrap();
    assert!(then.contains("checkrein run -- python3 agent.py"), "{then}");
    compiles(&world, "agent.py");
}

#[test]
fn caps_alone_are_no_evidence() {
    let world = World::new();
    world.write("nightly.sh", "#!/bin/sh\nclaude -p \"$1\" --max-turns 30\n");
    let first = fills(&world, &["caps_only"], &["hard", "human"]);
    assert_eq!(first["tiers"][1]["by"][0]["what"], "max-turns = 30");
    assert_eq!(first["tiers"][1]["by"][0]["where"], "nightly.sh:2");
}

#[test]
fn hooks_of_other_tools_are_told_from_checks() {
    let world = World::new();
    world.write(
        ".claude/settings.json",
        r#"{ "hooks": {
            "Stop": [{ "hooks": [{ "type": "command", "command": "notify-send done" }] }],
            "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "firewall.sh" }] }]
        } }"#,
    );
    world.write(
        "package.json",
        r#"{ "scripts": { "test": "node test.js" } }"#,
    );
    let first = fills(&world, &["claude_code"], &["hard", "soft", "human"]);
    let near = first["tiers"][0]["by"].to_string();
    assert!(
        near.contains("no check, it seems: notify-send done"),
        "{near}"
    );
    assert!(
        near.contains("gates commands, not done: firewall.sh"),
        "{near}"
    );
    let config = std::fs::read_to_string(world.root().join("checkrein.toml")).unwrap();
    assert!(config.contains("run = \"npm test\""), "{config}");
    // The other tools' hooks are there still.
    let settings = std::fs::read_to_string(world.root().join(".claude/settings.json")).unwrap();
    assert!(settings.contains("notify-send done"), "{settings}");
}

#[test]
fn a_graph_has_its_limit_and_its_own_end() {
    let world = World::new();
    world.write(
        "graph.py",
        "from langgraph.graph import StateGraph\nfrom langgraph.prebuilt import ToolNode, tools_condition\n\nbuilder = StateGraph(dict)\nbuilder.add_conditional_edges(\"agent\", tools_condition)\ngraph = builder.compile()\ngraph.invoke({}, {\"recursion_limit\": 50})\n",
    );
    fills(&world, &["lang_graph"], &["hard", "human"]);
    compiles(&world, "graph.py");
    let text = std::fs::read_to_string(world.root().join("graph.py")).unwrap();
    assert!(
        text.contains("compile()\ngraph.interrupt_before_nodes = [\"tools\"]\n"),
        "{text}"
    );
}

#[test]
fn ours_lacks_people_until_a_rule_asks_them() {
    let world = World::new();
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"cargo test\"\n");
    world.write(".claude/settings.local.json", OURS);
    fills(&world, &["claude_code", "checkrein"], &["human"]);
    // The lines are a config that holds, not only one that the table likes.
    let said = world.says(&["check", "no-such-verifier"]);
    assert!(said.stderr.contains("known: tests"), "{said:?}");
}

#[test]
fn a_config_that_nothing_hands_stops_to_fills_nothing() {
    let world = World::new();
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"true\"\n");
    let first = audit(&world);
    assert_eq!(
        empty(&first),
        ["hard", "soft", "lazy", "human"],
        "{first:#}"
    );
    let [command] = first["add"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|addition| addition["how"] == "run")
        .collect::<Vec<_>>()[..]
    else {
        panic!("{first:#}");
    };
    assert_eq!(command["text"], "checkrein init\n");
    // With an agent, since none may be installed here.
    let said = world.says(&["init", "--agent", "claude-code"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(empty(&audit(&world)), ["human"]);
}
