//! `checkrein run --agent`: the real agent started by us, hooks for that run only. Done, never
//! done, out of time, gone early, hooks off, taken up again; what it used is what was scripted.

use std::io::{Error, Result};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{BOTH, Case, counted, holds, replays};
use crate::agents::report::Report;
use crate::agents::world::{Ran, Setup, Stage, World, ending, number, put};
use checkrein_scripted::{ModelScript, ScriptedModelAction, model_script_from_rounds};

pub(super) const CASE: Case = Case {
    name: "run-agent",
    about: "run --agent: complete, gave up, wall clock, early exit, silent hooks, resume, usage",
    agents: BOTH,
    run,
};

const TASK: &str = "Make it verified.";

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    complete(stage, report)?;
    gave_up(stage, report)?;
    wall_clock(stage, report)?;
    early(stage, report)?;
    late(stage, report)?;
    silent(stage, report)?;
    cannot_start(stage, report)
}

fn world<'a>(
    stage: &'a Stage<'a>,
    name: &'a str,
    caps: &str,
    script: ModelScript,
) -> Result<World<'a>> {
    let check = counted(&stage.beside(name, "runs.txt"), "test -f verified.txt");
    stage.world(Setup {
        name,
        files: &[("README.md", "a repo\n")],
        config: format!("{caps}{check}"),
        hooks: &[],
        script,
    })
}

/// What `run --json` said.
fn document(ran: &Ran) -> Result<Value> {
    let last = ran.stdout.lines().next_back().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| {
        Error::other(format!(
            "run --json: {error}: status {:?}\n{}\n{}",
            ran.status, ran.stdout, ran.stderr
        ))
    })
}

fn ended(
    report: &mut Report,
    world: &World<'_>,
    ran: &Ran,
    code: i32,
    wanted: &str,
) -> Result<Value> {
    let said = document(ran)?;
    let trouble = format!("status {:?}\n{}\n{said}", ran.status, ran.stderr);
    let seen = if ran.status == Some(code) {
        format!("status {code}")
    } else {
        trouble
    };
    report.check(
        &format!("run ends with status {code}"),
        ran.status == Some(code),
        &seen,
    );
    report.equal("run --json says why", &ending(&said), &wanted.to_owned());
    let task = world.tasks()?.pop().unwrap_or_default();
    report.equal("and so does sessions", &ending(&task), &wanted.to_owned());
    replays(report, world, &task)?;
    Ok(said)
}

/// Input and output tokens as scripted, every request counted once.
fn usage(report: &mut Report, said: &Value, requests: std::ops::Range<usize>) {
    let wanted: u64 = requests
        .clone()
        .map(checkrein_scripted::scripted_output_tokens)
        .sum();
    let usage = said.get("usage").cloned().unwrap_or_default();
    report.equal(
        "output tokens are the scripted ones",
        &number(&usage, "output_tokens"),
        &Some(wanted),
    );
    report.equal(
        "input tokens are the scripted ones",
        &number(&usage, "input_tokens"),
        &Some(1000 * requests.len() as u64),
    );
}

fn complete(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- it is sent back once, and then done; then taken up again");
    let world = world(
        stage,
        "complete",
        "",
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done, I think."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done, I know."),
            ScriptedModelAction::scripted_shell_response("echo more > more.txt"),
            ScriptedModelAction::scripted_text_response("Done again."),
        ]),
    )?;
    let before = hook_settings(&world);
    let ran = world.run_agent(&["--json", TASK])?;
    let said = ended(report, &world, &ran, 0, "task_complete")?;
    report.equal(
        "hooks fired",
        &said.get("hooks_fired"),
        &Some(&Value::Bool(true)),
    );
    report.equal(
        "the refusal was its hook's: one process did it all",
        &number(&said, "attempts"),
        &Some(1),
    );
    usage(report, &said, 0..4);
    report.equal(
        "no settings of the person were touched",
        &hook_settings(&world),
        &before,
    );

    let session = said
        .get("session")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let head: String = session.chars().take(8).collect();
    let ran = world.run_agent(&["--json", "--resume", &head, "One more thing."])?;
    let said = ended(report, &world, &ran, 0, "task_complete")?;
    report.equal(
        "the same session",
        &said.get("session").and_then(Value::as_str),
        &Some(session.as_str()),
    );
    report.equal("its second task", &number(&said, "task"), &Some(2));
    usage(report, &said, 4..6);
    let asked = world
        .model
        .model_request_log()
        .requests
        .last()
        .cloned()
        .unwrap_or_default();
    holds(
        report,
        "the model still knows the conversation",
        &asked.full_text,
        "Done, I know.",
    );
    Ok(())
}

fn gave_up(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- it never does what it says");
    let world = world(
        stage,
        "gave-up",
        "",
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_new_file_response("NOTES.md", "Looked at it.\n"),
            ScriptedModelAction::scripted_text_response("Everything is done."),
        ]),
    )?;
    let ran = world.run_agent(&["--json", TASK])?;
    let said = ended(report, &world, &ran, 11, "gave_up same_failures")?;
    let asked = world.model.model_request_log().requests.len();
    report.equal("one change, three claims", &asked, &4);
    usage(report, &said, 0..4);
    Ok(())
}

/// Somebody takes the work away between the accepted stop and the end of the agent's process.
fn late(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- accepted, and changed before its process is gone");
    let world = world(
        stage,
        "late",
        "",
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done again."),
        ]),
    )?;
    let mut neighbour = Command::new("sh");
    world.clean(&mut neighbour);
    let program = world.stage.programs.checkrein.display();
    neighbour.arg("-c").arg(format!(
        "n=0; until '{program}' sessions --json | grep -q task_complete || [ $n -gt 3000 ]; do sleep 0.01; n=$((n + 1)); done; rm verified.txt"
    ));
    neighbour.stdout(Stdio::null()).stderr(Stdio::null());
    let mut neighbour = neighbour.spawn()?;
    let ran = world.run_agent(&["--json", TASK])?;
    neighbour.wait()?;
    let said = ended(report, &world, &ran, 0, "task_complete")?;
    report.check(
        "the work is there in the end",
        world.has("verified.txt"),
        &ran.stderr,
    );
    report.equal(
        "it was sent back by run itself",
        &number(&said, "attempts"),
        &Some(2),
    );
    Ok(())
}

fn wall_clock(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- it does not come back");
    let pid = stage.beside("wall", "pid.txt");
    let sleep = format!("echo $$ > '{}'; exec sleep 600", pid.display());
    let world = world(
        stage,
        "wall",
        "[caps]\nwall_clock = \"6s\"\n",
        model_script_from_rounds(vec![ScriptedModelAction::scripted_shell_response(&sleep)]),
    )?;
    let ran = world.run_agent(&["--json", TASK])?;
    let said = ended(report, &world, &ran, 12, "hard_cap wall_clock")?;
    let text = std::fs::read_to_string(&pid)?;
    let alive = std::path::Path::new("/proc").join(text.trim()).exists();
    report.check("its whole process tree is gone", !alive, text.trim());
    let told = said.get("usage").cloned().unwrap_or_default();
    report.check(
        "what it used is not known, and so said",
        told.is_null() || told.get("partial") == Some(&Value::Bool(true)),
        &told.to_string(),
    );
    Ok(())
}

fn early(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- its process dies in the middle of the work");
    let world = world(
        stage,
        "early",
        "",
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_shell_response("kill -9 $PPID"),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done after all."),
        ]),
    )?;
    let ran = world.run_agent(&["--json", TASK])?;
    let said = ended(report, &world, &ran, 0, "task_complete")?;
    report.equal("started twice", &number(&said, "attempts"), &Some(2));
    let asked = world.model.model_request_log().requests.clone();
    let third = asked.get(2).cloned().unwrap_or_default();
    holds(
        report,
        "the second process got our feedback",
        &third.full_text,
        "checkrein: not done yet",
    );
    holds(report, "in the same conversation", &third.full_text, TASK);
    Ok(())
}

fn silent(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- the person's own settings switch hooks off");
    let world = world(
        stage,
        "silent",
        "",
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            ScriptedModelAction::scripted_text_response("Done, I think."),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done, I know."),
        ]),
    )?;
    stage.agent.switch_hooks_off(&world)?;
    let ran = world.run_agent(&["--json", TASK])?;
    let said = ended(report, &world, &ran, 0, "task_complete")?;
    report.equal(
        "hooks never fired",
        &said.get("hooks_fired"),
        &Some(&Value::Bool(false)),
    );
    holds(report, "which is said, loudly", &ran.stderr, "never fired");
    report.equal(
        "run judged by itself and took the session up again",
        &number(&said, "attempts"),
        &Some(2),
    );
    report.equal(
        "the verifier ran once per claim",
        &world.lines("runs.txt"),
        &2,
    );
    usage(report, &said, 0..4);
    Ok(())
}

fn cannot_start(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- it fails before it has done anything");
    let world = world(
        stage,
        "fails",
        "",
        model_script_from_rounds(vec![ScriptedModelAction::scripted_text_response(
            "never asked",
        )]),
    )?;
    put(&world.repo.join("verified.txt"), "yes\n")?;
    let ran = world.run_agent(&["--json", TASK, "--", "--no-such-flag"])?;
    ended(report, &world, &ran, 1, "error agent")?;
    holds(report, "with its own words", &ran.stderr, "no-such-flag");
    Ok(())
}

/// Every settings file in which a hook could stand, as it is.
fn hook_settings(world: &World<'_>) -> Vec<(std::path::PathBuf, Option<String>)> {
    [
        world.home.join(".claude/settings.json"),
        world.repo.join(".claude/settings.json"),
        world.repo.join(".claude/settings.local.json"),
        world.home.join(".codex/config.toml"),
        world.home.join(".codex/hooks.json"),
        world.repo.join(".codex/hooks.json"),
    ]
    .into_iter()
    .map(|file| {
        let text = std::fs::read_to_string(&file).ok();
        (file, text)
    })
    .collect()
}
