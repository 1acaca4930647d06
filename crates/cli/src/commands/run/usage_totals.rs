//! Sums what a run has used over the processes of its agent. A resumed conversation may report a
//! total of its own, which must not be added twice.

use checkrein_adapters::headless::{AgentTokensAndCost, TokenUsageOfRunOrConversation};
use serde_json::json;

/// The usage of a run so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentRunUsageTotals {
    used: Option<AgentTokensAndCost>,
    /// What the conversation had used before this run; reported totals include it.
    before: AgentTokensAndCost,
    partial: bool,
}

impl AgentRunUsageTotals {
    /// Starts the totals of a run that continues a conversation.
    pub(super) fn new_with_earlier_usage(before: AgentTokensAndCost) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Adds what one process reported; `None` if it did not get to report anything.
    pub(super) fn add_agent_process_usage(&mut self, spent: Option<TokenUsageOfRunOrConversation>) {
        match spent {
            Some(TokenUsageOfRunOrConversation::ThisRun { usage, partial }) => {
                self.used = Some(self.used.unwrap_or_default().saturating_add_usage(usage));
                self.partial |= partial;
            }
            Some(TokenUsageOfRunOrConversation::Cumulative(usage)) => {
                // A total covers the whole conversation, this run's earlier processes included, so
                // it replaces the sum.
                self.used = Some(usage.subtract_earlier_usage(self.before));
                // The total contains what an earlier process did not report.
                self.partial = false;
            }
            // A process that was killed reports nothing, and the sum is a lower bound.
            None => self.partial = true,
        }
    }

    pub(super) fn run_usage_report_json(&self) -> serde_json::Value {
        let Some(used) = self.used else {
            return serde_json::Value::Null;
        };
        json!({
            "input_tokens": used.input,
            "cached_input_tokens": used.cached,
            "cache_write_input_tokens": used.cache_write,
            "output_tokens": used.output,
            "cost_usd": used.cost.map(billionths_to_dollars),
            "partial": self.partial,
        })
    }
}

/// Converts billionths of a dollar to dollars, for display and not for arithmetic.
fn billionths_to_dollars(billionths: u64) -> f64 {
    billionths as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64) -> AgentTokensAndCost {
        AgentTokensAndCost {
            input,
            output,
            ..AgentTokensAndCost::default()
        }
    }

    fn tokens(tally: AgentRunUsageTotals) -> (u64, u64, bool) {
        let used = tally.used.unwrap();
        (used.input, used.output, tally.partial)
    }

    #[test]
    fn parts_are_added_and_sums_are_taken() {
        let mut parts = AgentRunUsageTotals::default();
        for (input, output) in [(100, 10), (50, 5)] {
            parts.add_agent_process_usage(Some(TokenUsageOfRunOrConversation::ThisRun {
                usage: usage(input, output),
                partial: false,
            }));
        }
        assert_eq!(tokens(parts), (150, 15, false));
        let mut sums = AgentRunUsageTotals::new_with_earlier_usage(usage(1000, 100));
        sums.add_agent_process_usage(Some(TokenUsageOfRunOrConversation::Cumulative(usage(
            1100, 110,
        ))));
        sums.add_agent_process_usage(Some(TokenUsageOfRunOrConversation::Cumulative(usage(
            1150, 115,
        ))));
        assert_eq!(tokens(sums), (150, 15, false));
    }

    #[test]
    fn a_process_that_was_killed_leaves_a_gap_unless_a_later_sum_covers_it() {
        let mut parts = AgentRunUsageTotals::default();
        parts.add_agent_process_usage(Some(TokenUsageOfRunOrConversation::ThisRun {
            usage: usage(1, 1),
            partial: false,
        }));
        parts.add_agent_process_usage(None);
        assert_eq!(tokens(parts), (1, 1, true));
        let mut sums = AgentRunUsageTotals::default();
        sums.add_agent_process_usage(None);
        assert!(sums.run_usage_report_json().is_null());
        sums.add_agent_process_usage(Some(TokenUsageOfRunOrConversation::Cumulative(usage(7, 7))));
        assert_eq!(tokens(sums), (7, 7, false));
    }
}
