//! Asks the middleware layers about an event, one after another, and records their answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use checkrein_core::decision::ToolDecision;
use checkrein_core::ids::{LayerName, ScopeId, SessionId};
use checkrein_core::input::{Input, RoundEnded, SessionStartKind};
use checkrein_core::middleware::{
    MiddlewareAnswer, MiddlewareAnswerFact, MiddlewareStage, withheld_result_notice,
};
use checkrein_core::policy::Policy;
use checkrein_core::state::{CALL_WINDOW_LEN, SessionState};
use serde_json::Value;

use super::question::{AnyMiddlewareAnswer, MiddlewareQuestion, tool_result_text};
use super::{
    ActiveMiddlewareLayers, BeforeStopAnswer, BeforeStopQuestion, BeforeToolQuestion,
    FunctionOrProgramMiddleware, MiddlewareLayer, MiddlewareSessionContext,
    MiddlewareToolCallAnswer, MiddlewareToolResultAnswer, RecentCallForMiddleware, RoundEndAnswer,
    RoundEndForMiddleware, SessionEndForMiddleware, SessionStart, ToolResult, in_process, program,
};
use crate::bound;
use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, EventDelivery, RewrittenToolResult};
use crate::idempotency::scope_id_of_input;
use crate::runtime::Runtime;
use crate::transaction::StateBeforeInput;

/// How long layers that hear of a session's end keep running after a cancellation.
const CANCEL_DELAY: Duration = Duration::from_secs(1);
/// How often the cancellation is looked at.
const TICK: Duration = Duration::from_millis(25);

/// The texts of an event before anything of them was bounded or redacted: layers see all of it.
pub(crate) struct UnredactedEventTexts<'a> {
    /// The arguments of a call.
    pub(crate) args: &'a str,
    /// The last message.
    pub(crate) message: &'a str,
}

impl Runtime {
    /// Whether any layer is to be asked about this event.
    pub(crate) fn has_middleware_for_event(
        &self,
        policy: &Policy,
        delivery: &EventDelivery<'_>,
    ) -> bool {
        // Most policies have no layers, and hooks should pay nothing for that.
        if self.active_middleware_layers(policy).is_empty() {
            return false;
        }
        let stages = self.middleware_stages_of_event(delivery);
        !stages.is_empty()
            && self
                .active_middleware_layers(policy)
                .has_layers_at_stages(&stages)
    }

    /// Whether any layer of this session is asked at one of these stages.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn has_middleware_at_stages(
        &self,
        session: &SessionId,
        stages: &[MiddlewareStage],
    ) -> Result<bool, RuntimeError> {
        let asked = |stage: &&MiddlewareStage| self.stages.supported.contains(stage);
        let stages: Vec<MiddlewareStage> = stages.iter().filter(asked).copied().collect();
        if stages.is_empty() {
            return Ok(false);
        }
        let policy = self
            .load_session_state_and_policy(session)?
            .map(|(_, policy)| policy);
        Ok(policy.is_some_and(|policy| {
            self.active_middleware_layers(&policy)
                .has_layers_at_stages(&stages)
        }))
    }

    fn active_middleware_layers<'a>(&'a self, policy: &'a Policy) -> ActiveMiddlewareLayers<'a> {
        ActiveMiddlewareLayers {
            policy,
            hosts: &self.layers,
        }
    }

    fn middleware_stages_of_event(&self, delivery: &EventDelivery<'_>) -> Vec<MiddlewareStage> {
        let stages: &[MiddlewareStage] = match &delivery.input {
            Input::SessionStarted(_) => &[MiddlewareStage::SessionStart],
            Input::ToolRequested(_) => &[MiddlewareStage::BeforeTool],
            // Without a response there is no result to rewrite.
            Input::ToolReturned(_) if delivery.tool_response.is_some() => {
                &[MiddlewareStage::AfterTool, MiddlewareStage::PersistResult]
            }
            Input::RoundEnded(_) => &[MiddlewareStage::RoundEnd],
            // A sub-agent's stop is not the task's.
            Input::StopRequested(stop) if stop.scope.is_main_scope() => {
                &[MiddlewareStage::BeforeStop]
            }
            Input::SessionEnded(_) => &[MiddlewareStage::SessionEnd],
            _ => &[],
        };
        let here = |stage: &&MiddlewareStage| self.stages.supported.contains(stage);
        stages.iter().filter(here).copied().collect()
    }

    /// Asks every layer that is due for this event, and records the answers in the delivery.
    ///
    /// # Errors
    /// If the run is cancelled meanwhile: a layer that was given up for that has not answered.
    pub(crate) fn consult_middleware_layers(
        &self,
        delivery: &mut EventDelivery<'_>,
        came: &UnredactedEventTexts<'_>,
        stands: &StateBeforeInput,
        patience: Deadline<'_>,
    ) -> Result<RewrittenToolResult, RuntimeError> {
        let StateBeforeInput { state, policy, .. } = stands;
        let about = self.session_facts_for_middleware(delivery, policy, state);
        let mut facts = Vec::new();
        let mut rewritten = RewrittenToolResult::default();
        let stages = self.middleware_stages_of_event(delivery);
        let stops = state.task.as_ref().map_or(0, |task| task.stops);
        match &delivery.input {
            // A call that is refused anyway is shown to no layer.
            Input::ToolRequested(request)
                if !self.is_refused_without_middleware(stands, delivery) =>
            {
                let question = MiddlewareQuestion::BeforeTool(BeforeToolQuestion {
                    about,
                    call: request.call_id.clone(),
                    tool: request.tool.clone(),
                    args: parse_arguments_or_keep_text(came.args),
                });
                facts = self.ask_middleware_until_refused(policy, &question, patience);
            }
            Input::ToolReturned(returned) => {
                if let Some(said) = delivery.tool_response {
                    let result = ToolResult {
                        about,
                        call: returned.call_id.clone(),
                        tool: said.tool.to_owned(),
                        args: said.args.clone(),
                        failed: returned.error,
                        text: tool_result_text(said.result),
                        result: said.result.clone(),
                    };
                    rewritten = self.rewrite_result_by_middleware(
                        policy, &stages, result, &mut facts, patience,
                    );
                }
            }
            Input::StopRequested(stop) => {
                let start = state.task.as_ref().and_then(|task| task.start.as_ref());
                let now = stop.tree.as_ref().ok();
                let changed = start.zip(now).map(|(start, now)| start.tree != now.tree);
                let question = MiddlewareQuestion::BeforeStop(BeforeStopQuestion {
                    about,
                    // The counter is that of the state before this stop.
                    stop: stops + 1,
                    changed,
                    message: came.message.to_owned(),
                });
                facts = self.ask_all_middleware_layers(
                    policy,
                    MiddlewareStage::BeforeStop,
                    &question,
                    patience,
                );
            }
            Input::RoundEnded(round) => {
                let question =
                    MiddlewareQuestion::RoundEnd(round_for_middleware(about, state, round));
                facts = self.ask_all_middleware_layers(
                    policy,
                    MiddlewareStage::RoundEnd,
                    &question,
                    patience,
                );
            }
            Input::SessionStarted(started) => {
                let how = session_start_kind_name(started.how).to_owned();
                let question = MiddlewareQuestion::SessionStart(SessionStart { about, how });
                facts = self.ask_all_middleware_layers(
                    policy,
                    MiddlewareStage::SessionStart,
                    &question,
                    patience,
                );
            }
            Input::SessionEnded(ended) => {
                let why = ended.native_reason.clone();
                let question =
                    MiddlewareQuestion::SessionEnd(SessionEndForMiddleware { about, why });
                facts = self.ask_all_middleware_layers(
                    policy,
                    MiddlewareStage::SessionEnd,
                    &question,
                    patience,
                );
            }
            _ => {}
        }
        let decides = matches!(
            delivery.input,
            Input::ToolRequested(_) | Input::StopRequested(_)
        );
        // A layer that the cancellation cut off has answered by its stance. No decision may rest on
        // that.
        if decides && patience.cancelled.load(Ordering::Relaxed) {
            return Err(RuntimeError::Cancelled);
        }
        bound::redact_and_limit_middleware_facts(&self.redactor, &mut facts);
        delivery.layers = facts;
        Ok(rewritten)
    }

    fn session_facts_for_middleware(
        &self,
        delivery: &EventDelivery<'_>,
        policy: &Policy,
        state: &SessionState,
    ) -> MiddlewareSessionContext {
        let scope = scope_id_of_input(&delivery.input);
        let started = match &delivery.input {
            Input::SessionStarted(started) => Some(&started.agent),
            _ => None,
        };
        let agent = state.agent.as_ref().or(started);
        MiddlewareSessionContext {
            session: delivery.session.as_str().to_owned(),
            scope: (scope != ScopeId::main_scope()).then(|| scope.as_str().to_owned()),
            agent: agent.map(|agent| agent.as_str().to_owned()),
            root: self.place.root.clone(),
            goal: policy.goal.clone(),
        }
    }

    /// Whether a call is refused whatever layers say. A call that a person would be asked about
    /// goes to the layers: one that denies it saves the person the question.
    fn is_refused_without_middleware(
        &self,
        stands: &StateBeforeInput,
        delivery: &EventDelivery<'_>,
    ) -> bool {
        let decision = self.provisional_tool_decision(stands, delivery);
        matches!(
            decision,
            Some(ToolDecision::Deny { .. } | ToolDecision::Halt { .. })
        )
    }

    /// Asks layers until one refuses: no other answer could be more severe.
    fn ask_middleware_until_refused(
        &self,
        policy: &Policy,
        question: &MiddlewareQuestion,
        patience: Deadline<'_>,
    ) -> Vec<MiddlewareAnswerFact> {
        let mut facts = Vec::new();
        for layer in self
            .active_middleware_layers(policy)
            .layers_at_stage(MiddlewareStage::BeforeTool)
        {
            let (fact, _) = self.ask_middleware_layer(
                &layer,
                MiddlewareStage::BeforeTool,
                question.clone(),
                patience,
            );
            let over = fact.is_middleware_refusal();
            facts.push(fact);
            if over {
                break;
            }
        }
        facts
    }

    /// Asks all layers, so that an agent that is sent back hears everything that is in the way.
    fn ask_all_middleware_layers(
        &self,
        policy: &Policy,
        stage: MiddlewareStage,
        question: &MiddlewareQuestion,
        patience: Deadline<'_>,
    ) -> Vec<MiddlewareAnswerFact> {
        let layers = self.active_middleware_layers(policy).layers_at_stage(stage);
        let put = |layer: &MiddlewareLayer| {
            self.ask_middleware_layer(layer, stage, question.clone(), patience)
                .0
        };
        layers.iter().map(put).collect()
    }

    /// Passes a result through the layers; each sees what those before it made of it.
    fn rewrite_result_by_middleware(
        &self,
        policy: &Policy,
        stages: &[MiddlewareStage],
        mut result: ToolResult,
        facts: &mut Vec<MiddlewareAnswerFact>,
        patience: Deadline<'_>,
    ) -> RewrittenToolResult {
        let mut rewritten = RewrittenToolResult::default();
        // `persist_result` starts from what `after_tool` made, so later rounds never hold more than
        // the agent got.
        for stage in [MiddlewareStage::AfterTool, MiddlewareStage::PersistResult] {
            if !stages.contains(&stage) {
                continue;
            }
            let mut made = None;
            for layer in self.active_middleware_layers(policy).layers_at_stage(stage) {
                let question = match stage {
                    MiddlewareStage::PersistResult => {
                        MiddlewareQuestion::PersistResult(result.clone())
                    }
                    _ => MiddlewareQuestion::AfterTool(result.clone()),
                };
                let (fact, new) = self.ask_middleware_layer(&layer, stage, question, patience);
                facts.push(fact);
                // A layer that could not judge withholds the result if its stance blocks. The
                // notice replaces whatever it made.
                let new = withheld_result_notice(facts, stage)
                    .map(Value::String)
                    .or(new);
                if let Some(new) = new {
                    result.text = tool_result_text(&new);
                    result.result = new.clone();
                    made = Some(new);
                }
                // The layers after it would only see the notice.
                if withheld_result_notice(facts, stage).is_some() {
                    break;
                }
            }
            match stage {
                MiddlewareStage::PersistResult => rewritten.for_history = made,
                _ => rewritten.for_agent = made,
            }
        }
        rewritten
    }

    /// Asks one layer. Also returns what it made of a result.
    fn ask_middleware_layer(
        &self,
        layer: &MiddlewareLayer,
        stage: MiddlewareStage,
        question: MiddlewareQuestion,
        patience: Deadline<'_>,
    ) -> (MiddlewareAnswerFact, Option<Value>) {
        let began = Instant::now();
        let said = match middleware_layer_timeout(layer.limit, patience) {
            None => Err("it was not asked: the answer was due".to_owned()),
            Some(limit) => {
                let ask = |cancelled: &AtomicBool| match &layer.who {
                    FunctionOrProgramMiddleware::InProcess {
                        middleware,
                        hanging,
                    } => in_process::ask_middleware_in_process(
                        middleware, hanging, question, limit, cancelled,
                    ),
                    FunctionOrProgramMiddleware::Program(run) => program::ask_middleware_program(
                        &self.place,
                        &layer.name,
                        run,
                        &question,
                        limit,
                        cancelled,
                    ),
                };
                match stage {
                    MiddlewareStage::SessionEnd => {
                        ask_layer_with_cancel_grace(patience.cancelled, ask)
                    }
                    _ => ask(patience.cancelled),
                }
            }
        };
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut fact = MiddlewareAnswerFact {
            layer: LayerName::new(layer.name.as_str()),
            stage,
            says: MiddlewareAnswer::Pass,
            reason: String::new(),
            arguments: None,
            ms,
        };
        let mut made = None;
        // Whatever is no judgement ends up in `failed`, and the stance decides below.
        let failed = match said {
            Err(why) => Some(why),
            Ok(
                AnyMiddlewareAnswer::Call(MiddlewareToolCallAnswer::CannotTell(why))
                | AnyMiddlewareAnswer::Result(MiddlewareToolResultAnswer::CannotTell(why))
                | AnyMiddlewareAnswer::Stop(BeforeStopAnswer::CannotTell(why))
                | AnyMiddlewareAnswer::Round(RoundEndAnswer::CannotTell(why)),
            ) => Some(why),
            Ok(
                AnyMiddlewareAnswer::Acknowledged
                | AnyMiddlewareAnswer::Call(MiddlewareToolCallAnswer::Pass)
                | AnyMiddlewareAnswer::Stop(BeforeStopAnswer::Pass)
                | AnyMiddlewareAnswer::Round(RoundEndAnswer::Pass),
            ) => None,
            Ok(AnyMiddlewareAnswer::Result(MiddlewareToolResultAnswer::Keep)) => None,
            Ok(
                AnyMiddlewareAnswer::Call(MiddlewareToolCallAnswer::Nudge(text))
                | AnyMiddlewareAnswer::Round(RoundEndAnswer::Nudge(text)),
            ) => {
                (fact.says, fact.reason) = (MiddlewareAnswer::Nudge, text);
                None
            }
            Ok(
                AnyMiddlewareAnswer::Call(MiddlewareToolCallAnswer::Halt(why))
                | AnyMiddlewareAnswer::Round(RoundEndAnswer::Halt(why)),
            ) => {
                (fact.says, fact.reason) = (MiddlewareAnswer::Halt, why);
                None
            }
            Ok(AnyMiddlewareAnswer::Call(MiddlewareToolCallAnswer::Ask(why))) => {
                (fact.says, fact.reason) = (MiddlewareAnswer::Ask, why);
                None
            }
            Ok(
                AnyMiddlewareAnswer::Call(MiddlewareToolCallAnswer::Deny(why))
                | AnyMiddlewareAnswer::Stop(BeforeStopAnswer::Deny(why)),
            ) => {
                (fact.says, fact.reason) = (MiddlewareAnswer::Deny, why);
                None
            }
            Ok(AnyMiddlewareAnswer::Call(MiddlewareToolCallAnswer::Rewrite { args, reason })) => {
                // A call is made with an object; other arguments could not be used.
                match args.is_object() {
                    true => {
                        (fact.says, fact.reason) = (MiddlewareAnswer::Rewrite, reason);
                        fact.arguments = Some(args.to_string());
                        None
                    }
                    false => Some("the arguments that it would have are no object".to_owned()),
                }
            }
            Ok(AnyMiddlewareAnswer::Result(MiddlewareToolResultAnswer::Text(text))) => {
                fact.says = MiddlewareAnswer::Rewrite;
                made = Some(Value::String(text));
                None
            }
            Ok(AnyMiddlewareAnswer::Result(MiddlewareToolResultAnswer::Replacement(result))) => {
                fact.says = MiddlewareAnswer::Rewrite;
                made = Some(result);
                None
            }
        };
        if let Some(why) = failed {
            fact.reason = why;
            fact.says = match layer.blocks {
                true => MiddlewareAnswer::BlockedByStance,
                false => MiddlewareAnswer::PassedOver,
            };
        }
        (fact, made)
    }
}

/// Returns what layers are shown of a round.
fn round_for_middleware(
    about: MiddlewareSessionContext,
    state: &SessionState,
    round: &RoundEnded,
) -> RoundEndForMiddleware {
    let task = state.task.as_ref();
    let totals = task.map(|task| task.totals).unwrap_or_default();
    let window = task.and_then(|task| Some(&task.conversation_scope_by_id(&round.scope)?.window));
    let recent = window.into_iter().flatten();
    // The state is that before this round; its window may hold one call more than detectors look back at.
    let surplus = recent.clone().count().saturating_sub(CALL_WINDOW_LEN);
    let of_round = round.tokens.as_ref().map(|tokens| tokens.output);
    RoundEndForMiddleware {
        about,
        round: totals.rounds + 1,
        tool_calls: totals.tool_calls,
        output_tokens: match (totals.output_tokens, of_round) {
            (Some(before), Some(new)) => Some(before.saturating_add(new)),
            (known, new) => known.or(new),
        },
        recent_calls: recent
            .skip(surplus)
            .map(|call| RecentCallForMiddleware {
                call: format!("{:016x}", call.call.0),
                outcome: call.outcome.map(|outcome| format!("{outcome:08x}")),
                failed: call.failed,
            })
            .collect(),
    }
}

/// Asks with a delay on cancellation. Layers are often told of a session's end because of that
/// cancellation, so it must not cut them off at once.
fn ask_layer_with_cancel_grace<T>(cancelled: &AtomicBool, ask: impl FnOnce(&AtomicBool) -> T) -> T {
    let up = AtomicBool::new(false);
    let given_up = &up;
    let (over, is_over) = channel::<()>();
    std::thread::scope(move |scope| {
        let watch = move || {
            let mut until = None;
            // Dropping the other end, once there is an answer, ends this loop.
            while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if cancelled.load(Ordering::Relaxed) {
                    let until = *until.get_or_insert_with(|| Instant::now() + CANCEL_DELAY);
                    given_up.store(Instant::now() >= until, Ordering::Relaxed);
                }
            }
        };
        let watches = std::thread::Builder::new().spawn_scoped(scope, watch);
        // If no thread could be started, a cancellation counts at once.
        let said = ask(if watches.is_ok() { given_up } else { cancelled });
        drop(over);
        said
    })
}

/// The layer's own limit, or three quarters of what is left before the answer is due.
fn middleware_layer_timeout(own: Duration, patience: Deadline<'_>) -> Option<Duration> {
    let Some(deadline) = patience.due_at else {
        return Some(own);
    };
    let left = deadline.saturating_duration_since(Instant::now());
    // The rest of the time is for what follows, such as other layers.
    (!left.is_zero()).then(|| own.min(left / 4 * 3))
}

/// Parses the arguments; a text that is no JSON becomes a string.
fn parse_arguments_or_keep_text(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_else(|_| Value::String(args.to_owned()))
}

fn session_start_kind_name(how: SessionStartKind) -> &'static str {
    match how {
        SessionStartKind::Startup => "startup",
        SessionStartKind::Resume => "resume",
        SessionStartKind::Clear => "clear",
        SessionStartKind::Compact => "compact",
        SessionStartKind::Fork => "fork",
        SessionStartKind::Other => "other",
    }
}
