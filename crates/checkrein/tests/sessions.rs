//! The library as a host uses it, with real processes and a real tree.

use std::path::Path;

use checkrein::{AnswerUsage, Engine, Reason, StopDecision, ToolCall, ToolDecision};
use serde_json::json;

const CONFIG: &str = "[[verifier]]\nname = \"marker\"\nrun = \"test -f done.txt\"\n";

fn engine(root: &Path) -> Engine {
    Engine::in_memory(root, Some(CONFIG))
}

#[expect(clippy::panic, reason = "a decision of another kind fails the test")]
fn ending(decision: StopDecision) -> Reason {
    match decision {
        StopDecision::Accept {
            transition: Some(transition),
        }
        | StopDecision::Halt { transition } => transition.reason,
        other => panic!("not an ending: {other:?}"),
    }
}

#[test]
fn a_false_claim_is_sent_back_and_a_true_one_accepted() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let session = engine.session("test").unwrap().0;
    session.prompt("write done.txt").unwrap();
    let (decision, answer) = session.stop("Done.").unwrap();
    assert!(
        matches!(decision, StopDecision::Continue { .. }),
        "{decision:?}"
    );
    assert!(answer.feedback_text.unwrap().contains("test -f done.txt"));
    std::fs::write(root.path().join("done.txt"), "yes").unwrap();
    assert_eq!(
        ending(session.stop("Done.").unwrap().0),
        Reason::TaskComplete
    );
}

/// A session has fewer continuations than its tasks together.
#[test]
fn no_more_is_promised_than_the_session_leaves() {
    let root = tempfile::tempdir().unwrap();
    let config = format!("[session_caps]\ncontinues = 2\n{CONFIG}");
    let engine = Engine::in_memory(root.path(), Some(&config));
    let session = engine.session("test").unwrap().0;
    session.prompt("write done.txt").unwrap();
    let mut promised = Vec::new();
    while let (StopDecision::Continue { feedback }, _) = session.stop("Done.").unwrap() {
        promised.push(feedback.continues_left);
    }
    assert_eq!(promised, [1, 0]);
}

/// `[token_budget] mode = "target"`: passing work is sent on while there is budget left.
#[test]
fn a_budget_that_is_a_target_is_used_up() {
    let root = tempfile::tempdir().unwrap();
    let config = "[caps]\ntoken_budget = 1000\n[token_budget]\nmode = \"target\"\n[[verifier]]\nname = \"always\"\nrun = \"true\"\n";
    let engine = Engine::in_memory(root.path(), Some(config));
    let session = engine.session("test").unwrap().0;
    session.prompt("make it better").unwrap();
    session.end_round(spent(400)).unwrap();
    let (decision, answer) = session.stop("Done.").unwrap();
    assert!(
        matches!(decision, StopDecision::Continue { .. }),
        "{decision:?}"
    );
    let text = answer.feedback_text.unwrap();
    assert!(text.contains("400 of 900 output tokens"), "{text}");
    session.end_round(spent(500)).unwrap();
    assert_eq!(
        ending(session.stop("Done.").unwrap().0),
        Reason::TaskComplete
    );
}

#[test]
fn a_call_that_goes_in_circles_is_denied_and_then_ends_the_task() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let session = engine.session("test").unwrap().0;
    session.prompt("look").unwrap();
    let mut answers = Vec::new();
    for nth in 0..25 {
        let call = ToolCall::shell_call(&format!("call-{nth}"), "cat notes.txt");
        let answer = session.tool(&call).unwrap().0;
        if matches!(answer, ToolDecision::Allow | ToolDecision::Nudge { .. }) {
            session.returned(&call, &json!("the same"), false).unwrap();
        }
        answers.push(answer);
    }
    let at = |wanted: fn(&ToolDecision) -> bool| answers.iter().position(wanted);
    assert_eq!(
        at(|answer| matches!(answer, ToolDecision::Nudge { .. })),
        Some(10)
    );
    assert_eq!(
        at(|answer| matches!(answer, ToolDecision::Deny { .. })),
        Some(20)
    );
    assert_eq!(
        at(|answer| matches!(answer, ToolDecision::Halt { .. })),
        Some(21)
    );
    assert_eq!(
        ending(session.stop("I give up.").unwrap().0),
        Reason::LoopDetected
    );
}

/// Law 8: a thousand sessions on one engine give what each gives alone.
#[test]
fn a_thousand_sessions_share_nothing() {
    let root = tempfile::tempdir().unwrap();
    let engine = Engine::in_memory(root.path(), Some("[caps]\ntool_calls = 5\n"));
    let story = |nth: usize| {
        let session = engine.session("test").unwrap().0;
        session.prompt("count").unwrap();
        let calls = nth % 8;
        let mut answers = Vec::new();
        for call in 0..calls {
            let call = ToolCall::shell_call(&format!("call-{call}"), &format!("echo {nth} {call}"));
            answers.push(session.tool(&call).unwrap().0);
            session.returned(&call, &json!(nth), false).unwrap();
        }
        (calls, answers, ending(session.stop("Done.").unwrap().0))
    };
    let alone: Vec<_> = (0..8).map(story).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                let story = &story;
                scope.spawn(move || {
                    (0..125)
                        .map(|nth| story(worker + nth * 8))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for (worker, handle) in workers.into_iter().enumerate() {
            for told in handle.join().unwrap() {
                assert_eq!(told, alone[worker % 8]);
            }
        }
    });
}

fn spent(output: u64) -> AnswerUsage {
    AnswerUsage {
        output_tokens: Some(output),
        cost: None,
    }
}
