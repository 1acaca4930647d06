//! Drives the engine: gathers facts, compiles configs to policies, and loads, folds, steps, appends
//! and performs. Every event gets its time here.
//!
//! ```text
//!   front door ── EventDelivery ──▶ handle ── one transaction: tail, fold, step, append ──▶ DeliveryOutcome
//!                                │                                                       ▲
//!                                └── effects ──▶ perform (claims, processes, tree) ── evidence
//! ```
//!
//! Events and effects are committed before an effect runs and before an answer is given
//! (law 9). Nothing here knows an agent's protocol or prints.

mod accepted_tree;
mod acts;
mod approval_preview;
mod approvals;
mod await_decision;
mod bound;
mod check_logs;
mod clock;
pub mod config;
pub mod durable_file;
mod environment;
mod error;
mod event_delivery;
mod evidence_codec;
pub mod exit_statuses;
mod external_writes;
mod feedback_echo;
mod freshness;
mod guarded_files;
mod host_verifiers;
mod idempotency;
mod judge_case;
mod known_scope;
mod log_reader;
mod manual_check;
mod middleware;
mod notifications;
pub mod output_files;
#[cfg(unix)]
mod owner;
#[cfg(not(unix))]
#[path = "owner/nowhere.rs"]
mod owner;
mod patch_gate;
mod policy_fallback;
mod read_only;
pub mod replay;
mod retention;
mod run_environment;
mod runtime;
mod second_model;
#[cfg(unix)]
#[cfg(test)]
#[path = "tests/set_clock.rs"]
mod set_clock;
mod start_folders;
mod symlinks;
mod system;
mod task_list;
mod task_summary;
mod tool_facts;
mod transaction;
mod tree_snapshots;
mod verification;
mod workspace;
mod workspace_tools;
mod writing_checks;

pub use checkrein_verifiers::{progress, reviewer, veto};
pub use clock::now_millis;
pub use error::RuntimeError;
pub use event_delivery::{
    Deadline, DeliveryOutcome, EventDelivery, PolicyCompileFn, RewrittenToolResult,
    TokenUsageFromCursorFn, ToolResponse, VerificationProgress,
};
pub use evidence_codec::decode_evidence;
pub use freshness::ApprovalSubjectFreshness;
pub use guarded_files::{
    ConfigHeldDespiteEdit, GuardedFileDigests, GuardedFilesReader, RootAndProfileOfSession,
    held_config,
};
pub use host_verifiers::{HostFunctionVerdict, HostVerifiers};
pub use manual_check::{ManualCheckReport, ManualVerifierResult};
pub use middleware::{
    BeforeStopAnswer, BeforeStopQuestion, BeforeToolQuestion, FrontEndMiddlewareStages, Middleware,
    MiddlewareLayer, MiddlewareRegistrationHandle, MiddlewareRegistry, MiddlewareSessionContext,
    MiddlewareToolCallAnswer, MiddlewareToolResultAnswer, RecentCallForMiddleware, RoundDetector,
    RoundEndAnswer, RoundEndForMiddleware, SessionEndForMiddleware, SessionStart, ToolResult,
    tool_result_text,
};
pub use notifications::{
    approvals_awaiting_notification, mark_approvals_notified, record_approval_notify_failure,
};
#[cfg(unix)]
pub use owner::{
    HookWorkerLinkEnd, UniqueProcessId, WorkerCheckBatch, WorkerLauncherFn, WorkerLinkReadOutcome,
    WorkerTransport, WorkerTransportWriter, cancel_all_workers, cancel_session_workers,
};
pub use policy_fallback::FallbackPoliciesForBrokenConfig;
pub use read_only::is_call_read_only;
pub use retention::{RemovedSession, RetentionReport, apply_retention};
pub use runtime::Runtime;
pub use system::{MayBlockThread, RealSystem, System};
pub use tool_facts::ToolFactsBuilder;
pub use workspace::TreeAndStateFolder;
pub use workspace_tools::WorkspaceTools;
