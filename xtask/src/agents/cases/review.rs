//! Codex runs only hooks that a person has reviewed. `init`, at a terminal, asks and writes
//! the review down: afterwards Codex obeys, with no flag that bypasses anything.

use std::io::Result;
use std::process::Command;
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{Case, ended_well, one_task, verifier};
use crate::agents::report::Report;
use crate::agents::screen::Screen;
use crate::agents::world::{Setup, Stage};

pub(super) const CASE: Case = Case {
    name: "review",
    about: "init asks for Codex's review, and Codex takes it",
    agents: &["codex"],
    run,
};

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let world = stage.world(Setup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: verifier("test -f verified.txt"),
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
    let screen = Screen::start(&world, "init", &words)?;
    let (asked, text) = screen.wait_for("[y/N]", Duration::from_secs(30));
    report.check("a person is asked", asked, text.trim_end());
    screen.type_line("y")?;
    let (written, text) = screen.wait_for("your review of these hooks", Duration::from_secs(30));
    report.check("and the review is written", written, text.trim_end());
    drop(screen);

    let ran =
        world.run(Command::new(&stage.program).args(["exec", "--json", "Make it verified."]))?;
    ended_well(report, &world, &ran);
    one_task(report, &world, "task_complete")?;
    report.equal(
        "the first stop was refused",
        &world.model.model_request_log().requests.len(),
        &4,
    );
    world.checkrein(&["init", "--undo"])?;
    report.equal(
        "undo leaves its config as it was",
        &(std::fs::read(&config)? == before),
        &true,
    );
    report.equal("and the repo", &world.has(".codex"), &false);
    Ok(())
}
