//! Decides whether a person is asked about a tool request and how: approval mode x rule decision x
//! whether the agent can put a question. This is the table of `docs/approvals.md`.

use crate::input::{RuleDecision, ToolKind, ToolRequested};
use crate::middleware::{MiddlewareAnswerFact, middleware_question_for_person};
use crate::policy::ApprovalMode;

/// How a request is handled before anybody was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalHandling {
    /// Nobody is asked: the rules do not object.
    NotRequired,
    /// The agent asks its person.
    AskInAgent,
    /// It is refused until a person approves it.
    Park,
    /// A person would have to be asked, and the policy asks nobody: refused.
    RefuseUnasked,
    /// The rules forbid it. No mode and no person's approval changes that (law 11).
    Forbid,
}

/// Returns how `request` is handled in this mode. A middleware layer that wants a person asked
/// counts as a `prompt` rule.
pub fn approval_handling_of_request(
    mode: ApprovalMode,
    request: &ToolRequested,
    layers: &[MiddlewareAnswerFact],
) -> ApprovalHandling {
    let all = matches!(mode, ApprovalMode::Always | ApprovalMode::Both);
    let nobody = matches!(mode, ApprovalMode::Never | ApprovalMode::Both);
    let prompt = middleware_question_for_person(layers).map(|_| RuleDecision::Prompt);
    // The order of `RuleDecision` is by severity, and `None` is below all of them, so a layer only
    // tightens.
    match request.facts.rule.max(prompt) {
        Some(RuleDecision::Forbidden) => ApprovalHandling::Forbid,
        Some(RuleDecision::Prompt) if nobody => ApprovalHandling::RefuseUnasked,
        Some(RuleDecision::Allow) | None if !(all && tool_request_may_have_effects(request)) => {
            ApprovalHandling::NotRequired
        }
        _ if request.can_ask => ApprovalHandling::AskInAgent,
        _ => ApprovalHandling::Park,
    }
}

/// Returns whether the request may have effects. `always` does not ask about calls that only read.
fn tool_request_may_have_effects(request: &ToolRequested) -> bool {
    request.may_act || matches!(request.kind, ToolKind::Shell | ToolKind::Write)
}
