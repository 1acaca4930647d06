//! Tests a check of 14 s under hooks that have 8 s: the check goes on without its hook, and a later
//! stop takes up its result.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, config_of_run_counting_verifier, report_whether_text_contains,
};
use crate::agents::agent::{DEADLINE, ProbeHookInstallKind};
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, numeric_field_of_task, write_file,
};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "long",
    about: "a check that is longer than its hook",
    agents: BOTH,
    run: run_long_check_case,
};

/// Seconds that a hook has in this scenario.
const SHORT_DEADLINE: u32 = 8;

fn run_long_check_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: config_of_run_counting_verifier(
            &stage.path_beside_probe_repo("main", "runs.txt"),
            "sleep 14; test -f fixed.txt",
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo yes > fixed.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            // This stands for the time that a model takes to think. `sleep` is no act, so the
            // running check stays valid.
            ScriptedModelAction::scripted_shell_response("sleep 2"),
            ScriptedModelAction::scripted_text_response("Nothing else to do."),
        ]),
    })?;
    shorten_hook_deadlines(&world, report)?;

    let ran = world.run_agent_headless("Make fixed.txt.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let seen = world
        .model
        .model_request_log()
        .requests
        .get(2)
        .map(|asked| asked.new_text.clone());
    let fresh = seen.unwrap_or_default();
    report_whether_text_contains(
        report,
        "the first stop says how long it has been running",
        &fresh,
        "still running for",
    );
    report_whether_text_contains(
        report,
        "and what to do",
        &fresh,
        "stop again when you have nothing else to do; changing files starts it again",
    );
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "two stops",
        &numeric_field_of_task(&task, "stops"),
        &Some(2),
    );
    report.report_whether_as_expected(
        "the check ran once",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &1,
    );
    check_recorded_session_replay(report, &world, &task)
}

/// Sets the deadline of this world's hooks to [`SHORT_DEADLINE`].
pub(super) fn shorten_hook_deadlines(
    world: &ProbeCaseFixture<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let file = world
        .home
        .join(world.stage.agent.hooks_file_relative_path());
    let hooks = std::fs::read_to_string(&file)?;
    let mut short = hooks.clone();
    // The forms are Codex's command line, Claude Code's list of arguments, and the timeout of both.
    // Codex's SessionEnd hook has less already and does not match.
    for form in ["--deadline ", "\"--deadline\",\"", "\"timeout\":"] {
        short = short.replace(
            &format!("{form}{DEADLINE}"),
            &format!("{form}{SHORT_DEADLINE}"),
        );
    }
    // If none of the forms were found, the check would end within the full deadline.
    report.report_probe_check_result("the hooks have 8 s", short != hooks, &short);
    write_file(&file, &short)
}
