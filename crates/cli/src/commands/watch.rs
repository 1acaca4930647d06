//! `checkrein watch`: an open task as it goes on, a line per event; `--line`: where it stands,
//! in one line. It looks at the store a few times a second and writes nothing.

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

use crate::args::Watch;
use crate::commands::lookup;
use crate::ui::errors::CommandError;
use crate::ui::style::counted;
use crate::ui::timeline::{self, Timeline};
use crate::ui::words;
use crate::{exit_code, locate, off, signals, ui};

/// How often it looks.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Tasks among which the open one is looked for.
const NEWEST: usize = 50;
/// How long a status line waits for what it is about.
const STDIN: Duration = Duration::from_millis(200);
const MAX_STDIN: u64 = 64 * 1024;

pub(crate) fn run(args: &Watch) -> Result<ExitCode, CommandError> {
    if args.line {
        ui::answer(&format!("checkrein: {}", line(args.id.as_deref())?));
        return Ok(exit_code::exit(exit_code::YES));
    }
    let located = locate::locate(&std::env::current_dir()?, None);
    let state = &located.place.state;
    signals::listen();
    if let Some(off) = off::in_force(state) {
        ui::say(&off.words());
    }
    let mut store = None;
    let mut following: Option<Following> = None;
    let mut waits = false;
    while !signals::cancelled() {
        if store.is_none() {
            store = opened(state)?;
        }
        if let Some(store) = &store {
            if let Some(row) = next(store, args.id.as_deref(), following.as_ref())? {
                following = Some(Following::begin(row));
            }
            if let Some(following) = &mut following
                && !following.tell(store)?
            {
                // Whoever read it has gone.
                break;
            }
        }
        if following.is_none() && !waits {
            waits = true;
            ui::say("No task is open in this repo; waiting for one. Ctrl-C ends this.");
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(exit_code::exit(exit_code::YES))
}

fn opened(state: &Path) -> Result<Option<SqliteStore>, CommandError> {
    match SqliteStore::open_store_read_only(state) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The task to follow from here on, if it is another one than before.
fn next(
    store: &SqliteStore,
    asked: Option<&str>,
    now: Option<&Following>,
) -> Result<Option<TaskRow>, CommandError> {
    let Some(asked) = asked else {
        let rows = store.newest_task_summaries(None, NEWEST)?;
        let newest = rows.into_iter().find(|row| row.ended_at.is_none());
        return Ok(newest.filter(|row| {
            // A session tells of its own next task.
            now.is_none_or(|now| now.session != row.session && row.opened_at > now.row.opened_at)
        }));
    };
    match now {
        Some(_) => Ok(None),
        None => lookup::task(store, Some(asked)).map(Some),
    }
}

/// A session that is told of.
struct Following {
    session: SessionId,
    row: TaskRow,
    told: EventSeq,
    task: TaskId,
    /// The input that may open the next task.
    held: Option<Event>,
    timeline: Timeline,
}

impl Following {
    fn begin(row: TaskRow) -> Self {
        Self {
            session: row.session.clone(),
            told: EventSeq(0),
            task: TaskId(0),
            held: None,
            timeline: Timeline::new(true),
            row,
        }
    }

    /// Tells what is new; false if nobody listens.
    fn tell(&mut self, store: &SqliteStore) -> Result<bool, CommandError> {
        for raw in store.events_after(&self.session, self.told)? {
            self.told = raw.seq;
            // What a newer version wrote and we do not know cannot be shown.
            let Ok(event) = event::decode_event(&raw.payload) else {
                continue;
            };
            if !self.take(event) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, event: Event) -> bool {
        if let Event::TaskOpened { task, .. } = &event {
            self.task = *task;
            self.timeline = Timeline::new(true);
            // Tasks before the one that was asked for are over.
            if self.task < self.row.task {
                self.held = None;
                return true;
            }
            let title = format!(
                "task {} · {} · {}",
                lookup::short(&self.session, *task),
                self.row.agent,
                self.row.root
            );
            let opener = self.held.take();
            return timeline::title(&title).into_iter().all(ui::follow)
                && opener.is_none_or(|opener| self.say(&opener));
        }
        let told = self.task >= self.row.task;
        // A prompt may open the next task: its line belongs below that one's title.
        if matches!(&event, Event::Input(stamped) if matches!(stamped.input, Input::PromptSubmitted(_)))
            || !told
        {
            self.held = Some(event);
            return true;
        }
        if let Some(held) = self.held.take_if(|_| !ends(&event))
            && !self.say(&held)
        {
            return false;
        }
        self.say(&event)
    }

    fn say(&mut self, event: &Event) -> bool {
        self.timeline.lines(event).into_iter().all(ui::follow)
    }
}

/// A prompt ends the task before it opens its own.
fn ends(event: &Event) -> bool {
    matches!(event, Event::TaskEnded { .. })
}

/// Where the task stands that was typed, else that of the session which the agent names on
/// stdin, else the newest one.
fn line(typed: Option<&str>) -> Result<String, CommandError> {
    let told = match typed {
        Some(_) => Told::default(),
        None => told_on_stdin(),
    };
    let here = told.cwd.map_or_else(std::env::current_dir, Ok)?;
    let state = &locate::locate(&here, None).place.state;
    if let Some(off) = off::in_force(state) {
        return Ok(off.short());
    }
    let Some(store) = opened(state)? else {
        return Ok("no task yet".to_owned());
    };
    let found = match typed {
        Some(id) => Some(lookup::task(&store, Some(id))?),
        None => {
            let session = told.session_id.map(SessionId::new);
            store.newest_task_summaries(session.as_ref(), 1)?.pop()
        }
    };
    let Some(row) = found else {
        return Ok("no task yet".to_owned());
    };
    let standing = match lookup::transition(&row) {
        Some(ending) => words::transition(&ending),
        None => "open".to_owned(),
    };
    let mut line = format!("{standing} · {}", counted(row.tool_calls, "call"));
    if let Some(verdict) = newest_stop(&lookup::events(&store, &row.session, row.task)?) {
        line.push_str(&format!(" · {verdict}"));
    }
    if row.continues > 0 {
        line.push_str(&format!(" · sent back {}", row.continues));
    }
    Ok(line)
}

/// What came of the checks of the newest stop, or that they are still running.
fn newest_stop(events: &[(EventSeq, Event)]) -> Option<String> {
    events.iter().rev().find_map(|(_, event)| match event {
        Event::DecisionMade(made) if matches!(made.decision, Decision::Stop(_)) => {
            Some(told(&made.why))
        }
        Event::Requested { effects, .. } => effects
            .iter()
            .any(|effect| matches!(effect, Effect::RunVerifier { .. }))
            .then(|| Some("checking".to_owned())),
        _ => None,
    })?
}

/// The worst of the verdicts that count; what is advisory only if there is nothing else.
fn told(why: &[DecisionFactor]) -> Option<String> {
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
        _ => format!("{} {}", shown.0, words::verdict(shown.1)),
    })
}

/// What Claude Code tells its status line of.
#[derive(Default, Deserialize)]
struct Told {
    session_id: Option<String>,
    cwd: Option<PathBuf>,
}

/// Whoever typed the command tells nothing.
fn told_on_stdin() -> Told {
    if std::io::stdin().is_terminal() {
        return Told::default();
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    // Who holds the pipe open and says nothing is not waited for.
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().take(MAX_STDIN).read_to_string(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    match receiver.recv_timeout(STDIN) {
        Ok(Ok(text)) => serde_json::from_str(&text).unwrap_or_default(),
        Ok(Err(_)) | Err(_) => Told::default(),
    }
}
