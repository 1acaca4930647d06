//! Applies the person's own config: it can lower caps and make stances stricter, never the other
//! way round. What it does not set reads as the repo has it, so that taking the stricter of two
//! equal values changes nothing. The table of keys decides what it may not set at all.

use checkrein_core::policy::{Policy, SubagentStopVerification, VerifyOnChangeOrAlways};
use toml::{Table, Value};

use super::config_document::ParsedConfigDocument;
use super::config_file::DeserializedConfigFile;
use super::config_keys::{KEYS, PersonalConfigKeyPermission};
use super::{ConfigError, loops, session_caps_from_config, task_caps_from_config};

/// Returns what the person's own file is read over: the repo's values, without those that are added
/// to.
pub(super) fn repo_values_without_additive_keys(mut repo: Table) -> Table {
    for list in ["verifier", "middleware", "detector"] {
        repo.remove(list);
    }
    // A list that adds must not contain the repo's entries already: they would count as the
    // person's own.
    let added = KEYS.iter().filter(|spec| {
        spec.own_file == PersonalConfigKeyPermission::Adds && spec.default.is_none()
    });
    for spec in added.filter(|spec| !spec.config_key_holds_table()) {
        if let Some(table) = repo
            .get_mut(spec.table_of_config_key())
            .and_then(Value::as_table_mut)
        {
            table.remove(spec.key_name_without_table());
        }
    }
    repo
}

pub(super) fn tighten_policy_by_person_config(
    policy: &mut Policy,
    at: &ParsedConfigDocument,
    own: &DeserializedConfigFile,
) -> Result<(), ConfigError> {
    // Switching all detectors off would loosen what the repo asks for.
    // What is not set there is read as the repo has it, and is no wish of the person's.
    let own_preset = at
        .has_config_key("loops", "preset")
        .then_some(own.loops.preset.as_str());
    if own_preset == Some("off") && !policy.loops.detectors.is_empty() {
        let what = "cannot be \"off\" in your own file, which can only tighten";
        return Err(at.config_value_mistake("loops.preset", what));
    }
    let own_caps = task_caps_from_config(&own.caps);
    let kept = &mut policy.caps;
    tighten_cap_in_place(&mut kept.token_budget, own_caps.token_budget);
    tighten_cap_in_place(&mut kept.wall_clock_ms, own_caps.wall_clock_ms);
    tighten_cap_in_place(&mut kept.tool_calls, own_caps.tool_calls);
    tighten_cap_in_place(&mut kept.max_iterations, own_caps.max_iterations);
    tighten_cap_in_place(&mut kept.cost, own_caps.cost);
    kept.attempts = kept.attempts.min(own_caps.attempts);
    kept.continues = kept.continues.min(own_caps.continues);
    let own_session = session_caps_from_config(&own.session_caps);
    let kept = &mut policy.session_caps;
    tighten_cap_in_place(&mut kept.token_budget, own_session.token_budget);
    tighten_cap_in_place(&mut kept.wall_clock_ms, own_session.wall_clock_ms);
    tighten_cap_in_place(&mut kept.tool_calls, own_session.tool_calls);
    tighten_cap_in_place(&mut kept.max_iterations, own_session.max_iterations);
    tighten_cap_in_place(&mut kept.continues, own_session.continues);
    tighten_cap_in_place(&mut kept.cost, own_session.cost);
    // Only the stricter value can change anything; the other one says no more than the repo does.
    if own.verify_on == VerifyOnChangeOrAlways::Always {
        policy.verify_on = VerifyOnChangeOrAlways::Always;
    }
    if own.subagents.verify == SubagentStopVerification::Writers {
        policy.subagents.verify = SubagentStopVerification::Writers;
    }
    let rounds = Some(own.subagents.max_iterations);
    tighten_cap_in_place(&mut policy.subagents.max_iterations, rounds);
    policy.stance.tool = policy.stance.tool.stricter_of_two(own.stance.tool);
    policy.stance.stop = policy.stance.stop.stricter_of_two(own.stance.stop);
    policy.approval = policy.approval.stricter_of_two(own.policy.approval);
    // What their own screen shows is up to the person.
    policy.verified_notice = own.ui.verified;
    // The person's own command notifies this person.
    let approvals = super::compile_approval_policy(at, own)?;
    let expires_ms = approvals.expires_ms.min(policy.approvals.expires_ms);
    policy.approvals = approvals;
    policy.approvals.expires_ms = expires_ms;
    // The person's preset adds detectors; those of the repo stay.
    if let Some(preset) = own_preset {
        loops::add_detectors_of_person(&mut policy.loops, loops::loop_policy_of_preset(preset));
    }
    Ok(())
}

fn tighten_cap_in_place<T: Ord + Copy>(cap: &mut Option<T>, own: Option<T>) {
    if let Some(own) = own {
        *cap = Some(cap.map_or(own, |cap| cap.min(own)));
    }
}
