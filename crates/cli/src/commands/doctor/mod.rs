//! `checkrein doctor`: are the hooks there, read, firing and holding, and if not, what mends it.
//! It looks and tries, and changes nothing.

mod audit;
mod bounded;
mod entry;
mod finding;
mod firing;
mod places;

use std::process::ExitCode;

use serde_json::json;

use crate::args::Doctor;
use crate::ui::errors::CommandError;
use crate::{exit_code, locate, signals, ui};
use finding::{Finding, Status};
use places::Agent;

/// Version of the JSON document.
const SCHEMA: &str = "checkrein/doctor/1";

pub(crate) fn run(args: &Doctor) -> Result<ExitCode, CommandError> {
    signals::listen();
    let agents: Vec<&Agent> = chosen(args.agent.as_deref())?;
    let located = locate::locate(&std::env::current_dir()?, None);
    if args.audit {
        audit::run(&located, args.json);
        return Ok(exit_code::exit(exit_code::YES));
    }
    let mut findings = Vec::new();
    for agent in agents {
        let Some(program) = places::on_path(agent.program) else {
            findings.push(Finding::ok(agent.name, "installed", "not installed"));
            continue;
        };
        let settings = agent.settings(&located.place.root);
        ui::say(&format!(
            "checkrein: {}",
            firing::announcement(agent.program)
        ));
        for sight in firing::fire(agent.name, &program, &settings)? {
            findings.push(if sight.seen {
                Finding::ok(agent.name, "firing", sight.what)
            } else {
                Finding::fault(
                    agent.name,
                    "firing",
                    format!("not seen: {}; {}", sight.what, sight.instead),
                )
            });
        }
    }
    ui::json(&json!({ "schema": SCHEMA, "findings": findings }));
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
