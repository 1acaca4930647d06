//! Tasks as a table, as wide as the terminal: where a line has no room for what a task was
//! about, that stands in a second one.

use checkrein_core::ids::{Millis, Seq};
use checkrein_core::transition::Reason;
use checkrein_store::TaskRow;
use console::{measure_text_width, truncate_str};

use crate::commands::lookup;
use crate::ui::printable::printable;
use crate::ui::style::{On, Paint, date, duration, of_reason};
use crate::ui::words;

/// Less room than this is none.
const LEAST_TEXT: usize = 24;
/// Where nobody's terminal says how wide it is.
const LONGEST_TEXT: usize = 200;

/// A task with what its row does not say.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) row: TaskRow,
    /// What it is about.
    pub(crate) text: Option<String>,
    /// Where the log of its session is damaged.
    pub(crate) broken_at: Option<Seq>,
}

/// A table of tasks. `width` is that of the terminal, if there is one.
pub(crate) fn lines(listed: &[Listed], width: Option<usize>, now: Millis) -> Vec<String> {
    let mut cells = vec![
        [
            "WHEN", "TASK", "AGENT", "LV", "ENDING", "TOOK", "STOPS", "CALLS", "TOKENS",
        ]
        .map(str::to_owned),
    ];
    cells.extend(listed.iter().map(|one| row_cells(&one.row, now)));
    let mut widths = [0; 9];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    let whole: usize = widths.iter().map(|width| width + 2).sum();
    let room = match width {
        None => Some(LONGEST_TEXT),
        Some(width) => width.checked_sub(whole).filter(|room| *room >= LEAST_TEXT),
    };
    let shown = if room.is_some() { 9 } else { 6 };
    let mut lines = Vec::new();
    for (at, row) in cells.iter().enumerate() {
        let one = at.checked_sub(1).and_then(|at| listed.get(at));
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).take(shown).enumerate() {
            let pad = " ".repeat(width.saturating_sub(measure_text_width(cell)) + 2);
            // Numbers stand to the right.
            let cell = match (column, one) {
                (5.., _) => format!("{}{cell}  ", pad.get(2..).unwrap_or_default()),
                (4, Some(one)) => format!("{}{pad}", On::Stdout.paint(paint(&one.row), cell)),
                _ => format!("{cell}{pad}"),
            };
            line.push_str(&cell);
        }
        let Some(one) = one else {
            let what = if room.is_some() { "WHAT" } else { "" };
            lines.push(On::Stdout.paint(Paint::Dim, format!("{line}{what}").trim_end()));
            continue;
        };
        let text = one.text.as_deref().unwrap_or_default();
        let text = printable(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        match room {
            Some(room) => {
                let text = truncate_str(&text, room, "…");
                lines.push(format!("{line}{text}").trim_end().to_owned());
            }
            None => {
                lines.push(line.trim_end().to_owned());
                let numbers = numbers(&one.row);
                let below = format!("{}{numbers}  {text}", " ".repeat(widths[0] + 2));
                let below = truncate_str(&below, width.unwrap_or(LONGEST_TEXT), "…");
                lines.push(On::Stdout.paint(Paint::Dim, below.trim_end()));
            }
        }
        if let Some(at) = one.broken_at {
            let what = format!(
                "{}! the log of this session is damaged at event {at}: what is told of it may be wrong",
                " ".repeat(widths[0] + 2)
            );
            lines.push(On::Stdout.paint(Paint::Bad, &what));
        }
    }
    lines
}

/// What the marks before endings mean.
pub(crate) const LEGEND: &str =
    "✓ verified by checks  ? let through  ✗ not done  – left behind  … open";

fn row_cells(row: &TaskRow, now: Millis) -> [String; 9] {
    [
        date(row.opened_at, now),
        printable(&lookup::short(&row.session, row.task)),
        printable(row.agent.as_str()),
        row.level.clone().unwrap_or_default(),
        printable(&ending(row)),
        row.ended_at
            .map_or_else(String::new, |ended| duration(ended.since(row.opened_at))),
        row.stops.to_string(),
        row.tool_calls.to_string(),
        row.output_tokens
            .map_or("unknown".to_owned(), |tokens| tokens.to_string()),
    ]
}

fn numbers(row: &TaskRow) -> String {
    let many = |number: u64, word: &str| match number {
        1 => format!("1 {word}"),
        number => format!("{number} {word}s"),
    };
    let stops = many(u64::from(row.stops), "stop");
    format!("{stops}, {}", many(row.tool_calls, "call"))
}

fn ending(row: &TaskRow) -> String {
    match lookup::transition(row) {
        None => "… open".to_owned(),
        Some(ending) => {
            let mark = match (ending.reason, of_reason(ending.reason)) {
                (Reason::Abandoned | Reason::UserInterrupt, _) => "–",
                (_, Paint::Good) => "✓",
                (_, Paint::Bad) => "✗",
                _ => "?",
            };
            format!("{mark} {}", words::transition(&ending))
        }
    }
}

fn paint(row: &TaskRow) -> Paint {
    lookup::transition(row).map_or(Paint::Dim, |ending| of_reason(ending.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkrein_core::digest::Digest;
    use checkrein_core::ids::{AgentName, SessionId, TaskId};

    fn listed(reason: Option<&str>, detail: Option<&str>, text: &str) -> Listed {
        let row = TaskRow {
            session: SessionId::from("3f2a91bc-0000-4000"),
            task: TaskId(1),
            agent: AgentName::new("claude-code"),
            level: Some("L1".to_owned()),
            opened_at: Millis(1_000),
            ended_at: reason.map(|_| Millis(65_000)),
            reason: reason.map(str::to_owned),
            detail: detail.map(str::to_owned),
            native_reason: None,
            stops: 1,
            continues: 0,
            tool_calls: 14,
            rounds: None,
            output_tokens: None,
            policy: Digest::of(b""),
            goal: None,
            root: "/repo".to_owned(),
        };
        Listed {
            row,
            text: Some(text.to_owned()),
            broken_at: None,
        }
    }

    fn check(width: Option<usize>, longest: usize) {
        let mut tasks = vec![
            listed(Some("task_complete"), None, "mend the\nbuild"),
            listed(
                Some("gave_up"),
                Some("same_failures"),
                &"long words ".repeat(40),
            ),
            listed(None, None, ""),
        ];
        tasks[1].broken_at = Some(Seq(7));
        let lines = lines(&tasks, width, Millis(100_000));
        let table: Vec<_> = lines
            .iter()
            .filter(|line| !line.contains("damaged"))
            .collect();
        for line in &table {
            assert!(measure_text_width(line) <= longest, "{width:?}: {line}");
        }
        let text = lines.join("\n");
        for part in [
            "✓ task_complete",
            "✗ gave_up (same_failures)",
            "… open",
            "L1",
            "mend the build",
        ] {
            assert!(text.contains(part), "{part} at {width:?}:\n{text}");
        }
        assert!(text.contains("damaged at event 7"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        check(Some(80), 80);
        check(Some(120), 120);
        check(Some(200), 200);
        check(None, 320);
    }
}
