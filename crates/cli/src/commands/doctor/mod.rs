//! `checkrein doctor`: checks whether the hooks are there, read, firing and holding, and says what
//! mends them. It inspects and tries, and changes nothing.

mod agents;
mod audit;
mod binary;
mod bounded_run;
mod canary;
mod codex;
mod deadlines;
mod finding;
mod hook_entry;
mod hooks;
mod json_location;
mod plugins;
mod protection_level;
mod repo;
mod report;
mod shell;
mod silent_hooks;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use checkrein_adapters as adapters;
use serde_json::json;

use checkrein_verifiers::private_file::create_private_temp_folder;

use crate::args::DoctorArgs;
use crate::ui::errors::CommandError;
use crate::{exit_code, locate, programs, signals, ui};
use agents::{InspectableAgent, PathShortener};
use finding::{DoctorFinding, DoctorFindingSeverity};
use repo::DoctorRepoInspection;

/// Version of the JSON document.
const SCHEMA: &str = "checkrein/doctor/1";

pub(crate) fn run_doctor_command(args: &DoctorArgs) -> Result<ExitCode, CommandError> {
    signals::install_signal_handlers();
    let agents: Vec<&InspectableAgent> = select_agents_to_inspect(args.agent.as_deref())?;
    let located = locate::locate_project(&std::env::current_dir()?, None);
    // The audit reads files only, so it needs none of what follows.
    if args.audit {
        audit::run_and_print_audit(&located, args.json)?;
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    let scratch = create_private_temp_folder()?;
    let near = PathShortener {
        root: located.place.root.clone(),
        top: located.top.clone(),
    };
    let repo = repo::diagnose_repo_setup(&located, &near);
    let mut findings = Vec::new();
    let mut hooked = false;
    for agent in agents {
        let looked = AgentInspectionContext {
            agent,
            repo: &repo,
            near: &near,
            scratch: scratch.path(),
        };
        hooked |= looked.collect_doctor_findings(&mut findings)?;
    }
    // The level is judged last, by all that was found before.
    let required = repo.policy.as_ref().is_some_and(repo::has_required_check);
    findings.extend(repo.findings);
    findings.extend(protection_level::protection_level_findings(
        &near,
        hooked,
        required,
        scratch.path(),
    ));
    if args.json {
        ui::print_json(&json!({ "schema": SCHEMA, "findings": findings }));
    } else {
        report::print_doctor_findings(&findings);
    }
    let worst = findings.iter().map(|finding| finding.status).max();
    Ok(exit_code::to_exit_code(
        if worst == Some(DoctorFindingSeverity::Fault) {
            exit_code::NO
        } else {
            exit_code::YES
        },
    ))
}

fn select_agents_to_inspect(
    name: Option<&str>,
) -> Result<Vec<&'static InspectableAgent>, CommandError> {
    let Some(name) = name else {
        return Ok(agents::ALL.iter().collect());
    };
    let found: Vec<&InspectableAgent> = agents::ALL
        .iter()
        .filter(|agent| agent.name == name)
        .collect();
    if found.is_empty() {
        let known: Vec<&str> = agents::ALL.iter().map(|agent| agent.name).collect();
        return Err(CommandError::usage_error(
            format!("no agent is named '{name}'"),
            format!("known: {}", known.join(", ")),
        ));
    }
    Ok(found)
}

/// The inspection of one agent.
struct AgentInspectionContext<'a> {
    agent: &'a InspectableAgent,
    repo: &'a DoctorRepoInspection,
    near: &'a PathShortener,
    scratch: &'a Path,
}

impl AgentInspectionContext<'_> {
    /// Collects all findings, in the order in which a person would mend them. Returns whether hooks
    /// of ours hold.
    fn collect_doctor_findings(
        &self,
        findings: &mut Vec<DoctorFinding>,
    ) -> Result<bool, CommandError> {
        let Self {
            agent,
            repo,
            near,
            scratch,
        } = *self;
        // A program inside the repo is not started: a clone could bring one of that name.
        let program = programs::find_program_outside_repo(agent.program, &near.top);
        findings.push(match &program {
            Some(program) => self.agent_version_finding(program),
            None => DoctorFinding::ok_finding(
                agent.name,
                "installed",
                format!("not installed: no `{}` on PATH", agent.program),
            ),
        });
        // First what the agent reads at all: faults in a file explain most of what is missing
        // below.
        let mut settings = agent.settings_files(&near.root);
        findings.extend(hooks::collect_settings_fault_findings(
            agent, &settings, near,
        ));
        let mut configs =
            (agent.name == "codex").then(|| codex::read_codex_configs(agent, &near.root, near));
        if let Some(configs) = &mut configs {
            findings.append(&mut configs.findings);
            settings.append(&mut configs.inline);
        }
        let plugins = plugins::gather_agent_plugin_findings(agent, &settings, near);
        let named = settings
            .iter()
            .any(agents::SettingsFile::settings_file_mentions_checkrein);
        // Nothing of this agent is here, so there is nothing to advise.
        if program.is_none() && !named && plugins.findings.is_empty() {
            return Ok(false);
        }
        let installed = hooks::active_checkrein_hooks(&settings, near);
        findings.extend(hooks::hook_entry_coverage_findings(
            agent,
            &installed,
            plugins.has_own_hooks,
        ));
        findings.extend(plugins.findings);
        findings.extend(hooks::compound_hook_command_findings(
            agent, &settings, near,
        ));
        findings.extend(binary::check_hook_programs(
            agent, &installed, &near.top, scratch,
        ));
        findings.extend(shell::check_hook_shells(
            agent, &installed, &near.top, scratch,
        ));
        // Times that were measured here say more than configured ones.
        let measured = repo.store.as_ref().map(deadlines::longest_check_times);
        findings.extend(deadlines::check_hook_deadlines(
            agent,
            &installed,
            repo.policy.as_ref(),
            &measured.unwrap_or_default(),
        ));
        let mut agreed = canary::HooksTrustedByPerson::default();
        if let Some(configs) = &configs {
            let trusted =
                codex::check_codex_hook_trust(agent, configs, &installed, near, &mut agreed);
            findings.extend(trusted);
        }
        findings.extend(repo::trust_finding(agent, &installed, &near.root));
        if !installed.is_empty() || plugins.has_own_hooks {
            findings.extend(silent_hooks::check_silent_hooks(
                agent,
                &near.root,
                repo.store.as_ref(),
            ));
            findings.extend(self.unapplied_round_cap_finding());
        }
        // Hooks that come with a clone name programs that nobody chose.
        let foreign = |one: &hooks::InstalledHook<'_>| {
            let named = &one.entry.program;
            matches!(
                hook_entry::HookProgram::classify_hook_program(
                    named,
                    one.settings.scope,
                    &near.top
                ),
                hook_entry::HookProgram::Foreign(_)
            )
        };
        let all_foreign = !installed.is_empty() && installed.iter().all(foreign);
        // The canary comes last, and only where nothing above makes its result certain.
        if agreed.skips_all_hooks {
            findings.push(canary::canary_skipped_finding(
                agent.name,
                "the hooks are skipped",
            ));
        } else if all_foreign {
            let why = "what the hooks start is not ours to start";
            findings.push(canary::canary_skipped_finding(agent.name, why));
        } else if let Some(program) = program.filter(|_| named) {
            ui::print_wrapped_to_stderr(&format!(
                "checkrein: {}",
                canary::canary_run_announcement(agent.program)
            ));
            findings.extend(canary::run_hook_canary_for_findings(
                agent.name, &program, &settings, &agreed, &near.top,
            )?);
        }
        let faults = findings.iter().any(|finding| {
            finding.about == agent.name && finding.status == DoctorFindingSeverity::Fault
        });
        Ok(!faults && !all_foreign && (!installed.is_empty() || plugins.has_own_hooks))
    }

    fn agent_version_finding(&self, program: &Path) -> DoctorFinding {
        let InspectableAgent { name, tested, .. } = self.agent;
        let mut asked = Command::new(program);
        asked.arg("--version");
        // The program may want to write into a home folder.
        asked.env("HOME", self.scratch);
        let said =
            bounded_run::run_command_with_timeout(asked, Duration::from_secs(20), self.scratch)
                .ok()
                .filter(|ran| ran.status == Some(0))
                .map(|ran| ran.stdout_text())
                .unwrap_or_default();
        // Agents print their version beside other words.
        let version = said
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        match version {
            Some(version) if version == *tested => DoctorFinding::ok_finding(
                name,
                "installed",
                format!("version {version}, with which this build was tried"),
            ),
            Some(version) => DoctorFinding::ok_finding(
                name,
                "installed",
                format!("version {version}; this build was tried with {tested}"),
            ),
            None => DoctorFinding::warning_finding(name, "installed", "its version cannot be told")
                .with_finding_place(program.display().to_string())
                .with_finding_consequence("it may not start at all")
                .with_fix(format!("run {} --version", program.display())),
        }
    }

    /// Reports a cap that the config asks for and this agent cannot give.
    fn unapplied_round_cap_finding(&self) -> Option<DoctorFinding> {
        let shows = adapters::find_adapter(self.agent.name)?
            .agent_capabilities()
            .rounds;
        let wanted = self.repo.policy.as_ref()?.caps.max_iterations?;
        (!shows).then(|| {
            DoctorFinding::ok_finding(
                self.agent.name,
                "rounds",
                format!(
                    "max_iterations = {wanted} is not applied: {} shows no rounds; tool_calls and tokens are",
                    self.agent.label
                ),
            )
        })
    }
}
