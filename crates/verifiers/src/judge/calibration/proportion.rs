//! Computes a proportion and its confidence interval.

/// The 97.5 % point of the normal distribution: a 95 % interval leaves out half of the rest on each
/// side.
pub const Z: f64 = 1.959_963_984_540_054;

/// An interval, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A number of hits out of a number of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proportion {
    /// The hits.
    pub hits: u64,
    /// The trials.
    pub of: u64,
}

impl Proportion {
    /// Creates a proportion; hits beyond the trials are dropped.
    pub fn new(hits: u64, of: u64) -> Self {
        Self {
            hits: hits.min(of),
            of,
        }
    }

    /// Returns the ratio; `None` without trials.
    pub fn ratio(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    /// Returns the 95 % score interval (Wilson 1927). It stays accurate near 0 and 1 and for small
    /// numbers, where the textbook interval has no width (Newcombe 1998, method 3).
    pub fn confidence_interval(self) -> Option<ConfidenceInterval> {
        let share = self.ratio()?;
        let n = self.of as f64;
        let (square, twice) = (Z * Z, 2.0 * (n + Z * Z));
        let middle = (2.0 * n * share + square) / twice;
        let half = Z * (square + 4.0 * n * share * (1.0 - share)).sqrt() / twice;
        // At the ends the bound is exact; rounding would move it.
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
