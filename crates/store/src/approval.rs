//! Approval requests: what a person was asked, and the outcome. A row stays as long as its session.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, SessionId, TaskId, UnixMillis};
use checkrein_core::input::PersonAnswer;
use serde::{Deserialize, Serialize};

/// One question to a person. Kept as JSON, so a field that is added later needs a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredApprovalRequest {
    /// The short id that a person types. Two questions are unlikely, but not impossible, to share
    /// it.
    pub id: String,
    /// Digest of exactly what was asked about, and for whom.
    pub key: Digest,
    /// How often the same was asked about before. With `key` it is the row's identity.
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
    pub about: ApprovalSubject,
    /// Why a person is asked.
    pub why: String,
    /// When.
    pub at: UnixMillis,
    /// When the question, or an unused answer, expires.
    pub until: UnixMillis,
    /// What they said.
    pub answer: Option<ApprovalAnswer>,
    /// When the one call that was approved was let through.
    pub used_at: Option<UnixMillis>,
    /// When the agent was told that nobody had answered in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "ran_out_at")]
    pub expiry_reported_at: Option<UnixMillis>,
    /// The policy has a command that notifies a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "tell")]
    pub notifies: bool,
    /// When that command succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "told_at")]
    pub notified_at: Option<UnixMillis>,
    /// Why the notification failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "not_told")]
    pub notification_error: Option<String>,
}

/// What a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSubject {
    /// A tool call. An approval lets it through once.
    Call {
        /// The tool.
        tool: String,
        /// The command or the arguments, for reading; bounded.
        text: String,
        /// Details beside the text. `None` if an earlier build asked, which kept the text only, so
        /// that something may be missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "beside")]
        details: Option<Box<ApprovalCallDetails>>,
    },
    /// Work, for a verifier that asks a person. An approval holds until it expires.
    Work {
        /// The verifier.
        verifier: String,
        /// The digest of what the person looks at.
        subject: Digest,
        /// The agent's last message, if that is what the person looks at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Box<FinalMessage>>,
    },
}

/// Details of a call beside its text. An approval covers all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalCallDetails {
    /// The other arguments, each with its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The folder that it would run in, if that differs from the working folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The commands that a script of several can run, severest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Number of words that are hidden because they look like secrets.
    #[serde(default)]
    pub hidden: u32,
    /// Why not all of it can be shown. Such a request cannot be approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unseen")]
    pub hidden_reason: Option<String>,
}

/// An agent's last message, as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalMessage {
    /// Its text; bounded.
    pub text: String,
    /// The tree that it was said about.
    pub tree: Digest,
    /// Number of words that are hidden because they look like secrets.
    #[serde(default)]
    pub hidden: u32,
    /// Why not all of it can be shown. Such a request cannot be approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unseen")]
    pub hidden_reason: Option<String>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    /// When.
    pub at: UnixMillis,
    /// What, by whom, why.
    #[serde(flatten)]
    pub answer: PersonAnswer,
}

/// The status of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalStatus {
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

impl ApprovalStatus {
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

impl StoredApprovalRequest {
    /// Returns its status at `now`.
    pub fn approval_status_at(&self, now: UnixMillis) -> ApprovalStatus {
        match &self.answer {
            // The order matters: a used or expired row keeps its status whatever the clock says.
            Some(_) if self.used_at.is_some() => ApprovalStatus::Used,
            // Earlier builds recorded expiry in `used_at`.
            None if self.expiry_reported_at.is_some() || self.used_at.is_some() => {
                ApprovalStatus::Expired
            }
            _ if now >= self.until => ApprovalStatus::Expired,
            None => ApprovalStatus::Asked,
            Some(answered) if answered.answer.approved => ApprovalStatus::Approved,
            Some(_) => ApprovalStatus::Denied,
        }
    }

    /// Returns whether a notification is still to be sent.
    pub fn approval_needs_notification(&self, now: UnixMillis) -> bool {
        // A failed notification is not repeated. Its error is recorded instead.
        let tried = self.notified_at.is_some() || self.notification_error.is_some();
        self.notifies && !tried && self.approval_status_at(now) == ApprovalStatus::Asked
    }

    /// Returns why it cannot be approved: not everything that the approval would cover can be
    /// shown.
    pub fn unapprovable_reason(&self) -> Option<&str> {
        match &self.about {
            ApprovalSubject::Call {
                details: beside, ..
            } => match beside {
                Some(beside) => beside.hidden_reason.as_deref(),
                // Without the details, an approval could cover arguments that nobody saw.
                None => Some("an earlier version of checkrein did not keep all of it"),
            },
            ApprovalSubject::Work { message, .. } => message.as_ref()?.hidden_reason.as_deref(),
        }
    }

    /// Returns the id followed by the whole key, which no two questions share.
    pub fn long_approval_id(&self) -> String {
        format!("{}{}", self.id, self.key.to_hex())
    }

    /// Returns whether `self` may replace `known`, a row of the same key and number. An answer that
    /// was given or used is never taken back.
    pub(crate) fn can_replace_approval(&self, known: &Self) -> bool {
        let answer = known.answer.is_none() || self.answer == known.answer;
        let used = known.used_at.is_none() || self.used_at == known.used_at;
        let ran_out = known.expiry_reported_at.is_none()
            || self.expiry_reported_at == known.expiry_reported_at;
        let told = known.notified_at.is_none() || self.notified_at == known.notified_at;
        answer && used && ran_out && told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a build of before these fields wrote it.
    const EARLIER: &str = r#"{"id":"ap-94db643d","key":"KEY","nth":0,"session":"s1","task":1,
        "agent":"codex","root":"/repo","about":{"call":{"tool":"Bash","text":"git push"}},
        "why":"it leaves this machine","at":10,"until":110,"answer":null,"used_at":null}"#;

    fn earlier() -> StoredApprovalRequest {
        let key = Digest::hash_bytes(b"earlier").to_hex();
        serde_json::from_str(&EARLIER.replace("KEY", &key)).unwrap()
    }

    #[test]
    fn a_row_of_an_earlier_build_is_read_and_nobody_says_yes_to_it() {
        let row = earlier();
        assert_eq!(
            row.approval_status_at(UnixMillis(50)),
            ApprovalStatus::Asked
        );
        assert!(row.unapprovable_reason().is_some());
        assert!(!row.approval_needs_notification(UnixMillis(50)));
        let work = StoredApprovalRequest {
            about: ApprovalSubject::Work {
                verifier: "review".to_owned(),
                subject: row.key,
                message: None,
            },
            ..row
        };
        assert_eq!(work.unapprovable_reason(), None);
    }

    #[test]
    fn an_approval_needs_notification_until_one_was_tried() {
        let row = StoredApprovalRequest {
            notifies: true,
            ..earlier()
        };
        assert!(row.approval_needs_notification(UnixMillis(50)));
        assert!(!row.approval_needs_notification(UnixMillis(110)));
        let told = StoredApprovalRequest {
            notified_at: Some(UnixMillis(20)),
            ..row.clone()
        };
        let failed = StoredApprovalRequest {
            notification_error: Some("no".to_owned()),
            ..row.clone()
        };
        for row in [told, failed] {
            assert!(!row.approval_needs_notification(UnixMillis(50)));
        }
    }

    #[test]
    fn two_ids_that_are_the_same_are_told_apart_by_more_of_them() {
        let one = earlier();
        let other = StoredApprovalRequest {
            key: Digest::hash_bytes(b"other"),
            ..one.clone()
        };
        assert_eq!(one.id, other.id);
        assert_ne!(one.long_approval_id(), other.long_approval_id());
        assert!(one.long_approval_id().starts_with(&one.id));
    }
}
