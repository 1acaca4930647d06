//! A share with its interval.

/// The 97.5 % point of the normal distribution: half of what a 95 % interval leaves out on each side.
pub(super) const Z: f64 = 1.959_963_984_540_054;

/// From where to where, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proportion {
    /// Those that count.
    pub hits: u64,
    /// All of them.
    pub of: u64,
}

impl Proportion {
    /// So many of so many; more hits than trials are none.
    pub(super) fn new(hits: u64, of: u64) -> Self {
        Self {
            hits: hits.min(of),
            of,
        }
    }

    /// `None` of nothing.
    pub fn ratio(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    /// The 95 % score interval (Wilson 1927), which keeps its promise near 0 and 1 and for small
    /// numbers too, where the textbook one has no width (Newcombe 1998, method 3).
    pub fn confidence_interval(self) -> Option<ConfidenceInterval> {
        let share = self.ratio()?;
        let n = self.of as f64;
        let (square, twice) = (Z * Z, 2.0 * (n + Z * Z));
        let middle = (2.0 * n * share + square) / twice;
        let half = Z * (square + 4.0 * n * share * (1.0 - share)).sqrt() / twice;
        // What is exact at the ends stays so.
        let low = if self.hits == 0 { 0.0 } else { middle - half };
        let high = if self.hits == self.of {
            1.0
        } else {
            middle + half
        };
        Some(ConfidenceInterval { low, high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_examples() {
        // Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3.
        for (hits, of, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = Proportion::new(hits, of).confidence_interval().unwrap();
            assert!((found.low - low).abs() < 5e-5, "{hits}/{of}: {found:?}");
            assert!((found.high - high).abs() < 5e-5, "{hits}/{of}: {found:?}");
        }
    }

    #[test]
    fn bounds_and_symmetry() {
        for of in 1..=60 {
            let mut before = -1.0;
            for hits in 0..=of {
                let one = Proportion::new(hits, of);
                let (share, found) = (one.ratio().unwrap(), one.confidence_interval().unwrap());
                assert!(0.0 <= found.low && found.low <= share, "{one:?}");
                assert!(share <= found.high && found.high <= 1.0, "{one:?}");
                assert!(found.low > before, "more hits, a higher bound: {one:?}");
                before = found.low;
                let other = Proportion::new(of - hits, of)
                    .confidence_interval()
                    .unwrap();
                assert!((found.low - (1.0 - other.high)).abs() < 1e-12, "{one:?}");
            }
        }
    }

    #[test]
    fn of_nothing_there_is_no_share() {
        let none = Proportion::new(0, 0);
        assert_eq!((none.ratio(), none.confidence_interval()), (None, None));
    }
}
