//! What every adapter must do, walked over `ALL`.

use std::collections::BTreeSet;

use checkrein_adapters::{
    ALL, AgentEventKind, AwaitedHookReplyForm, HookDecisionWithTexts, HookReply, find_adapter,
};
use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::input::Input;
use checkrein_core::policy::Stance;
use serde_json::Value;

use crate::decisions::{answers, fixtures};

/// stdout is one JSON object on one line, or nothing; what is said by status has no stdout.
fn well_formed(reply: &HookReply) {
    let text = std::str::from_utf8(&reply.stdout).unwrap();
    if !text.is_empty() {
        assert!(
            text.ends_with('\n') && text.trim_end().lines().count() == 1,
            "{text}"
        );
        assert!(
            serde_json::from_str::<Value>(text).unwrap().is_object(),
            "{text}"
        );
    }
    match reply.exit_code {
        0 => assert!(reply.stderr.is_empty(), "{reply:?}"),
        2 => assert!(
            reply.stdout.is_empty() && !reply.stderr.trim_ascii().is_empty(),
            "{reply:?}"
        ),
        other => panic!("no agent gives status {other} a meaning"),
    }
}

/// Whether an agent that gets this does not do what it asked for.
fn refuses(reply: &HookReply) -> bool {
    let said: Value = serde_json::from_slice(&reply.stdout).unwrap_or(Value::Null);
    let word = |pointer: &str| {
        said.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    reply.exit_code == 2
        || matches!(
            word("/hookSpecificOutput/permissionDecision"),
            "deny" | "ask"
        )
        || matches!(
            word("/decision"),
            "block" | "rewrite" | "ask" | "deny" | "halt" | "continue"
        )
}

#[test]
fn names_are_unique_sorted_and_found() {
    let names: Vec<_> = ALL.iter().map(|adapter| adapter.agent_name()).collect();
    let sorted: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(names, sorted.into_iter().collect::<Vec<_>>());
    for name in names {
        assert_eq!(
            find_adapter(name).map(|adapter| adapter.agent_name()),
            Some(name)
        );
    }
    assert!(find_adapter("nobody").is_none());
}

#[test]
fn every_declared_event_has_a_fixture_that_means_something() {
    for adapter in ALL {
        let mut seen = BTreeSet::new();
        for (event, file, bytes) in fixtures(adapter.agent_name()) {
            assert!(
                adapter.hook_events().contains(&event.as_str()),
                "{file} is no declared event"
            );
            let knock = adapter
                .parse_agent_hook_message(&bytes, &|_| None)
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(knock.native_event, event, "{file}");
            assert!(!knock.session.as_str().is_empty(), "{file}");
            if knock.input.is_some() {
                seen.insert(event);
            }
        }
        let declared: BTreeSet<_> = adapter
            .hook_events()
            .iter()
            .map(|event| (*event).to_owned())
            .collect();
        assert_eq!(seen, declared, "{}", adapter.agent_name());
    }
}

#[test]
fn forms_go_with_what_was_asked() {
    for adapter in ALL {
        for (_, file, bytes) in fixtures(adapter.agent_name()) {
            let knock = adapter.parse_agent_hook_message(&bytes, &|_| None).unwrap();
            let expected = match knock.input {
                Some(Input::ToolRequested(_)) => AwaitedHookReplyForm::Tool,
                Some(Input::StopRequested(_)) => AwaitedHookReplyForm::Stop,
                // The summariser's stop is not judged, but its form stays that of a stop.
                None if knock.event == AgentEventKind::Stop => AwaitedHookReplyForm::Stop,
                _ => AwaitedHookReplyForm::Silent,
            };
            assert_eq!(knock.reply_form, expected, "{file}");
            assert_eq!(
                knock.first_stop.is_some(),
                knock.reply_form == AwaitedHookReplyForm::Stop
                    && knock.input.is_some()
                    && adapter.agent_name() != "generic",
                "{file}"
            );
        }
    }
}

#[test]
fn every_decision_renders_for_every_form() {
    for adapter in ALL {
        for form in AwaitedHookReplyForm::ALL {
            for answer in answers() {
                well_formed(&adapter.render_decision_reply(form, &answer));
            }
            for stance in [Stance::Block, Stance::Allow, Stance::Ask] {
                for text in ["", " ", "the store is locked"] {
                    well_formed(&adapter.stance_as_hook_reply(form, stance, text));
                }
            }
        }
    }
}

#[test]
fn what_is_refused_is_refused_and_nothing_else() {
    for adapter in ALL {
        for answer in answers() {
            let (form, expected) = match &answer.decision {
                Decision::Tool(ToolDecision::Allow | ToolDecision::Nudge { .. }) => {
                    (AwaitedHookReplyForm::Tool, false)
                }
                Decision::Tool(_) => (AwaitedHookReplyForm::Tool, true),
                Decision::Stop(StopDecision::Accept { .. }) => (AwaitedHookReplyForm::Stop, false),
                Decision::Stop(StopDecision::Continue { .. }) => (AwaitedHookReplyForm::Stop, true),
                // A halted stop is a stop; the word `halt` of our own protocol says so too.
                Decision::Stop(StopDecision::Halt { .. }) => (
                    AwaitedHookReplyForm::Stop,
                    adapter.agent_name() == "generic",
                ),
                Decision::Noted | Decision::Round(_) => (AwaitedHookReplyForm::Silent, false),
            };
            let reply = adapter.render_decision_reply(form, &answer);
            assert_eq!(
                refuses(&reply),
                expected,
                "{} {answer:?} {reply:?}",
                adapter.agent_name()
            );
        }
    }
}

#[test]
fn stances_are_obeyed() {
    let check = |form: AwaitedHookReplyForm, stance: Stance, expected: bool| {
        for adapter in ALL {
            let reply = adapter.stance_as_hook_reply(form, stance, "the store is locked");
            assert_eq!(
                refuses(&reply),
                expected,
                "{} {form:?} {stance:?} {reply:?}",
                adapter.agent_name()
            );
            let said = [reply.stdout.as_slice(), reply.stderr.as_slice()].concat();
            let said = String::from_utf8(said).unwrap();
            let silent = form == AwaitedHookReplyForm::Silent && adapter.agent_name() != "generic";
            assert_eq!(
                said.contains("the store is locked"),
                !silent,
                "{} {form:?} {stance:?} {said}",
                adapter.agent_name()
            );
        }
    };
    check(AwaitedHookReplyForm::Tool, Stance::Block, true);
    check(AwaitedHookReplyForm::Tool, Stance::Ask, true);
    check(AwaitedHookReplyForm::Tool, Stance::Allow, false);
    check(AwaitedHookReplyForm::Stop, Stance::Block, true);
    check(AwaitedHookReplyForm::Stop, Stance::Ask, false);
    check(AwaitedHookReplyForm::Stop, Stance::Allow, false);
    check(AwaitedHookReplyForm::Unknown, Stance::Block, true);
    check(AwaitedHookReplyForm::Unknown, Stance::Ask, true);
    check(AwaitedHookReplyForm::Unknown, Stance::Allow, false);
    for stance in [Stance::Block, Stance::Allow, Stance::Ask] {
        check(AwaitedHookReplyForm::Silent, stance, false);
    }
}

#[test]
fn an_event_of_another_kind_is_never_answered_by_mistake() {
    for adapter in ALL {
        for answer in answers() {
            let wrong = match &answer.decision {
                Decision::Tool(_) => AwaitedHookReplyForm::Stop,
                Decision::Stop(_) | Decision::Noted | Decision::Round(_) => {
                    AwaitedHookReplyForm::Tool
                }
            };
            let quiet = adapter.render_decision_reply(wrong, &answer);
            assert!(
                !refuses(&quiet),
                "{} {answer:?} {quiet:?}",
                adapter.agent_name()
            );
            assert!(!refuses(
                &adapter.render_decision_reply(AwaitedHookReplyForm::Silent, &answer)
            ));
        }
        let noted = adapter.render_decision_reply(
            AwaitedHookReplyForm::Silent,
            &HookDecisionWithTexts::new(Decision::Noted),
        );
        assert_eq!(noted.stdout.is_empty(), adapter.agent_name() != "generic");
    }
}

#[test]
fn capabilities_say_what_is_rendered() {
    for adapter in ALL {
        let able = adapter.agent_capabilities();
        let tool = |decision: ToolDecision| {
            let answer = HookDecisionWithTexts {
                can_ask: true,
                ..HookDecisionWithTexts::new(Decision::Tool(decision))
            };
            String::from_utf8(
                adapter
                    .render_decision_reply(AwaitedHookReplyForm::Tool, &answer)
                    .stdout,
            )
            .unwrap()
        };
        let asked = tool(ToolDecision::Ask {
            reason: "r".into(),
            approval: "a".into(),
            until: None,
        });
        assert_eq!(
            asked.contains("\"ask\""),
            able.ask_person,
            "{}",
            adapter.agent_name()
        );
        let halted = tool(ToolDecision::Halt { reason: "r".into() });
        let really = halted.contains("\"continue\":false") || halted.contains("\"halt\"");
        assert_eq!(really, able.halt, "{}", adapter.agent_name());
        assert!(
            able.deadlines
                .default_hook_deadline_for_event(AgentEventKind::Stop)
                >= able
                    .deadlines
                    .default_hook_deadline_for_event(AgentEventKind::SessionEnd)
        );
    }
}
