//! The findings, for people: one block per agent, what is wrong before what is well.

use super::finding::{Finding, Status};
use super::places;
use crate::ui;
use crate::ui::style::{On, Paint};

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
        ui::answer(&On::Stdout.paint(Paint::Strong, label));
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
    ui::answer(&On::Stdout.paint(paint, &line));
}

fn one(finding: &Finding) {
    let (paint, word) = match finding.status {
        Status::Ok => (Paint::Good, "ok     "),
        Status::Warning => (Paint::Warn, "warning"),
        Status::Fault => (Paint::Bad, "FAULT  "),
    };
    let word = On::Stdout.paint(paint, word);
    for (at, line) in folded(&finding.what, 11).iter().enumerate() {
        let word = if at == 0 { word.as_str() } else { "       " };
        ui::answer(&format!("  {word}  {line}"));
    }
    for (name, text) in [
        ("where", &finding.place),
        ("so", &finding.so),
        ("mend", &finding.mend),
    ] {
        let lines = text.iter().flat_map(|text| folded(text, 17));
        for (at, line) in lines.enumerate() {
            let name = if at == 0 { name } else { "" };
            let name = On::Stdout.paint(Paint::Dim, &format!("{name:<5}"));
            ui::answer(&format!("           {name} {line}"));
        }
    }
}

/// On a terminal long lines are folded at blanks, beside what stands left of them. In a pipe
/// they stay whole.
fn folded(text: &str, left: usize) -> Vec<String> {
    let Some(columns) = ui::width() else {
        return text.lines().map(str::to_owned).collect();
    };
    let width = columns.min(WIDTH).saturating_sub(left);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut folded = String::new();
        for word in line.split(' ') {
            if !folded.is_empty() && folded.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut folded));
            } else if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
        lines.push(folded);
    }
    lines
}

fn many(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
