//! `cargo xtask agents [AGENT] [--case NAME] [--keep]`: the real Claude Code and the real
//! Codex, headless and in their terminal UIs, with checkrein's hooks and a scripted model on
//! loopback. Each scenario prints a table; any FAIL makes the exit status 1.

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

use agent::Agent;
use cases::Case;
use programs::Programs;
use report::Report;
use world::Stage;

/// What was typed.
struct Wanted {
    agent: Option<String>,
    case: Option<String>,
    keep: bool,
}

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let wanted = read(arguments)?;
    let folder = programs::cache()?
        .join("runs")
        .join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let result = all(&wanted, &folder);
    if wanted.keep {
        println!("kept: {}", folder.display());
    } else {
        // A process of an agent that still ends may write into it: nothing worth failing for.
        let _ = std::fs::remove_dir_all(&folder);
    }
    result
}

fn read(arguments: &[String]) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        agent: None,
        case: None,
        keep: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--keep" => wanted.keep = true,
            "--case" => wanted.case = words.next().cloned(),
            name if agent::ALL.iter().any(|agent| agent.name() == name) => {
                wanted.agent = Some(name.to_owned())
            }
            other => {
                return Err(format!(
                    "'{other}' is not known; [claude-code|codex] [--case NAME] [--keep]"
                ));
            }
        }
    }
    if let Some(case) = &wanted.case
        && !cases::ALL.iter().any(|known| known.name == case)
    {
        let known: Vec<&str> = cases::ALL.iter().map(|case| case.name).collect();
        return Err(format!(
            "no case is named '{case}'; known: {}",
            known.join(", ")
        ));
    }
    Ok(wanted)
}

fn all(wanted: &Wanted, folder: &Path) -> Result<ExitCode, String> {
    let programs = Programs::gather(folder)?;
    let (mut checked, mut failed) = (0, 0);
    for agent in agent::ALL.iter().filter(|agent| {
        wanted
            .agent
            .as_ref()
            .is_none_or(|name| name == agent.name())
    }) {
        let program = programs::find(&agent.package())?;
        for case in cases::ALL {
            let chosen = wanted.case.as_ref().is_none_or(|name| name == case.name);
            if chosen && case.agents.contains(&agent.name()) {
                let stage = Stage {
                    agent: *agent,
                    program: program.clone(),
                    programs: &programs,
                    folder: folder.join(format!("{}-{}", agent.name(), case.name)),
                };
                let report = one(*agent, case, &stage);
                checked += report.checked();
                failed += report.failed();
            }
        }
    }
    println!("\n{checked} checks, {failed} failed");
    Ok(if failed == 0 && checked > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn one(agent: &dyn Agent, case: &Case, stage: &Stage<'_>) -> Report {
    let mut report = Report::default();
    report.title(agent.name(), case.name, case.about);
    if let Err(error) = (case.run)(stage, &mut report) {
        report.check("the scenario can be played", false, &error.to_string());
    }
    report
}
