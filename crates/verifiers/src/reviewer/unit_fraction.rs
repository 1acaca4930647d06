//! A fraction of one in thousandths: confidences, scores and their thresholds. No floats are used,
//! so that two machines never differ about which side of a threshold a value is on.

use std::fmt;
use std::str::FromStr;

/// From 0 to 1.
///
/// ```
/// # use checkrein_verifiers::reviewer::UnitFraction;
/// let threshold: UnitFraction = "0.6".parse()?;
/// assert_eq!(threshold, UnitFraction::share_from_thousandths(600));
/// assert_eq!(threshold.to_string(), "0.6");
/// # Ok::<(), checkrein_verifiers::reviewer::ParseFractionError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitFraction(u16);

impl UnitFraction {
    /// The fraction 0.
    pub const ZERO: Self = Self(0);
    /// The fraction 1.
    pub const ONE: Self = Self(1000);

    /// Creates a fraction from thousandths; more than 1000 counts as 1000.
    pub const fn share_from_thousandths(count: u16) -> Self {
        Self(if count > 1000 { 1000 } else { count })
    }

    /// Returns the thousandths.
    pub const fn to_thousandths(self) -> u16 {
        self.0
    }
}

impl fmt::Display for UnitFraction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1000, self.0 % 1000);
        if rest == 0 {
            return write!(out, "{whole}");
        }
        let digits = format!("{rest:03}");
        write!(out, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// A text that is not a number from 0 to 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no number from 0 to 1 with at most three decimals")]
pub struct ParseFractionError {
    text: String,
}

impl FromStr for UnitFraction {
    type Err = ParseFractionError;

    fn from_str(text: &str) -> Result<Self, ParseFractionError> {
        let wrong = || ParseFractionError {
            text: text.to_owned(),
        };
        let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
        // `u16::from_str` accepts a leading `+`, which is no number here.
        let plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if !plain(whole) || !plain(rest) || rest.len() > 3 {
            return Err(wrong());
        }
        let whole: u16 = whole.parse().map_err(|_| wrong())?;
        // Padded on the right: `.6` is 600 thousandths.
        let rest: u16 = format!("{rest:0<3}").parse().map_err(|_| wrong())?;
        match (whole, rest) {
            (0, rest) => Ok(Self(rest)),
            (1, 0) => Ok(Self::ONE),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_and_read() {
        for (text, thousandths) in [
            ("0", 0),
            ("0.005", 5),
            ("0.6", 600),
            ("0.92", 920),
            ("1", 1000),
        ] {
            let share = UnitFraction::share_from_thousandths(thousandths);
            assert_eq!(share.to_string(), text);
            assert_eq!(text.parse(), Ok(share));
        }
        assert_eq!(
            UnitFraction::share_from_thousandths(1001),
            UnitFraction::ONE
        );
        for wrong in [
            "", ".", ".5", "1.001", "2", "-0.5", "0.1234", "60%", "nan", "+1",
        ] {
            assert!(wrong.parse::<UnitFraction>().is_err(), "{wrong}");
        }
    }
}
