//! The core in a virtual world: stories as text, laws as properties, one golden log.
//! One test binary, so that the world is compiled once.

#![expect(
    clippy::disallowed_methods,
    reason = "recorded files lie on disk; the crate itself never reads them"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test says what is wrong by failing"
)]

mod acts;
mod approval;
mod bounds;
mod cascade;
mod check_run_reasons;
mod clock;
mod golden;
mod judges;
mod laws;
mod layers;
mod loops;
mod moving;
mod numbers;
mod random;
mod repeated_deliveries;
mod runs;
mod sealed;
mod size;
mod story;
mod tasks;
mod token_budget;
mod tools;
mod world;
