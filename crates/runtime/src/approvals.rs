//! Asks a person and takes their answer. An answer is looked up inside the transaction that asks,
//! and recorded with the event, so that replay looks nothing up (law 3). Nothing here waits.

use checkrein_core::approval::{ApprovalHandling, approval_handling_of_request};
use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::evidence::{
    CheckRetryability, Evidence, Finding, FindingStatusAgainstBaseline, InconclusiveCause, Verdict,
    digest_tag_of_verdict_and_cause,
};
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::{ScopeId, SessionId, TaskId, UnixMillis};
use checkrein_core::input::{
    ApprovalStatusFact, Input, PersonAnswer, PersonAnswered, RuleDecision, ToolRequested,
};
use checkrein_core::middleware::middleware_question_for_person;
use checkrein_core::policy::{Policy, VerdictSubjectKind, VerifierSpec};
use checkrein_core::state::SessionState;
use checkrein_core::step::StateMachineStep;
use checkrein_core::tool_action::ToolAction;
use checkrein_core::transition::PARKED_DETAIL;
use checkrein_store::{
    AppendBatch, ApprovalAnswer, ApprovalStatus, ApprovalSubject, FinalMessage,
    SessionTransactionView, StoreError, StoredApprovalRequest,
};
use checkrein_verifiers::VerifierReport;

use crate::approval_preview::{self, UnredactedCall};
use crate::await_decision::new_runtime_event_delivery;
use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, EventDelivery};
use crate::runtime::Runtime;
use crate::{bound, clock, log_reader};

/// What a transaction needs to know of approvals besides the event itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ApprovalAnswerOrToolCall<'a> {
    /// Nothing.
    Nothing,
    /// A tool request.
    ToolCall(UnredactedToolCall<'a>),
    /// A person's answer to this question.
    PersonAnswer(&'a StoredApprovalRequest),
}

/// A tool request as it came, before any of it is bounded or redacted: two calls that look the same
/// afterwards may differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnredactedToolCall<'a> {
    /// Identifies the call that an answer is about.
    pub(crate) key: Digest,
    pub(crate) args: &'a str,
}

impl<'a> ApprovalAnswerOrToolCall<'a> {
    /// `args` are the arguments of a tool request.
    pub(crate) fn unredacted_call_from_delivery(
        delivery: &EventDelivery<'_>,
        args: &'a str,
    ) -> Self {
        match &delivery.input {
            Input::ToolRequested(request) => Self::ToolCall(UnredactedToolCall {
                // The folder is part of the key: the same command somewhere else is another
                // question.
                key: Digest::hash_parts([
                    &b"call in a folder"[..],
                    delivery.session.as_str().as_bytes(),
                    request.tool.as_bytes(),
                    args.as_bytes(),
                    tool_call_folder(delivery).unwrap_or_default().as_bytes(),
                ]),
                args,
            }),
            _ => Self::Nothing,
        }
    }
}

fn tool_call_folder(delivery: &EventDelivery<'_>) -> Option<String> {
    delivery
        .working_folder
        .map(|folder| folder.display().to_string())
}

/// The key of a call in older builds, where the folder was not part of it.
fn legacy_call_approval_key(session: &SessionId, tool: &str, args: &str) -> Digest {
    Digest::hash_parts([
        &b"call"[..],
        session.as_str().as_bytes(),
        tool.as_bytes(),
        args.as_bytes(),
    ])
}

/// The key of work that a person is to look at. Any session may ask about exactly this work.
fn work_approval_key(root: &str, spec: &VerifierSpec, subject: Digest) -> Digest {
    Digest::hash_parts([
        &b"work"[..],
        root.as_bytes(),
        spec.name.as_str().as_bytes(),
        &spec.verifier_definition_digest().as_bytes()[..],
        &subject.as_bytes()[..],
    ])
}

/// The key of a message that a person is to look at. Agents say the same about quite different
/// work, so the key includes the session and the tree that the message was about.
fn approval_key_of_agent_message(work: Digest, session: &SessionId, tree: Digest) -> Digest {
    Digest::hash_parts([
        &b"message"[..],
        &work.as_bytes()[..],
        session.as_str().as_bytes(),
        &tree.as_bytes()[..],
    ])
}

/// The tree that the stop being judged is about. An unreadable tree gets a digest that equals no
/// other.
fn pending_stop_tree_digest(state: &SessionState) -> Digest {
    let pending = state.pending_stop(&ScopeId::main_scope());
    match pending.map(|pending| (&pending.tree, pending.stop)) {
        Some((Ok(tree), _)) => tree.tree,
        Some((Err(_), stop)) => Digest::hash_bytes(&stop.0.to_le_bytes()),
        None => Digest::hash_bytes(&state.last.0.to_le_bytes()),
    }
}

/// An answer about a message holds in the task that asked and in the next one, whose prompt is how
/// the agent hears of it.
fn approval_answer_holds_in_task(asked_in: Option<TaskId>, now: Option<TaskId>) -> bool {
    match (asked_in, now) {
        (Some(asked_in), Some(now)) => now.0 == asked_in.0 || now.0 == asked_in.0 + 1,
        (asked_in, now) => asked_in == now,
    }
}

/// A question, from the store or about to be asked.
pub(crate) struct StoredOrNewApprovalQuestion {
    row: StoredApprovalRequest,
    is_new: bool,
    /// Whether the row was written by a build that kept less of it, and is completed here.
    is_completed: bool,
}

impl StoredOrNewApprovalQuestion {
    fn to_approval_fact(&self) -> ApprovalStatusFact {
        ApprovalStatusFact {
            id: self.row.id.clone(),
            until: self.row.until,
            answer: self.row.answer.as_ref().map(|said| said.answer.clone()),
        }
    }

    /// Puts the outcome into the batch. Returns a question that somebody has to be told of.
    pub(crate) fn add_approval_outcome_to_batch(
        self,
        made: &StateMachineStep,
        state: &SessionState,
        batch: &mut AppendBatch,
    ) -> Option<StoredApprovalRequest> {
        let mut row = self.row;
        match &made.decision {
            Some(Decision::Tool(ToolDecision::Ask { .. })) if self.is_new => {
                row.task = state.task.as_ref().map(|task| task.id);
                batch.approvals.push(row.clone());
                Some(row)
            }
            // The process that asked before may have ended before it notified anybody.
            Some(Decision::Tool(ToolDecision::Ask { .. })) => {
                if self.is_completed {
                    batch.approvals.push(row.clone());
                }
                Some(row).filter(|row| row.approval_needs_notification(state.now))
            }
            Some(Decision::Tool(decision))
                if decision_lets_call_run(decision) && was_decided_by_approval(made) =>
            {
                // An approval lets one call run. It is marked as used in the same transaction as
                // the decision.
                row.used_at = Some(state.now);
                batch.approvals.push(row);
                None
            }
            _ => None,
        }
    }
}

fn decision_lets_call_run(decision: &ToolDecision) -> bool {
    matches!(decision, ToolDecision::Allow | ToolDecision::Nudge { .. })
}

fn was_decided_by_approval(made: &StateMachineStep) -> bool {
    use checkrein_core::event::Event;
    made.events.iter().any(|event| match event {
        Event::DecisionMade(made) => made
            .why
            .iter()
            .any(|why| matches!(why, DecisionFactor::Approved { .. })),
        _ => false,
    })
}

/// A new question, without what the session itself adds to it.
struct NewApprovalRequest {
    key: Digest,
    nth: u32,
    about: ApprovalSubject,
    why: String,
}

impl Runtime {
    /// Stamps the status of its approval into a request, if a person is to be asked elsewhere than
    /// by the agent.
    pub(crate) fn stamp_approval_status_into_request(
        &self,
        tail: &dyn SessionTransactionView,
        policy: &Policy,
        state: &SessionState,
        delivery: &EventDelivery<'_>,
        request: &mut ToolRequested,
        asked: UnredactedToolCall<'_>,
    ) -> Result<Option<StoredOrNewApprovalQuestion>, StoreError> {
        // An approval that the agent claims by itself counts for nothing.
        request.facts.approval = None;
        if let Some(asks) = middleware_question_for_person(&delivery.layers)
            && request.facts.rule < Some(RuleDecision::Prompt)
        {
            request.facts.reason = Some(asks);
        }
        if approval_handling_of_request(policy.approval, request, &delivery.layers)
            != ApprovalHandling::Park
        {
            return Ok(None);
        }
        let now = clock::now_millis();
        let holds = |row: &StoredApprovalRequest| {
            let stands = row.approval_status_at(now);
            matches!(
                stands,
                ApprovalStatus::Asked | ApprovalStatus::Approved | ApprovalStatus::Denied
            )
        };
        // The root is where calls usually run, so it is not shown.
        let folder = tool_call_folder(delivery)
            .filter(|folder| *folder != self.place.workspace_root_path_text());
        // Looked up under the write lock of this session: two entries that deliver the call find
        // one row.
        let mut known = tail.newest_approval_request_for_key(&asked.key)?;
        // Keys of older builds do not name the folder. They are only taken for a call in the root.
        if known.is_none() && folder.is_none() {
            let earlier = legacy_call_approval_key(&delivery.session, &request.tool, asked.args);
            known = tail
                .newest_approval_request_for_key(&earlier)?
                .filter(holds);
        }
        let about = || {
            let call = UnredactedCall {
                args: asked.args,
                script: delivery
                    .facts
                    .action_of_tool_call()
                    .and_then(ToolAction::shell_script_of_call),
                folder: folder.as_deref(),
            };
            let (text, beside) =
                approval_preview::approval_text_and_details(&self.redactor, &request.facts, call);
            ApprovalSubject::Call {
                tool: request.tool.clone(),
                text,
                details: Some(Box::new(beside)),
            }
        };
        let question = match known {
            // An answer of any kind, or an open question, is reused. A row without details is
            // completed as long as a person can still look at it.
            Some(mut row) if holds(&row) => {
                let is_less = matches!(row.about, ApprovalSubject::Call { details: None, .. });
                let is_completed = is_less && row.approval_status_at(now) == ApprovalStatus::Asked;
                if is_completed {
                    row.about = about();
                }
                StoredOrNewApprovalQuestion {
                    row,
                    is_new: false,
                    is_completed,
                }
            }
            // Nobody asked yet, or the answer is used up or too old: asked under the next number.
            known => {
                let new = NewApprovalRequest {
                    key: asked.key,
                    nth: known.map_or(0, |row| row.nth + 1),
                    about: about(),
                    why: request.facts.reason.clone().unwrap_or_default(),
                };
                StoredOrNewApprovalQuestion {
                    row: self.new_approval_request(&delivery.session, policy, state, new),
                    is_new: true,
                    is_completed: false,
                }
            }
        };
        // Waiting would be in vain for such a call, so the agent is told why.
        if let Some(unseen) = question.row.unapprovable_reason() {
            let reason = request.facts.reason.get_or_insert_default();
            reason.push_str(&format!(
                "\nNobody can approve it as it is, since not all of it can be shown to them: {unseen}. Make smaller calls, without secrets in them."
            ));
        }
        request.facts.approval = Some(Box::new(question.to_approval_fact()));
        Ok(Some(question))
    }

    fn new_approval_request(
        &self,
        session: &SessionId,
        policy: &Policy,
        state: &SessionState,
        new: NewApprovalRequest,
    ) -> StoredApprovalRequest {
        let now = clock::now_millis();
        let NewApprovalRequest {
            key,
            nth,
            about,
            why,
        } = new;
        // Short, because a person types it.
        let mut id = Digest::hash_parts([&key.as_bytes()[..], &nth.to_le_bytes()]).to_hex();
        id.truncate(8);
        StoredApprovalRequest {
            id: format!("ap-{id}"),
            key,
            nth,
            session: session.clone(),
            task: state.task.as_ref().map(|task| task.id),
            agent: state.agent.clone().unwrap_or_else(|| self.agent.clone()),
            root: self.place.workspace_root_path_text(),
            about,
            why,
            at: now,
            until: UnixMillis(now.0.saturating_add(policy.approvals.expires_ms)),
            answer: None,
            used_at: None,
            expiry_reported_at: None,
            notifies: policy.approvals.notify.is_some(),
            notified_at: None,
            notification_error: None,
        }
    }

    /// Returns a person's answer about this work. Without a session it is only looked up; otherwise
    /// a new question is parked. An expiry is reported once; after that the question is asked anew.
    pub(crate) fn find_or_request_work_approval(
        &self,
        session: Option<&SessionId>,
        policy: &Policy,
        spec: &VerifierSpec,
        subject: Digest,
        message: Option<&str>,
    ) -> Result<WorkApprovalLookup, RuntimeError> {
        let work = work_approval_key(&self.place.workspace_root_path_text(), spec, subject);
        let Some(session) = session else {
            let rows = self.store.list_approvals()?.into_iter();
            let newest = rows.filter(|row| row.key == work).max_by_key(|row| row.nth);
            let now = clock::now_millis();
            return Ok(newest.map_or_else(WorkApprovalLookup::default, |row| {
                WorkApprovalLookup::from_approval_row(row, now)
            }));
        };
        let mut found = Ok(WorkApprovalLookup::default());
        self.store.transact_on_session(session, &mut |tail| {
            let state = match log_reader::load_session_state(session, tail) {
                Ok(loaded) => loaded.state,
                Err(error) => {
                    found = Err(error);
                    return Ok(None);
                }
            };
            // A question about files serves every session that has the same ones. One about a
            // message belongs to this session and its tree.
            let tree = (spec.subject == VerdictSubjectKind::Message)
                .then(|| pending_stop_tree_digest(&state));
            let key = tree.map_or(work, |tree| {
                approval_key_of_agent_message(work, session, tree)
            });
            let known = tail.newest_approval_request_for_key(&key)?;
            let nth = known.as_ref().map_or(0, |row| row.nth + 1);
            let task = state.task.as_ref().map(|task| task.id);
            if let Some((word, changed)) =
                known.and_then(|row| reusable_work_approval(row, task, tree.is_some()))
            {
                found = Ok(word);
                return Ok(changed.map(batch_storing_approval_row));
            }
            // A new question: its text and its time come from the verifier, what it lacks from the
            // policy.
            let human = HumanVerifierDefinition::parse_human_definition(spec);
            let message = tree.map(|tree| {
                let one = approval_preview::redacted_display_text(
                    &self.redactor,
                    message.unwrap_or_default(),
                );
                Box::new(FinalMessage {
                    text: one.text,
                    tree,
                    hidden: one.hidden,
                    hidden_reason: one.unseen,
                })
            });
            let new = NewApprovalRequest {
                key,
                nth,
                about: ApprovalSubject::Work {
                    verifier: spec.name.as_str().to_owned(),
                    subject,
                    message,
                },
                why: human.ask,
            };
            let mut row = self.new_approval_request(session, policy, &state, new);
            if let Some(expires_ms) = human.expires_ms {
                row.until = UnixMillis(row.at.0.saturating_add(expires_ms));
            }
            found = Ok(WorkApprovalLookup {
                to_tell: true,
                ..WorkApprovalLookup::from_approval_row(row.clone(), row.at)
            });
            Ok(Some(batch_storing_approval_row(row)))
        })?;
        found
    }

    /// Returns all questions that were put to a person, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list_approvals(&self) -> Result<Vec<StoredApprovalRequest>, RuntimeError> {
        Ok(self.store.list_approvals()?)
    }

    /// Records a person's answer to a question, in the log of the session that asked and in the
    /// question's row. The answer holds as long as the question was open for.
    ///
    /// # Errors
    /// Returns [`RuntimeError::ApprovalClosed`] if there is nothing left to answer, and
    /// [`RuntimeError::ApprovalNotShown`] for a yes to what cannot be shown in full.
    pub fn answer_approval(
        &self,
        question: &StoredApprovalRequest,
        mut answer: PersonAnswer,
        patience: Deadline<'_>,
    ) -> Result<StoredApprovalRequest, RuntimeError> {
        // Only a yes needs the whole text: a no does no harm to what was not seen.
        if let Some(unseen) = question.unapprovable_reason().filter(|_| answer.approved) {
            return Err(RuntimeError::ApprovalNotShown {
                approval: question.id.clone(),
                why: unseen.to_owned(),
            });
        }
        // The answer is kept in more places than the event.
        bound::redact_and_limit_person_answer(&self.redactor, &mut answer);
        let now = clock::now_millis();
        let span = question.until.millis_since(question.at);
        let answered = StoredApprovalRequest {
            until: UnixMillis(now.0.saturating_add(span)),
            answer: Some(ApprovalAnswer {
                at: now,
                answer: answer.clone(),
            }),
            ..question.clone()
        };
        let input = Input::PersonAnswered(PersonAnswered {
            approval: answered.id.clone(),
            what: match &answered.about {
                ApprovalSubject::Call { text, .. } => text.clone(),
                ApprovalSubject::Work {
                    verifier, subject, ..
                } => format!("{verifier} on {}", subject.to_hex()),
            },
            ends: Some(match &answered.about {
                ApprovalSubject::Call { .. } => PARKED_DETAIL.to_owned(),
                ApprovalSubject::Work { verifier, .. } => verifier.clone(),
            }),
            until: answered.until,
            answer,
        });
        let key = format!("answer:{}:{}", question.key.to_hex(), question.nth);
        let delivery = new_runtime_event_delivery(&question.session, Some(key), input);
        // Within the transaction the question is read again: an answer that comes second is refused
        // there.
        self.transact_event_with_approvals(
            None,
            ApprovalAnswerOrToolCall::PersonAnswer(&answered),
            delivery,
            patience,
        )?;
        Ok(answered)
    }
}

/// Returns a known question about work, with its row if that changes; `None` if it has to be asked
/// anew.
fn reusable_work_approval(
    mut row: StoredApprovalRequest,
    task: Option<TaskId>,
    of_message: bool,
) -> Option<(WorkApprovalLookup, Option<StoredApprovalRequest>)> {
    let now = clock::now_millis();
    match row.approval_status_at(now) {
        ApprovalStatus::Expired => {
            // An expired answer, and an expiry that was reported before, leave room for a new
            // question.
            let is_known = row.answer.is_some() || row.expiry_reported_at.or(row.used_at).is_some();
            if is_known {
                return None;
            }
            row.expiry_reported_at = Some(now);
            Some((
                WorkApprovalLookup::from_approval_row(row.clone(), now),
                Some(row),
            ))
        }
        ApprovalStatus::Used => None,
        ApprovalStatus::Asked => {
            let word = WorkApprovalLookup {
                to_tell: row.approval_needs_notification(now),
                ..WorkApprovalLookup::from_approval_row(row.clone(), now)
            };
            // An answer given now is for the task that asks now.
            let moves_on = of_message && row.task != task;
            row.task = task;
            Some((word, moves_on.then_some(row)))
        }
        ApprovalStatus::Approved | ApprovalStatus::Denied => {
            let holds = !of_message || approval_answer_holds_in_task(row.task, task);
            holds.then(|| (WorkApprovalLookup::from_approval_row(row, now), None))
        }
    }
}

/// Returns the question as it is now, if it can still be answered.
pub(crate) fn reread_approval_if_still_open(
    tail: &dyn SessionTransactionView,
    question: &StoredApprovalRequest,
) -> Result<StoredApprovalRequest, RuntimeError> {
    let now = clock::now_millis();
    match tail.newest_approval_request_for_key(&question.key)? {
        Some(row)
            if row.nth == question.nth && row.approval_status_at(now) == ApprovalStatus::Asked =>
        {
            Ok(row)
        }
        known => Err(RuntimeError::ApprovalClosed {
            approval: question.id.clone(),
            stands: known.map_or("gone", |row| row.approval_status_at(now).as_str()),
        }),
    }
}

fn batch_storing_approval_row(row: StoredApprovalRequest) -> AppendBatch {
    AppendBatch {
        approvals: vec![row],
        durable: true,
        ..AppendBatch::default()
    }
}

/// The definition of a verifier that asks a person.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct HumanVerifierDefinition {
    /// What is asked.
    pub(crate) ask: String,
    /// How long it waits for an answer, if the verifier sets that itself.
    pub(crate) expires_ms: Option<u64>,
}

impl HumanVerifierDefinition {
    fn parse_human_definition(spec: &VerifierSpec) -> Self {
        // Definitions are compiled by us, so this does not fail.
        serde_json::from_str(&spec.definition).unwrap_or_else(|_| Self {
            ask: spec.name.as_str().to_owned(),
            expires_ms: None,
        })
    }
}

/// The state of a question about work, when it was looked up.
#[derive(Debug, Default)]
pub(crate) struct WorkApprovalLookup {
    row: Option<(StoredApprovalRequest, ApprovalStatus)>,
    /// Whether a person has to be notified that it waits.
    to_tell: bool,
}

impl WorkApprovalLookup {
    fn from_approval_row(row: StoredApprovalRequest, now: UnixMillis) -> Self {
        let stands = row.approval_status_at(now);
        Self {
            row: Some((row, stands)),
            to_tell: false,
        }
    }

    /// The request that a person has to be notified of.
    pub(crate) fn into_approval_to_notify(self) -> Option<StoredApprovalRequest> {
        self.row.filter(|_| self.to_tell).map(|(row, _)| row)
    }
}

/// Turns a person's answer into a report.
pub(crate) fn report_from_approval_answer(word: &WorkApprovalLookup) -> VerifierReport {
    let unanswered = |why: String| {
        VerifierReport::inconclusive_report(
            InconclusiveCause::Unanswered,
            CheckRetryability::Yes,
            why,
        )
    };
    let Some((row, stands)) = &word.row else {
        return unanswered("no person was asked about this yet".to_owned());
    };
    let id = &row.id;
    let (verdict, said) = match (*stands, &row.answer) {
        (ApprovalStatus::Approved | ApprovalStatus::Used, Some(said)) => (Verdict::Pass, said),
        (ApprovalStatus::Denied, Some(said)) => (Verdict::Fail, said),
        (ApprovalStatus::Asked, _) => {
            let how = match row.unapprovable_reason() {
                None => format!("checkrein approve {id}, or: checkrein deny {id}"),
                Some(unseen) => {
                    format!("checkrein deny {id}; nobody can say yes to it: {unseen}")
                }
            };
            return unanswered(format!("{}\nto answer: {how}", row.why));
        }
        _ => {
            let why = format!("nobody answered {id} in time");
            return VerifierReport::inconclusive_report(
                InconclusiveCause::Expired,
                CheckRetryability::No,
                why,
            );
        }
    };
    let word = if verdict == Verdict::Pass {
        "approved"
    } else {
        "denied"
    };
    let why = said.answer.reason.as_deref().map(|why| format!(": {why}"));
    let text = format!("{word} by {}{}", said.answer.by, why.unwrap_or_default());
    let finding = Finding {
        id: word.to_owned(),
        file: None,
        line: None,
        rule: None,
        message: said
            .answer
            .reason
            .clone()
            .unwrap_or_else(|| "a person said no".to_owned()),
        state: FindingStatusAgainstBaseline::New,
    };
    let findings: Vec<Finding> = (verdict == Verdict::Fail)
        .then_some(finding)
        .into_iter()
        .collect();
    VerifierReport {
        verdict,
        cause: None,
        findings_total: findings.len() as u32,
        findings,
        // Only the base: verdict, cause and findings are set above.
        ..VerifierReport::inconclusive_report(
            InconclusiveCause::Unanswered,
            CheckRetryability::Yes,
            text,
        )
    }
}

/// The key of evidence from a person's answer; each answer has its own.
pub(crate) fn approval_evidence_key(
    key: Digest,
    word: &WorkApprovalLookup,
    evidence: &Evidence,
) -> Digest {
    let id = word.row.as_ref().map_or("", |(row, _)| row.id.as_str());
    let verdict = digest_tag_of_verdict_and_cause(evidence.verdict, evidence.cause);
    Digest::hash_parts([&key.as_bytes()[..], id.as_bytes(), verdict.as_bytes()])
}
