//! Every decision there is, for tests that walk them, and the recorded messages.

use std::path::PathBuf;

use checkrein_adapters::HookDecisionWithTexts;
use checkrein_core::decision::{
    Decision, FailedCheckFeedback, StopDecision, StopFeedback, ToolDecision,
};
use checkrein_core::digest::Digest;
use checkrein_core::evidence::Verdict;
use checkrein_core::ids::VerifierName;
use checkrein_core::transition::{Reason, Transition};

pub(crate) fn feedback() -> Box<StopFeedback> {
    let check = |name: &str, verdict: Verdict| FailedCheckFeedback {
        verifier: VerifierName::from(name),
        key: Digest::hash_bytes(b""),
        verdict,
        cause: None,
        new: vec![],
        still: vec![],
        fixed: 0,
    };
    Box::new(StopFeedback {
        stop: 1,
        met: 1,
        attempts: 3,
        continues_left: 6,
        repeat: false,
        checks: vec![
            check("tests", Verdict::Fail),
            check("lint", Verdict::Inconclusive),
        ],
        layers: Vec::new(),
        judges: 0,
        background: 0,
        target: None,
        edited: Vec::new(),
    })
}

pub(crate) fn tools() -> Vec<ToolDecision> {
    vec![
        ToolDecision::Allow,
        ToolDecision::Nudge {
            text: "look around".into(),
        },
        ToolDecision::Rewrite {
            args: r#"{"command":"ls"}"#.into(),
            reason: "too broad".into(),
        },
        ToolDecision::Ask {
            reason: "deletes files".into(),
            approval: "ap7".into(),
            until: None,
        },
        ToolDecision::Deny {
            reason: "forbidden by rule".into(),
        },
        ToolDecision::Halt {
            reason: "loop found".into(),
        },
    ]
}

pub(crate) fn stops() -> Vec<StopDecision> {
    let done = Transition::transition_without_detail(Reason::TaskComplete);
    let capped = Transition::new(Reason::HardCap, "iterations");
    vec![
        StopDecision::Accept { transition: None },
        StopDecision::Accept {
            transition: Some(done),
        },
        StopDecision::Continue {
            feedback: feedback(),
        },
        StopDecision::Halt { transition: capped },
    ]
}

/// Every decision, with and without every word that can go with it.
pub(crate) fn answers() -> Vec<HookDecisionWithTexts> {
    let mut decisions: Vec<Decision> = tools().into_iter().map(Decision::Tool).collect();
    decisions.extend(stops().into_iter().map(Decision::Stop));
    decisions.push(Decision::Noted);
    let mut answers = Vec::new();
    for decision in decisions {
        for text in [None, Some("fix the tests"), Some(" ")] {
            for notice in [None, Some("one line")] {
                for can_ask in [false, true] {
                    answers.push(HookDecisionWithTexts {
                        decision: decision.clone(),
                        text: text.map(str::to_owned),
                        notice: notice.map(str::to_owned),
                        can_ask,
                    });
                }
            }
        }
    }
    answers
}

/// The recorded messages of an agent: event name, file name, bytes.
pub(crate) fn fixtures(agent: &str) -> Vec<(String, String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(agent);
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            let event = file.split(['@', '-', '.']).next().unwrap().to_owned();
            (event, file, std::fs::read(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// One recorded message.
pub(crate) fn fixture(agent: &str, file: &str) -> Vec<u8> {
    fixtures(agent)
        .into_iter()
        .find(|(_, name, _)| name == file)
        .unwrap()
        .2
}
