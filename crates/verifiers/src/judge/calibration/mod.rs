//! Measures how far a judge can be believed: its verdicts on answers beside people's labels. The
//! statistics are a few lines each, with their sources. Floats end here: no decision is made of
//! them.

mod choice_request;
mod kappa;
mod label_file;
mod llmbar;
mod proportion;
mod recorded_reply;
mod reply_record;
mod run;
mod shortfall;
mod statistics;

pub use kappa::CohenKappa;
pub use label_file::{
    JudgeLabelFile, LabelFileError, LabelledAnswer, LabelledAnswerPair, LabelledAnswerSet,
    parse_label_file,
};
pub use proportion::{ConfidenceInterval, Proportion, Z};
pub use recorded_reply::{RecordedCalibrationReply, RecordedPairChoice, UnparsedJudgeReply};
pub use reply_record::RecordedReplies;
pub use run::{CalibrationError, CalibrationModelCallTotals, JudgeCalibrationContext};
pub use shortfall::{CalibrationShortfall, MIN_AGREEMENT, MIN_LABELS};
pub use statistics::{
    AnswerSide, JudgeStatsForOneAnswerOrder, JudgeVerdictStatistics, NoJudgeVerdictReason,
    PairStatistics, PredictedLabel,
};

/// The result of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub enum CalibrationStatistics {
    /// Of one answer each.
    Verdicts(JudgeVerdictStatistics),
    /// Of two answers each.
    Pairs(PairStatistics),
}

/// Compares recorded verdicts with the labels. A score below `min_score`, in thousandths, does not
/// pass; an item without a recorded reply is unanswered.
pub fn measure_judge_agreement(
    labelled: &LabelledAnswerSet,
    min_score: u32,
) -> CalibrationStatistics {
    match labelled {
        LabelledAnswerSet::Verdicts(items) => {
            let said = |item: &LabelledAnswer| {
                let reply = item.reply.as_ref();
                let said = reply.map_or(Err(NoJudgeVerdictReason::Unanswered), |reply| {
                    reply.predicted_label(min_score)
                });
                ((item.passes, item.category), said)
            };
            let items: Vec<_> = items.iter().map(said).collect();
            CalibrationStatistics::Verdicts(JudgeVerdictStatistics::from_labelled_verdicts(&items))
        }
        LabelledAnswerSet::Pairs(pairs) => {
            let choice = |reply: &Option<RecordedPairChoice>| {
                let reply = reply.as_ref();
                reply.map_or(
                    Err(NoJudgeVerdictReason::Unanswered),
                    RecordedPairChoice::preferred_side_in_recorded_reply,
                )
            };
            let said =
                |pair: &LabelledAnswerPair| (pair.better, pair.replies.each_ref().map(choice));
            let pairs: Vec<_> = pairs.iter().map(said).collect();
            CalibrationStatistics::Pairs(PairStatistics::tally_pair_choices(&pairs))
        }
    }
}

impl CalibrationStatistics {
    /// Returns what is missing for the judge's word to count; empty if nothing.
    pub fn calibration_shortfalls(&self) -> Vec<CalibrationShortfall> {
        match self {
            Self::Verdicts(verdicts) => shortfall::verdict_calibration_shortfalls(verdicts),
            Self::Pairs(pairs) => shortfall::calibration_shortfalls_of_pairs(pairs),
        }
    }
}
