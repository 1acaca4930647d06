//! What is kept is for its owner only, also where the umask takes nothing away from anybody.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::agent::Agent;
use crate::world::{World, feed};

/// Runs what `command` would, under umask 0.
fn without_umask(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "umask 0; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell.stdin(Stdio::null());
    shell
}

/// Everything at and below a folder, but links.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if path.is_dir() && !path.is_symlink() {
            let entries = std::fs::read_dir(&path).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    found.retain(|path| !path.is_symlink());
    found
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

/// What others may do something with.
fn open_to_others(world: &World) -> Vec<String> {
    let kept = [world.state(), world.root().join(".checkrein")];
    let all = kept.iter().flat_map(|folder| all_below(folder));
    let open = all.filter(|path| mode(path) & 0o077 != 0);
    open.map(|path| format!("{:o} {}", mode(&path), path.display()))
        .collect()
}

/// Goes wherever something is kept.
fn visit_every_place(world: &World) {
    let say = |args: &[&str]| without_umask(&world.checkrein(args)).output().unwrap();
    let agent = Agent::new(world, "claude-code");
    let tell = |event: &str, more: serde_json::Value| {
        let message = agent.message(event, more).to_string();
        feed(&mut without_umask(&agent.hook()), message.as_bytes())
    };
    tell("UserPromptSubmit", json!({ "prompt": "mend it" }));
    let call =
        json!({ "tool_name": "Bash", "tool_input": { "command": "git push" }, "tool_use_id": "1" });
    let asked = tell("PreToolUse", call);
    assert!(asked.stdout.contains("\"ask\""), "{asked:?}");
    world.write("work", "1");
    let stop = json!({ "stop_hook_active": false, "last_assistant_message": "Done." });
    let said = tell("Stop", stop);
    assert_eq!(said.code, Some(0), "{said:?}");
    say(&["check"]);
    say(&["run", "--attempts", "2", "--", "sh", "-c", "date >> work"]);
    say(&["approvals"]);
    say(&["show"]);
    say(&["doctor"]);
    say(&["off", "--for", "1m", "--reason", "x"]);
    world.write(
        "a.patch",
        "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch\n",
    );
    let applied = say(&["patch", "apply", "a.patch"]);
    assert!(applied.status.success(), "{applied:?}");
    say(&["init", "--agent", "claude-code"]);
    if cfg!(target_os = "linux") {
        say(&["run", "--confine", "--", "true"]);
    }
}

fn world() -> World {
    let world = World::new();
    world.write(
        "own.rules",
        "prefix_rule(pattern = [\"git\", \"push\"], decision = \"prompt\", justification = \"x\")\n",
    );
    world.config(&format!(
        "[policy]\nrules = [\"own.rules\"]\n{}",
        world.counted("tests", "echo out; exit 1")
    ));
    world.commit();
    world
}

#[test]
fn nothing_that_is_kept_is_open_to_others() {
    let world = world();
    visit_every_place(&world);
    assert!(all_below(&world.state()).len() > 10);
    assert!(world.root().join(".checkrein/logs").is_dir());
    assert_eq!(open_to_others(&world), Vec::<String>::new());
}

#[test]
fn what_was_open_to_others_is_tightened() {
    let world = world();
    visit_every_place(&world);
    for folder in [world.store_folder(), world.root().join(".checkrein")] {
        for path in all_below(&folder) {
            let open =
                mode(&path) | 0o066 | (mode(&path) & 0o100) >> 3 | (mode(&path) & 0o100) >> 6;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(open)).unwrap();
        }
    }
    // The folder of the repo's state itself is the wall.
    let state = world.store_folder();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(open_to_others(&world).len() > 5);
    without_umask(&world.checkrein(&["check"]))
        .output()
        .unwrap();
    let logs = world.root().join(".checkrein");
    let open = open_to_others(&world);
    // In the repo the folders are closed; the old logs in them are out of reach.
    let reachable: Vec<&String> = open
        .iter()
        .filter(|line| !line.contains(&format!("{}/", logs.display())))
        .collect();
    assert_eq!(reachable, Vec::<&String>::new());
    assert_eq!((mode(&logs), mode(&logs.join("logs"))), (0o700, 0o700));
}
