//! Middleware: layers that are asked before a call, after it, before a stop and where sessions and
//! rounds begin and end. Functions of a host and programs of a config are asked alike; how each
//! fails is here, what follows from what they say is the core's.

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
    MiddlewareToolCallAnswer, MiddlewareToolResultAnswer, RoundEndForMiddleware,
    SessionEndForMiddleware, SessionStart, ToolResult, tool_result_text,
};

/// How long a layer may take, if nothing else is said.
pub(crate) const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(5);

/// A layer of middleware, as a function of this process. A stage that it is not registered for is
/// never asked. Each question comes on a thread of its own: what blocks holds up nobody but the
/// call that it is about, and that not beyond the layer's time limit.
///
/// What it cannot judge it says so (`CannotTell`): its stance decides then, as it does when it
/// panics or takes too long.
pub trait Middleware: Send + Sync {
    /// The agent wants to use a tool, and nothing else refuses that.
    fn before_tool(&self, _call: &BeforeToolQuestion) -> MiddlewareToolCallAnswer {
        MiddlewareToolCallAnswer::Pass
    }

    /// A tool came back. What is made of the result is what the agent gets.
    fn after_tool(&self, _result: &ToolResult) -> MiddlewareToolResultAnswer {
        MiddlewareToolResultAnswer::Keep
    }

    /// The same result, once the agent has seen it: what is made of it here is what later rounds
    /// of the conversation have.
    fn rewrite_result_for_later_rounds(&self, _result: &ToolResult) -> MiddlewareToolResultAnswer {
        MiddlewareToolResultAnswer::Keep
    }

    /// One model response and all its calls are over.
    fn on_round_end(&self, _round: &RoundEndForMiddleware) {}

    /// The agent says that it is done.
    fn before_stop(&self, _stop: &BeforeStopQuestion) -> BeforeStopAnswer {
        BeforeStopAnswer::Pass
    }

    /// A session began, or was taken up again.
    fn on_session_start(&self, _session: &SessionStart) {}

    /// It is over.
    fn on_session_end(&self, _session: &SessionEndForMiddleware) {}
}

/// A layer with its place, time limit and stance.
#[derive(Clone)]
pub struct MiddlewareLayer {
    name: String,
    on: Vec<MiddlewareStage>,
    order: i32,
    limit: Duration,
    blocks: bool,
    who: MiddlewareBackend,
}

/// Who is asked.
#[derive(Clone)]
enum MiddlewareBackend {
    /// A function of this process.
    InProcess {
        middleware: Arc<dyn Middleware>,
        /// Questions that were given up and have not come back.
        hanging: Arc<AtomicUsize>,
    },
    /// A program, by its command.
    Program(String),
}

impl MiddlewareLayer {
    /// A function of this process, asked at these stages: five seconds for an answer, and what it
    /// cannot judge is refused.
    pub fn new(name: &str, on: &[MiddlewareStage], middleware: impl Middleware + 'static) -> Self {
        let hanging = Arc::default();
        let middleware: Arc<dyn Middleware> = Arc::new(middleware);
        Self::new_layer_with_backend(
            name,
            on,
            MiddlewareBackend::InProcess {
                middleware,
                hanging,
            },
        )
    }

    /// A program that is asked, as `[[middleware]]` of a config has one.
    pub fn new_program_layer(name: &str, on: &[MiddlewareStage], run: &str) -> Self {
        Self::new_layer_with_backend(name, on, MiddlewareBackend::Program(run.to_owned()))
    }

    fn new_layer_with_backend(name: &str, on: &[MiddlewareStage], who: MiddlewareBackend) -> Self {
        Self {
            name: name.to_owned(),
            on: on.to_vec(),
            order: 0,
            limit: DEFAULT_TIME_LIMIT,
            blocks: true,
            who,
        }
    }

    /// Lower numbers are asked first; of equal ones those of the config, then whichever was
    /// registered first.
    #[must_use]
    pub fn with_layer_order(mut self, order: i32) -> Self {
        self.order = order;
        self
    }

    /// How long it may take for one answer.
    #[must_use]
    pub fn with_layer_time_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// What it cannot judge passes. It is recorded, and a task in which that happened is never
    /// `task_complete`.
    #[must_use]
    pub fn with_fail_open(mut self) -> Self {
        self.blocks = false;
        self
    }

    fn from_spec(spec: &MiddlewareSpec) -> Self {
        let limit = Duration::from_millis(spec.timeout_ms);
        let mut layer = Self::new_program_layer(spec.name.as_str(), &spec.on, &spec.run);
        (layer.order, layer.limit, layer.blocks) = (spec.order, limit, spec.blocks);
        layer
    }
}

/// Layers that a host registers, and removes, while it runs. Clones are the same list.
#[derive(Clone, Default)]
pub struct MiddlewareRegistry(Arc<Mutex<MiddlewareRegistryEntries>>);

#[derive(Default)]
struct MiddlewareRegistryEntries {
    next: u64,
    layers: Vec<(u64, MiddlewareLayer)>,
}

/// A registered layer. It stays when this is dropped.
pub struct MiddlewareRegistration {
    id: u64,
    layers: MiddlewareRegistry,
}

impl MiddlewareRegistry {
    /// From the next question on it is asked.
    pub fn register_middleware_layer(&self, layer: MiddlewareLayer) -> MiddlewareRegistration {
        let mut list = self.lock_middleware_layers();
        let id = list.next;
        list.next += 1;
        list.layers.push((id, layer));
        MiddlewareRegistration {
            id,
            layers: self.clone(),
        }
    }

    fn lock_middleware_layers(&self) -> MutexGuard<'_, MiddlewareRegistryEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of a policy, and those that hosts have registered.
#[derive(Clone, Copy)]
struct ActiveMiddleware<'a> {
    policy: &'a Policy,
    hosts: &'a [MiddlewareRegistry],
}

impl ActiveMiddleware<'_> {
    fn is_empty(self) -> bool {
        let none = |layers: &MiddlewareRegistry| layers.lock_middleware_layers().layers.is_empty();
        self.policy.middleware.is_empty() && self.hosts.iter().all(none)
    }

    /// Whether anybody is asked at any of these stages.
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

    /// Who is asked at this stage, in order.
    fn layers_at_stage(self, stage: MiddlewareStage) -> Vec<MiddlewareLayer> {
        let of_config = self
            .policy
            .middleware
            .iter()
            .map(MiddlewareLayer::from_spec);
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
        all.sort_by_key(|layer| layer.order);
        all
    }
}

impl MiddlewareRegistration {
    /// From the next question on it is not asked any more.
    pub fn unregister_middleware_layer(self) {
        let mut list = self.layers.lock_middleware_layers();
        list.layers.retain(|(id, _)| *id != self.id);
    }
}

/// At which stages anything is asked, as far as a front door can do what is said there.
#[derive(Debug, Clone, Copy)]
pub struct FrontEndMiddlewareStages {
    /// Those.
    pub supported: &'static [MiddlewareStage],
    /// What it is, as a person is told.
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

    /// Before an MCP server: nobody tells it of rounds, stops and conversations.
    pub const PROXY: Self = Self {
        supported: &[
            MiddlewareStage::SessionStart,
            MiddlewareStage::BeforeTool,
            MiddlewareStage::AfterTool,
            MiddlewareStage::SessionEnd,
        ],
        entry_point: "before an MCP server",
    };

    /// What a person should know of a policy that wants more.
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
