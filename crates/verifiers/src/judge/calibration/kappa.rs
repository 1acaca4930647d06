//! Computes agreement beyond chance.

use super::proportion::{ConfidenceInterval, Z};

/// Cohen's kappa of two raters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CohenKappa {
    /// 1 is full agreement, 0 what chance alone would give (Cohen 1960).
    pub value: f64,
    /// Its large-sample standard error (Fleiss, Cohen and Everitt 1969).
    pub error: f64,
}

impl CohenKappa {
    /// Computes kappa from a square table: `table[i][j]` items that one rater calls `i` and the
    /// other `j`. Returns `None` for an empty table, and if both raters use one and the same class
    /// only: chance alone would agree fully then.
    pub(super) fn kappa_from_contingency_table<const N: usize>(
        table: [[u64; N]; N],
    ) -> Option<Self> {
        let count: u64 = table.iter().flatten().sum();
        if count == 0 {
            return None;
        }
        let n = count as f64;
        let part = table.map(|row| row.map(|cell| cell as f64 / n));
        let rows = part.map(|row| row.iter().sum::<f64>());
        let mut columns = [0.0; N];
        for row in &part {
            for (sum, cell) in columns.iter_mut().zip(row) {
                *sum += cell;
            }
        }
        let margins = || rows.iter().zip(&columns);
        let diagonal = || {
            let cell = |(i, row): (usize, &[f64; N])| row.get(i).copied().unwrap_or(0.0);
            part.iter().enumerate().map(cell)
        };
        // Cohen 1960: (seen - chance) / (1 - chance).
        let seen: f64 = diagonal().sum();
        let chance: f64 = margins().map(|(row, column)| row * column).sum();
        let room = 1.0 - chance;
        if room <= f64::EPSILON {
            return None;
        }
        let value = (seen - chance) / room;
        let lost = 1.0 - value;
        // Fleiss, Levin and Paik, 3rd edition, (18.13): sqrt(A + B - C) / ((1 - chance) sqrt(n)).
        let on: f64 = diagonal()
            .zip(margins())
            .map(|(cell, (row, column))| cell * (1.0 - (row + column) * lost).powi(2))
            .sum();
        let mut off = 0.0;
        for (i, (row, _)) in part.iter().zip(&rows).enumerate() {
            let column = columns.get(i).copied().unwrap_or(0.0);
            for (j, (cell, other)) in row.iter().zip(&rows).enumerate() {
                if i != j {
                    off += cell * (column + other).powi(2);
                }
            }
        }
        let rest = (value - chance * lost).powi(2);
        // Rounding may leave it slightly below zero.
        let variance = (on + lost * lost * off - rest).max(0.0);
        Some(Self {
            value,
            error: variance.sqrt() / (room * n.sqrt()),
        })
    }

    /// Returns the 95 % interval.
    pub fn kappa_confidence_interval(self) -> ConfidenceInterval {
        ConfidenceInterval {
            // The normal approximation can leave the range of kappa.
            low: (self.value - Z * self.error).max(-1.0),
            high: (self.value + Z * self.error).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_example() {
        // Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions, 3rd edition,
        // table 18.1 (two raters, 100 patients), 18.1: kappa 0.68 (0.89 seen, 0.66 by chance),
        // standard error 0.087, interval 0.51 to 0.85.
        let kappa =
            CohenKappa::kappa_from_contingency_table([[75, 1, 4], [5, 4, 1], [0, 0, 10]]).unwrap();
        assert!((kappa.value - 0.676).abs() < 5e-4, "{kappa:?}");
        assert!((kappa.error - 0.087).abs() < 1e-3, "{kappa:?}");
        let ConfidenceInterval { low, high } = kappa.kappa_confidence_interval();
        assert!(
            (low - 0.51).abs() < 6e-3 && (high - 0.85).abs() < 6e-3,
            "{low} {high}"
        );
    }

    #[test]
    fn full_agreement_and_none() {
        let full = CohenKappa::kappa_from_contingency_table([[7, 0], [0, 5]]).unwrap();
        assert!(
            (full.value - 1.0).abs() < 1e-12 && full.error < 1e-9,
            "{full:?}"
        );
        // Two raters who draw lots: what is seen is what chance gives.
        let lots = CohenKappa::kappa_from_contingency_table([[25, 25], [25, 25]]).unwrap();
        assert!(lots.value.abs() < 1e-12, "{lots:?}");
        // The error of that by hand: rows and columns of a half each give A 1/2 (1 - 1)^2 = 0,
        // B 1/2, C 1/4, so 0.5 / (0.5 sqrt(100)).
        assert!((lots.error - 0.1).abs() < 1e-12, "{lots:?}");
        let against = CohenKappa::kappa_from_contingency_table([[0, 5], [5, 0]]).unwrap();
        assert!((against.value + 1.0).abs() < 1e-12, "{against:?}");
    }

    #[test]
    fn where_nothing_could_differ_there_is_none() {
        assert_eq!(
            CohenKappa::kappa_from_contingency_table([[0, 0], [0, 0]]),
            None
        );
        assert_eq!(
            CohenKappa::kappa_from_contingency_table([[9, 0], [0, 0]]),
            None
        );
        // Who always says the same agrees no better than chance.
        let same = CohenKappa::kappa_from_contingency_table([[90, 0], [10, 0]]).unwrap();
        assert!(same.value.abs() < 1e-12, "{same:?}");
    }

    #[test]
    fn it_does_not_matter_who_is_first_nor_what_the_classes_are_called() {
        let mut cells = 1_u64;
        for _ in 0..200 {
            // A fixed sequence of tables.
            let mut next = || {
                cells = cells
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (cells >> 40) % 30
            };
            let [a, b, c, d] = [next(), next(), next(), next()];
            let one = CohenKappa::kappa_from_contingency_table([[a, b], [c, d]]);
            for other in [
                CohenKappa::kappa_from_contingency_table([[a, c], [b, d]]),
                CohenKappa::kappa_from_contingency_table([[d, c], [b, a]]),
            ] {
                match (one, other) {
                    (Some(one), Some(other)) => {
                        assert!((one.value - other.value).abs() < 1e-9, "{one:?} {other:?}");
                        assert!((one.error - other.error).abs() < 1e-6, "{one:?} {other:?}");
                        assert!((-1.0..=1.0).contains(&one.value), "{one:?}");
                        let ConfidenceInterval { low, high } = one.kappa_confidence_interval();
                        assert!(low <= one.value && one.value <= high, "{one:?}");
                    }
                    (one, other) => assert_eq!(one, other),
                }
            }
        }
    }
}
