//! Decides whether a judge has been calibrated well enough for its word to count.

use super::kappa::CohenKappa;
use super::proportion::Proportion;
use super::statistics::{JudgeVerdictStatistics, PairStatistics};

/// Labels with a verdict that are required (seed: 100 human-labelled samples).
pub const MIN_LABELS: u64 = 100;
/// What the lower bound of agreement must reach (seed: below 70 %, another prompt or model).
pub const MIN_AGREEMENT: f64 = 0.7;

/// A requirement that is not met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CalibrationShortfall {
    /// Fewer labels with a verdict than [`MIN_LABELS`].
    Labels(u64),
    /// A lower bound of agreement below [`MIN_AGREEMENT`].
    Agreement(f64),
    /// Chance alone would agree as well, or nothing could differ: if most answers pass, a judge
    /// that always says pass agrees well.
    Chance,
}

/// Returns the requirements that these verdicts miss; empty if none.
pub(super) fn verdict_calibration_shortfalls(
    verdicts: &JudgeVerdictStatistics,
) -> Vec<CalibrationShortfall> {
    find_calibration_shortfalls(
        verdicts.judged_label_count(),
        verdicts.agreement,
        &[verdicts.kappa],
    )
}

/// Returns the same for pairs. Only a choice that is right in both orders counts as right: one that
/// depends on the order is none.
pub(super) fn calibration_shortfalls_of_pairs(pairs: &PairStatistics) -> Vec<CalibrationShortfall> {
    // The order with fewer choices counts, since agreement needs both.
    let heard = pairs.a_first.first.of.min(pairs.b_first.first.of);
    find_calibration_shortfalls(
        heard,
        pairs.right_twice,
        &[pairs.a_first.kappa, pairs.b_first.kappa],
    )
}

fn find_calibration_shortfalls(
    heard: u64,
    agreement: Proportion,
    kappas: &[Option<CohenKappa>],
) -> Vec<CalibrationShortfall> {
    // The lower bound, not the estimate: a few lucky labels must not be enough.
    let low = agreement
        .confidence_interval()
        .map_or(0.0, |interval| interval.low);
    let beyond_chance = |kappa: &Option<CohenKappa>| {
        kappa.is_some_and(|kappa| kappa.kappa_confidence_interval().low > 0.0)
    };
    let mut lacks = Vec::new();
    if heard < MIN_LABELS {
        lacks.push(CalibrationShortfall::Labels(heard));
    }
    if low < MIN_AGREEMENT {
        lacks.push(CalibrationShortfall::Agreement(low));
    }
    if !kappas.iter().all(beyond_chance) {
        lacks.push(CalibrationShortfall::Chance);
    }
    lacks
}

#[cfg(test)]
mod tests {
    use super::super::statistics::{NoJudgeVerdictReason, PredictedLabel};
    use super::*;

    fn verdicts(
        cells: [(bool, Result<bool, NoJudgeVerdictReason>, usize); 5],
    ) -> JudgeVerdictStatistics {
        let mut items = Vec::new();
        for (label, said, times) in cells {
            let said = said.map(|passes| PredictedLabel {
                passes,
                category: None,
            });
            items.extend(vec![((label, None), said); times]);
        }
        JudgeVerdictStatistics::from_labelled_verdicts(&items)
    }

    fn of(right: [usize; 2], wrong: [usize; 2], silent: usize) -> Vec<CalibrationShortfall> {
        let ([pass, fail], [passed, failed]) = (right, wrong);
        verdict_calibration_shortfalls(&verdicts([
            (true, Ok(true), pass),
            (false, Ok(false), fail),
            (false, Ok(true), passed),
            (true, Ok(false), failed),
            (true, Err(NoJudgeVerdictReason::Unreadable), silent),
        ]))
    }

    #[test]
    fn a_hundred_labels_and_seventy_per_cent() {
        assert_eq!(of([45, 45], [5, 5], 0), []);
        assert_eq!(of([45, 44], [5, 5], 0), [CalibrationShortfall::Labels(99)]);
        // 79 of 100 is bounded by 70.02 %, 78 by 68.9 %.
        assert_eq!(of([40, 39], [10, 11], 0), []);
        let found = of([40, 38], [11, 11], 0);
        assert!(
            matches!(found[..], [CalibrationShortfall::Agreement(low)] if (0.68..0.7).contains(&low)),
            "{found:?}"
        );
    }

    #[test]
    fn who_says_nothing_has_not_agreed() {
        assert_eq!(of([45, 45], [5, 5], 5), []);
        let found = of([45, 45], [5, 5], 60);
        assert!(
            matches!(found[..], [CalibrationShortfall::Agreement(_)]),
            "{found:?}"
        );
        // Nor does it make the labels more.
        assert_eq!(of([45, 45], [4, 5], 5), [CalibrationShortfall::Labels(99)]);
    }

    #[test]
    fn who_always_says_pass_has_shown_nothing() {
        assert_eq!(of([180, 0], [20, 0], 0), [CalibrationShortfall::Chance]);
        assert_eq!(of([200, 0], [0, 0], 0), [CalibrationShortfall::Chance]);
    }
}
