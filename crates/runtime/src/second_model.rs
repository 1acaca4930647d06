//! Asks a second model before a tool request is stamped: whether the call should run, and whether
//! the steps before it lead anywhere. Both answers are facts of the request, kept in the log and
//! replayed from there. A model that does not answer stops nothing.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::time::{Duration, Instant};

use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::event::{DecisionOnInput, Event};
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId};
use checkrein_core::input::{
    Input, ModelProgressRating, ModelToolCallOpinionFact, ModelToolCallVerdict, ToolRequested,
    ToolReturned,
};
use checkrein_core::policy::{ProgressRatingPolicy, VetoModelPolicy};
use checkrein_core::state::SessionState;
use checkrein_core::step::apply_input_and_decide;
use checkrein_store::EvidenceFinality;
use checkrein_verifiers::reviewer::ModelQuestionOutcome as Heard;
use checkrein_verifiers::sync_reviewer::SecondModelReviewer;
use checkrein_verifiers::veto::{ToolCallForVeto, ToolCallVetoVerdict};
use checkrein_verifiers::{ChatMessage, progress, veto};

use crate::approvals::ApprovalAnswerOrToolCall;
use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, EventDelivery};
use crate::runtime::Runtime;
use crate::tool_facts::ToolCallFoldersAndPatch;
use crate::transaction::StateBeforeInput;
use crate::{bound, log_reader};

/// The longest that an agent waits for one answer about a call.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(20);
/// The pause between two looks for what another process is asking.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How many calls of the conversation a model is shown.
const MAX_CALLS: usize = 8;
/// How many characters of a call's arguments a line holds.
const MAX_ARGUMENT_CHARS: usize = 240;

impl Runtime {
    /// Asks the models that the sealed policy names, if nothing else refuses the call.
    pub(crate) fn add_veto_and_progress_model_answers(
        &self,
        delivery: &mut EventDelivery<'_>,
        beside: ApprovalAnswerOrToolCall<'_>,
        stands: &StateBeforeInput,
        patience: Deadline<'_>,
    ) -> Result<(), RuntimeError> {
        let (Input::ToolRequested(request), ApprovalAnswerOrToolCall::ToolCall(asked)) =
            (&delivery.input, beside)
        else {
            return Ok(());
        };
        let StateBeforeInput { state, policy, .. } = stands;
        // The veto is asked about risky calls or about all; progress is rated whatever the call.
        let risky = match &policy.veto {
            Some(terms) => terms.all || self.is_risky_call(request, delivery),
            None => false,
        };
        let wanted = risky || policy.progress.is_some();
        // A refusal, or a question to a person, stands whatever a model says.
        if !wanted
            || !self
                .provisional_tool_decision(stands, delivery)
                .is_some_and(decision_lets_call_run)
        {
            return Ok(());
        }
        // Read this late because most calls need no model.
        let story = self.gather_activity_for_model(&delivery.session, &request.scope, state)?;
        let rating = match &policy.progress {
            Some(terms) if story.is_progress_rating_due(state) => {
                Some(self.ask_progress_rating(terms, state, &story, patience)?)
            }
            _ => None,
        };
        let word = match &policy.veto {
            Some(terms) if risky => {
                // The goal is part of the key: a call may be right for one task and wrong for
                // another.
                let key = Digest::hash_parts([
                    &b"veto"[..],
                    &asked.key.as_bytes()[..],
                    terms.model.as_bytes(),
                    story.goal.as_bytes(),
                ]);
                let word = self
                    .ask_model_for_veto(terms, key, state, &story, request, asked.args, patience)?;
                Some(word)
            }
            _ => None,
        };
        if let Input::ToolRequested(request) = &mut delivery.input {
            request.facts.veto = word.map(Box::new);
            request.facts.progress = rating.map(Box::new);
        }
        Ok(())
    }

    /// The answer that this call would get from all that is known so far; `None` if it is no call.
    pub(crate) fn provisional_tool_decision(
        &self,
        stands: &StateBeforeInput,
        delivery: &EventDelivery<'_>,
    ) -> Option<ToolDecision> {
        let StateBeforeInput {
            state,
            policy,
            scope,
        } = stands;
        let stamped = self.stamp_input_with_facts(
            self.place.system.now_millis(),
            policy,
            state,
            scope,
            delivery,
        );
        // Decided on a copy of the state: nothing of this is recorded.
        match apply_input_and_decide(policy, &mut state.clone(), stamped).decision {
            Some(Decision::Tool(decision)) => Some(decision),
            Some(Decision::Stop(_) | Decision::Noted | Decision::Round(_)) | None => None,
        }
    }

    fn is_risky_call(&self, request: &ToolRequested, delivery: &EventDelivery<'_>) -> bool {
        let place = ToolCallFoldersAndPatch {
            root: &self.place.root,
            here: delivery.working_folder.unwrap_or(&self.place.root),
            patch: request.facts.patch.as_ref(),
        };
        delivery.facts.is_risky_tool_call(place, request.may_act)
    }

    /// Returns what was said of this very call before, or asks now.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site; a struct would only rename them"
    )]
    fn ask_model_for_veto(
        &self,
        terms: &VetoModelPolicy,
        key: Digest,
        state: &SessionState,
        story: &ActivityShownToSecondModel,
        request: &ToolRequested,
        args: &str,
        patience: Deadline<'_>,
    ) -> Result<ModelToolCallOpinionFact, RuntimeError> {
        // Two entries that deliver the same call ask the model once.
        let _claim = loop {
            let kept = self.store.read_evidence(&key)?;
            let known = kept.and_then(|kept| {
                serde_json::from_slice::<ModelToolCallOpinionFact>(&kept.bytes).ok()
            });
            if let Some(known) = known {
                // The answer was paid for by the delivery that asked.
                return Ok(ModelToolCallOpinionFact {
                    asked: false,
                    tokens: 0,
                    ..known
                });
            }
            match self.store.try_claim_effect(&key)? {
                Some(claim) => break claim,
                None if patience.is_past_deadline(&*self.place.system) => {
                    let reason = "another process was still asking when the answer was due";
                    return Ok(unasked_veto_fact(
                        ModelToolCallVerdict::NoAnswer,
                        reason.to_owned(),
                    ));
                }
                None => self.place.system.sleep(POLL_INTERVAL),
            }
        };
        // Checked after the store: an answer that is known counts against no limit.
        let said = state.task.as_ref().map_or(0, |task| task.vetoes);
        if said >= terms.max_calls {
            let reason = format!("{said} calls of this task were put to it; more may not be");
            return Ok(unasked_veto_fact(
                ModelToolCallVerdict::LimitReached,
                reason,
            ));
        }
        let hide = |text: &str| self.redactor.redact_text(text).into_owned();
        // Arguments that are no JSON are shown as one JSON string.
        let shown = hide(args);
        let arguments = shown.clone();
        let arguments = match serde_json::from_str::<serde_json::Value>(&arguments) {
            Ok(_) => arguments,
            Err(_) => serde_json::Value::String(arguments).to_string(),
        };
        let (goal, history) = (hide(&story.goal), story.recent_calls_as_messages(&hide));
        let planned = ToolCallForVeto {
            goal: &goal,
            tool: &request.tool,
            arguments: &arguments,
            history: &history,
        };
        let heard = Self::second_model_reviewer(
            &terms.model,
            &self.place.env_vars_for_model_requests(),
            patience,
        )
        .ask_model_to_review_tool_call(planned);
        let mut fact = veto_fact_from_model_opinion(heard);
        if shown != args {
            // A rewrite that was made from hidden text cannot be used.
            fact.arguments = None;
        }
        bound::redact_and_limit_veto(&self.redactor, &mut fact);
        // Without an answer, the model is asked again if the call comes again.
        if fact.says != ModelToolCallVerdict::NoAnswer {
            let bytes = serde_json::to_vec(&fact).unwrap_or_default();
            self.store
                .put_evidence_under_key(&key, &bytes, EvidenceFinality::Final)?;
        }
        Ok(fact)
    }

    fn ask_progress_rating(
        &self,
        terms: &ProgressRatingPolicy,
        state: &SessionState,
        story: &ActivityShownToSecondModel,
        patience: Deadline<'_>,
    ) -> Result<ModelProgressRating, RuntimeError> {
        let asked = state.task.as_ref().map_or(0, |task| task.progress_checks);
        // No rating is neither low nor high: it leaves the count of low ones as it is.
        let nothing = |reason: String, asked| ModelProgressRating {
            score: None,
            low: false,
            reason,
            suggestion: None,
            asked,
            tokens: 0,
        };
        // Each answer costs money and the agent's time, so a task has a limit.
        if asked >= terms.max_calls {
            let reason = format!("it was asked {asked} times in this task; more it may not be");
            return Ok(nothing(reason, false));
        }
        let hide = |text: &str| self.redactor.redact_text(text).into_owned();
        let (goal, history) = (hide(&story.goal), story.recent_calls_as_messages(&hide));
        let summary = hide(&story.steps_since_rating());
        let taken = progress::AgentStepToRate {
            goal: &goal,
            summary: &summary,
            history: &history,
        };
        let heard = Self::second_model_reviewer(
            &terms.model,
            &self.place.env_vars_for_model_requests(),
            patience,
        )
        .rate_step(taken);
        let tokens = output_tokens(&heard);
        Ok(match heard.result {
            Err(silent) => ModelProgressRating {
                tokens,
                ..nothing(silent.to_string(), true)
            },
            Ok(rating) => {
                let score = u32::from(rating.score.to_thousandths());
                ModelProgressRating {
                    score: Some(score),
                    low: score < terms.threshold,
                    reason: rating.summary,
                    suggestion: rating.suggestion,
                    asked: true,
                    tokens,
                }
            }
        })
    }

    fn second_model_reviewer<'a>(
        model: &'a str,
        environment: &'a BTreeMap<OsString, OsString>,
        patience: Deadline<'a>,
    ) -> SecondModelReviewer<'a> {
        SecondModelReviewer {
            model,
            environment,
            limit: reviewer_timeout_within_deadline(patience),
            cancelled: patience.cancelled,
        }
    }

    fn gather_activity_for_model(
        &self,
        session: &SessionId,
        scope: &ScopeId,
        state: &SessionState,
    ) -> Result<ActivityShownToSecondModel, RuntimeError> {
        let mut story = ActivityShownToSecondModel::default();
        if state.last > EventSeq(0) {
            for raw in self.store.events_after(session, EventSeq(0))? {
                if let Some(event) = log_reader::decode_event(session, &raw)? {
                    story.note_event_for_watching_model(raw.seq, &event, scope);
                }
            }
        }
        Ok(story)
    }
}

/// The fact for a call that the model was not asked about.
fn unasked_veto_fact(says: ModelToolCallVerdict, reason: String) -> ModelToolCallOpinionFact {
    ModelToolCallOpinionFact {
        says,
        reason,
        confidence: None,
        arguments: None,
        asked: false,
        tokens: 0,
    }
}

fn decision_lets_call_run(decision: ToolDecision) -> bool {
    matches!(decision, ToolDecision::Allow | ToolDecision::Nudge { .. })
}

/// The time limit for one answer: half of what is left before the agent's own is due, up to
/// [`MAX_ANSWER_TIME`].
fn reviewer_timeout_within_deadline(patience: Deadline<'_>) -> Duration {
    let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
    patience.due_at.map_or(MAX_ANSWER_TIME, |deadline| {
        MAX_ANSWER_TIME.min(left(deadline) / 2)
    })
}

fn output_tokens<T>(heard: &Heard<T>) -> u64 {
    let usage = heard.usage.and_then(|usage| usage.output);
    usage.unwrap_or(0)
}

fn veto_fact_from_model_opinion(
    heard: Heard<veto::ModelOpinionOnToolCall>,
) -> ModelToolCallOpinionFact {
    let tokens = output_tokens(&heard);
    let fact = ModelToolCallOpinionFact {
        says: ModelToolCallVerdict::NoAnswer,
        reason: String::new(),
        confidence: None,
        arguments: None,
        asked: true,
        tokens,
    };
    let opinion = match heard.result {
        Ok(opinion) => opinion,
        Err(silent) => {
            return ModelToolCallOpinionFact {
                reason: silent.to_string(),
                ..fact
            };
        }
    };
    let confidence = opinion.confidence;
    let (says, arguments) = match opinion.verdict {
        ToolCallVetoVerdict::Allow => (ModelToolCallVerdict::Allow, None),
        ToolCallVetoVerdict::Veto => (ModelToolCallVerdict::Veto, None),
        ToolCallVetoVerdict::Rewrite(arguments) => {
            let arguments = serde_json::Value::Object(arguments).to_string();
            (ModelToolCallVerdict::Rewrite, Some(arguments))
        }
    };
    ModelToolCallOpinionFact {
        says,
        reason: opinion.reason,
        confidence: confidence.map(|share| u32::from(share.to_thousandths())),
        arguments,
        ..fact
    }
}

/// The part of the conversation that a model is shown.
#[derive(Default)]
struct ActivityShownToSecondModel {
    prompted: String,
    goal: String,
    /// The latest calls and their outcomes.
    recent: VecDeque<CallShownToSecondModel>,
    /// How many of the newest were made since the last rating.
    since_rating: usize,
    returned: bool,
    round_over: bool,
}

/// A call and what came of it.
struct CallShownToSecondModel {
    request: EventSeq,
    call: EightByteDigest,
    call_id: Option<String>,
    /// Tool and arguments.
    what: String,
    /// How it ended, in a word or two.
    ending: &'static str,
    /// What else is known of that.
    more: String,
    /// Digest of what came back.
    outcome_digest: Option<EightByteDigest>,
}

impl CallShownToSecondModel {
    /// The call with what came of it.
    fn line(&self) -> String {
        let Self {
            what, ending, more, ..
        } = self;
        format!("called {what} -> {ending}{more}")
    }

    /// The same for a list of which only the beginning of each line is shown.
    fn short_line(&self) -> String {
        format!("({}) called {}", self.ending, self.what)
    }
}

impl ActivityShownToSecondModel {
    fn note_event_for_watching_model(&mut self, seq: EventSeq, event: &Event, scope: &ScopeId) {
        match event {
            // A prompt is recorded before the task that it opens, so it becomes the goal here.
            Event::TaskOpened { .. } => {
                // So is a call that opens one.
                *self = Self {
                    goal: std::mem::take(&mut self.prompted),
                    ..Self::default()
                };
            }
            Event::Input(stamped) => self.note_input_for_watching_model(seq, &stamped.input, scope),
            Event::DecisionMade(made) => self.note_decision_on_call(made),
            _ => {}
        }
    }

    fn note_input_for_watching_model(&mut self, seq: EventSeq, input: &Input, scope: &ScopeId) {
        match input {
            Input::PromptSubmitted(prompt) => self.prompted.clone_from(&prompt.text),
            Input::ToolRequested(request) if request.scope == *scope => {
                // A request with a rating closes the steps that were rated.
                if request.facts.progress.is_some() {
                    self.since_rating = 0;
                    (self.returned, self.round_over) = (false, false);
                }
                let args: String = request.args.chars().take(MAX_ARGUMENT_CHARS).collect();
                if self.recent.len() >= MAX_CALLS {
                    self.recent.pop_front();
                }
                self.recent.push_back(CallShownToSecondModel {
                    request: seq,
                    call: request.call,
                    call_id: request.call_id.clone(),
                    what: format!("{} {args}", request.tool),
                    ending: "no result yet",
                    more: String::new(),
                    outcome_digest: None,
                });
                self.since_rating += 1;
            }
            Input::ToolReturned(returned) if returned.scope == *scope => {
                self.returned = true;
                self.note_result_of_call(returned);
            }
            Input::RoundEnded(round) if round.scope == *scope => self.round_over = true,
            _ => {}
        }
    }

    /// A call that was refused did not run, and must not look as if it had.
    fn note_decision_on_call(&mut self, made: &DecisionOnInput) {
        let Some(call) = self
            .recent
            .iter_mut()
            .find(|call| call.request == made.answers)
        else {
            return;
        };
        let is_vetoed = made.why.iter().any(|why| {
            matches!(
                why,
                DecisionFactor::Veto {
                    says: ModelToolCallVerdict::Veto | ModelToolCallVerdict::Rewrite,
                    unsure: false,
                    ..
                }
            )
        });
        let word = match &made.decision {
            Decision::Tool(ToolDecision::Deny { .. } | ToolDecision::Rewrite { .. })
                if is_vetoed =>
            {
                "vetoed"
            }
            Decision::Tool(
                ToolDecision::Deny { .. }
                | ToolDecision::Rewrite { .. }
                | ToolDecision::Halt { .. },
            ) => "denied",
            Decision::Tool(ToolDecision::Ask { .. }) => "a person was asked",
            _ => return,
        };
        call.ending = word;
    }

    fn note_result_of_call(&mut self, returned: &ToolReturned) {
        let digest = returned.facts.steady.unwrap_or(returned.outcome);
        let is_same_call = |call: &CallShownToSecondModel| match (&call.call_id, &returned.call_id)
        {
            (Some(one), Some(other)) => one == other,
            _ => call.call == returned.call,
        };
        let open =
            |call: &CallShownToSecondModel| call.outcome_digest.is_none() && is_same_call(call);
        let Some(at) = self.recent.iter().rposition(open) else {
            return;
        };
        let before = self.recent.iter().take(at).rev();
        let same = before
            .enumerate()
            .find(|(_, earlier)| earlier.outcome_digest == Some(digest))
            .map(|(nth, _)| nth + 1);
        let same = match same {
            Some(1) => ", with the same outcome as the call before".to_owned(),
            Some(calls) => format!(", with the same outcome as {calls} calls ago"),
            None => String::new(),
        };
        let excerpt = returned
            .excerpt
            .as_deref()
            .map_or_else(String::new, |text| format!(": {text}"));
        if let Some(call) = self.recent.get_mut(at) {
            call.ending = if returned.error { "failed" } else { "done" };
            call.more = format!("{same}{excerpt}");
            call.outcome_digest = Some(digest);
        }
    }

    /// Whether a round has ended since the last rating; for an agent that shows no rounds, whether
    /// a call came back since.
    fn is_progress_rating_due(&self, state: &SessionState) -> bool {
        let is_step_over = match state.shows_rounds {
            true => self.round_over,
            false => self.returned,
        };
        // A late result of an earlier task is no step.
        is_step_over && self.since_rating > 0
    }

    /// Returns the calls since the last rating, one a line.
    fn steps_since_rating(&self) -> String {
        let skipped = self.recent.len().saturating_sub(self.since_rating);
        let lines: Vec<String> = self
            .recent
            .iter()
            .skip(skipped)
            .map(|call| call.line())
            .collect();
        lines.join("\n")
    }

    fn recent_calls_as_messages(&self, hide: &dyn Fn(&str) -> String) -> Vec<ChatMessage> {
        let said = |call: &CallShownToSecondModel| ChatMessage::Assistant {
            text: hide(&call.short_line()),
            calls: Vec::new(),
        };
        self.recent.iter().map(said).collect()
    }
}
