//! What a person sees while an agent works: one live line on a terminal, and a printed line for
//! each event that is worth keeping.

use std::time::Duration;

use checkrein_adapters::headless::AgentOutputItem;
use checkrein_core::ids::ScopeId;
use checkrein_core::state::SessionState;
use indicatif::ProgressBar;

use crate::ui::line::StyledLine;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::progress::RunningChecksView;
use crate::ui::style::TextStyle;

/// Characters of a message of the agent that are shown.
const SHOWN: usize = 160;

/// Renders the live line and the printed ones.
pub(super) struct LiveAgentProgressDisplay<'a> {
    checks: &'a RunningChecksView,
    agent: &'static str,
    bar: Option<ProgressBar>,
    /// Refused stops that were announced already.
    refused: u32,
    calls: u64,
    doing: String,
}

impl<'a> LiveAgentProgressDisplay<'a> {
    pub(super) fn new(checks: &'a RunningChecksView, agent: &'static str) -> Self {
        Self {
            checks,
            agent,
            bar: None,
            refused: 0,
            calls: 0,
            doing: String::new(),
        }
    }

    /// Starts the spinner for a process of the agent.
    pub(super) fn start_agent_spinner(&mut self) {
        self.bar = self.checks.new_spinner();
        self.redraw_progress_line();
    }

    /// Removes the spinner at the end of the process.
    pub(super) fn clear_agent_spinner(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Shows an item of the agent's output.
    pub(super) fn show_agent_output(&mut self, said: &AgentOutputItem) {
        match said {
            AgentOutputItem::Call(tool) => {
                self.doing.clone_from(tool);
                self.redraw_progress_line();
            }
            AgentOutputItem::Message(text) => {
                let line = text.lines().find(|line| !line.trim().is_empty());
                let line: String = line.unwrap_or_default().chars().take(SHOWN).collect();
                let name = format!("{}:", self.agent);
                let name = StyledLine::from("  ").with_painted_suffix(TextStyle::Dim, &name);
                self.checks
                    .print_above_progress(name.with_plain_suffix(" ").with_plain_suffix(&line));
            }
        }
    }

    /// Shows the session's state: tool calls, checks under way, and stops that were refused since.
    pub(super) fn show_session_progress(&mut self, state: &SessionState) {
        let Some(task) = &state.task else { return };
        self.calls = task.totals.tool_calls;
        let waiting: Vec<&str> = state
            .pending_stop(&ScopeId::main_scope())
            .map(|pending| {
                pending
                    .awaited_verifiers
                    .iter()
                    .map(|name| name.as_str())
                    .collect()
            })
            .unwrap_or_default();
        if !waiting.is_empty() {
            self.doing = format!("checks: {}", waiting.join(", "));
        } else if self.doing.starts_with("checks: ") {
            // The checks are over, and the agent has not said yet what it does next.
            self.doing.clear();
        }
        // A refusal by a hook is not in the agent's output. The counter in the log shows it.
        let given = task.totals.continues;
        if given > self.refused {
            let names: Vec<&str> = task
                .reported_findings
                .iter()
                .filter(|told| told.findings.iter().any(|(_, open)| *open))
                .map(|told| told.verifier.as_str())
                .collect();
            let what = if names.is_empty() {
                String::new()
            } else {
                format!(": {}", names.join(", "))
            };
            let mark = StyledLine::from("  ").with_painted_suffix(TextStyle::Warn, "back");
            self.checks.print_above_progress(
                mark.with_plain_suffix(&format!("  not done yet, sent back ({given}){what}")),
            );
        }
        self.refused = given;
        self.redraw_progress_line();
    }

    /// Marks the refusals so far as shown: they are printed in full elsewhere.
    pub(super) fn mark_stop_refusals_printed(&mut self, state: &SessionState) {
        if let Some(task) = &state.task {
            self.refused = task.totals.continues;
        }
    }

    fn redraw_progress_line(&self) {
        let Some(bar) = &self.bar else { return };
        let mut line = format!("{}: {} tool calls", self.agent, self.calls);
        if self.refused > 0 {
            line = format!("{line}, sent back {}", self.refused);
        }
        if !self.doing.is_empty() {
            line = format!("{line}, {}", self.doing);
        }
        bar.set_message(escape_hidden_chars(&line));
        bar.enable_steady_tick(Duration::from_millis(120));
    }
}
