//! `init` and `init --undo`: what is written for whom, and that taking it back is exact.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::terminal::Terminal;
use crate::world::{Said, World, feed, gone, read_line, signal, start};

const CLAUDE: &[&str] = &["init", "--agent", "claude-code"];
const CODEX: &[&str] = &["init", "--agent", "codex"];
const LOCAL: &str = ".claude/settings.local.json";
const HOOKS: &str = ".codex/hooks.json";

/// Name and bytes of each settings file that somebody could have.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/settings");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|kind| kind == "json"))
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(file.path()).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 20);
    found
}

/// Every file and folder of home and repo, but what git and the state folder keep.
fn snapshot(world: &World) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.ends_with(".git") {
                let exclude = path.join("info/exclude");
                found.insert(exclude.clone(), std::fs::read(exclude).ok());
            } else if path.is_dir() {
                found.insert(path.clone(), None);
                walk(&path, found);
            } else {
                found.insert(path.clone(), Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&world.root(), &mut found);
    walk(&world.outside("home"), &mut found);
    found
}

fn put(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn get(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.root().join(file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn fine(said: &Said) {
    assert_eq!(said.code, Some(0), "{said:?}");
}

fn with(words: &[&'static str], more: &[&'static str]) -> Vec<&'static str> {
    [words, more].concat()
}

/// Event → its one handler of ours.
fn handlers(text: &str) -> BTreeMap<String, Value> {
    let settings: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let events = settings["hooks"].as_object().unwrap();
    events
        .iter()
        .filter_map(|(event, groups)| {
            let handlers = groups
                .as_array()?
                .iter()
                .flat_map(|group| group["hooks"].as_array().unwrap());
            let mut ours = handlers.filter(|handler| handler.to_string().contains("checkrein"));
            let one = ours.next()?.clone();
            assert!(ours.next().is_none(), "{event} twice: {text}");
            Some((event.clone(), one))
        })
        .collect()
}

#[test]
fn undo_is_exact_on_every_kind_of_file() {
    for (name, bytes) in fixtures() {
        for (words, file) in [(CLAUDE, LOCAL), (CODEX, HOOKS)] {
            let world = World::new();
            put(&world.root().join(file), &bytes);
            let before = snapshot(&world);
            let said = world.says(words);
            // What the agent does not read is written and said; nothing else is an error.
            let broken = said.stderr.contains("calls none of these hooks");
            assert_eq!(
                said.code,
                Some(if broken { 2 } else { 0 }),
                "{name} {file}: {said:?}"
            );
            assert!(get(&world, file).contains("checkrein"), "{name}: {said:?}");
            let said = world.says(&["init", "--undo"]);
            fine(&said);
            assert_eq!(snapshot(&world), before, "{name} {file}: {said:?}");
        }
    }
}

#[test]
fn edits_in_between_stay() {
    for (name, bytes) in fixtures() {
        let world = World::new();
        let file = world.root().join(LOCAL);
        put(&file, &bytes);
        world.says(CLAUDE);
        let edit = |text: &str| {
            let text = text.replace("\"model\": \"opus\"", "\"model\" : \"haiku\"");
            text.replace("\"say done\"", "\"say \\\"really\\\" done\"") + "\n  \n"
        };
        let ours = std::fs::read_to_string(&file).unwrap();
        put(&file, edit(&ours).as_bytes());
        let said = world.says(&["init", "--undo"]);
        fine(&said);
        assert!(said.stdout.contains("changed since"), "{name}: {said:?}");
        let expected = edit(std::str::from_utf8(&bytes).unwrap());
        assert_eq!(get(&world, LOCAL), expected, "{name}");
    }
}

#[test]
fn a_second_init_changes_nothing_and_undo_is_still_exact() {
    for (name, bytes) in fixtures() {
        let world = World::new();
        put(&world.root().join(LOCAL), &bytes);
        let before = snapshot(&world);
        world.says(CLAUDE);
        let first = snapshot(&world);
        let said = world.says(CLAUDE);
        assert_eq!(snapshot(&world), first, "{name}: {said:?}");
        // Another deadline: the entries are renewed in place.
        world.config("[[verifier]]\nname = \"tests\"\nrun = \"true\"\ntimeout = \"20m\"\n");
        world.says(CLAUDE);
        let text = get(&world, LOCAL);
        assert_eq!(text.matches("\"1260\"").count(), 2, "{name}: {text}");
        world.says(&["init", "--undo"]);
        let mut after = snapshot(&world);
        // The config was edited, so it is no longer ours to take away.
        assert!(after.remove(&world.root().join("checkrein.toml")).is_some());
        assert_eq!(after, before, "{name}");
    }
}

#[test]
fn a_dry_run_shows_and_writes_nothing() {
    let world = World::new();
    world.write("Makefile", "test:\n\ttrue\n");
    let before = snapshot(&world);
    let said = world.says(&[
        "init",
        "--agent",
        "claude-code",
        "--agent",
        "codex",
        "--dry-run",
    ]);
    fine(&said);
    for shown in [
        "+++ checkrein.toml",
        "+run = \"make test\"",
        "+++ .claude/settings.local.json",
        "+++ .codex/hooks.json",
    ] {
        assert!(said.stdout.contains(shown), "{shown}: {said:?}");
    }
    assert_eq!(snapshot(&world), before);
    assert!(!world.state().exists());
}

#[test]
fn what_is_red_or_missing_is_advisory_and_says_why() {
    let world = World::new();
    world.write("Makefile", "test:\n\t@echo fine\nlint:\n\t@exit 1\n");
    world.write("mypy.ini", "[mypy]\n");
    let path = std::env::var("PATH").unwrap();
    let has_mypy = std::env::split_paths(&path).any(|folder| folder.join("mypy").exists());
    fine(&world.says(CLAUDE));
    let config = get(&world, "checkrein.toml");
    let table = |name: &str| {
        let tables = config
            .split("\n# found by")
            .find(|table| table.contains(&format!("name = \"{name}\"")));
        tables
            .unwrap_or_else(|| panic!("{name}: {config}"))
            .to_owned()
    };
    assert!(
        table("lint").contains("fails on the tree as it is")
            && table("lint").contains("advisory = true"),
        "{config}"
    );
    assert!(!table("tests").contains("advisory"), "{config}");
    let types = table("typecheck");
    if !has_mypy {
        assert!(
            types.contains("`mypy` is not installed") && types.contains("advisory = true"),
            "{config}"
        );
    }
    // And it is a config that stops an agent for the one thing it should.
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_config_that_is_there_stays_and_says_how_long_to_wait() {
    let world = World::new();
    let config = "# mine\n[[verifier]]\nname = \"tests\"\nrun = \"true\"\ntimeout = \"20m\"\nretries = 1\n\n[[verifier]]\nname = \"slow\"\nrun = \"true\"\ntimeout = \"50m\"\nadvisory = true\n";
    world.config(config);
    fine(&world.says(CLAUDE));
    assert_eq!(get(&world, "checkrein.toml"), config);
    let handlers = handlers(&get(&world, LOCAL));
    assert_eq!(handlers.len(), 10);
    for (event, handler) in &handlers {
        let seconds = handler["timeout"].as_u64().unwrap();
        let args: Vec<&str> = handler["args"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let at = args.iter().position(|arg| *arg == "--deadline").unwrap();
        assert_eq!(args[at + 1], seconds.to_string(), "{event}");
        assert_eq!(
            args[..4],
            ["hook", "claude-code", "--source", "project"],
            "{event}"
        );
        assert!(Path::new(handler["command"].as_str().unwrap()).is_absolute());
        let wanted = match event.as_str() {
            "Stop" | "SubagentStop" => 20 * 60 * 2 + 60,
            "PreToolUse" => 30,
            "SessionEnd" => 3,
            _ => 10,
        };
        assert_eq!(seconds, wanted, "{event}");
        assert_eq!(handler.get("onFailure").is_some(), event == "PreToolUse");
    }
    assert!(handlers["Stop"]["statusMessage"].is_string());
    // Nobody is made to wait longer than an hour, and that is said.
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"true\"\ntimeout = \"2h\"\n");
    let said = world.says(CLAUDE);
    fine(&said);
    assert!(said.stderr.contains("longer than the hour"), "{said:?}");
    assert!(get(&world, LOCAL).contains("\"3600\""));
    world.config("[caps]\nattempts = 0\n");
    assert_eq!(world.says(CLAUDE).code, Some(2));
}

#[test]
fn nothing_of_one_person_is_committed() {
    let world = World::new();
    fine(&world.says(&["init", "--agent", "claude-code", "--agent", "codex"]));
    let status = world
        .hermetic("git")
        .args(["status", "--porcelain"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&status.stdout),
        "?? checkrein.toml\n"
    );
}

#[test]
fn installed_hook_entries_answer() {
    let world = World::new();
    world.config("[policy]\nrules = [\"no.rules\"]\n");
    world.write(
        "no.rules",
        "prefix_rule(pattern = [\"rm\"], decision = \"forbidden\", justification = \"NO_RM\")\n",
    );
    fine(&world.says(&["init", "--agent", "claude-code", "--agent", "codex"]));
    let call = br#"{"session_id":"s","hook_event_name":"PreToolUse","cwd":".","tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"rm x"}}"#;
    let direct = &handlers(&get(&world, LOCAL))["PreToolUse"];
    let args = direct["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str);
    let said = feed(
        world
            .hermetic(direct["command"].as_str().unwrap())
            .args(args),
        call,
    );
    assert!(
        said.code == Some(0) && said.stdout.contains("NO_RM"),
        "{said:?}"
    );
    let line = handlers(&get(&world, HOOKS))["PreToolUse"]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let said = feed(world.hermetic("sh").args(["-lc", &line]), call);
    assert!(
        said.code == Some(0) && said.stdout.contains("NO_RM"),
        "{said:?}"
    );
}

#[test]
fn when_we_are_gone_the_refusal_names_the_way_out() {
    let world = World::new();
    let elsewhere = world.outside("bin dir").join("checkrein");
    std::fs::create_dir(elsewhere.parent().unwrap()).unwrap();
    // By another process: what this one forks at the same moment would have the copy open to write.
    let copied = world
        .hermetic("cp")
        .arg(env!("CARGO_BIN_EXE_checkrein"))
        .arg(&elsewhere)
        .status();
    assert!(copied.unwrap().success());
    let done = world
        .hermetic(&elsewhere)
        .args(["init", "--agent", "claude-code", "--agent", "codex"])
        .output()
        .unwrap();
    fine(&Said::of(&done));
    std::fs::remove_file(&elsewhere).unwrap();
    // Codex takes status 2 with a text for a refusal, and shows the text.
    let line = handlers(&get(&world, HOOKS))["PreToolUse"]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let said = feed(world.hermetic("sh").args(["-lc", &line]), b"{}");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr
            .contains("install it again, or take its hooks out of .codex/hooks.json"),
        "{said:?}"
    );
    // Claude Code shows the line that it could not start.
    let handler = &handlers(&get(&world, LOCAL))["PreToolUse"];
    assert_eq!(handler["onFailure"], "block");
    let note = handler["args"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .as_str()
        .unwrap();
    assert!(
        note.contains("install it again, or take its hooks out of .claude/settings.local.json"),
        "{note}"
    );
}

#[test]
fn shared_hooks_leave_a_colleague_without_us_in_peace() {
    let world = World::new();
    fine(&world.says(&[
        "init",
        "--agent",
        "claude-code",
        "--agent",
        "codex",
        "--shared",
    ]));
    let status = world
        .hermetic("git")
        .args(["status", "--porcelain", "-uall"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&status.stdout),
        "?? .claude/settings.json\n?? .codex/hooks.json\n?? checkrein.toml\n"
    );
    let bin = world.outside("bare");
    std::fs::create_dir(&bin).unwrap();
    for program in ["sh", "grep"] {
        let path = std::env::var_os("PATH").unwrap();
        let real = std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|file| file.exists());
        std::os::unix::fs::symlink(real.unwrap(), bin.join(program)).unwrap();
    }
    for file in [".claude/settings.json", HOOKS] {
        let text = get(&world, file);
        assert!(
            !text.contains("onFailure") && !text.contains(env!("CARGO_BIN_EXE_checkrein")),
            "{text}"
        );
        for (event, handler) in handlers(&text) {
            let mut command = match handler.get("args").and_then(Value::as_array) {
                Some(args) => {
                    let mut command = world.hermetic(bin.join("sh"));
                    command.args(args.iter().filter_map(Value::as_str));
                    command
                }
                None => {
                    let mut command = world.hermetic(bin.join("sh"));
                    command.args(["-c", handler["command"].as_str().unwrap()]);
                    command
                }
            };
            let input = format!(r#"{{"hook_event_name":"{event}","source":"startup"}}"#);
            let said = feed(command.env("PATH", &bin), input.as_bytes());
            fine(&said);
            assert_eq!(said.stderr, "", "{event}");
            if event == "SessionStart" {
                let message = said.json()["systemMessage"].as_str().unwrap().to_owned();
                assert!(
                    message.contains("not installed here") && message.contains(file),
                    "{message}"
                );
                let said = feed(command.env("PATH", &bin), br#"{"source":"compact"}"#);
                assert_eq!(
                    (said.code, said.stdout.as_str()),
                    (Some(0), ""),
                    "once is enough"
                );
            } else {
                assert_eq!(said.stdout, "", "{event}");
            }
        }
    }
    // With us on PATH the same entries judge.
    let handler = &handlers(&get(&world, HOOKS))["Stop"];
    let folder = Path::new(env!("CARGO_BIN_EXE_checkrein")).parent().unwrap();
    let path = std::env::join_paths([folder, &bin]).unwrap();
    let mut command = world.hermetic("sh");
    command
        .args(["-c", handler["command"].as_str().unwrap()])
        .env("PATH", path);
    let said = feed(&mut command, b"nonsense");
    assert!(said.stdout.contains("could not judge"), "{said:?}");
    // One's own hooks beside them would count everything twice.
    let said = world.says(CLAUDE);
    fine(&said);
    assert!(said.stdout.contains("in it already"), "{said:?}");
    assert!(!world.root().join(LOCAL).exists());
    fine(&world.says(&["init", "--undo"]));
    let left = world
        .hermetic("git")
        .args(["status", "--porcelain"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn committed_files_are_not_for_one_person_to_change() {
    let world = World::new();
    world.write(HOOKS, "{\"hooks\":{}}\n");
    world.commit();
    let said = world.says(CODEX);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("--shared") && said.stderr.contains("--user"),
        "{said:?}"
    );
    assert_eq!(get(&world, HOOKS), "{\"hooks\":{}}\n");
    // For everybody it may.
    fine(&world.says(&with(CODEX, &["--shared"])));
    fine(&world.says(&["init", "--undo"]));
    assert_eq!(get(&world, HOOKS), "{\"hooks\":{}}\n");
    // Own first, then shared: said, not doubled.
    fine(&world.says(CLAUDE));
    let said = world.says(&with(CLAUDE, &["--shared"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("--undo"), "{said:?}");
}

#[test]
fn what_cannot_be_edited_is_left_alone() {
    for (text, place) in [
        ("{\"a\": ", "line 1"),
        ("{\"hooks\": []}", "hooks"),
        ("[1]", "line 1"),
    ] {
        let world = World::new();
        put(&world.root().join(LOCAL), text.as_bytes());
        let said = world.says(CLAUDE);
        assert_eq!(said.code, Some(2), "{text}: {said:?}");
        assert!(
            said.stderr.contains(place) && said.stderr.contains("settings.local.json"),
            "{said:?}"
        );
        assert_eq!(get(&world, LOCAL), text);
    }
    let world = World::new();
    put(&world.root().join(LOCAL), b"{\"a\": \"\xff\"}");
    assert_eq!(world.says(CLAUDE).code, Some(2));
}

#[test]
fn the_agent_s_own_reading_is_told() {
    let world = World::new();
    let dead = "{\n  \"hooks\": { \"PreToolUse\": [ { \"type\": \"command\", \"command\": \"x\" } ] }\n}\n";
    put(&world.root().join(LOCAL), dead.as_bytes());
    let said = world.says(CLAUDE);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("hooks.PreToolUse[0]") && said.stderr.contains("to do"),
        "{said:?}"
    );
    fine(&world.says(&["init", "--undo"]));
    assert_eq!(get(&world, LOCAL), dead);
    let home = world.outside("home").join(".claude/settings.json");
    put(&home, b"{\"disableAllHooks\": true}");
    std::fs::remove_file(world.root().join(LOCAL)).unwrap();
    let said = world.says(CLAUDE);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("disableAllHooks"), "{said:?}");
}

#[test]
fn links_are_followed_at_home_and_not_out_of_a_repo() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let world = World::new();
    let real = world.outside("dotfiles/settings.json");
    put(&real, b"{\n  \"model\": \"x\"\n}\n");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::create_dir_all(world.outside("home/.claude")).unwrap();
    let link = world.outside("home/.claude/settings.json");
    symlink(&real, &link).unwrap();
    fine(&world.says(&with(CLAUDE, &["--user"])));
    assert!(link.is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let handlers = handlers(&std::fs::read_to_string(&real).unwrap());
    let state = world.state().display().to_string();
    for (event, handler) in &handlers {
        let args = handler["args"].to_string();
        assert!(
            args.contains("\"user\"") && args.contains("--require-trust") && args.contains(&state),
            "{event}: {args}"
        );
    }
    assert!(handlers["Stop"]["timeout"] == 3600);
    assert!(!world.root().join("checkrein.toml").exists());
    // What is for all repos is not taken back with a repo's.
    let said = world.says(&["init", "--undo"]);
    assert!(
        said.stdout.contains("checkrein init --undo --user"),
        "{said:?}"
    );
    assert!(said.stdout.contains("nothing of ours"), "{said:?}");
    fine(&world.says(&["init", "--undo", "--user"]));
    assert_eq!(std::fs::read(&real).unwrap(), b"{\n  \"model\": \"x\"\n}\n");
    assert!(link.is_symlink());

    std::fs::create_dir_all(world.root().join(".claude")).unwrap();
    symlink(&real, world.root().join(LOCAL)).unwrap();
    let said = world.says(CLAUDE);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("out of this repo"), "{said:?}");
    assert_eq!(std::fs::read(&real).unwrap(), b"{\n  \"model\": \"x\"\n}\n");
}

#[test]
fn codex_s_review_is_a_person_s_act() {
    let world = World::new();
    let config = world.outside("home/.codex/config.toml");
    put(&config, b"# mine\nmodel = \"m\"\n");
    let said = world.says(CODEX);
    fine(&said);
    // No terminal, so nobody was asked and nothing written.
    assert!(
        said.stdout.contains("to do    Codex") && said.stdout.contains("say yes twice"),
        "{said:?}"
    );
    assert_eq!(std::fs::read(&config).unwrap(), b"# mine\nmodel = \"m\"\n");
    let waits = "Codex runs no hook yet: first do what is said above. Then:\nUse your agents";
    assert!(said.stdout.contains(waits), "{said:?}");
    // Reviewed and the repo trusted, nothing is left to do.
    let top = world.root().canonicalize().unwrap();
    let trusts = format!(
        "[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        top.display()
    );
    put(&config, trusts.as_bytes());
    let said = Terminal::new(&world)
        .with("NO_COLOR", "1")
        .typing("y\n")
        .says(CODEX);
    fine(&said);
    assert!(!said.stdout.contains("no hook yet"), "{said:?}");
    assert!(
        said.stdout.contains("Use your agents as before"),
        "{said:?}"
    );
}

#[test]
fn ctrl_c_at_the_question_ends_it() {
    let world = World::new();
    put(
        &world.outside("home/.codex/config.toml"),
        b"model = \"m\"\n",
    );
    let before = snapshot(&world);
    let terminal = Terminal::new(&world).with("NO_COLOR", "1");
    let said = terminal.leaving_at("[y/N]").says(CODEX);
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(
        said.stdout.contains(
            "\ncheckrein: interrupted: the hooks are in, your review is not. Take it back: checkrein init --undo\n"
        ),
        "{said:?}"
    );
    let exclude = get(&world, ".git/info/exclude");
    assert!(exclude.contains("/.codex/hooks.json\n"), "{exclude}");
    fine(&world.says(&["init", "--undo"]));
    assert_eq!(snapshot(&world), before);
}

#[test]
fn ctrl_c_while_a_check_is_tried_leaves_nothing() {
    let world = World::new();
    let ready = world.pipe("ready");
    let check = format!("test:\n\t@echo ready > '{}'; sleep 613\n", ready.display());
    world.write("Makefile", &check);
    let before = snapshot(&world);
    let init = start(&mut world.checkrein(CLAUDE), b"");
    assert_eq!(read_line(&ready), "ready\n");
    signal(&init, rustix::process::Signal::INT);
    let said = Said::of(&init.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert_eq!(snapshot(&world), before);
    gone(&world);
}

#[test]
fn it_says_which_folder_it_is_about() {
    let world = World::new();
    world.write("below/README.md", "");
    let within = |world: &World| {
        let mut init = world.checkrein(&with(CLAUDE, &["--dry-run"]));
        Said::of(
            &init
                .current_dir(world.root().join("below"))
                .output()
                .unwrap(),
        )
    };
    let said = within(&world);
    let top = world.root().canonicalize().unwrap();
    let named = format!("In {} (the top of this repo):", top.display());
    assert!(said.stderr.contains(&named), "{said:?}");
    let said = world.says(&with(CLAUDE, &["--dry-run"]));
    assert!(!said.stderr.contains("the top of this repo"), "{said:?}");

    let world = World::without_git();
    world.write("below/README.md", "");
    assert!(!within(&world).stderr.contains("no git repository"));
    world.config("");
    let said = within(&world);
    let top = world.root().canonicalize().unwrap();
    let named = format!("{} has a checkrein.toml: run it there", top.display());
    assert!(said.stderr.contains(&named), "{said:?}");
}

#[test]
fn without_a_note_our_entries_still_come_out() {
    let world = World::new();
    put(&world.root().join(LOCAL), b"{\n  \"model\": \"x\"\n}\n");
    fine(&world.says(CLAUDE));
    std::fs::remove_dir_all(world.state()).unwrap();
    let said = world.says(&["init", "--undo"]);
    fine(&said);
    assert_eq!(get(&world, LOCAL), "{\n  \"model\": \"x\"\n}\n", "{said:?}");
}

#[test]
fn a_linked_worktree_uses_the_place_where_codex_looks() {
    let world = World::new();
    world.git(&["worktree", "add", "-q", "../linked"]);
    let linked = world.outside("linked");
    let mut command = world.checkrein(CODEX);
    let said = Said::of(
        &command
            .current_dir(&linked)
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    );
    fine(&said);
    assert!(world.root().join(HOOKS).exists() && !linked.join(HOOKS).exists());
    assert!(linked.join("checkrein.toml").exists());
    let mut command = world.checkrein(&["init", "--undo"]);
    fine(&Said::of(
        &command
            .current_dir(&linked)
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    ));
    assert!(!world.root().join(".codex").exists());
}

#[test]
fn agents_are_found_by_what_they_leave() {
    let world = World::new();
    let mut command = world.checkrein(&["init", "--dry-run"]);
    // No agent on this PATH.
    let git = which("git");
    let said = Said::of(&command.env("PATH", git.parent().unwrap()).output().unwrap());
    if said.code == Some(2) {
        assert!(said.stderr.contains("--agent claude-code"), "{said:?}");
    }
    std::fs::create_dir_all(world.outside("home/.codex")).unwrap();
    let said = world.says(&["init", "--dry-run"]);
    fine(&said);
    assert!(
        said.stderr.contains("Codex is here: ~/.codex") || said.stderr.contains("on PATH"),
        "{said:?}"
    );
    let said = world.says(&["init", "--agent", "cursor"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("claude-code, codex"), "{said:?}");
}

fn which(program: &str) -> PathBuf {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .unwrap();
    PathBuf::from(String::from_utf8_lossy(&found.stdout).trim())
}

#[test]
fn what_somebody_else_wrote_between_two_inits_is_not_undone() {
    let world = World::new();
    let exclude = world.root().join(".git/info/exclude");
    fine(&world.says(CLAUDE));
    // Claude Code's "don't ask again" writes the file anew; a person adds a pattern.
    let local = world.root().join(LOCAL);
    let mut settings: Value = serde_json::from_str(&get(&world, LOCAL)).unwrap();
    settings["permissions"] = serde_json::json!({ "allow": ["Bash(ls:*)"] });
    put(
        &local,
        serde_json::to_string_pretty(&settings).unwrap().as_bytes(),
    );
    let mut patterns = std::fs::read_to_string(&exclude).unwrap();
    patterns.push_str("/mine\n");
    put(&exclude, patterns.as_bytes());
    fine(&world.says(&["init", "--agent", "claude-code", "--agent", "codex"]));
    assert_eq!(handlers(&get(&world, LOCAL)).len(), 10);
    fine(&world.says(&["init", "--undo"]));
    let left: Value = serde_json::from_str(&get(&world, LOCAL)).unwrap();
    assert_eq!(
        left,
        serde_json::json!({ "permissions": { "allow": ["Bash(ls:*)"] } })
    );
    let patterns = std::fs::read_to_string(&exclude).unwrap();
    assert!(patterns.contains("/mine\n"), "{patterns}");
    for ours in ["settings.local.json", "hooks.json"] {
        assert!(!patterns.contains(ours), "{patterns}");
    }
}

#[test]
fn one_file_that_cannot_be_undone_keeps_no_other_from_it() {
    let world = World::new();
    fine(&world.says(&["init", "--agent", "claude-code", "--agent", "codex"]));
    put(&world.root().join(LOCAL), b"{ half");
    let said = world.says(&["init", "--undo"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("settings.local.json") && said.stderr.contains("by hand"),
        "{said:?}"
    );
    assert!(!world.root().join(HOOKS).exists());
    put(&world.root().join(LOCAL), b"{}");
    let said = world.says(&["init", "--undo"]);
    fine(&said);
    assert!(!world.root().join(LOCAL).exists(), "{said:?}");
}

#[cfg(unix)]
#[test]
fn a_binary_by_another_name_installs_and_goes_again() {
    let world = World::new();
    let other = world.outside("rein 2");
    // Not by this process: a program that somebody has open for writing cannot be started, and the children that other
    // tests fork meanwhile would have.
    let mut copy = std::process::Command::new("cp");
    let copied = copy.arg(env!("CARGO_BIN_EXE_checkrein")).arg(&other);
    assert!(copied.status().unwrap().success());
    put(
        &world.root().join(LOCAL),
        br#"{ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "true" }] }] } }"#,
    );
    let before = snapshot(&world);
    let run = |words: &[&str]| {
        let mut command = world.hermetic(&other);
        Said::of(&command.args(words).stdin(Stdio::null()).output().unwrap())
    };
    let both = ["init", "--agent", "claude-code", "--agent", "codex"];
    for words in [&both[..], &["init", "--agent", "claude-code", "--user"]] {
        fine(&run(words));
        // A second time finds the first's entries.
        fine(&run(words));
        let text = get(&world, LOCAL);
        assert_eq!(text.matches("\"Stop\"").count(), 1, "{text}");
    }
    // Also where somebody has changed the file since.
    let text = get(&world, LOCAL).replace("\"true\"", "\"false\"");
    put(&world.root().join(LOCAL), text.as_bytes());
    fine(&run(&["init", "--undo"]));
    fine(&run(&["init", "--undo", "--user"]));
    let text = get(&world, LOCAL).replace("\"false\"", "\"true\"");
    put(&world.root().join(LOCAL), text.as_bytes());
    assert_eq!(snapshot(&world), before);
}

#[cfg(unix)]
#[test]
fn init_writes_nothing_if_any_file_is_unusable() {
    let check = |prepare: &dyn Fn(&World), words: &[&str], why: &str| {
        let world = World::new();
        prepare(&world);
        let before = std::fs::read_dir(world.root()).unwrap().count();
        let said = world.says(words);
        assert_eq!(said.code, Some(2), "{words:?} {said:?}");
        assert!(said.stderr.contains(why), "{said:?}");
        assert!(!world.root().join("checkrein.toml").exists(), "{said:?}");
        assert!(!world.root().join(LOCAL).exists(), "{said:?}");
        let after = std::fs::read_dir(world.root()).unwrap().count();
        assert_eq!(after, before, "{words:?} {said:?}");
    };
    let both = ["init", "--agent", "claude-code", "--agent", "codex"];
    check(&|world| world.write(HOOKS, "{ \"hooks\": "), &both, HOOKS);
    check(
        &|world| {
            std::fs::create_dir_all(world.root().join(HOOKS)).unwrap();
        },
        &both,
        HOOKS,
    );
    check(
        &|world| put(&world.root().join(".git/info/exclude"), b"\xff"),
        CLAUDE,
        "exclude",
    );
    check(
        &|world| put(&world.root().join(".git/index"), b"DIRC"),
        CLAUDE,
        "it is not known which files git tracks",
    );
    check(
        &|world| put(&world.outside("home/.codex/config.toml"), b"\xff"),
        CODEX,
        "config.toml",
    );
}

#[cfg(unix)]
#[test]
fn a_config_that_is_a_link_to_nowhere_stays() {
    let world = World::new();
    let link = world.root().join("checkrein.toml");
    std::os::unix::fs::symlink("elsewhere/checkrein.toml", &link).unwrap();
    let said = world.says(CLAUDE);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("leads nowhere"), "{said:?}");
    assert_eq!(
        std::fs::read_link(&link).unwrap(),
        Path::new("elsewhere/checkrein.toml")
    );
    assert!(!world.root().join(".claude").exists(), "{said:?}");
}
