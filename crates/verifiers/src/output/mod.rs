//! What a command printed: plain text out of it, line by line, and the part worth showing.

mod excerpt;
mod lines;
mod plain;

pub(crate) use excerpt::{Ends, bounded};
pub(crate) use lines::Lines;
pub(crate) use plain::plain;
