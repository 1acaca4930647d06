//! Windows as text: one letter per call, a digit for its outcome (`-` = none yet).

use std::collections::VecDeque;

use super::*;
use crate::policy::LoopPolicy;

fn call(letter: char, outcome: Option<char>, progress: bool) -> RecentCall {
    RecentCall {
        call: EightByteDigest(letter as u64),
        id: None,
        outcome: outcome.map(|outcome| outcome as u32),
        // Capitals are polls, and the letters from `m` on belong to a second tool.
        tool: u16::from(letter >= 'm'),
        answer_kind: outcome.map_or(0, |outcome| outcome as u32),
        poll: letter == 'P',
        waits: letter == 'W',
        shell: false,
        write: false,
        acts: false,
        reach: None,
        progress,
        news: progress,
        failed: false,
        running: outcome == Some('r'),
        unknown_tool: false,
        empty: false,
    }
}

/// `before` is pairs such as `a1b2`; `judged` is the call being judged.
fn look(detector: &str, before: &str, judged: char) -> Option<(LoopSeverity, u32)> {
    look_with(detector, before, judged, false)
}

/// The same for an agent that is known to tell what comes back.
fn look_reported(before: &str, judged: char) -> Option<(LoopSeverity, u32)> {
    look_in("generic_repeat", before, judged, (false, true))
}

fn look_with(
    detector: &str,
    before: &str,
    judged: char,
    literal: bool,
) -> Option<(LoopSeverity, u32)> {
    look_in(detector, before, judged, (literal, false))
}

fn look_in(
    detector: &str,
    before: &str,
    judged: char,
    (literal, reports_outcome): (bool, bool),
) -> Option<(LoopSeverity, u32)> {
    let loops = LoopPolicy {
        literal_breaker: literal,
        ..LoopPolicy::default()
    };
    let mut seen = std::collections::BTreeSet::new();
    let pairs: Vec<char> = before.chars().collect();
    let mut calls: VecDeque<RecentCall> = pairs
        .chunks(2)
        .map(|pair| {
            let outcome = (pair[1] != '-').then_some(pair[1]);
            call(
                pair[0],
                outcome,
                outcome.is_some() && seen.insert(pair.to_vec()),
            )
        })
        .collect();
    let context = DetectorContext {
        loops: &loops,
        calls_before: calls.len() as u64,
        reports_outcome,
    };
    calls.push_back(call(judged, None, false));
    let found = ALL
        .iter()
        .find(|known| known.detector_name() == detector)
        .unwrap();
    found
        .detect_loop(
            calls.back().unwrap(),
            CallWindow::calls_before_newest(&calls, &loops),
            context,
        )
        .map(|sighting| (sighting.level, sighting.count))
}

#[test]
fn generic_repeat() {
    let look = |before: &str| look("generic_repeat", before, 'a');
    assert_eq!(look(&"a1".repeat(9)), None);
    assert_eq!(look(&"a1".repeat(10)), Some((LoopSeverity::Warning, 10)));
    assert_eq!(look(&"a1".repeat(19)), Some((LoopSeverity::Warning, 19)));
    assert_eq!(look(&"a1".repeat(20)), Some((LoopSeverity::Critical, 20)));
    // Other calls in between do not hide it, a changed outcome does.
    assert_eq!(look(&"a1b2".repeat(10)), Some((LoopSeverity::Warning, 10)));
    assert_eq!(
        look(&format!("{}a2", "a1".repeat(20))),
        Some((LoopSeverity::Warning, 21))
    );
    assert_eq!(look(&"a1a2".repeat(15)), Some((LoopSeverity::Warning, 30)));
    // A call without an outcome never makes a critical.
    assert_eq!(look(&"a-".repeat(30)), Some((LoopSeverity::Warning, 30)));
    // What is older than the window is forgotten.
    assert_eq!(
        look(&format!("{}{}", "a1".repeat(20), "b1".repeat(25))),
        None
    );
}

#[test]
fn calls_in_flight() {
    let look = |before: &str| look_reported(before, 'a');
    assert_eq!(look(&"a-".repeat(9)), None);
    assert_eq!(look(&"a-".repeat(19)), Some((LoopSeverity::Warning, 19)));
    assert_eq!(look(&"a-".repeat(20)), Some((LoopSeverity::Critical, 20)));
    assert_eq!(
        look_reported(&"P-".repeat(20), 'P'),
        Some((LoopSeverity::Critical, 20))
    );
    assert_eq!(look_reported(&"P-".repeat(19), 'P'), None);
    // Other calls in between do not hide it; of different ones none is repeated.
    assert_eq!(
        look(&"a-a-b1".repeat(10)),
        Some((LoopSeverity::Critical, 20))
    );
    assert_eq!(
        look("b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q-r-s-t-u-v-w-x-y-z-"),
        None
    );
    // Some came back the same, the others not yet: critical once nothing else is left to see.
    assert_eq!(look(&"a-a1".repeat(15)), Some((LoopSeverity::Critical, 30)));
    assert_eq!(look(&"a-a1".repeat(14)), Some((LoopSeverity::Warning, 28)));
    assert_eq!(
        look(&"a-a1a2".repeat(10)),
        Some((LoopSeverity::Warning, 30))
    );
}

#[test]
fn known_poll_no_progress() {
    let look = |before: &str| look("known_poll_no_progress", before, 'P');
    assert_eq!(look(&"P1".repeat(9)), None);
    assert_eq!(look(&"P1".repeat(10)), Some((LoopSeverity::Warning, 10)));
    assert_eq!(look(&"P1".repeat(20)), Some((LoopSeverity::Critical, 20)));
    assert_eq!(look(&"P1P2P3P4".repeat(5)), None);
    assert_eq!(
        super::tests::look("generic_repeat", &"P1".repeat(25), 'P'),
        None
    );
    assert_eq!(
        super::tests::look("known_poll_no_progress", &"a1".repeat(25), 'a'),
        None
    );
}

#[test]
fn ping_pong() {
    // A B A B …, and the call being judged is the next in turn.
    assert_eq!(
        look("ping_pong", &"a1b2".repeat(5), 'a'),
        Some((LoopSeverity::Warning, 11))
    );
    assert_eq!(look("ping_pong", &"a1b2".repeat(4), 'a'), None);
    assert_eq!(
        look("ping_pong", &"a1b2".repeat(10), 'a'),
        Some((LoopSeverity::Critical, 21))
    );
    assert_eq!(
        look("ping_pong", &"a1b2a1b3".repeat(5), 'a'),
        Some((LoopSeverity::Warning, 21))
    );
    assert_eq!(look("ping_pong", &"a1b2".repeat(10), 'b'), None);
    assert_eq!(look("ping_pong", &"a1b2".repeat(10), 'c'), None);
    assert_eq!(
        look("ping_pong", &"a1b-".repeat(10), 'a'),
        Some((LoopSeverity::Warning, 21))
    );
    assert_eq!(look("ping_pong", "a1", 'b'), None);
}

#[test]
fn global_circuit_breaker() {
    let breaker = |before: &str| look("global_circuit_breaker", before, 'z');
    // The first of each pair is news, so thirty more are needed.
    assert_eq!(breaker(&"a1b1c1".repeat(10)), None);
    assert_eq!(
        breaker(&"a1b1c1".repeat(11)),
        Some((LoopSeverity::Critical, 30))
    );
    assert_eq!(breaker(&format!("{}d1", "a1b1c1".repeat(12))), None);
    assert_eq!(breaker(&"a-".repeat(40)), None);
    assert_eq!(
        look_with(
            "global_circuit_breaker",
            &"a1b2c3d4e5f6".repeat(5),
            'z',
            true
        ),
        Some((LoopSeverity::Critical, 30))
    );
    assert_eq!(
        look_with("global_circuit_breaker", &"a1".repeat(29), 'z', true),
        None
    );
}

#[test]
fn names_are_unique_and_advice_never_empty() {
    let mut names: Vec<_> = ALL
        .iter()
        .map(|detector| detector.detector_name())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    for detector in ALL {
        for level in [LoopSeverity::Warning, LoopSeverity::Critical] {
            let sighting = LoopPatternMatch {
                level,
                count: 12,
                key: EightByteDigest(1),
                in_flight: false,
            };
            assert!(
                detector
                    .loop_advice_for_agent(sighting, "`x` (y)")
                    .contains("12"),
                "{}",
                detector.detector_name()
            );
        }
    }
}
