//! Tests `checkrein run --agent`: checkrein starts the real agent, with hooks for that run only.
//! The runs are completed, given up, over the time cap, killed, changed after the accept, without
//! hooks, resumed, and not startable. The reported tokens have to be the scripted ones.

use std::io::{Error, Result};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{
    AgentProbeCase, BOTH, check_recorded_session_replay, config_of_run_counting_verifier,
    report_whether_text_contains,
};
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, ProgramResult,
    ending_text_from_task_json, numeric_field_of_task, write_file,
};
use checkrein_scripted::{ScriptedModelAction, ScriptedModelFn, model_script_from_rounds};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "run-agent",
    about: "run --agent: complete, gave up, wall clock, early exit, silent hooks, resume, usage",
    agents: BOTH,
    run: probe_checkrein_run,
};

const TASK: &str = "Make it verified.";

fn probe_checkrein_run(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    probe_completed_run(stage, report)?;
    probe_given_up_task(stage, report)?;
    probe_wall_clock_cap(stage, report)?;
    probe_agent_killed_midwork(stage, report)?;
    probe_change_after_accepted_stop(stage, report)?;
    run_hooks_off_case(stage, report)?;
    probe_agent_failing_at_start(stage, report)
}

fn wrapper_run_fixture<'a>(
    stage: &'a ProbeCaseEnvironment<'a>,
    name: &'a str,
    caps: &str,
    script: ScriptedModelFn,
) -> Result<ProbeCaseFixture<'a>> {
    let check = config_of_run_counting_verifier(
        &stage.path_beside_probe_repo(name, "runs.txt"),
        "test -f verified.txt",
    );
    stage.create_probe_fixture(ProbeCaseSetup {
        name,
        files: &[("README.md", "a repo\n")],
        config: format!("{caps}{check}"),
        hooks: &[],
        script,
    })
}

/// Parses the document that `run --json` prints as its last line.
fn parse_checkrein_run_json(ran: &ProgramResult) -> Result<Value> {
    let last = ran.stdout.lines().next_back().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| {
        Error::other(format!(
            "run --json: {error}: status {:?}\n{}\n{}",
            ran.status, ran.stdout, ran.stderr
        ))
    })
}

fn expect_run_ending(
    report: &mut ProbeCaseCheckCounts,
    world: &ProbeCaseFixture<'_>,
    ran: &ProgramResult,
    code: i32,
    wanted: &str,
) -> Result<Value> {
    let said = parse_checkrein_run_json(ran)?;
    let trouble = format!("status {:?}\n{}\n{said}", ran.status, ran.stderr);
    let seen = if ran.status == Some(code) {
        format!("status {code}")
    } else {
        trouble
    };
    report.report_probe_check_result(
        &format!("run ends with status {code}"),
        ran.status == Some(code),
        &seen,
    );
    report.report_whether_as_expected(
        "run --json says why",
        &ending_text_from_task_json(&said),
        &wanted.to_owned(),
    );
    // The store has to say the same as the printed document.
    let task = world
        .tasks_listed_by_sessions_command()?
        .pop()
        .unwrap_or_default();
    report.report_whether_as_expected(
        "and so does sessions",
        &ending_text_from_task_json(&task),
        &wanted.to_owned(),
    );
    check_recorded_session_replay(report, world, &task)?;
    Ok(said)
}

/// Checks that the reported tokens are those of the given requests, each counted once.
fn check_reported_token_usage(
    report: &mut ProbeCaseCheckCounts,
    said: &Value,
    requests: std::ops::Range<usize>,
) {
    let wanted: u64 = requests
        .clone()
        .map(checkrein_scripted::output_tokens_of_nth_response)
        .sum();
    let usage = said.get("usage").cloned().unwrap_or_default();
    report.report_whether_as_expected(
        "output tokens are the scripted ones",
        &numeric_field_of_task(&usage, "output_tokens"),
        &Some(wanted),
    );
    // The scripted model reports 1000 input tokens at each request.
    report.report_whether_as_expected(
        "input tokens are the scripted ones",
        &numeric_field_of_task(&usage, "input_tokens"),
        &Some(1000 * requests.len() as u64),
    );
}

fn probe_completed_run(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- it is sent back once, and then done; then taken up again");
    let world = wrapper_run_fixture(
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
    // The hooks are for this run only, so no settings file may change.
    let before = hook_settings_files(&world);
    let ran = world.run_under_checkrein(&["--json", TASK])?;
    let said = expect_run_ending(report, &world, &ran, 0, "task_complete")?;
    report.report_whether_as_expected(
        "hooks fired",
        &said.get("hooks_fired"),
        &Some(&Value::Bool(true)),
    );
    // More than one attempt would mean that the hook let the false claim pass and `run` had to
    // start the agent again.
    report.report_whether_as_expected(
        "the refusal was its hook's: one process did it all",
        &numeric_field_of_task(&said, "attempts"),
        &Some(1),
    );
    check_reported_token_usage(report, &said, 0..4);
    report.report_whether_as_expected(
        "no settings of the person were touched",
        &hook_settings_files(&world),
        &before,
    );

    let session = said
        .get("session")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    // `--resume` takes a prefix of the id.
    let head: String = session.chars().take(8).collect();
    let ran = world.run_under_checkrein(&["--json", "--resume", &head, "One more thing."])?;
    let said = expect_run_ending(report, &world, &ran, 0, "task_complete")?;
    report.report_whether_as_expected(
        "the same session",
        &said.get("session").and_then(Value::as_str),
        &Some(session.as_str()),
    );
    report.report_whether_as_expected(
        "its second task",
        &numeric_field_of_task(&said, "task"),
        &Some(2),
    );
    // The four requests of the first run must not be counted again.
    check_reported_token_usage(report, &said, 4..6);
    let asked = world
        .model
        .model_request_log()
        .requests
        .last()
        .cloned()
        .unwrap_or_default();
    report_whether_text_contains(
        report,
        "the model still knows the conversation",
        &asked.full_text,
        "Done, I know.",
    );
    Ok(())
}

fn probe_given_up_task(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- it never does what it says");
    let world = wrapper_run_fixture(
        stage,
        "gave-up",
        "",
        model_script_from_rounds(vec![
            // The last response repeats, so every further stop makes the same claim. Without a
            // change the first stop would count as a question answered.
            ScriptedModelAction::scripted_new_file_response("NOTES.md", "Looked at it.\n"),
            ScriptedModelAction::scripted_text_response("Everything is done."),
        ]),
    )?;
    let ran = world.run_under_checkrein(&["--json", TASK])?;
    let said = expect_run_ending(report, &world, &ran, 11, "gave_up same_failures")?;
    let asked = world.model.model_request_log().requests.len();
    report.report_whether_as_expected("one change, three claims", &asked, &4);
    check_reported_token_usage(report, &said, 0..4);
    Ok(())
}

/// Tests a change of the tree between the accepted stop and the end of the agent's process.
fn probe_change_after_accepted_stop(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- accepted, and changed before its process is gone");
    let world = wrapper_run_fixture(
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
    // The accept is in the store before the hook answers, so the agent still runs when the
    // neighbour sees it. The bound ends the neighbour of a run that never completes.
    let mut neighbour = Command::new("sh");
    world.isolate_environment(&mut neighbour);
    let program = world.stage.programs.checkrein.display();
    neighbour.arg("-c").arg(format!(
        "n=0; until '{program}' sessions --json | grep -q task_complete || [ $n -gt 3000 ]; do sleep 0.01; n=$((n + 1)); done; rm verified.txt"
    ));
    neighbour.stdout(Stdio::null()).stderr(Stdio::null());
    let mut neighbour = neighbour.spawn()?;
    let ran = world.run_under_checkrein(&["--json", TASK])?;
    neighbour.wait()?;
    let said = expect_run_ending(report, &world, &ran, 0, "task_complete")?;
    // `run` reads the tree again once the agent's process tree is gone. It finds another tree than
    // the accepted one and resumes the agent.
    report.report_probe_check_result(
        "the work is there in the end",
        world.has_repo_file("verified.txt"),
        &ran.stderr,
    );
    report.report_whether_as_expected(
        "it was sent back by run itself",
        &numeric_field_of_task(&said, "attempts"),
        &Some(2),
    );
    Ok(())
}

fn probe_wall_clock_cap(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- it does not come back");
    let pid = stage.path_beside_probe_repo("wall", "pid.txt");
    // `exec` keeps the process id of the shell, so the file names the process that sleeps.
    let sleep = format!("echo $$ > '{}'; exec sleep 600", pid.display());
    let world = wrapper_run_fixture(
        stage,
        "wall",
        "[caps]\nwall_clock = \"6s\"\n",
        model_script_from_rounds(vec![ScriptedModelAction::scripted_shell_response(&sleep)]),
    )?;
    let ran = world.run_under_checkrein(&["--json", TASK])?;
    let said = expect_run_ending(report, &world, &ran, 12, "hard_cap wall_clock")?;
    let text = std::fs::read_to_string(&pid)?;
    let alive = std::path::Path::new("/proc").join(text.trim()).exists();
    report.report_probe_check_result("its whole process tree is gone", !alive, text.trim());
    let told = said.get("usage").cloned().unwrap_or_default();
    // A killed agent reports no totals, so the usage is unknown or partial.
    report.report_probe_check_result(
        "what it used is not known, and so said",
        told.is_null() || told.get("partial") == Some(&Value::Bool(true)),
        &told.to_string(),
    );
    Ok(())
}

fn probe_agent_killed_midwork(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- its process dies in the middle of the work");
    let world = wrapper_run_fixture(
        stage,
        "early",
        "",
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo one > one.txt"),
            // The parent of the tool's shell is the agent.
            ScriptedModelAction::scripted_shell_response("kill -9 $PPID"),
            ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            ScriptedModelAction::scripted_text_response("Done after all."),
        ]),
    )?;
    let ran = world.run_under_checkrein(&["--json", TASK])?;
    let said = expect_run_ending(report, &world, &ran, 0, "task_complete")?;
    report.report_whether_as_expected(
        "started twice",
        &numeric_field_of_task(&said, "attempts"),
        &Some(2),
    );
    let asked = world.model.model_request_log().requests.clone();
    // The killed process made the first two requests.
    let third = asked.get(2).cloned().unwrap_or_default();
    report_whether_text_contains(
        report,
        "the second process got our feedback",
        &third.full_text,
        "checkrein: not done yet",
    );
    report_whether_text_contains(report, "in the same conversation", &third.full_text, TASK);
    Ok(())
}

fn run_hooks_off_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- the person's own settings switch hooks off");
    let world = wrapper_run_fixture(
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
    // The person's switch also silences the hooks that `run` hands over. Stops are then judged by
    // `run` alone, once the agent's process has ended.
    stage.agent.disable_hooks_in_agent_settings(&world)?;
    let ran = world.run_under_checkrein(&["--json", TASK])?;
    let said = expect_run_ending(report, &world, &ran, 0, "task_complete")?;
    report.report_whether_as_expected(
        "hooks never fired",
        &said.get("hooks_fired"),
        &Some(&Value::Bool(false)),
    );
    report_whether_text_contains(report, "which is said, loudly", &ran.stderr, "never fired");
    report.report_whether_as_expected(
        "run judged by itself and took the session up again",
        &numeric_field_of_task(&said, "attempts"),
        &Some(2),
    );
    report.report_whether_as_expected(
        "the verifier ran once per claim",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &2,
    );
    check_reported_token_usage(report, &said, 0..4);
    Ok(())
}

fn probe_agent_failing_at_start(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- it fails before it has done anything");
    let world = wrapper_run_fixture(
        stage,
        "fails",
        "",
        model_script_from_rounds(vec![ScriptedModelAction::scripted_text_response(
            "never asked",
        )]),
    )?;
    // The verifier would pass, so only the agent's own failure can decide the ending.
    write_file(&world.repo.join("verified.txt"), "yes\n")?;
    let ran = world.run_under_checkrein(&["--json", TASK, "--", "--no-such-flag"])?;
    expect_run_ending(report, &world, &ran, 1, "error agent")?;
    report_whether_text_contains(report, "with its own words", &ran.stderr, "no-such-flag");
    Ok(())
}

/// Returns every settings file in which a hook could stand, with its content.
fn hook_settings_files(world: &ProbeCaseFixture<'_>) -> Vec<(std::path::PathBuf, Option<String>)> {
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
