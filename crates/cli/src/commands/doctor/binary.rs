//! The programs that our entries name: there, the same as this one, found where the agent looks.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::bounded;
use super::entry::{Program, is_this};
use super::finding::{Finding, Status};
use super::hooks::{Installed, again};
use super::places::{Agent, Scope};

const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn look(
    agent: &Agent,
    installed: &[Installed<'_>],
    root: &Path,
    scratch: &Path,
) -> Vec<Finding> {
    let mut programs: BTreeMap<(&str, bool), Vec<&Installed<'_>>> = BTreeMap::new();
    for one in installed {
        let own = one.settings.scope == Scope::User;
        let named = (one.entry.program.as_str(), own);
        programs.entry(named).or_default().push(one);
    }
    programs
        .into_values()
        .filter_map(|entries| one(agent, &entries, root, scratch))
        .collect()
}

fn one(agent: &Agent, entries: &[&Installed<'_>], root: &Path, scratch: &Path) -> Option<Finding> {
    let first = entries.first()?;
    let program = first.entry.program.as_str();
    let again = again(agent, first.settings.scope);
    let finding = match Program::of(program, first.settings.scope, root) {
        Program::Gone => missing(agent, entries, program, again),
        Program::Foreign(found) => Finding::warning(
            agent.name,
            "hook_binary_foreign",
            format!(
                "the entries start {}, which is not this program: not started",
                found.display()
            ),
        )
        .so("they come with the repo, and what they start is not known to be checkrein")
        .mend(again),
        Program::Ours(found) if is_this(&found) => Finding::ok(
            agent.name,
            "binary",
            format!("the entries start this very program ({program})"),
        ),
        Program::Ours(found) | Program::Own(found) => other(agent, &found, again, scratch),
    };
    Some(match finding.status {
        Status::Ok => finding,
        Status::Warning | Status::Fault => finding.at(&first.place),
    })
}

fn missing(agent: &Agent, entries: &[&Installed<'_>], program: &str, again: String) -> Finding {
    let blocks = entries.iter().any(|one| one.hook.blocks_on_failure);
    let so = if blocks {
        "the agent refuses every tool call, and lets every stop through unchecked"
    } else {
        "the agent goes on as if there were no hook: nothing is gated, nothing is checked"
    };
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
    Finding::fault(agent.name, "hook_binary_missing", what)
        .so(so)
        .mend(mend)
}

/// Another copy, which the person chose.
fn other(agent: &Agent, found: &Path, again: String, scratch: &Path) -> Finding {
    let mut asked = Command::new(found);
    asked.arg("--version");
    let said = bounded::run(asked, PATIENCE, scratch)
        .ok()
        .filter(|ran| ran.status == Some(0))
        .map(|ran| ran.said());
    let own = format!("checkrein {}", env!("CARGO_PKG_VERSION"));
    match said {
        Some(said) if said == own => Finding::ok(
            agent.name,
            "binary",
            format!(
                "the entries start another copy of this version ({})",
                found.display()
            ),
        ),
        Some(said) => {
            let said = bounded::in_short(&said);
            Finding::warning(
                agent.name,
                "binary_other_version",
                format!("the entries start {said}; this is {own}"),
            )
            .so("what you see here may not be what the agent gets")
            .mend(again)
        }
        None => Finding::fault(
            agent.name,
            "hook_binary_broken",
            format!("{} does not answer to --version", found.display()),
        )
        .so("the hook fails at every event")
        .mend(again),
    }
}
