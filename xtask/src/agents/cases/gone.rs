//! Tests hooks whose binary was uninstalled: no tool call goes ahead unseen, and the refusal names
//! the way out.

use std::io::Result;
use std::process::Command;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, report_whether_text_contains,
    tests_verifier_config_text,
};
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "gone",
    about: "hooks whose checkrein was uninstalled",
    agents: BOTH,
    run: probe_uninstalled_checkrein,
};

fn probe_uninstalled_checkrein(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: tests_verifier_config_text("true"),
        hooks: &[],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    })?;
    // The hooks name the binary that ran `init`. A copy is removed, because the rest needs the
    // other.
    let own = world.folder.join("bin").join("checkrein");
    std::fs::create_dir_all(world.folder.join("bin"))?;
    std::fs::copy(&stage.programs.checkrein, &own)?;
    let ran = world.run_command_in_probe_fixture(Command::new(&own).args([
        "init",
        "--agent",
        stage.agent.agent_name(),
    ]))?;
    report.report_probe_check_result("init", ran.status == Some(0), &ran.stderr);
    std::fs::remove_file(&own)?;

    let ran = world.run_agent_headless("Make one.txt.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    report.report_whether_as_expected(
        "the call did not run",
        &world.has_repo_file("one.txt"),
        &false,
    );
    let fresh = world
        .model
        .model_request_log()
        .requests
        .get(1)
        .map(|asked| asked.new_text.clone())
        .unwrap_or_default();
    report_whether_text_contains(
        report,
        "the refusal names the way out",
        &fresh,
        "install it again, or take its hooks out of",
    );
    let ran = world.run_checkrein(&["init", "--undo"])?;
    report.report_probe_check_result(
        "another checkrein takes them out",
        ran.status == Some(0),
        &ran.stdout,
    );
    // The script's last response repeats, so this run makes no tool call: it only shows that the
    // agent still works.
    let ran = world.run_agent_headless("Make one.txt.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    Ok(())
}
