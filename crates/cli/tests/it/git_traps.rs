//! Repositories whose config names programs. Git runs them when it is asked the simplest things;
//! Checkrein runs none of them, wherever it has to know what git tracks.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::agent::BOTH;
use crate::terminal::{executable, pty};
use crate::world::{World, feed};

/// A repository that would like to run something.
struct Trap {
    name: &'static str,
    /// Makes it in a fresh world, and says in which folder the agent works.
    plant: fn(&World) -> PathBuf,
    /// Each program that lies in it, by its name, and what makes git itself run it.
    springs: &'static [(&'static str, &'static [&'static str])],
}

const TRAPS: &[Trap] = &[
    Trap {
        name: "a bare repository among the files of a clone, with a lazy fetch",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world, "fetch"))));
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
        springs: &[("fetch", &["ls-files"])],
    },
    Trap {
        name: "a shipped repository with a lazy fetch by ext",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world, "fetch"))));
            world.root()
        },
        springs: &[("fetch", &["ls-files"])],
    },
    Trap {
        name: "a lazy fetch by core.sshCommand",
        plant: |world| {
            let ssh = format!("[core]\n\tsshCommand = {}\n", bait(world, "ssh"));
            missing_tree(world, &(promisor("ssh://localhost/x") + &ssh));
            world.root()
        },
        springs: &[("ssh", &["ls-files"])],
    },
    Trap {
        name: "a lazy fetch by remote.origin.uploadpack",
        plant: |world| {
            let url = world.outside("elsewhere");
            world.git(&["init", "-q", &url.display().to_string()]);
            let programs = format!("\tuploadpack = {}\n", bait(world, "upload-pack"));
            missing_tree(world, &(promisor(&url.display().to_string()) + &programs));
            world.root()
        },
        springs: &[("upload-pack", &["ls-files"])],
    },
    Trap {
        name: "a folder below a shipped repository",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world, "fetch"))));
            world.write("kept/deep/file", "");
            world.root().join("kept/deep")
        },
        springs: &[("fetch", &["ls-files", ":/"])],
    },
    Trap {
        name: "a pointer to a repository of another name",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world, "fetch"))));
            std::fs::rename(world.root().join(".git"), world.root().join("objects")).unwrap();
            world.write(".git", "gitdir: objects\n");
            world.root()
        },
        springs: &[("fetch", &["ls-files"])],
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
                &promisor(&format!("ext::{}", bait(world, "fetch"))),
            );
            linked
        },
        springs: &[("fetch", &["ls-files"])],
    },
    Trap {
        name: "a submodule with a repository of its own",
        plant: |world| {
            missing_tree(world, &promisor(&format!("ext::{}", bait(world, "fetch"))));
            let (inner, outer) = (world.root().join("x"), world.root().join("outer"));
            std::fs::create_dir(&inner).unwrap();
            for moved in [".git", "kept"] {
                std::fs::rename(world.root().join(moved), inner.join(moved)).unwrap();
            }
            world.git(&["init", "-q", "outer"]);
            std::fs::rename(inner, outer.join("x")).unwrap();
            outer.join("x")
        },
        springs: &[("fetch", &["ls-files"])],
    },
    Trap {
        name: "core.fsmonitor",
        plant: |world| {
            repository(
                world,
                &format!("[core]\n\tfsmonitor = {}\n", bait(world, "fsmonitor")),
            )
        },
        springs: &[("fsmonitor", &["status"])],
    },
    Trap {
        name: "core.fsmonitor of a file that is included",
        plant: |world| {
            world.write(
                "more",
                &format!("[core]\n\tfsmonitor = {}\n", bait(world, "fsmonitor")),
            );
            repository(world, "[include]\n\tpath = ../more\n")
        },
        springs: &[("fsmonitor", &["status"])],
    },
    Trap {
        name: "hooks of the repository",
        plant: |world| {
            let root = repository(world, "");
            for (name, _) in HOOKS {
                hook(world, ".git/hooks", name);
            }
            root
        },
        springs: HOOKS,
    },
    Trap {
        name: "hooks among the files, by core.hooksPath",
        plant: |world| {
            let root = repository(world, "[core]\n\thooksPath = hooks\n");
            for (name, _) in HOOKS {
                hook(world, "hooks", name);
            }
            root
        },
        springs: HOOKS,
    },
    Trap {
        name: "filters",
        plant: |world| {
            let mut attributes = String::new();
            let mut settings = String::new();
            for name in ["clean", "smudge", "process"] {
                world.write(name, "text");
                attributes.push_str(&format!("{name} filter={name}\n"));
                let setting = format!("[filter \"{name}\"]\n\t{name} = {}\n", bait(world, name));
                settings.push_str(&setting);
            }
            world.write(".gitattributes", &attributes);
            let root = repository(world, "");
            append(world, ".git/config", &settings);
            for name in ["clean", "smudge", "process"] {
                world.write(name, "edited");
            }
            root
        },
        springs: &[
            ("clean", &["add", "clean"]),
            ("smudge", &["checkout-index", "-f", "smudge"]),
            ("process", &["add", "process"]),
        ],
    },
    Trap {
        name: "textconv and external diffs",
        plant: |world| {
            world.write(".gitattributes", "one diff=one\ntwo diff=two\n");
            for name in ["one", "two", "file"] {
                world.write(name, "text");
            }
            let settings = format!(
                "[diff \"one\"]\n\ttextconv = {}\n[diff \"two\"]\n\tcommand = {}\n[diff]\n\texternal = {}\n",
                bait(world, "textconv"),
                bait(world, "command"),
                bait(world, "external"),
            );
            let root = repository(world, &settings);
            for name in ["one", "two", "file"] {
                world.write(name, "edited");
            }
            root
        },
        springs: &[
            ("textconv", &["diff", "--no-ext-diff", "one"]),
            ("command", &["diff", "two"]),
            ("external", &["diff", "file"]),
        ],
    },
    Trap {
        name: "pagers, an editor, an alias",
        plant: |world| {
            let settings = format!(
                "[core]\n\tpager = {}\n\teditor = {}\n[pager]\n\tls-files = {}\n[alias]\n\tx = !{}\n",
                bait(world, "pager"),
                bait(world, "editor"),
                bait(world, "pager-of-one"),
                bait(world, "alias"),
            );
            repository(world, &settings)
        },
        springs: &[
            ("pager", &["--paginate", "rev-parse", "HEAD"]),
            ("pager-of-one", &["ls-files"]),
            ("editor", &["commit", "--allow-empty"]),
            ("alias", &["x"]),
        ],
    },
    Trap {
        name: "core.alternateRefsCommand",
        plant: |world| {
            let other = world.outside("elsewhere").display().to_string();
            world.git(&["init", "-q", &other]);
            world.write(".git/objects/info/alternates", "");
            let settings = format!(
                "[core]\n\talternateRefsCommand = {}\n[remote \"origin\"]\n\turl = {other}\n\tfetch = +refs/*:refs/*\n",
                bait(world, "alternate-refs")
            );
            let root = repository(world, &settings);
            world.write(
                ".git/objects/info/alternates",
                &format!("{other}/.git/objects\n"),
            );
            root
        },
        springs: &[(
            "alternate-refs",
            &["receive-pack", "--http-backend-info-refs", "."],
        )],
    },
    Trap {
        name: "a credential helper and a program that asks",
        plant: |world| {
            let settings = format!(
                "[credential]\n\thelper = {}\n[core]\n\taskPass = {}\n",
                bait(world, "helper"),
                bait(world, "ask")
            );
            repository(world, &settings)
        },
        springs: &[
            ("helper", &["credential", "fill"]),
            ("ask", &["credential", "fill"]),
        ],
    },
    Trap {
        name: "gpg.program",
        plant: |world| {
            let settings = format!(
                "[gpg]\n\tprogram = {}\n[commit]\n\tgpgSign = true\n",
                bait(world, "gpg")
            );
            repository(world, &settings)
        },
        springs: &[("gpg", &["commit", "--allow-empty", "-m", "x"])],
    },
    Trap {
        name: "core.worktree that leads elsewhere",
        plant: |world| {
            let elsewhere = world.outside("elsewhere");
            std::fs::create_dir(&elsewhere).unwrap();
            let settings = format!(
                "[core]\n\tworktree = {}\n\tfsmonitor = {}\n",
                elsewhere.display(),
                bait(world, "fsmonitor")
            );
            repository(world, &settings)
        },
        springs: &[("fsmonitor", &["status"])],
    },
];

/// Hooks, and what has git call them.
const HOOKS: &[(&str, &[&str])] = &[
    (
        "post-index-change",
        &["update-index", "--force-write-index"],
    ),
    (
        "reference-transaction",
        &["update-ref", "refs/heads/x", "HEAD"],
    ),
    ("post-checkout", &["checkout", "-q", "-b", "other"]),
    ("pre-commit", &["commit", "--allow-empty", "-m", "x"]),
];

/// A program that leaves its name in `sprung`. Where git wants words after it, they are ignored.
fn bait(world: &World, name: &str) -> String {
    let file = world.outside(&format!("bait-{name}"));
    let sprung = world.outside("sprung");
    let script = format!("#!/bin/sh\necho {name} >> '{}'\n", sprung.display());
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

fn hook(world: &World, folder: &str, name: &str) {
    let file = format!("{folder}/{name}");
    world.write(&file, "");
    std::fs::copy(bait(world, name), world.root().join(&file)).unwrap();
    executable(&world.root().join(file));
}

/// A repository with one file and these settings.
fn repository(world: &World, settings: &str) -> PathBuf {
    world.write("file", "text");
    world.git(&["init", "-q"]);
    world.git(&["config", "user.name", "x"]);
    world.git(&["config", "user.email", "x@example.com"]);
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

/// What a stranger's agent settings can set in the environment of a hook, and the bait in it.
fn hostile_environment(world: &World) -> [(&'static str, String); 5] {
    [
        ("GIT_CONFIG_COUNT", "1".to_owned()),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor".to_owned()),
        ("GIT_CONFIG_VALUE_0", bait(world, "fsmonitor-by-variable")),
        ("GIT_SSH_COMMAND", bait(world, "ssh-by-variable")),
        ("GIT_ALLOW_PROTOCOL", "ext:ssh:file".to_owned()),
    ]
}

/// Where Checkrein has to know what git tracks, or where a repository is.
fn visit_every_place(world: &World, folder: &Path, path: &OsStr) {
    let command = |args: &[&str]| {
        let mut command = world.checkrein(args);
        command
            .current_dir(folder)
            .env("PATH", path)
            .envs(hostile_environment(world))
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

/// The programs of this name that git itself ran.
fn sprung_by_git(
    world: &World,
    folder: &Path,
    args: &[&str],
    env: &[(&str, String)],
) -> Vec<String> {
    let _ = std::fs::remove_file(world.outside("sprung"));
    let mut git = world.hermetic("git");
    git.args(args)
        .current_dir(folder)
        .envs(env.iter().map(|(name, value)| (name, value)));
    // It pages what it says to a terminal only.
    let (_terminal, screen) = pty();
    git.stdin(Stdio::piped())
        .stdout(Stdio::from(screen))
        .stderr(Stdio::piped());
    let mut git = git.spawn().unwrap();
    let _ = std::io::Write::write_all(
        &mut git.stdin.take().unwrap(),
        b"protocol=https\nhost=localhost\n\n",
    );
    git.wait_with_output().unwrap();
    world.lines_outside("sprung")
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
        // Each program in it would have run, had git been asked.
        for (bait, args) in trap.springs {
            if !sprung_by_git(&world, &folder, args, &[])
                .iter()
                .any(|name| name == bait)
            {
                idle.push((trap.name, bait));
            }
        }
    }
    assert!(idle.is_empty(), "these are no traps: {idle:?}");
}

/// The environment of every visit is a trap as well.
#[test]
fn variables_spring_their_programs_in_git_itself() {
    let world = World::without_git();
    let folder = repository(&world, "");
    let env = hostile_environment(&world);
    let sprung = sprung_by_git(&world, &folder, &["status"], &env);
    assert!(
        sprung.iter().any(|name| name == "fsmonitor-by-variable"),
        "{sprung:?}"
    );
    let world = World::without_git();
    missing_tree(&world, &promisor("ssh://localhost/x"));
    let env = hostile_environment(&world);
    let sprung = sprung_by_git(&world, &world.root(), &["ls-files"], &env);
    assert!(
        sprung.iter().any(|name| name == "ssh-by-variable"),
        "{sprung:?}"
    );
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
    std::fs::copy(bait(&world, "git"), folder.join("git")).unwrap();
    executable(&folder.join("git"));
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let shadowed = Command::new("git").env("PATH", &path).output().unwrap();
    assert!(shadowed.status.success() && world.outside("sprung").exists());
    std::fs::remove_file(world.outside("sprung")).unwrap();
    visit_every_place(&world, &world.root(), path.as_ref());
    assert_eq!(world.lines_outside("sprung"), Vec::<String>::new());
}
