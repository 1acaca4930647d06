//! Checkrein in your own agent: every tool call is gated, and a claim of done is judged
//! by evidence before it counts.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use checkrein::{Engine, StopDecision, ToolCall, ToolDecision};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), checkrein::RuntimeError> {
//! let config = "[[verifier]]\nname = \"tests\"\nrun = \"cargo test\"\n";
//! let engine = Engine::in_memory(Path::new("."), Some(config));
//! let (session, _warnings) = engine.session("my-agent")?;
//! session.prompt("make the build green")?;
//!
//! let call = ToolCall::shell_call("call-1", "cargo fix --allow-dirty");
//! if let ToolDecision::Allow = session.tool(&call)?.0 {
//!     // Run it, then say what came of it.
//!     session.returned(&call, &json!("Fixed 2 files"), false)?;
//! }
//! let (decision, answer) = session.stop("I am done.")?;
//! match decision {
//!     StopDecision::Continue { .. } => println!("{}", answer.feedback_text.unwrap_or_default()),
//!     StopDecision::Accept { .. } | StopDecision::Halt { .. } => println!("{:?}", answer.task_transition()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Calls that a person has to be asked about are refused until [`Engine::answer_approval`] says otherwise;
//! [`Engine::list_approvals`] lists them.
//!
//! Sessions of one engine share nothing mutable but the store (law 8): use one engine
//! for as many as you like, from as many threads as you like.

pub mod agent_loop;
mod approvals;
mod engine;
mod session;
pub mod supervisor;
mod tool;
pub mod verification;

pub use agent_loop::{
    AgentLoop, AgentLoopEvent, AgentLoopInterruptHandle, AgentLoopStartError,
    AgentRatingOfOwnAnswer, ApplyPatchTool, DoneClaimContext, HardCaps, HardVerifier, LoopResult,
    ModelAndPurposeOfConversation, SelfReflectionConfig, ShellTool,
    stored_conversation_model_and_purpose,
};
pub use engine::Engine;
pub use session::{AnswerUsage, FinalAnswerFacts, Session, ToolCall};
pub use supervisor::{
    PreToolDecision, PreToolVerifier, ProgressVerifier, StepProgressRating, ToolCallVerdict,
    VerifierConfig, VerifierNetwork, VerifierStats, wrap_tool_with_verifier,
};
pub use tool::{CallActionDeclaredByTool, Tool, ToolInvocation, ToolOutcome, ToolOutput};
pub use verification::{
    Agent, AgentRun, VerificationLoop, VerificationLoopOutcome, VerificationLoopResult,
    VerificationResult, Verifier,
};

pub use checkrein_core::decision::{RoundDecision, StopDecision, ToolDecision};
pub use checkrein_core::ids::UnixMillis;
pub use checkrein_core::input::PersonAnswer;
pub use checkrein_core::middleware::MiddlewareStage;
pub use checkrein_core::transition::{Reason, Transition};
pub use checkrein_models as models;
pub use checkrein_runtime::reviewer::{ParseFractionError, UnitFraction, UnusableModelAnswer};
pub use checkrein_runtime::veto::InvalidToolCallError;
pub use checkrein_runtime::{
    BeforeStopAnswer, BeforeStopQuestion, BeforeToolQuestion, FrontEndMiddlewareStages, Middleware,
    MiddlewareLayer, MiddlewareRegistrationHandle, MiddlewareRegistry,
    MiddlewareSessionContext as AboutSession, MiddlewareToolCallAnswer, MiddlewareToolResultAnswer,
    RecentCallForMiddleware, RewrittenToolResult, RoundDetector, RoundEndAnswer,
    RoundEndForMiddleware, SessionEndForMiddleware, SessionStart, ToolResult,
};
pub use checkrein_runtime::{
    DeliveryOutcome, HostFunctionVerdict, RuntimeError, TreeAndStateFolder, VerificationProgress,
    now_millis,
};
pub use checkrein_store::{
    ApprovalAnswer, ApprovalCallDetails, ApprovalStatus, ApprovalSubject, FinalMessage,
    StoredApprovalRequest,
};

/// The examples of the pages are compiled and run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/middleware.md")]
    mod middleware {}
    #[doc = include_str!("../../../docs/supervisor.md")]
    mod supervisor {}
    #[doc = include_str!("../../../docs/verification-loop.md")]
    mod verification_loop {}
}
