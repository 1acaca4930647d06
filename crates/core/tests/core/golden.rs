//! Logs as builds of their time wrote them, by stories told to the core alone (below) and by
//! sessions of the whole program (`crates/cli/tests/it/golden`). Golden logs are added to, never
//! edited: what was written once must be read, folded and stepped for ever.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::event::{self, Event};
use checkrein_core::policy::{ApprovalMode, Policy, VerifiedNoticeMode};
use checkrein_core::state::SessionState;
use checkrein_core::step::apply_input_and_decide;

use crate::story::tell;
use crate::world::{CoreWorld, policy};

/// Stories of the core alone: a name, the verifiers, what happened.
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

fn world(verifiers: &str, story: &str) -> CoreWorld {
    let mut world = CoreWorld::new(policy(verifiers, ""));
    tell(&mut world, story);
    world
}

/// `NAME.jsonl` (the log) and, beside it, `NAME.policy.json` (a sealed blob in each line).
struct GoldenLog {
    name: String,
    lines: Vec<String>,
    log: Vec<Event>,
    blobs: Vec<String>,
}

impl GoldenLog {
    fn all() -> Vec<Self> {
        let files = std::fs::read_dir(folder()).unwrap();
        let mut paths: Vec<PathBuf> = files
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let lines = |path: &Path| -> Vec<String> {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let of = |line: &String| {
            let event = event::decode_event(line.as_bytes());
            event.unwrap_or_else(|error| panic!("{name}: {error}: {line}"))
        };
        let recorded = lines(path);
        Self {
            log: recorded.iter().map(of).collect(),
            lines: recorded,
            blobs: lines(&path.with_extension("policy.json")),
            name,
        }
    }

    fn policy(&self, digest: Digest) -> Policy {
        let mut blobs = self.blobs.iter().map(String::as_bytes);
        let blob = blobs.find(|blob| Digest::hash_bytes(blob) == digest);
        Policy::from_sealed_policy_blob(
            blob.unwrap_or_else(|| panic!("{}: no {digest}", self.name)),
        )
        .unwrap()
    }

    /// Every event, effect and decision comes out again, to the byte. With `through_bytes` the state
    /// is written and read back before each input.
    fn is_stepped_again(&self, through_bytes: bool) -> SessionState {
        let name = &self.name;
        let mut state = SessionState::default();
        let mut policy = None;
        let mut rest = &self.log[..];
        while let Some(event) = rest.first() {
            match event {
                Event::PolicySealed { policy: sealed, .. }
                | Event::PolicyRenewed { policy: sealed, .. } => {
                    policy = Some(self.policy(*sealed));
                    state.apply_event(event);
                    rest = &rest[1..];
                }
                // What only the runtime records.
                Event::Repeated { .. } => {
                    state.apply_event(event);
                    rest = &rest[1..];
                }
                Event::Input(stamped) => {
                    if through_bytes {
                        let bytes = serde_json::to_vec(&state).unwrap();
                        state = serde_json::from_slice(&bytes).unwrap();
                    }
                    let policy = policy.as_ref().unwrap();
                    let done = apply_input_and_decide(policy, &mut state, stamped.clone());
                    let (recorded, after) = rest.split_at(done.events.len().min(rest.len()));
                    assert_eq!(done.events, recorded, "{name}");
                    assert_eq!(done.effects, requested(recorded), "{name}");
                    let decided = recorded.iter().rev().find_map(|event| match event {
                        Event::DecisionMade(made) => Some(&made.decision),
                        _ => None,
                    });
                    assert!(
                        decided.is_none() || done.decision.as_ref() == decided,
                        "{name}: {:?} and not {decided:?}",
                        done.decision
                    );
                    rest = after;
                }
                other => panic!("{name}: no input before {other:?}"),
            }
        }
        state
    }
}

fn requested(events: &[Event]) -> Vec<Effect> {
    let of = events.iter().filter_map(|event| match event {
        Event::Requested { effects, .. } => Some(effects.clone()),
        _ => None,
    });
    of.flatten().collect()
}

#[test]
fn golden_logs_are_read_folded_and_stepped() {
    let all = GoldenLog::all();
    assert!(all.len() > STORIES.len());
    for golden in all {
        let name = &golden.name;
        let Event::PolicySealed { .. } = golden.log[0] else {
            panic!("{name}: {:?}", golden.log[0]);
        };
        for (line, event) in golden.lines.iter().zip(&golden.log) {
            let again = String::from_utf8(event::encode_event(event)).unwrap();
            assert_eq!(&again, line, "{name}");
        }
        let mut folded = SessionState::default();
        golden
            .log
            .iter()
            .for_each(|event| folded.apply_event(event));
        for through_bytes in [false, true] {
            assert_eq!(golden.is_stepped_again(through_bytes), folded, "{name}");
        }
    }
}

/// A policy is known by the digest of its bytes: what an older build sealed is those bytes still.
#[test]
fn golden_policies_are_read_and_written_to_the_byte() {
    for golden in GoldenLog::all() {
        for blob in &golden.blobs {
            let policy = Policy::from_sealed_policy_blob(blob.as_bytes()).unwrap();
            let again = String::from_utf8(policy.to_policy_blob()).unwrap();
            assert_eq!(&again, blob, "{}", golden.name);
        }
    }
}

#[test]
fn every_kind_of_event_is_in_a_golden_log() {
    let all = GoldenLog::all();
    let kinds = all
        .iter()
        .flat_map(|golden| &golden.log)
        .map(Event::log_event_kind);
    let kinds: BTreeSet<&str> = kinds.collect();
    let missing = event::EVENT_KINDS
        .iter()
        .filter(|kind| !kinds.contains(**kind));
    assert_eq!(missing.collect::<Vec<_>>(), [] as [&&str; 0]);
}

/// Set, what is missing is written: never anything in the place of what is there.
const WRITE: &str = "CHECKREIN_WRITE_GOLDEN";

/// The newest golden log of a story, the n-th after the first, which has no number.
fn newest(name: &str) -> (u32, PathBuf) {
    let file = |number| match number {
        0 => folder().join(format!("{name}.jsonl")),
        _ => folder().join(format!("{name}.{number}.jsonl")),
    };
    let after = (0..).find(|number| !file(*number).exists()).unwrap();
    (after, file(after.saturating_sub(1)))
}

#[test]
fn stories_of_the_core_are_told_as_their_newest_logs_have_them() {
    for (name, verifiers, story) in STORIES {
        let told = world(verifiers, story);
        let (count, file) = newest(name);
        if count > 0 && GoldenLog::read(&file).log == told.log {
            continue;
        }
        assert!(
            std::env::var_os(WRITE).is_some(),
            "{name} is not told as {} has it; if that is meant, {WRITE}=1 writes another beside it",
            file.display()
        );
        let mut lines = Vec::new();
        for event in &told.log {
            lines.extend(event::encode_event(event));
            lines.push(b'\n');
        }
        let next = match count {
            0 => file,
            _ => folder().join(format!("{name}.{count}.jsonl")),
        };
        std::fs::write(
            next.with_extension("policy.json"),
            told.policy.to_policy_blob(),
        )
        .unwrap();
        std::fs::write(next, lines).unwrap();
    }
}

#[test]
fn what_is_no_event_is_said_to_be_none() {
    for bytes in [&b""[..], b"{}", b"{\"later_kind\":{}}", b"\xff"] {
        assert!(event::decode_event(bytes).is_err());
    }
}

/// A policy is persisted without what it has by default, and read back as it was.
#[test]
fn a_setting_that_is_not_the_default_is_written() {
    let mut policy = policy("tests", "");
    let plain = serde_json::to_value(&policy).unwrap();
    policy.verified_notice = VerifiedNoticeMode::Line;
    policy.approval = ApprovalMode::Never;
    let json = serde_json::to_value(&policy).unwrap();
    for name in ["verified_notice", "approval"] {
        assert!(plain.get(name).is_none(), "{name}");
        assert!(json.get(name).is_some(), "{name}");
    }
    assert_eq!(serde_json::from_value::<Policy>(json).unwrap(), policy);
}
