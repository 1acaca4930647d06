//! Is this getting anywhere? Scores of an agent's steps; too many low ones in a row make one nudge.

use std::sync::Arc;

use checkrein_models::{ChatMessage, LanguageModel};
use checkrein_runtime::progress::{self, AgentStepToRate};

use super::book::{Book, lock};
use super::decision::nudge;
use super::{ConfigError, Expected, ProgressCheck, Unjudged, VerifierConfig, VerifierStats};

/// Rates steps. Clones share caps, streak and counters.
#[derive(Clone)]
pub struct ProgressVerifier {
    model: Arc<dyn LanguageModel>,
    config: VerifierConfig,
    expected: Expected,
    book: Arc<Book>,
}

impl ProgressVerifier {
    /// With a model, typically a cheap one.
    ///
    /// # Errors
    /// If the config has a setting that cannot be meant.
    pub fn new(model: Arc<dyn LanguageModel>, config: VerifierConfig) -> Result<Self, ConfigError> {
        Self::sharing(model, config, Arc::default())
    }

    pub(super) fn sharing(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
        book: Arc<Book>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            model,
            config,
            expected: Expected::default(),
            book,
        })
    }

    /// Asks no model in a run in which that is not worth it.
    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Rates one step. Never fails: a step that nobody could rate has no score, and neither lengthens
    /// nor breaks a row of low ones.
    pub async fn evaluate(
        &self,
        goal: &str,
        last_step_summary: &str,
        recent_history: &[ChatMessage],
    ) -> ProgressCheck {
        let run = self.book.run();
        let may = if !self.config.progress_enabled {
            Err(Unjudged::Disabled)
        } else if let Some(why) = self.expected.not_worth() {
            Err(Unjudged::NotWorth(why))
        } else {
            let asked = &mut lock(&run).stats.progress_asked;
            let cap = self.config.max_progress_calls_per_run;
            if *asked < cap {
                *asked += 1;
                Ok(())
            } else {
                Err(Unjudged::CapSpent { cap })
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
                lock(&run).stats.used(heard.usage);
                heard.result.map_err(Unjudged::Silent)
            }
        };
        let check = match rating {
            Ok(rating) => ProgressCheck {
                score: Some(rating.score),
                summary: rating.summary,
                suggested_action: rating.suggestion,
                unjudged: None,
            },
            Err(why) => ProgressCheck {
                score: None,
                summary: why.to_string(),
                suggested_action: None,
                unjudged: Some(why),
            },
        };
        let mut run = lock(&run);
        let below = check
            .score
            .map(|score| score < self.config.progress_threshold);
        match below {
            Some(true) => run.streak = run.streak.saturating_add(1),
            Some(false) => run.streak = 0,
            None => {}
        }
        run.stats.rated(&check, below == Some(true));
        check
    }

    /// The message for an agent that is stalling, once per row of low scores: what hands it out begins
    /// the next row.
    pub fn maybe_nudge(&self, last_check: &ProgressCheck) -> Option<ChatMessage> {
        let run = self.book.run();
        let mut run = lock(&run);
        if run.streak < self.config.progress_window {
            return None;
        }
        run.streak = 0;
        run.stats.nudges_injected += 1;
        let suggestion = last_check.suggested_action.as_deref();
        Some(nudge(self.config.progress_window, suggestion))
    }

    /// Steps in a row that brought nothing.
    pub fn streak_below(&self) -> u32 {
        lock(&self.book.run()).streak
    }

    /// What it did in this run.
    pub fn stats(&self) -> VerifierStats {
        self.book.stats()
    }

    /// Begins the next run: counters, cap and streak are new.
    pub fn reset(&self) {
        self.book.begin();
    }
}
