//! A judge finds an answer wanting once; then its model is gone, which changes nothing but what is
//! recorded.

use std::io::{Error, Result};

use checkrein_scripted::witness::{self, ScriptedReviewer, request_prompt_text};
use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, counted, ended_well, holds, one_task, replays};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, number};

pub(super) const CASE: Case = Case {
    name: "judge",
    about: "an incomplete answer is sent back once; a dead model changes nothing",
    agents: BOTH,
    run,
};

const WANTING: &str = "Nothing says what the note is about.";

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let setup = |name| Setup {
        name,
        files: &[("README.md", "a fox\n")],
        config: format!(
            "accept = \"tests\"\n{}\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/judge\"\n",
            counted(&stage.beside(name, "runs.txt"), "test -f note.txt")
        ),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_new_file_response("note.txt", "a note\n"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_text_response(
                "Done. The note is about the fox of the README.",
            ),
        ]),
    };
    let judge = ScriptedReviewer::start_scripted_model_server(|body, _| {
        let answer = request_prompt_text(body)
            .rsplit(" answer>")
            .next()
            .unwrap_or_default();
        Ok(match answer.contains("about the fox") {
            true => witness::scripted_judge_verdict(body, "pass", 0.95, "none", ""),
            false => witness::scripted_judge_verdict(body, "fail", 0.2, "incomplete", WANTING),
        })
    })
    .map_err(Error::other)?;
    let mut world = stage.world(setup("main"))?;
    world.env.push(("OLLAMA_HOST", judge.base_url()));
    let ran = world.headless("Write a note about the README.")?;
    ended_well(report, &world, &ran);
    let asked = judge.received_request_bodies();
    report.equal("the judge was asked about both answers", &asked.len(), &2);
    let shown = asked.first().map(request_prompt_text).unwrap_or_default();
    holds(
        report,
        "it was shown the request",
        shown,
        "Write a note about the README.",
    );
    holds(
        report,
        "it was shown what the checks found",
        shown,
        "tests passes",
    );
    let seen = world
        .model
        .model_request_log()
        .requests
        .last()
        .map(|asked| asked.full_text.clone());
    holds(
        report,
        "the agent was told why",
        &seen.unwrap_or_default(),
        WANTING,
    );
    report.equal("the check ran once", &world.lines("runs.txt"), &1);
    let task = one_task(report, &world, "task_complete")?;
    report.equal("two stops", &number(&task, "stops"), &Some(2));
    replays(report, &world, &task)?;

    drop(judge);
    let mut world = stage.world(setup("gone"))?;
    world
        .env
        .push(("OLLAMA_HOST", "http://127.0.0.1:9".to_owned()));
    let ran = world.headless("Write a note about the README.")?;
    ended_well(report, &world, &ran);
    let task = one_task(report, &world, "task_complete")?;
    report.equal("one stop", &number(&task, "stops"), &Some(1));
    let why = world.checkrein(&["show", "--why"])?.stdout;
    holds(
        report,
        "what happened is recorded",
        &why,
        "its model did not answer",
    );
    replays(report, &world, &task)
}
