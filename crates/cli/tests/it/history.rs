//! What the agents recorded by themselves is replayed as traces are.

use serde_json::Value;

use crate::world::World;

const TRANSCRIPT: &str =
    include_str!("../../../adapters/fixtures/claude-code/transcript@2.1.330.jsonl");
const ROLLOUT: &str = include_str!("../../../adapters/fixtures/codex/history@0.169.0.jsonl");

fn summary(name: &str, text: &str) -> Value {
    let world = World::without_git();
    world.write(name, text);
    let said = world.says(&["replay", name, "--json", "--preset", "balanced"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn a_transcript_and_a_rollout_are_replayed_with_their_tokens() {
    let transcript = summary("session.jsonl", TRANSCRIPT);
    assert_eq!(transcript["id"], "9eac3c12-542e-494d-a16f-07f94a2d5ddc");
    // 11 + 22 + 33 were scripted, and as much of everything else.
    assert_eq!(
        (
            &transcript["tool_calls"],
            &transcript["output_tokens"],
            &transcript["input_tokens"]
        ),
        (&3.into(), &66.into(), &(1110 + 2220 + 3000).into())
    );
    let rollout = summary("rollout.jsonl", ROLLOUT);
    assert_eq!(
        (
            &rollout["tool_calls"],
            &rollout["output_tokens"],
            &rollout["input_tokens"]
        ),
        (&2.into(), &100.into(), &1200.into())
    );
}

#[test]
fn a_loop_in_a_transcript_is_found() {
    let row = |kind: &str, message: String| {
        format!(r#"{{"type":"{kind}","sessionId":"s1","message":{message}}}"#)
    };
    let mut text = row("user", r#"{"content":"do it"}"#.to_owned()) + "\n";
    for nth in 0..6 {
        let call = format!(
            r#"{{"id":"m{nth}","content":[{{"type":"tool_use","id":"t{nth}","name":"Bash","input":{{"command":"make"}}}}]}}"#
        );
        let result = format!(
            r#"{{"content":[{{"type":"tool_result","tool_use_id":"t{nth}","content":"no rule","is_error":true}}]}}"#
        );
        text += &format!("{}\n{}\n", row("assistant", call), row("user", result));
    }
    let found = summary("session.jsonl", &text);
    assert_eq!(found["halted_at"], 4, "{found}");

    let world = World::without_git();
    world.write("session.jsonl", &text);
    let said = world.says(&["tune", "session.jsonl", "--preset", "balanced", "--json"]);
    let tuned = said.json();
    assert_eq!(
        (&tuned["runs"], &tuned["halted"]),
        (&1.into(), &1.into()),
        "{tuned}"
    );
}
