//! The findings, for people: one block per agent, what is wrong before what is well.

use super::finding::{Finding, Status};
use super::places;
use crate::ui;
use crate::ui::line::Line;
use crate::ui::style::Paint;

/// Columns that are used of a wider terminal.
const WIDTH: usize = 100;

/// Prints all of them, and what they come to.
pub(super) fn print(findings: &[Finding]) {
    for about in places::ALL.iter().map(|agent| agent.name).chain(["repo"]) {
        let mut block: Vec<&Finding> = findings
            .iter()
            .filter(|finding| finding.about == about)
            .collect();
        if block.is_empty() {
            continue;
        }
        block.sort_by_key(|finding| std::cmp::Reverse(finding.status));
        let label = places::ALL
            .iter()
            .find(|agent| agent.name == about)
            .map_or("This repo", |agent| agent.label);
        ui::answer(Line::painted(Paint::Strong, label));
        for finding in block {
            one(finding);
        }
        ui::answer("");
    }
    let count = |status: Status| {
        findings
            .iter()
            .filter(|finding| finding.status == status)
            .count()
    };
    let (faults, warnings) = (count(Status::Fault), count(Status::Warning));
    let (paint, line) = match (faults, warnings) {
        (0, 0) => (Paint::Good, "All well.".to_owned()),
        (0, warnings) => (
            Paint::Warn,
            format!("No fault, {}.", many(warnings, "warning")),
        ),
        (faults, warnings) => (
            Paint::Bad,
            format!("{}, {}.", many(faults, "fault"), many(warnings, "warning")),
        ),
    };
    ui::answer(Line::painted(paint, &line));
}

fn one(finding: &Finding) {
    let (paint, word) = match finding.status {
        Status::Ok => (Paint::Good, "ok     "),
        Status::Warning => (Paint::Warn, "warning"),
        Status::Fault => (Paint::Bad, "FAULT  "),
    };
    let head = Line::from("  ").with_painted(paint, word).with("  ");
    beside(&head, &finding.what);
    for (name, text) in [
        ("where", &finding.place),
        ("so", &finding.so),
        ("mend", &finding.mend),
    ] {
        if let Some(text) = text {
            let name = format!("           {name:<5} ");
            beside(&Line::painted(Paint::Dim, &name), text);
        }
    }
}

/// A text with a head: on a terminal it is wrapped beside it. In a pipe its lines stay whole.
fn beside(head: &Line, text: &str) {
    let left = head.columns();
    for (at, line) in text.lines().enumerate() {
        let head = match at {
            0 => head.clone(),
            _ => Line::from(&" ".repeat(left)),
        };
        let line = head.with(line);
        match ui::width() {
            Some(columns) => line
                .wrapped(columns.min(WIDTH), left)
                .into_iter()
                .for_each(ui::answer),
            None => ui::answer(line),
        }
    }
}

fn many(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
