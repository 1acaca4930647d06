//! Tests the ladder of the preset `balanced`: the same command again and again is spoken of, denied and
//! ended, and the words reach the model. A wait that is repeated is left alone.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, report_whether_text_contains, tests_verifier_config_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "loops",
    about: "`balanced`: the same command five times, and a repeated wait",
    agents: BOTH,
    run: probe_loops,
};

/// What the model is told at its third, fourth and fifth call, each in the request after it.
const WORDS: [(usize, &str, &str); 3] = [
    (3, "a word", "with these very arguments"),
    (4, "a denial", "so it is not run again"),
    (5, "the end", "so it is not run again"),
];

fn probe_loops(stage: &ProbeCaseEnvironment<'_>, report: &mut ProbeCaseCheckCounts) -> Result<()> {
    probe_repeated_command(stage, report)?;
    probe_repeated_wait(stage, report)
}

fn config() -> String {
    format!(
        "[loops]\npreset = \"balanced\"\n\n{}",
        tests_verifier_config_text("true")
    )
}

fn probe_repeated_command(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    // The file is beside the repo and counts how often the command really ran.
    let runs = stage.path_beside_probe_repo("repeat", "runs.txt");
    let command = format!("echo ran >> '{}'; echo same", runs.display());
    let mut script: Vec<Vec<ScriptedModelAction>> = (0..5)
        .map(|_| ScriptedModelAction::scripted_shell_response(&command))
        .collect();
    script.push(ScriptedModelAction::scripted_text_response("I am stuck."));
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "repeat",
        files: &[("README.md", "a fox\n")],
        config: config(),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(script),
    })?;
    let ran = world.run_agent_headless("Do the thing.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let requests = world.model.model_request_log().requests.len();
    for (at, what, words) in WORDS {
        // An agent that obeys the end asks the model no more, and then nobody is told.
        if what == "the end" && requests <= at {
            continue;
        }
        let fresh = world
            .model
            .model_request_log()
            .requests
            .get(at)
            .map(|asked| asked.new_text.clone())
            .unwrap_or_default();
        report_whether_text_contains(report, &format!("{what} reaches the model"), &fresh, words);
    }
    report.report_whether_as_expected(
        "the command ran three times",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &3,
    );
    let task = check_single_task_ended_as(report, &world, "loop_detected generic_repeat")?;
    check_recorded_session_replay(report, &world, &task)
}

fn probe_repeated_wait(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let runs = stage.path_beside_probe_repo("wait", "runs.txt");
    let command = format!("sleep 0.1; echo ran >> '{}'", runs.display());
    let mut script: Vec<Vec<ScriptedModelAction>> = (0..9)
        .map(|_| ScriptedModelAction::scripted_shell_response(&command))
        .collect();
    script.push(ScriptedModelAction::scripted_text_response("It is built."));
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "wait",
        files: &[("README.md", "a fox\n")],
        config: config(),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(script),
    })?;
    let ran = world.run_agent_headless("Wait for the build.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    report.report_whether_as_expected(
        "each wait ran",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &9,
    );
    let spoke = world
        .model
        .model_request_log()
        .requests
        .iter()
        .any(|asked| asked.new_text.contains("these very arguments"));
    report.report_whether_as_expected("and none was spoken of", &spoke, &false);
    let task = check_single_task_ended_as(report, &world, "unverified no_change")?;
    check_recorded_session_replay(report, &world, &task)
}
