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

mod acts;
mod approvals;
mod check;
mod clock;
pub mod config;
mod delivery;
mod driver;
mod echo;
mod environment;
mod error;
pub mod exit_statuses;
mod facts;
mod fit;
mod guard;
mod hands;
mod hosts;
mod judging;
mod kept;
mod known_scope;
mod last_good;
mod layers;
mod lies;
mod links;
mod load;
mod logs;
mod looks;
mod neighbours;
#[cfg(unix)]
mod owner;
#[cfg(not(unix))]
#[path = "owner/nowhere.rs"]
mod owner;
mod patches;
mod perform;
pub mod printed;
mod reading;
mod repeats;
pub mod replay;
mod retain;
mod run_environment;
#[cfg(unix)]
#[cfg(test)]
#[path = "tests/set_clock.rs"]
mod set_clock;
mod settle;
mod shown;
mod standing;
mod start;
mod summary;
mod system;
mod task_list;
mod telling;
mod transaction;
mod watching;
pub mod whole;
mod workspace;
mod writers;

pub use check::{Check, CheckReport};
pub use checkrein_verifiers::{progress, veto, witness};
pub use clock::now;
pub use delivery::{Decided, Delivery, Patience, Progress, Returned, Rewritten, Seal, Usage};
pub use driver::Runtime;
pub use error::RuntimeError;
pub use facts::ToolFactsBuilder;
pub use guard::{Guarded, Held, Look, SealedAs, held};
pub use hands::Hands;
pub use hosts::{HostFound, Hosts};
pub use kept::evidence_of;
pub use last_good::Fallback;
pub use layers::{
    About, BeforeStop, BeforeTool, CallSays, Layer, Layers, Middleware, Registered, ResultSays,
    RoundEnd, SessionEnd, SessionStart, Stages, StopSays, ToolResult, text_of,
};
pub use lies::Lies;
#[cfg(unix)]
pub use owner::{
    LinkEnd, LinkWriter, OwnedBatch, OwnerLink, ProcessId, Received, StartOwner, cancel_all,
    cancel_session,
};
pub use reading::only_reads;
pub use retain::{GoneSession, Retained, retain};
pub use system::{MayBlock, RealSystem, System};
pub use telling::{not_told, told, untold};
pub use workspace::Place;
