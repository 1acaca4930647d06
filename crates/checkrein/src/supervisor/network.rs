//! Both halves of the supervisor over one model, one goal and one run.

use std::sync::Arc;

use checkrein_models::{ChatMessage, LanguageModel};
use serde_json::Value;

use super::book::Book;
use super::{
    ConfigError, Expected, PreToolDecision, PreToolVerifier, ProgressCheck, ProgressVerifier,
    Verified, VerifierConfig, VerifierStats,
};
use crate::Tool;

/// Watches one agent: its calls before they run, its steps after they were taken.
#[derive(Clone)]
pub struct VerifierNetwork {
    pre_tool: PreToolVerifier,
    progress: ProgressVerifier,
    goal: Arc<str>,
    book: Arc<Book>,
}

impl VerifierNetwork {
    /// With a model, typically a cheap one, of another family than the agent's. The goal is what both
    /// questions are asked about; it may be empty.
    ///
    /// # Errors
    /// If the config has a setting that cannot be meant.
    pub fn new(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
        goal: &str,
    ) -> Result<Self, ConfigError> {
        let book = Arc::<Book>::default();
        Ok(Self {
            pre_tool: PreToolVerifier::sharing(model.clone(), config, book.clone())?,
            progress: ProgressVerifier::sharing(model, config, book.clone())?,
            goal: goal.into(),
            book,
        })
    }

    /// Asks the host's own rules before the model, and again about what the model rewrote.
    #[must_use]
    pub fn obeying(
        mut self,
        policy: impl Fn(&str, &Value) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.pre_tool = self.pre_tool.obeying(policy);
        self
    }

    /// Stays off in a run in which it is not worth it; [`VerifierStats`] says why.
    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.pre_tool = self.pre_tool.expecting(expected);
        self.progress = self.progress.expecting(expected);
        self
    }

    /// Has every call of these tools judged before it runs. They are the agent's tools from now on,
    /// with those that were wrapped before: a call of any other is refused without asking, and an agent
    /// with a single tool is not watched.
    pub fn wrap_tools<T: Tool>(&self, tools: Vec<T>) -> Vec<Verified<T>> {
        self.pre_tool.knows(&tools);
        let wrapped = |tool| Verified::known(tool, self.pre_tool.clone(), self.goal.clone());
        tools.into_iter().map(wrapped).collect()
    }

    /// Judges one call, for a host that runs tools itself.
    pub async fn check_tool(
        &self,
        tool_name: &str,
        tool_args: &Value,
        recent_history: &[ChatMessage],
    ) -> PreToolDecision {
        self.pre_tool
            .check(&self.goal, tool_name, tool_args, recent_history)
            .await
    }

    /// Rates one step.
    pub async fn evaluate_step(
        &self,
        last_step_summary: &str,
        recent_history: &[ChatMessage],
    ) -> ProgressCheck {
        self.progress
            .evaluate(&self.goal, last_step_summary, recent_history)
            .await
    }

    /// The message for an agent that is stalling, for the host to append.
    pub fn maybe_nudge(&self, check: &ProgressCheck) -> Option<ChatMessage> {
        self.progress.maybe_nudge(check)
    }

    /// Begins the next run: counters, caps, streak and memory of calls are new, also for tools that
    /// were wrapped before.
    pub fn reset(&self) {
        self.book.begin();
    }

    /// What it did in this run.
    pub fn stats(&self) -> VerifierStats {
        self.book.stats()
    }

    /// The half that judges calls.
    pub fn pre_tool(&self) -> &PreToolVerifier {
        &self.pre_tool
    }

    /// The half that rates steps.
    pub fn progress(&self) -> &ProgressVerifier {
        &self.progress
    }
}
