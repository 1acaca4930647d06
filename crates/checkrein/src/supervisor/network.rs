//! Combines both halves of the supervisor over one model, one goal and one run.

use std::sync::Arc;

use checkrein_models::{ChatMessage, LanguageModel};
use serde_json::Value;

use super::current_run::SharedSupervisorRunState;
use super::{
    PreToolDecision, PreToolVerifier, ProgressVerifier, StepProgressRating,
    SupervisedRunExpectations, ToolWithVerifiedCalls, VerifierConfig, VerifierConfigError,
    VerifierStats,
};
use crate::Tool;

/// Watches one agent: its calls before they run, its steps after they were taken.
#[derive(Clone)]
pub struct VerifierNetwork {
    pre_tool: PreToolVerifier,
    progress: ProgressVerifier,
    goal: Arc<str>,
    current_run: Arc<SharedSupervisorRunState>,
}

impl VerifierNetwork {
    /// Creates a network over a model, typically a cheap one of another family than the agent's.
    /// Both questions refer to the goal, which may be empty.
    ///
    /// # Errors
    /// If the config has a setting that cannot be meant.
    pub fn new(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
        goal: &str,
    ) -> Result<Self, VerifierConfigError> {
        // Both halves count into one run, so that one `reset` and one set of statistics cover both.
        let book = Arc::<SharedSupervisorRunState>::default();
        Ok(Self {
            pre_tool: PreToolVerifier::new_verifier_sharing_run_state(
                model.clone(),
                config,
                book.clone(),
            )?,
            progress: ProgressVerifier::new_with_shared_run_state(model, config, book.clone())?,
            goal: goal.into(),
            current_run: book,
        })
    }

    /// Asks the host's own rules before the model, and again about arguments that the model
    /// rewrote.
    #[must_use]
    pub fn with_host_policy(
        mut self,
        policy: impl Fn(&str, &Value) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.pre_tool = self.pre_tool.with_host_policy(policy);
        self
    }

    /// Keeps the supervisor off in runs that are not worth supervising; [`VerifierStats`] says why.
    #[must_use]
    pub fn with_expected_delay_and_cost(mut self, expected: SupervisedRunExpectations) -> Self {
        self.pre_tool = self.pre_tool.ask_model_only_if_worthwhile(expected);
        self.progress = self.progress.with_expected_delay_and_cost(expected);
        self
    }

    /// Wraps tools so that every call is judged before it runs. They become the agent's known
    /// tools, together with those that were wrapped before: a call of any other tool is refused
    /// without asking the model, and an agent with a single tool is not watched.
    pub fn wrap_tools<T: Tool>(&self, tools: Vec<T>) -> Vec<ToolWithVerifiedCalls<T>> {
        // Registered as a whole first: a call of one wrapped tool must not be judged while the
        // others are still unknown.
        self.pre_tool.register_tools_agent_may_call(&tools);
        let wrapped = |tool| {
            ToolWithVerifiedCalls::wrap_tool_of_supervisor_network(
                tool,
                self.pre_tool.clone(),
                self.goal.clone(),
            )
        };
        tools.into_iter().map(wrapped).collect()
    }

    /// Judges one call, for a host that runs tools itself.
    pub async fn check_tool_call(
        &self,
        tool_name: &str,
        tool_args: &Value,
        recent_history: &[ChatMessage],
    ) -> PreToolDecision {
        self.pre_tool
            .judge_tool_call_by_model(&self.goal, tool_name, tool_args, recent_history)
            .await
    }

    /// Rates one step.
    pub async fn evaluate_step(
        &self,
        last_step_summary: &str,
        recent_history: &[ChatMessage],
    ) -> StepProgressRating {
        self.progress
            .evaluate(&self.goal, last_step_summary, recent_history)
            .await
    }

    /// The message for an agent that is stalling, for the host to append.
    pub fn maybe_nudge(&self, check: &StepProgressRating) -> Option<ChatMessage> {
        self.progress.maybe_nudge(check)
    }

    /// Begins the next run with new counters, caps, streak and cache, also for tools that were
    /// wrapped before.
    pub fn reset(&self) {
        self.current_run.reset_state_for_next_run();
    }

    /// What it did in this run.
    pub fn veto_and_progress_stats(&self) -> VerifierStats {
        self.current_run.current_run_verifier_stats()
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
