//! `checkrein hook AGENT`: reads an agent's event from stdin and writes the answer to stdout in the
//! agent's protocol. Every failure (arguments, input, config, store, a panic) is answered in that
//! protocol too, by stance, and the person gets a line on stderr.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use checkrein_adapters::{
    self as adapters, Adapter, AgentEvent, AgentEventKind, AwaitedHookReplyForm, EnvLookup,
    HookDecisionWithTexts, HookReply, TranscriptFile,
};
use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::ids::SourceName;
use checkrein_core::input::{Input, StancePoint, StanceUsed, TokenUsage};
use checkrein_core::policy::{Stance, StancePolicy};
use checkrein_core::tool_request::{HALTED_MESSAGE, SUBAGENT_HALTED_MESSAGE};
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, Runtime, RuntimeError, ToolFactsBuilder,
    ToolResponse, VerificationProgress, durable_file, is_call_read_only,
};

use crate::agent_message::{self, HookMessageReadError};
use crate::args::HookArgs;
use crate::commands::{engine, lookup};
use crate::confine::relay_client::SandboxHookRelayClient;
use crate::confine::relay_server::RelayedHookServer;
use crate::locate::{self, ProjectLocation, StateAndProfileArgs};
use crate::off::{self, OffPeriod};
use crate::session_location::{self, LocatedProjectWithStore};
use crate::ui::{self, explanations};
use crate::{exit_code, notify, policy_sources, signals, trust};

/// Bytes of a transcript that are read at a tool event.
const MAX_TRANSCRIPT: u64 = 256 * 1024;
/// Bytes of a transcript that are read at most at a stop, a prompt or the start of a session.
const MAX_TRANSCRIPT_AT_STOP: u64 = 64 * 1024 * 1024;
/// How long a hook waits at a time for a store that others keep busy: less than the margin before
/// the agent's deadline.
const MAX_BUSY_WAIT: Duration = Duration::from_secs(4);
/// How long it waits for a busy store while Checkrein is switched off.
const MAX_BUSY_WAIT_WHILE_OFF: Duration = Duration::from_millis(500);
/// How long a message is waited for if no deadline is given: no agent gives a hook less.
const DEFAULT_MESSAGE_WAIT: Duration = Duration::from_secs(5);
/// How long a stop waits for a transcript that lags behind.
const TRANSCRIPT_LAG: Duration = Duration::from_millis(300);

/// Source name of the hooks that `run` hands to an agent.
pub(crate) const RUN_SOURCE: &str = "run";
/// Variable in the environment of agents that `run` starts.
pub(crate) const RUN_VARIABLE: &str = "CHECKREIN_RUN";

/// Entry point with the arguments as an agent typed them; they are parsed here, without clap.
pub(crate) fn hook_main(words: Vec<OsString>) -> ExitCode {
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
        // Not 2, which an unknown agent could take for a refusal.
        return exit_code::to_exit_code(exit_code::NO);
    };
    let parsed = parse_hook_args(agent, words.get(1..).unwrap_or_default());
    write_hook_reply(answer_hook_despite_panic(adapter, parsed, &words))
}

/// Entry point with arguments that came through clap (`--help` was asked for).
pub(crate) fn run_hook_command(args: HookArgs) -> ExitCode {
    match adapters::find_adapter(&args.agent) {
        Some(adapter) => {
            let words = [OsString::from(&args.agent)];
            write_hook_reply(answer_hook_despite_panic(adapter, Ok(args), &words))
        }
        None => hook_main(vec![OsString::from(args.agent)]),
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

/// Answers the message; a panic of ours is answered by stance as well.
fn answer_hook_despite_panic(
    adapter: &'static dyn Adapter,
    args: Result<HookArgs, String>,
    words: &[OsString],
) -> HookReply {
    with_panic_guard(adapter, |form| {
        answer_hook_message_from_stdin(adapter, args, words, form)
    })
}

fn with_panic_guard(
    adapter: &dyn Adapter,
    answer: impl FnOnce(&Cell<AwaitedHookReplyForm>) -> HookReply,
) -> HookReply {
    // The answer sets this as soon as the event is known. A panic before that is answered in
    // the form for unknown events, which never blocks.
    let form = Cell::new(AwaitedHookReplyForm::Unknown);
    catch_unwind(AssertUnwindSafe(|| answer(&form))).unwrap_or_else(|_| {
        let why = "it failed in a way it should not; please report the lines above";
        fallback_hook_reply(adapter, form.get(), None, why, StancePolicy::default())
    })
}

/// Answers a message that a hook inside a confinement has handed out.
#[cfg_attr(
    not(unix),
    expect(dead_code, reason = "there are no confinements there")
)]
pub(crate) fn answer_relayed_hook_event(
    desk: &RelayedHookServer,
    words: &[String],
    bytes: &[u8],
    env: EnvLookup<'_>,
) -> HookReply {
    let agent = words.first().cloned().unwrap_or_default();
    let Some(adapter) = adapters::find_adapter(&agent) else {
        // Status 1 and no output, as at the command line: 2 could be taken for a refusal.
        return HookReply {
            exit_code: exit_code::NO,
            ..HookReply::no_opinion_hook_reply()
        };
    };
    let rest: Vec<OsString> = words.iter().skip(1).map(OsString::from).collect();
    let args = parse_hook_args(agent, &rest);
    with_panic_guard(adapter, |form| {
        reply_to_agent_hook_message(
            adapter,
            args,
            bytes,
            env,
            form,
            Instant::now(),
            HookJudgedLocallyOrByRun::Relay(desk),
        )
    })
}

/// Where a message is judged.
#[derive(Clone, Copy)]
enum HookJudgedLocallyOrByRun<'a> {
    /// By this process or, inside a confinement, by the run outside; with the arguments as typed.
    Local(&'a [OsString]),
    /// By the run that confines the agent.
    Relay(&'a RelayedHookServer),
}

/// Reads the message and answers it. `form` is set to the reply that the agent waits for, as soon
/// as that is known.
fn answer_hook_message_from_stdin(
    adapter: &'static dyn Adapter,
    args: Result<HookArgs, String>,
    words: &[OsString],
    form: &Cell<AwaitedHookReplyForm>,
) -> HookReply {
    // The agent's timeout runs since it started this process, so the deadline counts from
    // here and not from when the message is complete.
    let started = Instant::now();
    let env = |name: &str| std::env::var(name).ok();
    let read = |bytes: &[u8]| adapter.parse_agent_hook_message(bytes, &env);
    let due = args.as_ref().ok().and_then(|args| args.deadline);
    let due = due.map_or(DEFAULT_MESSAGE_WAIT, Duration::from_secs);
    let due = due.saturating_sub(reply_time_margin(due));
    let bytes = match agent_message::read_hook_stdin_bytes(started.checked_add(due)) {
        Ok(bytes) => bytes,
        Err(HookMessageReadError { head, why }) => {
            // The beginning mostly tells the kind of event, so that a message cannot get around the
            // gate by its size.
            form.set(
                read(&head)
                    .map_or_else(|unreadable| unreadable.reply_form, |knock| knock.reply_form),
            );
            // Unreadable arguments count as the defaults here; they are reported when a message can
            // be read.
            let place = args
                .as_ref()
                .map(state_and_profile_from_hook_args)
                .unwrap_or_default();
            let stances = at_least_default_stances(configured_stances_for_current_dir(place));
            return fallback_hook_reply(adapter, form.get(), None, &why, stances);
        }
    };
    reply_to_agent_hook_message(
        adapter,
        args,
        &bytes,
        &env,
        form,
        started,
        HookJudgedLocallyOrByRun::Local(words),
    )
}

fn reply_to_agent_hook_message(
    adapter: &'static dyn Adapter,
    args: Result<HookArgs, String>,
    bytes: &[u8],
    env: EnvLookup<'_>,
    form: &Cell<AwaitedHookReplyForm>,
    started: Instant,
    place: HookJudgedLocallyOrByRun<'_>,
) -> HookReply {
    // The event is parsed before the arguments are looked at: only the event says in which
    // form the agent waits for an answer.
    let knock = match adapter.parse_agent_hook_message(bytes, env) {
        Ok(knock) => knock,
        Err(unreadable) => {
            let why = format!("{unreadable}; {}", unreadable.hint);
            let place = args
                .as_ref()
                .map(state_and_profile_from_hook_args)
                .unwrap_or_default();
            let stances = at_least_default_stances(configured_stances_for_current_dir(place));
            return fallback_hook_reply(adapter, unreadable.reply_form, None, &why, stances);
        }
    };
    let args = match args {
        Ok(args) => args,
        Err(why) => {
            let why = format!("checkrein hook {}: {why}", adapter.agent_name());
            // A hook with --require-trust may run in a stranger's clone, whose config must not
            // choose the stances. The rest of the arguments is unreadable, so trust cannot be
            // looked up.
            let of_clone = match place {
                HookJudgedLocallyOrByRun::Local(words) => {
                    words.iter().any(|word| word == "--require-trust")
                }
                HookJudgedLocallyOrByRun::Relay(_) => true,
            };
            let stances = match of_clone {
                true => StancePolicy::default(),
                false => configured_stances_for_current_dir(StateAndProfileArgs::default()),
            };
            return fallback_hook_reply(adapter, knock.reply_form, knock.first_stop, &why, stances);
        }
    };
    // An event of no interest is answered before anything is opened: no store is made for it.
    if knock.input.is_none() {
        return HookReply::no_opinion_hook_reply();
    }
    form.set(knock.reply_form);
    let first_stop = knock.first_stop;
    let desk = match place {
        HookJudgedLocallyOrByRun::Relay(desk) => Some(desk),
        HookJudgedLocallyOrByRun::Local(words) => {
            let state = match locate::state_folder(state_and_profile_from_hook_args(&args)) {
                Ok(state) => state,
                Err(why) => {
                    return fallback_hook_reply(
                        adapter,
                        knock.reply_form,
                        first_stop,
                        &why,
                        StancePolicy::default(),
                    );
                }
            };
            // Inside a confinement the store is read-only, so the run outside judges and records
            // the event.
            if let Some(post) = SandboxHookRelayClient::relay_client_if_in_sandbox(&state) {
                return post
                    .relay_message_out_of_sandbox(words, bytes)
                    .unwrap_or_else(|error| {
                        let why = format!("the run outside does not answer: {error}");
                        fallback_hook_reply(
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
        fallback_hook_reply(
            adapter,
            form.get(),
            first_stop,
            &failure.why,
            failure.stances,
        )
    })
}

/// Why the event could not be judged, and the stances in force.
struct HookFailureWithStances {
    why: String,
    stances: StancePolicy,
}

fn state_and_profile_from_hook_args(args: &HookArgs) -> StateAndProfileArgs<'_> {
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
    desk: Option<&RelayedHookServer>,
) -> Result<HookReply, HookFailureWithStances> {
    let here = knock
        .cwd
        .clone()
        .map(PathBuf::from)
        .or_else(|| std::env::current_dir().ok())
        .unwrap_or_default();
    let mut located = match desk {
        Some(desk) => desk.located.clone(),
        None => locate::locate_project_for_hook(&here, state_and_profile_from_hook_args(args))
            .map_err(|why| HookFailureWithStances {
                why,
                stances: StancePolicy::default(),
            })?,
    };
    // A relayed event is the confined agent's word. The session of another run or agent must
    // not be judged, nor written, under this run.
    if desk.is_some_and(|desk| !desk.is_session_of_run(&knock.session)) {
        return Err(HookFailureWithStances {
            why: "this session is not one of this run".to_owned(),
            stances: StancePolicy::default(),
        });
    }
    // Switching off has to work where the store does not, so `off.json` is asked before the
    // session's runtime is needed.
    if let Some(off) = off_period_for_session(args, &knock, &located, desk)
        && let Some(reply) = reply_while_off(adapter, args, &knock, &located, &off, desk)
    {
        return Ok(reply);
    }
    let fail = |why: String| HookFailureWithStances {
        why,
        stances: configured_stances(&located),
    };
    // Entries written by hand may lack --deadline. The adapter knows how long its agent waits
    // then.
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
    // Only a stop waits for checks. It ends with a signal or with its agent: a killed agent
    // sends no signal, and its checks would run on for nobody.
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
    // A stop may wait for a busy store twice before it reports that.
    let busy = MAX_BUSY_WAIT.min(due / 2);
    let runtime = match runtime_for_hook_event(args, &located, &knock, desk, busy, patience) {
        Ok((runtime, home)) => {
            located = home;
            runtime
        }
        Err(error) => return Err(fail(error.to_string())),
    };
    // The session may have been sealed in another folder than the one its agent works in.
    // That folder can be switched off too.
    if located.place.state != looked_in
        && let Some(off) = read_off_period_or_warn(&located)
        && let Some(reply) = reply_while_off(adapter, args, &knock, &located, &off, desk)
    {
        return Ok(reply);
    }
    // Under a desk the cancel flag is the run's: to cancel one stop would cancel the whole run.
    if knock.event == AgentEventKind::Stop && desk.is_none() {
        off::cancel_when_switched_off(located.place.state.clone());
    }

    // Agents deliver our feedback as a prompt. Taken for a person's, it would open a new task
    // and reset the counters of the old one.
    if let Some(Input::PromptSubmitted(prompt)) = &knock.input {
        let ours = runtime.is_our_feedback(&knock.session, &prompt.text);
        let fail = |error: RuntimeError| HookFailureWithStances {
            why: error.to_string(),
            stances: configured_stances(&located),
        };
        if ours.map_err(fail)? {
            return Ok(HookReply::no_opinion_hook_reply());
        }
    }

    let source = SourceName::new(args.source.as_deref().unwrap_or("hook"));
    // Under a desk the path is the confined agent's word, so only an existing file is opened.
    let transcript = knock
        .transcript
        .clone()
        .filter(|transcript| Path::new(&transcript.path).is_file());
    let at_stop = knock.event == AgentEventKind::Stop;
    if at_stop && let Some(transcript) = &transcript {
        wait_for_transcript_message(&runtime, adapter, &knock, transcript);
    }
    // A tool event must be quick and reads only a little; where a task begins or ends, all that is
    // new is read.
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
    let tool_response = knock.tool_response.as_ref().map(|response| ToolResponse {
        tool: &response.tool,
        args: &response.args,
        result: &response.result,
    });
    let mut answered: Option<DeliveryOutcome> = None;
    // One event can bring a call together with its result. Each is an input with a key of its
    // own, and the call comes first.
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
            seen_tool_response: tool_response,
            layers: Vec::new(),
            task_list: None,
            required_runs: None,
        };
        let taken =
            runtime.deliver_event(delivery, patience, &|news| relay_check_progress(desk, news));
        if let Err(RuntimeError::Config(error)) = &taken
            && error.is_mistake_in_config()
        {
            let why = explanations::no_sealable_policy_text(&error.to_string());
            // Without any policy the work goes on as far as it only reads.
            if is_call && is_call_read_only(&knock.action, &located.place.root) {
                ui::print_wrapped_to_stderr(&format!("checkrein: {why}"));
                let allow = Decision::Tool(ToolDecision::Allow);
                return Ok(adapter
                    .render_decision_reply(knock.reply_form, &HookDecisionWithTexts::new(allow)));
            }
            // Everything else is answered by the default stances: without a policy there are no
            // others.
            return Err(HookFailureWithStances {
                stances: StancePolicy::default(),
                why,
            });
        }
        // `off` cancels a stop that is being judged. The flag is cleared first, or the recording
        // of the stance would be cancelled as well.
        if matches!(taken, Err(RuntimeError::Cancelled))
            && let Some(off) = off::off_period_that_cancelled_process()
        {
            signals::CANCELLED.store(false, Ordering::Relaxed);
            return Ok(accept_stop_while_off(
                adapter, args, &knock, &located, off, desk,
            ));
        }
        let decided = taken.map_err(|error| {
            let failure = HookFailureWithStances {
                stances: sealed_or_configured_stances(&runtime, &knock, &located, &error),
                why: error.to_string(),
            };
            // After a cancellation nobody listens, and what is pending is asked again. A store that
            // does not answer is not asked to record that while the agent waits.
            if !matches!(error, RuntimeError::Cancelled | RuntimeError::Store(_)) {
                record_stance_use(&runtime, &knock, &source, &failure);
            }
            failure
        })?;
        for warning in &decided.warnings {
            ui::print_wrapped_to_stderr(&format!("checkrein: {warning}"));
        }
        // A question that was parked just now is told to a person before the agent gets its
        // answer.
        notify::notify_person_of_parked_approval(&located.place.state, &decided);
        // The checks of a session that ended would run for nobody.
        #[cfg(unix)]
        if is_end {
            checkrein_runtime::cancel_session_workers(&located.place.state, &knock.session);
        }
        // The agent waits for the answer to the first input.
        answered.get_or_insert(decided);
    }
    // Rendered last: input, events and decision are committed by now (law 9).
    let reply = answered.map_or_else(HookReply::no_opinion_hook_reply, |decided| {
        render_hook_reply(adapter, &knock, &located, decided)
    });
    // Everything is committed, and this process is about to end. Closing the store first would take
    // a twentieth of its time; the locks go with the process.
    if desk.is_none() {
        std::mem::forget(runtime);
    }
    Ok(reply)
}

/// Returns the runtime that judges an event, and the folder of its session. The first event of a
/// session seals it.
fn runtime_for_hook_event(
    args: &HookArgs,
    located: &ProjectLocation,
    knock: &AgentEvent,
    desk: Option<&RelayedHookServer>,
    busy: Duration,
    patience: Deadline<'_>,
) -> Result<(Runtime, ProjectLocation), RuntimeError> {
    let from_run = args.source.as_deref() == Some(RUN_SOURCE);
    // The run outside has located the folder and holds the store. A confined agent's message
    // changes neither.
    if let Some(desk) = desk {
        let runtime = desk
            .build_checkrein_runtime_for_relay(from_run)
            .with_agent_name(&args.agent);
        return Ok((runtime, located.clone()));
    }
    let quick = matches!(
        knock.event,
        AgentEventKind::ToolRequest | AgentEventKind::ToolResult | AgentEventKind::Round
    );
    // If the caller chooses the session's name, every repo may have a "main".
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
    // A hook of another entry counts too: `run` has exactly one task.
    let runtime = if from_run || std::env::var_os(RUN_VARIABLE).is_some() {
        engine::build_hook_runtime_under_run(&located, store, args.attempts)
    } else {
        let runtime = engine::build_checkrein_runtime(&located, store, TaskDriverKind::Hook);
        // Owners finish checks that are longer than their hook. Under `run` there are none: such
        // a check is cut.
        #[cfg(target_os = "linux")]
        let runtime =
            runtime.with_worker_launcher(Box::new(crate::check_owner::start_worker_process));
        runtime
    };
    Ok((runtime.with_agent_name(&args.agent), located))
}

/// Shows progress in the run that confines the agent; a hook of its own shows none.
fn relay_check_progress(desk: Option<&RelayedHookServer>, news: VerificationProgress) {
    if let Some(desk) = desk {
        (desk.progress)(news);
    }
}

/// Returns the off period of the session's own folder, which its agent may have left. If that
/// folder cannot be told, the folder that the agent works in counts.
fn off_period_for_session(
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    desk: Option<&RelayedHookServer>,
) -> Option<OffPeriod> {
    let off = read_off_period_or_warn(located)?;
    let home = open_runtime_while_off(args, located, knock, desk);
    let is_elsewhere = home.is_ok_and(|(_, home)| home.place.state != located.place.state);
    (!is_elsewhere).then_some(off)
}

/// Builds the runtime with a short wait for a busy store: what is not judged must not wait long.
fn open_runtime_while_off(
    args: &HookArgs,
    located: &ProjectLocation,
    knock: &AgentEvent,
    desk: Option<&RelayedHookServer>,
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

/// Returns the answer while switched off, or `None` for events that are handled as always, so that
/// tasks begin and end all the same.
fn reply_while_off(
    adapter: &dyn Adapter,
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    off: &OffPeriod,
    desk: Option<&RelayedHookServer>,
) -> Option<HookReply> {
    match knock.event {
        AgentEventKind::ToolRequest | AgentEventKind::ToolResult | AgentEventKind::Round => {
            // The end of a round is no act, so it voids nothing.
            if knock.event != AgentEventKind::Round {
                record_call_while_off(args, knock, located, desk);
            }
            let decision = match knock.reply_form {
                AwaitedHookReplyForm::Tool => Decision::Tool(ToolDecision::Allow),
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

/// Counts a tool call while switched off as an act. If that cannot be recorded the call goes ahead,
/// and a line on stderr says so.
fn record_call_while_off(
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    desk: Option<&RelayedHookServer>,
) {
    let counted = open_runtime_while_off(args, located, knock, desk)
        .and_then(|(runtime, _)| Ok(runtime.record_call_while_switched_off(&knock.session)?));
    if let Err(error) = counted {
        ui::print_wrapped_to_stderr(&format!(
            "checkrein: a call while switched off could not be recorded: {error}"
        ));
    }
}

/// Lets a stop through while switched off and says so. The stance is recorded if there is a store
/// that takes it.
fn accept_stop_while_off(
    adapter: &dyn Adapter,
    args: &HookArgs,
    knock: &AgentEvent,
    located: &ProjectLocation,
    off: &OffPeriod,
    desk: Option<&RelayedHookServer>,
) -> HookReply {
    let Some(Input::StopRequested(stop)) = &knock.input else {
        return HookReply::no_opinion_hook_reply();
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
        seen_tool_response: None,
        layers: Vec::new(),
        task_list: None,
        required_runs: None,
    };
    // No deadline is needed: no check runs, and the busy wait of the store is bounded.
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
        // The stop of a sub-agent ends no task, so no notice is due.
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
        // At the start of a session: what a person should know of its policy.
        Decision::Noted => said.extend(
            decided
                .warnings
                .iter()
                .map(|warning| format!("checkrein: {warning}")),
        ),
        Decision::Stop(StopDecision::Accept {
            transition: Some(_),
        }) => {
            said.extend(task_ending_notices(located, &decided));
        }
        Decision::Stop(_) | Decision::Tool(_) | Decision::Round(_) => {}
    }
    let notice = (!said.is_empty()).then(|| said.join("\n"));
    let task_halted = decided.state.task.as_ref().is_some_and(|task| task.halted);
    let answer = HookDecisionWithTexts {
        decision: match decided.decision {
            // Only the sub-agent was halted, so it must not read that the task is over.
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

/// Notices that are repeated at every ending as long as they hold.
fn task_ending_notices(located: &ProjectLocation, decided: &DeliveryOutcome) -> Vec<String> {
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
    if repo && policy_sources::is_repo_config_approved(located) == Some(false) {
        said.push(format!(
            "checkrein: {}",
            trust::config_not_approved_notice(located)
        ));
    }
    said
}

/// Time kept free before the agent's deadline: 5 s, or a fifth of the deadline if that is less.
fn reply_time_margin(deadline: Duration) -> Duration {
    Duration::from_secs(5).min(deadline / 5)
}

fn fallback_hook_reply(
    adapter: &dyn Adapter,
    form: AwaitedHookReplyForm,
    first_stop: Option<bool>,
    why: &str,
    stances: StancePolicy,
) -> HookReply {
    ui::print_wrapped_to_stderr(&format!("checkrein: {why}"));
    let stance = fallback_stance_for_hook(form, first_stop, stances);
    adapter.stance_as_hook_reply(form, stance, &format!("checkrein could not judge: {why}"))
}

/// Returns the stance to answer by.
fn fallback_stance_for_hook(
    form: AwaitedHookReplyForm,
    first_stop: Option<bool>,
    stances: StancePolicy,
) -> Stance {
    match form {
        AwaitedHookReplyForm::Tool => stances.tool,
        // A stop that cannot be counted is not refused again (law 2).
        AwaitedHookReplyForm::Stop if first_stop == Some(true) => stances.stop,
        AwaitedHookReplyForm::Stop
        | AwaitedHookReplyForm::Silent
        | AwaitedHookReplyForm::Unknown => Stance::Allow,
    }
}

/// Records a stance: each use of one is an event (law 6), wherever a store takes it.
fn record_stance_use(
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
    // A stop that several installed entries delivered has several sources.
    let shared = runtime
        .load_session_state_and_policy(&knock.session)
        .ok()
        .flatten()
        .is_some_and(|(state, _)| {
            state
                .newest_stop_if_nothing_followed(&scope)
                .is_some_and(|stop| stop.sources.len() > 1)
        });
    // Another entry is still judging this stop, with a longer deadline.
    if at == StancePoint::Stop && shared {
        return;
    }
    let stance = fallback_stance_for_hook(knock.reply_form, knock.first_stop, failure.stances);
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
        seen_tool_response: None,
        layers: Vec::new(),
        task_list: None,
        required_runs: None,
    };
    let patience = Deadline {
        due_at: None,
        cancelled: &signals::CANCELLED,
    };
    // If the store cannot be written, that is the failure already reported, or the next event
    // reports it.
    let _ = runtime.deliver_event(delivery, patience, &|_| {});
}

/// Returns the stances in force in this folder, for a message that does not say where it comes
/// from.
fn configured_stances_for_current_dir(given: StateAndProfileArgs<'_>) -> StancePolicy {
    let located = std::env::current_dir()
        .map_err(|error| error.to_string())
        .and_then(|here| locate::locate_project_for_hook(&here, given));
    located.map_or_else(
        |_| StancePolicy::default(),
        |located| configured_stances(&located),
    )
}

/// Returns the stricter of these stances and the defaults. A message that cannot be read names no
/// session, so no sealed policy applies, and the config may have been edited a moment ago.
fn at_least_default_stances(stances: StancePolicy) -> StancePolicy {
    let default = StancePolicy::default();
    StancePolicy {
        tool: stances.tool.stricter_of_two(default.tool),
        stop: stances.stop.stricter_of_two(default.stop),
    }
}

/// Returns the stances of the config if it can be read, else the defaults.
fn configured_stances(located: &ProjectLocation) -> StancePolicy {
    let compiled = located.compile_policy_for_new_session(TaskDriverKind::Hook);
    compiled.map_or_else(
        |_| StancePolicy::default(),
        |compiled| compiled.policy.stance,
    )
}

/// Returns the sealed stances if the store can still tell them, else the configured ones.
fn sealed_or_configured_stances(
    runtime: &Runtime,
    knock: &AgentEvent,
    located: &ProjectLocation,
    error: &RuntimeError,
) -> StancePolicy {
    // A store that has just failed cannot tell the sealed stances, and after a config error
    // none are sealed.
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
    // The cursor says how far the transcript was read, so that each event costs only what is
    // new.
    file.seek(SeekFrom::Start(adapter.transcript_offset(cursor)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).ok()?;
    adapter.transcript_token_usage(&bytes, cursor)
}

/// Waits, within a bound, until the transcript's tail has the message of this stop: a transcript
/// may lag behind the message that triggered the hook.
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
    // JSON escapes quotes and control characters. Only the plain beginning of the message can
    // be found byte for byte in the transcript.
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
    // The agent writes its transcript asynchronously, so its tail may come after the hook has
    // begun.
    while Instant::now() < until {
        let mut bytes = Vec::new();
        let read =
            durable_file::open_regular_file(Path::new(&transcript.path)).and_then(|mut file| {
                file.seek(SeekFrom::Start(adapter.transcript_offset(&cursor)))?;
                file.take(MAX_TRANSCRIPT_AT_STOP).read_to_end(&mut bytes)
            });
        // Waiting does not help against a transcript that does not exist.
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
