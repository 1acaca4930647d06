//! Patches: the command, and the gate in front of what an agent applies, by its own tool or by
//! way of the shell.

use checkrein_core::input::Input;
use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::world::{World, feed};

const RIGHT: &str =
    "*** Begin Patch\n*** Update File: src/a.txt\n@@\n one\n-two\n+TWO\n*** End Patch\n";
const WRONG: &str = "*** Begin Patch\n*** Add File: made.txt\n+x\n*** Update File: src/a.txt\n@@\n one\n-tow\n+TWO\n*** End Patch\n";
const DIFF: &str = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";

fn world() -> World {
    let world = World::new();
    world.write("src/a.txt", "one\ntwo\nthree\n");
    world.commit();
    world
}

fn content(world: &World, name: &str) -> Option<String> {
    std::fs::read_to_string(world.root().join(name)).ok()
}

#[test]
fn the_command_checks_and_applies_all_or_nothing() {
    let world = world();
    let patch = |args: &[&str], text: &str| feed(&mut world.checkrein(args), text.as_bytes());

    let said = patch(&["patch", "check"], RIGHT);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout, "it applies: 1 file\n  update  src/a.txt\n");
    assert_eq!(content(&world, "src/a.txt").unwrap(), "one\ntwo\nthree\n");

    let said = patch(&["patch", "apply", "-"], WRONG);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stdout
            .starts_with("refused, nothing is changed\nsrc/a.txt: "),
        "{said:?}"
    );
    assert!(said.stdout.contains("    2| two\n      >| tow"), "{said:?}");
    assert_eq!(content(&world, "made.txt"), None);

    let said = patch(&["patch", "apply", "--json"], RIGHT);
    assert_eq!(said.code, Some(0), "{said:?}");
    let json = said.json();
    assert_eq!(json["schema"], "checkrein/patch/1");
    assert_eq!(json["verdict"], "applied");
    assert_eq!(json["format"], "v4a");
    assert_eq!(json["files"][0]["path"], "src/a.txt");
    assert_eq!(content(&world, "src/a.txt").unwrap(), "one\nTWO\nthree\n");

    let said = patch(&["patch", "check", "--json"], RIGHT);
    assert_eq!(said.code, Some(1), "{said:?}");
    let refusal = said.json()["refusals"][0].clone();
    assert_eq!(refusal["cause"], "no_match");
    assert_eq!(
        (&refusal["path"], &refusal["patch_line"]),
        (&json!("src/a.txt"), &json!(3))
    );
    assert_eq!(refusal["nearest"]["line"], 1);

    // A diff from a file, for another folder.
    world.write("elsewhere/src/a.txt", "one\ntwo\nthree\n");
    world.write("fix.diff", DIFF);
    let said = world.says(&["patch", "apply", "fix.diff", "--root", "elsewhere"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(
        content(&world, "elsewhere/src/a.txt").unwrap(),
        "one\nTWO\nthree\n"
    );

    for (args, text) in [
        (&["patch", "check", "missing.diff"][..], ""),
        (&["patch", "check", "--root", "missing"][..], RIGHT),
        (&["patch"][..], ""),
    ] {
        assert_eq!(patch(args, text).code, Some(2), "{args:?}");
    }
    assert_eq!(patch(&["patch", "check"], "no patch").code, Some(1));
}

#[test]
fn nothing_of_an_apply_stays_behind() {
    let world = world();
    let before = listing(&world);
    feed(&mut world.checkrein(&["patch", "apply"]), RIGHT.as_bytes());
    feed(&mut world.checkrein(&["patch", "apply"]), WRONG.as_bytes());
    assert_eq!(listing(&world), before);
}

fn listing(world: &World) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(world.root().join("src"))
        .unwrap()
        .chain(std::fs::read_dir(world.root()).unwrap())
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn apply_patch(agent: &Agent<'_>, text: &str) -> Answer {
    let call = json!({
        "tool_name": "apply_patch", "tool_input": { "command": text }, "tool_use_id": agent.next_id(),
    });
    agent.tell(&agent.message("PreToolUse", call))
}

#[test]
fn a_patch_of_the_agents_tool_that_would_not_apply_is_refused_with_what_the_file_has() {
    let world = world();
    let agent = Agent::new(&world, "codex");
    agent.prompt("change it");
    let answer = apply_patch(&agent, WRONG);
    let reason = answer.denied();
    assert!(
        reason.contains("not applied, no file is changed"),
        "{reason}"
    );
    assert!(reason.contains("    2| two\n      >| tow"), "{reason}");
    assert_eq!(apply_patch(&agent, RIGHT), Answer::Nothing);
    // What cannot be read as a patch at all.
    let answer = apply_patch(
        &agent,
        "*** Begin Patch\n*** Update File: src/a.txt\n*** End Patch",
    );
    assert!(answer.denied().contains("has no chunk"), "{answer:?}");

    let facts: Vec<_> = world
        .inputs(&agent.session)
        .into_iter()
        .filter_map(|input| match input {
            Input::ToolRequested(request) => request.facts.patch,
            _ => None,
        })
        .collect();
    assert_eq!(facts.len(), 3);
    assert_eq!(facts[1].paths, ["src/a.txt"]);
    assert_eq!(facts[1].refused, None);
    assert!(facts[0].refused.is_some());
    // The tree is another by now; the log says the same.
    world.write("src/a.txt", "nothing of it\n");
    world.replays(&agent.session);
}

#[test]
fn what_would_lose_data_or_lead_out_is_refused() {
    let world = world();
    let agent = Agent::new(&world, "codex");
    agent.prompt("change it");
    let moved = RIGHT.replace("src/a.txt\n", "src/a.txt\n*** Move to: ./src/a.txt\n");
    let answer = apply_patch(&agent, &moved);
    assert!(answer.denied().contains("would delete it"), "{answer:?}");
    for path in ["../out.txt", "/etc/x", ".git/hooks/pre-commit"] {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
        let answer = apply_patch(&agent, &patch);
        assert!(answer.denied().contains(path), "{answer:?}");
    }
    // By its real place: what judges the work is not written through a link either.
    #[cfg(unix)]
    {
        world.write(".claude/settings.json", "{}\n");
        std::os::unix::fs::symlink(".claude", world.root().join("harmless")).unwrap();
        let patch = "*** Begin Patch\n*** Update File: harmless/settings.json\n@@\n-{}\n+{ }\n*** End Patch\n";
        let answer = apply_patch(&agent, patch);
        assert!(
            answer.denied().contains("which hooks check this work"),
            "{answer:?}"
        );
    }
}

#[test]
fn patches_by_way_of_the_shell_are_asked_the_same() {
    for name in BOTH {
        let world = world();
        let agent = Agent::new(&world, name);
        agent.prompt("change it");
        world.write("wrong.diff", &DIFF.replace("-two", "-tow"));
        world.write("right.diff", DIFF);
        let wrong = DIFF.replace("-two", "-tow");
        for command in [
            format!("apply_patch <<'EOF'\n{WRONG}EOF"),
            format!("git apply <<'EOF'\n{wrong}EOF"),
            format!("patch -p1 <<'EOF'\n{wrong}EOF"),
            "git apply wrong.diff".to_owned(),
            "patch -p1 < wrong.diff".to_owned(),
            "cd src/.. && git apply wrong.diff && echo done".to_owned(),
            "bash -lc 'git apply wrong.diff'".to_owned(),
            "checkrein patch apply wrong.diff".to_owned(),
        ] {
            let answer = agent.shell(&command, "");
            assert!(
                answer.denied().contains("    2| two\n      >| tow"),
                "{command}: {answer:?}"
            );
        }
        for command in [
            format!("apply_patch <<'EOF'\n{RIGHT}EOF"),
            format!("git apply <<'EOF'\n{DIFF}EOF"),
            "git apply right.diff".to_owned(),
            // It only looks, or tries something else, or the tree is another by then.
            "git apply --check wrong.diff".to_owned(),
            "git apply wrong.diff || git apply --3way wrong.diff".to_owned(),
            "sed -i s/two/tow/ src/a.txt; git apply wrong.diff".to_owned(),
            "git apply missing.diff".to_owned(),
            "checkrein patch check wrong.diff".to_owned(),
            "grep -rn apply_patch docs".to_owned(),
        ] {
            assert_eq!(agent.shell(&command, ""), Answer::Nothing, "{command}");
        }
        let hooks =
            "--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+{}\n";
        let answer = agent.shell(&format!("git apply <<'EOF'\n{hooks}EOF"), "");
        assert!(
            answer.denied().contains("which hooks check this work"),
            "{answer:?}"
        );
    }
}
