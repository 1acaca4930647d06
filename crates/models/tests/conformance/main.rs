//! Every wire against a provider on loopback: one table of what providers do, walked for each.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

mod failures;
mod requests;
mod server;
mod wires;

use std::time::Duration;

use checkrein_models::{
    ChatMessage, FinishReason, LanguageModel, ModelError, ModelReply, ModelRequest,
    ModelRequestLimits, RemoteModel, block_on,
};
use serde_json::json;

use server::{ModelServer, ServerAnswer};
use wires::{FixtureEnd, FixtureReply, TOKENS, WireFixture, all};

/// Long for everything but the tests of these limits.
const LIMITS: ModelRequestLimits = ModelRequestLimits {
    connect: Duration::from_secs(20),
    idle_timeout: Duration::from_secs(20),
    total_timeout: Duration::from_secs(30),
    bytes: 1024 * 1024,
    tries: 3,
    first_backoff: Duration::from_millis(1),
};

fn question() -> ModelRequest {
    ModelRequest {
        system: "be brief".into(),
        messages: vec![ChatMessage::User("is it done?".to_owned())],
        ..ModelRequest::default()
    }
}

/// One question to a provider that answers so.
fn ask(
    wire: &WireFixture,
    request: &ModelRequest,
    limits: ModelRequestLimits,
    answers: Vec<ServerAnswer>,
) -> (Result<ModelReply, ModelError>, ModelServer) {
    let server = ModelServer::start(answers);
    let model = RemoteModel::new(wire.name, &wire.environment(&server.base), limits).unwrap();
    assert_eq!(model.model_name(), wire.name);
    (block_on(model.ask_model(request)), server)
}

fn said() -> FixtureReply {
    FixtureReply {
        thought: None,
        text: vec!["It is ", "dö", "ne.\n"],
        calls: vec![],
        end: FixtureEnd::Turn,
        told: true,
    }
}

/// The answer to one request, whole and cut into pieces of seven bytes.
fn replies(wire: &WireFixture, said: &FixtureReply) -> [ModelReply; 2] {
    let answer = ServerAnswer::stream(&(wire.say)(said));
    [answer.clone(), answer.cut(7)].map(|answer| {
        let (reply, server) = ask(wire, &question(), LIMITS, vec![answer]);
        assert_eq!(server.requests(), 1, "{}", wire.name);
        reply.unwrap_or_else(|error| panic!("{}: {error}", wire.name))
    })
}

#[test]
fn text_comes_in_pieces() {
    for wire in all() {
        for reply in replies(&wire, &said()) {
            assert_eq!(reply.text, "It is döne.\n", "{}", wire.name);
            assert_eq!(
                reply.finish_reason,
                FinishReason::EndOfTurn,
                "{}",
                wire.name
            );
            assert!(reply.calls.is_empty(), "{}", wire.name);
        }
    }
}

#[test]
fn thoughts_are_left_out() {
    for wire in all() {
        let said = FixtureReply {
            thought: Some("I could claim that it is done"),
            ..said()
        };
        for reply in replies(&wire, &said) {
            assert_eq!(reply.text, "It is döne.\n", "{}", wire.name);
        }
    }
}

#[test]
fn tokens_are_counted_by_kind() {
    let (input, cached, written, output) = TOKENS;
    for wire in all() {
        for reply in replies(&wire, &said()) {
            let usage = reply.usage;
            assert_eq!(usage.input, Some(input), "{}", wire.name);
            assert_eq!(usage.output, Some(output), "{}", wire.name);
            let told = !wire.name.starts_with("ollama");
            assert_eq!(usage.cache_read, told.then_some(cached), "{}", wire.name);
            assert_eq!(
                usage.cache_write,
                wire.tells_written.then_some(written),
                "{}",
                wire.name
            );
        }
        // What is not told is not known.
        let said = FixtureReply {
            told: false,
            ..said()
        };
        for reply in replies(&wire, &said) {
            assert_eq!(reply.usage, Default::default(), "{}", wire.name);
            assert_eq!(reply.text, "It is döne.\n", "{}", wire.name);
        }
    }
}

#[test]
fn the_end_has_a_reason() {
    for wire in all() {
        for (end, expected) in [
            (FixtureEnd::Turn, FinishReason::EndOfTurn),
            (FixtureEnd::Cut, FinishReason::Truncated),
            (FixtureEnd::Refused, FinishReason::Refused),
            (
                FixtureEnd::Odd,
                FinishReason::Other("pause_turn".to_owned()),
            ),
        ] {
            for reply in replies(&wire, &FixtureReply { end, ..said() }) {
                assert_eq!(reply.finish_reason, expected, "{} {end:?}", wire.name);
                assert_eq!(reply.text, "It is döne.\n", "{} {end:?}", wire.name);
            }
        }
    }
}

#[test]
fn calls_come_in_pieces_and_side_by_side() {
    for wire in all() {
        let said = FixtureReply {
            text: vec!["Let me look."],
            calls: vec![
                ("call_1", "read", vec!["{\"path\":", " \"a b", "\\u00fc\"}"]),
                ("call_2", "list", vec![]),
            ],
            end: FixtureEnd::Calls,
            ..said()
        };
        for reply in replies(&wire, &said) {
            assert_eq!(reply.finish_reason, FinishReason::Calls, "{}", wire.name);
            assert_eq!(reply.text, "Let me look.", "{}", wire.name);
            let calls: Vec<_> = reply
                .calls
                .iter()
                .map(|call| (call.id.as_str(), call.tool.as_str(), call.arguments.clone()))
                .collect();
            let expected = [
                ("call_1", "read", Ok(json!({ "path": "a bü" }))),
                ("call_2", "list", Ok(json!({}))),
            ];
            assert_eq!(calls, expected, "{}", wire.name);
        }
    }
}

#[test]
fn arguments_that_are_no_json_are_kept_as_they_came() {
    for wire in all() {
        let said = FixtureReply {
            calls: vec![("call_1", "read", vec!["{\"path\": ", "oops"])],
            end: FixtureEnd::Calls,
            ..said()
        };
        for reply in replies(&wire, &said) {
            let arguments = &reply.calls[0].arguments;
            let expected = Err("{\"path\": oops".to_owned());
            assert_eq!(arguments, &expected, "{}", wire.name);
        }
    }
}

#[test]
fn a_call_without_an_id_is_given_one() {
    for wire in all() {
        let said = FixtureReply {
            calls: vec![("", "read", vec!["{}"]), ("", "list", vec!["{}"])],
            end: FixtureEnd::Calls,
            ..said()
        };
        for reply in replies(&wire, &said) {
            let ids: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
            assert!(
                ids.len() == 2 && ids.iter().all(|id| !id.is_empty()),
                "{}",
                wire.name
            );
            assert_ne!(ids[0], ids[1], "{}", wire.name);
        }
    }
}

#[test]
fn an_answer_in_a_shape_is_its_text() {
    let pieces = ["{\"verdict\": \"fa", "il\", \"why\": \"\\u00fc", "\\n\"}"];
    let expected = json!({ "verdict": "fail", "why": "ü\n" });
    for wire in all() {
        let said = FixtureReply {
            text: pieces.to_vec(),
            ..said()
        };
        for reply in replies(&wire, &said) {
            let read: serde_json::Value = serde_json::from_str(&reply.text).unwrap();
            assert_eq!(read, expected, "{}", wire.name);
        }
    }
}

#[test]
fn an_empty_answer_is_an_answer() {
    for wire in all() {
        let said = FixtureReply {
            text: vec![],
            ..said()
        };
        for reply in replies(&wire, &said) {
            assert_eq!(
                (reply.text.as_str(), reply.finish_reason),
                ("", FinishReason::EndOfTurn),
                "{}",
                wire.name
            );
        }
    }
}
