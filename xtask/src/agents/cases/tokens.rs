//! Output tokens: what is recorded is what the model said it used.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, ended_well, one_task, tokens_add_up, verifier};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage};

pub(super) const CASE: Case = Case {
    name: "tokens",
    about: "output tokens against the script",
    agents: BOTH,
    run,
};

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let world = stage.world(Setup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: verifier("test -f verified.txt"),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(vec![
            // Two blocks of one response: counted once.
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
    let ran = world.headless("Make it verified.")?;
    ended_well(report, &world, &ran);
    let asked = world.model.model_request_log().requests.len();
    report.equal("the model was asked as often as scripted", &asked, &5);
    let task = one_task(report, &world, "task_complete")?;
    tokens_add_up(report, &world, &task);
    Ok(())
}
