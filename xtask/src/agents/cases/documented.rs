//! The hooks as our documentation tells people to paste them: an agent drops a settings file
//! with a mistake in it without a word, so only a run shows that they are right.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    BOTH, Case, JUSTIFICATION, RULES, counted, ended_well, holds, one_task, replays, tokens_add_up,
};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, number};

pub(super) const CASE: Case = Case {
    name: "documented",
    about: "the hooks of docs/AGENT.md, pasted into the project",
    agents: BOTH,
    run,
};

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let runs = stage.beside("main", "runs.txt");
    let check = counted(&runs, "test -f verified.txt");
    let world = stage.world(Setup {
        name: "main",
        files: &[("rules/marker.rules", RULES)],
        config: format!("[policy]\nrules = [\"rules/*.rules\"]\n\n{check}"),
        hooks: &[Hooks::Documented],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo FORBIDDEN_MARKER > denied.txt"),
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
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
            &5,
        );
        let fresh = |at: usize| {
            seen.requests
                .get(at)
                .map(|asked| asked.new_text.clone())
                .unwrap_or_default()
        };
        holds(
            report,
            "the denial reaches the model",
            &fresh(1),
            JUSTIFICATION,
        );
        holds(
            report,
            "the refusal reaches the model",
            &fresh(3),
            "checkrein: not done yet",
        );
    }
    report.equal(
        "the denied command was not executed",
        &world.has("denied.txt"),
        &false,
    );
    let task = one_task(report, &world, "task_complete")?;
    report.equal("three calls", &number(&task, "tool_calls"), &Some(3));
    report.equal("two stops", &number(&task, "stops"), &Some(2));
    report.equal(
        "the verifier ran once per stop",
        &world.lines("runs.txt"),
        &2,
    );
    tokens_add_up(report, &world, &task);
    replays(report, &world, &task)
}
