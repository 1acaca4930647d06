//! Is a person to be asked about a tool request, and can they be? Approval mode x what the
//! rules say x whether the agent can put a question: the table of `docs/approvals.md`.

use crate::input::{RuleDecision, ToolKind, ToolRequested};
use crate::middleware::{MiddlewareAnswerFact, approval_question};
use crate::policy::ApprovalMode;

/// What becomes of a request, before anybody was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalHandling {
    /// Nobody is asked: as far as the rules go, it may run.
    NotRequired,
    /// The agent asks its person.
    AskInAgent,
    /// It is refused until a person approves it.
    Park,
    /// It would have to be asked about, and nobody is to be asked: refused.
    RefuseUnasked,
    /// The rules forbid it. No mode and no person's approval changes that (law 11).
    Forbid,
}

/// What becomes of `request` in this mode. A layer of middleware that would have a person asked
/// counts as a rule that says `prompt`.
pub fn approval_handling(
    mode: ApprovalMode,
    request: &ToolRequested,
    layers: &[MiddlewareAnswerFact],
) -> ApprovalHandling {
    let all = matches!(mode, ApprovalMode::Always | ApprovalMode::Both);
    let nobody = matches!(mode, ApprovalMode::Never | ApprovalMode::Both);
    let prompt = approval_question(layers).map(|_| RuleDecision::Prompt);
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

/// Looking is nobody's business: `always` is about everything else.
fn tool_request_may_have_effects(request: &ToolRequested) -> bool {
    request.may_act || matches!(request.kind, ToolKind::Shell | ToolKind::Write)
}
