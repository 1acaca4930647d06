//! Whether a judge has shown enough for its word to count.

use super::kappa::Kappa;
use super::measure::{Pairs, Verdicts};
use super::proportion::Proportion;

/// Labels with a verdict that are needed (seed: 100 human-labelled samples).
pub const LABELS: u64 = 100;
/// What the lower bound of agreement must reach (seed: below 70 %, another prompt or model).
pub const AGREEMENT: f64 = 0.7;

/// What is not enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lack {
    /// Fewer labels with a verdict than [`LABELS`].
    Labels(u64),
    /// A lower bound of agreement below [`AGREEMENT`].
    Agreement(f64),
    /// Chance alone would agree as well, or nothing could differ: with mostly passing answers
    /// who always says pass agrees nicely.
    Chance,
}

/// What is not enough of this; nothing is what is wanted.
pub(super) fn of_verdicts(verdicts: &Verdicts) -> Vec<Lack> {
    lacks(verdicts.heard(), verdicts.agreement, &[verdicts.kappa])
}

/// The same of pairs. Right is what is right in both orders: a choice that depends on the order is
/// none.
pub(super) fn of_pairs(pairs: &Pairs) -> Vec<Lack> {
    let heard = pairs.forth.first.of.min(pairs.back.first.of);
    lacks(
        heard,
        pairs.right_twice,
        &[pairs.forth.kappa, pairs.back.kappa],
    )
}

fn lacks(heard: u64, agreement: Proportion, kappas: &[Option<Kappa>]) -> Vec<Lack> {
    let low = agreement.interval().map_or(0.0, |interval| interval.low);
    let beyond_chance =
        |kappa: &Option<Kappa>| kappa.is_some_and(|kappa| kappa.interval().low > 0.0);
    let mut lacks = Vec::new();
    if heard < LABELS {
        lacks.push(Lack::Labels(heard));
    }
    if low < AGREEMENT {
        lacks.push(Lack::Agreement(low));
    }
    if !kappas.iter().all(beyond_chance) {
        lacks.push(Lack::Chance);
    }
    lacks
}

#[cfg(test)]
mod tests {
    use super::super::measure::{Judged, Silence};
    use super::*;

    fn verdicts(cells: [(bool, Result<bool, Silence>, usize); 5]) -> Verdicts {
        let mut items = Vec::new();
        for (label, said, times) in cells {
            let said = said.map(|passes| Judged {
                passes,
                category: None,
            });
            items.extend(vec![((label, None), said); times]);
        }
        Verdicts::of(&items)
    }

    fn of(right: [usize; 2], wrong: [usize; 2], silent: usize) -> Vec<Lack> {
        let ([pass, fail], [passed, failed]) = (right, wrong);
        of_verdicts(&verdicts([
            (true, Ok(true), pass),
            (false, Ok(false), fail),
            (false, Ok(true), passed),
            (true, Ok(false), failed),
            (true, Err(Silence::Unreadable), silent),
        ]))
    }

    #[test]
    fn a_hundred_labels_and_seventy_per_cent() {
        assert_eq!(of([45, 45], [5, 5], 0), []);
        assert_eq!(of([45, 44], [5, 5], 0), [Lack::Labels(99)]);
        // 79 of 100 is bounded by 70.02 %, 78 by 68.9 %.
        assert_eq!(of([40, 39], [10, 11], 0), []);
        let found = of([40, 38], [11, 11], 0);
        assert!(
            matches!(found[..], [Lack::Agreement(low)] if (0.68..0.7).contains(&low)),
            "{found:?}"
        );
    }

    #[test]
    fn who_says_nothing_has_not_agreed() {
        assert_eq!(of([45, 45], [5, 5], 5), []);
        let found = of([45, 45], [5, 5], 60);
        assert!(matches!(found[..], [Lack::Agreement(_)]), "{found:?}");
        // Nor does it make the labels more.
        assert_eq!(of([45, 45], [4, 5], 5), [Lack::Labels(99)]);
    }

    #[test]
    fn who_always_says_pass_has_shown_nothing() {
        assert_eq!(of([180, 0], [20, 0], 0), [Lack::Chance]);
        assert_eq!(of([200, 0], [0, 0], 0), [Lack::Chance]);
    }
}
