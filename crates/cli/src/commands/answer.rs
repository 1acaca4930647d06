//! `checkrein approve` and `checkrein deny`: a person at a terminal answers what was parked,
//! after a look at exactly what it is.

use std::io::BufRead as _;
use std::process::ExitCode;

use checkrein_core::input::PersonAnswer;
use checkrein_runtime::Patience;
use checkrein_runtime::config::Driver;
use checkrein_store::{About, Approval, Stands};

use crate::args::Answer;
use crate::commands::trust::{asked, printable};
use crate::commands::{approvals, engine};
use crate::person::{self, Checked};
use crate::ui::errors::CommandError;
use crate::ui::style::{On, Paint, clock, duration};
use crate::{exit_code, locate, signals, ui};

pub(crate) fn approve(args: &Answer) -> Result<ExitCode, CommandError> {
    let by = person::required("approve")?;
    answer(args, true, &by)
}

pub(crate) fn deny(args: &Answer) -> Result<ExitCode, CommandError> {
    let by = person::required("deny")?;
    answer(args, false, &by)
}

fn answer(args: &Answer, approved: bool, by: &Checked) -> Result<ExitCode, CommandError> {
    let located = locate::locate(&std::env::current_dir()?, None);
    let rows = approvals::all(&located)?;
    let row = find(&rows, &args.id)?;
    let now = checkrein_runtime::now();
    let stands = row.stands(now);
    if stands != Stands::Asked {
        return Err(CommandError::failed(match stands {
            Stands::Expired => format!(
                "{} ran out at {}: the agent has to ask again",
                row.id,
                clock(row.until, now)
            ),
            stands => format!("{} was answered before: it is {}", row.id, stands.as_str()),
        }));
    }
    show(row);
    let Some(reason) = reason(args, approved)? else {
        ui::answer("not approved: it waits on");
        return Ok(exit_code::exit(exit_code::NO));
    };
    let store = engine::store(&located.place)?;
    let answer = PersonAnswer {
        approved,
        by: by.words(),
        reason,
    };
    let patience = Patience {
        deadline: None,
        cancelled: &signals::CANCELLED,
    };
    let answered = engine::runtime(&located, store, Driver::Hook).answer(row, answer, patience)?;
    let until = clock(answered.until, checkrein_runtime::now());
    ui::answer(&match (approved, &row.about) {
        (true, About::Call { .. }) => {
            format!("approved: exactly this call may be made once, until {until}")
        }
        (true, About::Work { .. }) => {
            format!("approved: exactly this, until {until}; an edit voids it")
        }
        (false, About::Call { .. }) => {
            format!("denied: exactly this call is refused, until {until}")
        }
        (false, About::Work { .. }) => format!("denied: exactly this, until {until}"),
    });
    if let (true, About::Work { .. }) = (approved, &row.about) {
        ui::say("The agent's next stop is judged by it: prompt it again, or run it again.");
    }
    Ok(exit_code::exit(exit_code::YES))
}

/// The question that is meant, with or without its `ap-`.
fn find<'a>(rows: &'a [Approval], id: &str) -> Result<&'a Approval, CommandError> {
    let wanted = id.trim_start_matches("ap-");
    let fits = |row: &&Approval| {
        !wanted.is_empty() && row.id.trim_start_matches("ap-").starts_with(wanted)
    };
    let mut fitting = rows.iter().filter(fits);
    let hint = "checkrein approvals lists them";
    let Some(first) = fitting.next() else {
        return Err(CommandError::usage(
            format!("nothing that was asked here is known as '{id}'"),
            hint,
        ));
    };
    match fitting.next() {
        None => Ok(first),
        Some(_) => Err(CommandError::usage(
            format!("'{id}' could be several"),
            "write more of the id",
        )),
    }
}

/// Everything, as it will be recorded: the agent's word for it does not count.
fn show(row: &Approval) {
    let line = |name: &str, text: &str| ui::answer(&format!("  {name:<9}{}", printable(text)));
    ui::answer(&On::Stdout.paint(Paint::Strong, &row.id));
    match &row.about {
        About::Call { tool, text } => {
            line("tool", tool);
            for (at, text) in text.lines().enumerate() {
                line(if at == 0 { "call" } else { "" }, text);
            }
        }
        About::Work { verifier, subject } => {
            line("verifier", verifier);
            line("on", &subject.to_hex());
        }
    }
    for (at, text) in row.why.lines().enumerate() {
        line(if at == 0 { "why" } else { "" }, text);
    }
    line("agent", &format!("{} in {}", row.agent, row.root));
    line(
        "asked",
        &format!("{} ago", duration(checkrein_runtime::now().since(row.at))),
    );
}

/// Why; `None` if it is not to be after all. Whoever approves says why.
fn reason(args: &Answer, approved: bool) -> Result<Option<Option<String>>, CommandError> {
    let given = args
        .reason
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    if !approved {
        return Ok(Some(given.map(str::to_owned)));
    }
    if let Some(given) = given {
        return Ok(asked("Approve exactly this?")?.then(|| Some(given.to_owned())));
    }
    ui::ask("Approve exactly this? Say why in a few words (nothing: no): ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let line = line.trim();
    // Somebody who types `n` means no.
    let no = line.is_empty() || matches!(line.to_lowercase().as_str(), "n" | "no");
    Ok((!no).then(|| Some(line.to_owned())))
}
