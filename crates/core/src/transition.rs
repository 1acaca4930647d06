//! The typed reason why a task ended. Reasons are stable: they are in logs, JSON, metrics and exit
//! codes. `docs/transitions.md` maps vendors' words to them.

use serde::{Deserialize, Serialize};

/// The detail of [`Reason::AwaitingHuman`] while a call waits for a person.
pub const PARKED_DETAIL: &str = "parked";

/// Why a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Hard evidence was necessary and is there.
    TaskComplete,
    /// The agent's process or API failed, or Checkrein did.
    Error,
    /// Accepted without hard evidence.
    Unverified,
    /// The same failures, or too many continuations.
    GaveUp,
    /// A cap was reached.
    HardCap,
    /// Going on is not worth it: token use between stops is small, or the budget threshold is
    /// reached.
    DiminishingReturns,
    /// A loop detector ended it.
    LoopDetected,
    /// A required verifier can never succeed.
    VerifierFailedUnrecoverable,
    /// A person said no, or the agent stopped right after a refusal.
    PermissionDenied,
    /// Parked until a person answers; resumable.
    AwaitingHuman,
    /// The last answer was cut by its output limit.
    Truncated,
    /// The person interrupted it.
    UserInterrupt,
    /// The session ended, the day passed, or a new prompt came first.
    Abandoned,
}

impl Reason {
    /// Every reason, in the order of the documentation.
    pub const ALL: [Reason; 13] = [
        Reason::TaskComplete,
        Reason::Error,
        Reason::Unverified,
        Reason::GaveUp,
        Reason::HardCap,
        Reason::DiminishingReturns,
        Reason::LoopDetected,
        Reason::VerifierFailedUnrecoverable,
        Reason::PermissionDenied,
        Reason::AwaitingHuman,
        Reason::Truncated,
        Reason::UserInterrupt,
        Reason::Abandoned,
    ];

    /// The word in logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::TaskComplete => "task_complete",
            Reason::Error => "error",
            Reason::Unverified => "unverified",
            Reason::GaveUp => "gave_up",
            Reason::HardCap => "hard_cap",
            Reason::DiminishingReturns => "diminishing_returns",
            Reason::LoopDetected => "loop_detected",
            Reason::VerifierFailedUnrecoverable => "verifier_failed_unrecoverable",
            Reason::PermissionDenied => "permission_denied",
            Reason::AwaitingHuman => "awaiting_human",
            Reason::Truncated => "truncated",
            Reason::UserInterrupt => "user_interrupt",
            Reason::Abandoned => "abandoned",
        }
    }

    /// Exit code of `checkrein run`; `abandoned` is never one.
    pub fn run_exit_code(self) -> Option<u8> {
        match self {
            Reason::TaskComplete => Some(0),
            Reason::Error => Some(1),
            Reason::Unverified => Some(10),
            Reason::GaveUp => Some(11),
            Reason::HardCap => Some(12),
            Reason::DiminishingReturns => Some(13),
            Reason::LoopDetected => Some(14),
            Reason::VerifierFailedUnrecoverable => Some(15),
            Reason::PermissionDenied => Some(16),
            Reason::AwaitingHuman => Some(17),
            Reason::Truncated => Some(18),
            Reason::UserInterrupt => Some(130),
            Reason::Abandoned => None,
        }
    }

    /// Returns whether a task with this ending may still be answered `continue` after it is
    /// reopened.
    pub fn allows_continue_after_reopen(self) -> bool {
        // Every other reason is a bound that was reached. Reopening must not give the task another
        // set of refusals (law 2).
        matches!(self, Reason::TaskComplete | Reason::Unverified)
    }
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// The stable reason.
    pub reason: Reason,
    /// Which of its kinds: `same_failures`, `iterations`, a detector's or a verifier's name.
    pub detail: Option<String>,
    /// What the vendor calls it, if the vendor ended it.
    pub native_reason: Option<String>,
}

impl Transition {
    /// Returns whether this may replace a bad ending: it is a better one, or it is the outcome of
    /// the person that was waited for.
    pub(crate) fn can_replace_bad_ending(&self, spent: &Transition) -> bool {
        let waited = spent.reason == Reason::AwaitingHuman;
        let came = matches!(
            self.reason,
            Reason::AwaitingHuman | Reason::PermissionDenied | Reason::VerifierFailedUnrecoverable
        );
        // A task that waited for a person has not failed yet, so their answer may also make the
        // ending worse.
        self.reason.allows_continue_after_reopen() || (waited && came)
    }

    /// A reason with its detail.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: Some(detail.into()),
            native_reason: None,
        }
    }

    /// A reason that needs no detail.
    pub fn transition_without_detail(reason: Reason) -> Self {
        Self {
            reason,
            detail: None,
            native_reason: None,
        }
    }
}
