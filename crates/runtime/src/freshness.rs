//! Finds out whether the work that a person is asked about is the work that lies here now.

use checkrein_core::ids::VerifierName;
use checkrein_core::policy::VerdictSubjectKind;
use checkrein_store::{ApprovalSubject, StoredApprovalRequest};

use crate::error::RuntimeError;
use crate::event_delivery::Deadline;
use crate::runtime::Runtime;

/// The work of a question, compared with what lies here now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSubjectFreshness {
    /// The files that it depends on, as the policy names them; all of them if none is named.
    pub inputs: Vec<String>,
    /// Whether it is what the question was about.
    pub is_unchanged: bool,
}

impl Runtime {
    /// Compares the tree with the one that a question is about. Returns `None` if the question is
    /// about a call, or if the session's policy does not ask it any more.
    ///
    /// # Errors
    /// If the store or the tree cannot be read.
    pub fn compare_tree_with_approval_subject(
        &self,
        question: &StoredApprovalRequest,
        patience: Deadline<'_>,
    ) -> Result<Option<ApprovalSubjectFreshness>, RuntimeError> {
        let ApprovalSubject::Work {
            verifier,
            subject,
            message,
        } = &question.about
        else {
            return Ok(None);
        };
        let Some((_, policy)) = self.load_session_state_and_policy(&question.session)? else {
            return Ok(None);
        };
        let Some(spec) = policy.verifier_spec(&VerifierName::new(verifier.as_str())) else {
            return Ok(None);
        };
        // The files that counted for the session, or the digest could not be the same.
        let tracked = self
            .place
            .git_tracked_files_at_task_start(Some(&question.session), patience);
        let reading = self.place.read_tree(
            &tracked,
            &policy,
            patience.tree_read_timeout_and_cancel(&*self.place.system),
        );
        let fact = reading.map_err(RuntimeError::Tree)?.fact;
        let (inputs, same) = match (spec.subject, message) {
            (VerdictSubjectKind::Tree, _) => (
                spec.inputs.clone(),
                fact.verifier_input_digest(spec) == *subject,
            ),
            (VerdictSubjectKind::Message, Some(message)) => (Vec::new(), fact.tree == message.tree),
            // An older version asked about the message alone, so there is no tree to compare.
            (VerdictSubjectKind::Message, None)
            | (VerdictSubjectKind::Answer | VerdictSubjectKind::Stop, _) => {
                return Ok(None);
            }
        };
        Ok(Some(ApprovalSubjectFreshness {
            inputs,
            is_unchanged: same,
        }))
    }
}
