//! Repositories whose config names programs. Git runs them when it is asked the simplest things;
//! Checkrein runs none of them, wherever it has to know what git tracks.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::agent::BOTH;
use crate::terminal::executable;
use crate::world::{World, feed};

/// A repository that would like to run something.
struct Trap {
    name: &'static str,
    /// Makes it in a fresh world, and says in which folder the agent works.
    plant: fn(&World) -> PathBuf,
    /// What makes git itself run it; nothing where only what git does by itself would.
    springs: &'static [&'static str],
}

const TRAPS: &[Trap] = &[
    Trap {
        name: "a bare repository among the files of a clone, with a lazy fetch",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world))));
            world.git(&["init", "-q", "clone"]);
            let bare = world.root().join("clone/sub");
            std::fs::create_dir_all(&bare).unwrap();
            for entry in std::fs::read_dir(world.root().join(".git")).unwrap() {
                let entry = entry.unwrap();
                std::fs::rename(entry.path(), bare.join(entry.file_name())).unwrap();
            }
            std::fs::remove_dir_all(world.root().join(".git")).unwrap();
            bare
        },
        springs: &["ls-files"],
    },
    Trap {
        name: "a shipped repository with a lazy fetch by ext",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world))));
            world.root()
        },
        springs: &["ls-files"],
    },
    Trap {
        name: "a lazy fetch by core.sshCommand",
        plant: |world| {
            let ssh = format!("[core]\n\tsshCommand = {}\n", bait(world));
            missing_tree(world, &(promisor("ssh://localhost/x") + &ssh));
            world.root()
        },
        springs: &["ls-files"],
    },
    Trap {
        name: "a lazy fetch by remote.origin.uploadpack and a hook of pack-objects",
        plant: |world| {
            let url = world.outside("elsewhere");
            world.git(&["init", "-q", &url.display().to_string()]);
            let programs = format!(
                "\tuploadpack = {0}\n[uploadpack]\n\tpackObjectsHook = {0}\n",
                bait(world)
            );
            missing_tree(world, &(promisor(&url.display().to_string()) + &programs));
            world.root()
        },
        springs: &["ls-files"],
    },
    Trap {
        name: "a folder below a shipped repository",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world))));
            world.write("kept/deep/file", "");
            world.root().join("kept/deep")
        },
        springs: &["ls-files", ":/"],
    },
    Trap {
        name: "a pointer to a repository of another name",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world))));
            std::fs::rename(world.root().join(".git"), world.root().join("objects")).unwrap();
            world.write(".git", "gitdir: objects\n");
            world.root()
        },
        springs: &["ls-files"],
    },
    Trap {
        name: "a linked worktree of a shipped repository",
        plant: |world| {
            missing_tree(world, "");
            let linked = world.root().join("linked");
            world.git(&["worktree", "add", "-q", "--detach", "linked", "empty"]);
            let sparse = world.root().join(".git/index");
            let own = world.root().join(".git/worktrees/linked");
            std::fs::copy(sparse, own.join("index")).unwrap();
            std::fs::copy(
                world.root().join(".git/config.worktree"),
                own.join("config.worktree"),
            )
            .unwrap();
            append(
                world,
                ".git/config",
                &promisor(&format!("ext::{}", bait(world))),
            );
            linked
        },
        springs: &["ls-files"],
    },
    Trap {
        name: "a submodule with a repository of its own",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world))));
            let (inner, outer) = (world.root().join("x"), world.root().join("outer"));
            std::fs::create_dir(&inner).unwrap();
            for moved in [".git", "kept"] {
                std::fs::rename(world.root().join(moved), inner.join(moved)).unwrap();
            }
            world.git(&["init", "-q", "outer"]);
            std::fs::rename(inner, outer.join("x")).unwrap();
            outer.join("x")
        },
        springs: &["ls-files"],
    },
    Trap {
        name: "core.fsmonitor",
        plant: |world| repository(world, &format!("[core]\n\tfsmonitor = {}\n", bait(world))),
        springs: &["status"],
    },
    Trap {
        name: "core.fsmonitor of a file that is included",
        plant: |world| {
            world.write("more", &format!("[core]\n\tfsmonitor = {}\n", bait(world)));
            repository(world, "[include]\n\tpath = ../more\n")
        },
        springs: &["status"],
    },
    Trap {
        name: "hooks of the repository",
        plant: |world| {
            let root = repository(world, "");
            for name in HOOKS {
                hook(world, &format!(".git/hooks/{name}"));
            }
            root
        },
        springs: &["checkout", "-b", "other"],
    },
    Trap {
        name: "hooks among the files, by core.hooksPath",
        plant: |world| {
            let root = repository(world, "[core]\n\thooksPath = hooks\n");
            for name in HOOKS {
                hook(world, &format!("hooks/{name}"));
            }
            root
        },
        springs: &["checkout", "-b", "other"],
    },
    Trap {
        name: "filters",
        plant: |world| {
            world.write(".gitattributes", "* filter=x\n");
            let root = repository(world, "");
            let filter = format!(
                "[filter \"x\"]\n\tclean = {0}\n\tsmudge = {0}\n\tprocess = {0}\n\trequired\n",
                bait(world)
            );
            append(world, ".git/config", &filter);
            world.write("file", "edited");
            root
        },
        springs: &["status"],
    },
    Trap {
        name: "textconv and an external diff",
        plant: |world| {
            world.write(".gitattributes", "file diff=x\n");
            let diff = format!(
                "[diff \"x\"]\n\ttextconv = {0}\n\tcommand = {0}\n[diff]\n\texternal = {0}\n",
                bait(world)
            );
            let root = repository(world, &diff);
            world.write("file", "edited");
            root
        },
        springs: &["diff"],
    },
    Trap {
        name: "a pager, an editor, an alias",
        plant: |world| {
            let settings = format!(
                "[core]\n\tpager = {0}\n\teditor = {0}\n[pager]\n\tls-files = {0}\n\trev-parse = {0}\n[alias]\n\tx = !{0}\n\tls-files = !{0}\n",
                bait(world)
            );
            repository(world, &settings)
        },
        springs: &["x"],
    },
    Trap {
        name: "core.alternateRefsCommand",
        plant: |world| {
            let other = world.outside("elsewhere").display().to_string();
            world.git(&["init", "-q", &other]);
            world.write(".git/objects/info/alternates", "");
            let settings = format!(
                "[core]\n\talternateRefsCommand = {}\n[remote \"origin\"]\n\turl = {other}\n\tfetch = +refs/*:refs/*\n",
                bait(world)
            );
            let root = repository(world, &settings);
            world.write(
                ".git/objects/info/alternates",
                &format!("{other}/.git/objects\n"),
            );
            root
        },
        springs: &["receive-pack", "--http-backend-info-refs", "."],
    },
    Trap {
        name: "a credential helper and a program that asks",
        plant: |world| {
            let settings = format!(
                "[credential]\n\thelper = {0}\n[core]\n\taskPass = {0}\n",
                bait(world)
            );
            repository(world, &settings)
        },
        springs: &["credential", "fill"],
    },
    Trap {
        name: "gpg.program",
        plant: |world| {
            let settings = format!(
                "[user]\n\tname = x\n\temail = x@example.com\n[gpg]\n\tprogram = {}\n[commit]\n\tgpgSign = true\n",
                bait(world)
            );
            repository(world, &settings)
        },
        springs: &["commit", "--allow-empty", "-m", "x"],
    },
    Trap {
        name: "core.worktree that leads elsewhere",
        plant: |world| {
            let elsewhere = world.outside("elsewhere");
            std::fs::create_dir(&elsewhere).unwrap();
            let settings = format!(
                "[core]\n\tworktree = {}\n\tfsmonitor = {}\n",
                elsewhere.display(),
                bait(world)
            );
            repository(world, &settings)
        },
        springs: &["status"],
    },
];

const HOOKS: &[&str] = &[
    "post-index-change",
    "fsmonitor-watchman",
    "pre-commit",
    "post-checkout",
    "reference-transaction",
];

/// A program that leaves a line in `sprung`. Where git wants words after it, they are ignored.
fn bait(world: &World) -> String {
    let file = world.outside("bait");
    let sprung = world.outside("sprung");
    let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", sprung.display());
    std::fs::write(&file, script).unwrap();
    executable(&file);
    file.display().to_string()
}

fn promisor(url: &str) -> String {
    format!(
        "[extensions]\n\tpartialClone = origin\n[protocol \"ext\"]\n\tallow = always\n[remote \"origin\"]\n\tpromisor = true\n\turl = {url}\n"
    )
}

fn append(world: &World, name: &str, text: &str) {
    let before = std::fs::read_to_string(world.root().join(name)).unwrap_or_default();
    world.write(name, &(before + text));
}

fn hook(world: &World, name: &str) {
    world.write(name, "");
    std::fs::copy(bait(world), world.root().join(name)).unwrap();
    executable(&world.root().join(name));
}

/// A repository with one file and these settings.
fn repository(world: &World, settings: &str) -> PathBuf {
    world.write("file", "text");
    world.git(&["init", "-q"]);
    world.commit();
    append(world, ".git/config", settings);
    world.root()
}

/// A repository with these settings, whose sparse index names a tree that is not there. Whoever
/// lists its files in full has to fetch it.
fn missing_tree(world: &World, settings: &str) {
    world.git(&["init", "-q"]);
    world.commit();
    world.git(&["branch", "empty"]);
    world.write("kept/file", "1");
    world.write("lost/file", "2");
    world.commit();
    world.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "kept"]);
    let tree = world
        .hermetic("git")
        .args(["rev-parse", "HEAD:lost"])
        .output();
    let tree = String::from_utf8(tree.unwrap().stdout).unwrap();
    let (folder, name) = tree.trim().split_at(2);
    let object = world.root().join(".git/objects").join(folder).join(name);
    std::fs::remove_file(object).unwrap();
    append(world, ".git/config", settings);
}

/// Where Checkrein has to know what git tracks, or where a repository is.
fn visit_every_place(world: &World, folder: &Path, path: &OsStr) {
    let command = |args: &[&str]| {
        let mut command = world.checkrein(args);
        // A stranger's agent settings can set a hook's environment.
        command
            .current_dir(folder)
            .env("PATH", path)
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
            .env("GIT_CONFIG_VALUE_0", world.outside("bait"))
            .env("GIT_SSH_COMMAND", world.outside("bait"))
            .env("GIT_ALLOW_PROTOCOL", "ext:ssh:file")
            .stdin(Stdio::null());
        command
    };
    let state = world.state().display().to_string();
    std::fs::write(
        folder.join("checkrein.toml"),
        "[[verifier]]\nname = \"t\"\nrun = \"true\"\n",
    )
    .unwrap();
    for name in BOTH {
        for trusting in [&["--require-trust", "--state", &state][..], &[]] {
            for (event, more) in [
                ("UserPromptSubmit", json!({ "prompt": "mend it" })),
                (
                    "PreToolUse",
                    json!({ "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "1" }),
                ),
                (
                    "Stop",
                    json!({ "stop_hook_active": false, "last_assistant_message": "Done." }),
                ),
            ] {
                let mut message = json!({
                    "session_id": format!("{name}-{}", trusting.len()), "cwd": folder,
                    "permission_mode": "default", "hook_event_name": event,
                });
                let object = message.as_object_mut().unwrap();
                object.extend(more.as_object().unwrap().clone());
                let mut hook = command(&[&["hook", name], trusting].concat());
                let said = feed(&mut hook, message.to_string().as_bytes());
                assert!(matches!(said.code, Some(0 | 2)), "{said:?}");
            }
        }
    }
    for line in [
        json!({ "type": "user", "session": "g", "text": "mend it" }),
        json!({ "type": "tool_call", "session": "g", "id": "1", "tool": "bash", "args": { "command": "ls" } }),
        json!({ "type": "stop", "session": "g", "text": "Done." }),
    ] {
        feed(
            &mut command(&["hook", "generic"]),
            line.to_string().as_bytes(),
        );
    }
    for args in [
        &["check"][..],
        &["run", "--", "true"],
        &["show"],
        &["sessions"],
        &["doctor"],
        &["doctor", "--audit"],
        &["init", "--agent", "claude-code", "--agent", "codex"],
        &["init", "--undo"],
    ] {
        command(args).output().unwrap();
    }
}

#[test]
fn no_repository_gets_checkrein_to_run_its_programs() {
    let mut idle = Vec::new();
    for trap in TRAPS {
        let world = World::without_git();
        let folder = (trap.plant)(&world);
        visit_every_place(&world, &folder, &std::env::var_os("PATH").unwrap());
        let sprung = world.lines_outside("sprung");
        assert_eq!(sprung, Vec::<String>::new(), "{}", trap.name);
        // It would have, had git been asked.
        let mut git = world.hermetic("git");
        git.args(trap.springs).current_dir(&folder);
        feed(&mut git, b"protocol=https\nhost=localhost\n\n");
        if !world.outside("sprung").exists() {
            idle.push(trap.name);
        }
    }
    assert!(idle.is_empty(), "these are no traps: {idle:?}");
}

/// Whatever a new way to start git would be protected by: there is none.
#[test]
fn git_itself_is_never_started() {
    let world = World::without_git();
    world.write("file", "text");
    world.git(&["init", "-q"]);
    world.commit();
    let folder = world.outside("programs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(bait(&world), folder.join("git")).unwrap();
    executable(&folder.join("git"));
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let shadowed = Command::new("git").env("PATH", &path).output().unwrap();
    assert!(shadowed.status.success() && world.outside("sprung").exists());
    std::fs::remove_file(world.outside("sprung")).unwrap();
    visit_every_place(&world, &world.root(), path.as_ref());
    assert_eq!(world.lines_outside("sprung"), Vec::<String>::new());
}
