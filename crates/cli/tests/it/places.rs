//! Sub-folders, linked worktrees and packages of a monorepo: which config, which tree, which
//! store.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agent::{Answer, read};
use crate::terminal::Terminal;
use crate::world::{Said, World, feed};

/// A conversation of Claude Code that works in some folder.
struct Elsewhere<'w> {
    world: &'w World,
    folder: PathBuf,
    session: &'static str,
}

impl Elsewhere<'_> {
    fn tell(&self, event: &str, more: Value) -> Answer {
        let mut message = json!({
            "session_id": self.session, "cwd": self.folder, "hook_event_name": event,
        });
        message
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut hook = self.world.checkrein(&["hook", "claude-code"]);
        // A hook is started where the agent is, or not: what it says of itself counts.
        hook.current_dir(&self.folder);
        read(
            "claude-code",
            event,
            &feed(&mut hook, message.to_string().as_bytes()),
        )
    }

    fn prompt(&self) {
        self.tell("UserPromptSubmit", json!({ "prompt": "mend it" }));
    }

    fn stop(&self) -> Answer {
        let words = json!({ "stop_hook_active": false, "last_assistant_message": "Done." });
        self.tell("Stop", words)
    }

    fn says(&self, args: &[&str]) -> Said {
        let mut command = self.world.checkrein(args);
        Said::of(&command.current_dir(&self.folder).output().unwrap())
    }

    /// Root of each task that `sessions` lists here, newest first.
    fn roots(&self) -> Vec<PathBuf> {
        let said = self.says(&["sessions", "--json"]);
        said.stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|task| PathBuf::from(task["root"].as_str().unwrap()))
            .collect()
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap()
}

#[test]
fn a_sub_folder_belongs_to_its_repo() {
    let world = World::with_check("test -f fixed");
    world.write("src/deep/er/a", "1");
    world.commit();
    let here = Elsewhere {
        world: &world,
        folder: world.root().join("src/deep/er"),
        session: "deep",
    };
    here.prompt();
    world.write("elsewhere", "an edit outside of the sub-folder counts");
    here.stop().sent_back();
    // The check runs in the root.
    world.write("fixed", "");
    assert_eq!(here.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    assert_eq!(here.roots(), [real(&world.root())]);
    let shown = here.says(&["show", "--why"]);
    assert!(shown.stdout.contains("task_complete"), "{shown:?}");
    let said = here.says(&["check", "--json"]);
    assert_eq!(said.json()["verdict"], "pass");
}

/// The agent has moved to a folder that no check knows: the session is the same.
#[test]
fn a_stop_in_another_folder_is_the_same_sessions_stop() {
    let world = World::with_check("test -f fixed");
    let at = |folder: PathBuf| Elsewhere {
        world: &world,
        folder,
        session: "moves",
    };
    let (here, other) = (at(world.root()), at(world.outside("other")));
    std::fs::create_dir(&other.folder).unwrap();
    here.prompt();
    world.write("work", "1");
    here.stop().sent_back();
    other.stop().sent_back();
    let task = world.task();
    assert_eq!((task["stops"].as_u64(), world.tasks().len()), (Some(2), 1));
    world.write("fixed", "");
    assert_eq!(other.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    world.replays("moves");
}

/// Also where that folder is a repo with checks and sessions of its own.
#[test]
fn a_stop_in_another_repo_is_judged_where_its_session_began() {
    let world = World::with_check("test -f fixed");
    let other = world.outside("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("fixed"), "").unwrap();
    let config = "[[verifier]]\nname = \"tests\"\nrun = \"test -f fixed\"\n";
    std::fs::write(other.join("checkrein.toml"), config).unwrap();
    let mut git = world.hermetic("git");
    let made = git.current_dir(&other).args(["init", "-q"]).status();
    assert!(made.unwrap().success());
    let at = |folder: PathBuf, session| Elsewhere {
        world: &world,
        folder,
        session,
    };
    at(other.clone(), "theirs").prompt();
    at(world.root(), "moves").prompt();
    world.write("work", "1");
    at(other.clone(), "moves").stop().sent_back();
    assert_eq!(world.runs("tests"), 1);
    std::fs::write(other.join("work"), "1").unwrap();
    assert_eq!(at(other.clone(), "theirs").stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 1);
    // And it is switched off where it is judged.
    let off = ["off", "--for", "1h", "--reason", "a demonstration"];
    assert_eq!(Terminal::new(&world).says(&off).code, Some(0));
    let told = at(other.clone(), "moves").stop();
    assert!(
        matches!(&told, Answer::Notice(said) if said.contains("switched off")),
        "{told:?}"
    );
    std::fs::remove_file(other.join("fixed")).unwrap();
    at(other.clone(), "theirs").prompt();
    std::fs::write(other.join("work"), "2").unwrap();
    at(other, "theirs").stop().sent_back();
}

/// Who speaks the generic protocol names the session: "main" may begin in every repo.
#[test]
fn a_session_of_a_name_that_is_not_its_own_begins_anew_in_another_folder() {
    let world = World::with_check("test -f fixed");
    let other = world.outside("other");
    std::fs::create_dir(&other).unwrap();
    let tell = |folder: &Path, message: Value| {
        let mut hook = world.checkrein(&["hook", "generic"]);
        let said = feed(hook.current_dir(folder), format!("{message}\n").as_bytes());
        let answer: Value = serde_json::from_str(said.stdout.trim()).unwrap_or_default();
        answer["transition"]["reason"].as_str().map(str::to_owned)
    };
    let prompt = json!({ "type": "user", "session": "main", "text": "mend it" });
    let stop = json!({ "type": "stop", "session": "main", "text": "Done." });
    tell(&world.root(), prompt.clone());
    world.write("work", "1");
    assert_eq!(tell(&world.root(), stop.clone()), None);
    tell(&other, prompt);
    std::fs::write(other.join("work"), "1").unwrap();
    assert_eq!(tell(&other, stop).as_deref(), Some("unverified"));
}

#[test]
fn a_linked_worktree_is_its_own_tree_in_the_same_store() {
    let world = World::with_check("test -f fixed");
    let linked = world.outside("linked");
    world.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    let (main, side) = (
        Elsewhere {
            world: &world,
            folder: world.root(),
            session: "main",
        },
        Elsewhere {
            world: &world,
            folder: linked.clone(),
            session: "side",
        },
    );
    main.prompt();
    side.prompt();
    // Mended in one tree only.
    std::fs::write(linked.join("fixed"), "").unwrap();
    world.write("work", "1");
    assert_eq!(side.stop(), Answer::Nothing);
    main.stop().sent_back();
    world.store_folder();
    for place in [&main, &side] {
        let mut roots = place.roots();
        roots.sort();
        let mut both = [real(&world.root()), real(&linked)];
        both.sort();
        assert_eq!(roots, both, "one store, and each task says where");
    }
    world.replays("main");
    world.replays("side");
    // Its own config, if it has one.
    std::fs::write(linked.join("checkrein.toml"), "[stance]\ntool = \"ask\"\n").unwrap();
    let said = side.says(&["check"]);
    assert!(
        said.stderr.contains("no verifier is configured"),
        "{said:?}"
    );
    assert_eq!(main.says(&["check"]).code, Some(1));
}

#[test]
fn a_package_with_a_config_of_its_own_is_judged_by_that() {
    let world = World::new();
    world.config(&world.counted("whole", "false"));
    world.write(
        "packages/one/checkrein.toml",
        &world.counted("one", "test -f fixed"),
    );
    world.write("packages/two/a", "no config of its own");
    world.commit();
    let at = |folder: &str, session| Elsewhere {
        world: &world,
        folder: world.root().join(folder),
        session,
    };
    // Beside somebody who is at work on the whole.
    at("", "whole").prompt();
    let one = at("packages/one", "one");
    one.prompt();
    world.write("packages/one/fixed", "");
    assert_eq!(one.stop(), Answer::Nothing);
    assert_eq!((world.runs("one"), world.runs("whole")), (1, 0));

    // Another package's edit is none of its business.
    one.prompt();
    world.write("packages/two/a", "changed");
    assert_eq!(one.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "unverified/no_change");

    let two = at("packages/two", "two");
    two.prompt();
    world.write("packages/two/a", "changed again");
    two.stop().sent_back();
    assert_eq!((world.runs("one"), world.runs("whole")), (1, 1));

    // One repo, one store: each sees all, and each task says where.
    let roots = at("", "none").roots();
    let package = real(&world.root().join("packages/one"));
    let whole = real(&world.root());
    assert_eq!(roots, [whole.clone(), package.clone(), package, whole]);
    assert_eq!(two.roots(), roots);
    world.store_folder();
}
