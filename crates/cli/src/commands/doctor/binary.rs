//! Checks the programs that our entries name: they exist, are this program, and are found where the
//! agent looks.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::agents::{InspectableAgent, SettingsScope};
use super::bounded_run;
use super::finding::{DoctorFinding, DoctorFindingSeverity};
use super::hook_entry::{HookProgram, is_current_executable};
use super::hooks::{InstalledHook, reinstall_hooks_command};

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn check_hook_programs(
    agent: &InspectableAgent,
    installed: &[InstalledHook<'_>],
    root: &Path,
    scratch: &Path,
) -> Vec<DoctorFinding> {
    // One finding for each program and not for each entry; a program counts for the person's
    // settings and for the repo's separately.
    let mut programs: BTreeMap<(&str, bool), Vec<&InstalledHook<'_>>> = BTreeMap::new();
    for one in installed {
        let own = one.settings.scope == SettingsScope::User;
        let named = (one.entry.program.as_str(), own);
        programs.entry(named).or_default().push(one);
    }
    programs
        .into_values()
        .filter_map(|entries| check_hook_program(agent, &entries, root, scratch))
        .collect()
}

fn check_hook_program(
    agent: &InspectableAgent,
    entries: &[&InstalledHook<'_>],
    root: &Path,
    scratch: &Path,
) -> Option<DoctorFinding> {
    let first = entries.first()?;
    let program = first.entry.program.as_str();
    let again = reinstall_hooks_command(agent, first.settings.scope);
    let finding = match HookProgram::classify_hook_program(program, first.settings.scope, root) {
        HookProgram::Missing => missing_hook_program_finding(agent, entries, program, again),
        HookProgram::Foreign(found) => DoctorFinding::warning_finding(
            agent.name,
            "hook_binary_foreign",
            format!(
                "the entries start {}, which is not this program: not started",
                found.display()
            ),
        )
        .with_finding_consequence(
            "they come with the repo, and what they start is not known to be checkrein",
        )
        .with_fix(again),
        HookProgram::Checkrein(found) if is_current_executable(&found) => {
            DoctorFinding::ok_finding(
                agent.name,
                "binary",
                format!("the entries start this very program ({program})"),
            )
        }
        HookProgram::Checkrein(found) | HookProgram::PersonChosen(found) => {
            other_checkrein_copy_finding(agent, &found, again, scratch)
        }
    };
    // An `ok` is about all entries and names none of them.
    Some(match finding.status {
        DoctorFindingSeverity::Ok => finding,
        DoctorFindingSeverity::Warning | DoctorFindingSeverity::Fault => {
            finding.with_finding_place(&first.place)
        }
    })
}

fn missing_hook_program_finding(
    agent: &InspectableAgent,
    entries: &[&InstalledHook<'_>],
    program: &str,
    again: String,
) -> DoctorFinding {
    let blocks = entries.iter().any(|one| one.hook.blocks_on_failure);
    let so = if blocks {
        "the agent refuses every tool call, and lets every stop through unchecked"
    } else {
        "the agent goes on as if there were no hook: nothing is gated, nothing is checked"
    };
    // The advice differs: a bare name is looked up on PATH, a path is not.
    let bare = !program.contains(['/', '\\']);
    let what = if bare {
        format!("'{program}' is not on the PATH")
    } else {
        format!("{program} is not there, or is no program")
    };
    let mend = match std::env::current_exe() {
        Ok(me) if bare => format!(
            "ln -s '{}' into a folder of that PATH, or: {again}",
            me.display(),
        ),
        _ => again,
    };
    DoctorFinding::new_doctor_fault_finding(agent.name, "hook_binary_missing", what)
        .with_finding_consequence(so)
        .with_fix(mend)
}

/// Compares another copy that the person chose with this one.
fn other_checkrein_copy_finding(
    agent: &InspectableAgent,
    found: &Path,
    again: String,
    scratch: &Path,
) -> DoctorFinding {
    let mut asked = Command::new(found);
    asked.arg("--version");
    // A program that hangs or prints without end must not keep doctor.
    let said = bounded_run::run_command_with_timeout(asked, VERSION_TIMEOUT, scratch)
        .ok()
        .filter(|ran| ran.status == Some(0))
        .map(|ran| ran.stdout_text());
    let own = format!("checkrein {}", env!("CARGO_PKG_VERSION"));
    match said {
        Some(said) if said == own => DoctorFinding::ok_finding(
            agent.name,
            "binary",
            format!(
                "the entries start another copy of this version ({})",
                found.display()
            ),
        ),
        Some(said) => {
            let said = bounded_run::short_first_line(&said);
            DoctorFinding::warning_finding(
                agent.name,
                "binary_other_version",
                format!("the entries start {said}; this is {own}"),
            )
            .with_finding_consequence("what you see here may not be what the agent gets")
            .with_fix(again)
        }
        None => DoctorFinding::new_doctor_fault_finding(
            agent.name,
            "hook_binary_broken",
            format!("{} does not answer to --version", found.display()),
        )
        .with_finding_consequence("the hook fails at every event")
        .with_fix(again),
    }
}
