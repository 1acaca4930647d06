//! `checkrein run --agent`: starts a real agent without a person, with hooks for this run only. The
//! hooks decide and write the log. `run` reads the log and kills what has to be killed. If the
//! agent leaves without an accepted stop, `run` judges the work itself and resumes the session.

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
use checkrein_core::input::{
    AgentProcessFailureReport, Input, SessionStartKind, StancePoint, StanceUsed,
};
use checkrein_core::policy::Stance;
use checkrein_core::transition::{Reason, Transition};
use checkrein_store::{SqliteStore, Store as _};
use checkrein_verifiers::private_file::{create_private_temp_folder, write_private_file};
use checkrein_verifiers::process::ProcessExit;

use super::agent_process::AgentProcess;
use super::agent_view::LiveAgentProgressDisplay;
use super::session_monitor::{
    KeepOrKillAgentProcess, ProcessWatchResult, WrappedAgentSessionMonitor,
    watch_process_and_kill_if_told,
};
use super::usage_totals::AgentRunUsageTotals;
use super::{
    TaskRunResult, new_unique_hex_id, protection_level_of_run, read_task_text, start_failure_text,
    state_root,
};
use crate::args::RunArgs;
use crate::commands::{engine, hook, lookup};
use crate::confine::relay_server::RelayedHookServer;
use crate::confine::{self, PreparedAgentSandbox};
use crate::locate::ProjectLocation;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::progress::RunningChecksView;
use crate::ui::style::TextStyle;
use crate::{notify, off, programs, signals};

/// Told to a person if the tree is no longer the one that was accepted.
const LATE_EDIT_NOTICE: &str =
    "checkrein: files changed after the agent's last stop; its work is judged again";

/// The agent to run, its task, and its options.
pub(super) struct AgentRunPlan {
    adapter: &'static dyn Adapter,
    headless: &'static dyn HeadlessAgent,
    program: PathBuf,
    task: String,
    extra: Vec<String>,
    attempts: Option<u32>,
    profile: Option<String>,
    resume: Option<SessionId>,
}

/// Results that only a run of a real agent has.
pub(crate) struct AgentRunResultDetails {
    pub(crate) agent: &'static str,
    pub(crate) hooks_fired: bool,
    pub(crate) message: Option<String>,
    pub(crate) usage: AgentRunUsageTotals,
}

impl AgentRunPlan {
    pub(super) fn agent_run_plan_from_args(
        args: &RunArgs,
        located: &ProjectLocation,
    ) -> Result<Self, CommandError> {
        // --resume names a task of the store. Its row says which agent the session belongs to.
        let earlier = args
            .resume
            .as_deref()
            .map(|id| {
                let store = SqliteStore::open_store_read_only(&located.place.state)?;
                lookup::find_task(&store, Some(id))
            })
            .transpose()?;
        let name = match (&args.agent, &earlier) {
            (Some(name), Some(row)) if row.agent.as_str() != name => {
                return Err(CommandError::usage_error(
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
            return Err(unknown_agent_error(&name, earlier.is_some()));
        };
        let Some(task) = read_task_text(args)? else {
            return Err(CommandError::usage_error(
                "there is no task",
                format!("checkrein run --agent {name} \"fix the failing tests\""),
            ));
        };
        // Launch plans are text, so an argument that is not UTF-8 cannot be handed on.
        let extra = args
            .command
            .iter()
            .map(|word| word.to_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                CommandError::usage_error(
                    "an argument for the agent is not UTF-8",
                    "write it otherwise",
                )
            })?;
        // An option that `run` sets itself (session, output format) would be given twice, and the
        // output could not be read any more.
        if let Some(word) = headless.argument_conflicting_with_run(&extra) {
            return Err(CommandError::usage_error(
                format!("'{word}' would get in the way of what run does with {name}"),
                "take it out; --resume and --json are options of checkrein run itself",
            ));
        }
        Ok(Self {
            adapter,
            headless,
            program: find_agent_program(headless.agent_program_name())?,
            task,
            extra,
            attempts: args.attempts,
            profile: args.profile.clone(),
            resume: earlier.map(|row| row.session),
        })
    }
}

fn unknown_agent_error(name: &str, resumed: bool) -> CommandError {
    if resumed {
        return CommandError::usage_error(
            format!("a session of '{name}' cannot be taken up by run"),
            "start its command again, with what is left to do",
        );
    }
    let known: Vec<&str> = adapters::ALL
        .iter()
        .filter(|adapter| adapter.headless_agent_if_supported().is_some())
        .map(|adapter| adapter.agent_name())
        .collect();
    CommandError::usage_error(
        format!("run cannot start '{name}'; it knows {}", known.join(", ")),
        "any other agent: checkrein run -- CMD",
    )
}

/// Finds the agent's program on PATH.
fn find_agent_program(name: &str) -> Result<PathBuf, CommandError> {
    programs::find_program_on_path(name).ok_or_else(|| {
        CommandError::usage_error(
            format!("'{name}' is not on PATH"),
            "install the agent, or put its folder on PATH",
        )
    })
}

/// Runs the agent, checks how its task stands, and judges and resumes it if it left.
pub(super) fn run_coding_agent_until_task_ends(
    located: &ProjectLocation,
    plan: &AgentRunPlan,
    confinement: Option<&PreparedAgentSandbox>,
    checks: &Arc<RunningChecksView>,
) -> Result<TaskRunResult, CommandError> {
    let store = engine::open_store(&located.place)?;
    let show = checks.clone();
    let show: Arc<dyn Fn(VerificationProgress) + Send + Sync> =
        Arc::new(move |news| show.show_check_progress(news));
    let engine = engine::build_run_engine(
        located,
        store.clone(),
        engine::policy_compiler_for_run(located, plan.attempts),
        protection_level_of_run(confinement),
        show.clone(),
    );
    // A confined agent's hooks cannot write the store, so they are judged by a relay out
    // here.
    let desk = confinement
        .map(|confinement| {
            let desk = RelayedHookServer::new(located, store.clone(), plan.attempts, true, show);
            desk.clone()
                .serve_hook_relay_in_folder(confinement.sandbox_relay_host_folder())
                .map(|()| desk)
        })
        .transpose()?;
    let mut course = ActiveAgentRun {
        located,
        plan,
        confinement,
        relay: desk,
        checks,
        engine: &engine,
        store: &store,
        session: None,
        view: LiveAgentProgressDisplay::new(checks, plan.adapter.agent_name()),
        usage: plan.usage_before_run(),
        calls: 0,
        hooks_fired: false,
        silence_reported: false,
        message: None,
        scratch: create_private_temp_folder()?,
    };
    let (transition, attempts) = course.run_agent_until_task_ends()?;
    let Some(session) = &course.session else {
        return Err(CommandError::cli_failure_error("the run has no session"));
    };
    // A session without a task yet can only be at its first one.
    let task = session
        .current_session_state()?
        .and_then(|(state, _)| state.task)
        .map_or(TaskId(1), |task| task.id);
    Ok(TaskRunResult {
        session: session.session_id().clone(),
        task,
        transition,
        attempts,
        store: store.clone(),
        agent: Some(AgentRunResultDetails {
            agent: plan.adapter.agent_name(),
            hooks_fired: course.hooks_fired,
            message: course.message,
            usage: course.usage,
        }),
        model: None,
    })
}

impl AgentRunPlan {
    /// Returns the usage before this run: an agent that reports cumulative sums is charged only for
    /// what it uses from here on.
    fn usage_before_run(&self) -> AgentRunUsageTotals {
        let before = self
            .resume
            .as_ref()
            .and_then(|id| find_transcript(self.headless, id.as_str()))
            .and_then(|file| std::fs::read(file).ok())
            .and_then(|bytes| self.headless.prior_conversation_usage(&bytes));
        before.map_or_else(
            AgentRunUsageTotals::default,
            |before: AgentTokensAndCost| AgentRunUsageTotals::new_with_earlier_usage(before),
        )
    }
}

/// Finds the file in which the agent keeps this conversation.
fn find_transcript(headless: &dyn HeadlessAgent, id: &str) -> Option<PathBuf> {
    let kept = headless.agent_transcripts_folder()?;
    let home = std::env::var_os(kept.home_variable)
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(kept.default_home)))?;
    // Codex keeps transcripts in folders by year, month and day, Claude Code by project: four
    // levels reach both.
    find_file_with_suffix(&home.join(kept.subfolder), &format!("{id}.jsonl"), 4)
}

fn find_file_with_suffix(folder: &Path, end: &str, depth: u32) -> Option<PathBuf> {
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
    folders
        .iter()
        .find_map(|folder| find_file_with_suffix(folder, end, depth))
}

/// The state of a run.
struct ActiveAgentRun<'a> {
    located: &'a ProjectLocation,
    plan: &'a AgentRunPlan,
    confinement: Option<&'a PreparedAgentSandbox>,
    /// Judges the hooks of a confined agent.
    relay: Option<Arc<RelayedHookServer>>,
    checks: &'a RunningChecksView,
    engine: &'a Engine,
    store: &'a SqliteStore,
    session: Option<Session<'a>>,
    view: LiveAgentProgressDisplay<'a>,
    usage: AgentRunUsageTotals,
    /// Tool calls in the agent's output, over all its processes.
    calls: u64,
    hooks_fired: bool,
    /// Whether a person was told that the hooks did not fire.
    silence_reported: bool,
    message: Option<String>,
    scratch: tempfile::TempDir,
}

/// How one process of the agent ended, and what it reported.
struct AgentProcessOutcome {
    watched: ProcessWatchResult,
    facts: AgentOutputSummary,
    stderr: String,
}

impl<'a> ActiveAgentRun<'a> {
    fn run_agent_until_task_ends(&mut self) -> Result<(Transition, u32), CommandError> {
        let plan = self.plan;
        // The session: resumed, opened under an id of ours, or named by the agent once it runs.
        match &plan.resume {
            Some(id) => {
                self.open_agent_session_and_task(id.clone(), SessionStartKind::Resume)?;
                self.refuse_session_not_begun_by_run()?;
            }
            None if plan.headless.agent_accepts_our_session_id() => {
                self.open_agent_session_and_task(
                    SessionId::new(random_uuid()),
                    SessionStartKind::Startup,
                )?;
            }
            // The agent chooses the id, which is known as soon as its output says it.
            None => {}
        }
        // The rounds: run the agent, judge what it left, and hand the feedback to its next
        // process.
        let mut words = plan.task.clone();
        let mut taken_up = plan.resume.is_some();
        let mut attempts = 0;
        loop {
            attempts += 1;
            // Only events after this one show whether the hooks of the next process fired.
            let seen = self.last_event_seq();
            let went = match self.start_agent_process(&words, taken_up)? {
                Ok(program) => self.watch_agent_process(program)?,
                Err(what) => {
                    return Ok((
                        self.record_agent_program_failure(None, what, None)?,
                        attempts,
                    ));
                }
            };
            self.calls += went.facts.calls;
            self.usage.add_agent_process_usage(went.facts.usage);
            // A process that ended without a message leaves the one of an earlier process standing.
            self.message = went.facts.message.clone().or(self.message.take());
            let decided = self.decide_after_agent_process(went, seen)?;
            match decided {
                RunEndedOrSentBack::Ended(transition) => return Ok((transition, attempts)),
                RunEndedOrSentBack::SentBack(text) => {
                    self.checks.print_above_progress(&text);
                    words = text;
                    taken_up = true;
                }
            }
        }
    }

    /// Opens the session under the agent's id, and its task.
    fn open_agent_session_and_task(
        &mut self,
        id: SessionId,
        how: SessionStartKind,
    ) -> Result<(), CommandError> {
        // The relay takes an unknown session that has events for somebody else's. This one gets
        // its first events below, so it is allowed before them.
        if let Some(desk) = &self.relay {
            desk.add_allowed_relay_session(&id);
        }
        let (session, warnings) =
            self.engine
                .begin_or_resume_session_by_id(self.plan.adapter.agent_name(), id, how)?;
        for warning in &warnings {
            self.checks
                .print_above_progress(&format!("checkrein: {warning}"));
        }
        session.prompt(&self.plan.task)?;
        self.session = Some(session);
        Ok(())
    }

    /// Refuses a session that `run` did not begin: it would take our feedback for new tasks, and
    /// never end.
    fn refuse_session_not_begun_by_run(&self) -> Result<(), CommandError> {
        let policy = self
            .opened_session()
            .ok()
            .map(Session::current_session_state)
            .transpose()?
            .flatten();
        // Policies that `run` seals have `single_task` set; those that hooks seal have not.
        if policy.is_some_and(|(_, policy)| policy.single_task) {
            return Ok(());
        }
        Err(CommandError::usage_error(
            "that session was not begun by checkrein run --agent",
            "go on with it in the agent itself; its hooks are at work there",
        ))
    }

    fn opened_session(&self) -> Result<&Session<'a>, CommandError> {
        self.session
            .as_ref()
            .ok_or_else(|| CommandError::cli_failure_error("the agent has not begun a session"))
    }

    /// Opens the session if there is none, under an id of our own if the agent gave none.
    fn open_session_if_none(&mut self, id: Option<&str>) -> Result<(), CommandError> {
        if self.session.is_none() {
            let id = id.map_or_else(new_unique_hex_id, str::to_owned);
            self.open_agent_session_and_task(SessionId::new(id), SessionStartKind::Startup)?;
        }
        Ok(())
    }

    /// Starts the agent. The inner error says why it cannot be started.
    fn start_agent_process(
        &self,
        words: &str,
        taken_up: bool,
    ) -> Result<Result<AgentProcess, String>, CommandError> {
        let plan = self.plan;
        // The folder that holds the agent's settings, as seen from here and as the agent sees it.
        let (folder, seen) = match self.confinement {
            Some(confinement) => (
                confinement.sandbox_relay_host_folder(),
                confinement.relay_folder_in_sandbox(),
            ),
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
        // The hooks must write into the store that this run watches, whatever else is configured.
        let state = state_root(self.located);
        let mut arguments = vec![
            "--source".to_owned(),
            hook::RUN_SOURCE.to_owned(),
            "--state".to_owned(),
            state.to_string_lossy().into_owned(),
        ];
        if let Some(profile) = &plan.profile {
            arguments.extend(["--profile".to_owned(), profile.clone()]);
        }
        // A hook may be the first to seal the session, and must seal it with the same attempts.
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
        let mut command = confine::confined_command(self.confinement, plan.program.as_os_str());
        // By RUN_VARIABLE a hook of another entry knows that this session has exactly one task.
        command
            .args(&launched.arguments)
            .env("CHECKREIN_STATE", &state)
            .env(hook::RUN_VARIABLE, "1");
        let started = AgentProcess::spawn_with_task_on_stdin(
            command,
            words,
            plan.headless.agent_output_reader(),
        );
        Ok(started.map_err(|error| start_failure_text(&plan.program.to_string_lossy(), &error)))
    }

    fn watch_agent_process(
        &mut self,
        mut program: AgentProcess,
    ) -> Result<AgentProcessOutcome, CommandError> {
        let mut eye = WrappedAgentSessionMonitor::default();
        self.view.start_agent_spinner();
        // The receiver is borrowed on its own while the closures share the program; a dead
        // channel stands in for it.
        let ended = std::mem::replace(&mut program.ended, std::sync::mpsc::channel().1);
        let shared = std::cell::RefCell::new(&mut program);
        let watched = watch_process_and_kill_if_told(
            &ended,
            &mut || shared.borrow_mut().kill_process_tree(),
            &mut || {
                let (said, id) = {
                    let program = shared.borrow();
                    (
                        program.take_new_agent_output(),
                        program.agent_output_summary().session,
                    )
                };
                said.iter()
                    .for_each(|said| self.view.show_agent_output(said));
                // An agent that chooses its id itself says it in its output. Until then there is no
                // session to watch.
                if id.is_some() {
                    self.open_session_if_none(id.as_deref())?;
                }
                let Some(session) = &self.session else {
                    return Ok(KeepOrKillAgentProcess::KeepRunning);
                };
                let (look, seen) = eye.check_whether_to_kill_agent(session)?;
                if let Some((state, _)) = &seen {
                    self.view.show_session_progress(state);
                }
                Ok(look)
            },
        )?;
        let (facts, said, stderr) = program.collect_final_agent_output();
        said.iter()
            .for_each(|said| self.view.show_agent_output(said));
        self.view.clear_agent_spinner();
        // An agent that left before it said an id gets one of ours, so that its ending can be
        // recorded.
        self.open_session_if_none(facts.session.as_deref())?;
        Ok(AgentProcessOutcome {
            watched,
            facts,
            stderr,
        })
    }

    /// Decides how the task stands after a process of the agent.
    fn decide_after_agent_process(
        &mut self,
        went: AgentProcessOutcome,
        seen: EventSeq,
    ) -> Result<RunEndedOrSentBack, CommandError> {
        let AgentProcessOutcome {
            watched,
            facts,
            stderr,
        } = went;
        self.warn_if_hooks_never_fired(seen, &facts)?;
        // The watch itself may have the answer already.
        let status = match watched {
            ProcessWatchResult::Interrupted => return self.record_interrupt(),
            ProcessWatchResult::TaskEnded(decided) => {
                return Ok(RunEndedOrSentBack::run_end_or_send_back_of_decision(
                    *decided,
                ));
            }
            // Its stop had been accepted: that we had to end it is no failure of the agent.
            ProcessWatchResult::Lingered => ProcessExit::Exited(0),
            ProcessWatchResult::Ended(status) => status,
        };
        let session = self.opened_session()?;
        let state = session.current_session_state()?.map(|(state, _)| state);
        // A hook may have ended the task while the process was still alive.
        if let Some(state) = &state {
            let ended = state.task.as_ref().and_then(|task| task.ended.clone());
            if let Some(transition) = ended {
                let passed = transition.reason == Reason::TaskComplete;
                // What the agent left running can change the tree between the accepted stop and the
                // end of the process tree. Such an acceptance is judged anew, as a stop that nobody
                // answered.
                if !passed
                    || signals::is_process_cancelled()
                    || session.is_acceptance_still_valid()?
                {
                    return Ok(RunEndedOrSentBack::Ended(transition));
                }
                self.checks.print_above_progress(LATE_EDIT_NOTICE);
            }
        }
        // Work in another conversation is not in this session's log, so it cannot be judged here.
        if let Some(strange) = facts
            .session
            .as_deref()
            .filter(|id| *id != session.session_id().as_str())
        {
            let what = format!("the agent began another conversation, {strange}");
            return Ok(RunEndedOrSentBack::Ended(
                self.record_agent_program_failure(None, what, None)?,
            ));
        }
        // How the agent says that it ended; without a word, its exit status.
        let over = match facts.ending {
            Some(ReportedAgentEnding::Interrupted(_)) => return self.record_interrupt(),
            Some(ReportedAgentEnding::Claimed) => None,
            Some(ReportedAgentEnding::Final(transition)) => Some(transition),
            // An agent that got something done may succeed the next time.
            Some(ReportedAgentEnding::Failed(_)) if facts.calls > 0 => None,
            Some(ReportedAgentEnding::Failed(transition)) => Some(transition),
            None if status == ProcessExit::Exited(0) || facts.calls > 0 => None,
            None => Some(Transition {
                native_reason: Some(process_exit_text(status)),
                ..Transition::new(Reason::Error, "agent")
            }),
        };
        if let Some(over) = over.as_ref().filter(|over| over.reason == Reason::Error)
            && self.calls == 0
        {
            // The agent never began to work, so there is nothing to judge.
            let what = self.agent_failure_text(status, over, &stderr);
            let native = over.native_reason.clone();
            return Ok(RunEndedOrSentBack::Ended(
                self.record_agent_program_failure(
                    exit_code_from_exit_status(status),
                    what,
                    native,
                )?,
            ));
        }
        // Switched off: the exit is let through by a recorded stance (law 6).
        if let Some(off) = off::active_off_period(&self.located.place.state) {
            self.checks.print_above_progress(&off.off_summary_line());
            let stand_in = off.stance_used_input(ScopeId::main_scope());
            return Ok(RunEndedOrSentBack::run_end_or_send_back_of_decision(
                self.opened_session()?.submit_agent_event(stand_in)?,
            ));
        }
        let message = facts.message.unwrap_or_default();
        let answer = self.opened_session()?.report_agent_exit(&message, over);
        // Ctrl-C cancels the checks of this stop. The error is the interrupt, no failure of ours.
        if answer.is_err() && signals::is_process_cancelled() {
            return self.record_interrupt();
        }
        let (_, decided) = answer?;
        notify::notify_person_of_parked_approval(&self.located.place.state, &decided);
        // The feedback is printed in full by the caller, so the view must not announce the same
        // refusal.
        self.view.mark_stop_refusals_printed(&decided.state);
        Ok(RunEndedOrSentBack::run_end_or_send_back_of_decision(
            decided,
        ))
    }

    fn record_interrupt(&self) -> Result<RunEndedOrSentBack, CommandError> {
        Ok(RunEndedOrSentBack::run_end_or_send_back_of_decision(
            self.opened_session()?
                .submit_agent_event(Input::Interrupted)?,
        ))
    }

    /// Records that the agent's program failed.
    fn record_agent_program_failure(
        &mut self,
        exit_code: Option<i32>,
        what: String,
        native_reason: Option<String>,
    ) -> Result<Transition, CommandError> {
        // A program that did not start has no session yet. Its failure is recorded in one all the
        // same.
        self.open_session_if_none(None)?;
        self.checks
            .print_above_progress(&format!("checkrein: {what}"));
        let failed = Input::ProcessFailed(AgentProcessFailureReport {
            exit_code,
            what,
            native_reason,
        });
        let decided = self.opened_session()?.submit_agent_event(failed)?;
        Ok(decided
            .task_transition()
            .unwrap_or_else(|| Transition::new(Reason::Error, "agent")))
    }

    /// Says why an agent that did nothing ended; its own last words explain it best.
    fn agent_failure_text(&self, status: ProcessExit, over: &Transition, stderr: &str) -> String {
        let name = self.plan.headless.agent_program_name();
        let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
        let said = lines
            .clone()
            .find(|line| line.to_lowercase().starts_with("error"))
            .or_else(|| lines.next_back());
        match (&over.native_reason, said) {
            (Some(native), None) => format!("{name} failed: {native}"),
            (_, Some(said)) => format!("{name} failed ({}): {said}", process_exit_text(status)),
            (None, None) => format!("{name} failed: {}", process_exit_text(status)),
        }
    }

    /// The number of the last event in the log.
    fn last_event_seq(&self) -> EventSeq {
        let state = self
            .session
            .as_ref()
            .and_then(|session| session.current_session_state().ok());
        state.flatten().map_or(EventSeq(0), |(state, _)| state.last)
    }

    /// Warns if hooks never fired, loudly and in the log: then nobody judged a tool call.
    fn warn_if_hooks_never_fired(
        &mut self,
        seen: EventSeq,
        facts: &AgentOutputSummary,
    ) -> Result<(), CommandError> {
        let session = self.opened_session()?;
        let fired = self
            .store
            .events_after(session.session_id(), seen)?
            .iter()
            .filter_map(|raw| event::decode_event(&raw.payload).ok())
            .any(|event| match event {
                Event::Input(stamped) => stamped.source.as_str() == hook::RUN_SOURCE,
                // An event that another installed entry delivered first is logged as a repeat. The
                // hook of this run has fired all the same.
                Event::Repeated { source, .. } => source.as_str() == hook::RUN_SOURCE,
                _ => false,
            });
        self.hooks_fired |= fired;
        // An agent that did not begin a session had no reason to call hooks.
        if fired || self.silence_reported || facts.session.is_none() {
            return Ok(());
        }
        self.silence_reported = true;
        let why = format!(
            "the hooks handed to {} never fired: no tool call was judged, and stops are judged by run only",
            self.plan.headless.agent_program_name()
        );
        let line = format!("checkrein: {why}. See which settings switch hooks off.");
        self.checks
            .print_above_progress(StyledLine::line_from_styled_text(TextStyle::Bad, &line));
        // All tool calls went ahead unjudged. That is a stance, and is recorded as one (law 6).
        self.opened_session()?
            .submit_agent_event(Input::StanceUsed(StanceUsed {
                scope: ScopeId::main_scope(),
                at: StancePoint::Tool,
                stance: Stance::Allow,
                why,
            }))?;
        Ok(())
    }
}

/// What follows from a decision: the end of the run, or another process with this feedback.
enum RunEndedOrSentBack {
    Ended(Transition),
    SentBack(String),
}

impl RunEndedOrSentBack {
    fn run_end_or_send_back_of_decision(decided: DeliveryOutcome) -> Self {
        match &decided.decision {
            Decision::Stop(StopDecision::Continue { .. }) => {
                RunEndedOrSentBack::SentBack(decided.feedback_text.unwrap_or_default())
            }
            _ => RunEndedOrSentBack::Ended(
                decided
                    .task_transition()
                    .unwrap_or_else(|| Transition::new(Reason::Error, "checkrein")),
            ),
        }
    }
}

fn process_exit_text(status: ProcessExit) -> String {
    match status {
        ProcessExit::Exited(code) => format!("exit status {code}"),
        ProcessExit::Signalled(signal) => format!("signal {signal}"),
        ProcessExit::Lost => "lost sight of".to_owned(),
    }
}

fn exit_code_from_exit_status(status: ProcessExit) -> Option<i32> {
    match status {
        ProcessExit::Exited(code) => Some(code),
        ProcessExit::Signalled(_) | ProcessExit::Lost => None,
    }
}

/// Returns a random id in the form of a UUID, which Claude Code demands.
fn random_uuid() -> String {
    let hex: Vec<char> = new_unique_hex_id().chars().collect();
    let part = |from: usize, to: usize| hex.iter().take(to).skip(from).collect::<String>();
    // The fixed 4 and 8 mark version and variant of a random UUID.
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}
