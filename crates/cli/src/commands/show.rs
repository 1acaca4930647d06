//! `checkrein show`: one task, as a story, or the reasons for its ending in five lines.

use std::process::ExitCode;

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::event::{DecisionMade, Event};
use checkrein_core::ids::{Millis, Seq};
use checkrein_core::input::Input;
use checkrein_core::transition::{Reason, Transition};
use checkrein_store::{SqliteStore, TaskRow};
use serde_json::json;

use crate::args::Show;
use crate::commands::{lookup, sessions};
use crate::ui::errors::CommandError;
use crate::ui::style::{On, Paint, duration, of_reason};
use crate::ui::{timeline, words};
use crate::{exit_code, locate, off, ui};

pub(crate) fn run(args: &Show) -> Result<ExitCode, CommandError> {
    let located = locate::locate(&std::env::current_dir()?, None);
    let store = SqliteStore::open_read_only(&located.place.state)?;
    let row = lookup::task(&store, args.id.as_deref())?;
    let events = lookup::events(&store, &row.session, row.task)?;
    let ending = lookup::transition(&row);
    let chain = lookup::chain(&store, &row.session)?;
    if let Err(changed) = &chain {
        ui::say(&format!("checkrein: {changed}"));
    }
    if let Some(off) = off::in_force(&located.place.state) {
        ui::say(&off.words());
    }
    if args.json {
        let rows: Vec<serde_json::Value> = events
            .iter()
            .map(|(seq, event)| json!({ "seq": seq, "kind": event.kind(), "event": event }))
            .collect();
        let mut document = sessions::document(&row);
        if let Some(object) = document.as_object_mut() {
            object.insert("schema".to_owned(), json!("checkrein/show/1"));
            object.insert(
                "why".to_owned(),
                json!(last_decision(&events).map(|made| &made.why)),
            );
            object.insert("events".to_owned(), json!(rows));
            object.insert("chain".to_owned(), json!({ "whole": chain.is_ok() }));
        }
        ui::json(&document);
    } else if args.why {
        for line in why(&row, ending.as_ref(), &events) {
            ui::answer(&line);
        }
    } else {
        story(&row, ending.as_ref(), &events);
    }
    Ok(exit_code::exit(exit_code::YES))
}

fn story(row: &TaskRow, ending: Option<&Transition>, events: &[(Seq, Event)]) {
    let title = format!(
        "task {} · {} · {}",
        lookup::short(&row.session, row.task),
        row.agent,
        row.root
    );
    ui::answer(&On::Stdout.paint(Paint::Strong, &title));
    let plain: Vec<Event> = events.iter().map(|(_, event)| event.clone()).collect();
    let start = plain
        .iter()
        .find_map(|event| match event {
            Event::Input(stamped) => Some(stamped.at),
            _ => None,
        })
        .unwrap_or(Millis(0));
    for line in timeline::lines(&plain, start) {
        ui::answer(&line);
    }
    if let Some(words) = last_words(ending, events) {
        ui::answer(&format!("last words: {words}"));
    }
    for line in why(row, ending, events) {
        ui::answer(&line);
    }
}

/// What the agent said last, when it was not let finish.
fn last_words(ending: Option<&Transition>, events: &[(Seq, Event)]) -> Option<String> {
    if ending?.reason == Reason::TaskComplete {
        return None;
    }
    events.iter().rev().find_map(|(_, event)| match event {
        Event::Input(stamped) => match &stamped.input {
            Input::StopRequested(stop) if !stop.message.trim().is_empty() => {
                Some(timeline::quote(&stop.message))
            }
            _ => None,
        },
        _ => None,
    })
}

/// At most five lines: the ending, the facts behind it, what it took, what to do.
fn why(row: &TaskRow, ending: Option<&Transition>, events: &[(Seq, Event)]) -> Vec<String> {
    let Some(ending) = ending else {
        return vec!["still open: no stop has been answered for good".to_owned()];
    };
    let mut lines = vec![format!(
        "{}: {}",
        On::Stdout.paint(of_reason(ending.reason), &words::transition(ending)),
        words::meaning(ending)
    )];
    let facts: Vec<String> = last_decision(events)
        .map(|made| made.why.iter().map(words::because).collect())
        .unwrap_or_default();
    if !facts.is_empty() {
        lines.push(format!("because: {}", facts.join("; ")));
    }
    let took = row.ended_at.map_or_else(String::new, |ended| {
        format!(" in {}", duration(ended.since(row.opened_at)))
    });
    lines.push(format!(
        "after: {} stops, sent back {} times, {} tool calls{took}",
        row.stops, row.continues, row.tool_calls
    ));
    if let Some(native) = &ending.native_reason {
        lines.push(format!("the agent calls it: {native}"));
    }
    if let Some(next) = next_step(ending) {
        lines.push(format!("next: {next}"));
    }
    lines
}

fn next_step(ending: &Transition) -> Option<String> {
    let detail = ending.detail.as_deref().unwrap_or_default();
    Some(match ending.reason {
        Reason::TaskComplete | Reason::Abandoned | Reason::UserInterrupt => return None,
        Reason::Error => "look at the agent's own output; run it again".to_owned(),
        Reason::Unverified => match detail {
            "no_checks" => "write a [[verifier]] into checkrein.toml".to_owned(),
            "no_change" => return None,
            _ => "checkrein check runs the checks now".to_owned(),
        },
        Reason::GaveUp => "checkrein check shows what still fails; a new prompt starts a new task".to_owned(),
        Reason::HardCap => format!("if the work was worth it, raise caps.{detail} in checkrein.toml"),
        Reason::DiminishingReturns => "split the task, or raise caps.token_budget".to_owned(),
        Reason::LoopDetected => "checkrein show tells which call was repeated; say in the next prompt what to do instead".to_owned(),
        Reason::VerifierFailedUnrecoverable => format!("install what verifier '{detail}' needs, or mark it advisory"),
        Reason::PermissionDenied => "allow the command in the rules, or tell the agent another way".to_owned(),
        Reason::AwaitingHuman => "decide, then prompt again".to_owned(),
        Reason::Truncated => "ask for smaller steps, or raise the model's output limit".to_owned(),
    })
}

fn last_decision(events: &[(Seq, Event)]) -> Option<&DecisionMade> {
    let ended = events
        .iter()
        .rposition(|(_, event)| matches!(event, Event::TaskEnded { .. }))?;
    events
        .iter()
        .take(ended)
        .rev()
        .find_map(|(_, event)| match event {
            Event::DecisionMade(made)
                if matches!(
                    made.decision,
                    Decision::Stop(StopDecision::Accept { .. } | StopDecision::Halt { .. })
                        | Decision::Tool(checkrein_core::decision::ToolDecision::Halt { .. })
                ) =>
            {
                Some(made)
            }
            _ => None,
        })
}
