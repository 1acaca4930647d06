//! The words of the detectors of the seed, as logs have them. Policies that were sealed before each
//! pattern had a ladder of its own are answered in these words, so that replay gives the recorded
//! decisions (law 3).

use super::LoopPatternMatch;
use crate::event::LoopSeverity;

/// Returns the words of a finding under such a policy; `None` for detectors that it cannot have.
pub(crate) fn loop_advice_under_old_policy(
    detector: &str,
    found: LoopPatternMatch,
) -> Option<String> {
    let count = found.count;
    let is_warning = found.level == LoopSeverity::Warning;
    let advice = match (detector, is_warning) {
        ("global_circuit_breaker", _) => format!(
            "{count} calls in a row brought nothing new; stop and say what is done and what is in the way"
        ),
        ("known_poll_no_progress", true) => format!(
            "this poll gave the same answer {count} times; wait longer between polls, or look whether what you wait for is alive"
        ),
        ("known_poll_no_progress", false) => format!(
            "this poll gave the same answer {count} times and is not run again; treat what you wait for as stuck"
        ),
        ("ping_pong", true) => format!(
            "you have gone to and fro between two calls {count} times; decide on one, or look for what both miss"
        ),
        ("ping_pong", false) => format!(
            "two calls took turns {count} times and neither changed anything; this one is not run again"
        ),
        ("generic_repeat", true) => format!(
            "you have made this very call {count} times of late; use what it told you, or try something else"
        ),
        ("generic_repeat", false) if found.in_flight => format!(
            "{count} calls like this one are running or came back the same; it is not run again. Wait for what is running, or try something else"
        ),
        ("generic_repeat", false) => format!(
            "this very call came back the same {count} times; it is not run again. Try something else, or say what is in the way"
        ),
        _ => return None,
    };
    Some(advice)
}
