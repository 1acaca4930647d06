//! The programs that our entries name: there, the same as this one, found where the agent looks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::bounded;
use super::finding::Finding;
use super::hooks::{Installed, again};
use super::places::Agent;
use crate::programs;

const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn look(agent: &Agent, installed: &[Installed<'_>], scratch: &Path) -> Vec<Finding> {
    let mut programs: BTreeMap<&str, Vec<&Installed<'_>>> = BTreeMap::new();
    for one in installed {
        programs.entry(&one.entry.program).or_default().push(one);
    }
    programs
        .into_iter()
        .filter_map(|(program, entries)| one(agent, program, &entries, scratch))
        .collect()
}

fn one(
    agent: &Agent,
    program: &str,
    entries: &[&Installed<'_>],
    scratch: &Path,
) -> Option<Finding> {
    let first = entries.first()?;
    let bare = !program.contains(['/', '\\']);
    let found = if bare {
        programs::on_path(program)
    } else {
        Some(PathBuf::from(program)).filter(|file| programs::is_program(file))
    };
    let Some(found) = found else {
        let blocks = entries.iter().any(|one| one.hook.blocks_on_failure);
        let so = if blocks {
            "the agent refuses every tool call, and lets every stop through unchecked"
        } else {
            "the agent goes on as if there were no hook: nothing is gated, nothing is checked"
        };
        let what = if bare {
            format!("'{program}' is not on the PATH")
        } else {
            format!("{program} is not there, or is no program")
        };
        let mend = match std::env::current_exe() {
            Ok(me) if bare => format!(
                "ln -s '{}' into a folder of that PATH, or: {}",
                me.display(),
                again(agent, first.settings.scope)
            ),
            _ => again(agent, first.settings.scope),
        };
        return Some(
            Finding::fault(agent.name, "hook_binary_missing", what)
                .at(&first.place)
                .so(so)
                .mend(mend),
        );
    };
    let me = std::env::current_exe()
        .and_then(|me| me.canonicalize())
        .ok();
    if found.canonicalize().ok() == me {
        return Some(Finding::ok(
            agent.name,
            "binary",
            format!("the entries start this very program ({program})"),
        ));
    }
    let mut asked = Command::new(&found);
    asked.arg("--version");
    let said = bounded::run(asked, PATIENCE, scratch)
        .ok()
        .filter(|ran| ran.status == Some(0))
        .map(|ran| ran.said());
    let own = format!("checkrein {}", env!("CARGO_PKG_VERSION"));
    Some(match said {
        Some(said) if said == own => Finding::ok(
            agent.name,
            "binary",
            format!(
                "the entries start another copy of this version ({})",
                found.display()
            ),
        ),
        Some(said) => Finding::warning(
            agent.name,
            "binary_other_version",
            format!("the entries start {said}; this is {own}"),
        )
        .at(&first.place)
        .so("what you see here may not be what the agent gets")
        .mend(again(agent, first.settings.scope)),
        None => Finding::fault(
            agent.name,
            "hook_binary_broken",
            format!("{} does not answer to --version", found.display()),
        )
        .at(&first.place)
        .so("the hook fails at every event")
        .mend(again(agent, first.settings.scope)),
    })
}
