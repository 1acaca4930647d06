//! Files that git tracks count whatever ignore files say: those of submodules, too. Where it is
//! not known which they are, nothing passes.

use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

/// A repo whose check fails once `made` says "bad": a file that git tracks although an ignore
/// file names it.
fn with_made(made: &str, setup: &str) -> World {
    let world = World::with_check(&format!("! grep -q bad {made}"));
    shell(&world, setup);
    world.commit();
    world
}

fn shell(world: &World, script: &str) {
    let mut command = world.hermetic("sh");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "t");
        command.env(format!("GIT_{who}_EMAIL"), "t@example.com");
    }
    let done = command.args(["-euc", script]).output().unwrap();
    assert!(done.status.success(), "{script}: {done:?}");
}

const SUBMODULE: &str = "git init -q lib; cd lib; echo '*.gen' > .gitignore; echo good > made.gen; \
     git add -f -A; git commit -qm s; cd ..; git add -A; ";

#[test]
fn what_a_submodule_tracks_counts_although_it_is_ignored() {
    let absorbed = format!(
        "{SUBMODULE} printf '[submodule \"lib\"]\\n\\tpath = lib\\n\\turl = ./lib\\n' > .gitmodules; \
         git submodule --quiet absorbgitdirs; test -f lib/.git"
    );
    for (what, made, setup) in [
        ("a repository in its folder", "lib/made.gen", SUBMODULE.to_owned()),
        ("a repository of the one around it", "lib/made.gen", absorbed),
        (
            "an ignored folder",
            "lib/out/made",
            "git init -q lib; mkdir lib/out; echo /out/ > lib/.gitignore; echo good > lib/out/made; git -C lib add -f -A; \
             git -C lib commit -qm s".to_owned(),
        ),
        (
            "named by an ignore file of the repository around it",
            "lib/made.log",
            "echo '*.log' > .gitignore; git init -q lib; echo good > lib/made.log; git -C lib add -f -A; git -C lib commit -qm s"
                .to_owned(),
        ),
        (
            "a submodule of a submodule",
            "outer/lib/made.gen",
            format!("git init -q outer; cd outer; {SUBMODULE} git commit -qm o; cd .."),
        ),
    ] {
        for name in BOTH {
            let world = with_made(made, &setup);
            let agent = Agent::new(&world, name);
            agent.prompt("mend it");
            world.write("work", "1");
            assert_eq!(agent.stop(), Answer::Nothing, "{what}");
            assert_eq!(world.ending(), "task_complete", "{what}");
            agent.prompt("and now that");
            world.write(made, "bad");
            let answer = agent.stop();
            assert!(answer.sent_back().contains("tests"), "{what}: {answer:?}");
            world.replays(&agent.session);
        }
        let world = with_made(made, &setup);
        assert_eq!(world.says(&["check"]).code, Some(0), "{what}");
        world.write(made, "bad");
        let said = world.says(&["check"]);
        assert_eq!(said.code, Some(1), "{what}: not the pass of before: {said:?}");
    }
}

/// A person who keeps their own repository beside a project is followed; a clone that sets the
/// environment of its hooks hides nothing.
#[test]
fn what_the_environment_leads_git_to_counts_too() {
    let ignored = "echo '*.log' > .gitignore; echo good > made.log; ";
    let dots = "git init -q --bare ../dots; git --git-dir ../dots --work-tree . add -f made.log";
    for (what, setup, env) in [
        (
            "a repository beside it",
            format!("{ignored}{dots}"),
            &[("GIT_DIR", "../dots"), ("GIT_WORK_TREE", ".")][..],
        ),
        (
            "another index",
            format!("{ignored}GIT_INDEX_FILE=.git/mine git add -f made.log"),
            &[("GIT_INDEX_FILE", ".git/mine")],
        ),
        (
            "an index that hides",
            format!("{ignored}git add -f made.log"),
            &[("GIT_INDEX_FILE", "nowhere")],
        ),
        (
            "a repository that hides",
            format!("{ignored}git add -f made.log; git init -q --bare ../dots"),
            &[("GIT_DIR", "../dots"), ("GIT_WORK_TREE", ".")],
        ),
    ] {
        for name in BOTH {
            let world = with_made("made.log", &setup);
            let mut agent = Agent::new(&world, name);
            agent.env = env
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect();
            agent.prompt("mend it");
            world.write("work", "1");
            assert_eq!(agent.stop(), Answer::Nothing, "{what}");
            assert_eq!(world.ending(), "task_complete", "{what}");
            agent.prompt("and now that");
            world.write("made.log", "bad");
            let answer = agent.stop();
            assert!(answer.sent_back().contains("tests"), "{what}: {answer:?}");
        }
    }
}

/// What makes the index unreadable, what the texts say of it, and what mends it.
const UNREADABLE: [(&str, &str, &str); 6] = [
    (
        "git config core.worktree /tmp",
        "--unset core.worktree",
        "git config --file .git/config --unset core.worktree",
    ),
    (
        "cp .git/index ../index; echo > .git/index",
        "git reset",
        "mv ../index .git/index",
    ),
    (
        "mv .git/index ../index; mkfifo .git/index",
        "git status",
        "mv ../index .git/index",
    ),
    (
        "mv .git ../git; echo 'gitdir: nowhere' > .git",
        "git worktree repair",
        "rm .git; mv ../git .git",
    ),
    (
        "git -C lib config core.worktree /tmp",
        "--unset core.worktree",
        "git config --file lib/.git/config --unset core.worktree",
    ),
    (
        "mv lib/.git ../lib; git init -q ../other; echo 'gitdir: ../../other/.git' > lib/.git",
        "leads out of the repository",
        "rm lib/.git; mv ../lib lib/.git",
    ),
];

#[test]
fn where_the_index_cannot_be_read_nothing_passes_until_it_can() {
    for (damage, says, mend) in UNREADABLE {
        for name in BOTH {
            let world = with_made("lib/made.gen", SUBMODULE);
            shell(&world, damage);
            let agent = Agent::new(&world, name);
            agent.prompt("mend it");
            world.write("work", "1");
            let answer = agent.stop();
            let text = answer.sent_back();
            assert!(text.contains(says), "{damage}: {text}");
            // A check that fails says more than this.
            world.write("lib/made.gen", "bad");
            world.write("work", "2");
            let answer = agent.stop();
            assert!(
                answer.sent_back().contains("failed"),
                "{damage}: {answer:?}"
            );
            world.write("lib/made.gen", "good");
            shell(&world, mend);
            match agent.stop() {
                // Another repository came, with a file that says what it ignores. The session stays
                // where it began.
                Answer::Notice(text) => assert!(text.contains(".git/info/exclude"), "{text}"),
                answer => {
                    assert_eq!(answer, Answer::Nothing, "{damage}");
                    assert_eq!(world.ending(), "task_complete", "{damage}");
                    world.replays(&agent.session);
                }
            }
        }
        let world = with_made("lib/made.gen", SUBMODULE);
        assert_eq!(world.says(&["check"]).code, Some(0));
        shell(&world, damage);
        let said = world.says(&["check", "--json"]);
        assert_eq!(said.code, Some(3), "{damage}: {said:?}");
        let check = &said.json()["verifiers"][0];
        assert_eq!(check["verdict"], "inconclusive", "{damage}");
        assert!(
            check["note"].as_str().unwrap().contains(says),
            "{damage}: {check}"
        );
        let said = world.says(&["check"]);
        assert!(said.stdout.contains(says), "{damage}: {said:?}");
        let said = world.says(&["run", "--attempts", "1", "--", "sh", "-c", "echo 1 > work"]);
        assert_ne!(said.code, Some(0), "{damage}: {said:?}");
        assert_ne!(world.ending(), "task_complete", "{damage}");
        let story = world.says(&["show"]).stdout.replace("\n", " ");
        let story = story.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            story.contains("which files git tracks"),
            "{damage}: {story}"
        );
        shell(&world, mend);
        assert_eq!(world.says(&["check"]).code, Some(0), "{damage}");
    }
}

/// What the agent breaks in one task does not let the next one pass.
#[test]
fn a_task_does_not_pass_on_what_the_one_before_it_broke() {
    for name in BOTH {
        let world = with_made(
            "made.log",
            "echo '*.log' > .gitignore; echo good > made.log; git add -f -A",
        );
        let agent = Agent::new(&world, name);
        agent.prompt("mend it");
        world.write("work", "1");
        shell(&world, "git config core.worktree /tmp");
        // What is tracked was known when this one began.
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(world.ending(), "task_complete");
        agent.prompt("and now that");
        world.write("work", "2");
        assert!(agent.stop().sent_back().contains("--unset core.worktree"));
        // What was known before still counts.
        shell(
            &world,
            "git config --file .git/config --unset core.worktree; git rm -q --cached made.log",
        );
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(world.ending(), "task_complete");
        agent.tell(&agent.message(
            "Stop",
            json!({ "stop_hook_active": false, "last_assistant_message": "Done." }),
        ));
        world.write("made.log", "bad");
        let answer = agent.stop();
        assert!(answer.sent_back().contains("failed"), "{answer:?}");
    }
}

/// Nor does what is gone: git then says that nothing is tracked.
#[test]
fn what_was_tracked_counts_on_when_the_index_is_gone() {
    let top = "echo '*.log' > .gitignore; echo good > made.log; git add -f -A";
    for (made, setup, damage) in [
        ("made.log", top, "rm .git/index"),
        ("made.log", top, "rm .git/HEAD"),
        ("made.log", top, "rm -rf .git/refs"),
        ("made.log", top, "echo nowhere > .git/commondir"),
        ("lib/made.gen", SUBMODULE, "rm lib/.git/index"),
        ("lib/made.gen", SUBMODULE, "rm -rf lib/.git/objects"),
    ] {
        let world = with_made(made, setup);
        let agent = Agent::new(&world, "claude-code");
        agent.prompt("mend it");
        world.write("work", "1");
        shell(&world, damage);
        assert_eq!(agent.stop(), Answer::Nothing, "{damage}");
        assert_eq!(world.ending(), "task_complete", "{damage}");
        agent.prompt("and now that");
        world.write(made, "bad");
        let answer = agent.stop();
        assert!(
            answer.sent_back().contains("failed"),
            "{damage}: {answer:?}"
        );
        world.replays(&agent.session);
    }
}

/// A question is no claim of done: nothing runs and nobody is sent back.
#[test]
fn a_question_is_answered_where_the_index_cannot_be_read() {
    for name in BOTH {
        let world = with_made("lib/made.gen", SUBMODULE);
        shell(&world, "git config core.worktree /tmp");
        let agent = Agent::new(&world, name);
        agent.prompt("what is this?");
        assert_eq!(agent.stop_saying("A project."), Answer::Nothing);
        assert_eq!(world.ending(), "unverified/no_change");
        assert_eq!(world.runs("tests"), 0);
    }
}

/// Folders in which git itself finds nothing, or nothing that is damaged.
#[test]
fn nobody_is_locked_out_where_there_is_no_index_to_read() {
    for (what, setup) in [
        ("no git", "rm -rf .git"),
        ("no index", "rm .git/index"),
        ("an empty .git", "rm -rf .git; mkdir .git"),
        ("a .git without objects", "rm -rf .git/objects"),
        ("a .git without a HEAD", "rm .git/HEAD"),
        (
            "a bare repository",
            "rm -rf .git; git init -q --bare x; mv x/* .",
        ),
        (
            "a repository that says it is bare",
            "git config core.bare true",
        ),
        (
            "a config of the worktree that does not count",
            "printf '[core]\\n\\tworktree = /tmp\\n' > .git/config.worktree",
        ),
        (
            "a submodule without a repository",
            "git init -q s; git -C s commit -q --allow-empty -m s; git add s; rm -rf s/.git",
        ),
    ] {
        let world = with_made("README", "true");
        shell(&world, setup);
        let agent = Agent::new(&world, "claude-code");
        agent.prompt("mend it");
        world.write("work", "1");
        assert_eq!(agent.stop(), Answer::Nothing, "{what}");
        assert_eq!(world.ending(), "task_complete", "{what}");
        assert_eq!(world.says(&["check"]).code, Some(0), "{what}");
        let said = world.says(&["run", "--", "sh", "-c", "echo 2 > work"]);
        assert_eq!(said.code, Some(0), "{what}: {said:?}");
    }
}

/// Git sets variables of its own there, relative ones among them.
#[test]
fn check_runs_in_a_hook_of_gits() {
    for (folder, commit) in [
        (".", "git commit -qam x"),
        ("sub", "git commit -qam x"),
        ("sub", "git add -A; git commit -qm x"),
        ("sub", "cd sub; git commit -qm x ../work"),
        ("sub", "export GIT_DIR=.git; git commit -qam x"),
        (
            "sub",
            "git worktree add -q ../linked; cd ../linked; echo 3 > work; git commit -qam x",
        ),
        (
            "sub",
            "git -c rebase.autoSquash=false rebase -q --exec 'cd sub; \"$BIN\" check > \"$OUT\"' HEAD~1",
        ),
    ] {
        let world = with_made(
            "README",
            "mkdir sub; echo 1 > work; cp checkrein.toml sub; git add -A",
        );
        shell(&world, "git commit -q --allow-empty -m more");
        let out = world.outside("out");
        world.write(
            ".git/hooks/pre-commit",
            &format!(
                "#!/bin/sh\ncd {folder} && \"$BIN\" check > '{}'\n",
                out.display()
            ),
        );
        crate::terminal::executable(&world.root().join(".git/hooks/pre-commit"));
        if !commit.contains("rebase") {
            world.write("work", "2");
        }
        shell(&world, &format!("export OUT='{}'; {commit}", out.display()));
        let said = std::fs::read_to_string(&out).unwrap();
        assert!(said.contains("accepted"), "{folder}, {commit}: {said}");
    }
}
