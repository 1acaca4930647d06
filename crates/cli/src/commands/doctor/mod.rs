//! `checkrein doctor`: are the hooks there, read, firing and holding, and if not, what mends it.
//! It looks and tries, and changes nothing.

mod audit;
mod binary;
mod bounded;
mod codex;
mod deadlines;
mod entry;
mod finding;
mod firing;
mod hooks;
mod level;
mod lines_of;
mod places;
mod plugins;
mod repo;
mod shell;
mod show;
mod silence;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use checkrein_adapters as adapters;
use serde_json::json;

use checkrein_verifiers::private_file::create_private_temp_folder;

use crate::args::Doctor;
use crate::ui::errors::CommandError;
use crate::{exit_code, locate, programs, signals, ui};
use finding::{Finding, Status};
use places::{Agent, Near};
use repo::Repo;

/// Version of the JSON document.
const SCHEMA: &str = "checkrein/doctor/1";

pub(crate) fn run(args: &Doctor) -> Result<ExitCode, CommandError> {
    signals::listen();
    let agents: Vec<&Agent> = chosen(args.agent.as_deref())?;
    let located = locate::locate(&std::env::current_dir()?, None);
    if args.audit {
        audit::run(&located, args.json)?;
        return Ok(exit_code::exit(exit_code::YES));
    }
    let scratch = create_private_temp_folder()?;
    let near = Near {
        root: located.place.root.clone(),
        top: located.top.clone(),
    };
    let repo = repo::look(&located, &near);
    let mut findings = Vec::new();
    let mut hooked = false;
    for agent in agents {
        let looked = Look {
            agent,
            repo: &repo,
            near: &near,
            scratch: scratch.path(),
        };
        hooked |= looked.all(&mut findings)?;
    }
    let required = repo.policy.as_ref().is_some_and(repo::requires);
    findings.extend(repo.findings);
    findings.extend(level::look(&near, hooked, required, scratch.path()));
    if args.json {
        ui::json(&json!({ "schema": SCHEMA, "findings": findings }));
    } else {
        show::print(&findings);
    }
    let worst = findings.iter().map(|finding| finding.status).max();
    Ok(exit_code::exit(if worst == Some(Status::Fault) {
        exit_code::NO
    } else {
        exit_code::YES
    }))
}

fn chosen(name: Option<&str>) -> Result<Vec<&'static Agent>, CommandError> {
    let Some(name) = name else {
        return Ok(places::ALL.iter().collect());
    };
    let found: Vec<&Agent> = places::ALL
        .iter()
        .filter(|agent| agent.name == name)
        .collect();
    if found.is_empty() {
        let known: Vec<&str> = places::ALL.iter().map(|agent| agent.name).collect();
        return Err(CommandError::usage(
            format!("no agent is named '{name}'"),
            format!("known: {}", known.join(", ")),
        ));
    }
    Ok(found)
}

/// A look at one agent.
struct Look<'a> {
    agent: &'a Agent,
    repo: &'a Repo,
    near: &'a Near,
    scratch: &'a Path,
}

impl Look<'_> {
    /// Everything, in the order in which a person would mend it. True: hooks of ours hold.
    fn all(&self, findings: &mut Vec<Finding>) -> Result<bool, CommandError> {
        let Self {
            agent,
            repo,
            near,
            scratch,
        } = *self;
        let program = programs::outside(agent.program, &near.top);
        findings.push(match &program {
            Some(program) => self.version(program),
            None => Finding::ok(
                agent.name,
                "installed",
                format!("not installed: no `{}` on PATH", agent.program),
            ),
        });
        let mut settings = agent.settings(&near.root);
        findings.extend(hooks::readable(agent, &settings, near));
        let mut configs = (agent.name == "codex").then(|| codex::read(agent, &near.root, near));
        if let Some(configs) = &mut configs {
            findings.append(&mut configs.findings);
            settings.append(&mut configs.inline);
        }
        let plugins = plugins::look(agent, &settings, near);
        let named = settings.iter().any(places::Settings::names_us);
        if program.is_none() && !named && plugins.findings.is_empty() {
            return Ok(false);
        }
        let installed = hooks::installed(&settings, near);
        findings.extend(hooks::covered(agent, &installed, plugins.ours));
        findings.extend(plugins.findings);
        findings.extend(hooks::mixed(agent, &settings, near));
        findings.extend(binary::look(agent, &installed, &near.top, scratch));
        findings.extend(shell::look(agent, &installed, &near.top, scratch));
        let measured = repo.store.as_ref().map(deadlines::measured);
        findings.extend(deadlines::look(
            agent,
            &installed,
            repo.policy.as_ref(),
            &measured.unwrap_or_default(),
        ));
        let mut agreed = firing::Agreed::default();
        if let Some(configs) = &configs {
            let trusted = codex::trusted(agent, configs, &installed, near, &mut agreed);
            findings.extend(trusted);
        }
        findings.extend(repo::trusted(agent, &installed, &near.root));
        if !installed.is_empty() || plugins.ours {
            findings.extend(silence::look(agent, &near.root, repo.store.as_ref()));
            findings.extend(self.rounds());
        }
        let foreign = |one: &hooks::Installed<'_>| {
            let named = &one.entry.program;
            matches!(
                entry::Program::of(named, one.settings.scope, &near.top),
                entry::Program::Foreign(_)
            )
        };
        let all_foreign = !installed.is_empty() && installed.iter().all(foreign);
        if agreed.to_none {
            findings.push(firing::not_played(agent.name, "the hooks are skipped"));
        } else if all_foreign {
            let why = "what the hooks start is not ours to start";
            findings.push(firing::not_played(agent.name, why));
        } else if let Some(program) = program.filter(|_| named) {
            ui::say(&format!(
                "checkrein: {}",
                firing::announcement(agent.program)
            ));
            findings.extend(firing::findings(
                agent.name, &program, &settings, &agreed, &near.top,
            )?);
        }
        let faults = findings
            .iter()
            .any(|finding| finding.about == agent.name && finding.status == Status::Fault);
        Ok(!faults && !all_foreign && (!installed.is_empty() || plugins.ours))
    }

    fn version(&self, program: &Path) -> Finding {
        let Agent { name, tested, .. } = self.agent;
        let mut asked = Command::new(program);
        asked.arg("--version");
        // It may want to write into a home folder.
        asked.env("HOME", self.scratch);
        let said = bounded::run(asked, Duration::from_secs(20), self.scratch)
            .ok()
            .filter(|ran| ran.status == Some(0))
            .map(|ran| ran.said())
            .unwrap_or_default();
        let version = said
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        match version {
            Some(version) if version == *tested => Finding::ok(
                name,
                "installed",
                format!("version {version}, with which this build was tried"),
            ),
            Some(version) => Finding::ok(
                name,
                "installed",
                format!("version {version}; this build was tried with {tested}"),
            ),
            None => Finding::warning(name, "installed", "its version cannot be told")
                .at(program.display().to_string())
                .so("it may not start at all")
                .mend(format!("run {} --version", program.display())),
        }
    }

    /// What the config asks for and this agent cannot give.
    fn rounds(&self) -> Option<Finding> {
        let shows = adapters::find_adapter(self.agent.name)?
            .agent_capabilities()
            .rounds;
        let wanted = self.repo.policy.as_ref()?.caps.max_iterations?;
        (!shows).then(|| {
            Finding::ok(
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
