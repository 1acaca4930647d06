//! Asks a judge for what is not recorded: a few at a time, each as it would be asked at a stop.

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

use super::compare;
use super::items::{Item, Labelled, Pair};
use super::measure::{Side, Silence};
use super::record::{Record, question};
use super::said::{Recorded, RecordedChoice, Text};
use crate::judge::context::{self, Order};
use crate::judge::{Definition, Rules, count, model_for};

/// Questions under way at once: as many as providers let a new account have.
const AT_ONCE: usize = 4;
/// Questions that may be refused, each for itself, before any is answered.
const GIVE_UP: u64 = 8;
/// What rules that stand in the file are called before a judge.
const RULES_NAME: &str = "rules";

/// Who is asked, and how.
#[derive(Debug)]
pub struct Asking<'a> {
    /// The judge.
    pub judge: &'a Definition,
    /// Where keys and addresses of providers are looked for.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// How long one question may take.
    pub patience: Duration,
    /// Set once nobody waits any more.
    pub cancelled: &'a AtomicBool,
    /// What was answered before.
    pub record: &'a Record,
}

/// What came of asking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Questions, tokens and cost, by model.
    pub of: BTreeMap<String, JudgeUsage>,
    /// Questions whose answer was recorded.
    pub known: u64,
    /// Questions without an answer: the first reason, and how many.
    pub failed: Option<(String, u64)>,
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// No question was answered, and others would not be.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What was answered cannot be recorded.
    #[error("the answer cannot be recorded: {0}")]
    Record(#[from] io::Error),
    /// Nobody waits any more.
    #[error("called off")]
    Cancelled,
}

impl Asking<'_> {
    /// Fills in what is not recorded. `told` hears after each item how many of how many there are.
    ///
    /// # Errors
    /// Nothing can be measured; what was answered is in the record.
    pub fn ask(
        &self,
        labelled: &mut Labelled,
        told: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Asked, NotAsked> {
        let session = Session {
            asking: self,
            state: Mutex::default(),
        };
        match labelled {
            Labelled::Verdicts(items) => {
                let open: Vec<&mut Item> = items
                    .iter_mut()
                    .filter(|item| item.reply.is_none())
                    .collect();
                session.each(open, told, |item| {
                    item.reply = Some(session.verdict(item)?);
                    Ok(())
                })?;
            }
            Labelled::Pairs(pairs) => {
                let open = |pair: &&mut Pair| pair.replies.iter().any(Option::is_none);
                let open: Vec<&mut Pair> = pairs.iter_mut().filter(open).collect();
                session.each(open, told, |pair| {
                    for (at, first) in [Side::A, Side::B].into_iter().enumerate() {
                        if pair.replies.get(at).is_some_and(Option::is_none) {
                            let said = session.choice(pair, first)?;
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

/// What several threads share.
struct Session<'a> {
    asking: &'a Asking<'a>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: Asked,
    /// By name: a connection is kept.
    models: BTreeMap<String, RemoteModel>,
    /// Whether any was, now or before.
    answered: bool,
}

impl Session<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does it with each, a few at a time, until one says that no other can succeed.
    fn each<T: Send>(
        &self,
        open: Vec<T>,
        told: &(dyn Fn(usize, usize) + Sync),
        one: impl Fn(T) -> Result<(), NotAsked> + Sync,
    ) -> Result<(), NotAsked> {
        let all = open.len();
        let left = Mutex::new(open.into_iter());
        let done = AtomicUsize::new(0);
        let over: Mutex<Option<NotAsked>> = Mutex::new(None);
        let work = || {
            loop {
                let is_over = || over.lock().unwrap_or_else(PoisonError::into_inner);
                if is_over().is_some() {
                    return;
                }
                let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(next) = next else { return };
                match one(next) {
                    Ok(()) => told(done.fetch_add(1, Ordering::Relaxed) + 1, all),
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

    /// As at a stop: a near miss is asked about twice.
    fn verdict(&self, item: &Item) -> Result<Recorded, NotAsked> {
        let mut judge = self.asking.judge.clone();
        if let Some(text) = &item.rules {
            let name = RULES_NAME.to_owned();
            let text = text.clone();
            judge.rules = vec![Rules { name, text }];
        }
        let name = model_for(&judge, &item.case.agent).0;
        let ask = |order| {
            let request = |quotes| context::request(&judge, &item.case, quotes, order);
            self.reply(&name, &item.id, &request)
        };
        let Some(first) = ask(Order::Forth)? else {
            return Ok(Recorded::Silent(Silence::Unanswered));
        };
        let read = |text: &Text| super::super::verdict::read(&text.text, text.number);
        let Ok(said) = read(&first) else {
            return Ok(Recorded::Silent(Silence::Unreadable));
        };
        if judge.is_near(&said) {
            let Some(second) = ask(Order::Back)? else {
                return Ok(Recorded::Silent(Silence::Unanswered));
            };
            match read(&second) {
                Err(_) => return Ok(Recorded::Silent(Silence::Unreadable)),
                Ok(other)
                    if said.passes_at(judge.min_score) != other.passes_at(judge.min_score) =>
                {
                    return Ok(Recorded::Silent(Silence::Wavering));
                }
                Ok(_) => {}
            }
        }
        Ok(Recorded::Text(first))
    }

    fn choice(&self, pair: &Pair, first: Side) -> Result<RecordedChoice, NotAsked> {
        let judge = self.asking.judge;
        let name = model_for(judge, "").0;
        let request = |quotes| compare::request(judge, pair, first, quotes);
        Ok(match self.reply(&name, &pair.id, &request)? {
            Some(text) => RecordedChoice::Text(text, first),
            None => RecordedChoice::Silent(Silence::Unanswered),
        })
    }

    /// The answer to this question; `None` if the model gives none to this one.
    fn reply(
        &self,
        name: &str,
        item: &str,
        request: &dyn Fn(QuotedPromptBlocks) -> ModelRequest,
    ) -> Result<Option<Text>, NotAsked> {
        let question = question(
            name,
            &request(QuotedPromptBlocks::quoted_blocks_with_number(0)),
        );
        if let Some(known) = self.asking.record.known(&question) {
            let mut state = self.lock();
            state.asked.known += 1;
            state.answered = true;
            return Ok(Some(known));
        }
        let model = self.model(name)?;
        let quotes = QuotedPromptBlocks::with_random_quote_number();
        let heard =
            block_on_unless_cancelled(self.asking.cancelled, model.ask_model(&request(quotes)));
        let reply = match heard {
            None => return Err(NotAsked::Cancelled),
            Some(Ok(reply)) => reply,
            Some(Err(error)) => {
                let mut state = self.lock();
                let (_, count) = state
                    .asked
                    .failed
                    .get_or_insert_with(|| (error.to_string(), 0));
                *count += 1;
                let hopeless = !is_of_this_question(&error) || *count >= GIVE_UP;
                if hopeless && !state.answered {
                    return Err(error.into());
                }
                return Ok(None);
            }
        };
        let said = Text {
            text: reply.text.clone(),
            number: quotes.number_answer_must_repeat(),
        };
        self.asking.record.add(&question, name, item, &said)?;
        let mut state = self.lock();
        state.answered = true;
        let testimony = state.asked.of.entry(name.to_owned()).or_default();
        name.clone_into(&mut testimony.model);
        testimony.asked += 1;
        count(testimony, &reply);
        Ok(Some(said))
    }

    fn model(&self, name: &str) -> Result<RemoteModel, NotAsked> {
        let mut state = self.lock();
        if let Some(model) = state.models.get(name) {
            return Ok(model.clone());
        }
        let limits = ModelRequestLimits {
            total_timeout: self.asking.patience,
            ..ModelRequestLimits::default()
        };
        let model = RemoteModel::new(name, self.asking.env, limits)?;
        state.models.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}

/// Whether another question may fare better with this model: it is not so without a key, with a name
/// that nobody has, or where nobody can be reached.
fn is_of_this_question(error: &ModelError) -> bool {
    match error {
        ModelError::Refused { status, .. } => matches!(status, 400 | 413 | 422),
        ModelError::TooLarge { .. } | ModelError::Unreadable { .. } => true,
        _ => false,
    }
}
