//! Finds a task by what a person types: nothing, the beginning of a session's id, or that with a
//! task's number.

use std::collections::BTreeMap;

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::event::{self, DecisionOnInput, Event, TaskOrigin};
use checkrein_core::explain::{self, ChangeKindHoldingUpStop, DecisionFactor};
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, TaskId};
use checkrein_core::input::Input;
use checkrein_core::transition::Transition;
use checkrein_store::{HashChainStatus, SqliteStore, Store as _, StoreError, TaskRow};

use crate::ui::errors::CommandError;

/// How many tasks are searched.
const LOOK_BACK: usize = 10_000;

/// Finds the task that `id` means; the newest task without one.
pub(crate) fn find_task(store: &SqliteStore, id: Option<&str>) -> Result<TaskRow, CommandError> {
    let rows = store.newest_task_summaries(None, LOOK_BACK)?;
    // Split at the last slash, because an agent's own session id may contain one.
    let (session, number) = match id.map(|id| id.rsplit_once('/').unwrap_or((id, ""))) {
        None => ("", None),
        Some((session, "")) => (session, None),
        Some((session, number)) => {
            let number = number.parse().map_err(|_| {
                CommandError::usage_error(
                    format!("'{number}' is not the number of a task"),
                    "write SESSION/TASK, for instance 3f2a/2",
                )
            })?;
            (session, Some(TaskId(number)))
        }
    };
    let mut fitting = rows.into_iter().filter(|row| {
        row.session.as_str().starts_with(session) && number.is_none_or(|number| row.task == number)
    });
    let Some(found) = fitting.next() else {
        return Err(CommandError::usage_error(
            match id {
                Some(id) => format!("no task is known as '{id}' in this repo"),
                None => "no task is recorded in this repo yet".to_owned(),
            },
            "checkrein sessions lists them",
        ));
    };
    // Several tasks of one session are no ambiguity: the newest is meant. Several sessions
    // are.
    if id.is_some() && fitting.any(|row| row.session != found.session) {
        let id = id.unwrap_or_default();
        return Err(CommandError::usage_error(
            format!("'{id}' could be several sessions"),
            "write more of the id",
        ));
    }
    Ok(found)
}

/// Returns a short name for a task, which `show` understands.
pub(crate) fn short_task_id(session: &SessionId, task: TaskId) -> String {
    let head: String = session.as_str().chars().take(12).collect();
    format!("{head}/{task}")
}

/// Returns how a row's task ended.
pub(crate) fn ending_of_task_row(row: &TaskRow) -> Option<Transition> {
    let word = row.reason.as_deref()?;
    let reason = checkrein_core::transition::Reason::ALL
        .into_iter()
        .find(|reason| reason.as_str() == word)?;
    Some(Transition {
        reason,
        detail: row.detail.clone(),
        native_reason: row.native_reason.clone(),
    })
}

/// Returns what a person asked for, by task. For a log that is too damaged to be read it returns
/// nothing; [`find_log_damage`] reports that damage.
pub(crate) fn logged_task_prompts(
    store: &SqliteStore,
    session: &SessionId,
) -> Result<BTreeMap<TaskId, String>, CommandError> {
    let mut prompts = BTreeMap::new();
    let mut newest = None;
    let rows = match store.events_after(session, EventSeq(0)) {
        Err(StoreError::Corrupt { .. }) => return Ok(prompts),
        rows => rows?,
    };
    for raw in rows {
        // Most events are of other kinds and need not be decoded.
        if !matches!(raw.kind.as_str(), "prompt_submitted" | "task_opened") {
            continue;
        }
        match event::decode_event(&raw.payload) {
            Ok(Event::Input(stamped)) => {
                if let Input::PromptSubmitted(prompt) = stamped.input {
                    newest = Some(prompt.text);
                }
            }
            Ok(Event::TaskOpened { task, by, .. }) => {
                // The prompt is logged before the task that it opens.
                if let (TaskOrigin::Prompt, Some(text)) = (by, newest.take()) {
                    prompts.insert(task, text);
                }
            }
            _ => {}
        }
    }
    Ok(prompts)
}

/// Returns where the log of a session is damaged, if it is.
pub(crate) fn find_log_damage(
    store: &SqliteStore,
    session: &SessionId,
) -> Result<Option<EventSeq>, CommandError> {
    Ok(match store.verify_chain(session)? {
        HashChainStatus::Broken { at } => Some(at),
        HashChainStatus::Whole { .. } => None,
    })
}

/// Returns the events of a task in order, with their numbers; none for a log that is too damaged to
/// be read.
pub(crate) fn task_events(
    store: &SqliteStore,
    session: &SessionId,
    task: TaskId,
) -> Result<Vec<(EventSeq, Event)>, CommandError> {
    let mut current = TaskId(0);
    let mut found = Vec::new();
    let mut news: Option<(EventSeq, Event)> = None;
    let rows = match store.events_after(session, EventSeq(0)) {
        Err(StoreError::Corrupt { .. }) => return Ok(found),
        rows => rows?,
    };
    for raw in rows {
        // An event that a newer version wrote, and this build does not know, cannot be shown.
        let Ok(event) = event::decode_event(&raw.payload) else {
            continue;
        };
        // Kept back: the input that opens a task is logged before the task.
        if let Event::Input(_) = &event {
            news = Some((raw.seq, event.clone()));
        }
        if let Event::TaskOpened { task: opened, .. } = &event {
            current = *opened;
            // The input that opens a task may end another one first.
            if current == task {
                found.extend(news.take());
            } else if current.0 > task.0 {
                // The opener of the next task was taken for the last event of this one.
                let opener = news.map(|(seq, _)| seq);
                found.retain(|(seq, _)| Some(*seq) != opener);
                break;
            }
        }
        if current == task {
            found.push((raw.seq, event));
        }
    }
    Ok(found)
}

/// Returns the decision that ended the task.
pub(crate) fn find_task_ending_decision(events: &[(EventSeq, Event)]) -> Option<&DecisionOnInput> {
    let ended = events
        .iter()
        .rposition(|(_, event)| matches!(event, Event::TaskEnded { .. }))?;
    // The decision stands before the ending that it causes.
    events
        .iter()
        .take(ended)
        .rev()
        .find_map(|(_, event)| match event {
            Event::DecisionMade(made)
                if matches!(
                    made.decision,
                    Decision::Stop(StopDecision::Accept { .. } | StopDecision::Halt { .. })
                        | Decision::Tool(ToolDecision::Halt { .. })
                ) =>
            {
                Some(made)
            }
            _ => None,
        })
}

/// Returns what kept the stop that ended the task from being judged.
pub(crate) fn change_holding_up_stop(
    events: &[(EventSeq, Event)],
) -> Option<ChangeKindHoldingUpStop> {
    let answered = find_task_ending_decision(events)?.answers;
    let of_stop = events.iter().filter(|(seq, _)| *seq >= answered);
    explain::newest_stop_held_up_cause(of_stop.map(|(_, event)| event), &ScopeId::main_scope())
}

/// Returns the facts behind a task's ending.
pub(crate) fn task_end_reasons(events: &[(EventSeq, Event)]) -> &[DecisionFactor] {
    find_task_ending_decision(events).map_or(&[], |made| &made.why)
}
