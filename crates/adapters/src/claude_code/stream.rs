//! Reads what `claude -p --output-format stream-json` prints. Tokens are taken from `result` rows
//! only: those of `assistant` rows are snapshots from before the answer. Neither exit status 0 nor
//! the subtype `success` says that the run went well; `is_error` and `terminal_reason` do.

use checkrein_core::transition::{Reason, Transition};
use serde_json::Value;

use crate::headless::{
    AgentOutputItem, AgentOutputReader, AgentOutputSummary, AgentTokensAndCost,
    ReportedAgentEnding, TokenUsageOfRunOrConversation, parse_billionths,
    transition_with_vendor_word,
};
use crate::lenient_json;

/// The text by which Claude Code reports, in the user's name, that it was interrupted.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Collects the facts of one run from its rows; see the module.
#[derive(Debug, Default)]
pub(super) struct ClaudeOutputReader {
    facts: AgentOutputSummary,
}

impl AgentOutputReader for ClaudeOutputReader {
    fn parse_agent_output_line(&mut self, line: &[u8]) -> Option<AgentOutputItem> {
        let row = lenient_json::parse_json_with_lone_surrogates(line).ok()?;
        match text_at_json_pointer(&row, "/type")? {
            "system" => {
                self.read_stream_row_session_id(&row);
                None
            }
            // The words of a sub-agent are not the agent's, so its rows count calls only.
            "assistant" if row.get("parent_tool_use_id").is_none_or(Value::is_null) => {
                self.read_stream_row_session_id(&row);
                self.read_claude_assistant_message(&row)
            }
            "assistant" => {
                self.facts.calls += called_tools(&row).count() as u64;
                None
            }
            // An interruption may come too early for a result to be printed.
            "user" => {
                // The row is synthetic: Claude Code writes it into the conversation as if the user
                // had said it.
                let said =
                    content_blocks(&row).find_map(|block| text_at_json_pointer(block, "/text"));
                if said.is_some_and(|said| said.starts_with(INTERRUPTED)) {
                    let word =
                        transition_with_vendor_word(Reason::UserInterrupt, None, "interrupted");
                    self.facts.ending = Some(ReportedAgentEnding::Interrupted(word));
                }
                None
            }
            "result" => {
                self.read_stream_row_session_id(&row);
                self.read_claude_result_message(&row);
                None
            }
            _ => None,
        }
    }

    fn agent_output_summary_so_far(&self) -> &AgentOutputSummary {
        &self.facts
    }
}

impl ClaudeOutputReader {
    fn read_stream_row_session_id(&mut self, row: &Value) {
        if let Some(id) = text_at_json_pointer(row, "/session_id").filter(|id| !id.is_empty()) {
            self.facts.session = Some(id.to_owned());
        }
    }

    fn read_claude_assistant_message(&mut self, row: &Value) -> Option<AgentOutputItem> {
        // The program prints one row per content block, so a row has a call or a text, hardly ever
        // both. A call is the more telling of the two.
        let called = called_tools(row).next().map(str::to_owned);
        self.facts.calls += called_tools(row).count() as u64;
        if let Some(tool) = called {
            return Some(AgentOutputItem::Call(tool));
        }
        let said = content_blocks(row)
            .filter(|block| text_at_json_pointer(block, "/type") == Some("text"))
            .filter_map(|block| text_at_json_pointer(block, "/text"))
            .find(|said| !said.trim().is_empty())
            .map(str::to_owned)?;
        self.facts.message = Some(said.clone());
        Some(AgentOutputItem::Message(said))
    }

    fn read_claude_result_message(&mut self, row: &Value) {
        // The cap on refused stops ends a run with an empty result: the last message must survive
        // that.
        if let Some(said) =
            text_at_json_pointer(row, "/result").filter(|said| !said.trim().is_empty())
        {
            self.facts.message = Some(said.to_owned());
        }
        if let Some((usage, partial)) = parse_claude_result_usage(row) {
            // One program may print several results, each about what happened since the last.
            let (before, missing) = match self.facts.usage {
                Some(TokenUsageOfRunOrConversation::ThisRun { usage, partial }) => (usage, partial),
                Some(TokenUsageOfRunOrConversation::Cumulative(_)) | None => {
                    (AgentTokensAndCost::default(), false)
                }
            };
            self.facts.usage = Some(TokenUsageOfRunOrConversation::ThisRun {
                usage: before.saturating_add_usage(usage),
                partial: partial || missing,
            });
        }
        self.facts.ending = Some(parse_claude_run_ending(row));
    }
}

fn parse_claude_run_ending(row: &Value) -> ReportedAgentEnding {
    let subtype = text_at_json_pointer(row, "/subtype").unwrap_or_default();
    let failed = row
        .get("is_error")
        .and_then(Value::as_bool)
        .unwrap_or(false)
        || subtype.starts_with("error");
    // Older versions give no terminal reason; their subtypes say the same about caps. The specific
    // words come before `is_error`, which is true for caps as well and would make them errors that
    // are retried.
    let word = text_at_json_pointer(row, "/terminal_reason").unwrap_or(subtype);
    let error = |detail: Option<&str>| transition_with_vendor_word(Reason::Error, detail, word);
    match word {
        "max_turns" | "error_max_turns" => ReportedAgentEnding::Final(transition_with_vendor_word(
            Reason::HardCap,
            Some("iterations"),
            word,
        )),
        "budget_exhausted" | "error_max_budget_usd" => ReportedAgentEnding::Final(
            transition_with_vendor_word(Reason::HardCap, Some("cost"), word),
        ),
        "tool_deferred" => ReportedAgentEnding::Final(transition_with_vendor_word(
            Reason::AwaitingHuman,
            None,
            word,
        )),
        // Another hook ended the loop: Checkrein must not go on in spite of it.
        "hook_stopped" | "stop_hook_prevented" => ReportedAgentEnding::Final(error(Some("agent"))),
        // The same conversation would end so again.
        "prompt_too_long" | "image_error" | "blocking_limit" => {
            ReportedAgentEnding::Final(error(Some("agent")))
        }
        _ if word.starts_with("aborted") => ReportedAgentEnding::Interrupted(
            transition_with_vendor_word(Reason::UserInterrupt, None, word),
        ),
        // The answer was cut by the output limit, and the row may still say `success`.
        _ if text_at_json_pointer(row, "/stop_reason") == Some("max_tokens") => {
            ReportedAgentEnding::Final(transition_with_vendor_word(
                Reason::Truncated,
                None,
                "max_tokens",
            ))
        }
        _ if failed => {
            let said = text_at_json_pointer(row, "/result")
                .or_else(|| text_at_json_pointer(row, "/errors/0"))
                .map(|said| format!("{word}: {said}"));
            ReportedAgentEnding::Failed(Transition {
                native_reason: Some(truncate_first_line(said.as_deref().unwrap_or(word))),
                ..error(Some("agent"))
            })
        }
        _ => ReportedAgentEnding::Claimed,
    }
}

/// One line, of a length for listings.
fn truncate_first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

/// Returns the use that this result reports, and whether sub-agents are missing from it.
fn parse_claude_result_usage(row: &Value) -> Option<(AgentTokensAndCost, bool)> {
    if let Some(models) = row
        .get("model_usage_since_last_result")
        .and_then(Value::as_object)
    {
        let of_model = |model: &Value| {
            // Anthropic's input counts leave out what was cached, ours include it.
            let cached = u64_at_json_pointer(model, "/cacheReadInputTokens");
            let cache_write = u64_at_json_pointer(model, "/cacheCreationInputTokens");
            AgentTokensAndCost {
                input: u64_at_json_pointer(model, "/inputTokens")
                    .saturating_add(cached)
                    .saturating_add(cache_write),
                cached,
                cache_write,
                output: u64_at_json_pointer(model, "/outputTokens"),
                cost: cost_at_json_pointer(model, "/costUSD"),
            }
        };
        let sum = models.values().map(of_model).fold(
            AgentTokensAndCost::default(),
            AgentTokensAndCost::saturating_add_usage,
        );
        return Some((sum, false));
    }
    // `modelUsage` is the conversation's since its beginning, this is the run's, without
    // sub-agents.
    let usage = row.get("usage").filter(|usage| usage.is_object())?;
    let cached = u64_at_json_pointer(usage, "/cache_read_input_tokens");
    let cache_write = u64_at_json_pointer(usage, "/cache_creation_input_tokens");
    let usage = AgentTokensAndCost {
        input: u64_at_json_pointer(usage, "/input_tokens")
            .saturating_add(cached)
            .saturating_add(cache_write),
        cached,
        cache_write,
        output: u64_at_json_pointer(usage, "/output_tokens"),
        cost: None,
    };
    Some((usage, true))
}

fn content_blocks(row: &Value) -> impl Iterator<Item = &Value> {
    row.pointer("/message/content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn called_tools(row: &Value) -> impl Iterator<Item = &str> {
    content_blocks(row)
        .filter(|block| text_at_json_pointer(block, "/type") == Some("tool_use"))
        .filter_map(|block| text_at_json_pointer(block, "/name"))
}

fn text_at_json_pointer<'a>(row: &'a Value, place: &str) -> Option<&'a str> {
    row.pointer(place).and_then(Value::as_str)
}

fn u64_at_json_pointer(row: &Value, place: &str) -> u64 {
    row.pointer(place).and_then(Value::as_u64).unwrap_or(0)
}

fn cost_at_json_pointer(row: &Value, place: &str) -> Option<u64> {
    match row.pointer(place)? {
        Value::Number(number) => parse_billionths(&number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> AgentOutputSummary {
        let mut stream = ClaudeOutputReader::default();
        for line in text.lines() {
            let _ = stream.parse_agent_output_line(line.as_bytes());
        }
        stream.facts
    }

    macro_rules! recorded {
        ($name:literal) => {
            read(include_str!(concat!(
                "../../fixtures/claude-code/stream-",
                $name,
                "@2.1.330.jsonl"
            )))
        };
    }

    fn here(
        input: u64,
        cached: u64,
        cache_write: u64,
        output: u64,
        cost: u64,
    ) -> Option<TokenUsageOfRunOrConversation> {
        let usage = AgentTokensAndCost {
            input,
            cached,
            cache_write,
            output,
            cost: Some(cost),
        };
        Some(TokenUsageOfRunOrConversation::ThisRun {
            usage,
            partial: false,
        })
    }

    #[test]
    fn an_orderly_end_is_a_claim_and_counts_as_scripted() {
        let facts = recorded!("completed");
        assert_eq!(facts.ending, Some(ReportedAgentEnding::Claimed));
        // Scripted: 100 + 200 in, 7 + 7 read from the cache, 3 + 3 written to it, 11 + 22 out.
        assert_eq!(facts.usage, here(320, 14, 6, 33, 947_800));
        assert_eq!(facts.calls, 1);
        assert_eq!(facts.message.as_deref(), Some("done one"));
        assert_eq!(
            facts.session.as_deref(),
            Some("11111111-2222-4333-8444-555555555555")
        );
    }

    #[test]
    fn a_resumed_conversation_counts_its_own_part_only() {
        // Scripted: 300 in, 7 read, 3 written, 33 out; its `modelUsage` is cumulative.
        assert_eq!(recorded!("resumed").usage, here(310, 7, 3, 33, 938_900));
    }

    #[test]
    fn a_cap_of_its_own_is_the_end() {
        let facts = recorded!("max-turns");
        let over = transition_with_vendor_word(Reason::HardCap, Some("iterations"), "max_turns");
        assert_eq!(facts.ending, Some(ReportedAgentEnding::Final(over)));
        assert_eq!(facts.usage, here(400, 0, 0, 44, 1_240_000));
        let facts = recorded!("budget");
        let over = transition_with_vendor_word(Reason::HardCap, Some("cost"), "budget_exhausted");
        assert_eq!(facts.ending, Some(ReportedAgentEnding::Final(over)));
    }

    #[test]
    fn an_api_error_is_no_success() {
        let facts = recorded!("api-error");
        let Some(ReportedAgentEnding::Failed(transition)) = facts.ending else {
            panic!("{facts:?}");
        };
        assert_eq!(transition.reason, Reason::Error);
        let word = transition.native_reason.unwrap();
        assert!(word.starts_with("api_error: "), "{word}");
    }

    #[test]
    fn an_interruption_is_said_though_the_exit_status_is_0() {
        for facts in [recorded!("sigint"), recorded!("sigint-early")] {
            let Some(ReportedAgentEnding::Interrupted(transition)) = facts.ending else {
                panic!("{facts:?}");
            };
            assert_eq!(transition.reason, Reason::UserInterrupt);
        }
    }

    #[test]
    fn an_older_version_has_subtypes_only() {
        let facts = read(
            "{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"is_error\":true,\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}\n",
        );
        let over =
            transition_with_vendor_word(Reason::HardCap, Some("iterations"), "error_max_turns");
        assert_eq!(facts.ending, Some(ReportedAgentEnding::Final(over)));
        let Some(TokenUsageOfRunOrConversation::ThisRun { usage, partial }) = facts.usage else {
            panic!("{facts:?}");
        };
        assert_eq!((usage.input, usage.output, partial), (5, 2, true));
    }

    #[test]
    fn what_is_no_row_says_nothing() {
        assert_eq!(
            read("not json\n{}\n[]\n{\"type\":7}\n"),
            AgentOutputSummary::default()
        );
    }
}
