//! Drives: facts → input, config → policy, load, fold, step, append, perform. The only clock.
//!
//! ```text
//!   front door ── Delivery ──▶ handle ── one transaction: tail, fold, step, append ──▶ Decided
//!                                │                                                       ▲
//!                                └── effects ──▶ perform (claims, processes, tree) ── evidence
//! ```
//!
//! Events and effects are committed before an effect runs and before an answer is given
//! (law 9). Nothing here knows an agent's protocol or prints.

mod clock;
pub mod config;
mod driver;
mod error;
mod facts;
mod load;
mod perform;
pub mod replay;
mod summary;
mod workspace;

pub use driver::{Decided, Delivery, Patience, Runtime, Seal, Usage};
pub use error::RuntimeError;
pub use perform::{Check, CheckReport, Progress};
pub use clock::now;
pub use workspace::Place;
