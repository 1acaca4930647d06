//! Supervises an agent with a second, cheap model: it vetoes tool calls and rates the agent's
//! progress. Both halves are optional and have hard caps. A missing answer is always distinguished
//! from an answer.

mod config;
mod current_run;
mod decision;
mod decision_cache;
mod network;
mod pre_tool;
mod progress;
mod stats;
mod verified_tool;
mod worthwhile;

pub use config::{CallsReviewedByModel, VerifierConfig, VerifierConfigError};
pub use decision::{
    PreToolDecision, StepProgressRating, ToolCallVerdict, ToolCallVerdictBasis, UnjudgedReason,
};
pub use network::VerifierNetwork;
pub use pre_tool::{HostToolCallVetoFn, PreToolVerifier};
pub use progress::ProgressVerifier;
pub use stats::VerifierStats;
pub use verified_tool::{ToolWithVerifiedCalls, wrap_tool_with_verifier};
pub use worthwhile::{SupervisedRunExpectations, SupervisionNotWorthReason};
