//! Law 11, Checkrein only tightens: no answer of ours lifts a prompt, a sandbox or another
//! hook's denial, whatever was decided and whatever was asked.

use checkrein_adapters::{ALL, AwaitedHookReplyForm, HookReply};
use checkrein_core::policy::Stance;
use serde_json::Value;

use crate::decisions::answers;

/// Words with which an agent's protocol grants something, as a key or as a value.
const GRANTS: [&str; 6] = [
    "allow",
    "approve",
    "defer",
    "updatedInput",
    "updatedPermissions",
    "updatedToolOutput",
];

fn words(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            found.push(key.clone());
            words(item, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// In our own protocol `allow` is the name of "no opinion"; there is nothing it could lift,
/// and it never comes with a call to run instead.
fn grants(agent: &str, reply: &HookReply) -> Vec<String> {
    let said: Value = serde_json::from_slice(&reply.stdout).unwrap_or(Value::Null);
    let mut found = Vec::new();
    words(&said, &mut found);
    found.retain(|word| GRANTS.contains(&word.as_str()));
    if agent == "generic" && said.get("decision") == Some(&Value::from("allow")) {
        assert_eq!(said.get("reason"), Some(&Value::Null));
        found.retain(|word| word != "allow");
    }
    found
}

#[test]
fn no_answer_grants_anything() {
    for adapter in ALL {
        for form in AwaitedHookReplyForm::ALL {
            for answer in answers() {
                let reply = adapter.render_decision_reply(form, &answer);
                let found = grants(adapter.agent_name(), &reply);
                assert!(
                    found.is_empty(),
                    "{} {form:?} {answer:?}: {found:?}",
                    adapter.agent_name()
                );
            }
            for stance in [Stance::Block, Stance::Allow, Stance::Ask] {
                let reply = adapter.stance_as_hook_reply(form, stance, "cannot judge");
                let found = grants(adapter.agent_name(), &reply);
                assert!(
                    found.is_empty(),
                    "{} {form:?} {stance:?}: {found:?}",
                    adapter.agent_name()
                );
            }
        }
    }
}

#[test]
fn the_search_for_grants_finds_one() {
    let reply = HookReply {
        stdout: br#"{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{}}}"#
            .to_vec(),
        ..HookReply::no_opinion_hook_reply()
    };
    assert_eq!(grants("claude-code", &reply), ["allow", "updatedInput"]);
}
