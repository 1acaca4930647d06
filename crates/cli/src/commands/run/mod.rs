//! `checkrein run`: lets an agent work until its work is verified, or until going on is not worth
//! it. The agent is a command whose exit status is its claim ([`command`]), a real agent whose
//! hooks decide ([`agent`]), or a model with tools of our own ([`model`]). `run` terminates the
//! agent's whole process tree.

mod agent;
mod agent_process;
mod agent_view;
mod autopilot;
pub(crate) mod command;
mod model;
mod model_view;
mod session_monitor;
mod usage_totals;

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::sync::Arc;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{SessionId, TaskId};
use checkrein_core::transition::{Reason, Transition};
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::output_files::register_stdout_stderr_files;
use checkrein_store::{SqliteStore, Store as _};
use serde_json::json;

use crate::args::RunArgs;
use crate::commands::{check, lookup};
use crate::confine::{self, PreparedAgentSandbox, relay_server};
use crate::locate::{self, ProjectLocation};
use crate::ui::errors::CommandError;
use crate::ui::explanations;
use crate::ui::line::StyledLine;
use crate::ui::progress::RunningChecksView;
use crate::ui::style::reason_paint;
use crate::{exit_code, session_location, signals, ui};

/// Bytes of a task that are read from stdin at most.
const MAX_TASK: u64 = 1024 * 1024;

pub(crate) fn run_run_command(args: &RunArgs) -> Result<ExitCode, CommandError> {
    signals::install_signal_handlers();
    let located =
        locate::locate_project_with_profile(&std::env::current_dir()?, args.profile.as_deref());
    if args.attempts == Some(0) {
        return Err(CommandError::usage_error(
            "--attempts must be 1 or more",
            "leave it out for the config's",
        ));
    }
    let located =
        session_location::project_location_for_new_session(located, &SessionId::new("run"))?;
    let state = state_root(&located);
    // A run that was killed cannot clean up after itself, so the next one does.
    confine::clean_up_killed_sandbox_runs(&state);
    // Held to the end: while it lives, the hooks inside this run know which files our output
    // goes to, and do not count them as changes of the tree.
    let _printed = register_stdout_stderr_files(&located.place.state);
    // A mistake in the config is reported by the code that needs the policy.
    let policy = located
        .compile_policy_for_new_session(TaskDriverKind::Run)
        .ok();
    let checks = policy.as_ref().map(|compiled| &compiled.policy);
    let capped = checks.is_some_and(|policy| policy.caps.cost.is_some());
    let checks = Arc::new(RunningChecksView::new_check_progress_view(checks));
    // Only our own loop knows what it costs. Whose session --resume names is not known yet.
    if capped && !is_own_agent_loop_run(args) && args.resume.is_none() {
        checks.print_above_progress("checkrein: caps.cost_usd is not applied here: nobody tells what this agent costs while it works");
    }
    let outcome = dispatch_checkrein_run(args, &located, &checks);
    // Cleared before the error is passed on, or the message would be printed into the line.
    checks.clear_progress_line();
    let outcome = outcome?;
    if args.json {
        ui::print_json(&run_result_json(&outcome));
    } else {
        let ending = &outcome.transition;
        ui::print_line_to_stdout(StyledLine::line_from_styled_text(
            reason_paint(ending.reason),
            &explanations::transition_reason_text(ending),
        ));
        if let Some(told) = &outcome.model {
            autopilot::print_goal_criterion_results(&told.criteria);
        }
    }
    let large = located.place.files_too_large_to_read();
    if !large.is_empty() {
        ui::print_wrapped_to_stderr(&explanations::large_files_text(&large));
    }
    if outcome.transition.reason != Reason::TaskComplete {
        let events = lookup::task_events(&outcome.store, &outcome.session, outcome.task)?;
        ui::print_wrapped_to_stderr(&explanations::task_ending_line(
            &outcome.transition,
            lookup::task_end_reasons(&events),
            lookup::change_holding_up_stop(&events),
            &lookup::short_task_id(&outcome.session, outcome.task),
        ));
    }
    Ok(exit_code::to_exit_code(
        outcome
            .transition
            .reason
            .run_exit_code()
            .unwrap_or(exit_code::NO),
    ))
}

fn dispatch_checkrein_run(
    args: &RunArgs,
    located: &ProjectLocation,
    checks: &Arc<RunningChecksView>,
) -> Result<TaskRunResult, CommandError> {
    // --resume alone does not say whose session it is. The model's plan looks first, and is
    // `None` for sessions of others.
    if (is_own_agent_loop_run(args) || args.resume.is_some())
        && let Some(plan) = model::ModelAgentLoopPlan::plan_from_run_args(args, located)?
    {
        model::drive_model_agent_loop(located, &plan, checks)
    } else if args.agent.is_some() || args.resume.is_some() {
        let plan = agent::AgentRunPlan::agent_run_plan_from_args(args, located)?;
        let confinement = build_agent_confinement(args, located)?;
        agent::run_coding_agent_until_task_ends(located, &plan, confinement.as_ref(), checks)
    } else {
        let mut plan = command::CommandAsAgentRunPlan::command_run_plan_from_args(args)?;
        plan.confinement = build_agent_confinement(args, located)?;
        let show = checks.clone();
        let show = Arc::new(move |progress| show.show_check_progress(progress));
        command::run_command_as_agent(
            located,
            &plan,
            &|line| checks.print_above_progress(line),
            show,
        )
    }
}

/// Whether this run uses our own loop, which knows what it costs.
fn is_own_agent_loop_run(args: &RunArgs) -> bool {
    args.model.is_some() || args.autopilot.is_some()
}

fn build_agent_confinement(
    args: &RunArgs,
    located: &ProjectLocation,
) -> Result<Option<PreparedAgentSandbox>, CommandError> {
    args.confine
        .then(|| PreparedAgentSandbox::new(located, &state_root(located)))
        .transpose()
}

/// Returns the protection level that is promised with or without confinement.
fn protection_level_of_run(confinement: Option<&PreparedAgentSandbox>) -> &'static str {
    confinement.map_or("L1", |_| relay_server::CONFINED_LEVEL)
}

/// How a run ended.
pub(crate) struct TaskRunResult {
    pub(crate) session: SessionId,
    pub(crate) task: TaskId,
    pub(crate) transition: Transition,
    pub(crate) attempts: u32,
    pub(crate) store: Arc<SqliteStore>,
    /// Results that only a run of a real agent has.
    pub(crate) agent: Option<agent::AgentRunResultDetails>,
    /// Results that only a run of a model has.
    pub(crate) model: Option<model::ModelRunDetails>,
}

/// The JSON document of `run` and `demo`.
pub(crate) fn run_result_json(outcome: &TaskRunResult) -> serde_json::Value {
    let events = outcome
        .store
        .events_after(&outcome.session, checkrein_core::ids::EventSeq(0))
        .unwrap_or_default();
    let events: Vec<serde_json::Value> = events
        .iter()
        .map(|raw| json!({ "seq": raw.seq, "kind": raw.kind }))
        .collect();
    let of_task = lookup::task_events(&outcome.store, &outcome.session, outcome.task);
    let checks = of_task.map(|events| check::latest_evidence_json(&outcome.store, &events));
    let mut document = json!({
        "schema": "checkrein/run/1",
        "transition": outcome.transition,
        "attempts": outcome.attempts,
        "session": outcome.session,
        "task": outcome.task,
        "verifiers": checks.unwrap_or_default(),
        "events": events,
    });
    if let (Some(told), Some(fields)) = (&outcome.agent, document.as_object_mut()) {
        fields.insert("agent".to_owned(), told.agent.into());
        fields.insert("hooks_fired".to_owned(), told.hooks_fired.into());
        fields.insert("message".to_owned(), told.message.clone().into());
        fields.insert("usage".to_owned(), told.usage.run_usage_report_json());
    }
    if let (Some(told), Some(fields)) = (&outcome.model, document.as_object_mut()) {
        fields.insert("model".to_owned(), told.model.clone().into());
        fields.insert("message".to_owned(), told.message.clone().into());
        fields.insert("rounds".to_owned(), told.rounds.into());
        let usage = json!({
            "input": told.usage.input,
            "cached": told.usage.cache_read,
            "written": told.usage.cache_write,
            "output": told.usage.output,
        });
        fields.insert("usage".to_owned(), usage);
        // The loop counts in millionths of a dollar.
        let cost = told.cost.map(|cost| cost as f64 / 1e6);
        fields.insert("cost_usd".to_owned(), cost.into());
        if !told.criteria.is_empty() {
            fields.insert(
                "criteria".to_owned(),
                autopilot::goal_criteria_json(&told.criteria),
            );
        }
    }
    document
}

/// Says why a program could not be started.
pub(super) fn start_failure_text(program: &str, error: &std::io::Error) -> String {
    let why = error.to_string();
    // The number says nothing that the words do not.
    let why = why.split(" (os error").next().unwrap_or_default();
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => ". Is it on PATH?",
        std::io::ErrorKind::PermissionDenied => ". Is it executable?",
        _ => "",
    };
    format!("{}'{program}': {why}{hint}", explanations::CANNOT_START)
}

/// Returns the task: from an argument, or from stdin if that is no terminal.
fn read_task_text(args: &RunArgs) -> Result<Option<String>, CommandError> {
    if let Some(text) = args.task.as_ref().or(args.text.as_ref()) {
        return Ok(Some(text.clone()).filter(|text| !text.trim().is_empty()));
    }
    let stdin = std::io::stdin();
    // At a terminal the read would wait for a person without a word.
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut text = String::new();
    stdin.lock().take(MAX_TASK).read_to_string(&mut text)?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Returns the state folder under which the hooks of this run find the same store.
fn state_root(located: &ProjectLocation) -> std::path::PathBuf {
    located
        .place
        .state
        .parent()
        .map_or_else(|| located.place.state.clone(), std::path::PathBuf::from)
}

pub(super) fn new_unique_hex_id() -> String {
    // Unique on this machine, and no secret.
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let seed = format!(
        "{now} {} {:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let mut id = Digest::hash_bytes(seed.as_bytes()).to_hex();
    id.truncate(32);
    id
}
