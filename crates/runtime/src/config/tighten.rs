//! The person's own config: it can lower caps and make stances stricter, never the
//! other way round, and it brings no verifiers (those come only from the repo).

use std::path::Path;

use checkrein_core::policy::{Policy, SubagentVerify, VerifyOn};

use super::file::{ConfigFile, SubagentVerifyText, VerifyOnText};
use super::{ConfigError, positive, span, stance, value};

pub(super) fn tighten(
    policy: &mut Policy,
    name: &Path,
    own: &ConfigFile,
) -> Result<(), ConfigError> {
    if !own.verifier.is_empty() || own.accept.is_some() {
        let what =
            "belongs into the repo's checkrein.toml; your own file can only tighten".to_owned();
        return Err(value(name, "verifier/accept", what));
    }
    if !own.middleware.is_empty() {
        let what =
            "belongs into the repo's checkrein.toml: programs run only for a repo that says so";
        return Err(value(name, "middleware", what.to_owned()));
    }
    let budget = &own.token_budget;
    let sets_budget = budget.threshold.is_some()
        || budget.diminishing_tokens.is_some()
        || budget.diminishing_rounds.is_some()
        || budget.mode.is_some();
    if own.goal.is_some() || sets_budget {
        let what =
            "is not read from your own file; it belongs into the repo's checkrein.toml".to_owned();
        return Err(value(name, "goal/token_budget", what));
    }
    if own.loops.preset.as_deref() == Some("off") {
        let what = "cannot be \"off\" in your own file, which can only tighten".to_owned();
        return Err(value(name, "loops.preset", what));
    }
    let caps = &own.caps;
    lower(
        &mut policy.caps.token_budget,
        positive(name, "caps.token_budget", caps.token_budget)?,
    );
    lower(
        &mut policy.caps.wall_clock_ms,
        span(name, "caps.wall_clock", caps.wall_clock)?,
    );
    lower(
        &mut policy.caps.tool_calls,
        positive(name, "caps.tool_calls", caps.tool_calls)?,
    );
    lower(
        &mut policy.caps.max_iterations,
        positive(name, "caps.max_iterations", caps.max_iterations)?,
    );
    lower(
        &mut policy.caps.cost,
        super::dollars(name, "caps.cost_usd", caps.cost_usd)?,
    );
    for (cap, key, number) in [
        (&mut policy.caps.attempts, "caps.attempts", caps.attempts),
        (&mut policy.caps.continues, "caps.continues", caps.continues),
    ] {
        if let Some(number) = positive(name, key, number)? {
            *cap = (*cap).min(u32::try_from(number).unwrap_or(u32::MAX));
        }
    }
    let session = super::session_caps(name, &own.session_caps)?;
    lower(&mut policy.session_caps.token_budget, session.token_budget);
    lower(
        &mut policy.session_caps.wall_clock_ms,
        session.wall_clock_ms,
    );
    lower(&mut policy.session_caps.tool_calls, session.tool_calls);
    lower(
        &mut policy.session_caps.max_iterations,
        session.max_iterations,
    );
    lower(&mut policy.session_caps.continues, session.continues);
    lower(&mut policy.session_caps.cost, session.cost);
    if own.verify_on == Some(VerifyOnText::Always) {
        policy.verify_on = VerifyOn::Always;
    }
    if own.subagents.verify == Some(SubagentVerifyText::Writers) {
        policy.subagents.verify = SubagentVerify::Writers;
    }
    let own_rounds = positive(
        name,
        "subagents.max_iterations",
        own.subagents.max_iterations,
    )?;
    lower(&mut policy.subagents.max_iterations, own_rounds);
    for (kept, own) in [
        (&mut policy.stance.tool, own.stance.tool),
        (&mut policy.stance.stop, own.stance.stop),
    ] {
        if let Some(own) = own.map(stance) {
            *kept = kept.stricter(own);
        }
    }
    if let Some(own) = own.policy.approval.map(super::approval) {
        policy.approval = policy.approval.stricter(own);
    }
    let approvals = super::approvals(name, own)?;
    if own.approvals.expires.is_some() {
        let kept = &mut policy.approvals.expires_ms;
        *kept = approvals.expires_ms.min(*kept);
    }
    // What their own screen shows is theirs to say.
    if let Some(verified) = own.ui.verified {
        policy.verified_notice = super::verified_notice(verified);
    }
    // It is this person who is told.
    if approvals.notify.is_some() {
        policy.approvals.notify = approvals.notify;
    }
    if let Some(preset) = own.loops.preset.as_deref() {
        let loops = super::loops(name, preset)?;
        policy.loops.literal_breaker |= loops.literal_breaker;
        for detector in loops.detectors {
            if !policy.loops.detectors.contains(&detector) {
                policy.loops.detectors.push(detector);
            }
        }
    }
    Ok(())
}

fn lower<T: Ord + Copy>(cap: &mut Option<T>, own: Option<T>) {
    if let Some(own) = own {
        *cap = Some(cap.map_or(own, |cap| cap.min(own)));
    }
}
