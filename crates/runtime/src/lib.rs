//! Drives: facts → input, config → policy, load, fold, step, append, perform. The only clock.
//!
//! ```text
//!   front door ── EventDelivery ──▶ handle ── one transaction: tail, fold, step, append ──▶ DeliveryOutcome
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

pub use check::{CheckReport, CheckResult};
pub use checkrein_verifiers::{progress, veto, witness};
pub use clock::now_millis;
pub use delivery::{
    Deadline, DeliveryOutcome, EventDelivery, PolicyCompiler, RewrittenResult, TokenUsageReader,
    ToolResponse, VerificationProgress,
};
pub use driver::Runtime;
pub use error::RuntimeError;
pub use facts::ToolFactsBuilder;
pub use guard::{
    ConfigHeldDespiteEdit, GuardedFileDigests, GuardedFilesReader, SealedRootAndProfile, held,
};
pub use hands::WorkspaceTools;
pub use hosts::{HostFunctionVerdict, HostVerifiers};
pub use kept::decode_evidence;
pub use last_good::UnusableConfigFallback;
pub use layers::{
    BeforeStopAnswer, BeforeStopQuestion, BeforeToolQuestion, FrontEndMiddlewareStages, Middleware,
    MiddlewareLayer, MiddlewareRegistration, MiddlewareRegistry, MiddlewareSessionContext,
    MiddlewareToolCallAnswer, MiddlewareToolResultAnswer, RoundEndForMiddleware,
    SessionEndForMiddleware, SessionStart, ToolResult, tool_result_text,
};
pub use lies::ApprovalSubjectFreshness;
#[cfg(unix)]
pub use owner::{
    ReceivedLine, UniqueProcessId, WorkerCheckBatch, WorkerLauncher, WorkerLink, WorkerTransport,
    WorkerTransportWriter, cancel_all_workers, cancel_session_workers,
};
pub use reading::is_call_read_only;
pub use retain::{RemovedSession, RetentionReport, apply_retention};
pub use system::{RealSystem, System, ThreadBlockingPermission};
pub use telling::{
    approvals_awaiting_notification, mark_approvals_not_notified, mark_approvals_notified,
};
pub use workspace::TreeAndStateFolder;
