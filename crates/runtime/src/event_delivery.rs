//! The types that a front door passes in, and those that it gets back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checkrein_core::decision::{Decision, RoundDecision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::evidence::{InconclusiveCause, Verdict};
use checkrein_core::explain::{ChangeKindHoldingUpStop, DecisionExplanation};
use checkrein_core::ids::{EventSeq, SessionId, SourceName, VerifierName};
use checkrein_core::input::{Input, StandingTaskListSnapshot, TokenUsage};
use checkrein_core::middleware::MiddlewareAnswerFact;
use checkrein_core::policy::VerifiedNoticeMode;
use checkrein_core::state::SessionState;
use checkrein_core::transition::Transition;
use checkrein_store::StoredApprovalRequest;
use checkrein_verifiers::tree::TreeReadTimeoutAndCancel;
use serde_json::Value;

use crate::config::{CompiledPolicy, ConfigError};
use crate::system::System;
use crate::tool_facts::ToolFactsBuilder;

/// Compiles the policy of a new session. Called at most once, and only for a new one.
pub type PolicyCompileFn = dyn Fn() -> Result<CompiledPolicy, ConfigError> + Send + Sync;

/// Reads token use from a cursor on; `None` if it cannot be known.
pub type TokenUsageFromCursorFn<'a> = &'a dyn Fn(&str) -> Option<TokenUsage>;

/// The response of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolResponse<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The arguments of the call.
    pub args: &'a Value,
    /// Its response: a text, or the result of an MCP server's tool.
    pub result: &'a Value,
}

/// A tool's result as layers of middleware rewrote it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RewrittenToolResult {
    /// The result that the agent gets instead; a text, or a value of the same shape.
    pub for_agent: Option<Value>,
    /// The result that later rounds of the conversation hold instead of that.
    pub for_history: Option<Value>,
}

/// An event, as a front door delivers it.
pub struct EventDelivery<'a> {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The installed entry that delivered it.
    pub source: SourceName,
    /// The native id with the event's name, if the agent gives one.
    pub key: Option<String>,
    /// The input itself; facts, tree and tokens are filled in here.
    pub input: Input,
    /// The action of a tool call, and the facts that are gathered about it here.
    pub facts: ToolFactsBuilder<'a>,
    /// The folder in which tools currently work; the root if it is not known.
    pub working_folder: Option<&'a Path>,
    /// Reads the agent's token use.
    pub usage: Option<TokenUsageFromCursorFn<'a>>,
    /// The response of a tool that came back, if a rewritten one can be passed on.
    pub tool_response: Option<ToolResponse<'a>>,
    /// The response of a tool that came back, where no rewritten one can be passed on. Rules of other
    /// agents for loops read it.
    pub seen_tool_response: Option<ToolResponse<'a>>,
    /// The answers of middleware layers; filled in here.
    pub layers: Vec<MiddlewareAnswerFact>,
    /// The project's list of standing tasks; filled in here.
    pub task_list: Option<Box<StandingTaskListSnapshot>>,
    /// The required checks with the keys of their runs, where the tree was read; filled in here.
    pub required_runs: Option<Box<[RequiredCheckAndRunKey]>>,
}

/// A required check, and the key under which its runs on the tree are kept.
#[derive(Debug, Clone)]
pub struct RequiredCheckAndRunKey {
    pub(crate) verifier: VerifierName,
    pub(crate) key: Digest,
}

/// How long the front door can wait.
#[derive(Debug, Clone, Copy)]
pub struct Deadline<'a> {
    /// When the answer is due.
    pub due_at: Option<Instant>,
    /// Set on SIGTERM or Ctrl-C, and where the caller asks for it: a hook is cancelled by `off` and
    /// by the end of its agent.
    pub cancelled: &'a AtomicBool,
}

impl<'a> Deadline<'a> {
    /// Whether the answer is due.
    pub(crate) fn is_past_deadline(&self, system: &dyn System) -> bool {
        self.due_at
            .is_some_and(|deadline| system.monotonic_now() >= deadline)
    }

    /// Whether the caller wants this process to stop.
    pub(crate) fn has_caller_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The limit for a program that is asked something on the way: most of the time is for the
    /// checks.
    pub(crate) fn auxiliary_program_timeout(&self, system: &dyn System) -> Duration {
        const MOST: Duration = Duration::from_secs(30);
        let left = |deadline: Instant| deadline.saturating_duration_since(system.monotonic_now());
        self.due_at
            // A quarter at most, however many programs are asked.
            .map_or(MOST, |deadline| MOST.min(left(deadline) / 4))
    }

    /// The limits for reading a tree: until the answer is due, or until it is cancelled.
    pub(crate) fn tree_read_timeout_and_cancel(
        &self,
        system: &dyn System,
    ) -> TreeReadTimeoutAndCancel<'a> {
        let left = |deadline: Instant| deadline.saturating_duration_since(system.monotonic_now());
        TreeReadTimeoutAndCancel {
            time: self.due_at.map(left),
            cancelled: Some(self.cancelled),
        }
    }
}

/// The answer to an event, with everything that a front door needs to render it.
#[derive(Debug)]
pub struct DeliveryOutcome {
    /// The input that was answered.
    pub seq: EventSeq,
    /// The answer.
    pub decision: Decision,
    /// The chain of facts behind it.
    pub why: DecisionExplanation,
    /// The rendered feedback of a refused stop.
    pub feedback_text: Option<String>,
    /// What layers of middleware made of a tool's result.
    pub rewritten: RewrittenToolResult,
    /// The session as it is now.
    pub state: SessionState,
    /// Warnings about the policy, given once, when it is sealed.
    pub warnings: Vec<String>,
    /// Approval requests that wait for a person since this answer.
    pub parked: Vec<StoredApprovalRequest>,
    /// The command that notifies them, as set in the sealed policy.
    pub notify: Option<String>,
    /// Whether an accepted stop is announced in the agent's screen, as set in the sealed policy.
    pub verified_notice: VerifiedNoticeMode,
    /// The mistake in the config that could not be used, if an older policy is in force because of
    /// it.
    pub config_error: Option<String>,
    /// Files that were too large to be read at this stop: they count by their size and times.
    pub large_files: Vec<String>,
    /// Whether the same event was taken in before; this is then the answer that was given.
    pub repeated: bool,
    /// What kept the stop from being judged, if anything.
    pub held_up_by: Option<ChangeKindHoldingUpStop>,
}

impl DeliveryOutcome {
    /// How the task ended, if this answer ended it.
    pub fn task_transition(&self) -> Option<Transition> {
        match &self.decision {
            Decision::Stop(StopDecision::Accept { transition }) => transition.clone(),
            Decision::Stop(StopDecision::Halt { transition }) => Some(transition.clone()),
            Decision::Stop(StopDecision::Continue { .. }) => None,
            // A tool's answer, and an event that is only noted, may end the task as well; then the
            // state knows how.
            Decision::Tool(ToolDecision::Halt { .. })
            | Decision::Round(RoundDecision::Halt { .. })
            | Decision::Noted => self.state.task.as_ref().and_then(|task| task.ended.clone()),
            Decision::Tool(_) | Decision::Round(_) => None,
        }
    }
}

/// News of running checks, for a person.
#[derive(Debug, Clone)]
pub enum VerificationProgress {
    /// A check began to run.
    Started {
        /// Which.
        verifier: VerifierName,
        /// The command it runs.
        command: String,
    },
    /// Another process runs it; its evidence is waited for.
    Waiting {
        /// Which.
        verifier: VerifierName,
    },
    /// The check ended.
    Finished {
        /// Which.
        verifier: VerifierName,
        /// Its verdict.
        verdict: Verdict,
        /// The cause, if the verdict is inconclusive.
        cause: Option<InconclusiveCause>,
        /// Milliseconds it took.
        duration_ms: u64,
        /// Whether it was taken from an earlier run on the same subject.
        cached: bool,
    },
}
