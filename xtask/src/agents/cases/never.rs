//! Tests an agent that never fixes the failure and says the same words at every stop. The task ends
//! with a reason, headless and in the terminal UI.

use std::io::Result;
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, ScriptedModelFn, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, config_of_run_counting_verifier, line_containing_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::screen::AgentTmuxSession;
use crate::agents::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, numeric_field_of_task,
};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "never",
    about: "says the same words at every stop",
    agents: BOTH,
    run: probe_agent_that_never_fixes,
};

const CLAIM: &str = "Everything is done.";
/// The beginning of the line that the person sees.
const LINE: &str = "checkrein: gave_up";

fn model_script_claiming_done() -> ScriptedModelFn {
    // The first response changes something: with an unchanged tree the stop would count as a
    // question answered.
    model_script_from_rounds(vec![
        ScriptedModelAction::scripted_new_file_response("NOTES.md", "Looked at it.\n"),
        ScriptedModelAction::scripted_text_response(CLAIM),
    ])
}

fn repeated_claim_fixture<'a>(
    stage: &'a ProbeCaseEnvironment<'a>,
    name: &'a str,
) -> Result<ProbeCaseFixture<'a>> {
    stage.create_probe_fixture(ProbeCaseSetup {
        name,
        files: &[("README.md", "a repo\n")],
        config: config_of_run_counting_verifier(
            &stage.path_beside_probe_repo(name, "runs.txt"),
            "test -f verified.txt",
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_claiming_done(),
    })
}

fn probe_agent_that_never_fixes(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let headless = repeated_claim_fixture(stage, "headless")?;
    let ran = headless.run_agent_headless("Make it verified.")?;
    check_agent_ended_cleanly(report, &headless, &ran);
    check_task_given_up(report, &headless)?;

    report.print_probe_case_note("-- the same in its terminal UI");
    let shown = repeated_claim_fixture(stage, "screen")?;
    let screen = AgentTmuxSession::start_agent_in_tmux(&shown, "Make it verified.")?;
    let (found, text) = screen.wait_for_screen_text(LINE, Duration::from_secs(90));
    let line = text
        .lines()
        .find(|line| line.contains(LINE))
        .map_or(text.trim_end(), str::trim);
    report.report_probe_check_result("the line is on the captured screen", found, line);
    std::fs::write(shown.folder.join("screen.txt"), &text)?;
    drop(screen);
    check_task_given_up(report, &shown)
}

fn check_task_given_up(
    report: &mut ProbeCaseCheckCounts,
    world: &ProbeCaseFixture<'_>,
) -> Result<()> {
    let task = check_single_task_ended_as(report, world, "gave_up same_failures")?;
    // The default of `attempts` is three.
    report.report_whether_as_expected(
        "exactly three stops",
        &numeric_field_of_task(&task, "stops"),
        &Some(3),
    );
    report.report_whether_as_expected(
        "sent back twice",
        &numeric_field_of_task(&task, "continues"),
        &Some(2),
    );
    // The second stop has the verdict of the first. Before the task is given up the check runs
    // again: something outside the tree may have mended the failure.
    report.report_whether_as_expected(
        "the verifier ran once, and once more before it was given up",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &2,
    );
    {
        let seen = world.model.model_request_log();
        report.report_whether_as_expected(
            "four requests: one change, three claims",
            &seen.requests.len(),
            &4,
        );
        let last = seen.requests.last().cloned().unwrap_or_default();
        let again = "nothing changed since the last check";
        let times = last.new_text.matches(again).count();
        let seen = if times == 1 {
            line_containing_text(&last.new_text, again)
        } else {
            last.new_text
        };
        report.report_probe_check_result(
            "the second refusal is one line, sent once",
            times == 1,
            &seen,
        );
    }
    check_recorded_session_replay(report, world, &task)
}
