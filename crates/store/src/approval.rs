//! What a person was asked, and what became of it. A row stays as long as its session.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, Millis, SessionId, TaskId};
use checkrein_core::input::PersonAnswer;
use serde::{Deserialize, Serialize};

/// One question to a person. Kept as JSON: a field that comes later needs a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// What a person types: unlikely, not impossible, to be another one's as well.
    pub id: String,
    /// Digest of exactly what was asked about, and for whom.
    pub key: Digest,
    /// How many times the same was asked about before; with `key` its identity.
    pub nth: u32,
    /// The session that asked; its log has the answer.
    pub session: SessionId,
    /// The task in which it asked.
    pub task: Option<TaskId>,
    /// The agent that waits.
    pub agent: AgentName,
    /// The folder it works in.
    pub root: String,
    /// What is asked about.
    pub about: About,
    /// Why a person is asked.
    pub why: String,
    /// When.
    pub at: Millis,
    /// When the question, or an answer that nobody made use of, has run out.
    pub until: Millis,
    /// What they said.
    pub answer: Option<Answered>,
    /// When the one call that was approved was let through.
    pub used_at: Option<Millis>,
    /// Why nobody could be told that it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_told: Option<String>,
}

/// What a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A tool call; approved, it goes through once.
    Call {
        /// The tool.
        tool: String,
        /// The command or the arguments, for reading; bounded.
        text: String,
    },
    /// Work, for a verifier that asks a person; approved, it is so until it runs out.
    Work {
        /// The verifier.
        verifier: String,
        /// The digest of what is to be looked at.
        subject: Digest,
    },
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// When.
    pub at: Millis,
    /// What, by whom, why.
    #[serde(flatten)]
    pub answer: PersonAnswer,
}

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// Nobody has answered yet.
    Asked,
    /// A person said yes, and it still holds.
    Approved,
    /// It was approved, and the one call was let through.
    Used,
    /// A person said no, and it still holds.
    Denied,
    /// Its time is over.
    Expired,
}

impl Stands {
    /// The word in listings and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Approved => "approved",
            Self::Used => "used",
            Self::Denied => "denied",
            Self::Expired => "expired",
        }
    }
}

impl Approval {
    /// Where it stands now.
    pub fn stands(&self, now: Millis) -> Stands {
        match &self.answer {
            _ if self.used_at.is_some() => Stands::Used,
            _ if now >= self.until => Stands::Expired,
            None => Stands::Asked,
            Some(answered) if answered.answer.approved => Stands::Approved,
            Some(_) => Stands::Denied,
        }
    }

    /// Whether `self` may take the place of `known`, a row of the same key and number: an answer
    /// that was given, or used, is never taken back.
    pub(crate) fn may_follow(&self, known: &Self) -> bool {
        let answer = known.answer.is_none() || self.answer == known.answer;
        let used = known.used_at.is_none() || self.used_at == known.used_at;
        answer && used
    }
}
