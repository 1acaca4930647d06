//! Stories as text: `prompt | edit | tests fail 1 | stop` with the answers one expects.
//!
//! Verbs: `prompt` `edit` `act` (what only declared inputs outlive) `installs` (what nothing does) `tree N` `unreadable` `moves N…` (what the next readings find)
//! `NAME pass|fail ID…|CAUSE|on T CAUSE|after T VERDICT` `stop [cap=N] [tokens=N] [truncated] [over=WORD]`
//! `call NAME[=OUTCOME] [tokens=N]` `!NAME` (forbidden) `?NAME` (ask) `returns NAME`
//! `calling WORD` (what calls for judges) `says TEXT` (the final message) `round` `wait SECONDS` `back SECONDS` `end` `clear` `failed WORD` `process [WORD]` `interrupt`
//! `asks [ID [yes|no]]` (what is looked up about the next calls) `answered ID yes|no`
//! `edited PATH…` (guarded files) `renewed` (sealed anew) `tick` `stance tool|stop allow|ask|block`. `@SCOPE` before a verb moves it into a sub-agent, `Nx` repeats it.

use checkrein_core::decision::{Decision, RoundDecision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::event::Event;
use checkrein_core::evidence::{InconclusiveCause, Verdict};
use checkrein_core::ids::{ScopeId, SessionId, UnixMillis, VerifierName};
use checkrein_core::input::{
    AgentProcessFailureReport, ApprovalStatusFact, ConfigEdited, Input, PersonAnswer,
    PersonAnswered, RoundEnded, SessionEnded, SessionStartKind, SessionStarted, StancePoint,
    StanceUsed, TokenUsage, TurnEndedByApiError,
};
use checkrein_core::policy::{Policy, Stance};
use checkrein_core::tool_request::{GRACE_MESSAGE, HALTED_MESSAGE};
use checkrein_core::transition::{Reason, Transition};

use crate::world::{CoreWorld, RuleDecision, ScriptedVerdict, scope};

/// Tells `story` in a world of this policy; its answers are `expected`, its log replays
/// and keeps law 1.
pub(crate) fn check(policy: Policy, story: &str, expected: &str) {
    let mut world = CoreWorld::new(policy);
    let told = tell(&mut world, story);
    let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(told, expected, "\nstory: {story}");
    crate::laws::audit(&world);
    crate::laws::replays(&world);
}

/// The answers, runs of equal ones as `answer x3`.
pub(crate) fn tell(world: &mut CoreWorld, story: &str) -> String {
    let mut answers: Vec<(String, usize)> = Vec::new();
    for line in story.split('|') {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let times = words
            .first()
            .and_then(|word| word.strip_suffix('x')?.parse().ok());
        if times.is_some() {
            words.remove(0);
        }
        for _ in 0..times.unwrap_or(1) {
            let Some(answer) = act(world, &words) else {
                continue;
            };
            match answers.last_mut() {
                Some((last, count)) if *last == answer => *count += 1,
                _ => answers.push((answer, 1)),
            }
        }
    }
    let words: Vec<String> = answers
        .into_iter()
        .map(|(answer, count)| match count {
            1 => answer,
            _ => format!("{answer} x{count}"),
        })
        .collect();
    words.join(" | ")
}

fn act(world: &mut CoreWorld, words: &[&str]) -> Option<String> {
    let (at, words) = match words {
        [first, rest @ ..] if first.starts_with('@') => (scope(&first[1..]), rest),
        _ => (ScopeId::main_scope(), words),
    };
    let (verb, rest) = words.split_first().unwrap();
    let number = |at: usize| rest[at].parse::<u64>().unwrap();
    let step = match *verb {
        "prompt" => world.prompt(),
        "edit" => {
            world.tree = Some(world.tree.unwrap_or(0) + 1);
            return None;
        }
        "act" => {
            world.acts.any += 1;
            return None;
        }
        "installs" => {
            world.acts.any += 1;
            world.acts.declared = world.acts.any;
            return None;
        }
        "tree" => {
            world.tree = Some(number(0));
            return None;
        }
        "unreadable" => {
            world.tree = None;
            return None;
        }
        "moves" => {
            // The stop itself finds the tree as it is.
            world.readings = world.tree.into_iter().collect();
            world.readings.extend((0..rest.len()).map(number));
            return None;
        }
        "says" => {
            world.stop.message_digest = Digest::hash_bytes(rest.join(" ").as_bytes());
            return None;
        }
        "wait" => {
            world.now += 1_000 * number(0);
            return None;
        }
        "back" => {
            world.now -= 1_000 * number(0);
            return None;
        }
        "stop" => {
            world.stop.truncated = rest.contains(&"truncated");
            world.stop.block_cap = option(rest, "cap=").map(|cap| cap as u32);
            world.stop.tokens = tokens(rest);
            world.stop.agent_ending =
                rest.iter()
                    .find_map(|word| word.strip_prefix("over="))
                    .map(|native| Transition {
                        native_reason: Some(native.to_owned()),
                        ..Transition::new(Reason::HardCap, "cost")
                    });
            let (asked, decision) = world.stop(&at);
            return Some(describe(&asked, &decision));
        }
        "call" => {
            let (name, outcome) = match rest[0].split_once('=') {
                Some((name, outcome)) => (name, outcome.parse().ok()),
                None => (rest[0], None),
            };
            let rule = match name.as_bytes()[0] {
                b'!' => Some(RuleDecision::Forbidden),
                b'?' => Some(RuleDecision::Prompt),
                _ => None,
            };
            let made = world.tool(&at, name, outcome, rule, tokens(rest));
            return Some(describe(&[], &made.decision.unwrap()));
        }
        "returns" => world.tool_result(&at, None, rest[0], 1),
        "round" => world.news(Input::RoundEnded(RoundEnded {
            scope: at,
            tokens: tokens(rest),
        })),
        "end" => world.news(Input::SessionEnded(SessionEnded {
            native_reason: "exit".to_owned(),
        })),
        "clear" | "resume" => world.news(Input::SessionStarted(SessionStarted {
            agent: "claude-code".into(),
            how: match *verb {
                "clear" => SessionStartKind::Clear,
                _ => SessionStartKind::Resume,
            },
            parent: Some(SessionId::from("older")),
            tokens: tokens(rest),
        })),
        "failed" => world.news(Input::StopFailed(TurnEndedByApiError {
            scope: at,
            native_reason: rest[0].to_owned(),
            truncated: rest[0] == "max_tokens",
        })),
        "process" => world.news(Input::ProcessFailed(AgentProcessFailureReport {
            exit_code: Some(3),
            what: "exit status 3".to_owned(),
            native_reason: rest.first().map(ToString::to_string),
        })),
        "stance" => world.news(Input::StanceUsed(StanceUsed {
            scope: at,
            at: match rest[0] {
                "tool" => StancePoint::Tool,
                _ => StancePoint::Stop,
            },
            stance: match rest[1] {
                "allow" => Stance::Allow,
                "ask" => Stance::Ask,
                _ => Stance::Block,
            },
            why: "store locked".to_owned(),
        })),
        "edited" => world.news(Input::ConfigEdited(ConfigEdited {
            paths: rest.iter().map(|path| (*path).to_owned()).collect(),
            guarded: Digest::hash_bytes(rest.join(" ").as_bytes()),
        })),
        "calling" => {
            world.calling = serde_json::from_str(&format!("\"{}\"", rest[0])).unwrap();
            return None;
        }
        "renewed" => {
            let policy = Digest::hash_bytes(&world.policy.to_policy_blob());
            world.record(Event::PolicyRenewed {
                policy,
                guarded: None,
                by: "a person".to_owned(),
            });
            return None;
        }
        "asks" => {
            let said = rest.get(1).map(|word| *word == "yes");
            world.approval = rest.first().map(|id| ApprovalStatusFact {
                id: (*id).to_owned(),
                until: UnixMillis(world.now + 60_000),
                answer: said.map(person),
            });
            return None;
        }
        "answered" => world.news(Input::PersonAnswered(PersonAnswered {
            approval: rest[0].to_owned(),
            what: "push".to_owned(),
            ends: None,
            until: UnixMillis(world.now + 60_000),
            answer: person(rest[1] == "yes"),
        })),
        "interrupt" => world.news(Input::Interrupted),
        "tick" => world.news(Input::TimePassed),
        "ending" => return world.ending().or(Some("open".to_owned())),
        name => {
            let saying = saying(rest);
            world.sayings.insert(VerifierName::from(name), saying);
            return None;
        }
    };
    let decision = step.decision.unwrap();
    (decision != Decision::Noted).then(|| describe(&[], &decision))
}

fn person(approved: bool) -> PersonAnswer {
    PersonAnswer {
        approved,
        by: "ada: a person".to_owned(),
        reason: Some("because".to_owned()),
    }
}

fn option(words: &[&str], key: &str) -> Option<u64> {
    words
        .iter()
        .find_map(|word| word.strip_prefix(key)?.parse().ok())
}

fn tokens(words: &[&str]) -> Option<TokenUsage> {
    option(words, "tokens=").map(|output| TokenUsage {
        output,
        input: 0,
        cost: option(words, "cost="),
        cursor: "c".to_owned(),
    })
}

fn saying(words: &[&str]) -> ScriptedVerdict {
    match words {
        ["on", tree, rest @ ..] => ScriptedVerdict {
            on: tree.parse().ok(),
            ..saying(rest)
        },
        ["after", tree, rest @ ..] => ScriptedVerdict {
            after: tree.parse().ok(),
            ..saying(rest)
        },
        ["pass"] => ScriptedVerdict::pass(),
        ["fail", ids @ ..] => {
            let ids: Vec<u64> = ids.iter().map(|id| id.parse().unwrap()).collect();
            ScriptedVerdict::fail(&ids)
        }
        [cause] => ScriptedVerdict::because(serde_json::from_str(&format!("\"{cause}\"")).unwrap()),
        _ => panic!("{words:?}"),
    }
}

/// Effects by name (`look` = the tree read once more), then the answer.
pub(crate) fn describe(asked: &[Effect], decision: &Decision) -> String {
    let mut words: Vec<String> = asked
        .iter()
        .map(|effect| match effect {
            Effect::RunVerifier { verifier, .. } => verifier.to_string(),
            Effect::ReadTree { .. } => "look".to_owned(),
        })
        .collect();
    words.push(match decision {
        Decision::Noted => "noted".to_owned(),
        Decision::Round(RoundDecision::Nudge { .. }) => "nudge".to_owned(),
        Decision::Round(RoundDecision::Halt { .. }) => "halt".to_owned(),
        Decision::Tool(decision) => match decision {
            ToolDecision::Allow => "allow".to_owned(),
            ToolDecision::Nudge { .. } => "nudge".to_owned(),
            ToolDecision::Rewrite { .. } => "rewrite".to_owned(),
            ToolDecision::Ask { .. } => "ask".to_owned(),
            ToolDecision::Deny { reason } if reason == GRACE_MESSAGE => "grace".to_owned(),
            ToolDecision::Deny { reason } if reason == HALTED_MESSAGE => "halted".to_owned(),
            ToolDecision::Deny { .. } => "deny".to_owned(),
            ToolDecision::Halt { .. } => "halt".to_owned(),
        },
        Decision::Stop(StopDecision::Accept { transition: None }) => "accept".to_owned(),
        Decision::Stop(StopDecision::Accept {
            transition: Some(ended),
        }) => transition(ended),
        Decision::Stop(StopDecision::Halt { transition: ended }) => {
            format!("halt {}", transition(ended))
        }
        Decision::Stop(StopDecision::Continue { feedback }) => {
            let mut text = if feedback.target.is_some() {
                "sent on".to_owned()
            } else if feedback.repeat {
                "repeat".to_owned()
            } else if feedback.judges as usize == feedback.checks.len() {
                format!("sent back {}/{}", feedback.met, feedback.attempts)
            } else {
                "continue".to_owned()
            };
            for check in &feedback.checks {
                let verdict = match (check.verdict, check.cause) {
                    (Verdict::Inconclusive, Some(cause)) => format!("{}?", word(cause)),
                    _ => String::new(),
                };
                let counts = [check.new.len(), check.still.len(), check.fixed as usize];
                let [new, still, fixed] = counts;
                text += &format!(" {}:{verdict}{new}+{still}-{fixed}", check.verifier);
            }
            text
        }
    });
    words.join(" ")
}

fn word(cause: InconclusiveCause) -> String {
    serde_json::to_value(cause)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

pub(crate) fn transition(ended: &Transition) -> String {
    match &ended.detail {
        Some(detail) => format!("{}/{detail}", ended.reason.as_str()),
        None => ended.reason.as_str().to_owned(),
    }
}
