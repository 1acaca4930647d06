//! What Checkrein itself brings: the policy that a session beginning here is sealed with, if
//! anything hands it the agent's stops.

use checkrein_core::policy::{self, Policy};
use checkrein_execpolicy::RuleSet;

use super::{AuditedAgentSetupKind, DoctorAuditReport, StopCriterionTier};
use crate::locate::{CONFIG, ProjectLocation};

pub(super) fn audit_stop_criteria_of_policy(
    located: &ProjectLocation,
    policy: &Policy,
    found: &mut DoctorAuditReport,
) {
    if located.repo_config.is_some() {
        found.record_agent_setup_found(AuditedAgentSetupKind::Checkrein, CONFIG);
    }
    // A person's own program is started by `checkrein run`, which needs no line in any file.
    let program = [
        AuditedAgentSetupKind::BareLoop,
        AuditedAgentSetupKind::CapsOnly,
        AuditedAgentSetupKind::LangGraph,
    ]
    .iter()
    .any(|kind| found.agent_setups_of_kind(kind).next().is_some());
    // A check counts only if something hands stops to it: hooks, or a run.
    let run = found.has_run_script || (program && located.repo_config.is_some());
    let applies = found.has_own_hooks || run;
    let under = if found.has_own_hooks {
        ""
    } else {
        ", under checkrein run"
    };
    let place = if located.repo_config.is_some() {
        CONFIG
    } else {
        "built-in defaults"
    };
    for spec in &policy.verifiers {
        let name = spec.name.as_str();
        match (policy.is_required_verifier(&spec.name), applies) {
            (true, true) if spec.tier == policy::VerifierTier::Person => {
                found.record_satisfied_stop_criterion(
                    StopCriterionTier::Human,
                    format!("a person looks: '{name}'{under}"),
                    place,
                );
            }
            (true, true) => found.record_satisfied_stop_criterion(
                StopCriterionTier::Hard,
                format!("check '{name}'{under}"),
                place,
            ),
            (true, false) => found.add_near_miss_stop_criterion(
                StopCriterionTier::Hard,
                format!("check '{name}': no hook hands stops to it"),
                place,
            ),
            (false, _) => found.add_near_miss_stop_criterion(
                StopCriterionTier::Hard,
                format!("'{name}' is advisory"),
                place,
            ),
        }
    }
    if !applies {
        return;
    }
    if found.has_own_hooks {
        found.record_satisfied_stop_criterion(
            StopCriterionTier::Soft,
            "caps on tokens, time, calls, rounds",
            place,
        );
        let detectors = policy.loops.detectors.len();
        if detectors > 0 {
            found.record_satisfied_stop_criterion(
                StopCriterionTier::Soft,
                format!("{detectors} loop detectors"),
                place,
            );
        }
        // Only hooks show us commands before they run.
        if RuleSet::deserialize_rule_set(&policy.rules)
            .is_ok_and(|rules| rules.has_prompting_rule())
        {
            found.record_satisfied_stop_criterion(
                StopCriterionTier::Human,
                "rules that prompt",
                place,
            );
        }
    } else {
        found.record_satisfied_stop_criterion(
            StopCriterionTier::Soft,
            format!("caps on attempts and time{under}"),
            place,
        );
    }
    // With an agent set up besides, its own settings fill the lazy tier.
    if located.repo_config.is_some() && found.setups.len() == 1 {
        found.record_satisfied_stop_criterion(
            StopCriterionTier::Lazy,
            "the agent's own end, asked last",
            place,
        );
    }
}
