//! Lists the scenarios and holds what they share. A new scenario takes one file and one line in
//! [`CASES`].

mod both;
mod colleague;
mod confine;
mod deny;
mod detector;
mod doctor;
mod documented;
mod first_hour;
mod fixes;
mod gone;
mod judge;
mod killed;
mod long;
mod loops;
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

use checkrein_scripted::output_tokens_of_nth_response;
use serde_json::Value;

use super::report::ProbeCaseCheckCounts;
use super::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProgramResult, ending_text_from_task_json,
    numeric_field_of_task,
};

/// One scenario.
pub(super) struct AgentProbeCase {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Agents that can play it.
    pub(super) agents: &'static [&'static str],
    pub(super) run: fn(&ProbeCaseEnvironment<'_>, &mut ProbeCaseCheckCounts) -> Result<()>,
}

const BOTH: &[&str] = &["claude-code", "codex"];
const CLAUDE_CODE: &[&str] = &["claude-code"];

/// All scenarios, in the order in which they run.
pub(super) const CASES: &[AgentProbeCase] = &[
    deny::CASE,
    doctor::CASE,
    documented::CASE,
    first_hour::CASE,
    fixes::CASE,
    judge::CASE,
    long::CASE,
    loops::CASE,
    detector::CASE,
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

/// A rules file that forbids one command, for the scenarios that test denials.
const RULES: &str = "prefix_rule(\n    pattern = [\"echo\", \"FORBIDDEN_MARKER\"],\n    decision = \"forbidden\",\n    justification = \"JUSTIFIED: the marker is off limits here\",\n)\n";
const JUSTIFICATION: &str = "JUSTIFIED: the marker is off limits here";

/// Returns the config of a verifier that appends a line to a file beside the repo at each run.
fn config_of_run_counting_verifier(runs: &std::path::Path, check: &str) -> String {
    // The file is outside the repo: inside, each run would change the tree that is verified.
    let run = format!("echo ran >> '{}'; {check}", runs.display());
    tests_verifier_config_text(&run)
}

fn tests_verifier_config_text(run: &str) -> String {
    // The JSON form of a string is a valid TOML string as well.
    format!(
        "[[verifier]]\nname = \"tests\"\nrun = {}\n",
        Value::from(run)
    )
}

/// Checks that a headless agent ended with status 0, and notes which other hosts it tried.
fn check_agent_ended_cleanly(
    report: &mut ProbeCaseCheckCounts,
    world: &ProbeCaseFixture<'_>,
    ran: &ProgramResult,
) {
    let trouble = format!("status {:?}\n{}", ran.status, ran.stderr);
    let seen = if ran.status == Some(0) {
        "status 0"
    } else {
        trouble.as_str()
    };
    report.report_probe_check_result(
        "the agent's process ends by itself, status 0",
        ran.status == Some(0),
        seen,
    );
    // This is a note and no check: an agent may try whatever host it likes, and all were refused.
    let outside = world.model.model_request_log().refused_hosts.clone();
    if !outside.is_empty() {
        report.print_probe_case_note(&format!(
            "hosts it tried outside loopback, all refused: {}",
            outside.join(", ")
        ));
    }
}

/// Checks that exactly one task is recorded and that it ended as wanted. Returns the task.
fn check_single_task_ended_as(
    report: &mut ProbeCaseCheckCounts,
    world: &ProbeCaseFixture<'_>,
    wanted: &str,
) -> Result<Value> {
    let tasks = world.tasks_listed_by_sessions_command()?;
    report.report_whether_as_expected("sessions --json lists one task", &tasks.len(), &1);
    let task = tasks.into_iter().next().unwrap_or_default();
    let seen = ending_text_from_task_json(&task);
    report.report_probe_check_result(&format!("it ends {wanted}"), seen == wanted, &seen);
    Ok(task)
}

/// Checks that a replay of the task's session gives the recorded events again.
fn check_recorded_session_replay(
    report: &mut ProbeCaseCheckCounts,
    world: &ProbeCaseFixture<'_>,
    task: &Value,
) -> Result<()> {
    let session = task
        .get("session")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let replayed = world.run_checkrein(&["replay", session])?;
    let all = format!("{}{}", replayed.stdout, replayed.stderr);
    report.report_probe_check_result(
        "replay comes out the same",
        replayed.status == Some(0),
        &all,
    );
    Ok(())
}

/// Compares the recorded output tokens with what the scripted model reported, sub-agents included.
fn check_task_tokens_match_model(
    report: &mut ProbeCaseCheckCounts,
    world: &ProbeCaseFixture<'_>,
    task: &Value,
) {
    let (asked, said) = {
        let seen = world.model.model_request_log();
        (seen.requests.len(), seen.tokens)
    };
    let recorded = numeric_field_of_task(task, "output_tokens");
    let last = output_tokens_of_nth_response(asked.saturating_sub(1));
    // A transcript may lag behind the very message that triggered the hook, so that one may be
    // missing. Any other difference is a fault.
    let behind = recorded.and_then(|recorded| said.checked_sub(recorded));
    let what = match behind {
        Some(0) => "the tokens are the script's, the last message included",
        _ => "the tokens are the script's, the last message at most missing",
    };
    let seen = format!("{recorded:?} recorded, {said} scripted, the last message {last}");
    report.report_probe_check_result(what, behind == Some(0) || behind == Some(last), &seen);
}

/// Returns the first line that contains the needle, or the whole text if none does.
fn line_containing_text(text: &str, needle: &str) -> String {
    text.lines()
        .find(|line| line.contains(needle))
        .unwrap_or(text)
        .to_owned()
}

/// Checks that a text contains the needle, and shows the line.
fn report_whether_text_contains(
    report: &mut ProbeCaseCheckCounts,
    what: &str,
    text: &str,
    needle: &str,
) {
    report.report_probe_check_result(
        what,
        text.contains(needle),
        &line_containing_text(text, needle),
    );
}
