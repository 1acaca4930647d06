//! What lies where a small file should be and never ends: a pipe that nobody writes into, a
//! device, more bytes than a config has. Every reader says which file, and goes on by stance.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;
use serde_json::json;

use crate::agent::{Agent, Answer, read};
use crate::terminal::Terminal;
use crate::world::{Said, World, start};

const WHAT: &str = "no regular file";

/// A pipe, or a device that has always more to say, at `path`.
const ENDLESS: [fn(&Path); 2] = [
    |path| {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    },
    |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
];

/// What a process says within a time that only a hanging one takes.
fn ends(mut child: Child) -> Said {
    let until = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Said::of(&child.wait_with_output().unwrap())
}

fn told(agent: &Agent<'_>, message: &serde_json::Value) -> (Answer, Said) {
    let said = ends(start(&mut agent.hook(), message.to_string().as_bytes()));
    let event = message["hook_event_name"].as_str().unwrap();
    (read(agent.name, event, &said), said)
}

/// A tool call and a stop are answered by stance, and `file` is named.
#[track_caller]
fn answered_by_stance(agent: &Agent<'_>, file: &Path) {
    let name = file.display().to_string();
    let (answer, said) = told(agent, &agent.call("1", "ls > list"));
    assert!(answer.denied().contains(&name), "{answer:?}");
    assert!(said.stderr.contains(&name), "{said:?}");
    let (answer, _) = told(agent, &agent.stop_message(false, "Done."));
    assert!(answer.notice().contains(&name), "{answer:?}");
}

fn in_store(world: &World, name: &str) -> PathBuf {
    // The folder is there once somebody was judged.
    Agent::named(world, "claude-code", "first").prompt("go");
    world.store_folder().join(name)
}

#[test]
fn an_endless_off_json_blocks_no_hook() {
    for put in ENDLESS {
        let world = World::new();
        world.config("[policy]\nrules = [\"own.rules\"]\n");
        world.write("own.rules", "prefix_rule(['rm'], 'forbidden')\n");
        let off = in_store(&world, "off.json");
        put(&off);
        let agent = Agent::new(&world, "claude-code");
        let (answer, said) = told(&agent, &agent.call("1", "rm x"));
        answer.denied();
        assert!(said.stderr.contains(WHAT), "{said:?}");
        assert!(said.stderr.contains("off.json"), "{said:?}");
        assert!(said.stderr.contains("checkrein on"), "{said:?}");
        // That is true.
        let on = Terminal::new(&world).says(&["on"]);
        assert_eq!(on.code, Some(0), "{on:?}");
        assert!(off.symlink_metadata().is_err());
    }
}

#[test]
fn an_endless_held_json_blocks_no_hook() {
    for put in ENDLESS {
        let world = World::with_check("true");
        let held = in_store(&world, "held.json");
        put(&held);
        let agent = Agent::named(&world, "claude-code", "later");
        answered_by_stance(&agent, &held);
        let (_, said) = told(&agent, &agent.call("2", "ls"));
        assert!(said.stderr.contains("checkrein seal"), "{said:?}");
    }
}

#[test]
fn an_endless_held_lock_blocks_no_hook() {
    for put in ENDLESS {
        let world = World::with_check("exit 1");
        let lock = in_store(&world, "held.lock");
        put(&lock);
        world.config("# edited\n");
        world.write("work", "1");
        let agent = Agent::named(&world, "claude-code", "first");
        let (answer, _) = told(&agent, &agent.stop_message(false, "Done."));
        let notice = answer.notice();
        assert!(notice.contains(&lock.display().to_string()), "{notice}");
        assert!(notice.contains(WHAT), "{notice}");
    }
}

#[test]
fn an_endless_trust_json_blocks_no_hook() {
    for put in ENDLESS {
        let world = World::with_check("true");
        let trust = in_store(&world, "trust.json");
        put(&trust);
        let mut agent = Agent::named(&world, "claude-code", "user");
        agent.extra = vec!["--require-trust".to_owned(), "--state".to_owned()];
        agent.extra.push(world.state().display().to_string());
        let begin = agent.message("UserPromptSubmit", json!({ "prompt": "go" }));
        let (answer, _) = told(&agent, &begin);
        let notice = answer.notice();
        assert!(notice.contains("is not approved"), "{notice}");
        assert!(notice.contains(&trust.display().to_string()), "{notice}");
        world.write("work", "1");
        let (answer, _) = told(&agent, &agent.stop_message(false, "Done."));
        answer.notice();
        assert_eq!(world.runs("tests"), 0);
    }
}

#[test]
fn an_endless_installed_json_blocks_no_init() {
    for put in ENDLESS {
        let world = World::new();
        std::fs::create_dir_all(world.state()).unwrap();
        let installed = world.state().join("installed.json");
        put(&installed);
        let mut init = world.checkrein(&["init", "--undo"]);
        let init = init.stdout(Stdio::piped()).stderr(Stdio::piped());
        let said = ends(init.stdin(Stdio::null()).spawn().unwrap());
        assert_ne!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.contains(WHAT), "{said:?}");
        assert!(said.stderr.contains("installed.json"), "{said:?}");
    }
}

#[test]
fn endless_files_do_not_block_doctor() {
    for put in ENDLESS {
        let world = World::with_check("true");
        for file in [
            ".claude/settings.json",
            ".codex/config.toml",
            ".codex/hooks.json",
            ".github/workflows/ci.yml",
            "agent.py",
        ] {
            let file = world.root().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            put(&file);
        }
        for args in [&["doctor", "--json"][..], &["doctor", "--audit", "--json"]] {
            let mut doctor = world.checkrein(args);
            let doctor = doctor.stdout(Stdio::piped()).stderr(Stdio::piped());
            let said = ends(doctor.stdin(Stdio::null()).spawn().unwrap());
            assert!(said.json().is_object(), "{said:?}");
        }
    }
}

#[test]
fn an_endless_config_blocks_no_command() {
    for put in ENDLESS {
        for own in [false, true] {
            let world = World::new();
            let config = match own {
                false => world.root().canonicalize().unwrap(),
                true => world.outside("home/config/checkrein"),
            };
            std::fs::create_dir_all(&config).unwrap();
            let config = config.join("checkrein.toml");
            put(&config);
            answered_by_stance(&Agent::new(&world, "claude-code"), &config);
            let mut check = world.checkrein(&["check"]);
            let check = check.stdout(Stdio::piped()).stderr(Stdio::piped());
            let said = ends(check.stdin(Stdio::null()).spawn().unwrap());
            assert_eq!(said.code, Some(2), "{said:?}");
            assert!(said.stderr.contains(WHAT), "{said:?}");
        }
    }
}

#[test]
fn endless_tree_cache_files_block_no_hook() {
    for put in ENDLESS {
        let world = World::with_check("true");
        let agent = Agent::new(&world, "claude-code");
        agent.prompt("mend it");
        world.write("work", "1");
        assert_eq!(agent.stop(), Answer::Nothing);
        agent.prompt("go on");
        let mut put_there = 0;
        let tracked = world.store_folder().join("tracked");
        for file in std::fs::read_dir(tracked).unwrap().flatten() {
            std::fs::remove_file(file.path()).unwrap();
            put(&file.path());
            put_there += 1;
        }
        assert_eq!(put_there, 1);
        // Files that are young are not remembered: nothing is there yet.
        let name = Digest::hash_bytes(world.root().as_os_str().as_encoded_bytes()).to_hex();
        let tree = world.store_folder().join("tree");
        std::fs::create_dir_all(&tree).unwrap();
        put(&tree.join(&name[..24]));
        world.write("work", "2");
        let (answer, _) = told(&agent, &agent.stop_message(false, "Done."));
        assert_eq!(answer, Answer::Nothing);
        assert_eq!(world.ending(), "task_complete");
    }
}

#[test]
fn an_endless_git_pointer_blocks_no_hook() {
    for put in ENDLESS {
        let world = World::without_git();
        put(&world.root().join(".git"));
        let agent = Agent::new(&world, "claude-code");
        told(&agent, &agent.call("1", "ls"));
    }
}

#[test]
fn a_config_and_rules_that_are_too_large() {
    let large = format!("# {}\n", "x".repeat(9 << 20));
    let world = World::new();
    world.config(&large);
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("larger than 8 MiB"), "{said:?}");
    assert!(said.stderr.contains("checkrein.toml"), "{said:?}");
    world.config("[policy]\nrules = [\"own.rules\"]\n");
    world.write("own.rules", &large);
    let rules = world.root().canonicalize().unwrap().join("own.rules");
    answered_by_stance(&Agent::new(&world, "claude-code"), &rules);
}
