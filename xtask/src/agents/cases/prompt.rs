//! Tests a command that a rule prompts about. Where nobody attends, the call is parked, approved
//! from a terminal, and goes through once. Claude Code's terminal UI puts the question itself.
//! Codex's cannot be made to, so there the call is parked while a person looks on.

use std::ffi::OsString;
use std::io::{Error, Result};
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, ScriptedModelFn, model_script_from_rounds};
use serde_json::Value;

use super::{
    AgentProbeCase, BOTH, check_recorded_session_replay, check_single_task_ended_as,
    line_containing_text, report_whether_text_contains, tests_verifier_config_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::screen::AgentTmuxSession;
use crate::agents::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, ProgramResult,
    ending_text_from_task_json,
};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "prompt",
    about: "a rule asks a person: parked and approved, or asked in the terminal UI",
    agents: BOTH,
    run: probe_approval_case,
};

const RULES: &str = "prefix_rule(\n    pattern = [\"echo\", \"PROMPTED\"],\n    decision = \"prompt\",\n    justification = \"ASK: a person says when\",\n)\n";
const REASON: &str = "ASK: a person says when";
const COMMAND: &str = "echo PROMPTED > asked.txt";
const SCREEN_LIMIT: Duration = Duration::from_secs(90);

fn probe_approval_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    probe_parked_approval(stage, report)?;
    match stage.agent.agent_name() {
        "claude-code" => {
            probe_approved_prompt(stage, report)?;
            probe_declined_approval_prompt(stage, report)
        }
        _ => probe_parked_approval_in_terminal(stage, report),
    }
}

fn approval_prompt_probe_fixture<'a>(
    stage: &'a ProbeCaseEnvironment<'a>,
    name: &'a str,
    hooks: &'a [ProbeHookInstallKind],
    script: ScriptedModelFn,
) -> Result<ProbeCaseFixture<'a>> {
    stage.create_probe_fixture(ProbeCaseSetup {
        name,
        files: &[("rules/ask.rules", RULES)],
        config: format!(
            "[policy]\nrules = [\"rules/*.rules\"]\n\n{}",
            tests_verifier_config_text("test -f asked.txt")
        ),
        hooks,
        script,
    })
}

fn session_and_ending_from_run_json(ran: &ProgramResult) -> Result<(String, String)> {
    let last = ran.stdout.lines().next_back().unwrap_or_default();
    let said: Value = serde_json::from_str(last)
        .map_err(|error| Error::other(format!("run --json: {error}: {ran:?}")))?;
    let session = said.get("session").and_then(Value::as_str);
    Ok((
        session.unwrap_or_default().to_owned(),
        ending_text_from_task_json(&said),
    ))
}

/// Returns the ids of the approvals that wait for an answer.
fn waiting_approval_ids(world: &ProbeCaseFixture<'_>) -> Result<Vec<String>> {
    let listed = world.run_checkrein(&["approvals", "--json"])?;
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

fn probe_parked_approval(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- nobody attends");
    let world = approval_prompt_probe_fixture(
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
    let ran = world.run_under_checkrein(&["--json", "Do what has to be asked about."])?;
    report.report_whether_as_expected("run ends with status 17", &ran.status, &Some(17));
    let (session, ended) = session_and_ending_from_run_json(&ran)?;
    report.report_whether_as_expected(
        "it waits for a person",
        &ended,
        &"awaiting_human parked".to_owned(),
    );
    report.report_whether_as_expected("it did not run", &world.has_repo_file("asked.txt"), &false);
    // The log's lock is released before the next run, in which the scripted model needs it.
    let told = {
        let seen = world.model.model_request_log();
        seen.requests.get(2).map(|asked| asked.new_text.clone())
    };
    let told = told.unwrap_or_default();
    report_whether_text_contains(report, "the model is told why", &told, REASON);
    let ids = waiting_approval_ids(&world)?;
    report.report_whether_as_expected("one question waits", &ids.len(), &1);
    let id = ids.into_iter().next().unwrap_or_default();
    report_whether_text_contains(
        report,
        "and how to have it answered",
        &told,
        &format!("checkrein approve {id}"),
    );

    // This caller has no terminal, so it does not count as a person.
    let refused = world.run_checkrein(&["approve", &id, "--reason", "x"])?;
    report.report_whether_as_expected(
        "without a terminal nobody approves",
        &refused.status,
        &Some(4),
    );
    probe_approve_in_terminal(report, &world, &id)?;

    let head: String = session.chars().take(13).collect();
    // The approval allows exactly this call once; the script's second try uses it up.
    let ran =
        world.run_under_checkrein(&["--json", "--resume", &head, "It is approved; go on."])?;
    let (_, ended) = self::session_and_ending_from_run_json(&ran)?;
    report.report_probe_check_result(
        "taken up again, the same call goes through",
        ran.status == Some(0) && ended == "task_complete",
        &format!("{:?} {ended}", ran.status),
    );
    report.report_whether_as_expected("it ran", &world.has_repo_file("asked.txt"), &true);
    report.report_whether_as_expected(
        "nothing waits any more",
        &waiting_approval_ids(&world)?.len(),
        &0,
    );
    if let Some(task) = world.tasks_listed_by_sessions_command()?.last() {
        check_recorded_session_replay(report, &world, task)?;
    }
    Ok(())
}

/// Approves a call as a person does, at another terminal.
fn probe_approve_in_terminal(
    report: &mut ProbeCaseCheckCounts,
    world: &ProbeCaseFixture<'_>,
    id: &str,
) -> Result<()> {
    // tmux provides the terminal that `approve` requires.
    let words: Vec<OsString> = vec![
        world.stage.programs.checkrein.clone().into(),
        "approve".into(),
        id.into(),
    ];
    let screen = AgentTmuxSession::start_program_in_tmux(world, "approve", &words)?;
    let (shown, text) = screen.wait_for_screen_text("Approve exactly this?", SCREEN_LIMIT);
    report.report_probe_check_result(
        "a person sees what it is",
        shown && text.contains(COMMAND),
        text.trim(),
    );
    screen.type_line_into_terminal("y")?;
    screen.wait_for_screen_text("in a few words", SCREEN_LIMIT);
    screen.type_line_into_terminal("it was planned")?;
    let (approved, text) =
        screen.wait_for_screen_text("exactly this call may be made once", SCREEN_LIMIT);
    report.report_probe_check_result("and approves it", approved, text.trim());
    Ok(())
}

fn probe_approved_prompt(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- somebody attends");
    let world = approval_prompt_probe_fixture(
        stage,
        "asked",
        &[ProbeHookInstallKind::User],
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    )?;
    let screen = AgentTmuxSession::start_agent_in_tmux(&world, "Do what has to be asked about.")?;
    let (shown, text) = screen.wait_for_screen_text(REASON, SCREEN_LIMIT);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    report.report_probe_check_result(
        "the agent's own question shows the reason",
        shown,
        text.trim(),
    );
    report.report_whether_as_expected("it has not run", &world.has_repo_file("asked.txt"), &false);
    report.report_whether_as_expected(
        "nothing is parked",
        &waiting_approval_ids(&world)?.len(),
        &0,
    );
    // The first choice of the dialog is yes, so Enter alone accepts.
    screen.type_line_into_terminal("")?;
    let (done, text) = screen.wait_for_screen_text("Done.", SCREEN_LIMIT);
    report.report_probe_check_result("answered there, the work goes on", done, text.trim());
    report.report_whether_as_expected("it ran", &world.has_repo_file("asked.txt"), &true);
    // Dropping the screen ends the agent, so its stop has to be answered before.
    wait_until_agent_stop_answered(&world)?;
    drop(screen);
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    check_recorded_session_replay(report, &world, &task)
}

/// Waits until no task is open: the agent's last line is on the screen a moment before its stop is
/// answered.
fn wait_until_agent_stop_answered(world: &ProbeCaseFixture<'_>) -> Result<()> {
    let until = std::time::Instant::now() + SCREEN_LIMIT;
    while world
        .tasks_listed_by_sessions_command()?
        .iter()
        .any(|task| ending_text_from_task_json(task) == "open")
        && std::time::Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn probe_declined_approval_prompt(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- somebody attends and says no");
    let world = approval_prompt_probe_fixture(
        stage,
        "declined",
        &[ProbeHookInstallKind::User],
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    )?;
    let screen = AgentTmuxSession::start_agent_in_tmux(&world, "Do what has to be asked about.")?;
    let (shown, text) = screen.wait_for_screen_text(REASON, SCREEN_LIMIT);
    report.report_probe_check_result("the agent's own question is there", shown, text.trim());
    // In Claude Code's dialog Escape means no; the turn ends as interrupted.
    screen.press_key("Escape")?;
    let (done, text) = screen.wait_for_screen_text("Interrupted", SCREEN_LIMIT);
    report.report_probe_check_result("no is no", done, text.trim());
    report.report_whether_as_expected("it did not run", &world.has_repo_file("asked.txt"), &false);
    Ok(())
}

fn probe_parked_approval_in_terminal(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- somebody attends, and the agent cannot ask them");
    let world = approval_prompt_probe_fixture(
        stage,
        "in-sight",
        &[ProbeHookInstallKind::User],
        model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("It waits for a person."),
            ScriptedModelAction::scripted_shell_response(COMMAND),
            ScriptedModelAction::scripted_text_response("Done."),
        ]),
    )?;
    let screen = AgentTmuxSession::start_agent_in_tmux(&world, "Do what has to be asked about.")?;
    let (shown, text) = screen.wait_for_screen_text("checkrein: awaiting_human", SCREEN_LIMIT);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    report.report_probe_check_result(
        "the screen shows the ending",
        shown,
        &line_containing_text(&text, "awaiting_human"),
    );
    report.report_whether_as_expected("it did not run", &world.has_repo_file("asked.txt"), &false);
    let ids = waiting_approval_ids(&world)?;
    report.report_whether_as_expected("one question waits", &ids.len(), &1);
    let id = ids.into_iter().next().unwrap_or_default();
    report_whether_text_contains(
        report,
        "the screen names it",
        &text,
        &format!("checkrein approve {id}"),
    );
    probe_approve_in_terminal(report, &world, &id)?;
    // Text and Enter are sent apart: sent together they would be taken for a paste.
    const GO_ON: &str = "It is approved; go on.";
    screen.press_key(GO_ON)?;
    screen.wait_for_screen_text(GO_ON, SCREEN_LIMIT);
    screen.press_key("Enter")?;
    let (done, text) = screen.wait_for_screen_text("Done.", SCREEN_LIMIT);
    report.report_probe_check_result("the same session goes on", done, text.trim());
    report.report_whether_as_expected("it ran", &world.has_repo_file("asked.txt"), &true);
    wait_until_agent_stop_answered(&world)?;
    drop(screen);
    // The parked call ended the first task, and the second prompt opened another.
    let endings: Vec<String> = world
        .tasks_listed_by_sessions_command()?
        .iter()
        .map(ending_text_from_task_json)
        .collect();
    report.report_whether_as_expected(
        "a task for each prompt, the second complete",
        &endings,
        &vec![
            "awaiting_human parked".to_owned(),
            "task_complete".to_owned(),
        ],
    );
    if let Some(task) = world.tasks_listed_by_sessions_command()?.last() {
        check_recorded_session_replay(report, &world, task)?;
    }
    Ok(())
}
