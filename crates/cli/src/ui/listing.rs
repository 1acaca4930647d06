//! Formats tasks as a table, as wide as the terminal: where a line has no room for what a task was
//! about, that stands in a second one.

use checkrein_core::ids::{EventSeq, UnixMillis};
use checkrein_core::transition::Reason;
use checkrein_store::TaskRow;

use crate::commands::lookup;
use crate::ui::explanations;
use crate::ui::line::StyledLine;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::style::{TextStyle, format_duration, format_time_or_date, reason_paint};

/// Least columns for the text of a task; with fewer it goes to a second line.
const LEAST_TEXT: usize = 24;
/// Columns for the text of a task where there is no terminal.
const LONGEST_TEXT: usize = 200;

/// A task with facts that its row does not hold.
#[derive(Debug)]
pub(crate) struct ListedTask {
    pub(crate) row: TaskRow,
    /// The text of its prompt.
    pub(crate) text: Option<String>,
    /// The event at which the log of its session is damaged.
    pub(crate) broken_at: Option<EventSeq>,
    /// The mistake in the config that could not be used, so that an older policy stays in force.
    pub(crate) config_error: Option<String>,
}

/// Formats a table of tasks. `width` is that of the terminal, if there is one.
pub(crate) fn format_task_table_lines(
    listed: &[ListedTask],
    width: Option<usize>,
    now: UnixMillis,
) -> Vec<StyledLine> {
    let mut cells = vec![
        [
            "WHEN", "TASK", "AGENT", "LV", "ENDING", "TOOK", "STOPS", "CALLS", "TOKENS",
        ]
        .map(str::to_owned),
    ];
    cells.extend(listed.iter().map(|one| task_row_cells(&one.row, now)));
    let mut widths = [0; 9];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(StyledLine::from(cell).line_display_width());
        }
    }
    // Columns are separated by two blanks.
    let taken = |columns: usize| widths.iter().take(columns).map(|width| width + 2).sum();
    let shape = TaskTableLayout::table_layout_for_width(width, taken(9), taken(6));
    let mut lines = Vec::new();
    for (at, row) in cells.iter().enumerate() {
        // Row 0 is the heading, so row N is task N-1.
        let one = at.checked_sub(1).and_then(|at| listed.get(at));
        // Second lines are indented to the column of the task's id.
        let below = match shape {
            TaskTableLayout::Wide(_) | TaskTableLayout::Narrow(_) => widths[0] + 2,
            TaskTableLayout::Stacked(_) => 2,
        };
        match (&shape, one) {
            (TaskTableLayout::Stacked(_), None) => {}
            (TaskTableLayout::Stacked(width), Some(one)) => {
                lines.extend(format_task_for_narrow_terminal(one, row, *width));
            }
            (TaskTableLayout::Wide(_) | TaskTableLayout::Narrow(_), _) => {
                let shown = if matches!(shape, TaskTableLayout::Wide(_)) {
                    9
                } else {
                    6
                };
                let paint = one.map(|one| task_ending_paint(&one.row));
                lines.extend(task_row_lines(
                    one,
                    format_task_table_cells(row, widths, shown, paint),
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
        let mistake = mistake.map(|mistake| {
            escape_hidden_chars(&explanations::unusable_session_config_notice(mistake))
        });
        // Warnings get lines of their own in every layout: they must not be cut with the text.
        for what in damaged.into_iter().chain(mistake) {
            let line = StyledLine::line_from_styled_text(
                TextStyle::Bad,
                &format!("{}! {what}", " ".repeat(below)),
            );
            lines.extend(match width {
                Some(width) => line.wrapped_to_width(width, below + 2),
                None => vec![line],
            });
        }
    }
    lines
}

/// Which columns of the table there is room for, and for how many columns of text.
enum TaskTableLayout {
    /// All columns, and what each task is about behind them.
    Wide(usize),
    /// Fewer columns, with what each task is about below them.
    Narrow(usize),
    /// No columns: a few lines for each task.
    Stacked(usize),
}

impl TaskTableLayout {
    fn table_layout_for_width(width: Option<usize>, all: usize, fewer: usize) -> Self {
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

/// Formats the columns of a row.
fn format_task_table_cells(
    row: &[String; 9],
    widths: [usize; 9],
    shown: usize,
    ending: Option<TextStyle>,
) -> StyledLine {
    let mut line = StyledLine::default();
    for (column, (cell, width)) in row.iter().zip(widths).take(shown).enumerate() {
        let pad = " ".repeat(width.saturating_sub(StyledLine::from(cell).line_display_width()));
        line = match (column, ending) {
            // Numbers stand to the right.
            (5.., _) => line.with_plain_suffix(&format!("{pad}{cell}  ")),
            (4, Some(paint)) => line
                .with_painted_suffix(paint, cell)
                .with_plain_suffix(&format!("{pad}  ")),
            _ => line.with_plain_suffix(&format!("{cell}{pad}  ")),
        };
    }
    line
}

fn task_row_lines(
    one: Option<&ListedTask>,
    line: StyledLine,
    shape: &TaskTableLayout,
    below: usize,
) -> Vec<StyledLine> {
    let Some(one) = one else {
        let what = if matches!(shape, TaskTableLayout::Wide(_)) {
            "WHAT"
        } else {
            ""
        };
        let head = line
            .with_plain_suffix(what)
            .without_trailing_blanks()
            .text_without_styling();
        return vec![StyledLine::line_from_styled_text(TextStyle::Dim, &head)];
    };
    let text = task_prompt_line(one);
    match shape {
        TaskTableLayout::Wide(room) => vec![
            line.append_styled_line(text.truncated_to_width(*room))
                .without_trailing_blanks(),
        ],
        TaskTableLayout::Narrow(width) | TaskTableLayout::Stacked(width) => {
            let head = format!(
                "{}{}  ",
                " ".repeat(below),
                stop_and_call_counts_text(&one.row)
            );
            let second = format!("{head}{}", text.text_without_styling());
            let second = StyledLine::line_from_styled_text(TextStyle::Dim, second.trim_end());
            vec![
                line.without_trailing_blanks(),
                second.truncated_to_width(*width),
            ]
        }
    }
}

/// Formats a task in a few lines, for a terminal that is narrower than the table.
fn format_task_for_narrow_terminal(
    one: &ListedTask,
    row: &[String; 9],
    width: usize,
) -> Vec<StyledLine> {
    let [when, task, agent, level, ending, took, ..] = row;
    let ending = StyledLine::from("  ").with_painted_suffix(task_ending_paint(&one.row), ending);
    let ending = match took.is_empty() {
        true => ending,
        false => ending.with_plain_suffix(&format!(" in {took}")),
    };
    let by = format!("  {agent} {level}, {}", stop_and_call_counts_text(&one.row));
    let about = StyledLine::from("  ").append_styled_line(task_prompt_line(one));
    let mut lines = Vec::new();
    for line in [StyledLine::from(&format!("{when}  {task}")), ending] {
        lines.extend(line.wrapped_to_width(width, 4));
    }
    lines.extend(StyledLine::line_from_styled_text(TextStyle::Dim, &by).wrapped_to_width(width, 4));
    if !about
        .clone()
        .without_trailing_blanks()
        .text_without_styling()
        .is_empty()
    {
        lines.push(StyledLine::line_from_styled_text(
            TextStyle::Dim,
            &about.truncated_to_width(width).text_without_styling(),
        ));
    }
    lines
}

/// Returns what a task is about, in one line.
fn task_prompt_line(one: &ListedTask) -> StyledLine {
    let text = one.text.as_deref().unwrap_or_default();
    // A prompt may have many lines; its beginning is enough here.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    StyledLine::from(&escape_hidden_chars(&text))
}

/// Returns the meaning of the marks before endings. A mark and its meaning stay together.
pub(crate) fn task_ending_marks_legend() -> StyledLine {
    const MARKS: [&str; 5] = [
        "✓ verified by checks",
        "? let through",
        "✗ not done",
        "– left behind",
        "… open",
    ];
    let mut line = StyledLine::default();
    for (at, mark) in MARKS.iter().enumerate() {
        line = line.with_plain_suffix(if at == 0 { "" } else { "  " });
        line = line.append_unwrappable_text(mark);
    }
    line
}

fn task_row_cells(row: &TaskRow, now: UnixMillis) -> [String; 9] {
    [
        format_time_or_date(row.opened_at, now),
        escape_hidden_chars(&lookup::short_task_id(&row.session, row.task)),
        escape_hidden_chars(row.agent.as_str()),
        row.level.clone().unwrap_or_default(),
        escape_hidden_chars(&task_ending_text(row)),
        row.ended_at.map_or_else(String::new, |ended| {
            format_duration(ended.millis_since(row.opened_at))
        }),
        row.stops.to_string(),
        row.tool_calls.to_string(),
        row.output_tokens
            .map_or("unknown".to_owned(), |tokens| tokens.to_string()),
    ]
}

fn stop_and_call_counts_text(row: &TaskRow) -> String {
    let many = |number: u64, word: &str| match number {
        1 => format!("1 {word}"),
        number => format!("{number} {word}s"),
    };
    let stops = many(u64::from(row.stops), "stop");
    format!("{stops}, {}", many(row.tool_calls, "call"))
}

fn task_ending_text(row: &TaskRow) -> String {
    match lookup::ending_of_task_row(row) {
        None => "… open".to_owned(),
        Some(ending) => {
            let mark = match (ending.reason, reason_paint(ending.reason)) {
                // These come first: their paint is that of `unverified`, but nothing was let
                // through.
                (Reason::Abandoned | Reason::UserInterrupt, _) => "–",
                (_, TextStyle::Good) => "✓",
                (_, TextStyle::Bad) => "✗",
                _ => "?",
            };
            format!("{mark} {}", explanations::transition_reason_text(&ending))
        }
    }
}

fn task_ending_paint(row: &TaskRow) -> TextStyle {
    lookup::ending_of_task_row(row).map_or(TextStyle::Dim, |ending| reason_paint(ending.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkrein_core::digest::Digest;
    use checkrein_core::ids::{AgentName, SessionId, TaskId};

    fn listed(reason: Option<&str>, detail: Option<&str>, text: &str) -> ListedTask {
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
        ListedTask {
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
        let lines = format_task_table_lines(&tasks, width, UnixMillis(100_000));
        let lines: Vec<String> = lines.iter().map(StyledLine::text_without_styling).collect();
        let table: Vec<_> = lines
            .iter()
            .filter(|line| !line.contains("damaged"))
            .collect();
        for line in &table {
            assert!(
                StyledLine::from(*line).line_display_width() <= longest,
                "{width:?}: {line}"
            );
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
