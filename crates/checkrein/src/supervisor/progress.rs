//! Rates the progress of an agent's steps. Too many low scores in a row lead to one nudge.

use std::sync::Arc;

use checkrein_models::{ChatMessage, LanguageModel};
use checkrein_runtime::progress::{self, AgentStepToRate};

use super::current_run::{SharedSupervisorRunState, lock_unpoisoned};
use super::decision::stall_nudge_message;
use super::{
    StepProgressRating, SupervisedRunExpectations, UnjudgedReason, VerifierConfig,
    VerifierConfigError, VerifierStats,
};

/// Rates steps. Clones share caps, streak and counters.
#[derive(Clone)]
pub struct ProgressVerifier {
    model: Arc<dyn LanguageModel>,
    config: VerifierConfig,
    expectations: SupervisedRunExpectations,
    current_run: Arc<SharedSupervisorRunState>,
}

impl ProgressVerifier {
    /// With a model, typically a cheap one.
    ///
    /// # Errors
    /// If the config has a setting that cannot be meant.
    pub fn new(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
    ) -> Result<Self, VerifierConfigError> {
        Self::new_with_shared_run_state(model, config, Arc::default())
    }

    pub(super) fn new_with_shared_run_state(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
        book: Arc<SharedSupervisorRunState>,
    ) -> Result<Self, VerifierConfigError> {
        config.validate_config()?;
        Ok(Self {
            model,
            config,
            expectations: SupervisedRunExpectations::default(),
            current_run: book,
        })
    }

    /// Asks no model in a run in which that is not worth it.
    #[must_use]
    pub fn with_expected_delay_and_cost(mut self, expected: SupervisedRunExpectations) -> Self {
        self.expectations = expected;
        self
    }

    /// Rates one step. Never fails: a step that could not be rated has no score, and neither
    /// extends nor ends a streak of low scores.
    pub async fn evaluate(
        &self,
        goal: &str,
        last_step_summary: &str,
        recent_history: &[ChatMessage],
    ) -> StepProgressRating {
        // Taken once, so that a reset during the question does not split the step over two runs.
        let run = self.current_run.current_run_state();
        let may = if !self.config.progress_enabled {
            Err(UnjudgedReason::Disabled)
        } else if let Some(why) = self.expectations.why_run_is_not_worth_supervising() {
            Err(UnjudgedReason::NotWorth(why))
        } else {
            let asked = &mut lock_unpoisoned(&run).stats.progress_asked;
            let cap = self.config.max_progress_calls_per_run;
            if *asked < cap {
                // Spent before the answer is there: a failing model must not be asked without
                // limit.
                *asked += 1;
                Ok(())
            } else {
                Err(UnjudgedReason::CapSpent { cap })
            }
        };
        let rating = match may {
            Err(why) => Err(why),
            Ok(()) => {
                let step = AgentStepToRate {
                    goal,
                    summary: last_step_summary,
                    history: recent_history,
                };
                let asking = progress::step_rating_request(step);
                let reply = self.model.ask_model(&asking.request).await;
                let heard = progress::rating_from_reply(&asking, reply);
                lock_unpoisoned(&run)
                    .stats
                    .add_token_usage_to_totals(heard.usage);
                heard.result.map_err(UnjudgedReason::NoAnswer)
            }
        };
        let check = match rating {
            Ok(rating) => StepProgressRating {
                score: Some(rating.score),
                summary: rating.summary,
                suggested_action: rating.suggestion,
                unjudged: None,
            },
            Err(why) => StepProgressRating {
                score: None,
                summary: why.to_string(),
                suggested_action: None,
                unjudged: Some(why),
            },
        };
        // Locked only now: the lock must not be held while the model is asked.
        let mut run = lock_unpoisoned(&run);
        let below = check
            .score
            .map(|score| score < self.config.progress_threshold);
        match below {
            Some(true) => run.streak = run.streak.saturating_add(1),
            Some(false) => run.streak = 0,
            None => {}
        }
        run.stats.count_progress_rating(&check, below == Some(true));
        check
    }

    /// Returns the message for a stalling agent, once per streak of low scores: returning it starts
    /// the next streak.
    pub fn maybe_nudge(&self, last_check: &StepProgressRating) -> Option<ChatMessage> {
        let run = self.current_run.current_run_state();
        let mut run = lock_unpoisoned(&run);
        if run.streak < self.config.progress_window {
            return None;
        }
        // One nudge per streak: repeating it at every further step would fill the conversation.
        run.streak = 0;
        run.stats.nudges_injected += 1;
        let suggestion = last_check.suggested_action.as_deref();
        Some(stall_nudge_message(self.config.progress_window, suggestion))
    }

    /// Returns the number of consecutive steps without progress.
    pub fn low_score_streak(&self) -> u32 {
        lock_unpoisoned(&self.current_run.current_run_state()).streak
    }

    /// What it did in this run.
    pub fn stats(&self) -> VerifierStats {
        self.current_run.current_run_verifier_stats()
    }

    /// Begins the next run: counters, cap and streak are new.
    pub fn reset(&self) {
        self.current_run.reset_state_for_next_run();
    }
}
