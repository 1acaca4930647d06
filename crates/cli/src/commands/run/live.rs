//! What a person sees while an agent works: one live line on a terminal, and a line for each
//! thing that is worth keeping.

use std::time::Duration;

use checkrein_adapters::headless::AgentOutputItem;
use checkrein_core::ids::ScopeId;
use checkrein_core::state::SessionState;
use indicatif::ProgressBar;

use crate::ui::line::Line;
use crate::ui::printable::printable;
use crate::ui::progress::Checks;
use crate::ui::style::Paint;

/// A message of the agent is shown up to here.
const SHOWN: usize = 160;

/// See the module.
pub(super) struct Live<'a> {
    checks: &'a Checks,
    agent: &'static str,
    bar: Option<ProgressBar>,
    /// Continuations already spoken of.
    refused: u32,
    calls: u64,
    doing: String,
}

impl<'a> Live<'a> {
    pub(super) fn new(checks: &'a Checks, agent: &'static str) -> Self {
        Self {
            checks,
            agent,
            bar: None,
            refused: 0,
            calls: 0,
            doing: String::new(),
        }
    }

    /// A process of the agent begins.
    pub(super) fn begin(&mut self) {
        self.bar = self.checks.spinner();
        self.draw();
    }

    /// It is over.
    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Something that it printed.
    pub(super) fn said(&mut self, said: &AgentOutputItem) {
        match said {
            AgentOutputItem::Call(tool) => {
                self.doing.clone_from(tool);
                self.draw();
            }
            AgentOutputItem::Message(text) => {
                let line = text.lines().find(|line| !line.trim().is_empty());
                let line: String = line.unwrap_or_default().chars().take(SHOWN).collect();
                let name = format!("{}:", self.agent);
                let name = Line::from("  ").with_painted(Paint::Dim, &name);
                self.checks.say(name.with(" ").with(&line));
            }
        }
    }

    /// The session as it is now; `ours` if what is refused is said by somebody else.
    pub(super) fn look(&mut self, state: &SessionState) {
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
            self.doing.clear();
        }
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
            let mark = Line::from("  ").with_painted(Paint::Warn, "back");
            self.checks
                .say(mark.with(&format!("  not done yet, sent back ({given}){what}")));
        }
        self.refused = given;
        self.draw();
    }

    /// Continuations that are said in full elsewhere.
    pub(super) fn told(&mut self, state: &SessionState) {
        if let Some(task) = &state.task {
            self.refused = task.totals.continues;
        }
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        let mut line = format!("{}: {} tool calls", self.agent, self.calls);
        if self.refused > 0 {
            line = format!("{line}, sent back {}", self.refused);
        }
        if !self.doing.is_empty() {
            line = format!("{line}, {}", self.doing);
        }
        bar.set_message(printable(&line));
        bar.enable_steady_tick(Duration::from_millis(120));
    }
}
