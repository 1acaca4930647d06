//! Somebody clones a repo with committed hooks and has no checkrein: the agent works as
//! without them, and a person is told once that nothing is checked.

use std::io::Result;
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, ended_well, verifier};
use crate::agents::report::Report;
use crate::agents::screen::Screen;
use crate::agents::world::{Setup, Stage, World, ending};

pub(super) const CASE: Case = Case {
    name: "colleague",
    about: "committed hooks, with checkrein and without",
    agents: BOTH,
    run,
};

const TOLD: &str = "checkrein is not installed here";

fn world<'a>(stage: &'a Stage<'a>, name: &'a str) -> Result<World<'a>> {
    let world = stage.world(Setup {
        name,
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
    world.checkrein(&["init", "--agent", stage.agent.name(), "--shared"])?;
    Ok(world)
}

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let guarded = world(stage, "with")?;
    let ran = guarded.headless("Make one.txt.")?;
    ended_well(report, &guarded, &ran);
    report.equal(
        "with checkrein the first stop is refused",
        &guarded.model.model_request_log().requests.len(),
        &4,
    );
    let tasks = guarded.tasks()?;
    let seen = tasks.first().map(ending).unwrap_or_default();
    report.check("it ends task_complete", seen == "task_complete", &seen);

    let mut bare = world(stage, "without")?;
    bare.become_a_colleague()?;
    let ran = bare.headless("Make one.txt.")?;
    ended_well(report, &bare, &ran);
    report.equal("without it the agent works", &bare.has("one.txt"), &true);
    report.equal(
        "and no stop is refused",
        &bare.model.model_request_log().requests.len(),
        &2,
    );

    report.note("-- the same in its terminal UI");
    let mut shown = world(stage, "screen")?;
    shown.become_a_colleague()?;
    let screen = Screen::agent(&shown, "Make one.txt.")?;
    let (found, text) = screen.wait_for(TOLD, Duration::from_secs(60));
    let line = text
        .lines()
        .find(|line| line.contains(TOLD))
        .map_or(text.trim_end(), str::trim);
    report.check("a person is told", found, line);
    let (done, text) = screen.wait_for("Done.", Duration::from_secs(60));
    report.check("the agent goes on to its end", done, text.trim_end());
    report.equal("told once", &text.matches(TOLD).count(), &1);
    std::fs::write(shown.folder.join("screen.txt"), &text)?;
    Ok(())
}
