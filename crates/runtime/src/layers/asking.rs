//! Whom to ask about what came in, one after the other, and what of it is put down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use checkrein_core::decision::ToolDecision;
use checkrein_core::ids::{LayerName, ScopeId, SessionId};
use checkrein_core::input::{Input, SessionStartKind};
use checkrein_core::layers::{
    MiddlewareAnswer, MiddlewareAnswerFact, MiddlewareStage, withheld_result_notice,
};
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use serde_json::Value;

use super::question::{Question, Says, text_of};
use super::{
    About, All, BeforeStop, BeforeTool, CallSays, Layer, ResultSays, RoundEnd, SessionEnd,
    SessionStart, StopSays, ToolResult, Who, exec, hand,
};
use crate::delivery::{Delivery, Patience, Rewritten};
use crate::driver::Runtime;
use crate::error::RuntimeError;
use crate::fit;
use crate::repeats::scope_of;
use crate::transaction::AsItStands;

/// Who is told that a session is over gets so long once somebody wants us to go.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often it is looked at whether somebody does.
const TICK: Duration = Duration::from_millis(25);

/// News as it came, before anything of it was bounded or hidden: that is what layers are shown.
pub(crate) struct AsItCame<'a> {
    /// The arguments of a call.
    pub(crate) args: &'a str,
    /// The last message.
    pub(crate) message: &'a str,
}

impl Runtime {
    /// Whether any layer is to be asked about this.
    pub(crate) fn has_layers(&self, policy: &Policy, delivery: &Delivery<'_>) -> bool {
        // Most policies have none, and hooks are to pay nothing for that.
        if self.layers_of(policy).is_empty() {
            return false;
        }
        let stages = self.stages_of(delivery);
        !stages.is_empty() && self.layers_of(policy).listen(&stages)
    }

    /// Whether any layer of this session is asked at one of these stages.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn listens(
        &self,
        session: &SessionId,
        stages: &[MiddlewareStage],
    ) -> Result<bool, RuntimeError> {
        let asked = |stage: &&MiddlewareStage| self.stages.asked.contains(stage);
        let stages: Vec<MiddlewareStage> = stages.iter().filter(asked).copied().collect();
        if stages.is_empty() {
            return Ok(false);
        }
        let policy = self.peek(session)?.map(|(_, policy)| policy);
        Ok(policy.is_some_and(|policy| self.layers_of(&policy).listen(&stages)))
    }

    fn layers_of<'a>(&'a self, policy: &'a Policy) -> All<'a> {
        All {
            policy,
            hosts: &self.layers,
        }
    }

    fn stages_of(&self, delivery: &Delivery<'_>) -> Vec<MiddlewareStage> {
        let stages: &[MiddlewareStage] = match &delivery.input {
            Input::SessionStarted(_) => &[MiddlewareStage::SessionStart],
            Input::ToolRequested(_) => &[MiddlewareStage::BeforeTool],
            Input::ToolReturned(_) if delivery.returned.is_some() => {
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
        let here = |stage: &&MiddlewareStage| self.stages.asked.contains(stage);
        stages.iter().filter(here).copied().collect()
    }

    /// Asks all layers that are to be asked about this, and puts down what they say.
    ///
    /// # Errors
    /// If somebody wanted us to go meanwhile: what was given up for that is no answer.
    pub(crate) fn consult(
        &self,
        delivery: &mut Delivery<'_>,
        came: &AsItCame<'_>,
        stands: &AsItStands,
        patience: Patience<'_>,
    ) -> Result<Rewritten, RuntimeError> {
        let AsItStands { state, policy, .. } = stands;
        let about = self.about(delivery, policy, state);
        let mut facts = Vec::new();
        let mut rewritten = Rewritten::default();
        let stages = self.stages_of(delivery);
        let rounds = state.task.as_ref().map_or(0, |task| task.totals.rounds);
        let stops = state.task.as_ref().map_or(0, |task| task.stops);
        match &delivery.input {
            Input::ToolRequested(request) if !self.is_refused(stands, delivery) => {
                let question = Question::BeforeTool(BeforeTool {
                    about,
                    call: request.call_id.clone(),
                    tool: request.tool.clone(),
                    args: read(came.args),
                });
                facts = self.of_call(policy, &question, patience);
            }
            Input::ToolReturned(returned) => {
                if let Some(said) = delivery.returned {
                    let result = ToolResult {
                        about,
                        call: returned.call_id.clone(),
                        tool: said.tool.to_owned(),
                        args: said.args.clone(),
                        failed: returned.error,
                        text: text_of(said.result),
                        result: said.result.clone(),
                    };
                    rewritten = self.of_result(policy, &stages, result, &mut facts, patience);
                }
            }
            Input::StopRequested(stop) => {
                let start = state.task.as_ref().and_then(|task| task.start.as_ref());
                let now = stop.tree.as_ref().ok();
                let changed = start.zip(now).map(|(start, now)| start.tree != now.tree);
                let question = Question::BeforeStop(BeforeStop {
                    about,
                    stop: stops + 1,
                    changed,
                    message: came.message.to_owned(),
                });
                facts = self.one_by_one(policy, MiddlewareStage::BeforeStop, &question, patience);
            }
            Input::RoundEnded(_) => {
                let round = rounds + 1;
                let question = Question::RoundEnd(RoundEnd { about, round });
                facts = self.one_by_one(policy, MiddlewareStage::RoundEnd, &question, patience);
            }
            Input::SessionStarted(started) => {
                let how = how(started.how).to_owned();
                let question = Question::SessionStart(SessionStart { about, how });
                facts = self.one_by_one(policy, MiddlewareStage::SessionStart, &question, patience);
            }
            Input::SessionEnded(ended) => {
                let why = ended.native_reason.clone();
                let question = Question::SessionEnd(SessionEnd { about, why });
                facts = self.one_by_one(policy, MiddlewareStage::SessionEnd, &question, patience);
            }
            _ => {}
        }
        let decides = matches!(
            delivery.input,
            Input::ToolRequested(_) | Input::StopRequested(_)
        );
        if decides && patience.cancelled.load(Ordering::Relaxed) {
            return Err(RuntimeError::Cancelled);
        }
        fit::layers(&self.redactor, &mut facts);
        delivery.layers = facts;
        Ok(rewritten)
    }

    fn about(&self, delivery: &Delivery<'_>, policy: &Policy, state: &SessionState) -> About {
        let scope = scope_of(&delivery.input);
        let started = match &delivery.input {
            Input::SessionStarted(started) => Some(&started.agent),
            _ => None,
        };
        let agent = state.agent.as_ref().or(started);
        About {
            session: delivery.session.as_str().to_owned(),
            scope: (scope != ScopeId::main_scope()).then(|| scope.as_str().to_owned()),
            agent: agent.map(|agent| agent.as_str().to_owned()),
            root: self.place.root.clone(),
            goal: policy.goal.clone(),
        }
    }

    /// Whether a call is refused whatever layers say. What only a person could let run is asked
    /// about: a layer that is against it saves them the question.
    fn is_refused(&self, stands: &AsItStands, delivery: &Delivery<'_>) -> bool {
        let decision = self.as_it_stands(stands, delivery);
        matches!(
            decision,
            Some(ToolDecision::Deny { .. } | ToolDecision::Halt { .. })
        )
    }

    /// Until one is against it: nothing that another could say is severer.
    fn of_call(
        &self,
        policy: &Policy,
        question: &Question,
        patience: Patience<'_>,
    ) -> Vec<MiddlewareAnswerFact> {
        let mut facts = Vec::new();
        for layer in self.layers_of(policy).asked(MiddlewareStage::BeforeTool) {
            let (fact, _) = self.put(
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

    /// All of them: an agent that is sent back hears all that is in the way.
    fn one_by_one(
        &self,
        policy: &Policy,
        stage: MiddlewareStage,
        question: &Question,
        patience: Patience<'_>,
    ) -> Vec<MiddlewareAnswerFact> {
        let layers = self.layers_of(policy).asked(stage);
        let put = |layer: &Layer| self.put(layer, stage, question.clone(), patience).0;
        layers.iter().map(put).collect()
    }

    /// Each is shown what those before it made of the result.
    fn of_result(
        &self,
        policy: &Policy,
        stages: &[MiddlewareStage],
        mut result: ToolResult,
        facts: &mut Vec<MiddlewareAnswerFact>,
        patience: Patience<'_>,
    ) -> Rewritten {
        let mut rewritten = Rewritten::default();
        for stage in [MiddlewareStage::AfterTool, MiddlewareStage::PersistResult] {
            if !stages.contains(&stage) {
                continue;
            }
            let mut made = None;
            for layer in self.layers_of(policy).asked(stage) {
                let question = match stage {
                    MiddlewareStage::PersistResult => Question::PersistResult(result.clone()),
                    _ => Question::AfterTool(result.clone()),
                };
                let (fact, new) = self.put(&layer, stage, question, patience);
                facts.push(fact);
                let new = withheld_result_notice(facts, stage)
                    .map(Value::String)
                    .or(new);
                if let Some(new) = new {
                    result.text = text_of(&new);
                    result.result = new.clone();
                    made = Some(new);
                }
                if withheld_result_notice(facts, stage).is_some() {
                    break;
                }
            }
            match stage {
                MiddlewareStage::PersistResult => rewritten.kept = made,
                _ => rewritten.given = made,
            }
        }
        rewritten
    }

    /// Asks one layer; with what it makes of a result.
    fn put(
        &self,
        layer: &Layer,
        stage: MiddlewareStage,
        question: Question,
        patience: Patience<'_>,
    ) -> (MiddlewareAnswerFact, Option<Value>) {
        let began = Instant::now();
        let said = match limit(layer.limit, patience) {
            None => Err("it was not asked: the answer was due".to_owned()),
            Some(limit) => {
                let ask = |cancelled: &AtomicBool| match &layer.who {
                    Who::Here {
                        middleware,
                        hanging,
                    } => hand::ask(middleware, hanging, question, limit, cancelled),
                    Who::Program(run) => {
                        exec::ask(&self.place, &layer.name, run, &question, limit, cancelled)
                    }
                };
                match stage {
                    MiddlewareStage::SessionEnd => with_farewell(patience.cancelled, ask),
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
        let failed = match said {
            Err(why) => Some(why),
            Ok(
                Says::Call(CallSays::CannotTell(why))
                | Says::Result(ResultSays::CannotTell(why))
                | Says::Stop(StopSays::CannotTell(why)),
            ) => Some(why),
            Ok(Says::Seen | Says::Call(CallSays::Pass) | Says::Stop(StopSays::Pass)) => None,
            Ok(Says::Result(ResultSays::Keep)) => None,
            Ok(Says::Call(CallSays::Nudge(text))) => {
                (fact.says, fact.reason) = (MiddlewareAnswer::Nudge, text);
                None
            }
            Ok(Says::Call(CallSays::Ask(why))) => {
                (fact.says, fact.reason) = (MiddlewareAnswer::Ask, why);
                None
            }
            Ok(Says::Call(CallSays::Deny(why)) | Says::Stop(StopSays::Deny(why))) => {
                (fact.says, fact.reason) = (MiddlewareAnswer::Deny, why);
                None
            }
            Ok(Says::Call(CallSays::Rewrite { args, reason })) => match args.is_object() {
                true => {
                    (fact.says, fact.reason) = (MiddlewareAnswer::Rewrite, reason);
                    fact.arguments = Some(args.to_string());
                    None
                }
                false => Some("the arguments that it would have are no object".to_owned()),
            },
            Ok(Says::Result(ResultSays::Text(text))) => {
                fact.says = MiddlewareAnswer::Rewrite;
                made = Some(Value::String(text));
                None
            }
            Ok(Says::Result(ResultSays::Whole(result))) => {
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

/// Who is told that a session is over is often told so because somebody wanted us to go: what it is
/// given up by comes a while after that.
fn with_farewell<T>(cancelled: &AtomicBool, ask: impl FnOnce(&AtomicBool) -> T) -> T {
    let up = AtomicBool::new(false);
    let given_up = &up;
    let (over, is_over) = channel::<()>();
    std::thread::scope(move |scope| {
        let watch = move || {
            let mut until = None;
            while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if cancelled.load(Ordering::Relaxed) {
                    let until = *until.get_or_insert_with(|| Instant::now() + FAREWELL);
                    given_up.store(Instant::now() >= until, Ordering::Relaxed);
                }
            }
        };
        let watches = std::thread::Builder::new().spawn_scoped(scope, watch);
        let said = ask(if watches.is_ok() { given_up } else { cancelled });
        drop(over);
        said
    })
}

/// Its own, or most of what is left before the answer is due.
fn limit(own: Duration, patience: Patience<'_>) -> Option<Duration> {
    let Some(deadline) = patience.deadline else {
        return Some(own);
    };
    let left = deadline.saturating_duration_since(Instant::now());
    (!left.is_zero()).then(|| own.min(left / 4 * 3))
}

/// Arguments as they came; what is no JSON is a text.
fn read(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_else(|_| Value::String(args.to_owned()))
}

fn how(how: SessionStartKind) -> &'static str {
    match how {
        SessionStartKind::Startup => "startup",
        SessionStartKind::Resume => "resume",
        SessionStartKind::Clear => "clear",
        SessionStartKind::Compact => "compact",
        SessionStartKind::Fork => "fork",
        SessionStartKind::Other => "other",
    }
}
