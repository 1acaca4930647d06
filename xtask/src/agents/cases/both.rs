//! Hooks of the user and hooks of the project at once: every event is delivered twice and
//! must count once.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{CLAUDE_CODE, Case, counted, ended_well, one_task, replays, tokens_add_up};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, number};

pub(super) const CASE: Case = Case {
    name: "both",
    about: "user and project hooks installed together",
    agents: CLAUDE_CODE,
    run,
};

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let world = stage.world(Setup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: counted(&stage.beside("main", "runs.txt"), "test -f verified.txt"),
        hooks: &[Hooks::User, Hooks::Project],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo two > two.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    })?;
    let ran = world.headless("Make it verified.")?;
    ended_well(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        report.equal(
            "the model was asked as often as scripted",
            &seen.requests.len(),
            &6,
        );
        let fresh = seen
            .requests
            .get(2)
            .map(|asked| asked.new_text.clone())
            .unwrap_or_default();
        report.note(&format!(
            "the first refusal is in the next request {} times",
            fresh.matches("checkrein: not done yet").count()
        ));
    }
    let task = one_task(report, &world, "task_complete")?;
    report.equal("three calls", &number(&task, "tool_calls"), &Some(3));
    report.equal("three stops", &number(&task, "stops"), &Some(3));
    report.equal("sent back twice", &number(&task, "continues"), &Some(2));
    report.equal(
        "six rounds: three with a call, three that stop",
        &number(&task, "rounds"),
        &Some(6),
    );
    report.equal(
        "the verifier ran once per stop",
        &world.lines("runs.txt"),
        &3,
    );
    tokens_add_up(report, &world, &task);
    replays(report, &world, &task)
}
