//! Patches against trees, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

mod codex;
mod git_parity;
mod hostile;
mod refusals;
mod tree;
