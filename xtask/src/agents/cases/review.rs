//! Tests the review that Codex requires before it runs a hook. `init` at a terminal asks a person
//! and records the review; Codex then runs the hooks without any flag that bypasses it.

use std::io::Result;
use std::process::Command;
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, check_agent_ended_cleanly, check_single_task_ended_as,
    tests_verifier_config_text,
};
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::screen::AgentTmuxSession;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "review",
    about: "init asks for Codex's review, and Codex takes it",
    agents: &["codex"],
    run: run_hook_review_case,
};

fn run_hook_review_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: tests_verifier_config_text("test -f verified.txt"),
        hooks: &[],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done now."),
        ]),
    })?;
    let config = world.home.join(".codex/config.toml");
    let before = std::fs::read(&config)?;
    let checkrein = stage.programs.checkrein.clone().into_os_string();
    let words = ["init", "--agent", "codex"].map(Into::into);
    let words: Vec<_> = std::iter::once(checkrein).chain(words).collect();
    // `init` asks only at a terminal, which tmux provides.
    let screen = AgentTmuxSession::start_program_in_tmux(&world, "init", &words)?;
    let (asked, text) = screen.wait_for_screen_text("[y/N]", Duration::from_secs(30));
    report.report_probe_check_result("a person is asked", asked, text.trim_end());
    screen.type_line_into_terminal("y")?;
    let (written, text) =
        screen.wait_for_screen_text("your review of these hooks", Duration::from_secs(30));
    report.report_probe_check_result("and the review is written", written, text.trim_end());
    drop(screen);

    // `headless_arguments` contain the flag that bypasses the review, so they are not used here.
    let ran = world.run_command_in_probe_fixture(Command::new(&stage.program).args([
        "exec",
        "--json",
        "Make it verified.",
    ]))?;
    check_agent_ended_cleanly(report, &world, &ran);
    check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "the first stop was refused",
        &world.model.model_request_log().requests.len(),
        &4,
    );
    world.run_checkrein(&["init", "--undo"])?;
    report.report_whether_as_expected(
        "undo leaves its config as it was",
        &(std::fs::read(&config)? == before),
        &true,
    );
    report.report_whether_as_expected("and the repo", &world.has_repo_file(".codex"), &false);
    Ok(())
}
