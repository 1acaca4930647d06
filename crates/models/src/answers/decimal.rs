//! Parses shares of one exactly: a number slightly below a threshold stays below it.

use super::UnreadableAnswerCause;
use super::json_scan;

/// See [`super::ParsedModelJson::thousandths_field`].
pub(super) fn parse_thousandths(
    key: &'static str,
    raw: &str,
) -> Result<u16, UnreadableAnswerCause> {
    let text = json_scan::unescape_json_string(raw);
    let (number, scale) = match text.as_deref().map(str::trim) {
        None => (raw, 3),
        Some(text) => match text.strip_suffix('%') {
            None => (text, 3),
            Some(percent) => (percent.trim_end(), 1),
        },
    };
    let shifted =
        parse_scaled_decimal(number, scale).ok_or(UnreadableAnswerCause::WrongType(key))?;
    match u16::try_from(shifted) {
        Ok(thousandths) if thousandths <= 1000 => Ok(thousandths),
        Ok(_) | Err(_) => Err(UnreadableAnswerCause::OutOfRange(key)),
    }
}

/// Returns a decimal number times ten to the `scale`, without the digits after the point. A
/// remainder above a thousand adds one, so that 1.0001 is not 1. `None` if the text is no number.
fn parse_scaled_decimal(text: &str, scale: i32) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        None => (text, 0),
        // Beyond these exponents the value is zero or out of range either way, and the loop below
        // stays short.
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?.clamp(-999, 999)),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    if before.is_empty() && behind.is_empty() {
        return None;
    }
    let point = i64::try_from(before.len()).ok()? + i64::from(exponent) + i64::from(scale);
    let mut value: i64 = 0;
    let mut rest = false;
    let mut read: i64 = 0;
    for digit in before.chars().chain(behind.chars()) {
        let digit = i64::from(digit.to_digit(10)?);
        if read < point {
            value = value.saturating_mul(10).saturating_add(digit);
        } else {
            // Digits beyond the scale are dropped, so that 0.5999 counts as 599 thousandths and not
            // as 600.
            rest |= digit != 0;
        }
        read += 1;
    }
    if value != 0 {
        // This loop runs about a thousand times at most, because the exponent is clamped.
        for _ in read..point {
            value = value.saturating_mul(10);
        }
    }
    if rest && (value >= 1000 || negative) {
        value = value.saturating_add(1);
    }
    Some(if negative { -value } else { value })
}

/// Parses an exponent, including one that is too large for `i32`.
fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let most = if text.starts_with('-') { -999 } else { 999 };
    Some(text.parse().unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use super::{UnreadableAnswerCause, parse_thousandths};

    #[test]
    fn shares_are_read_exactly() {
        let range = Err(UnreadableAnswerCause::OutOfRange("x"));
        let kind = Err(UnreadableAnswerCause::WrongType("x"));
        for (raw, expected) in [
            ("0.92", Ok(920)),
            ("1", Ok(1000)),
            ("1.0", Ok(1000)),
            ("0", Ok(0)),
            ("-0.0", Ok(0)),
            ("0.57", Ok(570)),
            ("0.5999999999999999", Ok(599)),
            ("0.6", Ok(600)),
            ("9e-1", Ok(900)),
            ("1e-400", Ok(0)),
            ("0e999", Ok(0)),
            ("0.0000000000000000000000000000000001e33", Ok(100)),
            ("\"0.2\"", Ok(200)),
            ("\" .5 \"", Ok(500)),
            ("\"90%\"", Ok(900)),
            ("\"85 %\"", Ok(850)),
            ("\"99.95%\"", Ok(999)),
            ("\"100%\"", Ok(1000)),
            ("1.0001", range.clone()),
            ("85", range.clone()),
            ("\"101%\"", range.clone()),
            ("-0.5", range.clone()),
            ("-1e-9", range.clone()),
            ("1e999", range.clone()),
            ("1e99999999999999999999", range.clone()),
            ("\"inf\"", kind.clone()),
            ("\"NaN\"", kind.clone()),
            ("\"high\"", kind.clone()),
            ("\"0,9\"", kind.clone()),
            ("\"\"", kind.clone()),
            ("\".\"", kind.clone()),
            ("\"%\"", kind.clone()),
            ("\"1e\"", kind.clone()),
            ("true", kind.clone()),
            ("null", kind.clone()),
            ("[1]", kind.clone()),
            ("{\"a\":1}", kind),
        ] {
            assert_eq!(parse_thousandths("x", raw), expected, "{raw}");
        }
    }
}
