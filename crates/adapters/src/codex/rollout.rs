//! Counts token use from the rollout file, which is JSON Lines. `token_count` rows tell the
//! thread's total so far; output includes reasoning, input includes what was cached.

use checkrein_core::input::TokenUsage;
use serde::Deserialize;

use crate::usage_cursor::UsageCursor;

/// The name under which the ledger keeps the total so far.
const TOTAL_ID: &str = "total";

#[derive(Deserialize)]
struct RolloutRowWire<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    payload: RolloutPayloadWire<'a>,
}

#[derive(Deserialize)]
struct RolloutPayloadWire<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(default)]
    info: Option<TokenCountInfoWire>,
}

#[derive(Deserialize)]
struct TokenCountInfoWire {
    total_token_usage: RolloutUsageWire,
}

#[derive(Deserialize)]
struct RolloutUsageWire {
    input_tokens: u64,
    output_tokens: u64,
}

pub(super) fn rollout_token_usage(bytes: &[u8], cursor: &str) -> Option<TokenUsage> {
    let mut ledger = UsageCursor::parse_usage_cursor_or_default(cursor);
    let (mut output, mut input) = (0_u64, 0_u64);
    ledger.for_each_complete_line(bytes, |ledger, line| {
        let Ok(row) = serde_json::from_slice::<RolloutRowWire<'_>>(line) else {
            return;
        };
        // Rows with rate limits only carry no counts.
        let ("event_msg", "token_count", Some(info)) =
            (&*row.kind, &*row.payload.kind, row.payload.info)
        else {
            return;
        };
        let total = info.total_token_usage;
        // A total that shrank was begun anew. Without forgetting the old one, nothing would count
        // until the new total has passed it.
        if ledger
            .noted_usage_for_message(TOTAL_ID)
            .is_some_and(|(out, _)| total.output_tokens < out)
        {
            ledger.forget_message_usage(TOTAL_ID);
        }
        let (out, inp) =
            ledger.record_message_usage(TOTAL_ID, total.output_tokens, total.input_tokens);
        output = output.saturating_add(out);
        input = input.saturating_add(inp);
    });
    // Nothing counted so far is a young or a foreign file, not a use of zero.
    if ledger.is_empty() {
        return None;
    }
    Some(TokenUsage {
        output,
        input,
        cost: None,
        cursor: ledger.serialize_cursor(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("../../fixtures/codex/rollout@0.169.0.jsonl");

    #[test]
    fn counts_the_recorded_run_as_the_agent_did() {
        // What `turn.completed` of the same run said: 2300 in, 150 out.
        let used = rollout_token_usage(RECORDED.as_bytes(), "").unwrap();
        assert_eq!((used.output, used.input), (150, 2300));
        let again = rollout_token_usage(b"", &used.cursor).unwrap();
        assert_eq!((again.output, again.input), (0, 0));
    }

    #[test]
    fn readings_may_be_split_anywhere() {
        let bytes = RECORDED.as_bytes();
        for split in 0..bytes.len() {
            let first = rollout_token_usage(&bytes[..split], "");
            let cursor = first.as_ref().map_or("", |used| used.cursor.as_str());
            let at =
                usize::try_from(crate::usage_cursor::parse_transcript_read_offset(cursor)).unwrap();
            let rest = rollout_token_usage(&bytes[at..], cursor).unwrap();
            let before = first.as_ref().map_or(0, |used| used.output);
            assert_eq!(before + rest.output, 150, "split at {split}");
        }
    }

    #[test]
    fn a_total_that_shrank_was_begun_anew() {
        let row = |output: u64| {
            format!(
                "{{\"type\":\"event_msg\",\"payload\":{{\"type\":\"token_count\",\"info\":{{\"total_token_usage\":{{\"input_tokens\":1,\"output_tokens\":{output}}}}}}}}}\n"
            )
        };
        let used =
            rollout_token_usage(format!("{}{}{}", row(10), row(4), row(6)).as_bytes(), "").unwrap();
        assert_eq!(used.output, 16);
    }

    #[test]
    fn unknown_is_never_zero() {
        let check =
            |text: &str| assert_eq!(rollout_token_usage(text.as_bytes(), ""), None, "{text}");
        check("");
        check("not a rollout\n");
        check("{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":null}}\n");
        check("{\"type\":\"turn_context\",\"payload\":{\"cwd\":\"x\"}}\n");
    }
}
