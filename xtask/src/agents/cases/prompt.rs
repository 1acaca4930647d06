//! A command that a person is asked about. Where nobody attends it is parked, approved from a
//! terminal and goes through once. Claude Code's terminal UI puts the question itself; Codex's
//! cannot be told to, so there it is parked while the person looks on.

use std::ffi::OsString;
use std::io::{Error, Result};
use std::time::Duration;

use checkrein_scripted::{ModelScript, ScriptedModelAction, model_script_from_rounds};
use serde_json::Value;

use super::{BOTH, Case, holds, line_with, one_task, replays, verifier};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::screen::Screen;
use crate::agents::world::{Ran, Setup, Stage, World, ending};

pub(super) const CASE: Case = Case {
    name: "prompt",
    about: "a rule asks a person: parked and approved, or asked in the terminal UI",
    agents: BOTH,
    run,
};

const RULES: &str = "prefix_rule(\n    pattern = [\"echo\", \"PROMPTED\"],\n    decision = \"prompt\",\n    justification = \"ASK: a person says when\",\n)\n";
const REASON: &str = "ASK: a person says when";
const COMMAND: &str = "echo PROMPTED > asked.txt";
const PATIENCE: Duration = Duration::from_secs(90);

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    parked(stage, report)?;
    match stage.agent.name() {
        "claude-code" => {
            asked(stage, report)?;
            declined(stage, report)
        }
        _ => parked_in_sight(stage, report),
    }
}

fn world<'a>(
    stage: &'a Stage<'a>,
    name: &'a str,
    hooks: &'a [Hooks],
    script: ModelScript,
) -> Result<World<'a>> {
    stage.world(Setup {
        name,
        files: &[("rules/ask.rules", RULES)],
        config: format!(
            "[policy]\nrules = [\"rules/*.rules\"]\n\n{}",
            verifier("test -f asked.txt")
        ),
        hooks,
        script,
    })
}

fn session(ran: &Ran) -> Result<(String, String)> {
    let last = ran.stdout.lines().next_back().unwrap_or_default();
    let said: Value = serde_json::from_str(last)
        .map_err(|error| Error::other(format!("run --json: {error}: {ran:?}")))?;
    let session = said.get("session").and_then(Value::as_str);
    Ok((session.unwrap_or_default().to_owned(), ending(&said)))
}

/// What waits, by its id.
fn waiting(world: &World<'_>) -> Result<Vec<String>> {
    let listed = world.checkrein(&["approvals", "--json"])?;
    let said: Value = serde_json::from_str(&listed.stdout).map_err(Error::other)?;
    let rows = said.get("approvals").and_then(Value::as_array);
    let asked = rows.into_iter().flatten().filter(|row| {
        let state = row.get("state").and_then(Value::as_str);
        state == Some("asked")
    });
    Ok(asked
        .filter_map(|row| row.get("id")?.as_str().map(str::to_owned))
        .collect())
}

fn parked(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- nobody attends");
    let world = world(
        stage,
        "parked",
        &[],
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo begun > begun.txt"),
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("It waits for a person."),
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    )?;
    let ran = world.run_agent(&["--json", "Do what has to be asked about."])?;
    report.equal("run ends with status 17", &ran.status, &Some(17));
    let (session, ended) = session(&ran)?;
    report.equal(
        "it waits for a person",
        &ended,
        &"awaiting_human parked".to_owned(),
    );
    report.equal("it did not run", &world.has("asked.txt"), &false);
    let told = {
        let seen = world.model.model_request_log();
        seen.requests.get(2).map(|asked| asked.new_text.clone())
    };
    let told = told.unwrap_or_default();
    holds(report, "the model is told why", &told, REASON);
    let ids = waiting(&world)?;
    report.equal("one question waits", &ids.len(), &1);
    let id = ids.into_iter().next().unwrap_or_default();
    holds(
        report,
        "and how to have it answered",
        &told,
        &format!("checkrein approve {id}"),
    );

    let refused = world.checkrein(&["approve", &id, "--reason", "x"])?;
    report.equal(
        "without a terminal nobody approves",
        &refused.status,
        &Some(4),
    );
    approve(report, &world, &id)?;

    let head: String = session.chars().take(13).collect();
    let ran = world.run_agent(&["--json", "--resume", &head, "It is approved; go on."])?;
    let (_, ended) = self::session(&ran)?;
    report.check(
        "taken up again, the same call goes through",
        ran.status == Some(0) && ended == "task_complete",
        &format!("{:?} {ended}", ran.status),
    );
    report.equal("it ran", &world.has("asked.txt"), &true);
    report.equal("nothing waits any more", &waiting(&world)?.len(), &0);
    if let Some(task) = world.tasks()?.last() {
        replays(report, &world, task)?;
    }
    Ok(())
}

/// A person at a terminal of their own.
fn approve(report: &mut Report, world: &World<'_>, id: &str) -> Result<()> {
    let words: Vec<OsString> = vec![
        world.stage.programs.checkrein.clone().into(),
        "approve".into(),
        id.into(),
    ];
    let screen = Screen::start(world, "approve", &words)?;
    let (shown, text) = screen.wait_for("Approve exactly this?", PATIENCE);
    report.check(
        "a person sees what it is",
        shown && text.contains(COMMAND),
        text.trim(),
    );
    screen.type_line("y")?;
    screen.wait_for("in a few words", PATIENCE);
    screen.type_line("it was planned")?;
    let (approved, text) = screen.wait_for("exactly this call may be made once", PATIENCE);
    report.check("and approves it", approved, text.trim());
    Ok(())
}

fn asked(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- somebody attends");
    let world = world(
        stage,
        "asked",
        &[Hooks::User],
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    )?;
    let screen = Screen::agent(&world, "Do what has to be asked about.")?;
    let (shown, text) = screen.wait_for(REASON, PATIENCE);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    report.check(
        "the agent's own question shows the reason",
        shown,
        text.trim(),
    );
    report.equal("it has not run", &world.has("asked.txt"), &false);
    report.equal("nothing is parked", &waiting(&world)?.len(), &0);
    // Its first choice is yes.
    screen.type_line("")?;
    let (done, text) = screen.wait_for("Done.", PATIENCE);
    report.check("answered there, the work goes on", done, text.trim());
    report.equal("it ran", &world.has("asked.txt"), &true);
    stopped(&world)?;
    drop(screen);
    let task = one_task(report, &world, "task_complete")?;
    replays(report, &world, &task)
}

/// The agent's last line is on the screen a moment before its stop is answered.
fn stopped(world: &World<'_>) -> Result<()> {
    let until = std::time::Instant::now() + PATIENCE;
    while world.tasks()?.iter().any(|task| ending(task) == "open")
        && std::time::Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn declined(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- somebody attends and says no");
    let world = world(
        stage,
        "declined",
        &[Hooks::User],
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    )?;
    let screen = Screen::agent(&world, "Do what has to be asked about.")?;
    let (shown, text) = screen.wait_for(REASON, PATIENCE);
    report.check("the agent's own question is there", shown, text.trim());
    screen.press("Escape")?;
    let (done, text) = screen.wait_for("Interrupted", PATIENCE);
    report.check("no is no", done, text.trim());
    report.equal("it did not run", &world.has("asked.txt"), &false);
    Ok(())
}

fn parked_in_sight(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- somebody attends, and the agent cannot ask them");
    let world = world(
        stage,
        "in-sight",
        &[Hooks::User],
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("It waits for a person."),
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    )?;
    let screen = Screen::agent(&world, "Do what has to be asked about.")?;
    let (shown, text) = screen.wait_for("checkrein: awaiting_human", PATIENCE);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    report.check(
        "the screen shows the ending",
        shown,
        &line_with(&text, "awaiting_human"),
    );
    report.equal("it did not run", &world.has("asked.txt"), &false);
    let ids = waiting(&world)?;
    report.equal("one question waits", &ids.len(), &1);
    let id = ids.into_iter().next().unwrap_or_default();
    holds(
        report,
        "the screen names it",
        &text,
        &format!("checkrein approve {id}"),
    );
    approve(report, &world, &id)?;
    // Typed in one go with its Enter it would be taken for a paste.
    const GO_ON: &str = "It is approved; go on.";
    screen.press(GO_ON)?;
    screen.wait_for(GO_ON, PATIENCE);
    screen.press("Enter")?;
    let (done, text) = screen.wait_for("Done.", PATIENCE);
    report.check("the same session goes on", done, text.trim());
    report.equal("it ran", &world.has("asked.txt"), &true);
    stopped(&world)?;
    drop(screen);
    let endings: Vec<String> = world.tasks()?.iter().map(ending).collect();
    report.equal(
        "a task for each prompt, the second complete",
        &endings,
        &vec![
            "awaiting_human parked".to_owned(),
            "task_complete".to_owned(),
        ],
    );
    if let Some(task) = world.tasks()?.last() {
        replays(report, &world, task)?;
    }
    Ok(())
}
