//! Tests a question that is answered with ten calls that only read: it must not run the test suite.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, config_of_run_counting_verifier,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, numeric_field_of_task};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "question",
    about: "ten read-only calls, nothing changed",
    agents: BOTH,
    run: probe_read_only_question,
};

// All differ, so that no loop detector warns.
const READING: [&str; 10] = [
    "ls",
    "ls -la",
    "cat README.md",
    "grep -rn fox .",
    "grep -c line README.md",
    "head -n 1 README.md",
    "tail -n 1 README.md",
    "wc -l README.md",
    "git status --short",
    "git log --oneline",
];

fn probe_read_only_question(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let mut script: Vec<Vec<ScriptedModelAction>> = READING
        .iter()
        .map(|command| ScriptedModelAction::scripted_shell_response(command))
        .collect();
    script.push(ScriptedModelAction::scripted_text_response(
        "The README speaks of a fox.",
    ));
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("README.md", "a fox\nand a line\n")],
        config: config_of_run_counting_verifier(
            &stage.path_beside_probe_repo("main", "runs.txt"),
            // The check fails: if it ran, the stop would be refused.
            "false",
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(script),
    })?;
    let ran = world.run_agent_headless("What does the README speak of?")?;
    check_agent_ended_cleanly(report, &world, &ran);
    report.report_whether_as_expected(
        "the model was asked as often as scripted",
        &world.model.model_request_log().requests.len(),
        &11,
    );
    report.report_whether_as_expected(
        "the verifier never ran",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &0,
    );
    let task = check_single_task_ended_as(report, &world, "unverified no_change")?;
    report.report_whether_as_expected(
        "ten calls were counted",
        &numeric_field_of_task(&task, "tool_calls"),
        &Some(10),
    );
    report.report_whether_as_expected("one stop", &numeric_field_of_task(&task, "stops"), &Some(1));
    check_recorded_session_replay(report, &world, &task)
}
