//! The types that are written to and read from a store.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{
    AgentName, EventSeq, ScopeId, SessionId, TaskId, UnixMillis, VerifierName,
};
use checkrein_core::input::{ActReach, NewestInvalidatingActNumbers};
use serde::{Deserialize, Serialize};

use crate::StoredApprovalRequest;

/// An event to append. The store assigns its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Its kind.
    pub kind: &'static str,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Idempotency key, at most once per session.
    pub key: Option<String>,
}

/// An event as it was appended, possibly by a newer version that knows more kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecodedEvent {
    /// Its place.
    pub seq: EventSeq,
    /// Its kind.
    pub kind: String,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// What one transaction appends, all of it or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppendBatch {
    /// Events, in order.
    pub events: Vec<NewEvent>,
    /// Keys of this session's effects that need not be performed any more, whichever stop requested
    /// them: their evidence is in these events, or nobody waits for it.
    pub settled: Vec<Digest>,
    /// Effects that these events request. One that is also settled is requested anew.
    pub effects: Vec<StoredCheckRequest>,
    /// Blobs that these events name by digest.
    pub blobs: Vec<Vec<u8>>,
    /// The state with these events folded in.
    pub cache: Option<CachedSessionState>,
    /// Rows of conversations that changed, whole.
    pub scopes: Vec<ScopeRow>,
    /// Summary rows that changed. They are stored under the transaction's session, whatever they
    /// say.
    pub tasks: Vec<TaskRow>,
    /// What a person is asked, and what became of it. An answer is never taken back.
    pub approvals: Vec<StoredApprovalRequest>,
    /// A tool call that may have changed what checks find, at its request or its outcome.
    pub act: Option<ToolAct>,
    /// Whether it must survive a power cut: stop decisions, approvals.
    pub durable: bool,
}

/// A tool call that may have changed what checks find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAct {
    /// The root that it was made in.
    pub root: String,
    /// How far it may reach.
    pub reach: ActReach,
}

/// Act numbers of one root. All acts of all roots share one numbering, and a later one has the
/// larger number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActNumbersForRoot {
    /// The number of the newest act of all roots.
    pub total: u64,
    /// The newest acts that concern the asking session.
    pub newest: NewestInvalidatingActNumbers,
}

/// What a transaction appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendedEventRange {
    /// Newest event before it; the batch's own begin right after.
    pub after: EventSeq,
    /// Newest event now.
    pub last: EventSeq,
    /// Head of the session's hash chain now.
    pub head: Digest,
}

/// An effect that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckRequest {
    /// Content key of the evidence it leads to and of the claim on it.
    pub key: Digest,
    /// Which verifier.
    pub verifier: VerifierName,
    /// The stop's input that it is for.
    pub stop: EventSeq,
}

/// What is kept of one scope of a session. The state is bounded and may have dropped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRow {
    /// Which.
    pub scope: ScopeId,
    /// Where its transcript was read to; empty if it never was.
    pub cursor: String,
    /// The task in which it was halted.
    pub halted_in: Option<TaskId>,
}

/// A folded state, so that the fold can start from it instead of from the first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedSessionState {
    /// Version of the core that folded it; another one folds from the start.
    pub core_version: u32,
    /// Policy it was folded under.
    pub policy: Digest,
    /// The state.
    pub bytes: Vec<u8>,
}

/// Whether evidence can still be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceFinality {
    /// It has a verdict, and nothing replaces it.
    Final,
    /// It is inconclusive, and the next evidence replaces it.
    Inconclusive,
}

/// Evidence as kept under its content key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceBytesWithFinality {
    /// Whether it stays.
    pub finality: EvidenceFinality,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The outcome of storing evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidencePutOutcome {
    /// It is stored under the key.
    Stored,
    /// Final evidence was stored before and stays. Read that one.
    KeptEarlier,
}

/// The summary of one task, for listings. Derived from the log and never read to decide. Kept as
/// JSON, so a field that is added later needs a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    /// Its session.
    pub session: SessionId,
    /// Its ordinal there.
    pub task: TaskId,
    /// The agent.
    pub agent: AgentName,
    /// The level of protection in force.
    pub level: Option<String>,
    /// When it began.
    pub opened_at: UnixMillis,
    /// When it ended.
    pub ended_at: Option<UnixMillis>,
    /// Why it ended: the stable word.
    pub reason: Option<String>,
    /// Which of its kind.
    pub detail: Option<String>,
    /// What the vendor calls it.
    pub native_reason: Option<String>,
    /// Stops so far.
    pub stops: u32,
    /// Continuations so far.
    pub continues: u32,
    /// Tool requests so far.
    pub tool_calls: u64,
    /// Rounds so far, `None` if the agent shows none.
    pub rounds: Option<u64>,
    /// Output tokens so far, `None` if unknown.
    pub output_tokens: Option<u64>,
    /// The sealed policy.
    pub policy: Digest,
    /// What it is for: the config's goal, or the beginning of the prompt.
    pub goal: Option<String>,
    /// The folder it works in.
    pub root: String,
}
