//! `checkrein run -- CMD`: runs a command as an agent until its work is verified or going on is not
//! worth it. `run` terminates the command's whole process tree.

use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::channel;

use checkrein::{DeliveryOutcome, Session, VerificationProgress};
use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::ids::{ScopeId, TaskId};
use checkrein_core::input::{AgentProcessFailureReport, Input};
use checkrein_core::transition::{Reason, Transition};
use checkrein_verifiers::private_file::{create_private_temp_folder, write_private_file};
use checkrein_verifiers::process::{self, ProcessExit};
use checkrein_verifiers::withheld;

use super::session_monitor::{
    KeepOrKillAgentProcess, ProcessWatchResult, WrappedAgentSessionMonitor,
    watch_process_and_kill_if_told,
};
use super::{TaskRunResult, new_unique_hex_id, protection_level_of_run, state_root};
use crate::args::RunArgs;
use crate::commands::engine;
use crate::confine::relay_server::RelayedHookServer;
use crate::confine::{self, PreparedAgentSandbox};
use crate::locate::ProjectLocation;
use crate::ui::errors::CommandError;
use crate::{notify, off, signals};

/// The command to run, its task, and its options.
pub(crate) struct CommandAsAgentRunPlan {
    pub(crate) command: Vec<OsString>,
    pub(crate) task: String,
    pub(crate) any_exit: bool,
    pub(crate) attempts: Option<u32>,
    pub(crate) agent: &'static str,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) confinement: Option<PreparedAgentSandbox>,
}

impl CommandAsAgentRunPlan {
    pub(super) fn command_run_plan_from_args(args: &RunArgs) -> Result<Self, CommandError> {
        // A single word without blanks is more likely a command without its `--` than a task.
        if let ([], Some(word)) = (args.command.as_slice(), &args.text)
            && !word.contains(char::is_whitespace)
        {
            return Err(CommandError::usage_error(
                format!("'{word}' was taken for the task"),
                format!("to run it: checkrein run -- {word}"),
            ));
        }
        if args.command.is_empty() {
            return Err(CommandError::usage_error(
                "nothing to run",
                "write checkrein run -- CMD ARGS..., or checkrein run --agent claude-code \"task\"",
            ));
        }
        Ok(Self {
            command: args.command.clone(),
            task: args
                .task
                .as_ref()
                .or(args.text.as_ref())
                .cloned()
                .unwrap_or_default(),
            any_exit: args.any_exit,
            attempts: args.attempts,
            agent: "run",
            env: Vec::new(),
            confinement: None,
        })
    }
}

/// Runs the command, judges its claim, and sends it back with feedback.
pub(crate) fn run_command_as_agent(
    located: &ProjectLocation,
    plan: &CommandAsAgentRunPlan,
    say: &dyn Fn(&str),
    progress: Arc<dyn Fn(VerificationProgress) + Send + Sync>,
) -> Result<TaskRunResult, CommandError> {
    let store = engine::open_store(&located.place)?;
    let engine = engine::build_run_engine(
        located,
        store.clone(),
        engine::policy_compiler_for_run(located, plan.attempts),
        protection_level_of_run(plan.confinement.as_ref()),
        progress.clone(),
    );
    let (session, warnings) = engine.session(plan.agent)?;
    // Hooks inside the confinement are judged out here. The session has events already, so
    // the relay must be told that it is ours.
    if let Some(confinement) = &plan.confinement {
        let desk = RelayedHookServer::new(located, store.clone(), plan.attempts, false, progress);
        desk.add_allowed_relay_session(session.session_id());
        desk.serve_hook_relay_in_folder(confinement.sandbox_relay_host_folder())?;
    }
    for warning in &warnings {
        say(&format!("checkrein: {warning}"));
    }
    session.prompt(&plan.task)?;
    let seat = CommandRunSession { session };

    let scratch = create_private_temp_folder()?;
    let mut feedback = String::new();
    let mut attempt: u32 = 0;
    // Each pass runs the command once and turns the way it ended into a decision.
    let transition = loop {
        attempt += 1;
        let ended =
            seat.run_wrapped_command_once(located, plan, attempt, &feedback, scratch.path())?;
        let decided = match ended {
            // Switched off: the claim is let through by a recorded stance, and no check runs (law
            // 6).
            WrappedCommandEnd::Claimed => match off::active_off_period(&located.place.state) {
                Some(off) => {
                    say(&off.off_summary_line());
                    seat.session
                        .submit_agent_event(off.stance_used_input(ScopeId::main_scope()))?
                }
                None => match seat.session.stop("exit status 0") {
                    // Ctrl-C cancels the checks. The error is the interrupt, no failure of ours.
                    Err(_) if signals::is_process_cancelled() => {
                        seat.session.submit_agent_event(Input::Interrupted)?
                    }
                    other => other?.1,
                },
            },
            WrappedCommandEnd::Failed(exit_code, what) => seat.session.submit_agent_event(
                Input::ProcessFailed(AgentProcessFailureReport {
                    exit_code,
                    what,
                    native_reason: None,
                }),
            )?,
            WrappedCommandEnd::Interrupted => {
                seat.session.submit_agent_event(Input::Interrupted)?
            }
            WrappedCommandEnd::TaskEnded(decided) => *decided,
        };
        notify::notify_person_of_parked_approval(&located.place.state, &decided);
        match &decided.decision {
            Decision::Stop(StopDecision::Continue { .. }) => {
                feedback = decided.feedback_text.unwrap_or_default();
                say(&feedback);
            }
            // Every other decision ends the run. One without a transition is an error of ours.
            _ => {
                break decided
                    .task_transition()
                    .unwrap_or_else(|| Transition::new(Reason::Error, "checkrein"));
            }
        }
    };
    Ok(TaskRunResult {
        session: seat.session.session_id().clone(),
        task: TaskId(1),
        transition,
        attempts: attempt,
        store,
        agent: None,
        model: None,
    })
}

/// How the process of the command ended.
enum WrappedCommandEnd {
    /// It claims to be done.
    Claimed,
    /// It ended in any other way.
    Failed(Option<i32>, String),
    /// A person pressed Ctrl-C.
    Interrupted,
    /// A hook or a cap ended the task while the process worked.
    TaskEnded(Box<DeliveryOutcome>),
}

/// The one session of this run.
struct CommandRunSession<'a> {
    session: Session<'a>,
}

impl CommandRunSession<'_> {
    /// Runs the command once and says how it ended.
    fn run_wrapped_command_once(
        &self,
        located: &ProjectLocation,
        plan: &CommandAsAgentRunPlan,
        attempt: u32,
        feedback: &str,
        scratch: &std::path::Path,
    ) -> Result<WrappedCommandEnd, CommandError> {
        // Written at each attempt, so that `{feedback_file}` names a file even before there is
        // feedback.
        let file = scratch.join("feedback.txt");
        write_private_file(&file, feedback.as_bytes())?;
        let text = if feedback.is_empty() {
            plan.task.clone()
        } else if plan.task.is_empty() {
            feedback.to_owned()
        } else {
            format!("{}\n\n{feedback}", plan.task)
        };
        let stdin = scratch.join("stdin.txt");
        write_private_file(&stdin, text.as_bytes())?;

        // The task and the feedback reach the command in three ways: placeholders, variables,
        // stdin.
        let fills = [
            ("{task}", plan.task.as_str().into()),
            ("{feedback}", OsString::from(feedback)),
            ("{feedback_file}", file.clone().into_os_string()),
        ];
        let mut filled = false;
        let mut words = plan
            .command
            .iter()
            .map(|word| fill_command_placeholders(word, &fills, &mut filled));
        let program = words.next().unwrap_or_default();
        let mut command = confine::confined_command(plan.confinement.as_ref(), &program);
        command.args(words.collect::<Vec<_>>());
        command
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .env("CHECKREIN_SESSION", self.session.session_id().as_str())
            .env("CHECKREIN_TASK", &plan.task)
            .env("CHECKREIN_FEEDBACK", feedback)
            .env("CHECKREIN_ATTEMPT", attempt.to_string())
            .env("CHECKREIN_STATE", state_root(located));
        // stdout carries the result of the run, so the agent's output goes to stderr.
        command
            .stdout(Stdio::from(std::io::stderr()))
            .stderr(Stdio::inherit());
        // A command with a placeholder has its text already; on stdin it would get it twice.
        command.stdin(if filled {
            Stdio::null()
        } else {
            Stdio::from(std::fs::File::open(&stdin)?)
        });
        let shown = program.to_string_lossy().into_owned();
        // The tag in the environment marks every descendant, also one that leaves the process
        // group.
        let tag = new_unique_hex_id();
        command.env(withheld::CHECK_VARIABLE, &tag);
        let (wait, kill) = match process::spawn_killable_process_tree(command, &tag) {
            Ok(started) => started,
            // A command that cannot start is the agent's failure: it is recorded, and is no usage
            // error.
            Err(error) => {
                return Ok(WrappedCommandEnd::Failed(
                    None,
                    super::start_failure_text(&shown, &error),
                ));
            }
        };
        let (sender, receiver) = channel();
        // The wait blocks, so it has a thread of its own, and this one looks at signals and the
        // session.
        std::thread::spawn(move || {
            // There is no receiver only if the command is about to end.
            let _ = sender.send(wait.wait_for_command_end());
        });
        let mut kill = Some(kill);
        let mut kill = || {
            if let Some(kill) = kill.take() {
                kill.kill_process_tree();
            }
        };
        let mut eye = WrappedAgentSessionMonitor::default();
        let over = watch_process_and_kill_if_told(&receiver, &mut kill, &mut || {
            Ok(match eye.check_whether_to_kill_agent(&self.session)?.0 {
                // A hook may have accepted a stop, but the claim of a command is its exit.
                KeepOrKillAgentProcess::EndLingering => KeepOrKillAgentProcess::KeepRunning,
                look => look,
            })
        })?;
        Ok(match over {
            ProcessWatchResult::Ended(ProcessExit::Exited(0)) => WrappedCommandEnd::Claimed,
            ProcessWatchResult::Ended(_) if plan.any_exit => WrappedCommandEnd::Claimed,
            ProcessWatchResult::Ended(ProcessExit::Exited(code)) => WrappedCommandEnd::Failed(
                Some(code),
                format!(
                    "'{shown}' ended with exit status {code} (a claim of done is exit 0; --any-exit takes any)"
                ),
            ),
            ProcessWatchResult::Ended(ProcessExit::Signalled(signal)) => {
                WrappedCommandEnd::Failed(None, format!("'{shown}' was ended by signal {signal}"))
            }
            ProcessWatchResult::Ended(ProcessExit::Lost) => {
                WrappedCommandEnd::Failed(None, format!("'{shown}' was lost sight of"))
            }
            // `Lingered` does not occur here: the closure above never asks for it.
            ProcessWatchResult::Interrupted | ProcessWatchResult::Lingered => {
                WrappedCommandEnd::Interrupted
            }
            ProcessWatchResult::TaskEnded(decided) => WrappedCommandEnd::TaskEnded(decided),
        })
    }
}

fn fill_command_placeholders(
    word: &OsStr,
    fills: &[(&str, OsString)],
    filled: &mut bool,
) -> OsString {
    // A word that is not UTF-8 is handed on as it is, placeholders or not.
    let Some(text) = word.to_str() else {
        return word.to_owned();
    };
    let mut text = text.to_owned();
    for (name, value) in fills {
        if text.contains(name) {
            *filled = true;
            text = text.replace(name, &value.to_string_lossy());
        }
    }
    OsString::from(text)
}
