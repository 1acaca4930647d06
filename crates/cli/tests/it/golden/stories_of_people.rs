//! Stories in which a person is asked, answers, or does not.

use super::logs::Told;
use super::stories::{CHECK, world};
use crate::agent::{Agent, Answer};
use crate::approvals::{PUSH, REVIEW, RULES, approve, deny, unattended, waiting};
use crate::world::World;

/// A repo in which a push is a person's to allow.
fn asking(more: &str) -> World {
    let world = world(&format!(
        "[policy]\nrules = [\"rules/*.rules\"]\n\n{more}\n{CHECK}"
    ));
    world.write("rules/own.rules", RULES);
    world.commit();
    world
}

pub(super) fn asked() -> Told {
    let world = asking("");
    let mut agent = unattended(&world, "codex");
    agent.session = "asked".to_owned();
    let push = || agent.shell(PUSH, "");
    agent.prompt("ship it");
    world.write("work", "1");
    world.write("fixed", "");
    // Asked, approved, let through once; a stop in between is parked.
    push().denied();
    agent.stop().notice();
    approve(&world, &waiting(&world));
    assert_eq!(push(), Answer::Nothing);
    agent.shell("git gc", "").denied();
    // Asked anew, and refused.
    push().denied();
    deny(&world, &waiting(&world));
    push().denied();
    world.write("work", "2");
    agent.stop();
    Told::of(&world, "asked")
}

pub(super) fn reviewed() -> Told {
    let world = asking(&format!("{REVIEW}\n[approvals]\nexpires = \"1h\"\n"));
    let agent = Agent::named(&world, "claude-code", "reviewed");
    let write = |text: &str| {
        agent.prompt("write it");
        world.write("fixed", "");
        world.write("report.md", text);
        agent.stop()
    };
    write("done\n").notice();
    approve(&world, &waiting(&world));
    agent.prompt("they said yes");
    assert_eq!(agent.stop(), Answer::Nothing);
    write("done, and more\n").notice();
    deny(&world, &waiting(&world));
    agent.prompt("they said no");
    agent.stop();
    Told::of(&world, "reviewed")
}

pub(super) fn unanswered() -> Told {
    let world = asking(&format!("{REVIEW}\n[approvals]\nexpires = \"1ms\"\n"));
    let mut agent = unattended(&world, "codex");
    agent.session = "unanswered".to_owned();
    agent.prompt("ship it");
    world.write("fixed", "");
    world.write("report.md", "done\n");
    agent.stop();
    agent.prompt("what did they say?");
    agent.stop();
    agent.shell(PUSH, "");
    Told::of(&world, "unanswered")
}
