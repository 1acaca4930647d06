//! `checkrein replay`: a recorded session has to come out the same; a trace file is checked for
//! loops as the detectors would have seen it.

use std::path::Path;
use std::process::ExitCode;

use checkrein_adapters::generic::trace::{AgentTraceLine, TraceToolCallIndex};
use checkrein_core::event::{DetectorOrCapResponse, Event, LoopSeverity};
use checkrein_core::ids::{SourceName, UnixMillis};
use checkrein_core::input::{Input, StampedInput};
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_core::step::apply_input_and_decide;
use checkrein_core::transition::Transition;
use checkrein_runtime::config::{self, NamedConfigText, TaskDriverKind};
use checkrein_runtime::replay;
use checkrein_store::SqliteStore;
use serde_json::json;

use crate::args::ReplayArgs;
use crate::commands::lookup;
use crate::commands::trace_file::{
    history_reader_for_policy, open_trace_file_for_reading, read_bounded_line,
};
use crate::ui::errors::CommandError;
use crate::ui::explanations;
use crate::ui::line::StyledLine;
use crate::ui::style::{TextStyle, count_with_noun};
use crate::{exit_code, locate, ui};

pub(crate) fn run_replay_command(args: &ReplayArgs) -> Result<ExitCode, CommandError> {
    let (mut same, mut readable) = (true, true);
    for what in &args.what {
        let path = Path::new(what);
        if path.is_file() {
            if !replay_trace_file(path, &load_trace_replay_policy(args)?, args.json)? {
                readable = false;
                ui::print_wrapped_to_stderr(&format!(
                    "checkrein: {what}: no trajectory in it could be read\n  it takes JSON Lines of {{\"type\":\"tool_call\",...}}, a transcript of Claude Code or a rollout of Codex: docs/trace-format.md"
                ));
            }
        } else if path
            .extension()
            .is_some_and(|ending| ending == "jsonl" || ending == "gz")
        {
            // A mistyped file name must not be reported as an unknown session.
            return Err(CommandError::usage_error(
                format!("no file '{what}'"),
                "name a trace file, or a session's id",
            ));
        } else {
            same &= replay_session(what, args.json)?;
        }
    }
    Ok(exit_code::to_exit_code(match (readable, same) {
        (false, _) => exit_code::USAGE,
        (true, false) => exit_code::NO,
        (true, true) => exit_code::YES,
    }))
}

fn load_trace_replay_policy(args: &ReplayArgs) -> Result<Policy, CommandError> {
    // The configs of person and repo do not count: a trace is judged by the command line.
    let source = args
        .config
        .as_ref()
        .map(|name| {
            std::fs::read_to_string(name).map(|text| NamedConfigText {
                name: name.clone(),
                text,
            })
        })
        .transpose()
        .map_err(|error| {
            CommandError::usage_error(format!("--config: {error}"), "name a checkrein.toml")
        })?;
    let mut policy =
        config::compile_repo_and_personal_config(source.as_ref(), None, TaskDriverKind::Hook)?
            .policy;
    if let Some(preset) = &args.preset {
        policy.loops = config::loop_policy_of_named_preset(Path::new("--preset"), preset)?;
    }
    Ok(policy)
}

fn replay_session(id: &str, as_json: bool) -> Result<bool, CommandError> {
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let store = SqliteStore::open_store_read_only(&located.place.state)?;
    let row = lookup::find_task(&store, Some(id))?;
    let mut same = true;
    // Both ways, because the state cache must change nothing (law 3).
    for through_cache in [false, true] {
        let replayed = replay::replay_session(&store, &row.session, through_cache)?;
        same &= replayed.differs_at.is_none();
        let how = if through_cache {
            "with state cache"
        } else {
            "from the log alone"
        };
        if as_json {
            let differs = replayed.differs_at.as_ref().map(
                |at| json!({ "seq": at.seq, "recorded": at.recorded, "replayed": at.replayed }),
            );
            ui::print_json(&json!({
                "schema": "checkrein/replay/1",
                "session": row.session,
                "cache": through_cache,
                "events": replayed.events,
                "inputs": replayed.inputs,
                "differs_at": differs,
            }));
            continue;
        }
        match &replayed.differs_at {
            None => ui::print_line_to_stdout(
                StyledLine::line_from_styled_text(TextStyle::Good, "same").with_plain_suffix(
                    &format!(
                        " {}: {} events from {} inputs come out the same, {how}",
                        row.session, replayed.events, replayed.inputs
                    ),
                ),
            ),
            Some(at) => ui::print_line_to_stdout(
                StyledLine::line_from_styled_text(TextStyle::Bad, "differs").with_plain_suffix(
                    &format!(
                        " {}: event {} was '{}' and is now '{}', {how}",
                        row.session, at.seq, at.recorded, at.replayed
                    ),
                ),
            ),
        }
    }
    Ok(same)
}

/// One trajectory that is replayed.
struct TrajectoryReplay<'a> {
    policy: &'a Policy,
    file: &'a str,
    id: Option<String>,
    state: SessionState,
    calls: u64,
    warnings: u64,
    halts: u64,
    halted_at: Option<u64>,
    transition: Option<Transition>,
    /// Output and input tokens; `None` while no response has told any.
    tokens: Option<(u64, u64)>,
    as_json: bool,
    clock: u64,
    begun: bool,
}

/// Replays a trace file; returns whether there was anything to replay.
fn replay_trace_file(path: &Path, policy: &Policy, as_json: bool) -> Result<bool, CommandError> {
    let name = path.display().to_string();
    let mut lines = open_trace_file_for_reading(path)
        .map_err(|error| CommandError::cli_failure_error(format!("{name}: {error}")))?;
    let mut reader = history_reader_for_policy(policy);
    // Lines before the first session belong to a trajectory without an id.
    let mut watch = TrajectoryReplay::new(policy, &name, None, as_json);
    let mut line = Vec::new();
    let mut any = false;
    let mut has_more = true;
    while has_more {
        has_more = read_bounded_line(&mut *lines, &mut line)
            .map_err(|error| CommandError::cli_failure_error(format!("{name}: {error}")))?;
        match has_more {
            true => reader.read_history_line(&line),
            false => reader.end_history(),
        }
        while let Some(item) = reader.next_trace_item() {
            any |= matches!(
                item,
                AgentTraceLine::Session { .. } | AgentTraceLine::Input { .. }
            );
            match item {
                AgentTraceLine::Session { id, input, .. } => {
                    if watch.begun {
                        watch.print_replay_summary();
                    }
                    watch = TrajectoryReplay::new(policy, &name, id, as_json);
                    watch.begun = true;
                    watch.decide_on_trace_input(input, None);
                }
                AgentTraceLine::Input { input, call } => {
                    watch.begun = true;
                    watch.decide_on_trace_input(input, call.as_ref());
                }
                AgentTraceLine::End { .. } => {}
                AgentTraceLine::Warning { line, what } => {
                    ui::print_wrapped_to_stderr(&format!("checkrein: {name}:{line}: {what}"))
                }
            }
        }
    }
    if watch.begun {
        watch.print_replay_summary();
    }
    Ok(any)
}

impl<'a> TrajectoryReplay<'a> {
    fn new(policy: &'a Policy, file: &'a str, id: Option<String>, as_json: bool) -> Self {
        Self {
            policy,
            file,
            id,
            state: SessionState::default(),
            calls: 0,
            warnings: 0,
            halts: 0,
            halted_at: None,
            transition: None,
            tokens: None,
            as_json,
            clock: 0,
            begun: false,
        }
    }

    fn decide_on_trace_input(&mut self, input: Input, call: Option<&TraceToolCallIndex>) {
        let is_request = matches!(input, Input::ToolRequested(_));
        if let Input::RoundEnded(round) = &input
            && let Some(spent) = &round.tokens
        {
            let (output, input) = self.tokens.unwrap_or_default();
            self.tokens = Some((
                output.saturating_add(spent.output),
                input.saturating_add(spent.input),
            ));
        }
        // A trace has no clock: a millisecond per event keeps the order and reaches no time cap.
        self.clock += 1;
        let (at, source) = (UnixMillis(self.clock), SourceName::new("trace"));
        let stamped = StampedInput::new_without_facts(at, source, input);
        let done = apply_input_and_decide(self.policy, &mut self.state, stamped);
        // Calls count from 0, so the index is read before the count goes up.
        let index = self.calls;
        if is_request {
            self.calls += 1;
        }
        for event in &done.events {
            match event {
                Event::Detected(seen) => {
                    self.print_loop_detection(
                        index,
                        seen.detector.as_str(),
                        seen.level,
                        u64::from(seen.count),
                        seen.action,
                        call,
                    );
                }
                Event::CapReached { cap, .. } => {
                    // A cap first denies one call with a request to sum up; only the next call ends
                    // the task.
                    let halted = done
                        .events
                        .iter()
                        .any(|event| matches!(event, Event::TaskEnded { .. }));
                    let action = if halted {
                        DetectorOrCapResponse::Halt
                    } else {
                        DetectorOrCapResponse::Grace
                    };
                    self.print_loop_detection(
                        index,
                        cap.as_str(),
                        LoopSeverity::Critical,
                        index + 1,
                        action,
                        call,
                    );
                }
                Event::TaskEnded { transition, .. } => self.transition = Some(transition.clone()),
                _ => {}
            }
        }
    }

    fn print_loop_detection(
        &mut self,
        index: u64,
        detector: &str,
        level: LoopSeverity,
        count: u64,
        action: DetectorOrCapResponse,
        call: Option<&TraceToolCallIndex>,
    ) {
        if level == LoopSeverity::Warning {
            self.warnings += 1;
        }
        if action == DetectorOrCapResponse::Halt {
            self.halts += 1;
            self.halted_at.get_or_insert(index);
        }
        if self.as_json {
            ui::print_json(&json!({
                "kind": "finding",
                "index": index,
                "detector": detector,
                "level": level,
                "count": count,
                "action": action,
            }));
        } else if action != DetectorOrCapResponse::Observe {
            let tool = call.map_or("", |call| call.tool.as_str());
            ui::print_line_to_stdout(&format!(
                "call {index:>5}  {:<24} {count:>4} times  {tool}  -> {}",
                detector,
                detector_or_cap_response_label(action)
            ));
        }
    }

    fn print_replay_summary(&self) {
        if self.as_json {
            let mut object = json!({
                "kind": "summary",
                "schema": "checkrein/replay/1",
                "file": self.file,
                "tool_calls": self.calls,
                "warnings": self.warnings,
                "halts": self.halts,
                "halted_at": self.halted_at,
                "output_tokens": self.tokens.map(|(output, _)| output),
                "input_tokens": self.tokens.map(|(_, input)| input),
                "transition": self.transition,
            });
            if let (Some(id), Some(map)) = (&self.id, object.as_object_mut()) {
                map.insert("id".to_owned(), json!(id));
            }
            ui::print_json(&object);
            return;
        }
        let halted = self.halted_at.map_or_else(
            || "never halted".to_owned(),
            |at| format!("halted at call {at}"),
        );
        let ending = self.transition.as_ref().map_or_else(String::new, |ended| {
            format!(", {}", explanations::transition_reason_text(ended))
        });
        let id = self
            .id
            .as_deref()
            .map_or_else(String::new, |id| format!(" {id}"));
        ui::print_line_to_stdout(&format!(
            "{}{id}: {}, {}, {halted}{ending}",
            self.file,
            count_with_noun(self.calls, "call"),
            count_with_noun(self.warnings, "warning")
        ));
    }
}

fn detector_or_cap_response_label(action: DetectorOrCapResponse) -> &'static str {
    match action {
        DetectorOrCapResponse::Observe => "seen",
        DetectorOrCapResponse::Nudge => "a word of advice",
        DetectorOrCapResponse::Deny => "denied",
        DetectorOrCapResponse::Grace => "denied, asked to sum up",
        DetectorOrCapResponse::Halt => "task halted",
    }
}
