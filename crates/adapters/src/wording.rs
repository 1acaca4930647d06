//! Holds texts that more than one adapter needs. They are short: the agent pays for each of them in
//! tokens.

use checkrein_core::decision::StopFeedback;
use checkrein_core::evidence::Verdict;
use checkrein_core::transition::Transition;

/// The fallback where no other text was given. Agents take an empty refusal for a broken hook.
pub(crate) const CANNOT_JUDGE: &str = "checkrein: cannot judge this";

/// Returns the text itself, or a fixed line if there is none.
pub(crate) fn text_or_fallback_refusal(text: &str) -> &str {
    if text.trim().is_empty() {
        CANNOT_JUDGE
    } else {
        text
    }
}

/// Returns a refusal that waits for a person and names the approval.
pub(crate) fn refusal_until_call_approved(reason: &str, approval: &str) -> String {
    format!(
        "{reason}\ncheckrein: refused until a person approves exactly this call in a terminal of their own: checkrein approve {approval}. Say so and go on with what does not need it; do not try another way to the same end. Once it is approved, make the same call again."
    )
}

/// Returns a refusal with the call to make instead.
pub(crate) fn refusal_with_rewritten_call(reason: &str, args: &str) -> String {
    format!("{reason}\ncheckrein: call the tool with these arguments instead: {args}")
}

/// Returns in one line which checks did not pass.
pub(crate) fn unmet_checks_line(feedback: &StopFeedback) -> String {
    let names = |wanted: fn(Verdict) -> bool| {
        let names: Vec<&str> = feedback
            .checks
            .iter()
            .filter(|check| wanted(check.verdict))
            .map(|check| check.verifier.as_str())
            .collect();
        names.join(", ")
    };
    let failed = names(|verdict| verdict == Verdict::Fail);
    let open = names(|verdict| verdict == Verdict::Inconclusive);
    match (failed.is_empty(), open.is_empty()) {
        (false, true) => format!("checkrein: not done: failing: {failed}"),
        (true, false) => format!("checkrein: not done: no verdict: {open}"),
        (false, false) => format!("checkrein: not done: failing: {failed}; no verdict: {open}"),
        // A refusal without a failing check happens, for example when only a layer refuses.
        (true, true) => "checkrein: not done".to_owned(),
    }
}

/// Returns in one line how a task ended.
pub(crate) fn how_task_ended_line(transition: &Transition) -> String {
    match &transition.detail {
        Some(detail) => format!("checkrein: {} ({detail})", transition.reason.as_str()),
        None => format!("checkrein: {}", transition.reason.as_str()),
    }
}
