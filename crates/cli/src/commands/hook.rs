//! `checkrein hook AGENT`: an agent's event on stdin, its protocol on stdout. Whatever is
//! wrong (arguments, input, config, store, a panic), the agent gets an answer in its own
//! protocol, by stance, and the person a line on stderr.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use checkrein_adapters::{
    self as adapters, Adapter, AgentEvent, AgentEventKind, EnvLookup, ExpectedHookReplyKind,
    HookDecisionWithTexts, HookReply, TranscriptFile,
};
use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::ids::SourceName;
use checkrein_core::input::{Input, StancePoint, StanceUsed, TokenUsage};
use checkrein_core::policy::{Stance, StancePolicy};
use checkrein_core::tool_request::{HALTED_MESSAGE, SUBAGENT_HALTED_MESSAGE};
use checkrein_runtime::config::TaskDriver;
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, Runtime, RuntimeError, ToolFactsBuilder,
    VerificationProgress, durable_file, is_call_read_only,
};

use crate::agent_message::{self, HookMessageReadError};
use crate::args::HookArgs;
use crate::commands::{engine, lookup};
use crate::confine::relay_client::RelayClient;
use crate::confine::relay_server::RelayServer;
use crate::locate::{self, ProjectLocation, StateAndProfileArgs};
use crate::off::{self, OffPeriod};
use crate::session_location::{self, LocatedProjectWithStore};
use crate::ui::{self, explanations};
use crate::{exit_code, notify, policy_sources, signals, trust};

/// Of a transcript at most this much is read at a tool event.
const MAX_TRANSCRIPT: u64 = 256 * 1024;
/// At a stop the rest of it, up to this much.
const MAX_TRANSCRIPT_AT_STOP: u64 = 64 * 1024 * 1024;
/// How long a hook waits at a time for a store that others keep busy: less than the margin
/// before the agent's deadline.
const MAX_BUSY_WAIT: Duration = Duration::from_secs(4);
/// And while it is switched off.
const MAX_BUSY_WAIT_WHILE_OFF: Duration = Duration::from_millis(500);
/// How long a message is waited for where no deadline is said: no agent gives a hook less.
const DEFAULT_MESSAGE_WAIT: Duration = Duration::from_secs(5);
/// How long a stop waits for a transcript that lags.
const TRANSCRIPT_LAG: Duration = Duration::from_millis(300);

/// The source of hooks that `run` has handed to an agent.
pub(crate) const RUN_SOURCE: &str = "run";
/// In the environment of agents that `run` has started.
pub(crate) const RUN_VARIABLE: &str = "CHECKREIN_RUN";

/// The arguments as typed by an agent: read here without the big parser.
pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    let agent = words
        .first()
        .map(|word| word.to_string_lossy().into_owned())
        .unwrap_or_default();
    let Some(adapter) = adapters::find_adapter(&agent) else {
        let known: Vec<&str> = adapters::ALL
            .iter()
            .map(|adapter| adapter.agent_name())
            .collect();
        ui::print_wrapped_to_stderr(&format!(
            "checkrein hook: no agent is named '{agent}'; known: {}",
            known.join(", ")
        ));
        // Not 2: that would be taken for a refusal by agents we know nothing of.
        return exit_code::to_exit_code(exit_code::NO);
    };
    let parsed = parse_hook_args(agent, words.get(1..).unwrap_or_default());
    write_hook_reply(answer_hook_despite_panic(adapter, parsed, &words))
}

/// The same, when the arguments came through the big parser (`--help` was asked for).
pub(crate) fn run_hook_command(args: HookArgs) -> ExitCode {
    match adapters::find_adapter(&args.agent) {
        Some(adapter) => {
            let words = [OsString::from(&args.agent)];
            write_hook_reply(answer_hook_despite_panic(adapter, Ok(args), &words))
        }
        None => main(vec![OsString::from(args.agent)]),
    }
}

fn parse_hook_args(agent: String, words: &[OsString]) -> Result<HookArgs, String> {
    let mut args = HookArgs {
        agent,
        source: None,
        deadline: None,
        state: None,
        attempts: None,
        require_trust: false,
        profile: None,
        note: None,
    };
    let mut words = words.iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        let (flag, inline) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let mut value = || {
            inline
                .clone()
                .or_else(|| words.next())
                .ok_or_else(|| format!("{flag} needs a value"))
        };
        match flag.as_str() {
            "--source" => args.source = Some(value()?),
            "--deadline" => {
                let seconds = value()?;
                let seconds = seconds.parse().ok().filter(|seconds| *seconds > 0);
                args.deadline = Some(seconds.ok_or("--deadline takes whole seconds above 0")?);
            }
            "--attempts" => {
                let attempts = value()?.parse().ok().filter(|attempts| *attempts > 0);
                args.attempts = Some(attempts.ok_or("--attempts takes a number above 0")?);
            }
            "--note" => args.note = Some(value()?),
            "--state" => args.state = Some(PathBuf::from(value()?)),
            "--require-trust" => args.require_trust = true,
            "--profile" => args.profile = Some(value()?),
            _ => {
                return Err(format!(
                    "'{flag}' is not an argument of hook; known: --source, --deadline, --state, --require-trust, --profile"
                ));
            }
        }
    }
    Ok(args)
}

fn write_hook_reply(reply: HookReply) -> ExitCode {
    ui::write_stderr_bytes(&reply.stderr);
    ui::write_stdout_bytes(&reply.stdout);
    exit_code::to_exit_code(reply.exit_code)
}

/// A panic of ours is answered by stance as well.
fn answer_hook_despite_panic(
    adapter: &'static dyn Adapter,
    args: Result<HookArgs, String>,
    words: &[OsString],
) -> HookReply {
    with_panic_guard(adapter, |form| {
        reply_to_hook_on_stdin(adapter, args, words, form)
    })
}

fn with_panic_guard(
    adapter: &dyn Adapter,
    answer: impl FnOnce(&Cell<ExpectedHookReplyKind>) -> HookReply,
) -> HookReply {
    let form = Cell::new(ExpectedHookReplyKind::Unknown);
    catch_unwind(AssertUnwindSafe(|| answer(&form))).unwrap_or_else(|_| {
        let why = "it failed in a way it should not; please report the lines above";
        reply_by_stance(adapter, form.get(), None, why, StancePolicy::default())
    })
}

/// A message that a hook inside of a confinement has handed out.
#[cfg_attr(
    not(unix),
    expect(dead_code, reason = "there are no confinements there")
)]
pub(crate) fn answer_relayed_hook_event(
    desk: &RelayServer,
    words: &[String],
    bytes: &[u8],
    env: EnvLookup<'_>,
) -> HookReply {
    let agent = words.first().cloned().unwrap_or_default();
    let Some(adapter) = adapters::find_adapter(&agent) else {
        return HookReply {
            exit_code: exit_code::NO,
            ..HookReply::empty_reply()
        };
    };
    let rest: Vec<OsString> = words.iter().skip(1).map(OsString::from).collect();
    let args = parse_hook_args(agent, &rest);
    with_panic_guard(adapter, |form| {
        answer_hook_message(
            adapter,
            args,
            bytes,
            env,
            form,
            Instant::now(),
            HookHandlingPlace::Relay(desk),
        )
    })
}

/// Where a message is judged.
#[derive(Clone, Copy)]
enum HookHandlingPlace<'a> {
    /// By this process, or by whom it knows outside; with the arguments as they were typed.
    Local(&'a [OsString]),
    /// By the run that the agent is confined in.
    Relay(&'a RelayServer),
}

/// `form` is what the agent waits for, as soon as that is known.
fn reply_to_hook_on_stdin(
    adapter: &'static dyn Adapter,
    args: Result<HookArgs, String>,
    words: &[OsString],
    form: &Cell<ExpectedHookReplyKind>,
) -> HookReply {
    let started = Instant::now();
    let env = |name: &str| std::env::var(name).ok();
    let read = |bytes: &[u8]| adapter.parse_agent_event(bytes, &env);
    let due = args.as_ref().ok().and_then(|args| args.deadline);
    let due = due.map_or(DEFAULT_MESSAGE_WAIT, Duration::from_secs);
    let due = due.saturating_sub(reply_time_margin(due));
    let bytes = match agent_message::read_hook_stdin_message(started.checked_add(due)) {
        Ok(bytes) => bytes,
        Err(HookMessageReadError { head, why }) => {
            // Its beginning mostly tells the kind of event: size is no way around the gate.
            form.set(
                read(&head)
                    .map_or_else(|unreadable| unreadable.reply_form, |knock| knock.reply_form),
            );
            // Arguments that cannot be read are told of when a message can be.
            let place = args
                .as_ref()
                .map(state_and_profile_args)
                .unwrap_or_default();
            let stances = at_least_default_stances(stances_in_current_folder(place));
            return reply_by_stance(adapter, form.get(), None, &why, stances);
        }
    };
    answer_hook_message(
        adapter,
        args,
        &bytes,
        &env,
        form,
        started,
        HookHandlingPlace::Local(words),
    )
}

fn answer_hook_message(
    adapter: &'static dyn Adapter,
    args: Result<HookArgs, String>,
    bytes: &[u8],
    env: EnvLookup<'_>,
    form: &Cell<ExpectedHookReplyKind>,
    started: Instant,
    place: HookHandlingPlace<'_>,
) -> HookReply {
    let knock = match adapter.parse_agent_event(bytes, env) {
        Ok(knock) => knock,
        Err(unreadable) => {
            let why = format!("{unreadable}; {}", unreadable.hint);
            let place = args
                .as_ref()
                .map(state_and_profile_args)
                .unwrap_or_default();
            let stances = at_least_default_stances(stances_in_current_folder(place));
            return reply_by_stance(adapter, unreadable.reply_form, None, &why, stances);
        }
    };
    let args = match args {
        Ok(args) => args,
        Err(why) => {
            let why = format!("checkrein hook {}: {why}", adapter.agent_name());
            let of_clone = match place {
                HookHandlingPlace::Local(words) => {
                    words.iter().any(|word| word == "--require-trust")
                }
                HookHandlingPlace::Relay(_) => true,
            };
            let stances = match of_clone {
                true => StancePolicy::default(),
                false => stances_in_current_folder(StateAndProfileArgs::default()),
            };
            return reply_by_stance(adapter, knock.reply_form, knock.first_stop, &why, stances);
        }
    };
    if knock.input.is_none() {
        return HookReply::empty_reply();
    }
    form.set(knock.reply_form);
    let first_stop = knock.first_stop;
    let desk = match place {
        HookHandlingPlace::Relay(desk) => Some(desk),
        HookHandlingPlace::Local(words) => {
            let state = match locate::state_folder(state_and_profile_args(&args)) {
                Ok(state) => state,
                Err(why) => {
                    return reply_by_stance(
                        adapter,
                        knock.reply_form,
                        first_stop,
                        &why,
                        StancePolicy::default(),
                    );
                }
            };
            if let Some(post) = RelayClient::connect_if_in_sandbox(&state) {
                return post
                    .relay_message_out_of_sandbox(words, bytes)
                    .unwrap_or_else(|error| {
                        let why = format!("the run outside does not answer: {error}");
                        reply_by_stance(
                            adapter,
                            form.get(),
                            first_stop,
                            &why,
                            StancePolicy::default(),
                        )
                    });
            }
            None
        }
    };
    answer_hook_event(adapter, &args, knock, started, desk).unwrap_or_else(|failure| {
        reply_by_stance(
            adapter,
            form.get(),
            first_stop,
            &failure.why,
            failure.stances,
        )
    })
}

/// Why nobody could judge, and the stances in force.
struct HookFailureWithStances {
    why: String,
    stances: StancePolicy,
}

fn state_and_profile_args(args: &HookArgs) -> StateAndProfileArgs<'_> {
    StateAndProfileArgs {
        state: args.state.as_deref(),
        profile: args.profile.as_deref(),
        require_trust: args.require_trust,
    }
}

fn answer_hook_event(
    adapter: &dyn Adapter,
    args: &HookArgs,
    knock: AgentEvent,
    started: Instant,
    desk: Option<&RelayServer>,
) -> Result<HookReply, HookFailureWithStances> {
    let here = knock
        .cwd
        .clone()
        .map(PathBuf::from)
        .or_else(|| std::env::current_dir().ok())
        .unwrap_or_default();
    let mut located =
        match desk {
            Some(desk) => desk.located.clone(),
            None => locate::locate_project_for_hook(&here, state_and_profile_args(args)).map_err(
                |why| HookFailureWithStances {
                    why,
                    stances: StancePolicy::default(),
                },
            )?,
        };
    if desk.is_some_and(|desk| !desk.is_session_of_run(&knock.session)) {
        return Err(HookFailureWithStances {
            why: "this session is not one of this run".to_owned(),
            stances: StancePolicy::default(),
        });
    }
    if let Some(off) = off_period_for_session(args, &knock, &located, desk)
        && let Some(reply) = reply_while_off(adapter, args, &knock, &located, &off, desk)
    {
        return Ok(reply);
    }
    let fail = |why: String| HookFailureWithStances {
        why,
        stances: configured_stances(&located),
    };
    let deadline = args.deadline.unwrap_or_else(|| {
        u64::from(
            adapter
                .agent_capabilities()
                .deadlines
                .default_hook_deadline_for_event(knock.event),
        )
    });
    let due = Duration::from_secs(deadline)
        .saturating_sub(reply_time_margin(Duration::from_secs(deadline)));
    if knock.event == AgentEventKind::Stop {
        signals::install_signal_handlers();
        #[cfg(target_os = "linux")]
        if desk.is_none() {
            crate::agent_exit::cancel_when_agent_exits();
        }
    }
    let looked_in = located.place.state.clone();
    let patience = Deadline {
        due_at: started.checked_add(due),
        cancelled: &signals::CANCELLED,
    };
    // A stop may have to wait for a busy store twice before it says so.
    let busy = MAX_BUSY_WAIT.min(due / 2);
    let runtime = match runtime_for_hook_event(args, &located, &knock, desk, busy, patience) {
        Ok((runtime, home)) => {
            located = home;
            runtime
        }
        Err(error) => return Err(fail(error.to_string())),
    };
    if located.place.state != looked_in
        && let Some(off) = read_off_period_or_warn(&located)
        && let Some(reply) = reply_while_off(adapter, args, &knock, &located, &off, desk)
    {
        return Ok(reply);
    }
    // What cancels one stop would cancel the whole run.
    if knock.event == AgentEventKind::Stop && desk.is_none() {
        off::cancel_when_switched_off(located.place.state.clone());
    }

    if let Some(Input::PromptSubmitted(prompt)) = &knock.input {
        let ours = runtime.is_our_feedback(&knock.session, &prompt.text);
        let fail = |error: RuntimeError| HookFailureWithStances {
            why: error.to_string(),
            stances: configured_stances(&located),
        };
        if ours.map_err(fail)? {
            return Ok(HookReply::empty_reply());
        }
    }

    let source = SourceName::new(args.source.as_deref().unwrap_or("hook"));
    // Under a desk the path is the agent's word: what is no file is not opened.
    let transcript = knock
        .transcript
        .clone()
        .filter(|transcript| Path::new(&transcript.path).is_file());
    let at_stop = knock.event == AgentEventKind::Stop;
    if at_stop && let Some(transcript) = &transcript {
        wait_for_transcript_message(&runtime, adapter, &knock, transcript);
    }
    // At a tool event only what is new; where a task begins or ends, all of it.
    let limit = match knock.event {
        AgentEventKind::Stop | AgentEventKind::Prompt | AgentEventKind::SessionStart => {
            MAX_TRANSCRIPT_AT_STOP
        }
        _ => MAX_TRANSCRIPT,
    };
    let usage = |cursor: &str| {
        let transcript = transcript.as_ref()?;
        read_transcript_token_usage(adapter, transcript, cursor, limit)
    };
    let mut answered: Option<DeliveryOutcome> = None;
    let news = [
        (knock.input.clone(), knock.key.clone()),
        (knock.result_input.clone(), knock.result_key.clone()),
    ];
    for (input, key) in news {
        let Some(input) = input else { continue };
        let is_call = matches!(input, Input::ToolRequested(_));
        #[cfg(unix)]
        let is_end = matches!(input, Input::SessionEnded(_));
        let delivery = EventDelivery {
            session: knock.session.clone(),
            source: source.clone(),
            key,
            input,
            facts: ToolFactsBuilder::new(&knock.action),
            working_folder: knock.working_folder.as_deref().map(Path::new),
            usage: transcript.is_some().then_some(&usage),
            tool_response: None,
            layers: Vec::new(),
            task_list: None,
            required_runs: None,
        };
        let taken =
            runtime.deliver_event(delivery, patience, &|news| show_check_progress(desk, news));
        if let Err(RuntimeError::Config(error)) = &taken
            && error.is_mistake_in_config()
        {
            let why = explanations::no_sealable_policy_text(&error.to_string());
            // Without any policy a person's work goes on as far as it only reads.
            if is_call && is_call_read_only(&knock.action, &located.place.root) {
                ui::print_wrapped_to_stderr(&format!("checkrein: {why}"));
                let allow = Decision::Tool(ToolDecision::Allow);
                return Ok(adapter
                    .render_decision_reply(knock.reply_form, &HookDecisionWithTexts::new(allow)));
            }
            return Err(HookFailureWithStances {
                stances: StancePolicy::default(),
                why,
            });
        }
        if matches!(taken, Err(RuntimeError::Cancelled))
            && let Some(off) = off::cancelling_off_period()
        {
            signals::CANCELLED.store(false, Ordering::Relaxed);
            return Ok(accept_stop_while_off(
                adapter, args, &knock, &located, off, desk,
            ));
        }
        let decided = taken.map_err(|error| {
            let failure = HookFailureWithStances {
                stances: session_stances(&runtime, &knock, &located, &error),
                why: error.to_string(),
            };
            // Who told us to go does not listen any more: what is pending is asked again.
            // A store that does not answer is not asked to remember that, while the agent waits.
            if !matches!(error, RuntimeError::Cancelled | RuntimeError::Store(_)) {
                record_stance(&runtime, &knock, &source, &failure);
            }
            failure
        })?;
        for warning in &decided.warnings {
            ui::print_wrapped_to_stderr(&format!("checkrein: {warning}"));
        }
        notify::notify_person_of_parked_approval(&located.place.state, &decided);
        #[cfg(unix)]
        if is_end {
            checkrein_runtime::cancel_session_workers(&located.place.state, &knock.session);
        }
        // The first news is what the agent waits for an answer to.
        answered.get_or_insert(decided);
    }
    let reply = answered.map_or_else(HookReply::empty_reply, |decided| {
        render_hook_reply(adapter, &knock, &located, decided)
    });
    // All is committed, and this process is about to end: to close the store first would take
    // a twentieth of it. The locks go with the process.
    if desk.is_none() {
        std::mem::forget(runtime);
    }
    Ok(reply)
}

/// What a message is judged with, and where; who comes first seals.
fn runtime_for_hook_event(
    args: &HookArgs,
    located: &ProjectLocation,
    knock: &AgentEvent,
    desk: Option<&RelayServer>,
    busy: Duration,
    patience: Deadline<'_>,
) -> Result<(Runtime, ProjectLocation), RuntimeError> {
    let from_run = args.source.as_deref() == Some(RUN_SOURCE);
    if let Some(desk) = desk {
        let runtime = desk.build_runtime(from_run).with_agent_name(&args.agent);
        return Ok((runtime, located.clone()));
    }
    let quick = matches!(
        knock.event,
        AgentEventKind::ToolRequest | AgentEventKind::ToolResult | AgentEventKind::Round
    );
    // Where whoever speaks names the session, "main" may begin in every repo.
    let by_id = adapters::find_adapter(&args.agent)
        .is_some_and(|adapter| adapter.agent_capabilities().own_session_ids);
    let known = (quick, by_id);
    let LocatedProjectWithStore { located, store } = session_location::locate_session_store(
        located.clone(),
        &knock.session,
        known,
        busy,
        patience,
    )?;
    // Also a hook of another entry: `run` has exactly one task.
    let runtime = if from_run || std::env::var_os(RUN_VARIABLE).is_some() {
        engine::build_hook_runtime_under_run(&located, store, args.attempts)
    } else {
        let runtime = engine::build_runtime(&located, store, TaskDriver::Hook);
        #[cfg(target_os = "linux")]
        let runtime =
            runtime.with_worker_launcher(Box::new(crate::check_owner::start_worker_process));
        runtime
    };
    Ok((runtime.with_agent_name(&args.agent), located))
}

/// Checks of a confined run are shown by the run.
fn show_check_progress(desk: Option<&RelayServer>, news: VerificationProgress) {
    if let Some(desk) = desk {
        (desk.progress)(news);
    }
}

/// What switches off in the folder of this session. Its agent may work in another one by now; where that cannot be told, it is
/// the one that the agent works in.
fn off_period_for_session(
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    desk: Option<&RelayServer>,
) -> Option<OffPeriod> {
    let off = read_off_period_or_warn(located)?;
    let home = open_runtime_while_off(args, located, knock, desk);
    let is_elsewhere = home.is_ok_and(|(_, home)| home.place.state != located.place.state);
    (!is_elsewhere).then_some(off)
}

/// Nobody waits long for what is not judged.
fn open_runtime_while_off(
    args: &HookArgs,
    located: &ProjectLocation,
    knock: &AgentEvent,
    desk: Option<&RelayServer>,
) -> Result<(Runtime, ProjectLocation), RuntimeError> {
    let patience = Deadline {
        due_at: None,
        cancelled: &signals::CANCELLED,
    };
    runtime_for_hook_event(
        args,
        located,
        knock,
        desk,
        MAX_BUSY_WAIT_WHILE_OFF,
        patience,
    )
}

fn read_off_period_or_warn(located: &ProjectLocation) -> Option<OffPeriod> {
    off::read_off_period(&located.place.state).unwrap_or_else(|why| {
        ui::print_wrapped_to_stderr(&format!("checkrein: {why}"));
        None
    })
}

/// What is answered while switched off, if this is something to judge: tasks begin and end all the same.
fn reply_while_off(
    adapter: &dyn Adapter,
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    off: &OffPeriod,
    desk: Option<&RelayServer>,
) -> Option<HookReply> {
    match knock.event {
        AgentEventKind::ToolRequest | AgentEventKind::ToolResult | AgentEventKind::Round => {
            if knock.event != AgentEventKind::Round {
                record_call_while_off(args, knock, located, desk);
            }
            let decision = match knock.reply_form {
                ExpectedHookReplyKind::Tool => Decision::Tool(ToolDecision::Allow),
                _ => Decision::Noted,
            };
            Some(
                adapter
                    .render_decision_reply(knock.reply_form, &HookDecisionWithTexts::new(decision)),
            )
        }
        AgentEventKind::Stop => Some(accept_stop_while_off(
            adapter, args, knock, located, off, desk,
        )),
        _ => None,
    }
}

/// A tool call while switched off: it counts as an act. Where that cannot be recorded it goes ahead, and that is said.
fn record_call_while_off(
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    desk: Option<&RelayServer>,
) {
    let counted = open_runtime_while_off(args, located, knock, desk)
        .and_then(|(runtime, _)| Ok(runtime.record_call_while_switched_off(&knock.session)?));
    if let Err(error) = counted {
        ui::print_wrapped_to_stderr(&format!(
            "checkrein: a call while switched off could not be recorded: {error}"
        ));
    }
}

/// A stop while switched off: let through by a recorded stance, if there is a store that takes
/// it, and said.
fn accept_stop_while_off(
    adapter: &dyn Adapter,
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    off: &OffPeriod,
    desk: Option<&RelayServer>,
) -> HookReply {
    let Some(Input::StopRequested(stop)) = &knock.input else {
        return HookReply::empty_reply();
    };
    let delivery = EventDelivery {
        session: knock.session.clone(),
        source: SourceName::new(args.source.as_deref().unwrap_or("hook")),
        key: None,
        input: off.stance_used_input(stop.scope.clone()),
        facts: ToolFactsBuilder::default(),
        working_folder: None,
        usage: None,
        tool_response: None,
        layers: Vec::new(),
        task_list: None,
        required_runs: None,
    };
    let patience = Deadline {
        due_at: None,
        cancelled: &signals::CANCELLED,
    };
    let recorded = runtime_for_hook_event(args, located, knock, desk, MAX_BUSY_WAIT, patience)
        .and_then(|(runtime, _)| runtime.deliver_event(delivery, patience, &|_| {}));
    let said = match &recorded {
        Ok(decided) => match (decided.task_transition(), &decided.state.task) {
            (Some(transition), Some(task)) => explanations::task_ending_line(
                &transition,
                &decided.why,
                decided.held_up_by,
                &lookup::short_task_id(&knock.session, task.id),
            ),
            _ => String::new(),
        },
        Err(error) => format!("This could not be recorded: {error}"),
    };
    let accept = StopDecision::Accept { transition: None };
    let answer = HookDecisionWithTexts {
        // A sub-agent's stop is no ending.
        notice: stop.scope.is_main_scope().then(|| {
            format!("{}. {said}", off.off_summary_line())
                .trim_end()
                .to_owned()
        }),
        ..HookDecisionWithTexts::new(Decision::Stop(accept))
    };
    adapter.render_decision_reply(knock.reply_form, &answer)
}

fn render_hook_reply(
    adapter: &dyn Adapter,
    knock: &AgentEvent,
    located: &ProjectLocation,
    decided: DeliveryOutcome,
) -> HookReply {
    let ending = decided
        .task_transition()
        .filter(|_| decided.decision != Decision::Noted)
        .and_then(|transition| {
            let task = decided
                .state
                .task
                .as_ref()
                .map_or(checkrein_core::ids::TaskId(1), |task| task.id);
            explanations::accepted_stop_notice(
                &transition,
                &decided.why,
                decided.held_up_by,
                &lookup::short_task_id(&knock.session, task),
                decided.verified_notice,
            )
        });
    let mut said: Vec<String> = ending.into_iter().collect();
    match &decided.decision {
        // Where a session begins, what a person should know of its policy.
        Decision::Noted => said.extend(
            decided
                .warnings
                .iter()
                .map(|warning| format!("checkrein: {warning}")),
        ),
        Decision::Stop(StopDecision::Accept {
            transition: Some(_),
        }) => {
            said.extend(ending_notices(located, &decided));
        }
        Decision::Stop(_) | Decision::Tool(_) => {}
    }
    let notice = (!said.is_empty()).then(|| said.join("\n"));
    let task_halted = decided.state.task.as_ref().is_some_and(|task| task.halted);
    let answer = HookDecisionWithTexts {
        decision: match decided.decision {
            // Its own scope is over, and not the task.
            Decision::Tool(ToolDecision::Deny { reason })
                if reason == HALTED_MESSAGE && !task_halted =>
            {
                let reason = SUBAGENT_HALTED_MESSAGE.to_owned();
                Decision::Tool(ToolDecision::Deny { reason })
            }
            decision => decision,
        },
        text: decided.feedback_text,
        notice,
        can_ask: knock.can_ask,
    };
    adapter.render_decision_reply(knock.reply_form, &answer)
}

/// What every ending says as long as it is so.
fn ending_notices(located: &ProjectLocation, decided: &DeliveryOutcome) -> Vec<String> {
    let mut said = Vec::new();
    let edited = decided
        .state
        .task
        .as_ref()
        .map(|task| task.edited.as_slice());
    if let Some(mistake) = &decided.config_error {
        said.push(format!(
            "checkrein: {}",
            explanations::unusable_session_config_notice(mistake)
        ));
    }
    if let Some(edited @ [_, ..]) = edited {
        let held = matches!(located.config_held_despite_edit(), Ok(Some(_)));
        said.push(explanations::edited_guarded_files_line(edited, held));
    }
    let ending = decided.task_transition();
    let is_no_change = ending.is_some_and(|ending| ending.detail.as_deref() == Some("no_change"));
    if !decided.large_files.is_empty() && !is_no_change {
        said.push(explanations::large_files_text(&decided.large_files));
    }
    let repo = located.require_trust && located.repo_config.is_some();
    if repo && policy_sources::is_repo_approved(located) == Some(false) {
        said.push(format!(
            "checkrein: {}",
            trust::config_not_approved_notice(located)
        ));
    }
    said
}

/// Answered this long before the agent stops waiting: 5 s, or a fifth if that is less.
fn reply_time_margin(deadline: Duration) -> Duration {
    Duration::from_secs(5).min(deadline / 5)
}

fn reply_by_stance(
    adapter: &dyn Adapter,
    form: ExpectedHookReplyKind,
    first_stop: Option<bool>,
    why: &str,
    stances: StancePolicy,
) -> HookReply {
    ui::print_wrapped_to_stderr(&format!("checkrein: {why}"));
    let stance = effective_stance(form, first_stop, stances);
    adapter.stance_as_hook_reply(form, stance, &format!("checkrein could not judge: {why}"))
}

/// The stance that is answered by.
fn effective_stance(
    form: ExpectedHookReplyKind,
    first_stop: Option<bool>,
    stances: StancePolicy,
) -> Stance {
    match form {
        ExpectedHookReplyKind::Tool => stances.tool,
        // What cannot be counted is not continued (law 2).
        ExpectedHookReplyKind::Stop if first_stop == Some(true) => stances.stop,
        ExpectedHookReplyKind::Stop
        | ExpectedHookReplyKind::Silent
        | ExpectedHookReplyKind::Unknown => Stance::Allow,
    }
}

/// Each use of a stance is an event (law 6), wherever there is a store that takes it.
fn record_stance(
    runtime: &Runtime,
    knock: &AgentEvent,
    source: &SourceName,
    failure: &HookFailureWithStances,
) {
    let (scope, at) = match &knock.input {
        Some(Input::StopRequested(stop)) => (stop.scope.clone(), StancePoint::Stop),
        Some(Input::ToolRequested(request)) => (request.scope.clone(), StancePoint::Tool),
        _ => return,
    };
    let shared = runtime
        .load_session_state_and_policy(&knock.session)
        .ok()
        .flatten()
        .is_some_and(|(state, _)| {
            state
                .newest_stop_if_nothing_followed(&scope)
                .is_some_and(|stop| stop.sources.len() > 1)
        });
    // Another entry is still judging this very stop, and has longer.
    if at == StancePoint::Stop && shared {
        return;
    }
    let stance = effective_stance(knock.reply_form, knock.first_stop, failure.stances);
    let input = Input::StanceUsed(StanceUsed {
        scope,
        at,
        stance,
        why: failure.why.clone(),
    });
    let delivery = EventDelivery {
        session: knock.session.clone(),
        source: source.clone(),
        key: None,
        input,
        facts: ToolFactsBuilder::default(),
        working_folder: None,
        usage: None,
        tool_response: None,
        layers: Vec::new(),
        task_list: None,
        required_runs: None,
    };
    let patience = Deadline {
        due_at: None,
        cancelled: &signals::CANCELLED,
    };
    // A store that cannot be written is why we are here, or the next thing that is said.
    let _ = runtime.deliver_event(delivery, patience, &|_| {});
}

/// The stances in force in this folder, for a message that does not say where it comes from.
fn stances_in_current_folder(given: StateAndProfileArgs<'_>) -> StancePolicy {
    let located = std::env::current_dir()
        .map_err(|error| error.to_string())
        .and_then(|here| locate::locate_project_for_hook(&here, given));
    located.map_or_else(
        |_| StancePolicy::default(),
        |located| configured_stances(&located),
    )
}

/// At least the defaults. A message that cannot be read names no session, so there is no sealed
/// policy to go by, and the config may have been edited a moment ago.
fn at_least_default_stances(stances: StancePolicy) -> StancePolicy {
    let default = StancePolicy::default();
    StancePolicy {
        tool: stances.tool.stricter_of_two(default.tool),
        stop: stances.stop.stricter_of_two(default.stop),
    }
}

/// The stances of the config, if it can be read; else the defaults.
fn configured_stances(located: &ProjectLocation) -> StancePolicy {
    let compiled = located.compile_policy(TaskDriver::Hook);
    compiled.map_or_else(
        |_| StancePolicy::default(),
        |compiled| compiled.policy.stance,
    )
}

/// The sealed stances, if the store can still tell.
fn session_stances(
    runtime: &Runtime,
    knock: &AgentEvent,
    located: &ProjectLocation,
    error: &RuntimeError,
) -> StancePolicy {
    let sealed = match error {
        RuntimeError::Store(_) | RuntimeError::Config(_) => None,
        _ => runtime
            .load_session_state_and_policy(&knock.session)
            .ok()
            .flatten(),
    };
    sealed.map_or_else(|| configured_stances(located), |(_, policy)| policy.stance)
}

fn read_transcript_token_usage(
    adapter: &dyn Adapter,
    transcript: &TranscriptFile,
    cursor: &str,
    limit: u64,
) -> Option<TokenUsage> {
    let mut file = durable_file::open_regular_file(Path::new(&transcript.path)).ok()?;
    file.seek(SeekFrom::Start(adapter.transcript_offset(cursor)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).ok()?;
    adapter.transcript_usage(&bytes, cursor)
}

/// A transcript may lag behind the very message that triggered the hook: waits, bounded,
/// until its tail has that message.
fn wait_for_transcript_message(
    runtime: &Runtime,
    adapter: &dyn Adapter,
    knock: &AgentEvent,
    transcript: &TranscriptFile,
) {
    let Some(Input::StopRequested(stop)) = &knock.input else {
        return;
    };
    let Ok(Some(cursor)) = runtime.transcript_cursor(&knock.session, &transcript.scope) else {
        return;
    };
    let head: String = stop
        .message
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == ' ')
        .take(40)
        .collect();
    if head.is_empty() {
        return;
    }
    let until = Instant::now() + TRANSCRIPT_LAG;
    while Instant::now() < until {
        let mut bytes = Vec::new();
        let read =
            durable_file::open_regular_file(Path::new(&transcript.path)).and_then(|mut file| {
                file.seek(SeekFrom::Start(adapter.transcript_offset(&cursor)))?;
                file.take(MAX_TRANSCRIPT_AT_STOP).read_to_end(&mut bytes)
            });
        // A transcript that is not there at all will not come for waiting.
        if read.is_err()
            || bytes
                .windows(head.len())
                .any(|window| window == head.as_bytes())
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
