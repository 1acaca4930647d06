//! The only printing. stdout is the answer, stderr the conversation; colours only on a
//! terminal; a broken pipe is not an error. Text goes through [`printable`]; what a program
//! reads (an agent's protocol, a file's text) goes out as bytes.

pub(crate) mod errors;
pub(crate) mod listing;
pub(crate) mod printable;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod timeline;
pub(crate) mod words;

use std::io::Write as _;

/// A line of the answer.
pub(crate) fn answer(line: &str) {
    // Whoever closed the pipe has read enough.
    let _ = writeln!(std::io::stdout(), "{}", printable::shown(line));
}

/// A line of an answer that goes on; whether anybody still reads it.
pub(crate) fn follow(line: &str) -> bool {
    let mut out = std::io::stdout();
    writeln!(out, "{}", printable::shown(line))
        .and_then(|()| out.flush())
        .is_ok()
}

/// How wide the terminal is, if the answer goes to one.
pub(crate) fn width() -> Option<usize> {
    let terminal = console::Term::stdout();
    let (_, columns) = terminal.size_checked()?;
    terminal.is_term().then_some(usize::from(columns))
}

/// Bytes of the answer, as they are.
pub(crate) fn answer_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout();
    let _ = out.write_all(bytes);
    let _ = out.flush();
}

/// A line of the conversation.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable::shown(line));
}

/// A question; the answer is typed behind it.
pub(crate) fn ask(question: &str) {
    let mut err = std::io::stderr();
    let _ = err.write_all(printable::shown(question).as_bytes());
    let _ = err.flush();
}

/// Bytes of the conversation, as they are.
pub(crate) fn say_bytes(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}

/// A JSON document, one line.
pub(crate) fn json(value: &serde_json::Value) {
    answer(&printable::json(value));
}
