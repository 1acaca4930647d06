//! Turns what a command printed into plain text, lines, and the part worth showing.

mod excerpt;
mod lines;
mod plain;

pub(crate) use excerpt::{HeadTailBuffer, truncate_text_to_bytes};
pub(crate) use lines::LineSplitter;
pub(crate) use plain::strip_terminal_escapes;
