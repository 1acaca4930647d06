//! A real story's log as this vocabulary's first version wrote it. Golden logs are added
//! to, never edited: what was written once must be read, folded and stepped for ever.

use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_core::event::{self, Event};
use checkrein_core::policy::Policy;
use checkrein_core::state::State;
use checkrein_core::step::step;

use crate::story::tell;
use crate::world::{World, policy};

/// Each is `NAME.policy.json` (the sealed blob) and `NAME.jsonl` (the log): a name, the verifiers,
/// what happened.
const STORIES: &[(&str, &str, &str)] = &[
    (
        "001-fixed-on-the-second-try",
        "tests lint~",
        "prompt | call read=1 tokens=120 | round | call ?push | call !rm | call write=2
     | edit | tests fail 1 2 | stop tokens=900 cap=8 | 11x call read=1 | edit | tests fail 2
     | lint timeout | stop | stop | edit | tests pass | lint pass | moves 5 | stop
     | @s call read=1 | @s stop | prompt | wait 100000 | call read=1 | process | stop",
    ),
    (
        "002-what-could-not-be-judged",
        "tests lint~",
        "resume tokens=0 | prompt | call write=1 tokens=40 | @s call read=1 | @s failed overloaded
     | stance tool allow | edit | tests fail 1 | stop | stance stop block | stance stop allow
     | @s stance stop ask | prompt | edit | stance stop ask | failed max_tokens",
    ),
    (
        "003-edited-and-sealed-anew",
        "tests lint~",
        "prompt | call write=1 | edit | tests fail 1 | lint pass | edited checkrein.toml | stop
     | edited .gitignore checkrein.toml | stop | renewed | edit | tests pass | stop
     | edited rules/own.rules | prompt | edit | stop",
    ),
    (
        "004-asked-of-a-person",
        "tests review@",
        "prompt | asks ap-1 | call ?push | stop | answered ap-1 yes | asks ap-1 yes | call ?push=1
     | asks | edit | review unanswered | stop | review pass | stop
     | prompt | edit | review fail 1 | stop
     | prompt | tests fail 1 | edit | asks ap-2 | call ?push | answered ap-2 no | asks ap-2 no | call ?push | stop
     | prompt | asks ap-3 | call ?push | wait 100 | stop
     | prompt | asks | edit | tests pass | review expired | stop",
    ),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn world(verifiers: &str, story: &str) -> World {
    let mut world = World::new(policy(verifiers, ""));
    tell(&mut world, story);
    world
}

#[test]
fn golden_logs_are_read_folded_and_stepped() {
    for (name, ..) in STORIES {
        let blob = std::fs::read(folder().join(format!("{name}.policy.json"))).unwrap();
        let policy = Policy::from_blob(&blob).unwrap();
        let text = std::fs::read_to_string(folder().join(format!("{name}.jsonl"))).unwrap();
        let log: Vec<Event> = text
            .lines()
            .map(|line| event::decode(line.as_bytes()).unwrap())
            .collect();
        let Event::PolicySealed { policy: sealed, .. } = log[0] else {
            panic!("{name}: {:?}", log[0]);
        };
        assert_eq!(sealed, Digest::of(&blob), "{name}");

        let mut folded = State::default();
        log.iter().for_each(|event| folded.apply(event));

        let mut state = State::default();
        state.apply(&log[0]);
        let mut again = vec![log[0].clone()];
        for event in &log {
            if let Event::PolicyRenewed { .. } = event {
                state.apply(event);
                again.push(event.clone());
            }
            if let Event::Input(stamped) = event {
                again.extend(step(&policy, &mut state, stamped.clone()).events);
            }
        }
        assert_eq!(again, log, "{name}");
        assert_eq!(state, folded, "{name}");
        for (line, event) in text.lines().zip(&log) {
            assert_eq!(line.as_bytes(), event::encode(event), "{name}");
        }
    }
}

#[test]
fn what_is_no_event_is_said_to_be_none() {
    for bytes in [&b""[..], b"{}", b"{\"later_kind\":{}}", b"\xff"] {
        assert!(event::decode(bytes).is_err());
    }
}

/// Writes what is missing, and nothing else. Run with `--ignored` after adding a story.
#[test]
#[ignore = "writes new golden files"]
fn write_missing_golden_logs() {
    for (name, verifiers, story) in STORIES {
        let file = folder().join(format!("{name}.jsonl"));
        if file.exists() {
            continue;
        }
        let world = world(verifiers, story);
        let mut lines = Vec::new();
        for event in &world.log {
            lines.extend(event::encode(event));
            lines.push(b'\n');
        }
        std::fs::write(
            folder().join(format!("{name}.policy.json")),
            world.policy.to_blob(),
        )
        .unwrap();
        std::fs::write(file, lines).unwrap();
    }
}
