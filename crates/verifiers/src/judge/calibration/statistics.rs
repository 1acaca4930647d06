//! Computes statistics of judge verdicts against human labels.

use std::collections::BTreeMap;

use super::kappa::CohenKappa;
use super::proportion::Proportion;
use crate::judge::JudgeFaultCategory;

/// Why there is no verdict. None of these agrees with any label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoJudgeVerdictReason {
    /// The reply cannot be parsed.
    Unreadable,
    /// The model gave no answer.
    Unanswered,
    /// Asked in both orders, it passed the answer once and failed it once.
    Wavering,
}

impl NoJudgeVerdictReason {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unreadable, Self::Unanswered, Self::Wavering];

    /// Returns its name in output for machines and people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Unanswered => "unanswered",
            Self::Wavering => "wavering",
        }
    }
}

/// A judge's verdict on one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictedLabel {
    /// Whether the answer may stand.
    pub passes: bool,
    /// What is wrong with it, if the judge says.
    pub category: Option<JudgeFaultCategory>,
}

/// One of two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerSide {
    /// `answer_a`
    A,
    /// `answer_b`
    B,
}

impl AnswerSide {
    /// Returns the other answer.
    pub fn other_answer_of_pair(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Statistics of verdicts on single answers.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeVerdictStatistics {
    /// Counts of verdicts: rows by label, columns by verdict, pass first in both.
    pub table: [[u64; 2]; 2],
    /// Counts of missing verdicts, by label, pass first.
    pub silent: [BTreeMap<NoJudgeVerdictReason, u64>; 2],
    /// Agreement, of all labels. A missing verdict does not agree.
    pub agreement: Proportion,
    /// Agreement beyond chance, of the labels with a verdict.
    pub kappa: Option<CohenKappa>,
    /// Of the answers it failed, those that should fail.
    pub precision: Proportion,
    /// Of the answers that should fail, those it failed.
    pub recall: Proportion,
    /// For answers labelled with a category: what the judge said, counted by category.
    pub categories: BTreeMap<JudgeFaultCategory, BTreeMap<&'static str, u64>>,
}

/// A label: whether it passes, and what is wrong.
pub(super) type HumanLabel = (bool, Option<JudgeFaultCategory>);

impl JudgeVerdictStatistics {
    pub(super) fn from_labelled_verdicts(
        items: &[(HumanLabel, Result<PredictedLabel, NoJudgeVerdictReason>)],
    ) -> Self {
        let mut table = [[0; 2]; 2];
        let mut silent = [BTreeMap::new(), BTreeMap::new()];
        let mut categories: BTreeMap<JudgeFaultCategory, BTreeMap<&'static str, u64>> =
            BTreeMap::new();
        for ((passes, category), said) in items {
            let [when_pass, when_fail] = &mut table;
            let [silent_pass, silent_fail] = &mut silent;
            let (row, quiet) = match passes {
                true => (when_pass, silent_pass),
                false => (when_fail, silent_fail),
            };
            let [yes, no] = row;
            match said {
                Ok(judged) if judged.passes => *yes += 1,
                Ok(_) => *no += 1,
                Err(silence) => *quiet.entry(*silence).or_default() += 1,
            }
            if let Some(category) = category {
                // A verdict of "pass" on an answer labelled bad is a row of its own, not a
                // category.
                let word = match said {
                    Ok(judged) if judged.passes => "pass",
                    Ok(judged) => judged.category.map_or("none", JudgeFaultCategory::as_str),
                    Err(silence) => silence.as_str(),
                };
                *categories
                    .entry(*category)
                    .or_default()
                    .entry(word)
                    .or_default() += 1;
            }
        }
        let [[right_pass, wrong_fail], [wrong_pass, right_fail]] = table;
        // A bad answer without a verdict was not caught, so it lowers the recall.
        let silent_fails: u64 = silent.iter().skip(1).flat_map(BTreeMap::values).sum();
        Self {
            agreement: Proportion::new(right_pass + right_fail, items.len() as u64),
            kappa: CohenKappa::kappa_from_contingency_table(table),
            precision: Proportion::new(right_fail, right_fail + wrong_fail),
            recall: Proportion::new(right_fail, right_fail + wrong_pass + silent_fails),
            table,
            silent,
            categories,
        }
    }

    /// Returns the number of answers with each label, pass first.
    pub fn label_counts(&self) -> [u64; 2] {
        let [pass, fail] = &self.table;
        let [silent_pass, silent_fail] = &self.silent;
        let sum = |row: &[u64; 2], silent: &BTreeMap<NoJudgeVerdictReason, u64>| {
            row.iter().sum::<u64>() + silent.values().sum::<u64>()
        };
        [sum(pass, silent_pass), sum(fail, silent_fail)]
    }

    /// Returns the number of labels with a verdict.
    pub fn judged_label_count(&self) -> u64 {
        self.table.iter().flatten().sum()
    }
}

/// Statistics of choices in one order.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeStatsForOneAnswerOrder {
    /// Right choices, of all labels.
    pub right: Proportion,
    /// Agreement beyond chance, of the pairs with a choice.
    pub kappa: Option<CohenKappa>,
    /// Choices of the answer that was shown first, of all choices.
    pub first: Proportion,
    /// Counts of missing choices.
    pub silent: BTreeMap<NoJudgeVerdictReason, u64>,
}

/// Statistics of choices between two answers.
#[derive(Debug, Clone, PartialEq)]
pub struct PairStatistics {
    /// Pairs with a label.
    pub labels: u64,
    /// Choices with answer a shown first.
    pub a_first: JudgeStatsForOneAnswerOrder,
    /// Choices with answer b shown first.
    pub b_first: JudgeStatsForOneAnswerOrder,
    /// Right in both orders, of all labels.
    pub right_twice: Proportion,
    /// The same choice in both orders, of all labels.
    pub consistent: Proportion,
    /// No choice in either order.
    pub silent_twice: u64,
    /// Agreement of the two orders with each other, of the pairs with two choices.
    pub kappa: Option<CohenKappa>,
}

/// The choices in both orders.
pub(super) type BothOrderChoices = [Result<AnswerSide, NoJudgeVerdictReason>; 2];

impl PairStatistics {
    pub(super) fn tally_pair_choices(items: &[(AnswerSide, BothOrderChoices)]) -> Self {
        let labels = items.len() as u64;
        let count = |holds: &dyn Fn(AnswerSide, BothOrderChoices) -> bool| {
            let holding = items.iter().filter(|(label, said)| holds(*label, *said));
            holding.count() as u64
        };
        let said = |twice: BothOrderChoices| match twice {
            // Agreement of the two orders is defined only where both made a choice.
            [Ok(forth), Ok(back)] => Some((forth, back)),
            _ => None,
        };
        Self {
            labels,
            a_first: JudgeStatsForOneAnswerOrder::statistics_from_choices(
                AnswerSide::A,
                items.iter().map(|(label, [one, _])| (*label, *one)),
            ),
            b_first: JudgeStatsForOneAnswerOrder::statistics_from_choices(
                AnswerSide::B,
                items.iter().map(|(label, [_, one])| (*label, *one)),
            ),
            right_twice: Proportion::new(
                count(&|label, twice| twice == [Ok(label), Ok(label)]),
                labels,
            ),
            consistent: Proportion::new(
                count(&|_, twice| said(twice).is_some_and(|(forth, back)| forth == back)),
                labels,
            ),
            silent_twice: count(&|_, twice| twice.iter().all(Result::is_err)),
            kappa: CohenKappa::kappa_from_contingency_table(contingency_table(
                items.iter().filter_map(|(_, twice)| said(*twice)),
            )),
        }
    }

    /// Returns the mean accuracy of both orders. It has no interval: two choices of one judge about
    /// one pair do not count as two pairs.
    pub fn pairwise_accuracy(&self) -> Option<f64> {
        // Averaging both orders cancels a preference for the first position.
        Some((self.a_first.right.ratio()? + self.b_first.right.ratio()?) / 2.0)
    }
}

impl JudgeStatsForOneAnswerOrder {
    fn statistics_from_choices(
        first: AnswerSide,
        items: impl Iterator<Item = (AnswerSide, Result<AnswerSide, NoJudgeVerdictReason>)> + Clone,
    ) -> Self {
        let mut silent = BTreeMap::new();
        for silence in items.clone().filter_map(|(_, said)| said.err()) {
            *silent.entry(silence).or_default() += 1;
        }
        let heard = items
            .clone()
            .filter_map(|(label, said)| said.ok().map(|side| (label, side)));
        let count = |holds: &dyn Fn(AnswerSide, AnswerSide) -> bool| {
            let holding = heard.clone().filter(|(label, side)| holds(*label, *side));
            holding.count() as u64
        };
        Self {
            // Out of all labels: a pair without a choice was not judged right.
            right: Proportion::new(count(&|label, side| label == side), items.count() as u64),
            kappa: CohenKappa::kappa_from_contingency_table(contingency_table(heard.clone())),
            // Out of the choices only: this measures the position bias, which silence says nothing
            // about.
            first: Proportion::new(count(&|_, side| side == first), heard.count() as u64),
            silent,
        }
    }
}

fn contingency_table(pairs: impl Iterator<Item = (AnswerSide, AnswerSide)>) -> [[u64; 2]; 2] {
    let [[mut aa, mut ab], [mut ba, mut bb]] = [[0; 2]; 2];
    for pair in pairs {
        match pair {
            (AnswerSide::A, AnswerSide::A) => aa += 1,
            (AnswerSide::A, AnswerSide::B) => ab += 1,
            (AnswerSide::B, AnswerSide::A) => ba += 1,
            (AnswerSide::B, AnswerSide::B) => bb += 1,
        }
    }
    [[aa, ab], [ba, bb]]
}
