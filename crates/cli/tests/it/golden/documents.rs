//! What other programs and other builds read: every `--json`, what the generic hook answers, what
//! a plug-in is shown, files beside the store. Numbers, paths and sentences are masked. A field that
//! went, or that is of another type, fails here; new fields are allowed, and come into a golden file
//! with the next one.

use std::process::Command;

use checkrein_scripted::coder::PROVIDER_ENTRIES;
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn};
use serde_json::{Value, json};

use super::stories::{CHECK, world};
use super::{WRITE, is_writing, newest, next, shape};
use crate::agent::Agent;
use crate::approvals::{PUSH, RULES, deny, unattended, waiting};
use crate::coder;
#[cfg(target_os = "linux")]
use crate::doctor::Healthy;
use crate::terminal::Terminal;
use crate::world::{Said, World, feed};

pub(super) const FOLDER: &str = "crates/cli/tests/golden";

/// One command, and what it says.
struct Document(Value);

impl Document {
    fn of(said: &Said) -> Self {
        let read = serde_json::Deserializer::from_str(&said.stdout).into_iter::<Value>();
        let documents: Vec<Value> = read
            .map(|document| document.unwrap_or_else(|error| panic!("{error}: {said:?}")))
            .collect();
        assert!(!documents.is_empty(), "{said:?}");
        Self::new(said.code, &documents)
    }

    fn new(status: Option<i32>, documents: &[Value]) -> Self {
        let documents: Vec<Value> = documents.iter().map(shape::of).collect();
        Self(json!({ "exit status": status, "documents": documents }))
    }

    #[track_caller]
    fn holds(&self, name: &str) {
        let lost = match newest(FOLDER, name, "json") {
            None if is_writing() => return self.write(name),
            None => panic!("no golden document is named {name}: {WRITE}=1 writes it"),
            Some((_, file)) => {
                let text = std::fs::read_to_string(&file).unwrap();
                let recorded: Value = serde_json::from_str(&text).unwrap();
                let mut lost = shape::lost(&recorded, &self.0);
                let status = "exit status";
                if recorded[status] != self.0[status] {
                    lost.push(format!(
                        "{status} {} is {}",
                        recorded[status], self.0[status]
                    ));
                }
                lost
            }
        };
        if is_writing() && !lost.is_empty() {
            return self.write(name);
        }
        assert!(
            lost.is_empty(),
            "{name} --json is not what programs know:\n  {}\nIf that is meant: {WRITE}=1",
            lost.join("\n  ")
        );
    }

    fn write(&self, name: &str) {
        // The status is the one number that is no chance.
        let text = serde_json::to_string_pretty(&self.0).unwrap() + "\n";
        std::fs::write(next(FOLDER, name, "json"), text).unwrap();
    }
}

#[track_caller]
fn holds(name: &str, said: &Said) {
    Document::of(said).holds(name);
}

/// A task that was sent back, looped a little and was refused something.
fn worked() -> World {
    let world = world(&format!("[policy]\nrules = [\"rules/*.rules\"]\n\n{CHECK}"));
    world.write("rules/own.rules", RULES);
    world.commit();
    let mut agent = unattended(&world, "codex");
    agent.session = "worked".to_owned();
    agent.prompt("mend it");
    for _ in 0..11 {
        agent.shell("ls", "work");
    }
    agent.shell(PUSH, "").denied();
    world.write("work", "1");
    agent.stop();
    world
}

#[test]
fn json_of_sessions_show_approvals_and_replay() {
    let world = worked();
    holds("sessions", &world.says(&["sessions", "--json"]));
    holds("show", &world.says(&["show", "--json"]));
    holds("approvals-asked", &world.says(&["approvals", "--json"]));
    deny(&world, &waiting(&world));
    holds("approvals-denied", &world.says(&["approvals", "--json"]));
    holds(
        "replay-session",
        &world.says(&["replay", "worked", "--json"]),
    );
}

#[test]
fn json_of_check() {
    let world = world(&format!(
        "{CHECK}\n[[verifier]]\nname = \"lint\"\nrun = \"true\"\nadvisory = true\n"
    ));
    holds("check-fails", &world.says(&["check", "--json"]));
    world.write("fixed", "");
    holds("check-passes", &world.says(&["check", "--json"]));
}

#[test]
fn json_of_replay_trace() {
    let world = World::without_git();
    let call = "{\"type\":\"tool_call\",\"tool\":\"read\",\"args\":{\"path\":\"a\"},\"result\":\"same\"}\n";
    let session = "{\"type\":\"session\",\"id\":\"t\",\"agent\":\"mine\"}\n";
    world.write("trace.jsonl", &format!("{session}{}", call.repeat(25)));
    holds(
        "replay-trace",
        &world.says(&["replay", "trace.jsonl", "--json"]),
    );
}

#[test]
fn json_of_policy_check_and_test() {
    let world = World::new();
    world.write("own.rules", RULES);
    let check = ["policy", "check", "--rules", "own.rules", "--json"];
    let with = |more: &[&str]| world.says(&[&check[..], more].concat());
    holds("policy-check", &with(&["--", "git", "push"]));
    let script = "ls && git push $(cat where); $UNKNOWN";
    holds("policy-check-script", &with(&["--script", script]));
    holds(
        "policy-check-codex-exit",
        &with(&["--codex-exit", "--", "git", "push"]),
    );
    holds(
        "policy-test",
        &world.says(&["policy", "test", "--rules", "own.rules", "--json"]),
    );
}

#[test]
fn json_of_patch() {
    let world = World::new();
    world.write("src/a.txt", "one\ntwo\nthree\n");
    let patch =
        "*** Begin Patch\n*** Update File: src/a.txt\n@@\n one\n-two\n+TWO\n*** End Patch\n";
    let says = |args: &[&str], text: &str| {
        feed(
            &mut world.checkrein(&[&["patch"], args, &["--json"]].concat()),
            text.as_bytes(),
        )
    };
    holds(
        "patch-refused",
        &says(&["check"], &patch.replace("-two", "-tow")),
    );
    holds("patch-check", &says(&["check"], patch));
    holds("patch-apply", &says(&["apply"], patch));
}

#[test]
fn json_of_run() {
    let world = world(CHECK);
    let script = "[ $CHECKREIN_ATTEMPT = 1 ] || touch fixed; echo $CHECKREIN_ATTEMPT > work";
    holds(
        "run",
        &world.says(&["run", "--json", "--", "sh", "-c", script]),
    );
    holds("demo", &world.says(&["demo", "--json"]));
}

#[test]
fn json_of_run_autopilot() {
    let world = coder::repo(true);
    let (name, ..) = PROVIDER_ENTRIES[0];
    world.write(
        "GOAL.toml",
        &format!("goal = \"The answer is right.\"\nmodel = \"{name}\"\n\n[budget]\ndollars = 5\n\n[[criterion]]\nname = \"right\"\nrun = \"grep -qx 42 answer\"\n"),
    );
    world.commit();
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![
        ScriptedCoderTurn::patch_turn(coder::FIX),
        ScriptedCoderTurn::scripted_text_turn("Reached."),
    ])
    .unwrap();
    let args = ["--autopilot", "GOAL.toml", "--json"];
    holds(
        "run-autopilot",
        &coder::says(&mut coder::run(&world, &coder, name, &args)),
    );
}

#[test]
fn json_of_judge_calibrate() {
    let world = World::without_git();
    let lines = (0..12).map(|at| {
        let label = if at < 6 { "pass" } else { "fail" };
        let line = json!({
            "id": at.to_string(), "request": "a", "answer": "b", "label": label,
            "reply": { "verdict": if at == 3 { "fail" } else { label } },
        });
        format!("{line}\n")
    });
    world.write("labels.jsonl", &lines.collect::<String>());
    holds(
        "judge-calibrate",
        &world.says(&["judge", "calibrate", "labels.jsonl", "--json"]),
    );
}

/// What is found depends on the machine; here no agent is on the PATH.
#[test]
#[cfg(target_os = "linux")]
fn json_of_doctor() {
    let healthy = Healthy::new();
    holds("doctor", &healthy.doctor(&["--json"], &[]));
    holds("doctor-audit", &healthy.doctor(&["--audit", "--json"], &[]));
}

/// A protocol of ours, so a promise like any `--json`.
#[test]
fn json_of_the_generic_hook() {
    let world = worked();
    let tell = |line: Value| {
        let mut line = line;
        line["session"] = json!("generic");
        feed(
            &mut world.checkrein(&["hook", "generic"]),
            line.to_string().as_bytes(),
        )
    };
    tell(json!({ "type": "user", "text": "mend it" }));
    let call = |command: &str| json!({ "type": "tool_call", "tool": "shell", "args": { "command": command } });
    holds("hook-generic-allow", &tell(call("ls")));
    holds("hook-generic-deny", &tell(call("git gc")));
    holds("hook-generic-ask", &tell(call(PUSH)));
    world.write("work", "2");
    let stop = json!({ "type": "stop", "text": "Done." });
    holds("hook-generic-continue", &tell(stop.clone()));
    world.write("fixed", "");
    holds("hook-generic-accept", &tell(stop));
}

/// What a plug-in reads at each stage that hooks have.
#[test]
fn json_read_by_middleware() {
    let world = World::new();
    let seen = world.outside("seen");
    let on = "\"session_start\", \"before_tool\", \"round_end\", \"before_stop\", \"session_end\"";
    world.config(&format!(
        "[[middleware]]\nname = \"log\"\non = [{on}]\nrun = '''cat >> '{}'; echo '{{\"answer\": \"pass\"}}' '''\n",
        seen.display()
    ));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.tell(&agent.message("SessionStart", json!({ "source": "startup" })));
    agent.prompt("mend it");
    agent.shell("ls", "README");
    agent.tell(&agent.message("PostToolBatch", json!({ "tool_calls": [] })));
    agent.stop();
    agent.tell(&agent.message("SessionEnd", json!({ "reason": "exit" })));
    let said = Said::of(&Command::new("cat").arg(seen).output().unwrap());
    holds("plug-in", &said);
}

/// What is kept beside the store: another build reads it.
#[test]
fn json_files_of_the_state_folder() {
    let world = world(CHECK);
    let agent = Agent::named(&world, "claude-code", "files");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    world.config("[caps]\ntool_calls = 5\n");
    agent.stop().sent_back();
    Terminal::new(&world).says(&["off", "--for", "1h", "--reason", "it is down"]);
    let kept = |name: &str| {
        let text = std::fs::read_to_string(world.store_folder().join(name)).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let mut off = kept("off.json");
    // Whoever started the tests.
    off["by"]["ancestors"] = json!(["sh"]);
    for (name, file) in [("file-off", off), ("file-held", kept("held.json"))] {
        Document::new(None, &[file]).holds(name);
    }
}
