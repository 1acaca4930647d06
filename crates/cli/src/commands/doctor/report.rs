//! Prints the findings for people: one block per agent, faults before what is well.

use super::agents;
use super::finding::{DoctorFinding, DoctorFindingSeverity};
use crate::ui;
use crate::ui::line::StyledLine;
use crate::ui::style::TextStyle;

/// Columns that are used of a terminal at most.
const WIDTH: usize = 100;

/// Prints all findings, and what they come to.
pub(super) fn print_doctor_findings(findings: &[DoctorFinding]) {
    for about in agents::ALL.iter().map(|agent| agent.name).chain(["repo"]) {
        let mut block: Vec<&DoctorFinding> = findings
            .iter()
            .filter(|finding| finding.about == about)
            .collect();
        if block.is_empty() {
            continue;
        }
        // The sort is stable, so that findings of one kind keep the order in which a person mends
        // them.
        block.sort_by_key(|finding| std::cmp::Reverse(finding.status));
        let label = agents::ALL
            .iter()
            .find(|agent| agent.name == about)
            .map_or("This repo", |agent| agent.label);
        ui::print_line_to_stdout(StyledLine::line_from_styled_text(TextStyle::Strong, label));
        for finding in block {
            print_doctor_finding(finding);
        }
        ui::print_line_to_stdout("");
    }
    let count = |status: DoctorFindingSeverity| {
        findings
            .iter()
            .filter(|finding| finding.status == status)
            .count()
    };
    let (faults, warnings) = (
        count(DoctorFindingSeverity::Fault),
        count(DoctorFindingSeverity::Warning),
    );
    let (paint, line) = match (faults, warnings) {
        (0, 0) => (TextStyle::Good, "All well.".to_owned()),
        (0, warnings) => (
            TextStyle::Warn,
            format!("No fault, {}.", count_with_noun(warnings, "warning")),
        ),
        (faults, warnings) => (
            TextStyle::Bad,
            format!(
                "{}, {}.",
                count_with_noun(faults, "fault"),
                count_with_noun(warnings, "warning")
            ),
        ),
    };
    ui::print_line_to_stdout(StyledLine::line_from_styled_text(paint, &line));
}

fn print_doctor_finding(finding: &DoctorFinding) {
    let (paint, word) = match finding.status {
        DoctorFindingSeverity::Ok => (TextStyle::Good, "ok     "),
        DoctorFindingSeverity::Warning => (TextStyle::Warn, "warning"),
        DoctorFindingSeverity::Fault => (TextStyle::Bad, "FAULT  "),
    };
    let head = StyledLine::from("  ")
        .with_painted_suffix(paint, word)
        .with_plain_suffix("  ");
    print_with_hanging_indent(&head, &finding.what);
    for (name, text) in [
        ("where", &finding.place),
        ("so", &finding.consequence),
        ("mend", &finding.fix),
    ] {
        if let Some(text) = text {
            let name = format!("           {name:<5} ");
            print_with_hanging_indent(
                &StyledLine::line_from_styled_text(TextStyle::Dim, &name),
                text,
            );
        }
    }
}

/// Prints a text beside a head. On a terminal it is wrapped; in a pipe its lines stay whole.
fn print_with_hanging_indent(head: &StyledLine, text: &str) {
    let left = head.line_display_width();
    for (at, line) in text.lines().enumerate() {
        let head = match at {
            0 => head.clone(),
            _ => StyledLine::from(&" ".repeat(left)),
        };
        let line = head.with_plain_suffix(line);
        match ui::stdout_width() {
            Some(columns) => line
                .wrapped_to_width(columns.min(WIDTH), left)
                .into_iter()
                .for_each(ui::print_line_to_stdout),
            None => ui::print_line_to_stdout(line),
        }
    }
}

fn count_with_noun(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
