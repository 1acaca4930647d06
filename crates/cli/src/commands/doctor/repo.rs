//! Inspects what holds for the repo whatever the agent: config, store, and whether Checkrein is
//! off.

use std::path::Path;

use checkrein_core::policy::Policy;
use checkrein_execpolicy::RuleSet;
use checkrein_runtime::config::TaskDriverKind;
use checkrein_store::{SqliteStore, StoreError};

use super::agents::{InspectableAgent, PathShortener};
use super::finding::DoctorFinding;
use super::hooks::InstalledHook;
use crate::locate::{self, CONFIG, ProjectLocation, StateAndProfileArgs};
use crate::masked::{MASKED_CONSEQUENCE, checks_hiding_exit_status};
use crate::ui::explanations;
use crate::{off, policy_sources, trust};

/// The findings on the repo, and what the other inspections need of it.
pub(super) struct DoctorRepoInspection {
    pub(super) findings: Vec<DoctorFinding>,
    pub(super) policy: Option<Policy>,
    pub(super) store: Option<SqliteStore>,
}

pub(super) fn diagnose_repo_setup(
    located: &ProjectLocation,
    near: &PathShortener,
) -> DoctorRepoInspection {
    let mut findings = Vec::new();
    let place = located
        .repo_config
        .as_deref()
        .map(|file| near.short_path(file));
    let policy = match located.compile_policy_for_new_session(TaskDriverKind::Hook) {
        Ok(compiled) => {
            let warnings = compiled.warnings.iter().map(ToString::to_string);
            // A held config is reported below, with more to say.
            let warnings = warnings.filter(|warning| !warning.contains("checkrein seal"));
            findings.extend(warnings.map(|warning| {
                DoctorFinding::warning_finding("repo", "config", warning)
                    .with_finding_consequence("what it is about does nothing")
                    .with_fix(format!("mend that line of {CONFIG}, or take it out"))
            }));
            findings.push(required_checks_finding(&compiled.policy, place.clone()));
            findings.push(exec_rules_of_policy_finding(&compiled.policy, place));
            let masked = checks_hiding_exit_status(&located.place.root, &compiled.policy);
            findings.extend(masked.into_iter().map(|masked| {
                DoctorFinding::warning_finding("repo", "masked_status", masked.what)
                    .with_finding_consequence(MASKED_CONSEQUENCE)
                    .with_fix(masked.fix)
            }));
            Some(compiled.policy)
        }
        Err(error) => {
            findings.push(
                DoctorFinding::new_doctor_fault_finding("repo", "config_error", error.to_string())
                    .with_finding_place(place.unwrap_or_else(|| CONFIG.to_owned()))
                    .with_finding_consequence("new sessions go on with the policy that was sealed here last; where none was, only what reads goes on")
                    .with_fix("mend it, then: checkrein check"),
            );
            None
        }
    };
    // Opened for reading: a doctor that made a store would change what it inspects.
    let store = match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(store) => {
            findings.push(DoctorFinding::ok_finding(
                "repo",
                "store",
                "the store can be read",
            ));
            Some(store)
        }
        Err(StoreError::Missing { .. }) => {
            findings.push(DoctorFinding::ok_finding(
                "repo",
                "store",
                "nothing is recorded yet",
            ));
            None
        }
        Err(error) => {
            let check = match &error {
                StoreError::TooNew { .. } => "store_too_new",
                _ => "store",
            };
            let said = error.to_string();
            // The store's messages have the way out behind the semicolon.
            let (what, mend) = said
                .split_once("; ")
                .unwrap_or((&said, "upgrade checkrein"));
            findings.push(
                DoctorFinding::new_doctor_fault_finding("repo", check, what)
                    .with_finding_place(near.short_path(&located.place.state))
                    .with_finding_consequence(
                        "every hook answers by its stance, and nothing is recorded",
                    )
                    .with_fix(mend),
            );
            None
        }
    };
    // A held config shows by no effect of its own: the older one simply goes on.
    match located.nearest_config_held_despite_edit() {
        Ok(Some(held)) => findings.push(
            DoctorFinding::warning_finding(
                "repo",
                "held",
                format!("edited while a task was open: {}", held.paths.join(", ")),
            )
            .with_finding_consequence("new sessions go on with the policy from before the edit")
            .with_fix("checkrein seal"),
        ),
        Ok(None) => {}
        Err(error) => findings.push(
            DoctorFinding::new_doctor_fault_finding(
                "repo",
                "held",
                format!("held.json cannot be read: {error}"),
            )
            .with_finding_place(near.short_path(&located.place.state))
            .with_finding_consequence(
                "nothing new can be sealed: tools and stops are answered by stance",
            )
            .with_fix("checkrein seal"),
        ),
    }
    // A person may have forgotten that it is off, and every finding above would look fine.
    if let Some(off) = off::active_off_period(&located.place.state) {
        findings.push(
            DoctorFinding::new_doctor_fault_finding("repo", "off", off.off_summary_line())
                .with_finding_consequence("no call is judged and no stop is checked")
                .with_fix("checkrein on"),
        );
    }
    let large = located.place.files_too_large_to_read();
    if !large.is_empty() {
        findings.push(
            DoctorFinding::warning_finding(
                "repo",
                "large_files",
                format!(
                    "larger than 512 MiB: {}",
                    explanations::first_three_names(&large)
                ),
            )
            .with_finding_consequence("they are not read: they count by their size and times")
            .with_fix(
                "name them in an ignore file, or in the `outputs` of the check that writes them",
            ),
        );
    }
    DoctorRepoInspection {
        findings,
        policy,
        store,
    }
}

/// Whether any check is required.
pub(super) fn has_required_check(policy: &Policy) -> bool {
    let mut names = policy.verifiers.iter().map(|spec| &spec.name);
    names.any(|name| policy.is_required_verifier(name))
}

fn required_checks_finding(policy: &Policy, place: Option<String>) -> DoctorFinding {
    let required: Vec<&str> = policy
        .verifiers
        .iter()
        .filter(|spec| policy.is_required_verifier(&spec.name))
        .map(|spec| spec.name.as_str())
        .collect();
    let at = |finding: DoctorFinding| match &place {
        Some(place) => finding.with_finding_place(place.as_str()),
        None => finding,
    };
    if required.is_empty() {
        let what = match place {
            Some(_) => "no check is required",
            None => "there is no checkrein.toml",
        };
        return at(DoctorFinding::warning_finding("repo", "no_checks", what)
            .with_finding_consequence(
                "every ending is `unverified`: caps and loop detectors are all there is",
            )
            .with_fix("checkrein init, or checkrein doctor --audit for the lines"));
    }
    at(DoctorFinding::ok_finding(
        "repo",
        "checks",
        format!("required: {}", required.join(", ")),
    ))
}

/// Reports whether commands are judged before they run, and by what.
fn exec_rules_of_policy_finding(policy: &Policy, place: Option<String>) -> DoctorFinding {
    const CHECK: &str = "exec_policy";
    let rules = RuleSet::deserialize_rule_set(&policy.rules).unwrap_or_default();
    let finding = if rules.has_restricting_rules() || rules.asks_person_on_hazardous_commands() {
        DoctorFinding::ok_finding("repo", CHECK, "commands are judged before they run")
    } else {
        // The floor alone is worth a hint; only without it nothing at all is refused.
        let finding = match rules.forbids_destruction() {
            true => DoctorFinding::ok_finding(
                "repo",
                CHECK,
                "the exec policy `builtin:default` is not named",
            )
            .with_finding_consequence(
                "of all commands only those that destroy a home, a disk or the system are refused",
            ),
            false => {
                DoctorFinding::warning_finding("repo", CHECK, "the exec policy is switched off")
                    .with_finding_consequence("no command is refused or asked about before it runs")
            }
        };
        finding.with_fix(format!(
            "in {CONFIG}: [policy] rules = [\"builtin:default\"]"
        ))
    };
    match place {
        Some(place) => finding.with_finding_place(place),
        None => finding,
    }
}

/// Reports whether an entry with `--require-trust` finds an approval: nothing of the repo runs
/// until a person has approved it.
pub(super) fn trust_finding(
    agent: &InspectableAgent,
    installed: &[InstalledHook<'_>],
    here: &Path,
) -> Option<DoctorFinding> {
    let one = installed.iter().find(|one| one.entry.require_trust)?;
    // Located as that entry does it: its state folder may be another than ours.
    let located = locate::locate_project_for_hook(
        here,
        StateAndProfileArgs {
            state: one.entry.state.as_deref().map(Path::new),
            profile: None,
            require_trust: true,
        },
    )
    .ok()?;
    let now = policy_sources::policy_sources_on_disk(&located)
        .ok()?
        .repo?;
    if trust::approved_config_digest(&located) == Some(now.config_digest()) {
        return Some(DoctorFinding::ok_finding(
            agent.name,
            "trusted",
            "its config is approved as it is now",
        ));
    }
    Some(
        DoctorFinding::warning_finding(
            agent.name,
            "not_trusted",
            "nobody has approved this repo's config as it is now",
        )
        .with_finding_place(&one.place)
        .with_finding_consequence(
            "with --require-trust nothing of the repo runs: no check, no rule",
        )
        .with_fix("checkrein trust"),
    )
}
