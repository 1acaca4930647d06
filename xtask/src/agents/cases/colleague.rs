//! Tests a repo with committed hooks for somebody who has no checkrein. The agent works as without
//! hooks, and a person is told once that nothing is checked.

use std::io::Result;
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{AgentProbeCase, BOTH, check_agent_ended_cleanly, tests_verifier_config_text};
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::screen::AgentTmuxSession;
use crate::agents::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, ending_text_from_task_json,
};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "colleague",
    about: "committed hooks, with checkrein and without",
    agents: BOTH,
    run: probe_committed_hooks,
};

const TOLD: &str = "checkrein is not installed here";

fn committed_hooks_fixture<'a>(
    stage: &'a ProbeCaseEnvironment<'a>,
    name: &'a str,
) -> Result<ProbeCaseFixture<'a>> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name,
        files: &[("README.md", "a repo\n")],
        config: tests_verifier_config_text("test -f verified.txt"),
        hooks: &[],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done now."),
        ]),
    })?;
    // `--shared` writes the hooks that are meant to be committed.
    world.run_checkrein(&["init", "--agent", stage.agent.agent_name(), "--shared"])?;
    Ok(world)
}

fn probe_committed_hooks(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let guarded = committed_hooks_fixture(stage, "with")?;
    let ran = guarded.run_agent_headless("Make one.txt.")?;
    check_agent_ended_cleanly(report, &guarded, &ran);
    report.report_whether_as_expected(
        "with checkrein the first stop is refused",
        &guarded.model.model_request_log().requests.len(),
        &4,
    );
    let tasks = guarded.tasks_listed_by_sessions_command()?;
    let seen = tasks
        .first()
        .map(ending_text_from_task_json)
        .unwrap_or_default();
    report.report_probe_check_result("it ends task_complete", seen == "task_complete", &seen);

    let mut bare = committed_hooks_fixture(stage, "without")?;
    bare.switch_fixture_to_user_without_checkrein()?;
    let ran = bare.run_agent_headless("Make one.txt.")?;
    check_agent_ended_cleanly(report, &bare, &ran);
    report.report_whether_as_expected(
        "without it the agent works",
        &bare.has_repo_file("one.txt"),
        &true,
    );
    report.report_whether_as_expected(
        "and no stop is refused",
        &bare.model.model_request_log().requests.len(),
        &2,
    );

    report.print_probe_case_note("-- the same in its terminal UI");
    let mut shown = committed_hooks_fixture(stage, "screen")?;
    shown.switch_fixture_to_user_without_checkrein()?;
    let screen = AgentTmuxSession::start_agent_in_tmux(&shown, "Make one.txt.")?;
    let (found, text) = screen.wait_for_screen_text(TOLD, Duration::from_secs(60));
    let line = text
        .lines()
        .find(|line| line.contains(TOLD))
        .map_or(text.trim_end(), str::trim);
    report.report_probe_check_result("a person is told", found, line);
    let (done, text) = screen.wait_for_screen_text("Done.", Duration::from_secs(60));
    report.report_probe_check_result("the agent goes on to its end", done, text.trim_end());
    // This is counted once the agent has ended, because each later hook could say it again.
    report.report_whether_as_expected("told once", &text.matches(TOLD).count(), &1);
    std::fs::write(shown.folder.join("screen.txt"), &text)?;
    Ok(())
}
