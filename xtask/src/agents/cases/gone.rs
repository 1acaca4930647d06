//! The binary is uninstalled and the hooks are still there: no tool call goes ahead unseen, and
//! the refusal names the way out.

use std::io::Result;
use std::process::Command;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, ended_well, holds, verifier};
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage};

pub(super) const CASE: Case = Case {
    name: "gone",
    about: "hooks whose checkrein was uninstalled",
    agents: BOTH,
    run,
};

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let world = stage.world(Setup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: verifier("true"),
        hooks: &[],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    })?;
    let own = world.folder.join("bin").join("checkrein");
    std::fs::create_dir_all(world.folder.join("bin"))?;
    std::fs::copy(&stage.programs.checkrein, &own)?;
    let ran = world.run(Command::new(&own).args(["init", "--agent", stage.agent.name()]))?;
    report.check("init", ran.status == Some(0), &ran.stderr);
    std::fs::remove_file(&own)?;

    let ran = world.headless("Make one.txt.")?;
    ended_well(report, &world, &ran);
    report.equal("the call did not run", &world.has("one.txt"), &false);
    let fresh = world
        .model
        .model_request_log()
        .requests
        .get(1)
        .map(|asked| asked.new_text.clone())
        .unwrap_or_default();
    holds(
        report,
        "the refusal names the way out",
        &fresh,
        "install it again, or take its hooks out of",
    );
    let ran = world.checkrein(&["init", "--undo"])?;
    report.check(
        "another checkrein takes them out",
        ran.status == Some(0),
        &ran.stdout,
    );
    let ran = world.headless("Make one.txt.")?;
    ended_well(report, &world, &ran);
    Ok(())
}
