//! `checkrein run --agent`: a real agent, started without a person and with hooks for this run
//! only. Hooks decide and write the log; `run` reads it, kills what has to be killed, and if
//! the agent left without an accepted stop judges by itself and takes its session up again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein::{DeliveryOutcome, Engine, Session, VerificationProgress};
use checkrein_adapters::headless::{
    AgentLaunchRequest, AgentOutputSummary, AgentTokensAndCost, LaunchConversation,
    ReportedAgentEnding,
};
use checkrein_adapters::{self as adapters, Adapter, HeadlessAgent};
use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::event::{self, Event};
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, TaskId};
use checkrein_core::input::{AgentProcessFailed, Input, SessionStartKind, StancePoint, StanceUsed};
use checkrein_core::policy::Stance;
use checkrein_core::transition::{Reason, Transition};
use checkrein_store::{SqliteStore, Store as _};
use checkrein_verifiers::private_file::{create_private_temp_folder, write_private_file};
use checkrein_verifiers::process::ProcessExit;

use super::live::Live;
use super::program::Program;
use super::seat::{Eye, Look, Watched, watch};
use super::tally::Tally;
use super::{Outcome, cannot_start, level, new_id, state_root, task};
use crate::args::Run;
use crate::commands::{engine, hook, lookup};
use crate::confine::desk::Desk;
use crate::confine::{self, Confinement};
use crate::locate::Located;
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::progress::Checks;
use crate::ui::style::Paint;
use crate::{notify, off, programs, signals};

/// What a person is told where the tree is not the one that was accepted.
const LATE: &str = "checkrein: files changed after the agent's last stop; its work is judged again";

/// What to run and how.
pub(super) struct Plan {
    adapter: &'static dyn Adapter,
    headless: &'static dyn HeadlessAgent,
    program: PathBuf,
    task: String,
    extra: Vec<String>,
    attempts: Option<u32>,
    profile: Option<String>,
    resume: Option<SessionId>,
}

/// What only a run of a real agent knows.
pub(crate) struct Told {
    pub(crate) agent: &'static str,
    pub(crate) hooks_fired: bool,
    pub(crate) message: Option<String>,
    pub(crate) usage: Tally,
}

impl Plan {
    pub(super) fn of(args: &Run, located: &Located) -> Result<Self, CommandError> {
        let earlier = args
            .resume
            .as_deref()
            .map(|id| {
                let store = SqliteStore::open_store_read_only(&located.place.state)?;
                lookup::task(&store, Some(id))
            })
            .transpose()?;
        let name = match (&args.agent, &earlier) {
            (Some(name), Some(row)) if row.agent.as_str() != name => {
                return Err(CommandError::usage(
                    format!("that session is {}'s, not {name}'s", row.agent.as_str()),
                    "leave --agent out",
                ));
            }
            (Some(name), _) => name.clone(),
            (None, Some(row)) => row.agent.as_str().to_owned(),
            (None, None) => String::new(),
        };
        let found = adapters::find_adapter(&name)
            .and_then(|found| Some((found, found.headless_agent_if_supported()?)));
        let Some((adapter, headless)) = found else {
            return Err(unknown(&name, earlier.is_some()));
        };
        let Some(task) = task(args)? else {
            return Err(CommandError::usage(
                "there is no task",
                format!("checkrein run --agent {name} \"fix the failing tests\""),
            ));
        };
        let extra = args
            .command
            .iter()
            .map(|word| word.to_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                CommandError::usage(
                    "an argument for the agent is not UTF-8",
                    "write it otherwise",
                )
            })?;
        if let Some(word) = headless.argument_conflicting_with_run(&extra) {
            return Err(CommandError::usage(
                format!("'{word}' would get in the way of what run does with {name}"),
                "take it out; --resume and --json are options of checkrein run itself",
            ));
        }
        Ok(Self {
            adapter,
            headless,
            program: find(headless.agent_program_name())?,
            task,
            extra,
            attempts: args.attempts,
            profile: args.profile.clone(),
            resume: earlier.map(|row| row.session),
        })
    }
}

fn unknown(name: &str, resumed: bool) -> CommandError {
    if resumed {
        return CommandError::usage(
            format!("a session of '{name}' cannot be taken up by run"),
            "start its command again, with what is left to do",
        );
    }
    let known: Vec<&str> = adapters::ALL
        .iter()
        .filter(|adapter| adapter.headless_agent_if_supported().is_some())
        .map(|adapter| adapter.agent_name())
        .collect();
    CommandError::usage(
        format!("run cannot start '{name}'; it knows {}", known.join(", ")),
        "any other agent: checkrein run -- CMD",
    )
}

/// The program of this name on PATH.
fn find(name: &str) -> Result<PathBuf, CommandError> {
    programs::on_path(name).ok_or_else(|| {
        CommandError::usage(
            format!("'{name}' is not on PATH"),
            "install the agent, or put its folder on PATH",
        )
    })
}

/// The loop: run the agent, look how its task stands, judge and send it back if it left.
pub(super) fn drive(
    located: &Located,
    plan: &Plan,
    confinement: Option<&Confinement>,
    checks: &Arc<Checks>,
) -> Result<Outcome, CommandError> {
    let store = engine::store(&located.place)?;
    let show = checks.clone();
    let show: Arc<dyn Fn(VerificationProgress) + Send + Sync> =
        Arc::new(move |news| show.show(news));
    let engine = engine::run(
        located,
        store.clone(),
        engine::seal(located, plan.attempts),
        level(confinement),
        show.clone(),
    );
    let desk = confinement
        .map(|confinement| {
            let desk = Desk::new(located, store.clone(), plan.attempts, true, show);
            desk.clone().open(confinement.desk()).map(|()| desk)
        })
        .transpose()?;
    let mut course = Course {
        located,
        plan,
        confinement,
        desk,
        checks,
        engine: &engine,
        store: &store,
        session: None,
        live: Live::new(checks, plan.adapter.agent_name()),
        tally: plan.tally(),
        calls: 0,
        hooks_fired: false,
        silent: false,
        message: None,
        scratch: create_private_temp_folder()?,
    };
    let (transition, attempts) = course.go()?;
    let Some(session) = &course.session else {
        return Err(CommandError::failed("the run has no session"));
    };
    let task = session
        .current_session_state()?
        .and_then(|(state, _)| state.task)
        .map_or(TaskId(1), |task| task.id);
    Ok(Outcome {
        session: session.session_id().clone(),
        task,
        transition,
        attempts,
        store: store.clone(),
        agent: Some(Told {
            agent: plan.adapter.agent_name(),
            hooks_fired: course.hooks_fired,
            message: course.message,
            usage: course.tally,
        }),
        model: None,
    })
}

impl Plan {
    /// An agent that tells sums is charged only for what it uses from here on.
    fn tally(&self) -> Tally {
        let before = self
            .resume
            .as_ref()
            .and_then(|id| transcript(self.headless, id.as_str()))
            .and_then(|file| std::fs::read(file).ok())
            .and_then(|bytes| self.headless.prior_usage(&bytes));
        before.map_or_else(Tally::default, |before: AgentTokensAndCost| {
            Tally::since(before)
        })
    }
}

/// Where the agent keeps this conversation.
fn transcript(headless: &dyn HeadlessAgent, id: &str) -> Option<PathBuf> {
    let kept = headless.agent_transcripts_folder()?;
    let home = std::env::var_os(kept.home_variable)
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(kept.default_home)))?;
    within(&home.join(kept.subfolder), &format!("{id}.jsonl"), 4)
}

fn within(folder: &Path, end: &str, depth: u32) -> Option<PathBuf> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder).ok()?.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            folders.push(path);
        } else if path.to_string_lossy().ends_with(end) {
            return Some(path);
        }
    }
    let depth = depth.checked_sub(1)?;
    folders.iter().find_map(|folder| within(folder, end, depth))
}

/// One run on its way.
struct Course<'a> {
    located: &'a Located,
    plan: &'a Plan,
    confinement: Option<&'a Confinement>,
    /// Where its hooks are judged, if it is confined.
    desk: Option<Arc<Desk>>,
    checks: &'a Checks,
    engine: &'a Engine,
    store: &'a SqliteStore,
    session: Option<Session<'a>>,
    live: Live<'a>,
    tally: Tally,
    /// Tool calls that the agent's output showed, over all its processes.
    calls: u64,
    hooks_fired: bool,
    /// It was said that they did not.
    silent: bool,
    message: Option<String>,
    scratch: tempfile::TempDir,
}

/// How one process of the agent went.
struct Went {
    watched: Watched,
    facts: AgentOutputSummary,
    stderr: String,
}

impl<'a> Course<'a> {
    fn go(&mut self) -> Result<(Transition, u32), CommandError> {
        let plan = self.plan;
        match &plan.resume {
            Some(id) => {
                self.take_up(id.clone(), SessionStartKind::Resume)?;
                self.must_be_ours()?;
            }
            None if plan.headless.agent_accepts_our_session_id() => {
                self.take_up(SessionId::new(uuid()), SessionStartKind::Startup)?;
            }
            // It is known as soon as the agent says it.
            None => {}
        }
        let mut words = plan.task.clone();
        let mut taken_up = plan.resume.is_some();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let seen = self.last();
            let went = match self.start(&words, taken_up)? {
                Ok(program) => self.watch(program)?,
                Err(what) => return Ok((self.fail(None, what, None)?, attempts)),
            };
            self.calls += went.facts.calls;
            self.tally.add(went.facts.usage);
            self.message = went.facts.message.clone().or(self.message.take());
            let decided = self.judge(went, seen)?;
            match decided {
                Step::Ended(transition) => return Ok((transition, attempts)),
                Step::SentBack(text) => {
                    self.checks.say(&text);
                    words = text;
                    taken_up = true;
                }
            }
        }
    }

    /// The session, as the agent identifies it, and its task.
    fn take_up(&mut self, id: SessionId, how: SessionStartKind) -> Result<(), CommandError> {
        if let Some(desk) = &self.desk {
            desk.expect(&id);
        }
        let (session, warnings) =
            self.engine
                .begin_or_resume_session_by_id(self.plan.adapter.agent_name(), id, how)?;
        for warning in &warnings {
            self.checks.say(&format!("checkrein: {warning}"));
        }
        session.prompt(&self.plan.task)?;
        self.session = Some(session);
        Ok(())
    }

    /// A session that `run` did not begin would take our feedback for new tasks, and never end.
    fn must_be_ours(&self) -> Result<(), CommandError> {
        let policy = self
            .session()
            .ok()
            .map(Session::current_session_state)
            .transpose()?
            .flatten();
        if policy.is_some_and(|(_, policy)| policy.single_task) {
            return Ok(());
        }
        Err(CommandError::usage(
            "that session was not begun by checkrein run --agent",
            "go on with it in the agent itself; its hooks are at work there",
        ))
    }

    fn session(&self) -> Result<&Session<'a>, CommandError> {
        self.session
            .as_ref()
            .ok_or_else(|| CommandError::failed("the agent has not begun a session"))
    }

    /// Without an id from the agent one of our own has to do.
    fn ensure_session(&mut self, id: Option<&str>) -> Result<(), CommandError> {
        if self.session.is_none() {
            let id = id.map_or_else(new_id, str::to_owned);
            self.take_up(SessionId::new(id), SessionStartKind::Startup)?;
        }
        Ok(())
    }

    /// Starts the agent; the text says why it cannot be.
    fn start(&self, words: &str, taken_up: bool) -> Result<Result<Program, String>, CommandError> {
        let plan = self.plan;
        // A folder for what the agent reads, as it is named here and as it is for the agent.
        let (folder, seen) = match self.confinement {
            Some(confinement) => (confinement.desk(), confinement.inside()),
            None => (self.scratch.path(), self.scratch.path()),
        };
        let settings = seen.join("settings.json");
        let id = self
            .session
            .as_ref()
            .map(|session| session.session_id().as_str());
        let conversation = match id {
            Some(id) if taken_up => LaunchConversation::Resumed(id),
            id => LaunchConversation::New(id),
        };
        let ourselves = std::env::current_exe()?;
        let state = state_root(self.located);
        let mut arguments = vec![
            "--source".to_owned(),
            hook::RUN.to_owned(),
            "--state".to_owned(),
            state.to_string_lossy().into_owned(),
        ];
        if let Some(profile) = &plan.profile {
            arguments.extend(["--profile".to_owned(), profile.clone()]);
        }
        if let Some(attempts) = plan.attempts {
            arguments.extend(["--attempts".to_owned(), attempts.to_string()]);
        }
        let launched = plan.headless.launch_plan(&AgentLaunchRequest {
            conversation,
            hook: &ourselves.to_string_lossy(),
            arguments: &arguments,
            settings: &settings.to_string_lossy(),
            extra: &plan.extra,
        });
        if let Some(bytes) = &launched.settings {
            write_private_file(&folder.join("settings.json"), bytes)?;
        }
        let mut command = confine::command(self.confinement, plan.program.as_os_str());
        command
            .args(&launched.arguments)
            .env("CHECKREIN_STATE", &state)
            .env(hook::UNDER_RUN, "1");
        let started = Program::start(command, words, plan.headless.agent_output_reader());
        Ok(started.map_err(|error| cannot_start(&plan.program.to_string_lossy(), &error)))
    }

    fn watch(&mut self, mut program: Program) -> Result<Went, CommandError> {
        let mut eye = Eye::default();
        self.live.begin();
        let ended = std::mem::replace(&mut program.ended, std::sync::mpsc::channel().1);
        let shared = std::cell::RefCell::new(&mut program);
        let watched = watch(&ended, &mut || shared.borrow_mut().kill(), &mut || {
            let (said, id) = {
                let program = shared.borrow();
                (program.said(), program.facts().session)
            };
            said.iter().for_each(|said| self.live.said(said));
            if id.is_some() {
                self.ensure_session(id.as_deref())?;
            }
            let Some(session) = &self.session else {
                return Ok(Look::GoOn);
            };
            let (look, seen) = eye.look(session)?;
            if let Some((state, _)) = &seen {
                self.live.look(state);
            }
            Ok(look)
        })?;
        let (facts, said, stderr) = program.finish();
        said.iter().for_each(|said| self.live.said(said));
        self.live.end();
        self.ensure_session(facts.session.as_deref())?;
        Ok(Went {
            watched,
            facts,
            stderr,
        })
    }

    /// How the task stands after a process of the agent.
    fn judge(&mut self, went: Went, seen: EventSeq) -> Result<Step, CommandError> {
        let Went {
            watched,
            facts,
            stderr,
        } = went;
        self.look_for_hooks(seen, &facts)?;
        let status = match watched {
            Watched::Interrupted => return self.interrupted(),
            Watched::Over(decided) => return Ok(Step::of(*decided)),
            Watched::Lingered => ProcessExit::Exited(0),
            Watched::Ended(status) => status,
        };
        let session = self.session()?;
        let state = session.current_session_state()?.map(|(state, _)| state);
        if let Some(state) = &state {
            let ended = state.task.as_ref().and_then(|task| task.ended.clone());
            if let Some(transition) = ended {
                let passed = transition.reason == Reason::TaskComplete;
                if !passed || signals::cancelled() || session.is_acceptance_still_valid()? {
                    return Ok(Step::Ended(transition));
                }
                self.checks.say(LATE);
            }
        }
        if let Some(strange) = facts
            .session
            .as_deref()
            .filter(|id| *id != session.session_id().as_str())
        {
            let what = format!("the agent began another conversation, {strange}");
            return Ok(Step::Ended(self.fail(None, what, None)?));
        }
        let over = match facts.ending {
            Some(ReportedAgentEnding::Interrupted(_)) => return self.interrupted(),
            Some(ReportedAgentEnding::Claimed) => None,
            Some(ReportedAgentEnding::Final(transition)) => Some(transition),
            // It may work the next time if it got something done this time.
            Some(ReportedAgentEnding::Failed(_)) if facts.calls > 0 => None,
            Some(ReportedAgentEnding::Failed(transition)) => Some(transition),
            None if status == ProcessExit::Exited(0) || facts.calls > 0 => None,
            None => Some(Transition {
                native_reason: Some(native(status)),
                ..Transition::new(Reason::Error, "agent")
            }),
        };
        if let Some(over) = over.as_ref().filter(|over| over.reason == Reason::Error)
            && self.calls == 0
        {
            // It never came to work: nothing of it can be judged.
            let what = self.why(status, over, &stderr);
            let native = over.native_reason.clone();
            return Ok(Step::Ended(self.fail(code(status), what, native)?));
        }
        if let Some(off) = off::in_force(&self.located.place.state) {
            self.checks.say(&off.words());
            let stand_in = off.stand_in(ScopeId::main_scope());
            return Ok(Step::of(self.session()?.submit_agent_event(stand_in)?));
        }
        let message = facts.message.unwrap_or_default();
        let answer = self.session()?.report_agent_exit(&message, over);
        if answer.is_err() && signals::cancelled() {
            return self.interrupted();
        }
        let (_, decided) = answer?;
        notify::parked(&self.located.place.state, &decided);
        self.live.told(&decided.state);
        Ok(Step::of(decided))
    }

    fn interrupted(&self) -> Result<Step, CommandError> {
        Ok(Step::of(
            self.session()?.submit_agent_event(Input::Interrupted)?,
        ))
    }

    /// The agent's program failed.
    fn fail(
        &mut self,
        exit_code: Option<i32>,
        what: String,
        native_reason: Option<String>,
    ) -> Result<Transition, CommandError> {
        self.ensure_session(None)?;
        self.checks.say(&format!("checkrein: {what}"));
        let failed = Input::ProcessFailed(AgentProcessFailed {
            exit_code,
            what,
            native_reason,
        });
        let decided = self.session()?.submit_agent_event(failed)?;
        Ok(decided
            .task_transition()
            .unwrap_or_else(|| Transition::new(Reason::Error, "agent")))
    }

    /// Why an agent that did nothing ended: its own last words are the best there is.
    fn why(&self, status: ProcessExit, over: &Transition, stderr: &str) -> String {
        let name = self.plan.headless.agent_program_name();
        let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
        let said = lines
            .clone()
            .find(|line| line.to_lowercase().starts_with("error"))
            .or_else(|| lines.next_back());
        match (&over.native_reason, said) {
            (Some(native), None) => format!("{name} failed: {native}"),
            (_, Some(said)) => format!("{name} failed ({}): {said}", native(status)),
            (None, None) => format!("{name} failed: {}", native(status)),
        }
    }

    /// Where the log ends now.
    fn last(&self) -> EventSeq {
        let state = self
            .session
            .as_ref()
            .and_then(|session| session.current_session_state().ok());
        state.flatten().map_or(EventSeq(0), |(state, _)| state.last)
    }

    /// Hooks that never fire are said, loudly and in the log: then nobody judged a tool call.
    fn look_for_hooks(
        &mut self,
        seen: EventSeq,
        facts: &AgentOutputSummary,
    ) -> Result<(), CommandError> {
        let session = self.session()?;
        let fired = self
            .store
            .events_after(session.session_id(), seen)?
            .iter()
            .filter_map(|raw| event::decode_event(&raw.payload).ok())
            .any(|event| match event {
                Event::Input(stamped) => stamped.source.as_str() == hook::RUN,
                Event::Repeated { source, .. } => source.as_str() == hook::RUN,
                _ => false,
            });
        self.hooks_fired |= fired;
        // An agent that did not even begin had nothing to call hooks for.
        if fired || self.silent || facts.session.is_none() {
            return Ok(());
        }
        self.silent = true;
        let why = format!(
            "the hooks handed to {} never fired: no tool call was judged, and stops are judged by run only",
            self.plan.headless.agent_program_name()
        );
        let line = format!("checkrein: {why}. See which settings switch hooks off.");
        self.checks.say(Line::painted(Paint::Bad, &line));
        self.session()?
            .submit_agent_event(Input::StanceUsed(StanceUsed {
                scope: ScopeId::main_scope(),
                at: StancePoint::Tool,
                stance: Stance::Allow,
                why,
            }))?;
        Ok(())
    }
}

/// What is next.
enum Step {
    Ended(Transition),
    SentBack(String),
}

impl Step {
    fn of(decided: DeliveryOutcome) -> Self {
        match &decided.decision {
            Decision::Stop(StopDecision::Continue { .. }) => {
                Step::SentBack(decided.feedback_text.unwrap_or_default())
            }
            _ => Step::Ended(
                decided
                    .task_transition()
                    .unwrap_or_else(|| Transition::new(Reason::Error, "checkrein")),
            ),
        }
    }
}

fn native(status: ProcessExit) -> String {
    match status {
        ProcessExit::Exited(code) => format!("exit status {code}"),
        ProcessExit::Signalled(signal) => format!("signal {signal}"),
        ProcessExit::Lost => "lost sight of".to_owned(),
    }
}

fn code(status: ProcessExit) -> Option<i32> {
    match status {
        ProcessExit::Exited(code) => Some(code),
        ProcessExit::Signalled(_) | ProcessExit::Lost => None,
    }
}

/// A random id in the form that Claude Code wants.
fn uuid() -> String {
    let hex: Vec<char> = new_id().chars().collect();
    let part = |from: usize, to: usize| hex.iter().take(to).skip(from).collect::<String>();
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}
