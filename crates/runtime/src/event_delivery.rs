//! What a front door hands in, and what it gets back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::evidence::{InconclusiveCause, Verdict};
use checkrein_core::explain::{DecisionExplanation, StopHoldupCause};
use checkrein_core::ids::{EventSeq, SessionId, SourceName, VerifierName};
use checkrein_core::input::{Input, StandingTaskListSnapshot, TokenUsage};
use checkrein_core::middleware::MiddlewareAnswerFact;
use checkrein_core::policy::VerifiedNoticeMode;
use checkrein_core::state::SessionState;
use checkrein_core::transition::Transition;
use checkrein_store::StoredApprovalRequest;
use checkrein_verifiers::tree::TreeReadLimits;
use serde_json::Value;

use crate::config::{CompiledPolicy, ConfigError};
use crate::system::System;
use crate::tool_facts::ToolFactsBuilder;

/// Compiles the policy of a new session. Called at most once, and only for a new one.
pub type PolicyCompiler = dyn Fn() -> Result<CompiledPolicy, ConfigError> + Send + Sync;

/// Reads token use from a cursor on; `None` if it cannot be known.
pub type TokenUsageReader<'a> = &'a dyn Fn(&str) -> Option<TokenUsage>;

/// What a tool said.
#[derive(Debug, Clone, Copy)]
pub struct ToolResponse<'a> {
    /// The tool.
    pub tool: &'a str,
    /// What it was called with.
    pub args: &'a Value,
    /// What it said: a text, or the result of an MCP server's tool.
    pub result: &'a Value,
}

/// What layers of middleware made of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RewrittenResult {
    /// What the agent gets instead; a text, or of the shape of the result itself.
    pub for_agent: Option<Value>,
    /// What later rounds of the conversation have instead of that.
    pub for_history: Option<Value>,
}

/// News, as a front door hands it in.
pub struct EventDelivery<'a> {
    /// Whose.
    pub session: SessionId,
    /// By which installed entry.
    pub source: SourceName,
    /// Native id with the event's name, if the agent gives one.
    pub key: Option<String>,
    /// What happened; facts, tree and tokens are filled in here.
    pub input: Input,
    /// What a tool call does, and what is found out about it here.
    pub facts: ToolFactsBuilder<'a>,
    /// The folder in which tools work at the moment; the root if it is not known.
    pub working_folder: Option<&'a Path>,
    /// Reads token use.
    pub usage: Option<TokenUsageReader<'a>>,
    /// Of a tool that came back: what it said, if what is made of it is passed on.
    pub tool_response: Option<ToolResponse<'a>>,
    /// What layers of middleware said; filled in here.
    pub layers: Vec<MiddlewareAnswerFact>,
    /// The project's list of standing tasks; filled in here.
    pub task_list: Option<Box<StandingTaskListSnapshot>>,
    /// The checks whose newest runs count, where the tree was read; filled in here.
    pub required_runs: Option<Box<[RequiredCheckAndRunKey]>>,
}

/// A required check, and what its runs on the tree are kept under.
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
    /// Set on SIGTERM or Ctrl-C, and where the caller says so: a hook is cancelled by `off` and by the end of its agent.
    pub cancelled: &'a AtomicBool,
}

impl<'a> Deadline<'a> {
    /// Whether the answer is due.
    pub(crate) fn is_past_deadline(&self, system: &dyn System) -> bool {
        self.due_at
            .is_some_and(|deadline| system.monotonic_now() >= deadline)
    }

    /// Whether we are told to go.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// For a program that is asked something on the way: most of the time is for the checks.
    pub(crate) fn auxiliary_program_timeout(&self, system: &dyn System) -> Duration {
        const MOST: Duration = Duration::from_secs(30);
        let left = |deadline: Instant| deadline.saturating_duration_since(system.monotonic_now());
        self.due_at
            .map_or(MOST, |deadline| MOST.min(left(deadline) / 4))
    }

    /// For reading a tree: until the answer is due, or we are told to go.
    pub(crate) fn tree_read_limits(&self, system: &dyn System) -> TreeReadLimits<'a> {
        let left = |deadline: Instant| deadline.saturating_duration_since(system.monotonic_now());
        TreeReadLimits {
            time: self.due_at.map(left),
            cancelled: Some(self.cancelled),
        }
    }
}

/// An answer, with what is needed to say it.
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
    pub rewritten: RewrittenResult,
    /// The session as it is now.
    pub state: SessionState,
    /// Said once, when the policy was sealed.
    pub warnings: Vec<String>,
    /// What waits for a person since this answer.
    pub parked: Vec<StoredApprovalRequest>,
    /// The command that tells them, as the sealed policy has it.
    pub notify: Option<String>,
    /// What an accepted stop says in the agent's screen, as the sealed policy has it.
    pub verified_notice: VerifiedNoticeMode,
    /// What was wrong with the config in whose place the sealed policy goes on.
    pub config_error: Option<String>,
    /// Files that were too large to be read at this stop: they count by their size and times.
    pub large_files: Vec<String>,
    /// The same news was taken in before, and this is what was answered then.
    pub repeated: bool,
    /// What kept a stop from being judged.
    pub held_up_by: Option<StopHoldupCause>,
}

impl DeliveryOutcome {
    /// How the task ended, if this answer ended it.
    pub fn task_transition(&self) -> Option<Transition> {
        match &self.decision {
            Decision::Stop(StopDecision::Accept { transition }) => transition.clone(),
            Decision::Stop(StopDecision::Halt { transition }) => Some(transition.clone()),
            Decision::Stop(StopDecision::Continue { .. }) => None,
            Decision::Tool(ToolDecision::Halt { .. }) | Decision::Noted => {
                self.state.task.as_ref().and_then(|task| task.ended.clone())
            }
            Decision::Tool(_) => None,
        }
    }
}

/// What a person may be shown while checks run.
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
    /// It came back.
    Finished {
        /// Which.
        verifier: VerifierName,
        /// What it says.
        verdict: Verdict,
        /// Why it could not tell.
        cause: Option<InconclusiveCause>,
        /// Milliseconds it took.
        duration_ms: u64,
        /// Taken from an earlier run on the same subject.
        cached: bool,
    },
}
