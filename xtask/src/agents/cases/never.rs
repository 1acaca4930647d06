//! An agent that never fixes it and says the same words at every stop: it ends, with a
//! reason, headless and before a person's eyes.

use std::io::Result;
use std::time::Duration;

use checkrein_scripted::{ModelScript, ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, counted, ended_well, line_with, one_task, replays};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::screen::Screen;
use crate::agents::world::{Setup, Stage, World, number};

pub(super) const CASE: Case = Case {
    name: "never",
    about: "says the same words at every stop",
    agents: BOTH,
    run,
};

const CLAIM: &str = "Everything is done.";
/// The beginning of the line that a person is shown.
const LINE: &str = "checkrein: gave_up";

fn script() -> ModelScript {
    // The first response changes something: an unchanged tree would be a question answered.
    model_script_from_rounds(vec![
        ScriptedModelAction::scripted_new_file_response("NOTES.md", "Looked at it.\n"),
        ScriptedModelAction::scripted_text_response(CLAIM),
    ])
}

fn world<'a>(stage: &'a Stage<'a>, name: &'a str) -> Result<World<'a>> {
    stage.world(Setup {
        name,
        files: &[("README.md", "a repo\n")],
        config: counted(&stage.beside(name, "runs.txt"), "test -f verified.txt"),
        hooks: &[Hooks::User],
        script: script(),
    })
}

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let headless = world(stage, "headless")?;
    let ran = headless.headless("Make it verified.")?;
    ended_well(report, &headless, &ran);
    given_up(report, &headless)?;

    report.note("-- the same in its terminal UI");
    let shown = world(stage, "screen")?;
    let screen = Screen::agent(&shown, "Make it verified.")?;
    let (found, text) = screen.wait_for(LINE, Duration::from_secs(90));
    let line = text
        .lines()
        .find(|line| line.contains(LINE))
        .map_or(text.trim_end(), str::trim);
    report.check("the line is on the captured screen", found, line);
    std::fs::write(shown.folder.join("screen.txt"), &text)?;
    drop(screen);
    given_up(report, &shown)
}

fn given_up(report: &mut Report, world: &World<'_>) -> Result<()> {
    let task = one_task(report, world, "gave_up same_failures")?;
    report.equal("exactly three stops", &number(&task, "stops"), &Some(3));
    report.equal("sent back twice", &number(&task, "continues"), &Some(2));
    report.equal(
        "the verifier ran once, and once more before it was given up",
        &world.lines("runs.txt"),
        &2,
    );
    {
        let seen = world.model.model_request_log();
        report.equal(
            "four requests: one change, three claims",
            &seen.requests.len(),
            &4,
        );
        let last = seen.requests.last().cloned().unwrap_or_default();
        let again = "nothing changed since the last check";
        let times = last.new_text.matches(again).count();
        let seen = if times == 1 {
            line_with(&last.new_text, again)
        } else {
            last.new_text
        };
        report.check(
            "the second refusal is one line, sent once",
            times == 1,
            &seen,
        );
    }
    replays(report, world, &task)
}
