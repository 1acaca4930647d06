//! Implements an agent loop: a model, its tools, and the engine between them. Every call is gated,
//! every claim of done is judged, and every run ends with a typed reason.

mod builtin_tools;
mod conversation;
mod interrupt;
mod journal;
mod loop_run;
mod reflection;
mod result_replacement;
mod session_thread;
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

use crate::tool::model_tool_definition;
use crate::{Engine, Tool};
use interrupt::LoopRunEarlyEndSignal;
use session_thread::{NewOrResumedAgentLoopRun, SessionThreadHandle};
use settings::AgentLoopSettings;
use verifier::RunStateForVerifiers;

pub use builtin_tools::{ApplyPatchTool, ShellTool};
pub use interrupt::AgentLoopInterruptHandle;
pub use reflection::{AgentRatingOfOwnAnswer, SelfReflectionConfig};
pub use session_thread::{ModelAndPurposeOfConversation, stored_conversation_model_and_purpose};
pub use settings::HardCaps;
pub use verifier::{DoneClaimContext, HardVerifier};

/// Runs a model with tools until its work is accepted, a cap is reached, or going on is not worth
/// it.
///
/// The defaults are 90 rounds, 60 minutes, 500 calls, a million output tokens, the token budget's
/// soft line and two loop detectors. The loop neither needs nor blocks a particular executor:
/// blocking work has threads of its own.
///
/// ```
/// use std::sync::Arc;
///
/// use checkrein::models::{FinishReason, ChatMessage, LanguageModel, ModelError, BoxFuture, ModelReply, ModelRequest, AnswerTokenUsage, block_on};
/// use checkrein::{AgentLoop, HardCaps, HardVerifier, Reason};
///
/// /// Adds what it was told to add.
/// struct Writer;
///
/// impl LanguageModel for Writer {
///     fn model_name(&self) -> &str {
///         "scripted/writer"
///     }
///
///     fn ask_model<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
///         Box::pin(async move {
///             let sent_back = matches!(request.messages.last(), Some(ChatMessage::User(text)) if text.contains("a date"));
///             let text = if sent_back { "Report, 1 May: done." } else { "Report: done." };
///             let usage = AnswerTokenUsage { input: Some(20), output: Some(600), ..AnswerTokenUsage::default() };
///             Ok(ModelReply { text: text.to_owned(), calls: Vec::new(), finish_reason: FinishReason::EndOfTurn, usage })
///         })
///     }
/// }
///
/// let dated = HardVerifier::new("dated", |state| match state.output.contains("May") {
///     true => HardVerifier::passed(),
///     false => HardVerifier::failed("the report needs a date", true),
/// });
/// let agent = AgentLoop::seed(Arc::new(Writer))
///     .with_hard_caps(HardCaps { max_iterations: 30, token_budget: 100_000, ..HardCaps::create_agent_loop_preset() })
///     .detectors(&["generic_repeat"])
///     .verifier(dated);
/// let result = block_on(agent.run("Write the weekly report."))?;
/// assert_eq!(result.transition.reason, Reason::TaskComplete);
/// assert_eq!((result.output.as_str(), result.usage.output), ("Report, 1 May: done.", Some(1200)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AgentLoop {
    model: Arc<dyn LanguageModel>,
    tools: Vec<Arc<dyn Tool>>,
    system: String,
    max_tokens: Option<u32>,
    settings: AgentLoopSettings,
    verifiers: Vec<Arc<HardVerifier>>,
    root: PathBuf,
    store: Arc<dyn Store>,
    prices: PriceList,
    interrupt: AgentLoopInterruptHandle,
    purpose: Option<String>,
    event_handler: Box<AgentLoopEventHandler>,
    layers: MiddlewareRegistry,
}

type AgentLoopEventHandler = dyn Fn(AgentLoopEvent<'_>) + Send + Sync;

/// An event of a run, for observers.
#[derive(Debug, Clone, Copy)]
pub enum AgentLoopEvent<'a> {
    /// The model is asked.
    RoundStarted {
        /// The number of the round, from 1.
        round: u32,
    },
    /// The model wrote a text.
    AssistantText {
        /// What.
        text: &'a str,
    },
    /// The model calls a tool.
    ToolCalled {
        /// Which.
        tool: &'a str,
        /// The arguments; `None` if they are no JSON.
        arguments: Option<&'a Value>,
    },
    /// A call does not run.
    ToolRefused {
        /// Which tool.
        tool: &'a str,
        /// What the model is told.
        reason: &'a str,
    },
    /// A claim of done was refused.
    SentBack {
        /// What the model is told.
        feedback: &'a str,
    },
    /// An approval waits for a person since this decision.
    Parked(&'a DeliveryOutcome),
}

/// The result of a run.
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
    /// Tokens of all answers; a kind that one of the answers does not report is `None`.
    pub usage: AnswerTokenUsage,
    /// Cost in millionths of a dollar; `None` if the model has no price or does not report its
    /// usage.
    pub cost: Option<u64>,
    /// Its session in the store.
    pub session: SessionId,
    /// The task in it.
    pub task: TaskId,
    /// Number of claims of done in that task.
    pub stops: u32,
    /// The agent's ratings of its answers, if it was asked for them ([`AgentLoop::reflect`]).
    pub reflections: Vec<AgentRatingOfOwnAnswer>,
    /// Warnings about the config.
    pub warnings: Vec<String>,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum AgentLoopStartError {
    /// The settings have a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Checkrein itself failed.
    #[error(transparent)]
    Runtime(RuntimeError),
    /// The thread of the session could not be started.
    #[error("no thread could be started: {0}")]
    Thread(#[source] std::io::Error),
    /// There is no conversation to resume.
    #[error("session '{}' has no conversation to take up", .0.as_str())]
    NoConversation(SessionId),
    /// An entry of the conversation cannot be read, at least by this build.
    #[error("message {nth} of the conversation of session '{}' cannot be read: {what}; it cannot be taken up", .session.as_str())]
    Unreadable {
        /// Whose.
        session: SessionId,
        /// Which, from 0 on.
        nth: usize,
        /// Why.
        what: String,
    },
    /// Another process, or another run of this process, holds the conversation.
    #[error("session '{}' is at work already, in another process or run", .0.as_str())]
    Busy(SessionId),
    /// Waiting for the run failed.
    #[error(transparent)]
    Wait(#[from] ModelError),
}

impl From<RuntimeError> for AgentLoopStartError {
    fn from(error: RuntimeError) -> Self {
        match error {
            // A mistake in the config is the host's to mend, wherever it was found; it keeps its
            // own variant.
            RuntimeError::Config(error) => Self::Config(error),
            error => Self::Runtime(error),
        }
    }
}

impl AgentLoop {
    /// Creates a loop with this model and default settings, in the folder of this process.
    pub fn new(model: Arc<dyn LanguageModel>) -> Self {
        Self {
            model,
            tools: Vec::new(),
            system: String::new(),
            max_tokens: None,
            settings: AgentLoopSettings::default(),
            verifiers: Vec::new(),
            root: PathBuf::from("."),
            // Sessions in memory can be resumed by this loop only.
            store: Arc::new(MemoryStore::new()),
            prices: PriceList::default(),
            interrupt: AgentLoopInterruptHandle::default(),
            purpose: None,
            event_handler: Box::new(|_| {}),
            layers: MiddlewareRegistry::default(),
        }
    }

    /// Creates a loop with the tighter caps of [`HardCaps::create_agent_loop_preset`].
    pub fn seed(model: Arc<dyn LanguageModel>) -> Self {
        Self::new(model).with_hard_caps(HardCaps::create_agent_loop_preset())
    }

    /// Sets the system prompt: instructions that no message can overrule.
    #[must_use]
    pub fn with_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// Sets the most output tokens of one answer.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Adds a tool. Of two tools with the same name the first is called.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Sets the caps that end a run in any case, in place of the config's `[caps]`.
    #[must_use]
    pub fn with_hard_caps(mut self, caps: HardCaps) -> Self {
        self.settings.caps = Some(caps);
        self
    }

    /// Sets when the token budget ends a run that is not worth continuing, in place of
    /// `[token_budget]`.
    #[must_use]
    pub fn token_budget(mut self, budget: TokenBudgetSettings) -> Self {
        self.settings.token_budget = Some(budget);
        self
    }

    /// Sets the loop detectors by name, in place of `[loops]`. An empty list switches them off.
    #[must_use]
    pub fn detectors(mut self, names: &[&str]) -> Self {
        self.settings.detectors = Some(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// Adds a function that must pass before anything is accepted, in addition to the config's
    /// `accept`.
    #[must_use]
    pub fn verifier(mut self, verifier: HardVerifier) -> Self {
        self.verifiers.push(Arc::new(verifier));
        self
    }

    /// Makes the agent rate its own answer before it is judged. Below the threshold it gets its
    /// critique back and revises. The rating is no evidence: the stop is judged regardless of it.
    #[must_use]
    pub fn reflect(mut self, reflect: SelfReflectionConfig) -> Self {
        self.settings.reflection = Some(reflect);
        self
    }

    /// Sets the config, as the text of a `checkrein.toml`: verifiers, judges, exec policy, veto,
    /// progress and the rest.
    #[must_use]
    pub fn config(mut self, text: impl Into<String>) -> Self {
        self.settings.config = Some(text.into());
        self
    }

    /// Sets the tree that the agent works in and that is judged.
    #[must_use]
    pub fn root(mut self, root: impl AsRef<Path>) -> Self {
        self.root = root.as_ref().to_owned();
        self
    }

    /// Sets the store of sessions. Without one they are kept in memory, as long as the loop lives.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// Sets prices of tokens, for models that this build has no price of.
    #[must_use]
    pub fn prices(mut self, prices: PriceList) -> Self {
        self.prices = prices;
        self
    }

    /// Sets the purpose of the runs, in the host's words. It is stored with the conversation;
    /// [`stored_conversation_model_and_purpose`] returns it.
    #[must_use]
    pub fn with_run_purpose(mut self, errand: Option<String>) -> Self {
        self.purpose = errand;
        self
    }

    /// Sets an observer that is called with each event of a run.
    #[must_use]
    pub fn with_event_observer(
        mut self,
        watch: impl Fn(AgentLoopEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.event_handler = Box::new(watch);
        self
    }

    /// Returns the registry of middleware layers in addition to those of the config. Layers can be
    /// registered and removed at any time, also during a run.
    pub fn middleware_registry(&self) -> &MiddlewareRegistry {
        &self.layers
    }

    /// Returns a handle that can end every run of the loop.
    pub fn interrupt_handle(&self) -> AgentLoopInterruptHandle {
        self.interrupt.clone()
    }

    /// Runs one task to its end. Dropping the future ends it as well, with everything that it
    /// started.
    ///
    /// # Errors
    /// If the run cannot begin: a mistake in the settings, or a store that cannot be written. Later
    /// failures are endings of the run.
    pub async fn run(&self, message: &str) -> Result<LoopResult, AgentLoopStartError> {
        self.run_task_on_engine(self.build_checkrein_engine(), message)
            .await
    }

    /// Like [`AgentLoop::run`], on an engine of the host with its store, policy and guards. The
    /// loop's caps, detectors and verifiers replace those of the policy.
    ///
    /// # Errors
    /// As [`AgentLoop::run`].
    pub async fn run_task_on_engine(
        &self,
        engine: Engine,
        message: &str,
    ) -> Result<LoopResult, AgentLoopStartError> {
        let begin = NewOrResumedAgentLoopRun::New {
            model: self.model.model_name().to_owned(),
            purpose: self.purpose.clone(),
            message: message.to_owned(),
        };
        self.run_loop(engine, begin).await
    }

    /// Resumes a session from the loop's store: where its process died, or after its end, with
    /// `more` to be done. What was spent stays spent as long as the task is the same.
    ///
    /// # Errors
    /// As [`AgentLoop::run`]; and if there is nothing to take up.
    pub async fn resume(
        &self,
        session: SessionId,
        more: Option<&str>,
    ) -> Result<LoopResult, AgentLoopStartError> {
        self.resume_session_on_engine(self.build_checkrein_engine(), session, more)
            .await
    }

    /// Like [`AgentLoop::resume`], on an engine of the host.
    ///
    /// # Errors
    /// As [`AgentLoop::resume`].
    pub async fn resume_session_on_engine(
        &self,
        engine: Engine,
        session: SessionId,
        more: Option<&str>,
    ) -> Result<LoopResult, AgentLoopStartError> {
        let begin = NewOrResumedAgentLoopRun::Resume {
            session,
            more: more.map(str::to_owned),
        };
        self.run_loop(engine, begin).await
    }

    fn build_checkrein_engine(&self) -> Engine {
        // The policy is compiled when a session begins, so a mistake in the config is an error of
        // `run`.
        let place = TreeAndStateFolder::new_with_per_process_state_folder(&self.root);
        let (settings, root) = (self.settings.clone(), place.root.clone());
        let seal = move || settings.compile_config_without_host_settings(&root);
        Engine::new(self.store.clone(), place, Box::new(seal))
    }

    async fn run_loop(
        &self,
        engine: Engine,
        begin: NewOrResumedAgentLoopRun,
    ) -> Result<LoopResult, AgentLoopStartError> {
        // Registered first: an interrupt during the setup below ends the run as well.
        let stop = LoopRunEarlyEndSignal::register_run_end_signal(&self.interrupt);
        let view = RunStateForVerifiers::default();
        // The verifiers read the state of this run, so they are bound to it here and not when they
        // are added.
        let hosts = verifier::collect_library_host_verifiers(&self.verifiers, &view)?;
        let mut settings = self.settings.clone();
        // Before the session begins: a mistake of the host must not leave a session in the store.
        settings.validate_host_settings()?;
        let name = self.model.model_name();
        // Whether the policy has a cost cap is known once it is sealed, so the name is handed on
        // and a cap without a price is refused there.
        let unpriced = match self.prices.model_price(name, 0) {
            Some(_) => None,
            None => Some(name.to_owned()),
        };
        settings.unpriced.clone_from(&unpriced);
        let required = hosts.clone();
        // Host settings replace those of the config when the policy is compiled, so they are sealed
        // with it and a replay sees them.
        let engine = engine
            .with_policy_override(move |compiled| {
                settings.apply_host_program_settings(compiled, &required)
            })
            // An interrupt must end running checks, or the run would wait for them.
            .with_shared_cancel_flag(stop.checks_cancel_flag())
            .with_middleware(self.layers.clone())
            // Tools and conversation are the loop's, whoever the engine was made for.
            .with_middleware_stages(FrontEndMiddlewareStages::LIBRARY)
            .with_host_verifiers(hosts);
        // The last step that can fail with an error: whatever goes wrong later is an ending of the
        // run.
        let (desk, opened) = SessionThreadHandle::start_agent_loop_session_thread(
            engine,
            begin,
            unpriced,
            stop.clone(),
        )
        .await?;
        let request = ModelRequest {
            system: self.system.clone().into(),
            // The run fills these from the journal, for a new session as for a resumed one.
            messages: Vec::new(),
            tools: self.tools.iter().map(model_tool_definition).collect(),
            output_schema: None,
            max_tokens: self.max_tokens,
        };
        let run = loop_run::AgentLoopRun::new(self, desk, stop, view, request);
        Ok(run.run_agent_loop_to_end(opened).await)
    }

    fn emit_event(&self, happening: AgentLoopEvent<'_>) {
        (self.event_handler)(happening);
    }
}
