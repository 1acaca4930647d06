//! Does all printing. stdout is the answer, stderr the conversation; colours appear on a terminal
//! only; a broken pipe is not an error. Text goes through [`line`], which makes it [`printable`]
//! and paints it last; what a program reads (an agent's protocol, a file's text) goes out as bytes.

pub(crate) mod errors;
pub(crate) mod explanations;
pub(crate) mod line;
pub(crate) mod listing;
pub(crate) mod printable;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod timeline;

use std::io::Write as _;

use self::line::StyledLine;
use self::style::OutputStream;

/// Prints a line of the answer.
pub(crate) fn print_line_to_stdout(line: impl Into<StyledLine>) {
    // A reader that closed the pipe has read enough.
    let _ = write_stdout_line(&line.into());
}

/// Prints one or several lines of the answer that are read and not pasted: for a terminal each is
/// broken between words, and what is broken off is indented by so many columns.
pub(crate) fn print_output_wrapped(line: impl Into<StyledLine>, indent: usize) {
    for line in line.into().split_at_newlines() {
        for line in wrap_to_width(line, stdout_width(), indent) {
            let _ = write_stdout_line(&line);
        }
    }
}

/// Prints a line of an answer that goes on; returns whether anybody still reads it.
pub(crate) fn print_line_while_stdout_open(line: impl Into<StyledLine>) -> bool {
    write_stdout_line(&line.into())
        .and_then(|()| std::io::stdout().flush())
        .is_ok()
}

fn write_stdout_line(line: &StyledLine) -> std::io::Result<()> {
    let text = line.render_styled_line(OutputStream::Stdout.has_colours());
    writeln!(std::io::stdout(), "{text}")
}

/// Returns the width of the terminal, if the answer goes to one.
pub(crate) fn stdout_width() -> Option<usize> {
    OutputStream::Stdout.terminal_columns()
}

/// Wraps lines for a terminal of this width; in a pipe they stay whole.
fn wrap_to_width(line: StyledLine, width: Option<usize>, indent: usize) -> Vec<StyledLine> {
    match width {
        Some(width) => line.wrapped_to_width(width, indent),
        None => vec![line],
    }
}

/// Writes bytes of the answer as they are.
pub(crate) fn write_stdout_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout();
    let _ = out.write_all(bytes);
    // Flushed, since an agent may wait for these bytes while this process goes on.
    let _ = out.flush();
}

/// Prints one or several lines to stderr. For a terminal each is broken between words.
pub(crate) fn print_wrapped_to_stderr(line: impl Into<StyledLine>) {
    let colours = OutputStream::Stderr.has_colours();
    let width = OutputStream::Stderr.terminal_columns();
    for line in line.into().split_at_newlines() {
        let indent = line.leading_blank_count() + 2;
        // The command of a check is for pasting, so a line with one stays whole.
        let pasted = line
            .text_without_styling()
            .trim_start()
            .starts_with("reproduce: ");
        for line in wrap_to_width(line, width.filter(|_| !pasted), indent) {
            let _ = writeln!(std::io::stderr(), "{}", line.render_styled_line(colours));
        }
    }
}

/// Prints a question; the answer is typed behind it.
pub(crate) fn print_question(question: &str) {
    let mut err = std::io::stderr();
    let _ = err.write_all(printable::escape_hidden_except_newlines(question).as_bytes());
    let _ = err.flush();
}

/// Writes bytes to stderr as they are.
pub(crate) fn write_stderr_bytes(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}

/// Prints a JSON document in one line.
pub(crate) fn print_json(value: &serde_json::Value) {
    write_stdout_bytes(
        format!("{}\n", printable::json_with_hidden_chars_escaped(value)).as_bytes(),
    );
}
