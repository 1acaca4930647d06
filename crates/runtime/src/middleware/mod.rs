//! Middleware: layers that are asked before and after a call, before a stop, and where sessions and
//! rounds begin and end. Functions of a host and programs of a config are asked alike. This module
//! handles how each of them fails; what follows from their answers is decided in the core.

mod dispatch;
mod in_process;
mod program;
mod question;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_core::middleware::MiddlewareStage;
use checkrein_core::policy::{MiddlewareSpec, Policy};

pub(crate) use dispatch::UnredactedEventTexts;
pub use question::{
    BeforeStopAnswer, BeforeStopQuestion, BeforeToolQuestion, MiddlewareSessionContext,
    MiddlewareToolCallAnswer, MiddlewareToolResultAnswer, RecentCallForMiddleware, RoundEndAnswer,
    RoundEndForMiddleware, SessionEndForMiddleware, SessionStart, ToolResult, tool_result_text,
};

/// The default time limit of a layer.
pub(crate) const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(5);

/// The time limit of a detector.
pub(crate) const DETECTOR_TIME_LIMIT: Duration = Duration::from_secs(1);

/// A layer of middleware, as a function of this process. It is asked only at the stages that it is
/// registered for. Each question is asked on a thread of its own: a function that blocks delays
/// nothing but the call that it is asked about, and that no longer than the layer's time limit.
///
/// A layer that cannot judge answers `CannotTell`. Its stance then decides, as it does when the
/// function panics or takes too long.
pub trait Middleware: Send + Sync {
    /// The agent wants to use a tool, and nothing else refuses that.
    fn before_tool(&self, _call: &BeforeToolQuestion) -> MiddlewareToolCallAnswer {
        MiddlewareToolCallAnswer::Pass
    }

    /// A tool came back. The agent gets the result as it is rewritten here.
    fn after_tool(&self, _result: &ToolResult) -> MiddlewareToolResultAnswer {
        MiddlewareToolResultAnswer::Keep
    }

    /// The same result, after the agent has seen it. Later rounds of the conversation hold it as it
    /// is rewritten here.
    fn rewrite_result_for_later_rounds(&self, _result: &ToolResult) -> MiddlewareToolResultAnswer {
        MiddlewareToolResultAnswer::Keep
    }

    /// One model response and all its calls are over.
    fn on_round_end(&self, _round: &RoundEndForMiddleware) {}

    /// As [`Middleware::on_round_end`], with an answer: a word for the next round, or the end of the
    /// loop.
    fn judge_round_end(&self, round: &RoundEndForMiddleware) -> RoundEndAnswer {
        self.on_round_end(round);
        RoundEndAnswer::Pass
    }

    /// The agent says that it is done.
    fn before_stop(&self, _stop: &BeforeStopQuestion) -> BeforeStopAnswer {
        BeforeStopAnswer::Pass
    }

    /// A session began, or was taken up again.
    fn on_session_start(&self, _session: &SessionStart) {}

    /// The session is over.
    fn on_session_end(&self, _session: &SessionEndForMiddleware) {}
}

/// A detector of loops of one's own. It is asked at the end of each round and ends the loop, or has a
/// word for the next round. One that fails or takes too long has no opinion.
pub trait RoundDetector: Send + Sync {
    /// Judges the task by its round that is just over.
    fn detect_at_round_end(&self, round: &RoundEndForMiddleware) -> RoundEndAnswer;
}

/// A detector as a layer that is asked at one stage.
struct DetectorAsMiddleware<D>(D);

impl<D: RoundDetector> Middleware for DetectorAsMiddleware<D> {
    fn judge_round_end(&self, round: &RoundEndForMiddleware) -> RoundEndAnswer {
        self.0.detect_at_round_end(round)
    }
}

/// A layer with its place, time limit and stance.
#[derive(Clone)]
pub struct MiddlewareLayer {
    name: String,
    on: Vec<MiddlewareStage>,
    order: i32,
    limit: Duration,
    blocks: bool,
    who: FunctionOrProgramMiddleware,
}

/// What is asked.
#[derive(Clone)]
enum FunctionOrProgramMiddleware {
    /// A function of this process.
    InProcess {
        middleware: Arc<dyn Middleware>,
        /// The number of abandoned questions that have not returned.
        hanging: Arc<AtomicUsize>,
    },
    /// A program, by its command.
    Program(String),
}

impl MiddlewareLayer {
    /// Creates a layer that asks a function of this process at these stages. It has five seconds
    /// for an answer, and what it cannot judge is refused.
    pub fn new(name: &str, on: &[MiddlewareStage], middleware: impl Middleware + 'static) -> Self {
        // One count for all clones of the layer: they ask the same function.
        let hanging = Arc::default();
        let middleware: Arc<dyn Middleware> = Arc::new(middleware);
        Self::new_middleware_layer(
            name,
            on,
            FunctionOrProgramMiddleware::InProcess {
                middleware,
                hanging,
            },
        )
    }

    /// Creates a layer that asks a detector of loops at the end of each round, as `[[detector]]` of a
    /// config does. It has a second for an answer.
    pub fn new_detector(name: &str, detector: impl RoundDetector + 'static) -> Self {
        Self::new(
            name,
            &[MiddlewareStage::RoundEnd],
            DetectorAsMiddleware(detector),
        )
        .with_layer_time_limit(DETECTOR_TIME_LIMIT)
        .with_fail_open()
    }

    /// Creates a layer that asks a program, as `[[middleware]]` of a config does.
    pub fn new_program_layer(name: &str, on: &[MiddlewareStage], run: &str) -> Self {
        Self::new_middleware_layer(
            name,
            on,
            FunctionOrProgramMiddleware::Program(run.to_owned()),
        )
    }

    fn new_middleware_layer(
        name: &str,
        on: &[MiddlewareStage],
        who: FunctionOrProgramMiddleware,
    ) -> Self {
        Self {
            name: name.to_owned(),
            on: on.to_vec(),
            order: 0,
            limit: DEFAULT_TIME_LIMIT,
            blocks: true,
            who,
        }
    }

    /// Sets the order: lower numbers are asked first; of equal ones those of the config, then those
    /// that were registered first.
    #[must_use]
    pub fn with_layer_order(mut self, order: i32) -> Self {
        self.order = order;
        self
    }

    /// Sets the time limit for one answer.
    #[must_use]
    pub fn with_layer_time_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Lets everything pass that the layer cannot judge. That is recorded, and a task in which it
    /// happened is never `task_complete`.
    #[must_use]
    pub fn with_fail_open(mut self) -> Self {
        self.blocks = false;
        self
    }

    fn middleware_layer_from_spec(spec: &MiddlewareSpec) -> Self {
        let limit = Duration::from_millis(spec.timeout_ms);
        let mut layer = Self::new_program_layer(spec.name.as_str(), &spec.on, &spec.run);
        // What the config sets replaces the defaults of `new`.
        (layer.order, layer.limit, layer.blocks) = (spec.order, limit, spec.blocks);
        layer
    }
}

/// A list of layers that a host adds to and removes from while it runs. Clones share the list.
#[derive(Clone, Default)]
pub struct MiddlewareRegistry(Arc<Mutex<MiddlewareRegistryEntries>>);

#[derive(Default)]
struct MiddlewareRegistryEntries {
    next: u64,
    layers: Vec<(u64, MiddlewareLayer)>,
}

/// A registered layer. It stays registered when this is dropped.
pub struct MiddlewareRegistrationHandle {
    id: u64,
    layers: MiddlewareRegistry,
}

impl MiddlewareRegistry {
    /// Adds a layer, which is asked from the next question on.
    pub fn register_middleware_layer(
        &self,
        layer: MiddlewareLayer,
    ) -> MiddlewareRegistrationHandle {
        let mut list = self.lock_middleware_layers();
        let id = list.next;
        list.next += 1;
        list.layers.push((id, layer));
        MiddlewareRegistrationHandle {
            id,
            layers: self.clone(),
        }
    }

    fn lock_middleware_layers(&self) -> MutexGuard<'_, MiddlewareRegistryEntries> {
        // An entry is pushed or removed in one step, so a panic elsewhere leaves the list whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The layers of a policy, together with those that hosts have registered.
#[derive(Clone, Copy)]
struct ActiveMiddlewareLayers<'a> {
    policy: &'a Policy,
    hosts: &'a [MiddlewareRegistry],
}

impl ActiveMiddlewareLayers<'_> {
    fn is_empty(self) -> bool {
        let none = |layers: &MiddlewareRegistry| layers.lock_middleware_layers().layers.is_empty();
        self.policy.middleware.is_empty() && self.hosts.iter().all(none)
    }

    /// Whether any layer is asked at one of these stages.
    fn has_layers_at_stages(self, stages: &[MiddlewareStage]) -> bool {
        let any = |on: &[MiddlewareStage]| on.iter().any(|stage| stages.contains(stage));
        let here = |layers: &MiddlewareRegistry| {
            layers
                .lock_middleware_layers()
                .layers
                .iter()
                .any(|(_, layer)| any(&layer.on))
        };
        self.policy.middleware.iter().any(|spec| any(&spec.on)) || self.hosts.iter().any(here)
    }

    /// The layers that are asked at this stage, in order.
    fn layers_at_stage(self, stage: MiddlewareStage) -> Vec<MiddlewareLayer> {
        let of_config = self
            .policy
            .middleware
            .iter()
            .map(MiddlewareLayer::middleware_layer_from_spec);
        // A copy of the list, so that no lock is held while layers are asked.
        let mut all: Vec<MiddlewareLayer> = of_config.collect();
        for layers in self.hosts {
            all.extend(
                layers
                    .lock_middleware_layers()
                    .layers
                    .iter()
                    .map(|(_, layer)| layer.clone()),
            );
        }
        all.retain(|layer| layer.on.contains(&stage));
        // The sort is stable: of equal orders, those of the config come first, then the first
        // registered.
        all.sort_by_key(|layer| layer.order);
        all
    }
}

impl MiddlewareRegistrationHandle {
    /// Removes the layer, which is not asked from the next question on.
    pub fn unregister_middleware_layer(self) {
        let mut list = self.layers.lock_middleware_layers();
        list.layers.retain(|(id, _)| *id != self.id);
    }
}

/// The stages at which layers are asked, as far as a front door can act on the answers.
#[derive(Debug, Clone, Copy)]
pub struct FrontEndMiddlewareStages {
    /// How a person is told which front door it is.
    pub supported: &'static [MiddlewareStage],
    /// The front door's name in messages.
    pub entry_point: &'static str,
}

impl FrontEndMiddlewareStages {
    /// The library's: it runs the tools and keeps the conversation.
    pub const LIBRARY: Self = Self {
        supported: MiddlewareStage::ALL,
        entry_point: "in the library",
    };

    /// An agent's hooks, which change neither a result nor a conversation.
    pub const HOOKS: Self = Self {
        supported: &[
            MiddlewareStage::SessionStart,
            MiddlewareStage::BeforeTool,
            MiddlewareStage::RoundEnd,
            MiddlewareStage::BeforeStop,
            MiddlewareStage::SessionEnd,
        ],
        entry_point: "behind an agent's hooks",
    };

    /// Before an MCP server, which hears nothing of rounds, stops and conversations.
    pub const PROXY: Self = Self {
        supported: &[
            MiddlewareStage::SessionStart,
            MiddlewareStage::BeforeTool,
            MiddlewareStage::AfterTool,
            MiddlewareStage::SessionEnd,
        ],
        entry_point: "before an MCP server",
    };

    /// Warnings about the stages of a policy that this front door does not have.
    pub(crate) fn unsupported_stage_warnings(&self, policy: &Policy) -> Vec<String> {
        let of = |spec: &MiddlewareSpec| {
            let never = spec
                .on
                .iter()
                .filter(|stage| !self.supported.contains(stage));
            let never: Vec<&str> = never.map(|stage| stage.as_str()).collect();
            let warning = format!(
                "middleware '{}' is never asked at {} {}: docs/middleware.md says where it is",
                spec.name,
                never.join(", "),
                self.entry_point
            );
            (!never.is_empty()).then_some(warning)
        };
        policy.middleware.iter().filter_map(of).collect()
    }
}
