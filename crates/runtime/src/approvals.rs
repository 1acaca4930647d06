//! What a person is asked, and what they said. It is looked up inside the transaction that asks,
//! and recorded with what asks, so that replay looks nothing up (law 3). Nothing waits here.

use checkrein_core::approval::{ApprovalHandling, approval_handling};
use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::evidence::{
    Evidence, Finding, FindingBaselineState, InconclusiveCause, Retryability, Verdict,
    verdict_text_for_digest,
};
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::{ScopeId, SessionId, TaskId, UnixMillis};
use checkrein_core::input::{
    ApprovalStatusFact, Input, PersonAnswer, PersonAnswered, RuleDecision, ToolRequested,
};
use checkrein_core::layers::approval_question;
use checkrein_core::policy::{Policy, VerdictSubjectKind, VerifierSpec};
use checkrein_core::state::SessionState;
use checkrein_core::step::StateMachineStep;
use checkrein_core::tool_action::ToolAction;
use checkrein_core::transition::PARKED_DETAIL;
use checkrein_store::{
    AppendBatch, ApprovalAnswer, ApprovalStatus, ApprovalSubject, FinalMessage, SessionView,
    StoreError, StoredApprovalRequest,
};
use checkrein_verifiers::VerifierReport;

use crate::delivery::{Delivery, Patience};
use crate::driver::Runtime;
use crate::error::RuntimeError;
use crate::settle::own;
use crate::shown::{self, Call};
use crate::{clock, fit, load};

/// What a transaction needs to know of approvals beside the news itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beside<'a> {
    /// Nothing.
    Nothing,
    /// A tool request.
    Call(Asked<'a>),
    /// A person's answer to this question.
    Answer(&'a StoredApprovalRequest),
}

/// A tool request as it came, before anything of it is bounded or hidden: two calls that read
/// the same are not the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// What an answer is about.
    pub(crate) key: Digest,
    pub(crate) args: &'a str,
}

impl<'a> Beside<'a> {
    /// `args` are the arguments of a tool request.
    pub(crate) fn of(delivery: &Delivery<'_>, args: &'a str) -> Self {
        match &delivery.input {
            Input::ToolRequested(request) => Self::Call(Asked {
                key: Digest::hash_parts([
                    &b"call in a folder"[..],
                    delivery.session.as_str().as_bytes(),
                    request.tool.as_bytes(),
                    args.as_bytes(),
                    folder_of(delivery).unwrap_or_default().as_bytes(),
                ]),
                args,
            }),
            _ => Self::Nothing,
        }
    }
}

fn folder_of(delivery: &Delivery<'_>) -> Option<String> {
    delivery.works_in.map(|folder| folder.display().to_string())
}

/// The key of a call before the folder was part of it.
fn earlier_key(session: &SessionId, tool: &str, args: &str) -> Digest {
    Digest::hash_parts([
        &b"call"[..],
        session.as_str().as_bytes(),
        tool.as_bytes(),
        args.as_bytes(),
    ])
}

/// The key of work that a person is to look at: any session may ask, about exactly this.
fn key_of_work(root: &str, spec: &VerifierSpec, subject: Digest) -> Digest {
    Digest::hash_parts([
        &b"work"[..],
        root.as_bytes(),
        spec.name.as_str().as_bytes(),
        &spec.definition_digest().as_bytes()[..],
        &subject.as_bytes()[..],
    ])
}

/// The key of a message that a person is to look at. Agents say the same of quite different
/// work, so it is about that of one session, and about the tree that it was said about.
fn key_of_message(work: Digest, session: &SessionId, tree: Digest) -> Digest {
    Digest::hash_parts([
        &b"message"[..],
        &work.as_bytes()[..],
        session.as_str().as_bytes(),
        &tree.as_bytes()[..],
    ])
}

/// The tree that the stop being judged is about. One that nobody can tell is like no other.
fn tree_of(state: &SessionState) -> Digest {
    let pending = state.pending_stop(&ScopeId::main_scope());
    match pending.map(|pending| (&pending.tree, pending.stop)) {
        Some((Ok(tree), _)) => tree.tree,
        Some((Err(_), stop)) => Digest::hash_bytes(&stop.0.to_le_bytes()),
        None => Digest::hash_bytes(&state.last.0.to_le_bytes()),
    }
}

/// What was said about a message holds in the task that asked and in the next one, whose prompt
/// is how the agent hears of it.
fn is_heard(asked_in: Option<TaskId>, now: Option<TaskId>) -> bool {
    match (asked_in, now) {
        (Some(asked_in), Some(now)) => now.0 == asked_in.0 || now.0 == asked_in.0 + 1,
        (asked_in, now) => asked_in == now,
    }
}

/// A question as the store has it, or as it would be asked.
pub(crate) struct Question {
    row: StoredApprovalRequest,
    is_new: bool,
    /// It is known, but was kept by a build that kept less of it.
    is_completed: bool,
}

impl Question {
    fn fact(&self) -> ApprovalStatusFact {
        ApprovalStatusFact {
            id: self.row.id.clone(),
            until: self.row.until,
            answer: self.row.answer.as_ref().map(|said| said.answer.clone()),
        }
    }

    /// Puts into the batch what came of it; a question that somebody has to be told of is given
    /// back.
    pub(crate) fn settle(
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
            // Whoever asked before was ended before anybody was told.
            Some(Decision::Tool(ToolDecision::Ask { .. })) => {
                if self.is_completed {
                    batch.approvals.push(row.clone());
                }
                Some(row).filter(|row| row.approval_needs_notification(state.now))
            }
            Some(Decision::Tool(decision)) if may_run(decision) && is_approved(made) => {
                row.used_at = Some(state.now);
                batch.approvals.push(row);
                None
            }
            _ => None,
        }
    }
}

fn may_run(decision: &ToolDecision) -> bool {
    matches!(decision, ToolDecision::Allow | ToolDecision::Nudge { .. })
}

fn is_approved(made: &StateMachineStep) -> bool {
    use checkrein_core::event::Event;
    made.events.iter().any(|event| match event {
        Event::DecisionMade(made) => made
            .why
            .iter()
            .any(|why| matches!(why, DecisionFactor::Approved { .. })),
        _ => false,
    })
}

/// What is to be asked, beside what the session says of itself.
struct New {
    key: Digest,
    nth: u32,
    about: ApprovalSubject,
    why: String,
}

impl Runtime {
    /// Stamps into a request where it stands with a person, if one is to be asked elsewhere
    /// than by the agent.
    pub(crate) fn look_up(
        &self,
        tail: &dyn SessionView,
        policy: &Policy,
        state: &SessionState,
        delivery: &Delivery<'_>,
        request: &mut ToolRequested,
        asked: Asked<'_>,
    ) -> Result<Option<Question>, StoreError> {
        // What an agent brings along says nothing.
        request.facts.approval = None;
        if let Some(asks) = approval_question(&delivery.layers)
            && request.facts.rule < Some(RuleDecision::Prompt)
        {
            request.facts.reason = Some(asks);
        }
        if approval_handling(policy.approval, request, &delivery.layers) != ApprovalHandling::Park {
            return Ok(None);
        }
        let now = clock::now();
        let holds = |row: &StoredApprovalRequest| {
            let stands = row.approval_status_at(now);
            matches!(
                stands,
                ApprovalStatus::Asked | ApprovalStatus::Approved | ApprovalStatus::Denied
            )
        };
        let folder = folder_of(delivery).filter(|folder| *folder != self.place.root_text());
        let mut known = tail.newest_approval(&asked.key)?;
        if known.is_none() && folder.is_none() {
            let earlier = earlier_key(&delivery.session, &request.tool, asked.args);
            known = tail.newest_approval(&earlier)?.filter(holds);
        }
        let about = || {
            let call = Call {
                args: asked.args,
                script: delivery
                    .facts
                    .action()
                    .and_then(ToolAction::shell_script_of_call),
                folder: folder.as_deref(),
            };
            let (text, beside) = shown::of_call(&self.redactor, &request.facts, call);
            ApprovalSubject::Call {
                tool: request.tool.clone(),
                text,
                details: Some(Box::new(beside)),
            }
        };
        let question = match known {
            Some(mut row) if holds(&row) => {
                let is_less = matches!(row.about, ApprovalSubject::Call { details: None, .. });
                let is_completed = is_less && row.approval_status_at(now) == ApprovalStatus::Asked;
                if is_completed {
                    row.about = about();
                }
                Question {
                    row,
                    is_new: false,
                    is_completed,
                }
            }
            known => {
                let new = New {
                    key: asked.key,
                    nth: known.map_or(0, |row| row.nth + 1),
                    about: about(),
                    why: request.facts.reason.clone().unwrap_or_default(),
                };
                Question {
                    row: self.question(&delivery.session, policy, state, new),
                    is_new: true,
                    is_completed: false,
                }
            }
        };
        if let Some(unseen) = question.row.unapprovable_reason() {
            let reason = request.facts.reason.get_or_insert_default();
            reason.push_str(&format!(
                "\nNobody can approve it as it is, since not all of it can be shown to them: {unseen}. Make smaller calls, without secrets in them."
            ));
        }
        request.facts.approval = Some(Box::new(question.fact()));
        Ok(Some(question))
    }

    fn question(
        &self,
        session: &SessionId,
        policy: &Policy,
        state: &SessionState,
        new: New,
    ) -> StoredApprovalRequest {
        let now = clock::now();
        let New {
            key,
            nth,
            about,
            why,
        } = new;
        let mut id = Digest::hash_parts([&key.as_bytes()[..], &nth.to_le_bytes()]).to_hex();
        id.truncate(8);
        StoredApprovalRequest {
            id: format!("ap-{id}"),
            key,
            nth,
            session: session.clone(),
            task: state.task.as_ref().map(|task| task.id),
            agent: state.agent.clone().unwrap_or_else(|| self.agent.clone()),
            root: self.place.root_text(),
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

    /// A person's word about this work: as it stands if nobody asks for it, else parked if it
    /// is new. That it ran out unanswered is told once; then it is asked anew.
    pub(crate) fn word_about(
        &self,
        session: Option<&SessionId>,
        policy: &Policy,
        spec: &VerifierSpec,
        subject: Digest,
        message: Option<&str>,
    ) -> Result<Word, RuntimeError> {
        let work = key_of_work(&self.place.root_text(), spec, subject);
        let Some(session) = session else {
            let rows = self.store.list_approvals()?.into_iter();
            let newest = rows.filter(|row| row.key == work).max_by_key(|row| row.nth);
            let now = clock::now();
            return Ok(newest.map_or_else(Word::default, |row| Word::of(row, now)));
        };
        let mut found = Ok(Word::default());
        self.store.transact_on_session(session, &mut |tail| {
            let state = match load::state(session, tail) {
                Ok(loaded) => loaded.state,
                Err(error) => {
                    found = Err(error);
                    return Ok(None);
                }
            };
            let tree = (spec.subject == VerdictSubjectKind::Message).then(|| tree_of(&state));
            let key = tree.map_or(work, |tree| key_of_message(work, session, tree));
            let known = tail.newest_approval(&key)?;
            let nth = known.as_ref().map_or(0, |row| row.nth + 1);
            let task = state.task.as_ref().map(|task| task.id);
            if let Some((word, changed)) =
                known.and_then(|row| known_word(row, task, tree.is_some()))
            {
                found = Ok(word);
                return Ok(changed.map(put));
            }
            let human = Human::of(spec);
            let message = tree.map(|tree| {
                let one = shown::shown(&self.redactor, message.unwrap_or_default());
                Box::new(FinalMessage {
                    text: one.text,
                    tree,
                    hidden: one.hidden,
                    hidden_reason: one.unseen,
                })
            });
            let new = New {
                key,
                nth,
                about: ApprovalSubject::Work {
                    verifier: spec.name.as_str().to_owned(),
                    subject,
                    message,
                },
                why: human.ask,
            };
            let mut row = self.question(session, policy, &state, new);
            if let Some(expires_ms) = human.expires_ms {
                row.until = UnixMillis(row.at.0.saturating_add(expires_ms));
            }
            found = Ok(Word {
                to_tell: true,
                ..Word::of(row.clone(), row.at)
            });
            Ok(Some(put(row)))
        })?;
        found
    }

    /// Everything that was put to a person, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn approvals(&self) -> Result<Vec<StoredApprovalRequest>, RuntimeError> {
        Ok(self.store.list_approvals()?)
    }

    /// Records what a person says to a question: in the log of the session that asked, and
    /// beside it. It holds as long again as the question was open for.
    ///
    /// # Errors
    /// [`RuntimeError::Answered`] if there is nothing left to answer, [`RuntimeError::Unseen`]
    /// for a yes to what nobody can see all of.
    pub fn answer(
        &self,
        question: &StoredApprovalRequest,
        mut answer: PersonAnswer,
        patience: Patience<'_>,
    ) -> Result<StoredApprovalRequest, RuntimeError> {
        if let Some(unseen) = question.unapprovable_reason().filter(|_| answer.approved) {
            return Err(RuntimeError::Unseen {
                approval: question.id.clone(),
                why: unseen.to_owned(),
            });
        }
        // It is kept in more places than the event.
        fit::answer(&self.redactor, &mut answer);
        let now = clock::now();
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
        let delivery = own(&question.session, Some(key), input);
        self.handle_beside(None, Beside::Answer(&answered), delivery, patience)?;
        Ok(answered)
    }
}

/// A known question about work, and its row where that changes. `None`: it is asked anew.
fn known_word(
    mut row: StoredApprovalRequest,
    task: Option<TaskId>,
    of_message: bool,
) -> Option<(Word, Option<StoredApprovalRequest>)> {
    let now = clock::now();
    match row.approval_status_at(now) {
        ApprovalStatus::Expired => {
            let is_known = row.answer.is_some() || row.expiry_reported_at.or(row.used_at).is_some();
            if is_known {
                return None;
            }
            row.expiry_reported_at = Some(now);
            Some((Word::of(row.clone(), now), Some(row)))
        }
        ApprovalStatus::Used => None,
        ApprovalStatus::Asked => {
            let word = Word {
                to_tell: row.approval_needs_notification(now),
                ..Word::of(row.clone(), now)
            };
            // Whoever answers now answers the task that asks now.
            let moves_on = of_message && row.task != task;
            row.task = task;
            Some((word, moves_on.then_some(row)))
        }
        ApprovalStatus::Approved | ApprovalStatus::Denied => {
            let holds = !of_message || is_heard(row.task, task);
            holds.then(|| (Word::of(row, now), None))
        }
    }
}

/// The question as it stands now, if it can still be answered.
pub(crate) fn check_open(
    tail: &dyn SessionView,
    question: &StoredApprovalRequest,
) -> Result<StoredApprovalRequest, RuntimeError> {
    let now = clock::now();
    match tail.newest_approval(&question.key)? {
        Some(row)
            if row.nth == question.nth && row.approval_status_at(now) == ApprovalStatus::Asked =>
        {
            Ok(row)
        }
        known => Err(RuntimeError::Answered {
            approval: question.id.clone(),
            stands: known.map_or("gone", |row| row.approval_status_at(now).as_str()),
        }),
    }
}

fn put(row: StoredApprovalRequest) -> AppendBatch {
    AppendBatch {
        approvals: vec![row],
        durable: true,
        ..AppendBatch::default()
    }
}

/// The definition of a verifier that asks a person.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Human {
    /// What is asked.
    pub(crate) ask: String,
    /// How long it waits, if it says so itself.
    pub(crate) expires_ms: Option<u64>,
}

impl Human {
    fn of(spec: &VerifierSpec) -> Self {
        // The config was compiled by us.
        serde_json::from_str(&spec.definition).unwrap_or_else(|_| Self {
            ask: spec.name.as_str().to_owned(),
            expires_ms: None,
        })
    }
}

/// A person's word about some work, as it stood when it was looked up.
#[derive(Debug, Default)]
pub(crate) struct Word {
    row: Option<(StoredApprovalRequest, ApprovalStatus)>,
    /// Somebody has to be told that it waits.
    to_tell: bool,
}

impl Word {
    fn of(row: StoredApprovalRequest, now: UnixMillis) -> Self {
        let stands = row.approval_status_at(now);
        Self {
            row: Some((row, stands)),
            to_tell: false,
        }
    }

    /// What a person has to be told of.
    pub(crate) fn parked(self) -> Option<StoredApprovalRequest> {
        self.row.filter(|_| self.to_tell).map(|(row, _)| row)
    }
}

/// What a person's word comes to as a report.
pub(crate) fn report(word: &Word) -> VerifierReport {
    let unanswered = |why: String| {
        VerifierReport::inconclusive_report(InconclusiveCause::Unanswered, Retryability::Yes, why)
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
                Retryability::No,
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
        state: FindingBaselineState::New,
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
        ..VerifierReport::inconclusive_report(
            InconclusiveCause::Unanswered,
            Retryability::Yes,
            text,
        )
    }
}

/// The key of evidence of a person's word: each answer is kept for itself.
pub(crate) fn evidence_key(key: Digest, word: &Word, evidence: &Evidence) -> Digest {
    let id = word.row.as_ref().map_or("", |(row, _)| row.id.as_str());
    let verdict = verdict_text_for_digest(evidence.verdict, evidence.cause);
    Digest::hash_parts([&key.as_bytes()[..], id.as_bytes(), verdict.as_bytes()])
}
