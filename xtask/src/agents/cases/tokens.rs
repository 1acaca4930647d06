//! Tests that the recorded output tokens are those that the model reported.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_single_task_ended_as,
    check_task_tokens_match_model, tests_verifier_config_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "tokens",
    about: "output tokens against the script",
    agents: BOTH,
    run: probe_token_counting,
};

fn probe_token_counting(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: tests_verifier_config_text("test -f verified.txt"),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            // Two blocks of one response count once: Claude Code's transcript repeats the usage in
            // a row for each block.
            vec![
                ScriptedModelAction::Say("First a look.".to_owned()),
                ScriptedModelAction::Shell("ls".to_owned()),
            ],
            vec![
                ScriptedModelAction::Shell("echo one > one.txt".to_owned()),
                ScriptedModelAction::Shell("echo two > two.txt".to_owned()),
            ],
            ScriptedModelAction::scripted_text_response("Done, I think."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done, I know."),
        ]),
    })?;
    let ran = world.run_agent_headless("Make it verified.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let asked = world.model.model_request_log().requests.len();
    report.report_whether_as_expected("the model was asked as often as scripted", &asked, &5);
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    check_task_tokens_match_model(report, &world, &task);
    Ok(())
}
