//! Compares times: how long the agent waits for a hook, how long its entry believes it waits, and
//! how long this repo's checks take. After its timeout a Stop hook of both agents fails open.

use std::collections::BTreeMap;

use checkrein_adapters::{self as adapters};
use checkrein_core::event::Event;
use checkrein_core::ids::VerifierName;
use checkrein_core::input::Input;
use checkrein_core::policy::Policy;
use checkrein_store::{SqliteStore, Store as _};

use super::agents::InspectableAgent;
use super::finding::DoctorFinding;
use super::hooks::{InstalledHook, reinstall_hooks_command};
use crate::commands::lookup;
use crate::ui::style::format_duration;

/// Newest tasks whose checks are measured.
const MAX_TASKS: usize = 30;
/// Time kept free for our own answer, in milliseconds.
const MARGIN_MS: u64 = 5_000;

/// Returns the longest time that each check of this repo took, in milliseconds.
pub(super) fn longest_check_times(store: &SqliteStore) -> BTreeMap<VerifierName, u64> {
    let mut longest = BTreeMap::new();
    for row in store
        .newest_task_summaries(None, MAX_TASKS)
        .unwrap_or_default()
    {
        let events = lookup::task_events(store, &row.session, row.task).unwrap_or_default();
        for (_, event) in events {
            if let Event::Input(stamped) = event
                && let Input::EvidenceArrived(arrived) = stamped.input
                // A verdict that was taken from the cache took no time of its own.
                && !arrived.evidence.cached
            {
                let known = longest.entry(arrived.evidence.verifier).or_insert(0);
                *known = (*known).max(arrived.evidence.duration_ms);
            }
        }
    }
    longest
}

pub(super) fn check_hook_deadlines(
    agent: &InspectableAgent,
    installed: &[InstalledHook<'_>],
    policy: Option<&Policy>,
    measured: &BTreeMap<VerifierName, u64>,
) -> Vec<DoctorFinding> {
    let mut findings: Vec<DoctorFinding> = installed
        .iter()
        .filter_map(|one| compare_hook_timeout_to_deadline(agent, one))
        .collect();
    let stops = installed.iter().filter(|one| one.hook.event == "Stop");
    for stop in stops {
        findings.extend(
            policy.and_then(|policy| compare_stop_timeout_to_checks(agent, stop, policy, measured)),
        );
    }
    if findings.is_empty() && !installed.is_empty() {
        findings.push(DoctorFinding::ok_finding(
            agent.name,
            "deadline",
            "every timeout is what its entry believes, and longer than the checks",
        ));
    }
    findings
}

/// Compares what the agent waits with what the entry was told.
fn compare_hook_timeout_to_deadline(
    agent: &InspectableAgent,
    one: &InstalledHook<'_>,
) -> Option<DoctorFinding> {
    let adapter = adapters::find_adapter(agent.name)?;
    let event = one.hook.event.as_str();
    let deadlines = adapter.agent_capabilities().deadlines;
    let assumed = match event {
        "Stop" | "SubagentStop" => deadlines.stop,
        "PreToolUse" => deadlines.tool,
        "UserPromptSubmit" => deadlines.prompt,
        "SessionEnd" => deadlines.session_end,
        _ => deadlines.other,
    };
    let believed = one.entry.deadline.unwrap_or(u64::from(assumed));
    let timeout = one.hook.timeout;
    // Too short a belief only wastes time, and where nothing is decided time does not matter.
    if believed <= timeout || !matches!(event, "Stop" | "SubagentStop" | "PreToolUse") {
        return None;
    }
    let open = if one.hook.blocks_on_failure {
        "the call is then refused without a reason"
    } else {
        "the agent then goes on as if the answer were yes"
    };
    let told = match one.entry.deadline {
        Some(_) => format!("--deadline {believed}"),
        None => format!("no --deadline, so {believed} s are assumed"),
    };
    Some(
        DoctorFinding::new_doctor_fault_finding(
            agent.name,
            "deadline_mismatch",
            format!("{event}: the agent waits {timeout} s; the entry says {told}"),
        )
        .with_finding_place(&one.place)
        .with_finding_consequence(format!("an answer may come too late; {open}"))
        .with_fix(format!(
            "write --deadline {timeout}, or: {}",
            reinstall_hooks_command(agent, one.settings.scope)
        )),
    )
}

/// Compares what the agent waits at a stop with what the longest required check takes.
fn compare_stop_timeout_to_checks(
    agent: &InspectableAgent,
    stop: &InstalledHook<'_>,
    policy: &Policy,
    measured: &BTreeMap<VerifierName, u64>,
) -> Option<DoctorFinding> {
    let required = policy
        .verifiers
        .iter()
        .filter(|spec| policy.is_required_verifier(&spec.name));
    let (name, ms, seen) = required
        .map(|spec| {
            // Each retry may take as long as the first try, within the same stop.
            let times = u64::from(spec.retries) + 1;
            // A measured time says more than the configured timeout, which is mostly far above it.
            match measured.get(&spec.name) {
                Some(ms) => (spec.name.as_str(), ms.saturating_mul(times), true),
                None => (
                    spec.name.as_str(),
                    spec.timeout_ms.saturating_mul(times),
                    false,
                ),
            }
        })
        .max_by_key(|(_, ms, _)| *ms)?;
    let timeout_ms = stop.hook.timeout.saturating_mul(1_000);
    if ms.saturating_add(MARGIN_MS) <= timeout_ms {
        return None;
    }
    // A minute for everything beside the check; no agent is made to wait longer than an hour.
    let wanted = ms.div_ceil(1_000).saturating_add(60).min(3_600);
    let what = format!(
        "the agent waits {} s at a stop; check '{name}' {} {}",
        stop.hook.timeout,
        if seen { "took" } else { "may take" },
        format_duration(ms),
    );
    // What was only configured may never happen, so it is a warning.
    let finding = if seen {
        DoctorFinding::new_doctor_fault_finding(agent.name, "timeout_too_short", what)
    } else {
        DoctorFinding::warning_finding(agent.name, "timeout_too_short", what)
    };
    Some(
        finding
            .with_finding_place(&stop.place)
            .with_finding_consequence(
                "it is cut before it can tell, and a hook out of time lets the stop through",
            )
            .with_fix(format!(
                "write \"timeout\": {wanted} and --deadline {wanted}, or: {}",
                reinstall_hooks_command(agent, stop.settings.scope)
            )),
    )
}
