//! `checkrein run -- CMD`: runs a command as an agent until its work is verified, or until
//! going on is not worth it. `run` owns what needs a killer: the command's whole process tree.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use checkrein::{Decided, Progress, Session};
use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::digest::Digest;
use checkrein_core::ids::{ScopeId, SessionId, TaskId};
use checkrein_core::input::{Input, ProcessFailed};
use checkrein_core::transition::{Reason, Transition};
use checkrein_store::{SqliteStore, Store as _};
use checkrein_verifiers::process::{self, Ended};
use checkrein_verifiers::withheld;
use serde_json::json;

use crate::args::Run;
use crate::commands::{engine, lookup};
use crate::locate::{self, Located};
use crate::off;
use crate::ui::errors::CommandError;
use crate::ui::progress::Checks;
use crate::ui::style::{On, of_reason};
use crate::ui::words;
use crate::{exit_code, signals, ui};

/// How often signals and the session are looked at while the agent works.
const TICK: Duration = Duration::from_millis(50);
/// Every so many ticks the log is asked whether a hook halted the task, or a cap is reached.
const LOOK_EVERY: u32 = 4;

pub(crate) fn run(args: &Run) -> Result<ExitCode, CommandError> {
    signals::listen();
    let located = locate::locate(&std::env::current_dir()?, None);
    if args.attempts == Some(0) {
        return Err(CommandError::usage(
            "--attempts must be 1 or more",
            "leave it out for the config's",
        ));
    }
    let plan = Plan {
        command: args.command.clone(),
        task: args.task.clone().unwrap_or_default(),
        any_exit: args.any_exit,
        attempts: args.attempts,
        agent: "run",
        env: Vec::new(),
    };
    let checks = Checks::new();
    let show = Arc::new(move |progress| checks.show(progress));
    let outcome = drive(&located, &plan, &|line| ui::say(line), show)?;
    if args.json {
        ui::json(&document(&outcome));
    } else {
        let ending = &outcome.transition;
        ui::answer(&On::Stdout.paint(of_reason(ending.reason), &words::transition(ending)));
    }
    if outcome.transition.reason != Reason::TaskComplete {
        ui::say(&words::ending_line(
            &outcome.transition,
            &lookup::short(&outcome.session, outcome.task),
        ));
    }
    Ok(exit_code::exit(
        outcome
            .transition
            .reason
            .exit_code()
            .unwrap_or(exit_code::NO),
    ))
}

/// What to run and how.
pub(crate) struct Plan {
    pub(crate) command: Vec<OsString>,
    pub(crate) task: String,
    pub(crate) any_exit: bool,
    pub(crate) attempts: Option<u32>,
    pub(crate) agent: &'static str,
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) session: SessionId,
    pub(crate) task: TaskId,
    pub(crate) transition: Transition,
    pub(crate) attempts: u32,
    pub(crate) store: Arc<SqliteStore>,
}

/// The loop: run the command, judge its claim, send it back with feedback.
pub(crate) fn drive(
    located: &Located,
    plan: &Plan,
    say: &dyn Fn(&str),
    progress: Arc<dyn Fn(Progress) + Send + Sync>,
) -> Result<Outcome, CommandError> {
    let store = engine::store(&located.place)?;
    let engine = engine::run(located, store.clone(), plan.attempts, progress);
    let (session, warnings) = engine.session(plan.agent)?;
    for warning in &warnings {
        say(&format!("checkrein: {warning}"));
    }
    session.prompt(&plan.task)?;
    let seat = Seat { session };

    let scratch = tempfile::tempdir()?;
    let mut feedback = String::new();
    let mut attempt: u32 = 0;
    let transition = loop {
        attempt += 1;
        let ended = seat.attempt(located, plan, attempt, &feedback, scratch.path())?;
        let decided = match ended {
            AgentEnd::Claimed => match off::in_force(&located.place.state) {
                Some(off) => {
                    say(&off.words());
                    seat.session.take(off.stand_in(ScopeId::main()))?
                }
                None => match seat.session.stop("exit status 0") {
                    Err(_) if signals::cancelled() => seat.session.take(Input::Interrupted)?,
                    other => other?.1,
                },
            },
            AgentEnd::Failed(exit_code, what) => seat
                .session
                .take(Input::ProcessFailed(ProcessFailed { exit_code, what }))?,
            AgentEnd::Interrupted => seat.session.take(Input::Interrupted)?,
            AgentEnd::Over(decided) => *decided,
        };
        match &decided.decision {
            Decision::Stop(StopDecision::Continue { .. }) => {
                feedback = decided.text.unwrap_or_default();
                say(&feedback);
            }
            _ => {
                break decided
                    .ending()
                    .unwrap_or_else(|| Transition::new(Reason::Error, "checkrein"));
            }
        }
    };
    Ok(Outcome {
        session: seat.session.id().clone(),
        task: TaskId(1),
        transition,
        attempts: attempt,
        store,
    })
}

/// The JSON document of `run` and `demo`.
pub(crate) fn document(outcome: &Outcome) -> serde_json::Value {
    let events = outcome
        .store
        .events(&outcome.session, checkrein_core::ids::Seq(0))
        .unwrap_or_default();
    let events: Vec<serde_json::Value> = events
        .iter()
        .map(|raw| json!({ "seq": raw.seq, "kind": raw.kind }))
        .collect();
    json!({
        "schema": "checkrein/run/1",
        "transition": outcome.transition,
        "attempts": outcome.attempts,
        "session": outcome.session,
        "events": events,
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
    Over(Box<Decided>),
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
        std::fs::write(&file, feedback)?;
        let text = if feedback.is_empty() {
            plan.task.clone()
        } else if plan.task.is_empty() {
            feedback.to_owned()
        } else {
            format!("{}\n\n{feedback}", plan.task)
        };
        let stdin = scratch.join("stdin.txt");
        std::fs::write(&stdin, &text)?;

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
        let mut command = Command::new(&program);
        command.args(words.collect::<Vec<_>>());
        command
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .env("CHECKREIN_SESSION", self.session.id().as_str())
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
        let (wait, kill) = match process::spawn(command, &tag) {
            Ok(started) => started,
            Err(error) => {
                return Ok(AgentEnd::Failed(
                    None,
                    format!("cannot start '{shown}': {error}"),
                ));
            }
        };
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            // Nobody listens any more only if we are going anyway.
            let _ = sender.send(wait.wait());
        });
        let mut kill = Some(kill);
        let over = self.watch(&receiver, &mut || {
            if let Some(kill) = kill.take() {
                kill.kill();
            }
        })?;
        Ok(match over {
            Watched::Ended(Ended::Exited(0)) => AgentEnd::Claimed,
            Watched::Ended(_) if plan.any_exit => AgentEnd::Claimed,
            Watched::Ended(Ended::Exited(code)) => AgentEnd::Failed(
                Some(code),
                format!("'{shown}' ended with exit status {code}"),
            ),
            Watched::Ended(Ended::Signalled(signal)) => {
                AgentEnd::Failed(None, format!("'{shown}' was ended by signal {signal}"))
            }
            Watched::Ended(Ended::Lost) => {
                AgentEnd::Failed(None, format!("'{shown}' was lost sight of"))
            }
            Watched::Interrupted => AgentEnd::Interrupted,
            Watched::Over(decided) => AgentEnd::Over(decided),
        })
    }

    /// Waits for the end of the command; kills it when the task is over before.
    fn watch(
        &self,
        ended: &Receiver<std::io::Result<(Ended, bool)>>,
        kill: &mut dyn FnMut(),
    ) -> Result<Watched, CommandError> {
        let mut ticks: u32 = 0;
        loop {
            match ended.recv_timeout(TICK) {
                Ok(end) => return Ok(Watched::Ended(end.map_or(Ended::Lost, |(end, _)| end))),
                Err(RecvTimeoutError::Disconnected) => return Ok(Watched::Ended(Ended::Lost)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if signals::cancelled() {
                kill();
                // Comes back once the whole tree is gone.
                let _ = ended.recv();
                return Ok(Watched::Interrupted);
            }
            ticks = ticks.wrapping_add(1);
            if ticks.is_multiple_of(LOOK_EVERY)
                && let Some(decided) = self.over()?
            {
                kill();
                let _ = ended.recv();
                return Ok(Watched::Over(Box::new(decided)));
            }
        }
    }

    /// Whether a hook halted the task, or its time is up.
    fn over(&self) -> Result<Option<Decided>, CommandError> {
        let Some((state, policy)) = self.session.peek()? else {
            return Ok(None);
        };
        let halted = state
            .task
            .as_ref()
            .is_some_and(|task| task.halted && task.ended.is_some());
        let now = checkrein_runtime::now();
        let busy = state.task.as_ref().map_or(0, |task| {
            task.totals.busy_ms + task.working_since.map_or(0, |since| now.since(since))
        });
        let late = [policy.caps.wall_clock_ms, policy.session_caps.wall_clock_ms]
            .into_iter()
            .flatten()
            .any(|cap| busy >= cap);
        if halted || late {
            return Ok(Some(self.session.take(Input::TimePassed)?));
        }
        Ok(None)
    }
}

enum Watched {
    Ended(Ended),
    Interrupted,
    Over(Box<Decided>),
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

/// The state folder under which hooks of this run find the same store.
fn state_root(located: &Located) -> PathBuf {
    located
        .place
        .state
        .parent()
        .map_or_else(|| located.place.state.clone(), PathBuf::from)
}

fn new_id() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let seed = format!(
        "{now} {} {:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let mut id = Digest::of(seed.as_bytes()).to_hex();
    id.truncate(20);
    id
}
