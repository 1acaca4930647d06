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
    for path in [".co\tdex/hooks.json", "\t.claude/sett\rings.json"] {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
        let answer = apply_patch(&agent, &patch);
        assert!(
            answer.denied().contains("which hooks check this work"),
            "{answer:?}"
        );
    }
    for path in [
        "../out.txt",
        "/etc/x",
        ".git/hooks/pre-commit",
        ".g\tit/x",
        ".\t./x",
    ] {
        let shown = path.replace('\t', "");
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
        let answer = apply_patch(&agent, &patch);
        assert!(answer.denied().contains(&shown), "{answer:?}");
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

#[test]
fn a_patch_inside_a_larger_script_is_still_checked() {
    let world = world();
    world.write("wrong.diff", &DIFF.replace("-two", "-tow"));
    world.write("wrong.patch", WRONG);
    let agent = Agent::new(&world, "codex");
    agent.prompt("change it");
    let either = WRONG.replace("+TWO", "+a || b");
    let tabbed = WRONG.replace('\n', "\n\t");
    for command in [
        format!("apply_patch <<'EOF'\n{either}EOF"),
        format!("cat src/a.txt; apply_patch <<'EOF'\n{WRONG}EOF"),
        format!("ls && apply_patch <<'EOF'\n{WRONG}EOF"),
        format!("apply_patch <<'EOF' 2>&1 | tail -3\n{WRONG}EOF"),
        format!("apply_patch <<-'EOF'\n\t{tabbed}EOF"),
        "apply_patch < wrong.patch".to_owned(),
        "cat wrong.patch | apply_patch".to_owned(),
        "git apply wrong.diff || exit 1".to_owned(),
    ] {
        let answer = agent.shell(&command, "");
        let refused = matches!(&answer, Answer::Denied(why) if why.contains(">| tow"));
        assert!(refused, "{command}: {answer:?}");
    }
    let tabbed = RIGHT.replace('\n', "\n\t");
    let answer = agent.shell(&format!("apply_patch <<-'EOF'\n\t{tabbed}EOF"), "");
    assert_eq!(answer, Answer::Nothing);
}

#[test]
fn patches_that_the_tools_would_take_are_let_pass() {
    let world = world();
    world.write("crlf.txt", "one\r\ntwo\r\n");
    let agent = Agent::new(&world, "codex");
    agent.prompt("change it");
    let made = "diff -ruN a/new.txt b/new.txt\n--- a/new.txt\t1970-01-01 00:00:00.000000000 +0000\n+++ b/new.txt\t2026-03-01 10:00:00.000000000 +0100\n@@ -0,0 +1 @@\n+x\n";
    for tool in ["git apply", "patch -p1"] {
        let answer = agent.shell(&format!("{tool} <<'EOF'\n{made}EOF"), "");
        assert_eq!(answer, Answer::Nothing, "{tool}");
    }
    world.write("returns.diff", &DIFF.replace('\n', "\r\n"));
    assert_eq!(agent.shell("patch -p1 < returns.diff", ""), Answer::Nothing);
}

/// What its options do to it, and what stands before it: where it writes is read all the same.
#[test]
fn the_paths_of_a_diff_are_seen_however_it_is_applied() {
    let world = world();
    let diff = |path: &str| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{{}}\n");
    world.write(".claude/x", "");
    world.write("hooks.diff", &diff(".claude/settings.json"));
    world.write("inner.diff", &diff("settings.json"));
    world.write(
        "add.v4a",
        "*** Begin Patch\n*** Add File: settings.json\n+{}\n*** End Patch\n",
    );
    let agent = Agent::new(&world, "codex");
    agent.prompt("change it");
    let hooks = diff(".claude/settings.json");
    for command in [
        "git apply -C1 hooks.diff".to_owned(),
        "patch -f -p1 < hooks.diff".to_owned(),
        "patch -d .claude -p1 < inner.diff".to_owned(),
        "git apply --directory=.claude inner.diff".to_owned(),
        "cd src && cd ../.claude && patch -p1 < inner.diff".to_owned(),
        "pushd .claude; patch -p1 -i inner.diff".to_owned(),
        format!("git apply <<'EOF'\n*** Begin Patch\n{hooks}EOF"),
        "checkrein patch apply --root .claude --json add.v4a".to_owned(),
        "cat add.v4a | checkrein patch apply --root=.claude -".to_owned(),
        "cd .claude && apply_patch < add.v4a".to_owned(),
    ] {
        let inner = match command.contains(".claude &&") || command.contains("pushd") {
            true => command
                .replace("inner.diff", "../inner.diff")
                .replace("add.v4a", "../add.v4a"),
            false => command,
        };
        let answer = agent.shell(&inner, "");
        let refused =
            matches!(&answer, Answer::Denied(why) if why.contains("which hooks check this work"));
        assert!(refused, "{inner}: {answer:?}");
    }
}

/// However much there is of it: the answer comes, and is none that lets pass.
#[test]
fn a_patch_of_too_many_files_is_not_let_pass() {
    let world = world();
    let agent = Agent::new(&world, "codex");
    agent.prompt("change it");
    let adds: String = (0..12_000)
        .map(|number| format!("*** Add File: n{number}\n+x\n"))
        .collect();
    let answer = apply_patch(&agent, &format!("*** Begin Patch\n{adds}*** End Patch\n"));
    assert!(
        answer.denied().contains("more than 10000 files"),
        "{answer:?}"
    );
}

#[cfg(unix)]
#[test]
fn protected_paths_hold_through_links_and_aliases() {
    let world = world();
    world.write("checkrein.toml", "[policy]\nprotect = [\"tests/**\"]\n");
    world.write("tests/a.py", "1\n");
    world.commit();
    std::os::unix::fs::symlink("tests", world.root().join("lnk")).unwrap();
    std::os::unix::fs::symlink("tests/a.py", world.root().join("one.py")).unwrap();
    std::os::unix::fs::symlink("tests/new.py", world.root().join("later.py")).unwrap();
    for name in BOTH {
        let agent = Agent::new(&world, name);
        agent.prompt("change it");
        for command in [
            "echo 2 > lnk/a.py",
            "echo 2 > one.py",
            "echo 2 > later.py",
            "cd lnk && echo 2 > a.py",
            "sed -i s/1/2/ lnk/a.py",
            "cp src/a.txt lnk/new.py",
            "rm lnk/a.py",
            "mv lnk/a.py /tmp/x",
        ] {
            let answer = agent.shell(command, "");
            assert!(
                answer.denied().contains("protected"),
                "{command}: {answer:?}"
            );
        }
        // The link itself is nobody's test.
        for command in ["rm one.py", "cat lnk/a.py", "echo 2 > src/b.txt"] {
            assert_eq!(agent.shell(command, ""), Answer::Nothing, "{command}");
        }
        // Codex's tool, last of more files than are kept.
        let adds: String = (0..80)
            .map(|number| format!("*** Add File: n{number}\n+x\n"))
            .collect();
        let patch =
            format!("*** Begin Patch\n{adds}*** Add File: z/../lnk/z.py\n+x\n*** End Patch\n");
        let patch = patch.replace("z/../", "");
        if name == "codex" {
            let answer = apply_patch(&agent, &patch);
            assert!(answer.denied().contains("protected"), "{answer:?}");
        }
        world.replays(&agent.session);
    }
    let claude = Agent::new(&world, "claude-code");
    claude.prompt("change it");
    let edit = |path: &str| {
        let path = world.root().join(path).display().to_string();
        let call = json!({
            "tool_name": "Edit", "tool_use_id": claude.next_id(),
            "tool_input": { "file_path": path, "old_string": "1", "new_string": "2" },
        });
        claude.tell(&claude.message("PreToolUse", call))
    };
    for path in ["tests/a.py", "lnk/a.py", "one.py", "lnk/new.py"] {
        assert!(edit(path).denied().contains("protected"), "{path}");
    }
    assert_eq!(edit("src/a.txt"), Answer::Nothing);
}

#[test]
fn what_a_person_decides_is_not_applied_for_others() {
    let world = world();
    world.write(".claude/settings.json", "{}\n");
    world.write("sub/x", "");
    let add = "*** Begin Patch\n*** Add File: hooks/x\n+x\n*** End Patch\n";
    let hooks =
        "*** Begin Patch\n*** Update File: settings.json\n@@\n-{}\n+{\"a\":1}\n*** End Patch\n";
    let outside = world.root().parent().unwrap().display().to_string();
    std::fs::create_dir_all(world.state()).unwrap();
    let state = world.state().display().to_string();
    for (root, patch, expected) in [
        (".git", add, "lies in a `.git` folder"),
        (".git/hooks", add, "lies in a `.git` folder"),
        (".claude", hooks, "which hooks check this work"),
        (&outside, add, "lies outside of"),
        ("/", add, "lies outside of"),
        (&state, add, ""),
    ] {
        let said = feed(
            &mut world.checkrein(&["patch", "apply", "--root", root]),
            patch.as_bytes(),
        );
        assert_eq!(said.code, Some(4), "{root}: {said:?}");
        assert!(
            said.stderr.contains("nothing is changed"),
            "{root}: {said:?}"
        );
        assert!(said.stderr.contains(expected), "{root}: {said:?}");
    }
    assert_eq!(content(&world, ".claude/settings.json").unwrap(), "{}\n");
    assert_eq!(content(&world, ".git/hooks/x"), None);
    let said = feed(
        &mut world.checkrein(&["patch", "apply", "--root", "sub"]),
        add.as_bytes(),
    );
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_patch_cannot_write_to_the_terminal() {
    let world = world();
    world.write("src/e.txt", "a \u{1b}[2J\tb\nc\n");
    let patch = "*** Begin Patch\n*** Update File: src/e.txt\n@@\n a \u{1b}[2J\tb\n-\u{1b}]0;x\u{7}\n+y\n*** Add File: \u{1b}[31mred\n+x\n*** End Patch\n";
    let said = feed(&mut world.checkrein(&["patch", "check"]), patch.as_bytes());
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    assert!(said.stdout.contains("\tb"), "{said:?}");
    let add = "*** Begin Patch\n*** Add File: \u{1b}[31mred\n+x\n*** End Patch\n";
    let said = feed(&mut world.checkrein(&["patch", "check"]), add.as_bytes());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
}
