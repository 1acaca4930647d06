//! `checkrein run --model`: a small coding agent of our own, on the library's loop. Its shell and
//! its patch tool stand behind the gates, and its claim of done is judged. The conversation is
//! kept, so that a killed run resumes where it was.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use checkrein::models::{AnswerTokenUsage, ModelError, ModelRequestLimits, RemoteModel, block_on};
use checkrein::{
    AgentLoop, AgentLoopEvent, AgentLoopStartError, ApplyPatchTool, Engine, LoopResult, ShellTool,
    VerificationProgress, stored_conversation_model_and_purpose,
};
use checkrein_core::ids::SessionId;
use checkrein_runtime::{FrontEndMiddlewareStages, durable_file};
use checkrein_store::SqliteStore;

use super::autopilot::{AutopilotGoal, GoalCriterionResult};
use super::model_view::ModelRunEventPrinter;
use super::{TaskRunResult, protection_level_of_run, read_task_text};
use crate::args::RunArgs;
use crate::commands::{engine, lookup};
use crate::locate::ProjectLocation;
use crate::ui::errors::CommandError;
use crate::ui::progress::RunningChecksView;
use crate::{notify, signals};

/// Bytes of a project's own instructions that the model is told.
const MAX_INSTRUCTION_BYTES: usize = 32 * 1024;
/// A larger file is not taken for instructions.
const MAX_INSTRUCTION_FILE: u64 = 1 << 20;
/// How long Ctrl-C may take to be noticed.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Which model to ask, and for what.
pub(super) struct ModelAgentLoopPlan {
    model: RemoteModel,
    name: String,
    task: Option<String>,
    attempts: Option<u32>,
    resume: Option<SessionId>,
    goal: Option<AutopilotGoal>,
}

/// Results that only a run of a model has.
pub(crate) struct ModelRunDetails {
    pub(crate) model: String,
    pub(crate) message: String,
    pub(crate) rounds: u32,
    pub(crate) usage: AnswerTokenUsage,
    pub(crate) cost: Option<u64>,
    /// The criteria of an autopilot's goal, with what was found out about them.
    pub(crate) criteria: Vec<GoalCriterionResult>,
}

impl ModelAgentLoopPlan {
    /// Returns `None` if the session to be resumed does not belong to our own loop.
    pub(super) fn plan_from_run_args(
        args: &RunArgs,
        located: &ProjectLocation,
    ) -> Result<Option<Self>, CommandError> {
        let goal = args
            .autopilot
            .as_deref()
            .map(AutopilotGoal::read_goal_file)
            .transpose()?;
        let resume = args
            .resume
            .as_deref()
            .map(|id| session_and_model_to_resume(located, id))
            .transpose()?;
        let earlier = resume.as_ref().and_then(|(_, model)| model.clone());
        let of_goal = goal
            .as_ref()
            .and_then(|goal| goal.model_named_by_goal().map(str::to_owned));
        // The command line comes before the goal's file, and that before the resumed session's
        // model.
        let name = args.model.clone().or(of_goal).or(earlier);
        let name = match (name, &goal) {
            (Some(name), _) => name,
            (None, None) => return Ok(None),
            (None, Some(_)) => {
                return Err(CommandError::usage_error(
                    "nobody is named who works for that goal",
                    "write model = \"PROVIDER/MODEL\" into the file, or: --model PROVIDER/MODEL",
                ));
            }
        };
        // A session that another agent began has no conversation of ours to go on with.
        if let Some((session, None)) = &resume {
            return Err(CommandError::usage_error(
                format!("session {} is none of a model's", session.as_str()),
                "leave --model out",
            ));
        }
        if !args.command.is_empty() {
            return Err(CommandError::usage_error(
                "--model takes no command: the model works with tools of our own",
                format!("checkrein run --model {name} \"fix the failing tests\""),
            ));
        }
        if args.confine {
            return Err(CommandError::usage_error(
                "--confine cannot hold --model yet",
                "leave it out; or run another agent under it",
            ));
        }
        let resume = resume.map(|(session, _)| session);
        // A goal is its own task, and a resumed session needs no new words. Everything else needs
        // a task.
        let task = match (&goal, &args.task, &args.text, &resume) {
            (Some(goal), ..) => Some(goal.goal_task_prompt()),
            (None, None, None, Some(_)) => None,
            _ => read_task_text(args)?,
        };
        if task.is_none() && resume.is_none() {
            return Err(CommandError::usage_error(
                "there is no task",
                format!("checkrein run --model {name} \"fix the failing tests\""),
            ));
        }
        // The key is asked for last: mistakes on the command line are reported before a missing
        // key.
        Ok(Some(Self {
            model: open_ready_model_client(&name, located)?,
            name,
            task,
            attempts: args.attempts,
            resume,
            goal,
        }))
    }
}

/// Returns the session that a person means, and the model that it was led with.
fn session_and_model_to_resume(
    located: &ProjectLocation,
    id: &str,
) -> Result<(SessionId, Option<String>), CommandError> {
    let store = SqliteStore::open_store_read_only(&located.place.state)?;
    let session = lookup::find_task(&store, Some(id))?.session;
    let model = stored_conversation_model_and_purpose(&store, &session)?.map(|of| of.model);
    Ok((session, model))
}

/// Returns a model that can be asked: its name is valid and its key is there.
fn open_ready_model_client(
    name: &str,
    located: &ProjectLocation,
) -> Result<RemoteModel, CommandError> {
    let model = RemoteModel::new(
        name,
        &located.place.env_vars_for_model_requests(),
        ModelRequestLimits::default(),
    );
    let ready = model.and_then(|model| {
        block_on(model.ensure_api_key())?;
        Ok(model)
    });
    ready.map_err(|error: ModelError| {
        CommandError::usage_error(
            error.to_string(),
            "a model is named PROVIDER/MODEL: anthropic/..., openai/..., gemini/..., ollama/...",
        )
    })
}

/// Drives the loop to its end.
pub(super) fn drive_model_agent_loop(
    located: &ProjectLocation,
    plan: &ModelAgentLoopPlan,
    checks: &Arc<RunningChecksView>,
) -> Result<TaskRunResult, CommandError> {
    let store = engine::open_store(&located.place)?;
    let show = checks.clone();
    let show: Arc<dyn Fn(VerificationProgress) + Send + Sync> =
        Arc::new(move |news| show.show_check_progress(news));
    // Held until the end: two runs for one goal would work in one tree.
    let _alone = plan
        .goal
        .as_ref()
        .map(|goal| goal.claim_goal_for_process(&store, located))
        .transpose()?;
    let resume = match (&plan.resume, &plan.goal) {
        (None, Some(goal)) => {
            goal.resumable_goal_session(&store, located, &|line| checks.print_above_progress(line))?
        }
        (resume, _) => resume.clone(),
    };
    if resume.is_some() && plan.attempts.is_some() {
        checks.print_above_progress("checkrein: --attempts counts for a session that begins; this one keeps what it began with");
    }
    let seal = match &plan.goal {
        Some(goal) => goal.policy_compiler_for_goal(located, plan.attempts),
        None => engine::policy_compiler_for_run(located, plan.attempts),
    };
    let engine = engine::build_run_engine(
        located,
        store.clone(),
        seal,
        protection_level_of_run(None),
        show,
    );
    // build_run_engine expects an agent with hooks. Here the loop itself asks the layers.
    let engine = engine.with_middleware_stages(FrontEndMiddlewareStages::LIBRARY);
    let engine = match &plan.goal {
        Some(goal) => engine.with_guarded_files(goal.guarded_files_hasher(located)),
        None => engine,
    };
    let result = run_agent_loop(located, plan, resume, engine, checks)?;
    let criteria = match &plan.goal {
        Some(goal) => goal.goal_criterion_results(&store, &result)?,
        None => Vec::new(),
    };
    for warning in &result.warnings {
        checks.print_above_progress(&format!("checkrein: {warning}"));
    }
    Ok(TaskRunResult {
        session: result.session,
        task: result.task,
        transition: result.transition,
        attempts: result.stops,
        store,
        agent: None,
        model: Some(ModelRunDetails {
            model: plan.name.clone(),
            message: result.output,
            rounds: result.rounds,
            usage: result.usage,
            cost: result.cost,
            criteria,
        }),
    })
}

fn run_agent_loop(
    located: &ProjectLocation,
    plan: &ModelAgentLoopPlan,
    resume: Option<SessionId>,
    engine: Engine,
    checks: &Arc<RunningChecksView>,
) -> Result<LoopResult, CommandError> {
    let root = &located.place.root;
    let (talk, state) = (
        ModelRunEventPrinter::new(checks.clone(), &plan.name),
        located.place.state.clone(),
    );
    let errand = plan.goal.as_ref().map(AutopilotGoal::goal_identity_json);
    let agent = AgentLoop::new(Arc::new(plan.model.clone()))
        .with_run_purpose(errand)
        .with_system_prompt(coding_agent_system_prompt(root))
        .tool(ShellTool::shell_tool_in_workspace(located.place.clone()))
        .tool(ApplyPatchTool::patch_tool_in_workspace(
            located.place.clone(),
        ))
        .with_event_observer(move |happening| match happening {
            AgentLoopEvent::Parked(decided) => {
                notify::notify_person_of_parked_approval(&state, decided)
            }
            happening => talk.show_model_run_event(happening),
        });
    let interrupt = agent.interrupt_handle();
    // The loop blocks this thread, so another one looks for Ctrl-C until `over` is dropped.
    let (over, ends) = channel::<()>();
    let watcher = std::thread::Builder::new().spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = ends.recv_timeout(CANCEL_POLL_INTERVAL) {
            if signals::is_process_cancelled() {
                return interrupt.interrupt_agent_loops();
            }
        }
    })?;
    let result = match (resume, &plan.task) {
        // The prompt of a goal was given when its session began, and is not repeated.
        (Some(session), more) => {
            let more = more.as_deref().filter(|_| plan.goal.is_none());
            block_on(agent.resume_session_on_engine(engine, session, more))
        }
        (None, task) => {
            block_on(agent.run_task_on_engine(engine, task.as_deref().unwrap_or_default()))
        }
    };
    drop(over);
    // The watcher waits only for `over`, which was dropped above.
    let _ = watcher.join();
    result.map_err(|error| match error {
        AgentLoopStartError::Config(error) => error.into(),
        AgentLoopStartError::Runtime(error) => error.into(),
        error => CommandError::cli_failure_error(error.to_string()),
    })
}

/// Returns the system prompt, with the project's own instructions at its end.
fn coding_agent_system_prompt(root: &Path) -> String {
    let mut text = format!(
        "You are a coding agent. You work in the folder {}, with two tools: `shell` runs a command \
         there, `apply_patch` changes files.\n\
         - Look before you change, and change no more than what is asked for.\n\
         - Say that you are done by answering without a tool call. Checkrein then runs the project's \
         checks; what fails comes back to you. Run them yourself before.\n\
         - Mend the work, not its checks: tests and settings are changed only if that was asked for.\n\
         - A call that is refused says why. Do not look for a way round it; if you cannot go on \
         without it, say so and stop.\n\
         - At the end say in a few words what you did, and what you did not.\n\
         A patch for `apply_patch` is a unified diff, or has this form:\n\
         *** Begin Patch\n*** Update File: src/a.rs\n@@\n context\n-old line\n+new line\n\
         *** Add File: b.txt\n+its line\n*** Delete File: c.txt\n*** End Patch\n",
        root.display()
    );
    // A file that cannot be read, or is not a regular file, is left out.
    if let Ok(Some(rules)) =
        durable_file::read_limited_text_file(&root.join("AGENTS.md"), MAX_INSTRUCTION_FILE)
    {
        let end = rules.floor_char_boundary(MAX_INSTRUCTION_BYTES.min(rules.len()));
        let rules = rules.get(..end).unwrap_or_default();
        text.push_str("\nWhat this project says of itself (AGENTS.md):\n");
        text.push_str(rules);
    }
    text
}
