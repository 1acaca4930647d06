//! Tests a sub-agent: the rules hold for it as well, and its stop runs no verifier.

use std::io::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use checkrein_scripted::{ScriptedModelAction, ScriptedModelFn};

use super::{
    AgentProbeCase, CLAUDE_CODE, JUSTIFICATION, RULES, check_agent_ended_cleanly,
    check_recorded_session_replay, check_single_task_ended_as, check_task_tokens_match_model,
    config_of_run_counting_verifier, report_whether_text_contains,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, numeric_field_of_task};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "subagent",
    about: "the Agent tool",
    agents: CLAUDE_CODE,
    run: run_subagent_case,
};

/// The sub-agent's prompt, by which the scripted model recognizes its requests.
const SUBAGENT_TASK: &str = "ERRAND: try the marker, then write sub.txt.";
/// Marks that no count of runs was taken. Not 0, which is the wanted count.
const UNKNOWN: usize = usize::MAX;

fn run_subagent_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let runs = stage.path_beside_probe_repo("main", "runs.txt");
    let before = Arc::new(AtomicUsize::new(UNKNOWN));
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("rules/marker.rules", RULES)],
        config: format!(
            "[policy]\nrules = [\"rules/*.rules\"]\n\n{}",
            config_of_run_counting_verifier(&runs, "test -f verified.txt")
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: subagent_delegation_script(runs, Arc::clone(&before)),
    })?;
    let ran = world.run_agent_headless("Delegate it.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        let offered = seen
            .requests
            .first()
            .is_some_and(|asked| asked.tools.iter().any(|tool| tool == "Agent"));
        report.report_probe_check_result("the agent offers its Agent tool", offered, "");
        let sub: Vec<_> = seen
            .requests
            .iter()
            .filter(|asked| asked.opening_text.contains(SUBAGENT_TASK))
            .collect();
        report.report_whether_as_expected(
            "the sub-agent asked the model three times",
            &sub.len(),
            &3,
        );
        let fresh = sub
            .get(1)
            .map(|asked| asked.new_text.clone())
            .unwrap_or_default();
        report_whether_text_contains(
            report,
            "the justification reaches the sub-agent",
            &fresh,
            JUSTIFICATION,
        );
    }
    report.report_whether_as_expected(
        "its denied command was not executed",
        &world.has_repo_file("sub-denied.txt"),
        &false,
    );
    report.report_whether_as_expected(
        "its allowed command was",
        &world.has_repo_file("sub.txt"),
        &true,
    );
    report.report_whether_as_expected(
        "no verifier had run when it was over",
        &before.load(Ordering::SeqCst),
        &0,
    );
    report.report_whether_as_expected(
        "one ran at each main stop",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &2,
    );
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "the sub-agent's calls count: Agent, two of its own, one more",
        &numeric_field_of_task(&task, "tool_calls"),
        &Some(4),
    );
    check_task_tokens_match_model(report, &world, &task);
    check_recorded_session_replay(report, &world, &task)
}

fn subagent_delegation_script(
    runs: std::path::PathBuf,
    before: Arc<AtomicUsize>,
) -> ScriptedModelFn {
    // Both agents ask the same model, so each has a count of its own.
    let (mut main, mut sub) = (0, 0);
    Box::new(move |asked| {
        if asked.opening_text.contains(SUBAGENT_TASK) {
            sub += 1;
            return match sub {
                1 => ScriptedModelAction::scripted_shell_response(
                    "echo FORBIDDEN_MARKER > sub-denied.txt",
                ),
                2 => ScriptedModelAction::scripted_shell_response("echo fine > sub.txt"),
                _ => ScriptedModelAction::scripted_text_response("The errand is run."),
            };
        }
        main += 1;
        match main {
            1 => vec![ScriptedModelAction::Delegate(SUBAGENT_TASK.to_owned())],
            2 => {
                // The sub-agent has stopped and the main agent has not, so any run was for the
                // former.
                let lines = std::fs::read_to_string(&runs).map_or(0, |text| text.lines().count());
                before.store(lines, Ordering::SeqCst);
                ScriptedModelAction::scripted_text_response("Done.")
            }
            3 => ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            _ => ScriptedModelAction::scripted_text_response("Done."),
        }
    })
}
