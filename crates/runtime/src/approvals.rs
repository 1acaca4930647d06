//! What a person is asked, and what they said. It is looked up inside the transaction that asks,
//! and recorded with what asks, so that replay looks nothing up (law 3). Nothing waits here.

use checkrein_core::approval::{Way, way};
use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::evidence::{Cause, Evidence, Finding, FindingState, Retryable, Verdict};
use checkrein_core::explain::Because;
use checkrein_core::ids::{AgentName, Millis, SessionId};
use checkrein_core::input::{ApprovalFact, Input, PersonAnswer, PersonAnswered, ToolRequested};
use checkrein_core::policy::{Policy, VerifierSpec};
use checkrein_core::state::State;
use checkrein_core::step::Step;
use checkrein_store::{About, Answered, Approval, Batch, Stands, Store, StoreError, Tail};
use checkrein_verifiers::Report;

use crate::delivery::{Delivery, Patience};
use crate::driver::Runtime;
use crate::error::RuntimeError;
use crate::settle::own;
use crate::{clock, fit, load};

/// Bytes that are kept of what is asked about, for reading.
const SHOWN: usize = 4 * 1024;

/// What a transaction needs to know of approvals beside the news itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beside<'a> {
    /// Nothing.
    Nothing,
    /// A tool request, of which this is the key.
    Call(Digest),
    /// A person's answer to this question.
    Answer(&'a Approval),
}

impl Beside<'_> {
    /// Of news as it came, before anything of it is bounded or hidden: two calls that read the
    /// same are not the same.
    pub(crate) fn of(session: &SessionId, input: &Input) -> Self {
        match input {
            Input::ToolRequested(request) => Self::Call(Digest::of_parts([
                &b"call"[..],
                session.as_str().as_bytes(),
                request.tool.as_bytes(),
                request.args.as_bytes(),
            ])),
            _ => Self::Nothing,
        }
    }
}

/// The key of work that a person is to look at: any session may ask, about exactly this.
fn key_of_work(root: &str, spec: &VerifierSpec, subject: Digest) -> Digest {
    Digest::of_parts([
        &b"work"[..],
        root.as_bytes(),
        spec.name.as_str().as_bytes(),
        &spec.definition_digest().as_bytes()[..],
        &subject.as_bytes()[..],
    ])
}

/// A question as the store has it, or as it would be asked.
pub(crate) struct Question {
    row: Approval,
    is_new: bool,
}

impl Question {
    fn fact(&self) -> ApprovalFact {
        ApprovalFact {
            id: self.row.id.clone(),
            until: self.row.until,
            answer: self.row.answer.as_ref().map(|said| said.answer.clone()),
        }
    }

    /// Puts into the batch what came of it; a question that is parked is given back.
    pub(crate) fn settle(self, made: &Step, state: &State, batch: &mut Batch) -> Option<Approval> {
        let mut row = self.row;
        row.task = state.task.as_ref().map(|task| task.id);
        match &made.decision {
            Some(Decision::Tool(ToolDecision::Ask { .. })) if self.is_new => {
                batch.approvals.push(row.clone());
                Some(row)
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

fn is_approved(made: &Step) -> bool {
    use checkrein_core::event::Event;
    made.events.iter().any(|event| match event {
        Event::DecisionMade(made) => made
            .why
            .iter()
            .any(|why| matches!(why, Because::Approved { .. })),
        _ => false,
    })
}

impl Runtime {
    /// Stamps into a request where it stands with a person, if one is to be asked elsewhere
    /// than by the agent.
    pub(crate) fn look_up(
        &self,
        tail: &dyn Tail,
        policy: &Policy,
        state: &State,
        delivery: &Delivery<'_>,
        request: &mut ToolRequested,
        key: Digest,
    ) -> Result<Option<Question>, StoreError> {
        // What an agent brings along says nothing.
        request.facts.approval = None;
        if way(policy.approval, request) != Way::Park {
            return Ok(None);
        }
        let now = clock::now();
        let known = tail.approval(&key)?;
        let holds = known.as_ref().is_some_and(|row| {
            let stands = row.stands(now);
            matches!(stands, Stands::Asked | Stands::Approved | Stands::Denied)
        });
        let question = match known {
            Some(row) if holds => Question { row, is_new: false },
            known => {
                let mut text = match (delivery.shell, delivery.argv) {
                    (Some(script), _) => script.to_owned(),
                    (None, Some(argv)) => argv.join(" "),
                    (None, None) => request.args.clone(),
                };
                fit::text(&self.redactor, &mut text, SHOWN);
                let about = About::Call {
                    tool: request.tool.clone(),
                    text,
                };
                let why = request.facts.reason.clone().unwrap_or_default();
                let nth = known.map_or(0, |row| row.nth + 1);
                let row = self.question(&delivery.session, policy, state, key, nth, about, why);
                Question { row, is_new: true }
            }
        };
        request.facts.approval = Some(Box::new(question.fact()));
        Ok(Some(question))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "two call sites; a struct would only rename them"
    )]
    fn question(
        &self,
        session: &SessionId,
        policy: &Policy,
        state: &State,
        key: Digest,
        nth: u32,
        about: About,
        why: String,
    ) -> Approval {
        let now = clock::now();
        let mut id = Digest::of_parts([&key.as_bytes()[..], &nth.to_le_bytes()]).to_hex();
        id.truncate(8);
        Approval {
            id: format!("ap-{id}"),
            key,
            nth,
            session: session.clone(),
            task: state.task.as_ref().map(|task| task.id),
            agent: state
                .agent
                .clone()
                .unwrap_or_else(|| AgentName::new("unknown")),
            root: self.place.root_text(),
            about,
            why,
            at: now,
            until: Millis(now.0.saturating_add(policy.approvals.expires_ms)),
            answer: None,
            used_at: None,
            not_told: None,
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
        let key = key_of_work(&self.place.root_text(), spec, subject);
        let Some(session) = session else {
            let rows = self.store.approvals()?.into_iter();
            let newest = rows.filter(|row| row.key == key).max_by_key(|row| row.nth);
            let now = clock::now();
            return Ok(newest.map_or_else(Word::default, |row| Word::of(row, now)));
        };
        let human = Human::of(spec);
        let mut found = Ok(Word::default());
        self.store.transact(session, &mut |tail| {
            let now = clock::now();
            let known = tail.approval(&key)?;
            if let Some(mut row) = known.clone() {
                let unanswered = row.answer.is_none() && row.used_at.is_none();
                match row.stands(now) {
                    Stands::Expired if unanswered => {
                        row.used_at = Some(now);
                        found = Ok(Word::of(row.clone(), now));
                        return Ok(Some(put(row)));
                    }
                    Stands::Expired | Stands::Used => {}
                    Stands::Asked | Stands::Approved | Stands::Denied => {
                        found = Ok(Word::of(row, now));
                        return Ok(None);
                    }
                }
            }
            let state = match load::state(session, tail) {
                Ok(loaded) => loaded.state,
                Err(error) => {
                    found = Err(error);
                    return Ok(None);
                }
            };
            let about = About::Work {
                verifier: spec.name.as_str().to_owned(),
                subject,
            };
            let nth = known.map_or(0, |row| row.nth + 1);
            let mut why = human.ask.clone();
            if let Some(message) = message {
                why = format!("{why}\n{message}");
                fit::text(&self.redactor, &mut why, SHOWN);
            }
            let mut row = self.question(session, policy, &state, key, nth, about, why);
            if let Some(expires_ms) = human.expires_ms {
                row.until = Millis(row.at.0.saturating_add(expires_ms));
            }
            found = Ok(Word {
                is_new: true,
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
    pub fn approvals(&self) -> Result<Vec<Approval>, RuntimeError> {
        Ok(self.store.approvals()?)
    }

    /// Records what a person says to a question: in the log of the session that asked, and
    /// beside it. It holds as long again as the question was open for.
    ///
    /// # Errors
    /// [`RuntimeError::Answered`] if there is nothing left to answer.
    pub fn answer(
        &self,
        question: &Approval,
        answer: PersonAnswer,
        patience: Patience<'_>,
    ) -> Result<Approval, RuntimeError> {
        let now = clock::now();
        let span = question.until.since(question.at);
        let answered = Approval {
            until: Millis(now.0.saturating_add(span)),
            answer: Some(Answered {
                at: now,
                answer: answer.clone(),
            }),
            ..question.clone()
        };
        let input = Input::PersonAnswered(PersonAnswered {
            approval: answered.id.clone(),
            what: match &answered.about {
                About::Call { text, .. } => text.clone(),
                About::Work { verifier, subject } => format!("{verifier} on {}", subject.to_hex()),
            },
            until: answered.until,
            answer,
        });
        let key = format!("answer:{}:{}", question.key.to_hex(), question.nth);
        let delivery = own(&question.session, Some(key), input);
        self.handle_beside(None, Beside::Answer(&answered), delivery, patience)?;
        Ok(answered)
    }
}

/// Notes why nobody could be told that a question waits.
///
/// # Errors
/// If the store cannot be written.
pub fn not_told(store: &dyn Store, question: &Approval, why: &str) -> Result<(), RuntimeError> {
    store.transact(&question.session, &mut |tail| {
        let known = tail.approval(&question.key)?;
        Ok(known.filter(|row| row.nth == question.nth).map(|row| {
            put(Approval {
                not_told: Some(why.to_owned()),
                ..row
            })
        }))
    })?;
    Ok(())
}

/// Whether this question can still be answered.
pub(crate) fn check_open(tail: &dyn Tail, question: &Approval) -> Result<(), RuntimeError> {
    match tail.approval(&question.key)? {
        Some(row) if row.nth == question.nth && row.stands(clock::now()) == Stands::Asked => Ok(()),
        known => Err(RuntimeError::Answered {
            approval: question.id.clone(),
            stands: known.map_or("gone", |row| row.stands(clock::now()).as_str()),
        }),
    }
}

fn put(row: Approval) -> Batch {
    Batch {
        approvals: vec![row],
        durable: true,
        ..Batch::default()
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
    row: Option<(Approval, Stands)>,
    is_new: bool,
}

impl Word {
    fn of(row: Approval, now: Millis) -> Self {
        let stands = row.stands(now);
        Self {
            row: Some((row, stands)),
            is_new: false,
        }
    }

    /// What a person has to be told of.
    pub(crate) fn parked(self) -> Option<Approval> {
        self.row.filter(|_| self.is_new).map(|(row, _)| row)
    }
}

/// What a person's word comes to as a report.
pub(crate) fn report(word: &Word) -> Report {
    let unanswered = |why: String| Report::inconclusive(Cause::Unanswered, Retryable::Yes, why);
    let Some((row, stands)) = &word.row else {
        return unanswered("no person was asked about this yet".to_owned());
    };
    let id = &row.id;
    let (verdict, said) = match (*stands, &row.answer) {
        (Stands::Approved | Stands::Used, Some(said)) => (Verdict::Pass, said),
        (Stands::Denied, Some(said)) => (Verdict::Fail, said),
        (Stands::Asked, _) => {
            let how = format!(
                "{}\nto answer: checkrein approve {id}, or: checkrein deny {id}",
                row.why
            );
            return unanswered(how);
        }
        _ => {
            let why = format!("nobody answered {id} in time");
            return Report::inconclusive(Cause::Expired, Retryable::No, why);
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
        state: FindingState::New,
    };
    let findings: Vec<Finding> = (verdict == Verdict::Fail)
        .then_some(finding)
        .into_iter()
        .collect();
    Report {
        verdict,
        cause: None,
        findings_total: findings.len() as u32,
        findings,
        ..Report::inconclusive(Cause::Unanswered, Retryable::Yes, text)
    }
}

/// The key of evidence of a person's word: each answer is kept for itself.
pub(crate) fn evidence_key(key: Digest, word: &Word, evidence: &Evidence) -> Digest {
    let id = word.row.as_ref().map_or("", |(row, _)| row.id.as_str());
    let verdict = format!("{:?} {:?}", evidence.verdict, evidence.cause);
    Digest::of_parts([&key.as_bytes()[..], id.as_bytes(), verdict.as_bytes()])
}
