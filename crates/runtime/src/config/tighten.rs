//! The person's own config: it can lower caps and make stances stricter, never the other way
//! round. What it does not set reads as the repo has it, so that the stricter of two equal values
//! changes nothing. What it may not set at all the table of keys says.

use checkrein_core::policy::{Policy, SubagentStopVerification, VerifyOnChangeOrAlways};
use toml::{Table, Value};

use super::document::Document;
use super::file::ConfigFile;
use super::keys::{KEYS, OwnFile};
use super::{ConfigError, caps, detectors_of, session_caps};

/// What the person's own file is read over: the repo's values, without those that are added to.
pub(super) fn base(mut repo: Table) -> Table {
    for list in ["verifier", "middleware"] {
        repo.remove(list);
    }
    let added = KEYS
        .iter()
        .filter(|spec| spec.own_file == OwnFile::Adds && spec.default.is_none());
    for spec in added.filter(|spec| !spec.is_table()) {
        if let Some(table) = repo.get_mut(spec.table()).and_then(Value::as_table_mut) {
            table.remove(spec.name());
        }
    }
    repo
}

pub(super) fn tighten(
    policy: &mut Policy,
    at: &Document,
    own: &ConfigFile,
) -> Result<(), ConfigError> {
    if own.loops.preset == "off" && !policy.loops.detectors.is_empty() {
        let what = "cannot be \"off\" in your own file, which can only tighten";
        return Err(at.mistake("loops.preset", what));
    }
    let own_caps = caps(&own.caps);
    let kept = &mut policy.caps;
    lower(&mut kept.token_budget, own_caps.token_budget);
    lower(&mut kept.wall_clock_ms, own_caps.wall_clock_ms);
    lower(&mut kept.tool_calls, own_caps.tool_calls);
    lower(&mut kept.max_iterations, own_caps.max_iterations);
    lower(&mut kept.cost, own_caps.cost);
    kept.attempts = kept.attempts.min(own_caps.attempts);
    kept.continues = kept.continues.min(own_caps.continues);
    let own_session = session_caps(&own.session_caps);
    let kept = &mut policy.session_caps;
    lower(&mut kept.token_budget, own_session.token_budget);
    lower(&mut kept.wall_clock_ms, own_session.wall_clock_ms);
    lower(&mut kept.tool_calls, own_session.tool_calls);
    lower(&mut kept.max_iterations, own_session.max_iterations);
    lower(&mut kept.continues, own_session.continues);
    lower(&mut kept.cost, own_session.cost);
    if own.verify_on == VerifyOnChangeOrAlways::Always {
        policy.verify_on = VerifyOnChangeOrAlways::Always;
    }
    if own.subagents.verify == SubagentStopVerification::Writers {
        policy.subagents.verify = SubagentStopVerification::Writers;
    }
    let rounds = Some(own.subagents.max_iterations);
    lower(&mut policy.subagents.max_iterations, rounds);
    policy.stance.tool = policy.stance.tool.stricter_of_two(own.stance.tool);
    policy.stance.stop = policy.stance.stop.stricter_of_two(own.stance.stop);
    policy.approval = policy.approval.stricter_of_two(own.policy.approval);
    // What their own screen shows is theirs to say.
    policy.verified_notice = own.ui.verified;
    // It is this person who is told.
    let approvals = super::approvals(at, own)?;
    let expires_ms = approvals.expires_ms.min(policy.approvals.expires_ms);
    policy.approvals = approvals;
    policy.approvals.expires_ms = expires_ms;
    let more = detectors_of(&own.loops.preset);
    policy.loops.literal_breaker |= more.literal_breaker;
    for detector in more.detectors {
        if !policy.loops.detectors.contains(&detector) {
            policy.loops.detectors.push(detector);
        }
    }
    Ok(())
}

fn lower<T: Ord + Copy>(cap: &mut Option<T>, own: Option<T>) {
    if let Some(own) = own {
        *cap = Some(cap.map_or(own, |cap| cap.min(own)));
    }
}
