//! Asks a judge the questions that have no recorded answer: a few at a time, each exactly as at a
//! stop.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_core::evidence::JudgeUsage;
use checkrein_models::quoted::QuotedPromptBlocks;
use checkrein_models::{
    LanguageModel, ModelError, ModelRequest, ModelRequestLimits, RemoteModel,
    block_on_unless_cancelled,
};

use super::choice_request;
use super::label_file::{LabelledAnswer, LabelledAnswerPair, LabelledAnswerSet};
use super::recorded_reply::{RecordedCalibrationReply, RecordedPairChoice, UnparsedJudgeReply};
use super::reply_record::{RecordedReplies, digest_of_model_and_request};
use super::statistics::{AnswerSide, NoJudgeVerdictReason};
use crate::judge::verdict_request::{self, RequestOrAnswerFirst};
use crate::judge::{
    AgentInstructionsFile, JudgeDefinition, add_reply_to_judge_usage, choose_judge_model,
};

/// Questions asked at once: as many as providers allow a new account.
const AT_ONCE: usize = 4;
/// Questions that may be refused individually before any is answered.
const GIVE_UP: u64 = 8;
/// Name given to rules from the label file in the judge's prompt.
const RULES_NAME: &str = "rules";

/// The judge to ask, and how.
#[derive(Debug)]
pub struct JudgeCalibrationContext<'a> {
    /// The judge.
    pub judge: &'a JudgeDefinition,
    /// Where keys and addresses of providers are looked for.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// How long one question may take.
    pub timeout: Duration,
    /// Set when the run is cancelled.
    pub cancelled: &'a AtomicBool,
    /// The answers recorded earlier.
    pub record: &'a RecordedReplies,
}

/// The outcome of asking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalibrationModelCallTotals {
    /// Questions, tokens and cost, by model.
    pub by_model: BTreeMap<String, JudgeUsage>,
    /// Questions whose answer was recorded.
    pub from_record: u64,
    /// Questions without an answer: the first reason, and how many.
    pub failed: Option<(String, u64)>,
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// No question was answered, and no other would be.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An answer cannot be recorded.
    #[error("the answer cannot be recorded: {0}")]
    Record(#[from] io::Error),
    /// The run was cancelled.
    #[error("called off")]
    Cancelled,
}

impl JudgeCalibrationContext<'_> {
    /// Fills in the missing replies. Calls `told` after each item with the number done and the
    /// number of all.
    ///
    /// # Errors
    /// If nothing can be measured. The answers so far are in the record.
    pub fn ask_judge_for_missing_replies(
        &self,
        labelled: &mut LabelledAnswerSet,
        told: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<CalibrationModelCallTotals, CalibrationError> {
        let session = SharedCalibrationContext {
            asking: self,
            state: Mutex::default(),
        };
        match labelled {
            LabelledAnswerSet::Verdicts(items) => {
                let open: Vec<&mut LabelledAnswer> = items
                    .iter_mut()
                    // Replies that the label file brings along are kept as they are.
                    .filter(|item| item.reply.is_none())
                    .collect();
                session.for_each_parallel(open, told, |item| {
                    item.reply = Some(session.ask_judge_about_labelled_answer(item)?);
                    Ok(())
                })?;
            }
            LabelledAnswerSet::Pairs(pairs) => {
                let open =
                    |pair: &&mut LabelledAnswerPair| pair.replies.iter().any(Option::is_none);
                let open: Vec<&mut LabelledAnswerPair> = pairs.iter_mut().filter(open).collect();
                session.for_each_parallel(open, told, |pair| {
                    for (at, first) in [AnswerSide::A, AnswerSide::B].into_iter().enumerate() {
                        // One order may be recorded already, and is not paid for twice.
                        if pair.replies.get(at).is_some_and(Option::is_none) {
                            let said = session.ask_pairwise_choice(pair, first)?;
                            if let Some(reply) = pair.replies.get_mut(at) {
                                *reply = Some(said);
                            }
                        }
                    }
                    Ok(())
                })?;
            }
        }
        let state = session.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        Ok(state.asked)
    }
}

/// The state shared by the threads.
struct SharedCalibrationContext<'a> {
    asking: &'a JudgeCalibrationContext<'a>,
    state: Mutex<CalibrationCallTotalsAndClients>,
}

#[derive(Default)]
struct CalibrationCallTotalsAndClients {
    asked: CalibrationModelCallTotals,
    /// Clients by model name, so that connections are reused.
    models: BTreeMap<String, RemoteModel>,
    /// Whether any question was answered, now or earlier.
    answered: bool,
}

impl SharedCalibrationContext<'_> {
    fn lock_calibration_state(&self) -> MutexGuard<'_, CalibrationCallTotalsAndClients> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `one` for each item, a few at a time, until one fails for a reason that would stop the
    /// others too.
    fn for_each_parallel<T: Send>(
        &self,
        open: Vec<T>,
        told: &(dyn Fn(usize, usize) + Sync),
        one: impl Fn(T) -> Result<(), CalibrationError> + Sync,
    ) -> Result<(), CalibrationError> {
        let all = open.len();
        let left = Mutex::new(open.into_iter());
        let done = AtomicUsize::new(0);
        let over: Mutex<Option<CalibrationError>> = Mutex::new(None);
        let work = || {
            loop {
                let is_over = || over.lock().unwrap_or_else(PoisonError::into_inner);
                // Questions under way are finished and recorded: they are paid for.
                if is_over().is_some() {
                    return;
                }
                let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(next) = next else { return };
                match one(next) {
                    Ok(()) => told(done.fetch_add(1, Ordering::Relaxed) + 1, all),
                    // The first error stays; those after it are mostly its echo.
                    Err(error) => drop(is_over().get_or_insert(error)),
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(all) {
                scope.spawn(work);
            }
        });
        match over.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Asks for a verdict as at a stop: a score near the limit is confirmed by a second question.
    fn ask_judge_about_labelled_answer(
        &self,
        item: &LabelledAnswer,
    ) -> Result<RecordedCalibrationReply, CalibrationError> {
        let mut judge = self.asking.judge.clone();
        if let Some(text) = &item.rules {
            let name = RULES_NAME.to_owned();
            let text = text.clone();
            judge.rules = vec![AgentInstructionsFile { name, text }];
        }
        let name = choose_judge_model(&judge, &item.case.agent).0;
        let ask = |order| {
            let request =
                |quotes| verdict_request::verdict_request(&judge, &item.case, quotes, order);
            self.fetch_judge_reply(&name, &item.id, &request)
        };
        let Some(first) = ask(RequestOrAnswerFirst::RequestFirst)? else {
            return Ok(RecordedCalibrationReply::NoVerdict(
                NoJudgeVerdictReason::Unanswered,
            ));
        };
        let read = |text: &UnparsedJudgeReply| {
            super::super::verdict::parse_judge_verdict(&text.text, text.number)
        };
        let Ok(said) = read(&first) else {
            return Ok(RecordedCalibrationReply::NoVerdict(
                NoJudgeVerdictReason::Unreadable,
            ));
        };
        if judge.is_near_min_score(&said) {
            let Some(second) = ask(RequestOrAnswerFirst::AnswerFirst)? else {
                return Ok(RecordedCalibrationReply::NoVerdict(
                    NoJudgeVerdictReason::Unanswered,
                ));
            };
            match read(&second) {
                Err(_) => {
                    return Ok(RecordedCalibrationReply::NoVerdict(
                        NoJudgeVerdictReason::Unreadable,
                    ));
                }
                Ok(other)
                    if said.passes_min_score(judge.min_score)
                        != other.passes_min_score(judge.min_score) =>
                {
                    return Ok(RecordedCalibrationReply::NoVerdict(
                        NoJudgeVerdictReason::Wavering,
                    ));
                }
                Ok(_) => {}
            }
        }
        Ok(RecordedCalibrationReply::Text(first))
    }

    fn ask_pairwise_choice(
        &self,
        pair: &LabelledAnswerPair,
        first: AnswerSide,
    ) -> Result<RecordedPairChoice, CalibrationError> {
        let judge = self.asking.judge;
        // A pair has no agent, so no family is avoided.
        let name = choose_judge_model(judge, "").0;
        let request = |quotes| choice_request::pairwise_choice_request(judge, pair, first, quotes);
        Ok(match self.fetch_judge_reply(&name, &pair.id, &request)? {
            Some(text) => RecordedPairChoice::Text(text, first),
            None => RecordedPairChoice::NoChoice(NoJudgeVerdictReason::Unanswered),
        })
    }

    /// Returns the answer to this question; `None` if the model refuses this one.
    fn fetch_judge_reply(
        &self,
        name: &str,
        item: &str,
        request: &dyn Fn(QuotedPromptBlocks) -> ModelRequest,
    ) -> Result<Option<UnparsedJudgeReply>, CalibrationError> {
        // The quote number is random, so the digest is taken over a request with a constant one.
        let question = digest_of_model_and_request(
            name,
            &request(QuotedPromptBlocks::prompt_blocks_with_quote_number(0)),
        );
        if let Some(known) = self.asking.record.recorded_judge_reply(&question) {
            let mut state = self.lock_calibration_state();
            state.asked.from_record += 1;
            state.answered = true;
            // The recorded number goes with the text, so the signature is still checked.
            return Ok(Some(known));
        }
        let model = self.cached_model_client(name)?;
        let quotes = QuotedPromptBlocks::new_with_random_quote_number();
        let heard =
            block_on_unless_cancelled(self.asking.cancelled, model.ask_model(&request(quotes)));
        let reply = match heard {
            None => return Err(CalibrationError::Cancelled),
            Some(Ok(reply)) => reply,
            Some(Err(error)) => {
                let mut state = self.lock_calibration_state();
                let (_, count) = state
                    .asked
                    .failed
                    .get_or_insert_with(|| (error.to_string(), 0));
                *count += 1;
                // After one answer the model is known to work, so later failures are counted and do
                // not end the run.
                let hopeless = !is_request_specific_error(&error) || *count >= GIVE_UP;
                if hopeless && !state.answered {
                    return Err(error.into());
                }
                return Ok(None);
            }
        };
        let said = UnparsedJudgeReply {
            text: reply.text.clone(),
            number: quotes.number_answer_must_repeat(),
        };
        // Recorded before anything is made of it. A write that fails ends the run: going on would
        // pay for answers that are lost.
        self.asking
            .record
            .record_judge_reply(&question, name, item, &said)?;
        let mut state = self.lock_calibration_state();
        state.answered = true;
        let testimony = state.asked.by_model.entry(name.to_owned()).or_default();
        name.clone_into(&mut testimony.model);
        testimony.asked += 1;
        add_reply_to_judge_usage(testimony, &reply);
        Ok(Some(said))
    }

    fn cached_model_client(&self, name: &str) -> Result<RemoteModel, CalibrationError> {
        let mut state = self.lock_calibration_state();
        if let Some(model) = state.models.get(name) {
            return Ok(model.clone());
        }
        let limits = ModelRequestLimits {
            total_timeout: self.asking.timeout,
            ..ModelRequestLimits::default()
        };
        let model = RemoteModel::new(name, self.asking.env, limits)?;
        state.models.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}

/// Returns whether another question may succeed with this model. It would not without a key, with
/// an unknown model name, or if the provider cannot be reached.
fn is_request_specific_error(error: &ModelError) -> bool {
    match error {
        // Bad request, content too large, unprocessable: they depend on what was asked.
        ModelError::Refused { status, .. } => matches!(status, 400 | 413 | 422),
        ModelError::TooLarge { .. } | ModelError::Unreadable { .. } => true,
        _ => false,
    }
}
