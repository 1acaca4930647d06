//! A check whose program is gone: one that was there when the session began is the agent's to
//! bring back, once; one that never was is nobody's here.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::agent::{Agent, Answer};
use crate::world::World;

/// A repo whose check is a program of a folder that is no part of it, as of a virtual environment.
fn with_tool() -> (World, PathBuf) {
    let world = World::new();
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"mytool --check\"\n");
    world.commit();
    let folder = world.outside("bin");
    std::fs::create_dir(&folder).unwrap();
    let tool = folder.join("mytool");
    std::fs::write(&tool, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    (world, tool)
}

fn agent<'w>(world: &'w World, name: &'static str) -> Agent<'w> {
    let mut agent = Agent::new(world, name);
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", world.outside("bin").display());
    agent.env = vec![("PATH", path)];
    agent
}

#[test]
fn a_missing_program_that_was_there_is_sent_back_once() {
    for name in crate::agent::BOTH {
        let (world, tool) = with_tool();
        let agent = agent(&world, name);
        agent.prompt("do it");
        world.write("work", "x");
        std::fs::rename(&tool, world.outside("away")).unwrap();
        let answer = agent.stop();
        assert!(
            answer.sent_back().contains("'mytool' is not installed"),
            "{answer:?}"
        );
        let answer = agent.stop();
        assert!(
            answer.notice().contains("verifier_failed_unrecoverable"),
            "{answer:?}"
        );
        assert_eq!(world.ending(), "verifier_failed_unrecoverable/tests");
        world.replays(&agent.session);
    }
}

#[test]
fn a_program_that_comes_back_is_run() {
    let (world, tool) = with_tool();
    let agent = agent(&world, "claude-code");
    agent.prompt("do it");
    world.write("work", "x");
    std::fs::rename(&tool, world.outside("away")).unwrap();
    agent.stop().sent_back();
    // Nothing of the tree tells that it is there again.
    std::fs::rename(world.outside("away"), &tool).unwrap();
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    world.replays(&agent.session);
}

#[test]
fn a_program_that_never_was_there_ends_the_task() {
    let (world, tool) = with_tool();
    std::fs::remove_file(tool).unwrap();
    let agent = agent(&world, "claude-code");
    agent.prompt("do it");
    world.write("work", "x");
    let answer = agent.stop();
    assert!(
        answer.notice().contains("verifier_failed_unrecoverable"),
        "{answer:?}"
    );
}
