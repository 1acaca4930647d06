//! Reads what `codex exec --json` prints. `turn.completed` tells what the thread has used since its
//! beginning, in whatever process that was; nothing in the stream is about hooks.

use checkrein_core::transition::Reason;
use serde_json::Value;

use crate::headless::{
    AgentOutputItem, AgentOutputReader, AgentOutputSummary, AgentTokensAndCost,
    ReportedAgentEnding, TokenUsageOfRunOrConversation, transition_with_vendor_word,
};
use crate::lenient_json;

/// The error by which Codex says that its own token budget for the whole of a rollout is used.
const BUDGET_REACHED: &str = "budget reached";

/// Collects the facts of one run from its rows; see the module.
#[derive(Debug, Default)]
pub(super) struct CodexOutputReader {
    facts: AgentOutputSummary,
}

impl AgentOutputReader for CodexOutputReader {
    fn parse_agent_output_line(&mut self, line: &[u8]) -> Option<AgentOutputItem> {
        let row = lenient_json::parse_json_with_lone_surrogates(line).ok()?;
        match text_at_pointer(&row, "/type")? {
            "thread.started" => {
                self.facts.session = text_at_pointer(&row, "/thread_id").map(str::to_owned);
                None
            }
            "item.started" => called_tool_name(&row).map(AgentOutputItem::Call),
            "item.completed" => self.read_completed_codex_item(&row),
            "turn.completed" => {
                // The ending is set before the usage is looked at: a row without usage still ends
                // the turn.
                self.facts.ending = Some(ReportedAgentEnding::Claimed);
                let usage = row.get("usage").filter(|usage| usage.is_object())?;
                self.facts.usage = Some(TokenUsageOfRunOrConversation::Cumulative(
                    parse_codex_token_usage(usage),
                ));
                None
            }
            "turn.failed" => {
                let said = text_at_pointer(&row, "/error/message").unwrap_or_default();
                self.facts.ending = Some(codex_failed_turn_ending(said));
                None
            }
            _ => None,
        }
    }

    fn agent_output_summary_so_far(&self) -> &AgentOutputSummary {
        &self.facts
    }
}

impl CodexOutputReader {
    fn read_completed_codex_item(&mut self, row: &Value) -> Option<AgentOutputItem> {
        if text_at_pointer(row, "/item/type") == Some("agent_message") {
            let said = text_at_pointer(row, "/item/text").filter(|said| !said.trim().is_empty())?;
            self.facts.message = Some(said.to_owned());
            return Some(AgentOutputItem::Message(said.to_owned()));
        }
        // A call is counted when it is over: some kinds are never said to begin.
        if called_tool_name(row).is_some() {
            self.facts.calls += 1;
        }
        None
    }
}

fn called_tool_name(row: &Value) -> Option<String> {
    match text_at_pointer(row, "/item/type")? {
        "command_execution" => Some("shell".to_owned()),
        "file_change" => Some("apply_patch".to_owned()),
        "mcp_tool_call" => text_at_pointer(row, "/item/tool").map(str::to_owned),
        "web_search" => Some("web_search".to_owned()),
        "collab_tool_call" => Some("sub-agent".to_owned()),
        _ => None,
    }
}

fn codex_failed_turn_ending(said: &str) -> ReportedAgentEnding {
    let line: String = said
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect();
    let word = format!("turn.failed: {line}");
    // A reached budget would be reached again; any other failure may work at the next try.
    if said.trim() == BUDGET_REACHED {
        return ReportedAgentEnding::Final(transition_with_vendor_word(
            Reason::HardCap,
            Some("tokens"),
            &word,
        ));
    }
    ReportedAgentEnding::Failed(transition_with_vendor_word(
        Reason::Error,
        Some("agent"),
        &word,
    ))
}

fn parse_codex_token_usage(usage: &Value) -> AgentTokensAndCost {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    AgentTokensAndCost {
        input: count("input_tokens"),
        cached: count("cached_input_tokens"),
        cache_write: count("cache_write_input_tokens"),
        output: count("output_tokens"),
        cost: None,
    }
}

/// Returns what a thread had used by the end of its rollout file.
pub(super) fn token_usage_from_codex_rollout(rollout: &[u8]) -> Option<AgentTokensAndCost> {
    rollout
        .split(|byte| *byte == b'\n')
        // The newest row holds the total, so the search begins at the end.
        .rev()
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .find_map(|row| {
            let total = row.pointer("/payload/info/total_token_usage")?;
            (text_at_pointer(&row, "/payload/type") == Some("token_count"))
                .then(|| parse_codex_token_usage(total))
        })
}

fn text_at_pointer<'a>(row: &'a Value, place: &str) -> Option<&'a str> {
    row.pointer(place).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> AgentOutputSummary {
        let mut stream = CodexOutputReader::default();
        for line in text.lines() {
            let _ = stream.parse_agent_output_line(line.as_bytes());
        }
        stream.facts
    }

    macro_rules! recorded {
        ($name:literal) => {
            read(include_str!(concat!(
                "../../fixtures/codex/exec-",
                $name,
                "@0.169.0.jsonl"
            )))
        };
    }

    fn so_far_is(input: u64, output: u64) -> Option<TokenUsageOfRunOrConversation> {
        Some(TokenUsageOfRunOrConversation::Cumulative(
            AgentTokensAndCost {
                input,
                output,
                ..AgentTokensAndCost::default()
            },
        ))
    }

    #[test]
    fn an_orderly_end_is_a_claim() {
        let facts = recorded!("completed");
        assert_eq!(facts.ending, Some(ReportedAgentEnding::Claimed));
        assert_eq!(facts.usage, so_far_is(200, 40));
        assert_eq!(
            (facts.calls, facts.message.as_deref()),
            (1, Some("done one"))
        );
        assert!(facts.session.unwrap().starts_with("01a2"));
    }

    #[test]
    fn a_resumed_thread_tells_the_sum_since_its_beginning() {
        let (before, facts) = (recorded!("completed"), recorded!("resumed"));
        assert_eq!(facts.session, before.session);
        assert_eq!(facts.usage, so_far_is(300, 60));
    }

    #[test]
    fn a_failed_turn_is_an_error_and_a_budget_is_a_cap() {
        let Some(ReportedAgentEnding::Failed(transition)) = recorded!("failed").ending else {
            panic!();
        };
        assert_eq!(transition.reason, Reason::Error);
        assert!(transition.native_reason.unwrap().starts_with("turn.failed"));
        let facts = read("{\"type\":\"turn.failed\",\"error\":{\"message\":\"budget reached\"}}\n");
        let Some(ReportedAgentEnding::Final(transition)) = facts.ending else {
            panic!("{facts:?}");
        };
        assert_eq!(transition.detail.as_deref(), Some("tokens"));
    }

    #[test]
    fn a_rollout_ends_with_the_sum() {
        let recorded = include_bytes!("../../fixtures/codex/rollout@0.169.0.jsonl");
        let used = token_usage_from_codex_rollout(recorded).unwrap();
        assert_eq!((used.input, used.output), (2300, 150));
        assert_eq!(token_usage_from_codex_rollout(b"no rollout\n"), None);
    }

    #[test]
    fn what_is_no_row_says_nothing() {
        assert_eq!(
            read("not json\n{}\n[]\n{\"type\":7}\n"),
            AgentOutputSummary::default()
        );
    }
}
