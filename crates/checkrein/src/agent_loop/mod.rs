//! An agent loop of our own: a model, tools, and the engine between them. Every call is gated, every
//! claim of done is judged, every run ends with a typed reason.

mod conversation;
mod desk;
mod fading;
mod hands;
mod interrupt;
mod journal;
mod reflect;
mod rounds;
mod settings;
mod verifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_core::ids::{SessionId, TaskId};
use checkrein_core::policy::TokenBudgetSettings;
use checkrein_core::transition::Transition;
use checkrein_models::{
    AnswerTokenUsage, ChatMessage, LanguageModel, ModelError, ModelRequest, PriceList,
};
use serde_json::Value;

use checkrein_runtime::config::ConfigError;
use checkrein_runtime::{
    DeliveryOutcome, FrontEndMiddlewareStages, MiddlewareRegistry, RuntimeError, TreeAndStateFolder,
};
use checkrein_store::{MemoryStore, Store};

use crate::tool::told;
use crate::{Engine, Tool};
use desk::{Begin, Desk};
use interrupt::Stop;
use settings::Settings;
use verifier::View;

pub use desk::{Conversation, conversation};
pub use hands::{ApplyPatch, Shell};
pub use interrupt::Interrupt;
pub use reflect::{Reflect, Reflection};
pub use settings::HardCaps;
pub use verifier::{HardVerifier, LoopState};

/// A model that works with tools until its work is accepted or going on is not worth it.
///
/// Without any setting: 90 rounds, 60 minutes, 500 calls, a million output tokens, the token budget's
/// soft line and two loop detectors. Nothing of the caller's executor is used or held up: what
/// blocks has threads of its own.
///
/// ```
/// use std::sync::Arc;
///
/// use checkrein::models::{Ended, Message, Model, ModelError, Pending, Reply, Request, Usage, wait};
/// use checkrein::{AgentLoop, HardCaps, HardVerifier, Reason};
///
/// /// Adds what it was told to add.
/// struct Writer;
///
/// impl Model for Writer {
///     fn name(&self) -> &str {
///         "scripted/writer"
///     }
///
///     fn ask<'a>(&'a self, request: &'a Request) -> Pending<'a, Result<Reply, ModelError>> {
///         Box::pin(async move {
///             let sent_back = matches!(request.messages.last(), Some(Message::User(text)) if text.contains("a date"));
///             let text = if sent_back { "Report, 1 May: done." } else { "Report: done." };
///             let usage = Usage { input: Some(20), output: Some(600), ..Usage::default() };
///             Ok(Reply { text: text.to_owned(), calls: Vec::new(), ended: Ended::Turn, usage })
///         })
///     }
/// }
///
/// let dated = HardVerifier::new("dated", |state| match state.output.contains("May") {
///     true => HardVerifier::passed(),
///     false => HardVerifier::failed("the report needs a date", true),
/// });
/// let agent = AgentLoop::seed(Arc::new(Writer))
///     .hard_caps(HardCaps { max_iterations: 30, token_budget: 100_000, ..HardCaps::seed() })
///     .detectors(&["generic_repeat"])
///     .verifier(dated);
/// let result = wait(agent.run("Write the weekly report."))?;
/// assert_eq!(result.transition.reason, Reason::TaskComplete);
/// assert_eq!((result.output.as_str(), result.usage.output), ("Report, 1 May: done.", Some(1200)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AgentLoop {
    model: Arc<dyn LanguageModel>,
    tools: Vec<Arc<dyn Tool>>,
    system: String,
    max_tokens: Option<u32>,
    settings: Settings,
    verifiers: Vec<Arc<HardVerifier>>,
    root: PathBuf,
    store: Arc<dyn Store>,
    prices: PriceList,
    interrupt: Interrupt,
    errand: Option<String>,
    watch: Box<Watch>,
    layers: MiddlewareRegistry,
}

type Watch = dyn Fn(Happening<'_>) + Send + Sync;

/// What happens in a run, for who watches it.
#[derive(Debug, Clone, Copy)]
pub enum Happening<'a> {
    /// The model is asked.
    Asked {
        /// For the n-th time, from 1 on.
        round: u32,
    },
    /// It said something.
    Said {
        /// What.
        text: &'a str,
    },
    /// It wants a tool used.
    Called {
        /// Which.
        tool: &'a str,
        /// How; `None` if that is no JSON.
        arguments: Option<&'a Value>,
    },
    /// A call does not run.
    Refused {
        /// Which tool.
        tool: &'a str,
        /// What the model is told.
        reason: &'a str,
    },
    /// It said that it is done, and is not.
    SentBack {
        /// What the model is told.
        feedback: &'a str,
    },
    /// Something waits for a person since this answer.
    Parked(&'a DeliveryOutcome),
}

/// How a run ended, and what there is of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopResult {
    /// Why it ended.
    pub transition: Transition,
    /// What the model said last.
    pub output: String,
    /// The whole conversation.
    pub messages: Vec<ChatMessage>,
    /// Model answers.
    pub rounds: u32,
    /// Tokens of all answers; a kind that one of them does not tell is `None`.
    pub usage: AnswerTokenUsage,
    /// Millionths of a dollar; `None` if the model has no price, or does not tell its use.
    pub cost: Option<u64>,
    /// Its session in the store.
    pub session: SessionId,
    /// The task in it.
    pub task: TaskId,
    /// How often the model said in that task that it is done.
    pub attempts: u32,
    /// What the agent thought of its answers, if it was asked ([`AgentLoop::reflect`]).
    pub reflections: Vec<Reflection>,
    /// What should be said of the config.
    pub warnings: Vec<String>,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The settings have a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Checkrein itself cannot.
    #[error(transparent)]
    Runtime(RuntimeError),
    /// There is no thread to judge on.
    #[error("no thread could be started: {0}")]
    Thread(#[source] std::io::Error),
    /// There is no conversation to be taken up.
    #[error("session '{}' has no conversation to take up", .0.as_str())]
    NothingSaid(SessionId),
    /// A part of the conversation cannot be read, by this build at least.
    #[error("message {nth} of the conversation of session '{}' cannot be read: {what}; it cannot be taken up", .session.as_str())]
    Unreadable {
        /// Whose.
        session: SessionId,
        /// Which, from 0 on.
        nth: usize,
        /// Why.
        what: String,
    },
    /// Another process, or another run of this one, has that conversation.
    #[error("session '{}' is at work already, in another process or run", .0.as_str())]
    Busy(SessionId),
    /// Who waits for it cannot.
    #[error(transparent)]
    Wait(#[from] ModelError),
}

impl From<RuntimeError> for LoopError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Config(error) => Self::Config(error),
            error => Self::Runtime(error),
        }
    }
}

impl AgentLoop {
    /// With this model and sensible defaults, in the folder of this process.
    pub fn new(model: Arc<dyn LanguageModel>) -> Self {
        Self {
            model,
            tools: Vec::new(),
            system: String::new(),
            max_tokens: None,
            settings: Settings::default(),
            verifiers: Vec::new(),
            root: PathBuf::from("."),
            store: Arc::new(MemoryStore::new()),
            prices: PriceList::default(),
            interrupt: Interrupt::default(),
            errand: None,
            watch: Box::new(|_| {}),
            layers: MiddlewareRegistry::default(),
        }
    }

    /// With the tighter caps of [`HardCaps::seed`].
    pub fn seed(model: Arc<dyn LanguageModel>) -> Self {
        Self::new(model).hard_caps(HardCaps::seed())
    }

    /// Instructions that no message can overrule.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// Most output tokens of one answer.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// One more tool; of two with one name the first is called.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// What ends it in any case; in place of the config's `[caps]`.
    #[must_use]
    pub fn hard_caps(mut self, caps: HardCaps) -> Self {
        self.settings.caps = Some(caps);
        self
    }

    /// Where the token budget says that going on is not worth it; in place of `[token_budget]`.
    #[must_use]
    pub fn token_budget(mut self, budget: TokenBudgetSettings) -> Self {
        self.settings.token_budget = Some(budget);
        self
    }

    /// The loop detectors by name; in place of `[loops]`. None switches them off.
    #[must_use]
    pub fn detectors(mut self, names: &[&str]) -> Self {
        self.settings.detectors = Some(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// A function that has to be content before anything is accepted, beside the config's `accept`.
    #[must_use]
    pub fn verifier(mut self, verifier: HardVerifier) -> Self {
        self.verifiers.push(Arc::new(verifier));
        self
    }

    /// Has the agent score its own answer before it is judged: below the threshold it gets its critique back
    /// and revises. That is no evidence: the stop is judged as ever afterwards.
    #[must_use]
    pub fn reflect(mut self, reflect: Reflect) -> Self {
        self.settings.reflect = Some(reflect);
        self
    }

    /// The text of a `checkrein.toml`: verifiers, judges, exec policy, veto, progress and the rest.
    #[must_use]
    pub fn config(mut self, text: impl Into<String>) -> Self {
        self.settings.config = Some(text.into());
        self
    }

    /// The tree that is worked in and judged.
    #[must_use]
    pub fn root(mut self, root: impl AsRef<Path>) -> Self {
        self.root = root.as_ref().to_owned();
        self
    }

    /// Where sessions are kept; without it they are forgotten with the loop.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// What tokens cost, where the prices of this build do not know.
    #[must_use]
    pub fn prices(mut self, prices: PriceList) -> Self {
        self.prices = prices;
        self
    }

    /// What the runs of this loop are for, in the host's words: kept with the conversation, for
    /// [`conversation`] to tell.
    #[must_use]
    pub fn errand(mut self, errand: Option<String>) -> Self {
        self.errand = errand;
        self
    }

    /// Is told what happens while it happens.
    #[must_use]
    pub fn watched_by(mut self, watch: impl Fn(Happening<'_>) + Send + Sync + 'static) -> Self {
        self.watch = Box::new(watch);
        self
    }

    /// The layers of middleware beside those of the config: register and remove them at any time,
    /// also while it runs.
    pub fn middleware(&self) -> &MiddlewareRegistry {
        &self.layers
    }

    /// With this every run of the loop can be ended.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Runs one task to its end. Dropping the future ends it, too, with whatever it started.
    ///
    /// # Errors
    /// If it cannot begin: a mistake in the settings, or a store that cannot be written. Whatever goes
    /// wrong later is an ending.
    pub async fn run(&self, message: &str) -> Result<LoopResult, LoopError> {
        self.run_on(self.engine(), message).await
    }

    /// The same on an engine of the host's, with its store, policy and guards; what this loop was told
    /// of caps, detectors and verifiers comes in the place of the policy's.
    ///
    /// # Errors
    /// As [`AgentLoop::run`].
    pub async fn run_on(&self, engine: Engine, message: &str) -> Result<LoopResult, LoopError> {
        let begin = Begin::New {
            model: self.model.model_name().to_owned(),
            errand: self.errand.clone(),
            message: message.to_owned(),
        };
        self.go(engine, begin).await
    }

    /// Takes a session of this loop up again, from its store: where its process died, or after its
    /// end, with `more` to be done. What was spent stays spent as long as the task is the same.
    ///
    /// # Errors
    /// As [`AgentLoop::run`]; and if there is nothing to take up.
    pub async fn resume(
        &self,
        session: SessionId,
        more: Option<&str>,
    ) -> Result<LoopResult, LoopError> {
        self.resume_on(self.engine(), session, more).await
    }

    /// The same on an engine of the host's.
    ///
    /// # Errors
    /// As [`AgentLoop::resume`].
    pub async fn resume_on(
        &self,
        engine: Engine,
        session: SessionId,
        more: Option<&str>,
    ) -> Result<LoopResult, LoopError> {
        let begin = Begin::Again {
            session,
            more: more.map(str::to_owned),
        };
        self.go(engine, begin).await
    }

    fn engine(&self) -> Engine {
        let place = TreeAndStateFolder::workspace_for_folder(&self.root);
        let (settings, root) = (self.settings.clone(), place.root.clone());
        let seal = move || settings.compile(&root);
        Engine::new(self.store.clone(), place, Box::new(seal))
    }

    async fn go(&self, engine: Engine, begin: Begin) -> Result<LoopResult, LoopError> {
        let stop = Stop::of(&self.interrupt);
        let view = View::default();
        let hosts = verifier::hosts(&self.verifiers, &view)?;
        let mut settings = self.settings.clone();
        settings.check()?;
        let name = self.model.model_name();
        let unpriced = match self.prices.model_price(name, 0) {
            Some(_) => None,
            None => Some(name.to_owned()),
        };
        settings.unpriced.clone_from(&unpriced);
        let required = hosts.clone();
        let engine = engine
            .sealing(move |compiled| settings.apply(compiled, &required))
            .cancelled_with(stop.flag())
            .with_middleware(self.layers.clone())
            // Tools and conversation are the loop's, whoever the engine was made for.
            .at_stages(FrontEndMiddlewareStages::LIBRARY)
            .asking(hosts);
        let (desk, opened) = Desk::open(engine, begin, unpriced, stop.clone()).await?;
        let request = ModelRequest {
            system: self.system.clone().into(),
            messages: Vec::new(),
            tools: self.tools.iter().map(told).collect(),
            output_schema: None,
            max_tokens: self.max_tokens,
        };
        let run = rounds::Run::new(self, desk, stop, view, request);
        Ok(run.finish(opened).await)
    }

    fn tell(&self, happening: Happening<'_>) {
        (self.watch)(happening);
    }
}
