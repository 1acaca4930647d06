//! `checkrein watch`: follows an open task, a line per event; with `--line`, prints where it stands
//! in one line. It reads the store a few times a second and writes nothing.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use checkrein_core::decision::Decision;
use checkrein_core::effect::Effect;
use checkrein_core::event::{self, Event};
use checkrein_core::evidence::Verdict;
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::{EventSeq, SessionId, TaskId};
use checkrein_core::input::Input;
use checkrein_store::{SqliteStore, Store as _, StoreError, TaskRow};
use serde::Deserialize;

use crate::args::WatchArgs;
use crate::commands::lookup;
use crate::ui::errors::CommandError;
use crate::ui::explanations;
use crate::ui::style::count_with_noun;
use crate::ui::timeline::{self, EventTimelineRenderer};
use crate::{exit_code, locate, off, signals, ui};

/// How often the store is read.
const STORE_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Newest tasks that are searched for an open one.
const MAX_TASKS: usize = 50;
/// How long a status line waits for its input.
const STDIN_WAIT: Duration = Duration::from_millis(200);
const MAX_STDIN: u64 = 64 * 1024;

pub(crate) fn run_watch_command(args: &WatchArgs) -> Result<ExitCode, CommandError> {
    if args.line {
        ui::print_line_to_stdout(&format!(
            "checkrein: {}",
            look_up_task_status_line(args.id.as_deref())?
        ));
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let state = &located.place.state;
    signals::install_signal_handlers();
    if let Some(off) = off::active_off_period(state) {
        ui::print_wrapped_to_stderr(&off.off_summary_line());
    }
    let mut store = None;
    let mut following: Option<FollowedSession> = None;
    let mut waits = false;
    while !signals::is_process_cancelled() {
        // The store may be made only after the watching has begun.
        if store.is_none() {
            store = open_store_if_present(state)?;
        }
        if let Some(store) = &store {
            if let Some(row) = next_task_to_follow(store, args.id.as_deref(), following.as_ref())? {
                following = Some(FollowedSession::new_follower_for_task_row(row));
            }
            if let Some(following) = &mut following
                && !following.print_new_events(store)?
            {
                // The reader of our output has gone.
                break;
            }
        }
        if following.is_none() && !waits {
            waits = true;
            ui::print_wrapped_to_stderr(
                "No task is open in this repo; waiting for one. Ctrl-C ends this.",
            );
        }
        std::thread::sleep(STORE_POLL_INTERVAL);
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}

fn open_store_if_present(state: &Path) -> Result<Option<SqliteStore>, CommandError> {
    match SqliteStore::open_store_read_only(state) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the task to follow from here on, if it is another than before.
fn next_task_to_follow(
    store: &SqliteStore,
    asked: Option<&str>,
    now: Option<&FollowedSession>,
) -> Result<Option<TaskRow>, CommandError> {
    let Some(asked) = asked else {
        let rows = store.newest_task_summaries(None, MAX_TASKS)?;
        let newest = rows.into_iter().find(|row| row.ended_at.is_none());
        return Ok(newest.filter(|row| {
            // The followed session reports its own next task.
            now.is_none_or(|now| now.session != row.session && row.opened_at > now.row.opened_at)
        }));
    };
    match now {
        Some(_) => Ok(None),
        None => lookup::find_task(store, Some(asked)).map(Some),
    }
}

/// A session that is followed.
struct FollowedSession {
    session: SessionId,
    row: TaskRow,
    printed_until: EventSeq,
    task: TaskId,
    /// The input that may open the next task.
    held_prompt: Option<Event>,
    timeline: EventTimelineRenderer,
}

impl FollowedSession {
    fn new_follower_for_task_row(row: TaskRow) -> Self {
        Self {
            session: row.session.clone(),
            printed_until: EventSeq(0),
            task: TaskId(0),
            held_prompt: None,
            timeline: EventTimelineRenderer::new(true),
            row,
        }
    }

    /// Prints new events; false if nobody reads them.
    fn print_new_events(&mut self, store: &SqliteStore) -> Result<bool, CommandError> {
        for raw in store.events_after(&self.session, self.printed_until)? {
            self.printed_until = raw.seq;
            // An event that a newer version wrote, and this build does not know, cannot be shown.
            let Ok(event) = event::decode_event(&raw.payload) else {
                continue;
            };
            if !self.print_event_or_hold_prompt(event) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn print_event_or_hold_prompt(&mut self, event: Event) -> bool {
        if let Event::TaskOpened { task, .. } = &event {
            self.task = *task;
            self.timeline = EventTimelineRenderer::new(true);
            // Tasks before the one that was asked for are not shown.
            if self.task < self.row.task {
                self.held_prompt = None;
                return true;
            }
            let title = format!(
                "task {} · {} · {}",
                lookup::short_task_id(&self.session, *task),
                self.row.agent,
                self.row.root
            );
            let opener = self.held_prompt.take();
            return timeline::format_timeline_title(&title)
                .into_iter()
                .all(ui::print_line_while_stdout_open)
                && opener.is_none_or(|opener| self.print_event(&opener));
        }
        let told = self.task >= self.row.task;
        // A prompt may open the next task, so its line belongs below that task's title.
        if matches!(&event, Event::Input(stamped) if matches!(stamped.input, Input::PromptSubmitted(_)))
            || !told
        {
            self.held_prompt = Some(event);
            return true;
        }
        if let Some(held) = self.held_prompt.take_if(|_| !is_task_end(&event))
            && !self.print_event(&held)
        {
            return false;
        }
        self.print_event(&event)
    }

    fn print_event(&mut self, event: &Event) -> bool {
        self.timeline
            .timeline_lines_of_event(event)
            .into_iter()
            .all(ui::print_line_while_stdout_open)
    }
}

/// Whether the event ends a task. A prompt ends the old task before it opens its own.
fn is_task_end(event: &Event) -> bool {
    matches!(event, Event::TaskEnded { .. })
}

/// Returns where the typed task stands, or else that of the session which the agent names on stdin,
/// or else the newest.
fn look_up_task_status_line(typed: Option<&str>) -> Result<String, CommandError> {
    let told = match typed {
        Some(_) => StatusLineInput::default(),
        None => read_status_line_input(),
    };
    let here = told.cwd.map_or_else(std::env::current_dir, Ok)?;
    let state = &locate::locate_project(&here, None).place.state;
    if let Some(off) = off::active_off_period(state) {
        return Ok(off.switched_off_until_text());
    }
    let Some(store) = open_store_if_present(state)? else {
        return Ok("no task yet".to_owned());
    };
    let found = match typed {
        Some(id) => Some(lookup::find_task(&store, Some(id))?),
        None => {
            let session = told.session_id.map(SessionId::new);
            store.newest_task_summaries(session.as_ref(), 1)?.pop()
        }
    };
    let Some(row) = found else {
        return Ok("no task yet".to_owned());
    };
    let standing = match lookup::ending_of_task_row(&row) {
        Some(ending) => explanations::transition_reason_text(&ending),
        None => "open".to_owned(),
    };
    let mut line = format!("{standing} · {}", count_with_noun(row.tool_calls, "call"));
    if let Some(verdict) =
        newest_stop_checks_summary(&lookup::task_events(&store, &row.session, row.task)?)
    {
        line.push_str(&format!(" · {verdict}"));
    }
    if row.continues > 0 {
        line.push_str(&format!(" · sent back {}", row.continues));
    }
    Ok(line)
}

/// Returns the result of the newest stop's checks, or that they are still running.
fn newest_stop_checks_summary(events: &[(EventSeq, Event)]) -> Option<String> {
    // Backwards: a request for checks that comes before any decision has not been answered
    // yet.
    events.iter().rev().find_map(|(_, event)| match event {
        Event::DecisionMade(made) if matches!(made.decision, Decision::Stop(_)) => {
            Some(worst_verdict_text(&made.why))
        }
        Event::Requested { effects, .. } => effects
            .iter()
            .any(|effect| matches!(effect, Effect::RunVerifier { .. }))
            .then(|| Some("checking".to_owned())),
        _ => None,
    })?
}

/// Returns the worst verdict that counts; advisory ones count only if there are no others.
fn worst_verdict_text(why: &[DecisionFactor]) -> Option<String> {
    let verdicts = || {
        why.iter().filter_map(|because| match because {
            DecisionFactor::Verdict {
                verifier,
                verdict,
                required,
                ..
            } => Some((verifier, *verdict, *required)),
            _ => None,
        })
    };
    let any = verdicts().any(|(_, _, required)| required);
    let counts = || verdicts().filter(|(_, _, required)| *required || !any);
    let worst = [Verdict::Fail, Verdict::Inconclusive]
        .into_iter()
        .find_map(|bad| counts().find(|(_, verdict, _)| *verdict == bad));
    let shown = worst.or_else(|| counts().next())?;
    Some(match (worst, counts().count()) {
        (None, many @ 2..) => format!("{many} checks pass"),
        _ => format!("{} {}", shown.0, explanations::verdict_text(shown.1)),
    })
}

/// What Claude Code passes to its status line.
#[derive(Default, Deserialize)]
struct StatusLineInput {
    session_id: Option<String>,
    cwd: Option<PathBuf>,
}

/// Reads the status line's input; a person at a terminal passes none.
fn read_status_line_input() -> StatusLineInput {
    if std::io::stdin().is_terminal() {
        return StatusLineInput::default();
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    // A writer that keeps the pipe open and sends nothing is not waited for.
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().take(MAX_STDIN).read_to_string(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    match receiver.recv_timeout(STDIN_WAIT) {
        Ok(Ok(text)) => serde_json::from_str(&text).unwrap_or_default(),
        Ok(Err(_)) | Err(_) => StatusLineInput::default(),
    }
}
