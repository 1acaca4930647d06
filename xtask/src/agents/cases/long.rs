//! A check of 14 s under a deadline of 8 s: it goes on without its hook, and a later stop takes it up.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, counted, ended_well, holds, one_task, replays};
use crate::agents::agent::{DEADLINE, Hooks};
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, World, number, put};

pub(super) const CASE: Case = Case {
    name: "long",
    about: "a check that is longer than its hook",
    agents: BOTH,
    run,
};

/// Seconds that a hook has here.
const SHORT: u32 = 8;

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let world = stage.world(Setup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: counted(
            &stage.beside("main", "runs.txt"),
            "sleep 14; test -f fixed.txt",
        ),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo yes > fixed.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            // What a model takes to think.
            ScriptedModelAction::scripted_shell_response("sleep 2"),
            ScriptedModelAction::scripted_text_response("Nothing else to do."),
        ]),
    })?;
    short_hooks(&world, report)?;

    let ran = world.headless("Make fixed.txt.")?;
    ended_well(report, &world, &ran);
    let seen = world
        .model
        .model_request_log()
        .requests
        .get(2)
        .map(|asked| asked.new_text.clone());
    let fresh = seen.unwrap_or_default();
    holds(
        report,
        "the first stop says how long it has been running",
        &fresh,
        "still running for",
    );
    holds(
        report,
        "and what to do",
        &fresh,
        "stop again when you have nothing else to do; changing files starts it again",
    );
    let task = one_task(report, &world, "task_complete")?;
    report.equal("two stops", &number(&task, "stops"), &Some(2));
    report.equal("the check ran once", &world.lines("runs.txt"), &1);
    replays(report, &world, &task)
}

/// Gives the hooks of this world 8 s.
pub(super) fn short_hooks(world: &World<'_>, report: &mut Report) -> Result<()> {
    let file = world.home.join(world.stage.agent.hooks_file());
    let hooks = std::fs::read_to_string(&file)?;
    let mut short = hooks.clone();
    for form in ["--deadline ", "\"--deadline\",\"", "\"timeout\":"] {
        short = short.replace(&format!("{form}{DEADLINE}"), &format!("{form}{SHORT}"));
    }
    report.check("the hooks have 8 s", short != hooks, &short);
    put(&file, &short)
}
