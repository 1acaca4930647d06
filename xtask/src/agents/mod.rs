//! Implements `cargo xtask agents [AGENT] [--case NAME] [--keep]`. It runs the real Claude Code and
//! the real Codex, headless and in their terminal UIs, with checkrein's hooks and a scripted model
//! on loopback. Each scenario prints a table; any FAIL makes the exit status 1.
//! `docs/agents-probe.md` lists the scenarios and what they need.

mod agent;
mod cases;
mod claude_code;
mod codex;
mod programs;
mod report;
mod screen;
mod world;

use std::path::Path;
use std::process::ExitCode;

use agent::TestedAgent;
use cases::AgentProbeCase;
use programs::ProbePrograms;
use report::ProbeCaseCheckCounts;
use world::ProbeCaseEnvironment;

/// The parsed arguments.
struct AgentProbeOptions {
    agent: Option<String>,
    case: Option<String>,
    keep: bool,
}

pub(crate) fn run_agent_cases(arguments: &[String]) -> Result<ExitCode, String> {
    let wanted = parse_agent_probe_options(arguments)?;
    // The process id keeps simultaneous runs apart.
    let folder = programs::agent_program_cache_folder()?
        .join("runs")
        .join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let result = run_agent_probe_cases(&wanted, &folder);
    if wanted.keep {
        println!("kept: {}", folder.display());
    } else {
        // A process of an agent that is still ending may write into the folder. A leftover folder
        // is no reason to fail.
        let _ = std::fs::remove_dir_all(&folder);
    }
    result
}

fn parse_agent_probe_options(arguments: &[String]) -> Result<AgentProbeOptions, String> {
    let mut wanted = AgentProbeOptions {
        agent: None,
        case: None,
        keep: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--keep" => wanted.keep = true,
            "--case" => wanted.case = words.next().cloned(),
            name if agent::AGENTS.iter().any(|agent| agent.agent_name() == name) => {
                wanted.agent = Some(name.to_owned())
            }
            other => {
                return Err(format!(
                    "'{other}' is not known; [claude-code|codex] [--case NAME] [--keep]"
                ));
            }
        }
    }
    // A misspelt name would select nothing, and only be noticed after checkrein was built and an
    // agent was downloaded.
    if let Some(case) = &wanted.case
        && !cases::CASES.iter().any(|known| known.name == case)
    {
        let known: Vec<&str> = cases::CASES.iter().map(|case| case.name).collect();
        return Err(format!(
            "no case is named '{case}'; known: {}",
            known.join(", ")
        ));
    }
    Ok(wanted)
}

fn run_agent_probe_cases(wanted: &AgentProbeOptions, folder: &Path) -> Result<ExitCode, String> {
    let programs = ProbePrograms::gather_probe_programs(folder)?;
    let (mut checked, mut failed) = (0, 0);
    for agent in agent::AGENTS.iter().filter(|agent| {
        wanted
            .agent
            .as_ref()
            .is_none_or(|name| name == agent.agent_name())
    }) {
        // Only a chosen agent is downloaded: both packages together have 770 MB.
        let program = programs::find_or_download_agent_program(&agent.agent_package())?;
        for case in cases::CASES {
            let chosen = wanted.case.as_ref().is_none_or(|name| name == case.name);
            if chosen && case.agents.contains(&agent.agent_name()) {
                let stage = ProbeCaseEnvironment {
                    agent: *agent,
                    program: program.clone(),
                    programs: &programs,
                    folder: folder.join(format!("{}-{}", agent.agent_name(), case.name)),
                };
                let report = run_agent_probe_case(*agent, case, &stage);
                checked += report.case_check_count();
                failed += report.failed_case_check_count();
            }
        }
    }
    println!("\n{checked} checks, {failed} failed");
    // No check at all is a failure too: `codex --case quiet` selects a scenario that Codex does not
    // play.
    Ok(if failed == 0 && checked > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn run_agent_probe_case(
    agent: &dyn TestedAgent,
    case: &AgentProbeCase,
    stage: &ProbeCaseEnvironment<'_>,
) -> ProbeCaseCheckCounts {
    let mut report = ProbeCaseCheckCounts::default();
    report.print_case_title(agent.agent_name(), case.name, case.about);
    // An error ends this scenario as a failed row; the other scenarios still run.
    if let Err(error) = (case.run)(stage, &mut report) {
        report.report_probe_check_result("the scenario can be played", false, &error.to_string());
    }
    report
}
