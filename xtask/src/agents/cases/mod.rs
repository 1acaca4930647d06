//! The scenarios. A new one is one file and one line in [`CASES`].

mod both;
mod colleague;
mod confine;
mod deny;
mod doctor;
mod documented;
mod first_hour;
mod fixes;
mod gone;
mod judge;
mod killed;
mod long;
mod mcp;
mod never;
mod patch;
mod prompt;
mod protect;
mod question;
mod quiet;
mod review;
mod run_agent;
mod shipped;
mod subagent;
mod tokens;
mod veto;

use std::io::Result;

use checkrein_scripted::scripted_output_tokens;
use serde_json::Value;

use super::report::ProbeCaseReport;
use super::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProgramResult, ending_text_from_task_json,
    task_number_field,
};

/// One scenario.
pub(super) struct AgentProbeCase {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Agents that can play it.
    pub(super) agents: &'static [&'static str],
    pub(super) run: fn(&ProbeCaseEnvironment<'_>, &mut ProbeCaseReport) -> Result<()>,
}

const BOTH: &[&str] = &["claude-code", "codex"];
const CLAUDE_CODE: &[&str] = &["claude-code"];

/// All of them.
pub(super) const CASES: &[AgentProbeCase] = &[
    deny::CASE,
    doctor::CASE,
    documented::CASE,
    first_hour::CASE,
    fixes::CASE,
    judge::CASE,
    long::CASE,
    killed::CASE,
    veto::CASE,
    mcp::CASE,
    never::CASE,
    prompt::CASE,
    patch::CASE,
    protect::CASE,
    question::CASE,
    quiet::CASE,
    tokens::CASE,
    both::CASE,
    subagent::CASE,
    run_agent::CASE,
    shipped::CASE,
    colleague::CASE,
    gone::CASE,
    review::CASE,
    confine::CASE,
];

/// The text of a rule that no scenario may get past.
const RULES: &str = "prefix_rule(\n    pattern = [\"echo\", \"FORBIDDEN_MARKER\"],\n    decision = \"forbidden\",\n    justification = \"JUSTIFIED: the marker is off limits here\",\n)\n";
const JUSTIFICATION: &str = "JUSTIFIED: the marker is off limits here";

/// A verifier that leaves a line beside the repo each time it runs.
fn config_of_run_counting_verifier(runs: &std::path::Path, check: &str) -> String {
    let run = format!("echo ran >> '{}'; {check}", runs.display());
    tests_verifier_config_text(&run)
}

fn tests_verifier_config_text(run: &str) -> String {
    format!(
        "[[verifier]]\nname = \"tests\"\nrun = {}\n",
        Value::from(run)
    )
}

/// What every headless scenario has in common.
fn check_agent_ended_cleanly(
    report: &mut ProbeCaseReport,
    world: &ProbeCaseFixture<'_>,
    ran: &ProgramResult,
) {
    let trouble = format!("status {:?}\n{}", ran.status, ran.stderr);
    let seen = if ran.status == Some(0) {
        "status 0"
    } else {
        trouble.as_str()
    };
    report.report_probe_condition(
        "the agent's process ends by itself, status 0",
        ran.status == Some(0),
        seen,
    );
    let outside = world.model.model_request_log().refused_hosts.clone();
    if !outside.is_empty() {
        report.print_case_note(&format!(
            "hosts it tried outside loopback, all refused: {}",
            outside.join(", ")
        ));
    }
}

/// The one task of a scenario, and how it has to have ended.
fn check_single_task_ended_as(
    report: &mut ProbeCaseReport,
    world: &ProbeCaseFixture<'_>,
    wanted: &str,
) -> Result<Value> {
    let tasks = world.list_recorded_probe_tasks()?;
    report.report_whether_as_expected("sessions --json lists one task", &tasks.len(), &1);
    let task = tasks.into_iter().next().unwrap_or_default();
    let seen = ending_text_from_task_json(&task);
    report.report_probe_condition(&format!("it ends {wanted}"), seen == wanted, &seen);
    Ok(task)
}

/// The recorded session, stepped again.
fn check_recorded_session_replay(
    report: &mut ProbeCaseReport,
    world: &ProbeCaseFixture<'_>,
    task: &Value,
) -> Result<()> {
    let session = task
        .get("session")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let replayed = world.run_checkrein(&["replay", session])?;
    let all = format!("{}{}", replayed.stdout, replayed.stderr);
    report.report_probe_condition(
        "replay comes out the same",
        replayed.status == Some(0),
        &all,
    );
    Ok(())
}

/// What is recorded against what the script said, the sub-agents' included.
fn check_recorded_token_counts(
    report: &mut ProbeCaseReport,
    world: &ProbeCaseFixture<'_>,
    task: &Value,
) {
    let (asked, said) = {
        let seen = world.model.model_request_log();
        (seen.requests.len(), seen.tokens)
    };
    let recorded = task_number_field(task, "output_tokens");
    let last = scripted_output_tokens(asked.saturating_sub(1));
    // A transcript may lag behind the very message that triggered the hook.
    let behind = recorded.and_then(|recorded| said.checked_sub(recorded));
    let what = match behind {
        Some(0) => "the tokens are the script's, the last message included",
        _ => "the tokens are the script's, the last message at most missing",
    };
    let seen = format!("{recorded:?} recorded, {said} scripted, the last message {last}");
    report.report_probe_condition(what, behind == Some(0) || behind == Some(last), &seen);
}

/// The line of a text that holds the needle; all of the text if none does.
fn line_containing_text(text: &str, needle: &str) -> String {
    text.lines()
        .find(|line| line.contains(needle))
        .unwrap_or(text)
        .to_owned()
}

/// A check that a text holds something; shows where.
fn report_whether_text_contains(
    report: &mut ProbeCaseReport,
    what: &str,
    text: &str,
    needle: &str,
) {
    report.report_probe_condition(
        what,
        text.contains(needle),
        &line_containing_text(text, needle),
    );
}
