//! What a person sees while our own agent works: a line for each thing that it says, does and is
//! told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use checkrein::AgentLoopEvent;
use indicatif::ProgressBar;
use serde_json::Value;

use crate::ui::line::StyledLine;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::progress::RunningChecksView;
use crate::ui::style::TextStyle;

/// Characters of a line that are shown.
const SHOWN: usize = 160;

/// Prints the events of a run.
pub(super) struct ModelRunEventPrinter {
    checks: Arc<RunningChecksView>,
    name: String,
    /// The spinner while the model thinks.
    bar: Mutex<Option<ProgressBar>>,
}

impl ModelRunEventPrinter {
    pub(super) fn new(checks: Arc<RunningChecksView>, name: &str) -> Self {
        Self {
            checks,
            name: name.to_owned(),
            bar: Mutex::new(None),
        }
    }

    pub(super) fn show_model_run_event(&self, happening: AgentLoopEvent<'_>) {
        // Whatever happens next ends the wait for the model, and a line must not be printed into
        // its spinner.
        if let Some(bar) = self.lock_progress_bar().take() {
            bar.finish_and_clear();
        }
        match happening {
            AgentLoopEvent::RoundStarted { round } => {
                let bar = self.checks.new_spinner();
                if let Some(bar) = &bar {
                    bar.set_message(escape_hidden_chars(&format!(
                        "{}, round {round}",
                        self.name
                    )));
                    bar.enable_steady_tick(Duration::from_millis(120));
                }
                *self.lock_progress_bar() = bar;
            }
            AgentLoopEvent::AssistantText { text } => {
                let who = StyledLine::from("  ").with_painted_suffix(TextStyle::Dim, "says:");
                self.checks.print_above_progress(
                    who.with_plain_suffix(" ")
                        .with_plain_suffix(&shorten_to_first_line(text)),
                );
            }
            AgentLoopEvent::ToolCalled { tool, arguments } => {
                let name =
                    StyledLine::from("  ").with_painted_suffix(TextStyle::Dim, &format!("{tool}:"));
                self.checks.print_above_progress(
                    name.with_plain_suffix(" ")
                        .with_plain_suffix(&call_arguments_text(arguments)),
                );
            }
            AgentLoopEvent::ToolRefused { reason, .. } => {
                let mark = StyledLine::from("  ").with_painted_suffix(TextStyle::Warn, "refused");
                self.checks.print_above_progress(
                    mark.with_plain_suffix("  ")
                        .with_plain_suffix(&shorten_to_first_line(reason)),
                );
            }
            AgentLoopEvent::SentBack { feedback } => self.checks.print_above_progress(feedback),
            // The loop's observer notifies the person of a parked question.
            AgentLoopEvent::Parked(_) => {}
        }
    }

    fn lock_progress_bar(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the arguments of a call as text; for a call with a single text argument, that text.
fn call_arguments_text(arguments: Option<&Value>) -> String {
    let only = arguments.and_then(Value::as_object).and_then(|fields| {
        let mut values = fields.values();
        values.next().filter(|_| values.next().is_none())
    });
    match (only, arguments) {
        (Some(Value::String(text)), _) => shorten_to_first_line(text),
        (_, Some(arguments)) => shorten_to_first_line(&arguments.to_string()),
        (_, None) => "(no JSON)".to_owned(),
    }
}

fn shorten_to_first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let line: String = lines
        .next()
        .unwrap_or_default()
        .chars()
        .take(SHOWN)
        .collect();
    match lines.next() {
        Some(_) => format!("{line} ..."),
        None => line,
    }
}
