//! The only printing. stdout is the answer, stderr the conversation; colours only on a
//! terminal; a broken pipe is not an error. Text goes through [`line`], which makes it
//! [`printable`] and paints it last; what a program reads (an agent's protocol, a file's text)
//! goes out as bytes.

pub(crate) mod errors;
pub(crate) mod line;
pub(crate) mod listing;
pub(crate) mod printable;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod timeline;
pub(crate) mod words;

use std::io::Write as _;

use self::line::Line;
use self::style::On;

/// A line of the answer.
pub(crate) fn answer(line: impl Into<Line>) {
    // Whoever closed the pipe has read enough.
    let _ = print_answer(&line.into());
}

/// A line of the answer, or several, that is read and not pasted: a terminal has each broken between
/// words, and what is broken off indented by so many columns.
pub(crate) fn answer_wrapped(line: impl Into<Line>, indent: usize) {
    for line in line.into().lines() {
        for line in fitted(line, width(), indent) {
            let _ = print_answer(&line);
        }
    }
}

/// The same of an answer that goes on; whether anybody still reads it.
pub(crate) fn follow(line: impl Into<Line>) -> bool {
    print_answer(&line.into())
        .and_then(|()| std::io::stdout().flush())
        .is_ok()
}

fn print_answer(line: &Line) -> std::io::Result<()> {
    let text = line.for_terminal(On::Stdout.has_colours());
    writeln!(std::io::stdout(), "{text}")
}

/// How wide the terminal is, if the answer goes to one.
pub(crate) fn width() -> Option<usize> {
    On::Stdout.columns()
}

/// Lines as a terminal of this width has them; in a pipe they stay whole.
fn fitted(line: Line, width: Option<usize>, indent: usize) -> Vec<Line> {
    match width {
        Some(width) => line.wrapped(width, indent),
        None => vec![line],
    }
}

/// Bytes of the answer, as they are.
pub(crate) fn answer_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout();
    let _ = out.write_all(bytes);
    let _ = out.flush();
}

/// A line of the conversation, or several. A terminal has each broken between words.
pub(crate) fn say(line: impl Into<Line>) {
    let colours = On::Stderr.has_colours();
    let width = On::Stderr.columns();
    for line in line.into().lines() {
        let indent = line.indent() + 2;
        // A command of somebody else's, which is pasted.
        let pasted = line.plain().trim_start().starts_with("reproduce: ");
        for line in fitted(line, width.filter(|_| !pasted), indent) {
            let _ = writeln!(std::io::stderr(), "{}", line.for_terminal(colours));
        }
    }
}

/// A question; the answer is typed behind it.
pub(crate) fn ask(question: &str) {
    let mut err = std::io::stderr();
    let _ = err.write_all(printable::safe(question).as_bytes());
    let _ = err.flush();
}

/// Bytes of the conversation, as they are.
pub(crate) fn say_bytes(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}

/// A JSON document, one line.
pub(crate) fn json(value: &serde_json::Value) {
    answer_bytes(format!("{}\n", printable::json(value)).as_bytes());
}
