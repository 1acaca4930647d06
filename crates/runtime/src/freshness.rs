//! Whether a person who answers a question about work has that very work before them.

use checkrein_core::ids::VerifierName;
use checkrein_core::policy::VerdictSubjectKind;
use checkrein_store::{ApprovalSubject, StoredApprovalRequest};

use crate::error::RuntimeError;
use crate::event_delivery::Deadline;
use crate::runtime::Runtime;

/// What a question about work is about, as it lies here now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSubjectFreshness {
    /// The files that it depends on, as the policy names them; all of them if none is named.
    pub inputs: Vec<String>,
    /// It is what was asked about.
    pub is_unchanged: bool,
}

impl Runtime {
    /// Reads the tree that a question is about. `None`: it is about a call, or the session's
    /// policy does not ask it any more.
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
        let tracked = self
            .place
            .session_tracked_files(Some(&question.session), patience);
        let reading = self.place.read_tree(
            &tracked,
            &policy,
            patience.tree_read_limits(&*self.place.system),
        );
        let fact = reading.map_err(RuntimeError::Tree)?.fact;
        let (inputs, same) = match (spec.subject, message) {
            (VerdictSubjectKind::Tree, _) => (
                spec.inputs.clone(),
                fact.verifier_input_digest(spec) == *subject,
            ),
            (VerdictSubjectKind::Message, Some(message)) => (Vec::new(), fact.tree == message.tree),
            // An earlier version took the message alone for all that it is about.
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
