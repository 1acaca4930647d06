//! Lists and answers pending approvals, for hosts that ask people in their own way.

use checkrein_core::input::PersonAnswer;
use checkrein_runtime::{Deadline, RuntimeError};
use checkrein_store::StoredApprovalRequest;

use crate::Engine;

impl Engine {
    /// Everything that was put to a person, newest first, also what was asked by an earlier
    /// process with the same store. [`StoredApprovalRequest::approval_status_at`] says which still wait.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list_approvals(&self) -> Result<Vec<StoredApprovalRequest>, RuntimeError> {
        self.inner_runtime().list_approvals()
    }

    /// Records what a person said: who it was, and why. It holds as long again as the question
    /// was open for; the answered question says until when. A call that was approved goes through
    /// once, when the agent makes it again.
    ///
    /// That it was a person, and not the agent, is for the host to know: whoever can call this
    /// can approve.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use checkrein::{Engine, PersonAnswer, ApprovalStatus, ToolCall, ToolDecision, now_millis};
    ///
    /// # fn main() -> Result<(), checkrein::RuntimeError> {
    /// let config = "[policy]\napproval = \"always\"\n[approvals]\nexpires = \"2h\"\n";
    /// let engine = Engine::in_memory(Path::new("."), Some(config));
    /// let (session, _warnings) = engine.session("my-agent")?;
    /// session.prompt("release it")?;
    ///
    /// let push = ToolCall::shell_call("call-1", "git push origin main");
    /// let ToolDecision::Ask { approval, .. } = session.tool(&push)?.0 else {
    ///     panic!("every command is asked about");
    /// };
    ///
    /// // Meanwhile, wherever your people are asked:
    /// let waiting = engine.list_approvals()?;
    /// let question = waiting.iter().find(|row| row.id == approval).unwrap();
    /// assert_eq!(question.approval_status_at(now_millis()), ApprovalStatus::Asked);
    /// let answer = PersonAnswer {
    ///     approved: true,
    ///     by: "ada, in the chat".to_owned(),
    ///     reason: Some("the release was planned".to_owned()),
    /// };
    /// let answered = engine.answer_approval(question, answer)?;
    /// assert!(answered.until >= question.until);
    ///
    /// let again = ToolCall::shell_call("call-2", "git push origin main");
    /// assert_eq!(session.tool(&again)?.0, ToolDecision::Allow);
    /// let once_more = ToolCall::shell_call("call-3", "git push origin main");
    /// assert!(matches!(session.tool(&once_more)?.0, ToolDecision::Ask { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RuntimeError::ApprovalClosed`] if there is nothing left to answer, [`RuntimeError::ApprovalNotShown`] for
    /// a yes to what cannot be shown whole ([`StoredApprovalRequest::unapprovable_reason`]); or if the store cannot be
    /// written.
    pub fn answer_approval(
        &self,
        question: &StoredApprovalRequest,
        answer: PersonAnswer,
    ) -> Result<StoredApprovalRequest, RuntimeError> {
        let patience = Deadline {
            due_at: None,
            cancelled: self.cancel_flag(),
        };
        self.inner_runtime()
            .answer_approval(question, answer, patience)
    }
}
