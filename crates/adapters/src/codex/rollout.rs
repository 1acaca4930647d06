//! Token use from the rollout file, JSON Lines. `token_count` rows tell the thread's total so
//! far; output includes reasoning, input includes what was cached.

use checkrein_core::input::TokenUsage;
use serde::Deserialize;

use crate::ledger::Ledger;

/// The total so far is kept in the ledger under this name.
const TOTAL: &str = "total";

#[derive(Deserialize)]
struct RowWire<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    payload: PayloadWire<'a>,
}

#[derive(Deserialize)]
struct PayloadWire<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(default)]
    info: Option<InfoWire>,
}

#[derive(Deserialize)]
struct InfoWire {
    total_token_usage: UsageWire,
}

#[derive(Deserialize)]
struct UsageWire {
    input_tokens: u64,
    output_tokens: u64,
}

pub(super) fn usage(bytes: &[u8], cursor: &str) -> Option<TokenUsage> {
    let mut ledger = Ledger::read(cursor);
    let (mut output, mut input) = (0_u64, 0_u64);
    ledger.lines(bytes, |ledger, line| {
        let Ok(row) = serde_json::from_slice::<RowWire<'_>>(line) else {
            return;
        };
        // Rows with rate limits only carry no counts.
        let ("event_msg", "token_count", Some(info)) =
            (&*row.kind, &*row.payload.kind, row.payload.info)
        else {
            return;
        };
        let total = info.total_token_usage;
        // A total that shrank was begun anew.
        if ledger
            .noted(TOTAL)
            .is_some_and(|(out, _)| total.output_tokens < out)
        {
            ledger.forget(TOTAL);
        }
        let (out, inp) = ledger.note(TOTAL, total.output_tokens, total.input_tokens);
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
        cursor: ledger.write(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("../../fixtures/codex/rollout@0.169.0.jsonl");

    #[test]
    fn counts_the_recorded_run_as_the_agent_did() {
        // What `turn.completed` of the same run said: 2300 in, 150 out.
        let used = usage(RECORDED.as_bytes(), "").unwrap();
        assert_eq!((used.output, used.input), (150, 2300));
        let again = usage(b"", &used.cursor).unwrap();
        assert_eq!((again.output, again.input), (0, 0));
    }

    #[test]
    fn readings_may_be_split_anywhere() {
        let bytes = RECORDED.as_bytes();
        for split in 0..bytes.len() {
            let first = usage(&bytes[..split], "");
            let cursor = first.as_ref().map_or("", |used| used.cursor.as_str());
            let at = usize::try_from(crate::ledger::offset(cursor)).unwrap();
            let rest = usage(&bytes[at..], cursor).unwrap();
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
        let used = usage(format!("{}{}{}", row(10), row(4), row(6)).as_bytes(), "").unwrap();
        assert_eq!(used.output, 16);
    }

    #[test]
    fn unknown_is_never_zero() {
        let check = |text: &str| assert_eq!(usage(text.as_bytes(), ""), None, "{text}");
        check("");
        check("not a rollout\n");
        check("{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":null}}\n");
        check("{\"type\":\"turn_context\",\"payload\":{\"cwd\":\"x\"}}\n");
    }
}
