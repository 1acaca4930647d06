//! A question, answered with ten calls that only read: it must not run the test suite.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, counted, ended_well, one_task, replays};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, number};

pub(super) const CASE: Case = Case {
    name: "question",
    about: "ten read-only calls, nothing changed",
    agents: BOTH,
    run,
};

const READING: [&str; 10] = [
    "ls",
    "ls -la",
    "cat README.md",
    "grep -rn fox .",
    "grep -c line README.md",
    "head -n 1 README.md",
    "tail -n 1 README.md",
    "wc -l README.md",
    "git status --short",
    "git log --oneline",
];

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let mut script: Vec<Vec<ScriptedModelAction>> = READING
        .iter()
        .map(|command| ScriptedModelAction::scripted_shell_response(command))
        .collect();
    script.push(ScriptedModelAction::scripted_text_response(
        "The README speaks of a fox.",
    ));
    let world = stage.world(Setup {
        name: "main",
        files: &[("README.md", "a fox\nand a line\n")],
        config: counted(&stage.beside("main", "runs.txt"), "false"),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(script),
    })?;
    let ran = world.headless("What does the README speak of?")?;
    ended_well(report, &world, &ran);
    report.equal(
        "the model was asked as often as scripted",
        &world.model.model_request_log().requests.len(),
        &11,
    );
    report.equal("the verifier never ran", &world.lines("runs.txt"), &0);
    let task = one_task(report, &world, "unverified no_change")?;
    report.equal(
        "ten calls were counted",
        &number(&task, "tool_calls"),
        &Some(10),
    );
    report.equal("one stop", &number(&task, "stops"), &Some(1));
    replays(report, &world, &task)
}
