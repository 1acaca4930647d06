//! Counts what the supervisor did in a run.

use checkrein_models::AnswerTokenUsage;
use checkrein_runtime::reviewer::UnitFraction;

use super::{
    PreToolDecision, StepProgressRating, SupervisionNotWorthReason, ToolCallVerdict,
    ToolCallVerdictBasis, UnjudgedReason,
};

/// Number of scores that are kept.
const SCORES: usize = 10;

/// Counters of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifierStats {
    /// Calls that were checked.
    pub pretool_calls: u64,
    /// Allowed by the model, including vetoes that were too unsure.
    pub pretool_allow: u64,
    /// Vetoed: by the model, or without one.
    pub pretool_veto: u64,
    /// Run with other arguments.
    pub pretool_rewrite: u64,
    /// Judged by nobody, for whatever reason.
    pub pretool_unjudged: u64,
    /// Of these, because the cap was spent.
    pub pretool_cap_spent: u64,
    /// Of these, because the model gave no usable answer.
    pub pretool_no_answer: u64,
    /// Answered from the cache.
    pub pretool_cached: u64,
    /// Interventions that were too unsure.
    pub pretool_too_unsure: u64,
    /// Questions that went to the model.
    pub pretool_asked: u32,
    /// Steps that were rated, or were to be.
    pub progress_calls: u64,
    /// Rated below the threshold.
    pub progress_below_threshold: u64,
    /// Rated by nobody, for whatever reason.
    pub progress_unjudged: u64,
    /// Questions that went to the model.
    pub progress_asked: u32,
    /// Nudges that were handed out.
    pub nudges_injected: u64,
    /// The last ten scores, oldest first.
    pub last_progress_scores: Vec<UnitFraction>,
    /// Input tokens of its own questions, as far as providers say.
    pub input_tokens: u64,
    /// Output tokens likewise.
    pub output_tokens: u64,
    /// Answers of which the provider did not say both.
    pub uncounted_answers: u64,
    /// Why the veto stayed off in this run.
    pub veto_off: Option<SupervisionNotWorthReason>,
    /// Why progress stayed off in this run.
    pub progress_off: Option<SupervisionNotWorthReason>,
}

impl VerifierStats {
    pub(super) fn count_pre_tool_decision(&mut self, decision: &PreToolDecision) {
        self.pretool_calls += 1;
        match decision.verdict {
            ToolCallVerdict::Allow => self.pretool_allow += 1,
            ToolCallVerdict::Veto => self.pretool_veto += 1,
            ToolCallVerdict::Rewrite => self.pretool_rewrite += 1,
            ToolCallVerdict::Unjudged => self.pretool_unjudged += 1,
        }
        self.pretool_cached += u64::from(decision.cached);
        match &decision.basis {
            ToolCallVerdictBasis::TooUnsure(_) => self.pretool_too_unsure += 1,
            ToolCallVerdictBasis::Unjudged(UnjudgedReason::CapSpent { .. }) => {
                self.pretool_cap_spent += 1
            }
            ToolCallVerdictBasis::Unjudged(UnjudgedReason::NoAnswer(_)) => {
                self.pretool_no_answer += 1
            }
            // A state of the run, not a count: every further call has the same reason.
            ToolCallVerdictBasis::Unjudged(UnjudgedReason::NotWorth(why)) => {
                self.veto_off = Some(*why)
            }
            ToolCallVerdictBasis::Model
            | ToolCallVerdictBasis::Misfit(_)
            | ToolCallVerdictBasis::Policy => {}
            ToolCallVerdictBasis::Unjudged(
                UnjudgedReason::Disabled | UnjudgedReason::OutOfScope,
            ) => {}
        }
    }

    pub(super) fn count_progress_rating(&mut self, check: &StepProgressRating, below: bool) {
        self.progress_calls += 1;
        self.progress_below_threshold += u64::from(below);
        if let Some(UnjudgedReason::NotWorth(why)) = check.unjudged {
            self.progress_off = Some(why);
        }
        match check.score {
            None => self.progress_unjudged += 1,
            Some(score) => {
                if self.last_progress_scores.len() == SCORES {
                    self.last_progress_scores.remove(0);
                }
                self.last_progress_scores.push(score);
            }
        }
    }

    pub(super) fn add_token_usage_to_totals(&mut self, usage: Option<AnswerTokenUsage>) {
        let Some(usage) = usage else {
            return;
        };
        let parts = [usage.input, usage.cache_read, usage.cache_write];
        // A provider may report any number, so the sums saturate.
        let input = parts.into_iter().flatten().fold(0, u64::saturating_add);
        self.input_tokens = self.input_tokens.saturating_add(input);
        let output = usage.output.unwrap_or_default();
        self.output_tokens = self.output_tokens.saturating_add(output);
        // Tells the host that the sums above are lower bounds.
        self.uncounted_answers += u64::from(usage.input.is_none() || usage.output.is_none());
    }
}
