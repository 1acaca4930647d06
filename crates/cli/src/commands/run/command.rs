//! `checkrein run -- CMD`: runs a command as an agent until its work is verified, or until
//! going on is not worth it. `run` owns what needs a killer: the command's whole process tree.

use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::channel;

use checkrein::{DeliveryOutcome, Session, VerificationProgress};
use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::ids::{ScopeId, TaskId};
use checkrein_core::input::{AgentProcessFailed, Input};
use checkrein_core::transition::{Reason, Transition};
use checkrein_verifiers::private_file::{create_private_temp_folder, write_private_file};
use checkrein_verifiers::process::{self, ProcessExit};
use checkrein_verifiers::withheld;

use super::seat::{Eye, Look, Watched, watch};
use super::{Outcome, level, new_id, state_root};
use crate::args::Run;
use crate::commands::engine;
use crate::confine::desk::Desk;
use crate::confine::{self, Confinement};
use crate::locate::Located;
use crate::ui::errors::CommandError;
use crate::{notify, off, signals};

/// What to run and how.
pub(crate) struct Plan {
    pub(crate) command: Vec<OsString>,
    pub(crate) task: String,
    pub(crate) any_exit: bool,
    pub(crate) attempts: Option<u32>,
    pub(crate) agent: &'static str,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) confinement: Option<Confinement>,
}

impl Plan {
    pub(super) fn of(args: &Run) -> Result<Self, CommandError> {
        if let ([], Some(word)) = (args.command.as_slice(), &args.text)
            && !word.contains(char::is_whitespace)
        {
            return Err(CommandError::usage(
                format!("'{word}' was taken for the task"),
                format!("to run it: checkrein run -- {word}"),
            ));
        }
        if args.command.is_empty() {
            return Err(CommandError::usage(
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

/// The loop: run the command, judge its claim, send it back with feedback.
pub(crate) fn drive(
    located: &Located,
    plan: &Plan,
    say: &dyn Fn(&str),
    progress: Arc<dyn Fn(VerificationProgress) + Send + Sync>,
) -> Result<Outcome, CommandError> {
    let store = engine::store(&located.place)?;
    let engine = engine::run(
        located,
        store.clone(),
        engine::seal(located, plan.attempts),
        level(plan.confinement.as_ref()),
        progress.clone(),
    );
    let (session, warnings) = engine.session(plan.agent)?;
    if let Some(confinement) = &plan.confinement {
        let desk = Desk::new(located, store.clone(), plan.attempts, false, progress);
        desk.expect(session.session_id());
        desk.open(confinement.desk())?;
    }
    for warning in &warnings {
        say(&format!("checkrein: {warning}"));
    }
    session.prompt(&plan.task)?;
    let seat = Seat { session };

    let scratch = create_private_temp_folder()?;
    let mut feedback = String::new();
    let mut attempt: u32 = 0;
    let transition = loop {
        attempt += 1;
        let ended = seat.attempt(located, plan, attempt, &feedback, scratch.path())?;
        let decided = match ended {
            AgentEnd::Claimed => match off::in_force(&located.place.state) {
                Some(off) => {
                    say(&off.words());
                    seat.session
                        .submit_agent_event(off.stand_in(ScopeId::main_scope()))?
                }
                None => match seat.session.stop("exit status 0") {
                    Err(_) if signals::cancelled() => {
                        seat.session.submit_agent_event(Input::Interrupted)?
                    }
                    other => other?.1,
                },
            },
            AgentEnd::Failed(exit_code, what) => {
                seat.session
                    .submit_agent_event(Input::ProcessFailed(AgentProcessFailed {
                        exit_code,
                        what,
                        native_reason: None,
                    }))?
            }
            AgentEnd::Interrupted => seat.session.submit_agent_event(Input::Interrupted)?,
            AgentEnd::Over(decided) => *decided,
        };
        notify::parked(&located.place.state, &decided);
        match &decided.decision {
            Decision::Stop(StopDecision::Continue { .. }) => {
                feedback = decided.feedback_text.unwrap_or_default();
                say(&feedback);
            }
            _ => {
                break decided
                    .task_transition()
                    .unwrap_or_else(|| Transition::new(Reason::Error, "checkrein"));
            }
        }
    };
    Ok(Outcome {
        session: seat.session.session_id().clone(),
        task: TaskId(1),
        transition,
        attempts: attempt,
        store,
        agent: None,
        model: None,
    })
}

/// How the agent's process came to its end.
enum AgentEnd {
    /// It says it is done.
    Claimed,
    /// It ended otherwise.
    Failed(Option<i32>, String),
    /// A person pressed Ctrl-C.
    Interrupted,
    /// The task was ended while it worked: by a hook, or by a cap.
    Over(Box<DeliveryOutcome>),
}

/// The one session of this run.
struct Seat<'a> {
    session: Session<'a>,
}

impl Seat<'_> {
    /// Runs the command once.
    fn attempt(
        &self,
        located: &Located,
        plan: &Plan,
        attempt: u32,
        feedback: &str,
        scratch: &std::path::Path,
    ) -> Result<AgentEnd, CommandError> {
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

        let fills = [
            ("{task}", plan.task.as_str().into()),
            ("{feedback}", OsString::from(feedback)),
            ("{feedback_file}", file.clone().into_os_string()),
        ];
        let mut filled = false;
        let mut words = plan
            .command
            .iter()
            .map(|word| fill(word, &fills, &mut filled));
        let program = words.next().unwrap_or_default();
        let mut command = confine::command(plan.confinement.as_ref(), &program);
        command.args(words.collect::<Vec<_>>());
        command
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .env("CHECKREIN_SESSION", self.session.session_id().as_str())
            .env("CHECKREIN_TASK", &plan.task)
            .env("CHECKREIN_FEEDBACK", feedback)
            .env("CHECKREIN_ATTEMPT", attempt.to_string())
            .env("CHECKREIN_STATE", state_root(located));
        // stdout is ours to answer on: the agent's goes with the conversation.
        command
            .stdout(Stdio::from(std::io::stderr()))
            .stderr(Stdio::inherit());
        command.stdin(if filled {
            Stdio::null()
        } else {
            Stdio::from(std::fs::File::open(&stdin)?)
        });
        let shown = program.to_string_lossy().into_owned();
        let tag = new_id();
        command.env(withheld::CHECK_VARIABLE, &tag);
        let (wait, kill) = match process::spawn_killable_process_tree(command, &tag) {
            Ok(started) => started,
            Err(error) => {
                return Ok(AgentEnd::Failed(None, super::cannot_start(&shown, &error)));
            }
        };
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            // Nobody listens any more only if we are going anyway.
            let _ = sender.send(wait.wait_for_command_end());
        });
        let mut kill = Some(kill);
        let mut kill = || {
            if let Some(kill) = kill.take() {
                kill.kill_process_tree();
            }
        };
        let mut eye = Eye::default();
        let over = watch(&receiver, &mut kill, &mut || {
            Ok(match eye.look(&self.session)?.0 {
                // Whatever a hook accepted in its session, its exit is its claim.
                Look::Lingers => Look::GoOn,
                look => look,
            })
        })?;
        Ok(match over {
            Watched::Ended(ProcessExit::Exited(0)) => AgentEnd::Claimed,
            Watched::Ended(_) if plan.any_exit => AgentEnd::Claimed,
            Watched::Ended(ProcessExit::Exited(code)) => AgentEnd::Failed(
                Some(code),
                format!(
                    "'{shown}' ended with exit status {code} (a claim of done is exit 0; --any-exit takes any)"
                ),
            ),
            Watched::Ended(ProcessExit::Signalled(signal)) => {
                AgentEnd::Failed(None, format!("'{shown}' was ended by signal {signal}"))
            }
            Watched::Ended(ProcessExit::Lost) => {
                AgentEnd::Failed(None, format!("'{shown}' was lost sight of"))
            }
            Watched::Interrupted | Watched::Lingered => AgentEnd::Interrupted,
            Watched::Over(decided) => AgentEnd::Over(decided),
        })
    }
}

fn fill(word: &OsStr, fills: &[(&str, OsString)], filled: &mut bool) -> OsString {
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
