//! What a person sees while our own agent works: what it says, does and is told, a line each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use checkrein::AgentLoopEvent;
use indicatif::ProgressBar;
use serde_json::Value;

use crate::ui::line::Line;
use crate::ui::printable::printable;
use crate::ui::progress::Checks;
use crate::ui::style::Paint;

/// Characters of one line.
const SHOWN: usize = 160;

/// See the module.
pub(super) struct Talk {
    checks: Arc<Checks>,
    name: String,
    /// While the model thinks.
    bar: Mutex<Option<ProgressBar>>,
}

impl Talk {
    pub(super) fn new(checks: Arc<Checks>, name: &str) -> Self {
        Self {
            checks,
            name: name.to_owned(),
            bar: Mutex::new(None),
        }
    }

    pub(super) fn tell(&self, happening: AgentLoopEvent<'_>) {
        if let Some(bar) = self.held().take() {
            bar.finish_and_clear();
        }
        match happening {
            AgentLoopEvent::RoundStarted { round } => {
                let bar = self.checks.spinner();
                if let Some(bar) = &bar {
                    bar.set_message(printable(&format!("{}, round {round}", self.name)));
                    bar.enable_steady_tick(Duration::from_millis(120));
                }
                *self.held() = bar;
            }
            AgentLoopEvent::AssistantText { text } => {
                let who = Line::from("  ").with_painted(Paint::Dim, "says:");
                self.checks.say(who.with(" ").with(&first_line(text)));
            }
            AgentLoopEvent::ToolCalled { tool, arguments } => {
                let name = Line::from("  ").with_painted(Paint::Dim, &format!("{tool}:"));
                self.checks.say(name.with(" ").with(&shown(arguments)));
            }
            AgentLoopEvent::ToolRefused { reason, .. } => {
                let mark = Line::from("  ").with_painted(Paint::Warn, "refused");
                self.checks.say(mark.with("  ").with(&first_line(reason)));
            }
            AgentLoopEvent::SentBack { feedback } => self.checks.say(feedback),
            AgentLoopEvent::Parked(_) => {}
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arguments of a call: of one that has only one, that.
fn shown(arguments: Option<&Value>) -> String {
    let only = arguments.and_then(Value::as_object).and_then(|fields| {
        let mut values = fields.values();
        values.next().filter(|_| values.next().is_none())
    });
    match (only, arguments) {
        (Some(Value::String(text)), _) => first_line(text),
        (_, Some(arguments)) => first_line(&arguments.to_string()),
        (_, None) => "(no JSON)".to_owned(),
    }
}

fn first_line(text: &str) -> String {
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
