//! Tests the hooks as the documentation tells people to paste them. An agent ignores a settings
//! file with a mistake in it without a word, so only a run shows that they are right.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, JUSTIFICATION, RULES, check_agent_ended_cleanly,
    check_recorded_session_replay, check_single_task_ended_as, check_task_tokens_match_model,
    config_of_run_counting_verifier, report_whether_text_contains,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, numeric_field_of_task};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "documented",
    about: "the hooks of docs/AGENT.md, pasted into the project",
    agents: BOTH,
    run: probe_hooks_pasted_from_docs,
};

fn probe_hooks_pasted_from_docs(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let runs = stage.path_beside_probe_repo("main", "runs.txt");
    let check = config_of_run_counting_verifier(&runs, "test -f verified.txt");
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("rules/marker.rules", RULES)],
        config: format!("[policy]\nrules = [\"rules/*.rules\"]\n\n{check}"),
        // These hooks name checkrein without a path; the PATH of the scenarios has it.
        hooks: &[ProbeHookInstallKind::Documented],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo FORBIDDEN_MARKER > denied.txt"),
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
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
            &5,
        );
        let fresh = |at: usize| {
            seen.requests
                .get(at)
                .map(|asked| asked.new_text.clone())
                .unwrap_or_default()
        };
        report_whether_text_contains(
            report,
            "the denial reaches the model",
            &fresh(1),
            JUSTIFICATION,
        );
        report_whether_text_contains(
            report,
            "the refusal reaches the model",
            &fresh(3),
            "checkrein: not done yet",
        );
    }
    report.report_whether_as_expected(
        "the denied command was not executed",
        &world.has_repo_file("denied.txt"),
        &false,
    );
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "three calls",
        &numeric_field_of_task(&task, "tool_calls"),
        &Some(3),
    );
    report.report_whether_as_expected(
        "two stops",
        &numeric_field_of_task(&task, "stops"),
        &Some(2),
    );
    report.report_whether_as_expected(
        "the verifier ran once per stop",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &2,
    );
    check_task_tokens_match_model(report, &world, &task);
    check_recorded_session_replay(report, &world, &task)
}
