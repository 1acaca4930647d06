//! What an agent's screen shows of a stop that is let through: nothing after a plain question,
//! nothing or one line after verified work, one line after any other ending.

use serde_json::{Value, json};

use crate::agent::{Agent, Answer, BOTH};
use crate::world::{World, ending, feed};

/// One line of the generic protocol and its answer.
fn generic(world: &World, line: &Value) -> Value {
    let mut hook = world.checkrein(&["hook", "generic"]);
    let said = feed(&mut hook, line.to_string().as_bytes());
    assert_eq!(said.code, Some(0), "{said:?}");
    said.json()
}

/// The line that a stop shows a person, in the words of each protocol.
enum Conversation<'w> {
    Hooked(Agent<'w>),
    Generic(&'w World),
}

impl<'w> Conversation<'w> {
    fn each(world: &'w World) -> Vec<Self> {
        let hooked = BOTH.map(|name| Self::Hooked(Agent::new(world, name)));
        hooked.into_iter().chain([Self::Generic(world)]).collect()
    }

    fn prompt(&self, text: &str) {
        match self {
            Self::Hooked(agent) => agent.prompt(text),
            Self::Generic(world) => {
                generic(
                    world,
                    &json!({ "type": "user", "session": "g", "text": text }),
                );
            }
        }
    }

    /// `None`: refused; else what is shown, which may be nothing.
    fn stop(&self, text: &str) -> Option<String> {
        match self {
            Self::Hooked(agent) => match agent.stop_saying(text) {
                Answer::Nothing => Some(String::new()),
                Answer::Notice(line) => Some(line),
                Answer::SentBack(_) => None,
                other => panic!("{other:?}"),
            },
            Self::Generic(world) => {
                let said = generic(
                    world,
                    &json!({ "type": "stop", "session": "g", "text": text }),
                );
                let line = said["text"].as_str().unwrap_or_default().to_owned();
                (said["decision"] == "accept").then_some(line)
            }
        }
    }
}

#[test]
fn plain_questions_show_no_notice() {
    let world = World::with_check("test ! -e broken");
    for agent in Conversation::each(&world) {
        for n in 0..5 {
            agent.prompt(&format!("what is part {n} for?"));
            assert_eq!(agent.stop("It adds.").as_deref(), Some(""));
        }
    }
    let endings = world
        .tasks()
        .into_iter()
        .map(|task| ending(&task["transition"]));
    assert_eq!(endings.collect::<Vec<_>>(), ["unverified/no_change"; 15]);
    assert_eq!(world.runs("tests"), 0);
    assert!(world.says(&["sessions"]).stdout.contains("no_change"));
}

/// The tree is known to fail: a question about it does not look like everything is well.
#[test]
fn a_question_about_a_failing_tree_says_that_it_fails() {
    for n in 0..3 {
        let world = World::with_check("test ! -e broken");
        let agent = &Conversation::each(&world)[n];
        agent.prompt("change it");
        world.write("broken", "");
        assert_eq!(agent.stop("Done."), None);
        agent.prompt("what is it for?");
        let line = agent.stop("It adds.").unwrap();
        assert!(line.contains("unverified (no_change)"), "{line}");
        assert!(line.contains("a required check fails"), "{line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");

        // It passes again, and was seen to.
        agent.prompt("put it right");
        std::fs::remove_file(world.root().join("broken")).unwrap();
        world.write("work", "1");
        assert_eq!(agent.stop("Done.").as_deref(), Some(""));
        agent.prompt("what is it for?");
        assert_eq!(agent.stop("It adds.").as_deref(), Some(""));
    }
}

/// `[ui] verified`: silent unless it says otherwise, and never after a plain question.
#[test]
fn verified_work_says_one_line_where_that_is_wanted() {
    for (ui, shown) in [
        ("", ""),
        ("[ui]\nverified = \"silent\"\n", ""),
        (
            "[ui]\nverified = \"line\"\n",
            "checkrein: verified: lint, tests pass. Details: checkrein show ",
        ),
    ] {
        for n in 0..3 {
            let world = World::new();
            let (lint, tests) = (
                world.counted("lint", "true"),
                world.counted("tests", "true"),
            );
            world.config(&format!("{ui}{lint}{tests}"));
            world.commit();
            let agent = &Conversation::each(&world)[n];
            agent.prompt("change it");
            world.write("work", "1");
            let line = agent.stop("Done.").unwrap();
            assert_eq!(world.ending(), "task_complete");
            assert_eq!(line.is_empty(), shown.is_empty(), "{line}");
            assert!(line.starts_with(shown), "{line}");
            assert!(line.trim_end().lines().count() <= 1, "{line}");
            agent.prompt("what is it for?");
            assert_eq!(agent.stop("It adds.").as_deref(), Some(""));
        }
    }
}

/// The person's own file says what their screen shows, whatever the repo's says.
#[test]
fn the_persons_own_file_says_what_their_screen_shows() {
    for (repo, own, lines) in [("silent", "line", 1), ("line", "silent", 0)] {
        let world = World::new();
        let ui = |verified: &str| format!("[ui]\nverified = \"{verified}\"\n");
        world.config(&format!("{}{}", ui(repo), world.counted("tests", "true")));
        world.commit();
        let folder = world.outside("home/config/checkrein");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("checkrein.toml"), ui(own)).unwrap();
        let agent = Conversation::Hooked(Agent::new(&world, "claude-code"));
        agent.prompt("change it");
        world.write("work", "1");
        assert_eq!(agent.stop("Done.").unwrap().lines().count(), lines);
    }
}
