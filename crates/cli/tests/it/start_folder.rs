//! A command is judged where it runs: in the folder that its call names, in the folder that the
//! agent works in, and through each `cd` of its own.

use serde_json::{Value, json};

use crate::agent::{Agent, Answer, BOTH};
use crate::mcp_client::{Client, text};
use crate::world::{World, feed};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_server.py");

const PROTECT: &str = "[policy]\nprotect = [\"tests/**\"]\n[loops]\npreset = \"off\"\n";

fn world(config: &str) -> World {
    let world = World::new();
    world.config(config);
    world.write("tests/a.py", "1\n");
    world.write("src/b.py", "1\n");
    world.write("app/[id]/page.js", "1\n");
    std::os::unix::fs::symlink("tests", world.root().join("lnk")).unwrap();
    world.commit();
    world
}

/// The reason of a refusal under `hook generic`; `None` if the call may run.
fn generic(world: &World, nth: usize, tool: &str, args: &Value) -> Option<String> {
    let line = json!({
        "type": "tool_call", "session": "generic-session", "id": nth.to_string(), "tool": tool, "args": args,
    });
    let said = feed(
        &mut world.checkrein(&["hook", "generic"]),
        line.to_string().as_bytes(),
    )
    .json();
    match said["decision"].as_str() {
        Some("allow") => None,
        Some("deny" | "ask") => Some(said["reason"].as_str().unwrap().to_owned()),
        other => panic!("{other:?}: {said}"),
    }
}

#[track_caller]
fn check(world: &World, calls: &[(&str, Value, Option<&str>)]) {
    for (nth, (tool, args, because)) in calls.iter().enumerate() {
        let refused = generic(world, nth, tool, args);
        match (because, &refused) {
            (Some(because), Some(text)) if text.contains(because) => {}
            (None, None) => {}
            _ => panic!("{tool} {args}: {refused:?}"),
        }
    }
}

#[test]
fn the_floor_counts_from_the_folder_of_the_call() {
    let world = world("[loops]\npreset = \"off\"\n");
    let system = Some("removes a part of the system");
    let vital = Some("`builtin:default` forbids this");
    check(
        &world,
        &[
            (
                "exec_command",
                json!({"cmd": "rm -rf *", "workdir": "/"}),
                vital,
            ),
            (
                "shell",
                json!({"command": ["bash", "-lc", "rm -rf *"], "workdir": "/"}),
                vital,
            ),
            (
                "shell",
                json!({"command": ["rm", "-rf", "etc"], "workdir": "/"}),
                system,
            ),
            ("bash", json!({"command": "rm -rf etc", "cwd": "/"}), system),
            (
                "run_shell_command",
                json!({"command": "rm -rf usr", "directory": "/"}),
                system,
            ),
            (
                "run_command",
                json!({"CommandLine": "rm -rf usr", "Cwd": "/"}),
                system,
            ),
            (
                "run_terminal_cmd",
                json!({"command": "rm -rf ../usr", "working_directory": "/tmp"}),
                system,
            ),
            (
                "mcp__x__run",
                json!({"command": "rm -rf usr", "options": {"workingDirectory": "/"}}),
                system,
            ),
            (
                "mcp__x__run",
                json!({"command": "rm -rf usr", "dir": "/"}),
                system,
            ),
            (
                "mcp__x__run",
                json!({"command": "rm -rf usr", "path": "/"}),
                system,
            ),
            // Which of the two counts is not known.
            (
                "mcp__x__run",
                json!({"command": "rm -rf usr", "cwd": "src", "dir": "/"}),
                system,
            ),
            (
                "bash",
                json!({"command": "cd usr && rm -rf ../etc", "cwd": "/"}),
                system,
            ),
            (
                "exec_command",
                json!({"cmd": "rm -rf *", "workdir": "~"}),
                Some("removes a home"),
            ),
            (
                "exec_command",
                json!({"cmd": "rm -rf usr", "workdir": "src"}),
                None,
            ),
            (
                "exec_command",
                json!({"cmd": "rm -rf *", "workdir": "/tmp/build"}),
                None,
            ),
            ("exec_command", json!({"cmd": "ls", "workdir": "/"}), None),
            (
                "exec_command",
                json!({"cmd": "rm -rf usr", "workdir": ""}),
                None,
            ),
        ],
    );
    world.replays("generic-session");
}

#[test]
fn what_is_protected_is_so_from_the_folder_of_the_call() {
    let world = world(PROTECT);
    let root = world.root().display().to_string();
    let protected = Some("protected");
    check(
        &world,
        &[
            (
                "bash",
                json!({"command": "rm a.py", "workdir": "tests"}),
                protected,
            ),
            (
                "bash",
                json!({"command": "echo 1 > a.py", "cwd": "tests"}),
                protected,
            ),
            (
                "bash",
                json!({"command": "sed -i s/1/2/ a.py", "cwd": format!("{root}/tests")}),
                protected,
            ),
            (
                "shell",
                json!({"command": ["touch", "new.py"], "workdir": "./src/../tests"}),
                protected,
            ),
            (
                "bash",
                json!({"command": "rm ../tests/a.py", "cwd": "src"}),
                protected,
            ),
            // By where the folder really lies.
            (
                "bash",
                json!({"command": "rm a.py", "cwd": "lnk"}),
                protected,
            ),
            (
                "bash",
                json!({"command": "rm $X", "cwd": "tests"}),
                Some("protected"),
            ),
            (
                "mcp__x__run",
                json!({"command": "rm a.py", "cwd": {"uri": "tests"}}),
                Some("protected"),
            ),
            (
                "bash",
                json!({"command": "rm a.py", "cwd": "$WHERE"}),
                Some("protected"),
            ),
            (
                "bash",
                json!({"command": "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a.py\n*** End Patch\nEOF", "workdir": "tests"}),
                protected,
            ),
            ("bash", json!({"command": "rm a.py", "cwd": "src"}), None),
            (
                "bash",
                json!({"command": "rm tests/a.py", "cwd": "src"}),
                None,
            ),
            ("bash", json!({"command": "cat a.py", "cwd": "tests"}), None),
            (
                "bash",
                json!({"command": "cd ../src && rm b.py", "cwd": "tests"}),
                None,
            ),
            (
                "bash",
                json!({"command": "touch page.js", "cwd": "app/[id]"}),
                None,
            ),
            (
                "mcp__x__run",
                json!({"command": "ls -l", "path": "tests"}),
                None,
            ),
        ],
    );
    world.replays("generic-session");
}

/// Agents say with each call where their shell stands: Claude Code's follows its `cd`.
#[test]
fn an_agents_own_folder_is_where_its_commands_start() {
    let world = world(PROTECT);
    for name in BOTH {
        let agent = Agent::new(&world, name);
        agent.prompt("change it");
        let told = |folder: &str, command: &str| {
            let mut message = agent.call(&agent.next_id(), command);
            message["cwd"] = json!(folder);
            agent.tell(&message)
        };
        let root = world.root().display().to_string();
        let tests = format!("{root}/tests");
        let linked = format!("{root}/lnk");
        for (folder, command) in [
            (tests.as_str(), "rm a.py"),
            (&tests, "rm -rf ."),
            (&tests, "mv a.py ../src"),
            (&linked, "rm a.py"),
            ("/", "rm -rf *"),
            ("/", "rm -rf etc"),
            (&format!("{root}/.claude"), "rm settings.json"),
            (&format!("{root}/.codex"), "echo > hooks.json"),
        ] {
            told(folder, command).denied();
        }
        for (folder, command) in [
            (tests.as_str(), "cat a.py"),
            (&tests, "rm ../src/b.py"),
            (&root, "rm -f src/b.py"),
            ("/tmp/elsewhere", "rm -rf a.py"),
            (&format!("{root}/.claude"), "cat settings.json"),
        ] {
            assert_eq!(told(folder, command), Answer::Nothing, "{folder} {command}");
        }
        world.replays(&agent.session);
    }
}

#[test]
fn behind_the_proxy_a_call_names_its_folder_as_well() {
    let world = world(PROTECT);
    if feed(world.hermetic("python3").args(["-c", "pass"]), b"").code != Some(0) {
        return;
    }
    let mut client = Client::greeted(
        &world,
        &["mcp-proxy", "--", "python3", SERVER, "any"],
        "files",
    );
    for (args, because) in [
        (
            json!({"command": "rm a.py", "cwd": "tests"}),
            Some("protected"),
        ),
        (
            json!({"command": "rm -rf *", "workdir": "/"}),
            Some("`builtin:default` forbids this"),
        ),
        (
            json!({"command": "rm settings.json", "directory": ".claude"}),
            Some("hooks"),
        ),
        (json!({"command": "rm a.py", "cwd": "src"}), None),
        (json!({"command": "rm -rf build"}), None),
    ] {
        let result = client.call("run", args.clone());
        let refused = (result["isError"] == true).then(|| text(&result));
        match (because, &refused) {
            (Some(because), Some(text)) if text.contains(because) => {}
            (None, None) => {}
            _ => panic!("{args}: {refused:?}"),
        }
    }
    client.bye();
    world.replays(world.task()["session"].as_str().unwrap());
}

/// What judges the work is safe from every folder, and what only reads it is not held up.
#[test]
fn self_protection_follows_the_commands_folder() {
    let world = world("[loops]\npreset = \"off\"\n");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("change it");
    for command in [
        "cd ~/.local/state && rm -rf checkrein",
        "cd ~/.local && rm -rf state",
        "cd ~ && rm -rf .local/state",
        "cd \"$HOME\" && mv .local/state/checkrein /tmp/x",
        "cd ~/.local/state/checkrein && find . -delete",
        "cd ~/.local/state/checkrein && rm -rf *",
        "cd ~/.local/state && rm -rf check*",
        "find ~/.local/state -delete",
        "pushd ~/.local/state; rm -r ./checkrein; popd",
        "(cd ~/.local/state/checkrein && echo > x/off.json)",
        "cd .claude && rm settings.json",
        "command cd .claude && rm settings.json",
        "eval 'cd .claude'; rm settings.json",
        "env -C .claude rm settings.json",
        "env --chdir=.codex -- tee config.toml",
        "sudo -D .claude rm settings.json",
        "cd src && env -C ../.claude bash -c 'rm *.json'",
        "cd .claude && mv settings.json x",
        "cd .claude; > settings.local.json",
        "cd .claude && echo '{}' | tee settings.json",
        "cd .claude && sed -i s/a/b/ settings.json",
        "cd .claude && rm *.json",
        "cd .claude && chattr -i settings.json",
        "cd .claude && python3 -c \"open('settings.json', 'w').write('{}')\"",
        "D=.claude; cd $D && rm settings.json",
        "cd .codex && cp /tmp/x hooks.json",
        "cd src && rm -rf ../.claude",
        "find .claude -name 'settings*.json' -delete",
        "find .claude -delete",
        "rm -rf .claude/*",
        "ln .claude/settings.json x",
        "cd ../state && rm -rf *",
        "rm -rf ../state",
    ] {
        let refused = agent.shell(command, "");
        let Answer::Denied(text) = &refused else {
            panic!("{command}: {refused:?}");
        };
        let own = ["judges this work", "hooks check this work"];
        assert!(
            own.iter().any(|own| text.contains(own)),
            "{command}: {text}"
        );
    }
    for command in [
        "cd .claude && cat settings.json",
        "env -C .claude cat settings.json",
        "env -C /tmp rm settings.json",
        "cd .claude && grep -n hooks settings.json > /tmp/s.txt",
        "cd .claude && touch commands/x.md",
        "cd .claude && rm -rf worktrees/x",
        "cd .claude && git diff settings.json",
        "cd ~/.local/state/checkrein && ls -la && du -sh .",
        "cp ~/.local/state/checkrein/x/store.db /tmp/copy.db",
        "dd if=.claude/settings.json of=/tmp/x",
        "rsync -a .claude/settings.json /tmp/backup/",
        "git add .claude/settings.json && git commit -m 'hooks'",
        "cd /tmp/x && rm -rf .",
        "cd build && rm -rf .local state checkrein",
        "rm -rf build/.local",
        "find . -name '*.pyc' -delete",
        "find . -type f -empty -delete",
        "docker exec web rm -rf /var/lib/app",
        "docker exec web rm -rf /",
        "tar xzf x.tar.gz -C src",
        "cd src && echo x > settings.json && rm -rf state",
    ] {
        assert_eq!(agent.shell(command, ""), Answer::Nothing, "{command}");
    }
    world.replays(&agent.session);
}
