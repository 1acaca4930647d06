//! Tests layers that end the loop: one that halts a call, and a detector of one's own that has a word at
//! the end of a round and ends the next. The word reaches the model with its next request.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, report_whether_text_contains,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "detector",
    about: "a layer that halts a call, and a detector at the end of rounds",
    agents: BOTH,
    run: probe_halting_layers,
};

const TRIES: &str = r#"#!/bin/sh
case $(cat) in
*third*) echo '{"answer": "halt", "reason": "three tries are enough"}' ;;
*) echo '{"answer": "pass"}' ;;
esac
"#;

const ROUNDS: &str = r#"#!/bin/sh
case $(cat) in
*'"round":2,'*) echo '{"answer": "nudge", "reason": "look at the error first"}' ;;
*'"round":3,'*) echo '{"answer": "halt", "reason": "three rounds are enough"}' ;;
esac
"#;

fn probe_halting_layers(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    probe_halted_call(stage, report)?;
    // Codex shows no rounds.
    if stage.agent.agent_name() == "claude-code" {
        probe_halted_round(stage, report)?;
    }
    Ok(())
}

fn commands_and_end(runs: &std::path::Path) -> Vec<Vec<ScriptedModelAction>> {
    let mut script: Vec<Vec<ScriptedModelAction>> = ["first", "second", "third", "fourth"]
        .iter()
        .map(|word| {
            let command = format!("echo {word} >> '{}'", runs.display());
            ScriptedModelAction::scripted_shell_response(&command)
        })
        .collect();
    script.push(ScriptedModelAction::scripted_text_response("I am stuck."));
    script
}

fn probe_halted_call(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let runs = stage.path_beside_probe_repo("call", "runs.txt");
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "call",
        files: &[("tries.sh", TRIES)],
        config: "[[middleware]]\nname = \"tries\"\non = [\"before_tool\"]\nrun = \"sh tries.sh\"\n"
            .to_owned(),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(commands_and_end(&runs)),
    })?;
    let ran = world.run_agent_headless("Try.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    report.report_whether_as_expected(
        "two of the four commands ran",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &2,
    );
    let task = check_single_task_ended_as(report, &world, "loop_detected tries")?;
    check_recorded_session_replay(report, &world, &task)
}

fn probe_halted_round(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let runs = stage.path_beside_probe_repo("round", "runs.txt");
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "round",
        files: &[("rounds.sh", ROUNDS)],
        config: "[[detector]]\nname = \"rounds\"\nrun = \"sh rounds.sh\"\n".to_owned(),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(commands_and_end(&runs)),
    })?;
    let ran = world.run_agent_headless("Go on and on.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let texts: Vec<String> = world
        .model
        .model_request_log()
        .requests
        .iter()
        .map(|asked| asked.new_text.clone())
        .collect();
    report_whether_text_contains(
        report,
        "the word reaches the model",
        texts.get(2).map_or("", String::as_str),
        "look at the error first",
    );
    report.report_whether_as_expected("after the end the model is asked no more", &texts.len(), &3);
    report.report_whether_as_expected(
        "three of the four commands ran",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &3,
    );
    let task = check_single_task_ended_as(report, &world, "loop_detected rounds")?;
    check_recorded_session_replay(report, &world, &task)
}
