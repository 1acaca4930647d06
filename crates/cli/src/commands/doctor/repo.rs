//! What is true of the repo whatever the agent: config, store, switched off.

use std::path::Path;

use checkrein_core::policy::Policy;
use checkrein_execpolicy::RuleSet;
use checkrein_runtime::config::TaskDriver;
use checkrein_store::{SqliteStore, StoreError};

use super::finding::Finding;
use super::hooks::Installed;
use super::places::{Agent, Near};
use crate::locate::{self, CONFIG, Given, Located};
use crate::masked::{SO, masked_checks};
use crate::ui::words;
use crate::{off, sources, trust};

/// What else is looked at by.
pub(super) struct Repo {
    pub(super) findings: Vec<Finding>,
    pub(super) policy: Option<Policy>,
    pub(super) store: Option<SqliteStore>,
}

pub(super) fn look(located: &Located, near: &Near) -> Repo {
    let mut findings = Vec::new();
    let place = located.repo.as_deref().map(|file| near.short(file));
    let policy = match located.compile(TaskDriver::Hook) {
        Ok(compiled) => {
            let warnings = compiled.warnings.iter().map(ToString::to_string);
            // What is held is told below, with more.
            let warnings = warnings.filter(|warning| !warning.contains("checkrein seal"));
            findings.extend(warnings.map(|warning| {
                Finding::warning("repo", "config", warning)
                    .so("what it is about does nothing")
                    .mend(format!("mend that line of {CONFIG}, or take it out"))
            }));
            findings.push(of_policy(&compiled.policy, place.clone()));
            findings.push(exec_policy(&compiled.policy, place));
            let masked = masked_checks(&located.place.root, &compiled.policy);
            findings.extend(masked.into_iter().map(|masked| {
                Finding::warning("repo", "masked_status", masked.what)
                    .so(SO)
                    .mend(masked.fix)
            }));
            Some(compiled.policy)
        }
        Err(error) => {
            findings.push(
                Finding::fault("repo", "config_error", error.to_string())
                    .at(place.unwrap_or_else(|| CONFIG.to_owned()))
                    .so("new sessions go on with the policy that was sealed here last; where none was, only what reads goes on")
                    .mend("mend it, then: checkrein check"),
            );
            None
        }
    };
    let store = match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(store) => {
            findings.push(Finding::ok("repo", "store", "the store can be read"));
            Some(store)
        }
        Err(StoreError::Missing { .. }) => {
            findings.push(Finding::ok("repo", "store", "nothing is recorded yet"));
            None
        }
        Err(error) => {
            let check = match &error {
                StoreError::TooNew { .. } => "store_too_new",
                _ => "store",
            };
            let said = error.to_string();
            let (what, mend) = said
                .split_once("; ")
                .unwrap_or((&said, "upgrade checkrein"));
            findings.push(
                Finding::fault("repo", check, what)
                    .at(near.short(&located.place.state))
                    .so("every hook answers by its stance, and nothing is recorded")
                    .mend(mend),
            );
            None
        }
    };
    match located.held_nearest() {
        Ok(Some(held)) => findings.push(
            Finding::warning(
                "repo",
                "held",
                format!("edited while a task was open: {}", held.paths.join(", ")),
            )
            .so("new sessions go on with the policy from before the edit")
            .mend("checkrein seal"),
        ),
        Ok(None) => {}
        Err(error) => findings.push(
            Finding::fault("repo", "held", format!("held.json cannot be read: {error}"))
                .at(near.short(&located.place.state))
                .so("nothing new can be sealed: tools and stops are answered by stance")
                .mend("checkrein seal"),
        ),
    }
    if let Some(off) = off::in_force(&located.place.state) {
        findings.push(
            Finding::fault("repo", "off", off.words())
                .so("no call is judged and no stop is checked")
                .mend("checkrein on"),
        );
    }
    let large = located.place.files_too_large_to_read();
    if !large.is_empty() {
        findings.push(
            Finding::warning(
                "repo",
                "large_files",
                format!("larger than 512 MiB: {}", words::first_three(&large)),
            )
            .so("they are not read: they count by their size and times")
            .mend("name them in an ignore file, or in the `outputs` of the check that writes them"),
        );
    }
    Repo {
        findings,
        policy,
        store,
    }
}

/// Whether any check is.
pub(super) fn requires(policy: &Policy) -> bool {
    let mut names = policy.verifiers.iter().map(|spec| &spec.name);
    names.any(|name| policy.is_required_verifier(name))
}

fn of_policy(policy: &Policy, place: Option<String>) -> Finding {
    let required: Vec<&str> = policy
        .verifiers
        .iter()
        .filter(|spec| policy.is_required_verifier(&spec.name))
        .map(|spec| spec.name.as_str())
        .collect();
    let at = |finding: Finding| match &place {
        Some(place) => finding.at(place.as_str()),
        None => finding,
    };
    if required.is_empty() {
        let what = match place {
            Some(_) => "no check is required",
            None => "there is no checkrein.toml",
        };
        return at(Finding::warning("repo", "no_checks", what)
            .so("every ending is `unverified`: caps and loop detectors are all there is")
            .mend("checkrein init, or checkrein doctor --audit for the lines"));
    }
    at(Finding::ok(
        "repo",
        "checks",
        format!("required: {}", required.join(", ")),
    ))
}

/// Whether commands are judged before they run, and by what.
fn exec_policy(policy: &Policy, place: Option<String>) -> Finding {
    const CHECK: &str = "exec_policy";
    let rules = RuleSet::deserialize_rule_set(&policy.rules).unwrap_or_default();
    let finding =
        if rules.has_restricting_rules() || rules.asks_person_on_hazardous_commands() {
            Finding::ok("repo", CHECK, "commands are judged before they run")
        } else {
            let finding = match rules.forbids_destruction() {
            true => Finding::ok("repo", CHECK, "the exec policy `builtin:default` is not named").so(
                "of all commands only those that destroy a home, a disk or the system are refused",
            ),
            false => Finding::warning("repo", CHECK, "the exec policy is switched off")
                .so("no command is refused or asked about before it runs"),
        };
            finding.mend(format!(
                "in {CONFIG}: [policy] rules = [\"builtin:default\"]"
            ))
        };
    match place {
        Some(place) => finding.at(place),
        None => finding,
    }
}

/// Under `--require-trust` nothing of the repo runs until a person has approved it.
pub(super) fn trusted(agent: &Agent, installed: &[Installed<'_>], here: &Path) -> Option<Finding> {
    let one = installed.iter().find(|one| one.entry.require_trust)?;
    let located = locate::locate_given(
        here,
        Given {
            state: one.entry.state.as_deref().map(Path::new),
            profile: None,
            require_trust: true,
        },
    )
    .ok()?;
    let now = sources::now(&located).ok()?.repo?;
    if trust::approved(&located) == Some(now.config_digest()) {
        return Some(Finding::ok(
            agent.name,
            "trusted",
            "its config is approved as it is now",
        ));
    }
    Some(
        Finding::warning(
            agent.name,
            "not_trusted",
            "nobody has approved this repo's config as it is now",
        )
        .at(&one.place)
        .so("with --require-trust nothing of the repo runs: no check, no rule")
        .mend("checkrein trust"),
    )
}
