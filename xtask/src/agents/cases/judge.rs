//! Tests a judge that sends an incomplete answer back once. Without its model the task ends the
//! same way, and the failure is recorded.

use std::io::{Error, Result};

use checkrein_scripted::reviewer::{self, ScriptedReviewer, last_message_text};
use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, config_of_run_counting_verifier, report_whether_text_contains,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, numeric_field_of_task};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "judge",
    about: "an incomplete answer is sent back once; a dead model changes nothing",
    agents: BOTH,
    run: run_judge_verifier_case,
};

const WANTING: &str = "Nothing says what the note is about.";

fn run_judge_verifier_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let setup = |name| ProbeCaseSetup {
        name,
        files: &[("README.md", "a fox\n")],
        // `accept` does not name the judge, so an unreachable model does not hold the task up.
        config: format!(
            "accept = \"tests\"\n{}\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/judge\"\n",
            config_of_run_counting_verifier(
                &stage.path_beside_probe_repo(name, "runs.txt"),
                "test -f note.txt"
            )
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_new_file_response("note.txt", "a note\n"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_text_response(
                "Done. The note is about the fox of the README.",
            ),
        ]),
    };
    let judge = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        // The answer is the last block of the prompt, and only that decides.
        let answer = last_message_text(body)
            .rsplit(" answer>")
            .next()
            .unwrap_or_default();
        Ok(match answer.contains("about the fox") {
            true => reviewer::render_judge_verdict_reply(body, "pass", 0.95, "none", ""),
            false => reviewer::render_judge_verdict_reply(body, "fail", 0.2, "incomplete", WANTING),
        })
    })
    .map_err(Error::other)?;
    let mut world = stage.create_probe_fixture(setup("main"))?;
    world.env.push(("OLLAMA_HOST", judge.base_url()));
    let ran = world.run_agent_headless("Write a note about the README.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let asked = judge.received_request_bodies();
    report.report_whether_as_expected("the judge was asked about both answers", &asked.len(), &2);
    let shown = asked.first().map(last_message_text).unwrap_or_default();
    report_whether_text_contains(
        report,
        "it was shown the request",
        shown,
        "Write a note about the README.",
    );
    report_whether_text_contains(
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
    report_whether_text_contains(
        report,
        "the agent was told why",
        &seen.unwrap_or_default(),
        WANTING,
    );
    // The second stop has the same tree, for which the verdict is still fresh.
    report.report_whether_as_expected(
        "the check ran once",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &1,
    );
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "two stops",
        &numeric_field_of_task(&task, "stops"),
        &Some(2),
    );
    check_recorded_session_replay(report, &world, &task)?;

    drop(judge);
    let mut world = stage.create_probe_fixture(setup("gone"))?;
    world
        .env
        // No server listens on this port.
        .push(("OLLAMA_HOST", "http://127.0.0.1:9".to_owned()));
    let ran = world.run_agent_headless("Write a note about the README.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected("one stop", &numeric_field_of_task(&task, "stops"), &Some(1));
    let why = world.run_checkrein(&["show", "--why"])?.stdout;
    report_whether_text_contains(
        report,
        "what happened is recorded",
        &why,
        "its model did not answer",
    );
    check_recorded_session_replay(report, &world, &task)
}
