//! Tests hooks of the user together with hooks of the project: every event is delivered twice and
//! must count once.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, CLAUDE_CODE, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, check_task_tokens_match_model, config_of_run_counting_verifier,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, numeric_field_of_task};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "both",
    about: "user and project hooks installed together",
    agents: CLAUDE_CODE,
    run: run_duplicate_hooks_case,
};

fn run_duplicate_hooks_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: config_of_run_counting_verifier(
            &stage.path_beside_probe_repo("main", "runs.txt"),
            "test -f verified.txt",
        ),
        hooks: &[ProbeHookInstallKind::User, ProbeHookInstallKind::Project],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo two > two.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    })?;
    let ran = world.run_agent_headless("Make it verified.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        report.report_whether_as_expected(
            "the model was asked as often as scripted",
            &seen.requests.len(),
            &6,
        );
        let fresh = seen
            .requests
            .get(2)
            .map(|asked| asked.new_text.clone())
            .unwrap_or_default();
        // This is a note and no check: Claude Code passes on the answers of both hooks, so the
        // reason arrives twice.
        report.print_probe_case_note(&format!(
            "the first refusal is in the next request {} times",
            fresh.matches("checkrein: not done yet").count()
        ));
    }
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "three calls",
        &numeric_field_of_task(&task, "tool_calls"),
        &Some(3),
    );
    report.report_whether_as_expected(
        "three stops",
        &numeric_field_of_task(&task, "stops"),
        &Some(3),
    );
    report.report_whether_as_expected(
        "sent back twice",
        &numeric_field_of_task(&task, "continues"),
        &Some(2),
    );
    report.report_whether_as_expected(
        "six rounds: three with a call, three that stop",
        &numeric_field_of_task(&task, "rounds"),
        &Some(6),
    );
    report.report_whether_as_expected(
        "the verifier ran once per stop",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &3,
    );
    check_task_tokens_match_model(report, &world, &task);
    check_recorded_session_replay(report, &world, &task)
}
