//! Computes the wait before a retry: what the provider asks for, or else twice as long each time.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde_json::Value;

/// The longest wait that the provider did not ask for.
const LONGEST: Duration = Duration::from_secs(30);

/// Returns the wait after this many attempts. Jitter keeps clients apart: between half of the pause
/// and all of it, and on top of a requested wait as well.
pub(crate) fn backoff_delay(tried: u32, pause: Duration, asked: Option<Duration>) -> Duration {
    let doubled = 2_u32.saturating_pow(tried.saturating_sub(1));
    let pause = pause.saturating_mul(doubled).min(LONGEST);
    let half = pause / 2;
    let chance = half.mul_f64(fastrand::f64());
    // The jitter is only added and never subtracted, so a requested wait is always kept.
    asked.unwrap_or(half).saturating_add(chance)
}

/// Returns the wait that the headers ask for: milliseconds, seconds or a date.
pub(crate) fn retry_after_from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(|text| parse_seconds(text, 1e-3)) {
        return Some(wait);
    }
    let text = text("retry-after")?;
    parse_seconds(text, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(text).ok()?;
        // A date in the past asks for no wait.
        Some(date.duration_since(now).unwrap_or_default())
    })
}

/// Returns the wait in the body, where Google puts it.
pub(crate) fn retry_delay_from_body(body: &Value) -> Option<Duration> {
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    parse_seconds(delay.strip_suffix('s')?, 1.0)
}

fn parse_seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    // Negative numbers, NaN and overflows are errors here and count as no request.
    Duration::try_from_secs_f64(number * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_differ() {
        let pause = Duration::from_millis(100);
        for (tried, least) in [(1, 50), (2, 100), (3, 200), (40, 15_000)] {
            let waits: Vec<Duration> = (0..50).map(|_| backoff_delay(tried, pause, None)).collect();
            let least = Duration::from_millis(least);
            assert!(
                waits
                    .iter()
                    .all(|wait| *wait >= least && *wait <= least * 2)
            );
            assert!(waits.iter().any(|wait| Some(wait) != waits.first()));
        }
        let asked = Duration::from_secs(7);
        assert!(backoff_delay(1, pause, Some(asked)) >= asked);
    }

    #[test]
    fn a_wait_is_asked_for_in_many_ways() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (name, value, expected) in [
            ("retry-after", "3", Some(3.0)),
            ("retry-after", " 0.5 ", Some(0.5)),
            ("retry-after-ms", "250", Some(0.25)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT", Some(10.0)),
            ("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT", Some(10.0)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT", Some(0.0)),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "1e300", None),
            ("retry-after", "soon", None),
        ] {
            let headers = HeaderMap::from_iter([(
                name.parse().unwrap(),
                value.parse::<reqwest::header::HeaderValue>().unwrap(),
            )]);
            let expected = expected.map(Duration::from_secs_f64);
            assert_eq!(
                retry_after_from_headers(&headers, now),
                expected,
                "{name}: {value}"
            );
        }
        let body = serde_json::json!({ "error": { "details": [{}, { "retryDelay": "34.5s" }] } });
        assert_eq!(
            retry_delay_from_body(&body),
            Some(Duration::from_millis(34_500))
        );
    }
}
