//! Tasks as a table, as wide as the terminal: where a line has no room for what a task was
//! about, that stands in a second one.

use checkrein_core::ids::{EventSeq, UnixMillis};
use checkrein_core::transition::Reason;
use checkrein_store::TaskRow;

use crate::commands::lookup;
use crate::ui::line::Line;
use crate::ui::printable::printable;
use crate::ui::style::{Paint, date, duration, of_reason};
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
    pub(crate) broken_at: Option<EventSeq>,
    /// What was wrong with the config in whose place its policy goes on.
    pub(crate) config_error: Option<String>,
}

/// A table of tasks. `width` is that of the terminal, if there is one.
pub(crate) fn lines(listed: &[Listed], width: Option<usize>, now: UnixMillis) -> Vec<Line> {
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
            *width = (*width).max(Line::from(cell).columns());
        }
    }
    let taken = |columns: usize| widths.iter().take(columns).map(|width| width + 2).sum();
    let shape = Shape::of(width, taken(9), taken(6));
    let mut lines = Vec::new();
    for (at, row) in cells.iter().enumerate() {
        let one = at.checked_sub(1).and_then(|at| listed.get(at));
        let below = match shape {
            Shape::Wide(_) | Shape::Narrow(_) => widths[0] + 2,
            Shape::Stacked(_) => 2,
        };
        match (&shape, one) {
            (Shape::Stacked(_), None) => {}
            (Shape::Stacked(width), Some(one)) => {
                lines.extend(stacked(one, row, *width));
            }
            (Shape::Wide(_) | Shape::Narrow(_), _) => {
                let shown = if matches!(shape, Shape::Wide(_)) {
                    9
                } else {
                    6
                };
                let paint = one.map(|one| paint(&one.row));
                lines.extend(row_lines(
                    one,
                    tabled(row, widths, shown, paint),
                    &shape,
                    below,
                ));
            }
        }
        let damaged = one.and_then(|one| one.broken_at).map(|at| {
            format!(
                "the log of this session is damaged at event {at}: what is told of it may be wrong"
            )
        });
        let mistake = one.and_then(|one| one.config_error.as_deref());
        let mistake = mistake.map(|mistake| printable(&words::config_error_line(mistake)));
        for what in damaged.into_iter().chain(mistake) {
            let line = Line::painted(Paint::Bad, &format!("{}! {what}", " ".repeat(below)));
            lines.extend(match width {
                Some(width) => line.wrapped(width, below + 2),
                None => vec![line],
            });
        }
    }
    lines
}

/// How much of the table there is room for, and for how many columns of text.
enum Shape {
    /// All columns, and what each task is about behind them.
    Wide(usize),
    /// Fewer, and what it is about below them.
    Narrow(usize),
    /// Not even these: a few lines for each task.
    Stacked(usize),
}

impl Shape {
    fn of(width: Option<usize>, all: usize, fewer: usize) -> Self {
        let Some(width) = width else {
            return Self::Wide(LONGEST_TEXT);
        };
        match width.checked_sub(all) {
            Some(room) if room >= LEAST_TEXT => Self::Wide(room),
            // The last column is followed by nothing.
            _ if width + 2 >= fewer => Self::Narrow(width),
            _ => Self::Stacked(width),
        }
    }
}

/// The columns of a row.
fn tabled(row: &[String; 9], widths: [usize; 9], shown: usize, ending: Option<Paint>) -> Line {
    let mut line = Line::default();
    for (column, (cell, width)) in row.iter().zip(widths).take(shown).enumerate() {
        let pad = " ".repeat(width.saturating_sub(Line::from(cell).columns()));
        line = match (column, ending) {
            // Numbers stand to the right.
            (5.., _) => line.with(&format!("{pad}{cell}  ")),
            (4, Some(paint)) => line.with_painted(paint, cell).with(&format!("{pad}  ")),
            _ => line.with(&format!("{cell}{pad}  ")),
        };
    }
    line
}

fn row_lines(one: Option<&Listed>, line: Line, shape: &Shape, below: usize) -> Vec<Line> {
    let Some(one) = one else {
        let what = if matches!(shape, Shape::Wide(_)) {
            "WHAT"
        } else {
            ""
        };
        let head = line.with(what).trimmed().plain();
        return vec![Line::painted(Paint::Dim, &head)];
    };
    let text = about(one);
    match shape {
        Shape::Wide(room) => vec![line.then(text.cut(*room)).trimmed()],
        Shape::Narrow(width) | Shape::Stacked(width) => {
            let head = format!("{}{}  ", " ".repeat(below), numbers(&one.row));
            let second = format!("{head}{}", text.plain());
            let second = Line::painted(Paint::Dim, second.trim_end());
            vec![line.trimmed(), second.cut(*width)]
        }
    }
}

/// A task in a few lines, for a terminal that is narrower than the table.
fn stacked(one: &Listed, row: &[String; 9], width: usize) -> Vec<Line> {
    let [when, task, agent, level, ending, took, ..] = row;
    let ending = Line::from("  ").with_painted(paint(&one.row), ending);
    let ending = match took.is_empty() {
        true => ending,
        false => ending.with(&format!(" in {took}")),
    };
    let by = format!("  {agent} {level}, {}", numbers(&one.row));
    let about = Line::from("  ").then(about(one));
    let mut lines = Vec::new();
    for line in [Line::from(&format!("{when}  {task}")), ending] {
        lines.extend(line.wrapped(width, 4));
    }
    lines.extend(Line::painted(Paint::Dim, &by).wrapped(width, 4));
    if !about.clone().trimmed().plain().is_empty() {
        lines.push(Line::painted(Paint::Dim, &about.cut(width).plain()));
    }
    lines
}

/// What a task is about, in one line.
fn about(one: &Listed) -> Line {
    let text = one.text.as_deref().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Line::from(&printable(&text))
}

/// What the marks before endings mean. A mark and its meaning stay together.
pub(crate) fn legend() -> Line {
    const MARKS: [&str; 5] = [
        "✓ verified by checks",
        "? let through",
        "✗ not done",
        "– left behind",
        "… open",
    ];
    let mut line = Line::default();
    for (at, mark) in MARKS.iter().enumerate() {
        line = line.with(if at == 0 { "" } else { "  " });
        line = line.with_unbroken(mark);
    }
    line
}

fn row_cells(row: &TaskRow, now: UnixMillis) -> [String; 9] {
    [
        date(row.opened_at, now),
        printable(&lookup::short(&row.session, row.task)),
        printable(row.agent.as_str()),
        row.level.clone().unwrap_or_default(),
        printable(&ending(row)),
        row.ended_at.map_or_else(String::new, |ended| {
            duration(ended.millis_since(row.opened_at))
        }),
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
            opened_at: UnixMillis(1_000),
            ended_at: reason.map(|_| UnixMillis(65_000)),
            reason: reason.map(str::to_owned),
            detail: detail.map(str::to_owned),
            native_reason: None,
            stops: 1,
            continues: 0,
            tool_calls: 14,
            rounds: None,
            output_tokens: None,
            policy: Digest::hash_bytes(b""),
            goal: None,
            root: "/repo".to_owned(),
        };
        Listed {
            row,
            text: Some(text.to_owned()),
            broken_at: None,
            config_error: None,
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
        tasks[1].broken_at = Some(EventSeq(7));
        let lines = lines(&tasks, width, UnixMillis(100_000));
        let lines: Vec<String> = lines.iter().map(Line::plain).collect();
        let table: Vec<_> = lines
            .iter()
            .filter(|line| !line.contains("damaged"))
            .collect();
        for line in &table {
            assert!(Line::from(*line).columns() <= longest, "{width:?}: {line}");
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
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains("damaged at event 7"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        check(Some(40), 40);
        check(Some(80), 80);
        check(Some(120), 120);
        check(Some(200), 200);
        check(None, 320);
    }
}
