//! Tests a forbidden command, plain and hidden in a subshell: it must not run, and the model must
//! be told why.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, JUSTIFICATION, RULES, check_agent_ended_cleanly,
    check_recorded_session_replay, check_single_task_ended_as, report_whether_text_contains,
    tests_verifier_config_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "deny",
    about: "a rule forbids a command",
    agents: BOTH,
    run: probe_denied_command,
};

fn probe_denied_command(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("rules/marker.rules", RULES)],
        config: format!(
            "[policy]\nrules = [\"rules/*.rules\"]\n\n{}",
            tests_verifier_config_text("test -f allowed.txt")
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo FORBIDDEN_MARKER > denied.txt"),
            ScriptedModelAction::scripted_shell_response(
                // Comparing the beginning of the line, or words as they are written, would miss
                // this one.
                "true && (cd . ; 'echo' FORBIDDEN_MARKER > hidden.txt)",
            ),
            ScriptedModelAction::scripted_shell_response("echo fine > allowed.txt"),
            ScriptedModelAction::scripted_text_response("Finished."),
        ]),
    })?;
    let ran = world.run_agent_headless("Do the marker task.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        report.report_whether_as_expected(
            "the model was asked as often as scripted",
            &seen.requests.len(),
            &4,
        );
        for (at, what) in [(1, "plain"), (2, "in a subshell, quoted")] {
            let fresh = seen
                .requests
                .get(at)
                .map(|asked| asked.new_text.clone())
                .unwrap_or_default();
            report_whether_text_contains(
                report,
                &format!("the justification reaches the model: {what}"),
                &fresh,
                JUSTIFICATION,
            );
        }
    }
    report.report_whether_as_expected(
        "the plain one was not executed",
        &world.has_repo_file("denied.txt"),
        &false,
    );
    report.report_whether_as_expected(
        "the hidden one was not executed",
        &world.has_repo_file("hidden.txt"),
        &false,
    );
    report.report_whether_as_expected(
        "an allowed one was",
        &world.has_repo_file("allowed.txt"),
        &true,
    );
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    check_recorded_session_replay(report, &world, &task)
}
