//! Counts token use from the transcript, which is JSON Lines. A response is one row per content
//! block, each with the same message id and usage, so usage counts once per message id.

use checkrein_core::ids::ScopeId;
use checkrein_core::input::TokenUsage;
use serde::Deserialize;

use crate::usage_cursor::UsageCursor;

#[derive(Deserialize)]
struct TranscriptRowWire<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(default)]
    message: Option<TranscriptMessageWire>,
}

#[derive(Deserialize)]
struct TranscriptMessageWire {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    usage: Option<TranscriptUsageWire>,
}

#[derive(Deserialize)]
struct TranscriptUsageWire {
    output_tokens: u64,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
}

pub(super) fn transcript_token_usage(bytes: &[u8], cursor: &str) -> Option<TokenUsage> {
    let mut ledger = UsageCursor::parse_usage_cursor_or_default(cursor);
    let (mut output, mut input) = (0_u64, 0_u64);
    let (mut counted, mut unknown) = (false, false);
    ledger.for_each_complete_line(bytes, |ledger, line| {
        // Most bytes are bookkeeping rows; only a response's row is worth parsing.
        if !contains_bytes(line, b"\"assistant\"") {
            return;
        }
        // One damaged row must not hide the use that all the others report.
        let Ok(row) = serde_json::from_slice::<TranscriptRowWire<'_>>(line) else {
            return;
        };
        if row.kind != "assistant" {
            return;
        }
        match row.message {
            Some(TranscriptMessageWire {
                id: Some(id),
                usage: Some(usage),
            }) => {
                let other = usage
                    .input_tokens
                    .saturating_add(usage.cache_creation_input_tokens)
                    .saturating_add(usage.cache_read_input_tokens);
                counted = true;
                let (out, inp) = ledger.record_message_usage(&id, usage.output_tokens, other);
                output = output.saturating_add(out);
                input = input.saturating_add(inp);
            }
            _ => unknown = true,
        }
    });
    // Nothing counted so far is a lagging or a foreign file, and responses without a count are a
    // format that we do not know: neither is a use of zero.
    if ledger.is_empty() || (unknown && !counted) {
        return None;
    }
    Some(TokenUsage {
        output,
        input,
        cost: None,
        cursor: ledger.serialize_cursor(),
    })
}

/// Returns the path of the transcript that holds this scope's tokens: a sub-agent has a file of its
/// own.
pub(super) fn transcript_path_of_scope(main: &str, scope: &ScopeId) -> Option<String> {
    if scope.is_main_scope() {
        return Some(main.to_owned());
    }
    let id = scope.as_str();
    let plain = id
        // The id comes from the agent: a `/` or `..` in it would read a file elsewhere.
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let stem = main.strip_suffix(".jsonl")?;
    plain.then(|| format!("{stem}/subagents/agent-{id}.jsonl"))
}

fn contains_bytes(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("../../fixtures/claude-code/transcript@2.1.330.jsonl");

    fn read(bytes: &[u8], cursor: &str) -> (u64, u64, String) {
        let used = transcript_token_usage(bytes, cursor).unwrap();
        (used.output, used.input, used.cursor)
    }

    #[test]
    fn counts_the_recorded_run_as_its_script_says() {
        let (output, input, _) = read(RECORDED.as_bytes(), "");
        // Three rows share the first message: 11 + 22 + 33 output tokens were scripted.
        assert_eq!((output, input), (66, 1110 + 2220 + 3000));
    }

    #[test]
    fn readings_may_be_split_anywhere() {
        let bytes = RECORDED.as_bytes();
        let (output, input, whole) = read(bytes, "");
        for split in 0..bytes.len() {
            let first = transcript_token_usage(&bytes[..split], "");
            let cursor = first.as_ref().map_or("", |used| used.cursor.as_str());
            let at =
                usize::try_from(crate::usage_cursor::parse_transcript_read_offset(cursor)).unwrap();
            let (rest, other, last) = read(&bytes[at..], cursor);
            let (before, before_in) = first
                .as_ref()
                .map_or((0, 0), |used| (used.output, used.input));
            assert_eq!(
                (before + rest, before_in + other, last.as_str()),
                (output, input, whole.as_str()),
                "split at {split}"
            );
        }
    }

    #[test]
    fn unknown_is_never_zero() {
        let check =
            |text: &str| assert_eq!(transcript_token_usage(text.as_bytes(), ""), None, "{text}");
        check("");
        check("no transcript at all\n");
        check("{\"type\":\"user\",\"message\":{\"content\":\"hi \\\"assistant\\\"\"}}\n");
        check("{\"type\":\"assistant\",\"message\":{\"id\":\"m\"}}\n");
        check(
            "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"usage\":{\"output_tokens\":3}}}",
        );
    }

    #[test]
    fn responses_without_a_count_are_unknown_until_one_counts() {
        let counts =
            "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"usage\":{\"output_tokens\":3}}}\n";
        let silent = "{\"type\":\"assistant\",\"message\":{\"id\":\"n\"}}\n";
        let (output, _, cursor) = read(counts.as_bytes(), "");
        assert_eq!(output, 3);
        assert_eq!(transcript_token_usage(silent.as_bytes(), &cursor), None);
        let next = counts.replace("\"m\"", "\"o\"");
        assert_eq!(read(format!("{silent}{next}").as_bytes(), &cursor).0, 3);
    }

    #[test]
    fn a_sub_agent_has_a_file_of_its_own() {
        let check = |main: &str, scope: &str, expected: Option<&str>| {
            assert_eq!(
                transcript_path_of_scope(main, &ScopeId::from(scope)).as_deref(),
                expected
            );
        };
        check("/h/s.jsonl", "", Some("/h/s.jsonl"));
        check("/h/s.jsonl", "a1", Some("/h/s/subagents/agent-a1.jsonl"));
        check("/h/s.jsonl", "../x", None);
        check("/h/s.txt", "a1", None);
    }
}
