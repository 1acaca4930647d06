//! The loop: load → fold → step → append → perform → feed back, until there is a decision.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::event::{self, DecisionMade, EVENT_VERSION, Event, Repeatable};
use checkrein_core::evidence::{Evidence, EvidenceFact, Origin};
use checkrein_core::explain::Why;
use checkrein_core::feedback;
use checkrein_core::ids::{ScopeId, Seq, SessionId, SourceName, VerifierName};
use checkrein_core::input::{
    EvidenceArrived, Input, Stamped, TokenUse, TreeRead, TreeUnknown,
};
use checkrein_core::policy::Policy;
use checkrein_core::state::State;
use checkrein_core::step::{Step, step};
use checkrein_core::transition::Transition;
use checkrein_store::{Batch, EffectRow, NewEvent, Store, StoreError, Tail};

use crate::config::{Compiled, ConfigError};
use crate::error::RuntimeError;
use crate::perform::{Progress, Wanted};
use crate::workspace::{PROMPT_LIMIT, Place};
use crate::{clock, facts, load, summary};

/// The state is cached this often, and at each stop decision.
const CACHE_EVERY: u64 = 64;
/// How long to wait before looking again for what another process is finding out.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Compiles the policy of a new session. Called at most once, and only for a new one.
pub type Seal = dyn Fn() -> Result<Compiled, ConfigError> + Send + Sync;

/// Reads token use from a cursor on; `None` if it cannot be known.
pub type Usage<'a> = &'a dyn Fn(&str) -> Option<TokenUse>;

/// News, as a front door hands it in.
pub struct Delivery<'a> {
    /// Whose.
    pub session: SessionId,
    /// By which installed entry.
    pub source: SourceName,
    /// Native id with the event's name, if the agent gives one.
    pub key: Option<String>,
    /// What happened; facts, tree and tokens are filled in here.
    pub input: Input,
    /// The command text of a shell tool.
    pub shell: Option<&'a str>,
    /// The command words of a shell tool that came as a list.
    pub argv: Option<&'a [String]>,
    /// Reads token use.
    pub usage: Option<Usage<'a>>,
}

/// How long the front door can wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// When the answer is due.
    pub deadline: Option<Instant>,
    /// Set on SIGTERM or Ctrl-C.
    pub cancelled: &'a AtomicBool,
}

/// An answer, with what is needed to say it.
#[derive(Debug)]
pub struct Decided {
    /// The input that was answered.
    pub seq: Seq,
    /// The answer.
    pub decision: Decision,
    /// The chain of facts behind it.
    pub why: Why,
    /// The rendered feedback of a refused stop.
    pub text: Option<String>,
    /// The session as it is now.
    pub state: State,
    /// Said once, when the policy was sealed.
    pub warnings: Vec<String>,
}

impl Decided {
    /// How the task ended, if this answer ended it.
    pub fn ending(&self) -> Option<Transition> {
        match &self.decision {
            Decision::Stop(StopDecision::Accept { transition }) => transition.clone(),
            Decision::Stop(StopDecision::Halt { transition }) => Some(transition.clone()),
            Decision::Stop(StopDecision::Continue { .. }) => None,
            Decision::Tool(ToolDecision::Halt { .. }) | Decision::Noted => {
                self.state.task.as_ref().and_then(|task| task.ended.clone())
            }
            Decision::Tool(_) => None,
        }
    }
}

/// One engine over one repo. Sessions share nothing mutable but the store (law 8).
pub struct Runtime {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) place: Place,
    seal: Box<Seal>,
}

/// What one transaction came to.
struct Handled {
    seq: Seq,
    scope: ScopeId,
    answer: Option<(Decision, Why)>,
    effects: Vec<Effect>,
    state: State,
    policy: Policy,
    warnings: Vec<String>,
}

impl Runtime {
    /// An engine over this store and place; `seal` compiles the policy of a new session.
    pub fn new(store: Arc<dyn Store>, place: Place, seal: Box<Seal>) -> Self {
        Self { store, place, seal }
    }

    /// Takes news in and answers it, performing what that needs.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge; the front door then answers by stance.
    pub fn take(
        &self,
        delivery: Delivery<'_>,
        patience: Patience<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Decided, RuntimeError> {
        let session = delivery.session.clone();
        let handled = self.handle(delivery)?;
        let settled = self.settle(&session, handled, patience, progress)?;
        let text = match &settled.answer.0 {
            Decision::Stop(StopDecision::Continue { feedback }) => {
                Some(feedback::render(feedback, &|key| self.evidence(key)))
            }
            _ => None,
        };
        let (decision, why) = settled.answer;
        Ok(Decided { seq: settled.seq, decision, why, text, state: settled.state, warnings: settled.warnings })
    }

    /// The evidence under this key, if it can be read.
    pub fn evidence(&self, key: &Digest) -> Option<Evidence> {
        let kept = self.store.evidence(key).ok().flatten()?;
        serde_json::from_slice(&kept.bytes).ok()
    }

    /// The session's state and policy; `None` for a session that has no log.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn peek(&self, session: &SessionId) -> Result<Option<(State, Policy)>, RuntimeError> {
        let mut found = Ok(None);
        self.store.transact(session, &mut |tail| {
            if tail.last() > Seq(0) {
                found = load::state(session, tail).and_then(|loaded| {
                    let policy = load::policy(session, &loaded.state, |digest| tail.blob(digest))?;
                    Ok(Some((loaded.state, policy)))
                });
            }
            Ok(None)
        })?;
        found
    }

    /// One transaction: tail, fold, step, append.
    fn handle(&self, mut delivery: Delivery<'_>) -> Result<Handled, RuntimeError> {
        let session = delivery.session.clone();
        let mut compiled: Option<Compiled> = None;
        self.read_subjects(&mut delivery, &mut compiled)?;
        loop {
            let mut outcome: Option<Result<Handled, RuntimeError>> = None;
            let written = self.store.transact(&session, &mut |tail| {
                match self.decide(tail, &delivery, compiled.as_ref()) {
                    Ok(None) => {
                        outcome = None;
                        Ok(None)
                    }
                    Ok(Some((handled, batch))) => {
                        outcome = Some(Ok(handled));
                        Ok(batch)
                    }
                    Err(RuntimeError::Store(error)) => Err(error),
                    Err(error) => {
                        outcome = Some(Err(error));
                        Ok(None)
                    }
                }
            });
            match written {
                // Somebody recorded the same news between our look and our write: look again.
                Err(StoreError::DuplicateKey { .. }) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            match outcome {
                Some(outcome) => return outcome,
                // A new session: compile outside the transaction, then try again.
                None => compiled = Some((self.seal)()?),
            }
        }
    }

    /// The tree, for inputs that are judged on it. Outside the transaction: it takes a while.
    fn read_subjects(
        &self,
        delivery: &mut Delivery<'_>,
        compiled: &mut Option<Compiled>,
    ) -> Result<(), RuntimeError> {
        if !matches!(delivery.input, Input::PromptSubmitted(_) | Input::StopRequested(_)) {
            return Ok(());
        }
        let policy = match self.peek(&delivery.session)? {
            Some((_, policy)) => policy,
            None => compiled.insert((self.seal)()?).policy.clone(),
        };
        match &mut delivery.input {
            Input::PromptSubmitted(prompt) => {
                self.place.begin_task(&delivery.session);
                let reading = self.place.read(Some(&delivery.session), &policy, Some(PROMPT_LIMIT));
                prompt.tree = reading.ok().map(|reading| reading.fact);
            }
            Input::StopRequested(stop) => {
                stop.tree = self
                    .place
                    .read(Some(&delivery.session), &policy, None)
                    .map(|reading| reading.fact)
                    .map_err(|error| TreeUnknown { why: error.to_string() });
            }
            _ => {}
        }
        Ok(())
    }

    /// Inside the transaction. `None`: the session is new and no policy is at hand.
    fn decide(
        &self,
        tail: &dyn Tail,
        delivery: &Delivery<'_>,
        compiled: Option<&Compiled>,
    ) -> Result<Option<(Handled, Option<Batch>)>, RuntimeError> {
        let session = &delivery.session;
        let loaded = load::state(session, tail)?;
        let mut state = loaded.state;
        let mut batch = Batch::default();
        let mut warnings = Vec::new();
        let policy = if state.policy.is_some() {
            load::policy(session, &state, |digest| tail.blob(digest))?
        } else {
            let Some(compiled) = compiled else { return Ok(None) };
            let blob = compiled.policy.to_blob();
            let sealed = Event::PolicySealed { policy: Digest::of(&blob), v: EVENT_VERSION };
            state.apply(&sealed);
            batch.events.push(row(&sealed, None));
            batch.blobs.push(blob);
            warnings.clone_from(&compiled.warnings);
            compiled.policy.clone()
        };
        let scope = scope_of(&delivery.input);
        let key = delivery.key.clone().or_else(|| counted_key(&state, delivery, &scope));
        if let Some(key) = &key
            && let Some(known) = tail.find_key(key)?
        {
            let answer = recorded_answer(session, tail, known, &delivery.input)?;
            if let Some(repeated) = repeated(&delivery.input, known, &delivery.source, &scope) {
                state.apply(&repeated);
                batch.events.push(row(&repeated, None));
            }
            let effects = outstanding(&state, &scope);
            let handled = Handled { seq: known, scope, answer, effects, state, policy, warnings };
            return Ok(Some((handled, Some(batch))));
        }

        let input = self.complete(&policy, &state, delivery);
        let stamped = Stamped { at: clock::now(), source: delivery.source.clone(), input };
        let Step { events, effects, decision } = step(&policy, &mut state, stamped);
        let mut seq = Seq(0);
        let first = tail.last().0 + batch.events.len() as u64;
        let mut why = Why::new();
        let mut stop_decided = false;
        for (at, event) in events.iter().enumerate() {
            let is_input = matches!(event, Event::Input(_));
            if is_input {
                seq = Seq(first + at as u64 + 1);
            }
            if let Event::DecisionMade(made) = event {
                why.clone_from(&made.why);
                stop_decided |= matches!(made.decision, Decision::Stop(_));
            }
            batch.events.push(row(event, key.clone().filter(|_| is_input)));
        }
        batch.effects = self.effect_rows(&policy, &effects, seq);
        if stop_decided {
            // Whatever was asked for is found or not needed any more.
            batch.settled = tail.pending()?.into_iter().map(|effect| effect.key).collect();
        }
        batch.durable = stop_decided || matches!(delivery.input, Input::EvidenceArrived(_));
        if stop_decided || state.last.0.saturating_sub(loaded.cached_at.0) >= CACHE_EVERY {
            batch.cache = load::cache(&state);
        }
        if events.iter().any(matters_for_listing) {
            let root = self.place.root_text();
            if let Some(left) = left_behind(session, tail, &events, &state)? {
                batch.tasks.extend(summary::row(session, &policy, &left, &root));
            }
            batch.tasks.extend(summary::row(session, &policy, &state, &root));
        }
        let answer = decision.map(|decision| (decision, why));
        let handled = Handled { seq, scope, answer, effects, state, policy, warnings };
        Ok(Some((handled, Some(batch))))
    }

    /// Facts and token use, stamped into the input.
    fn complete(&self, policy: &Policy, state: &State, delivery: &Delivery<'_>) -> Input {
        let mut input = delivery.input.clone();
        let scope = scope_of(&input);
        let tokens = delivery.usage.and_then(|usage| usage(state.cursor(&scope)));
        match &mut input {
            Input::PromptSubmitted(prompt) => prompt.tokens = tokens,
            Input::ToolRequested(request) => {
                request.tokens = tokens.or(request.tokens.take());
                if let Some(argv) = delivery.argv {
                    request.facts = facts::of_command(policy, facts::Command::Argv(argv));
                } else if let Some(script) = delivery.shell {
                    request.facts = facts::of_command(policy, facts::Command::Script(script));
                }
            }
            Input::ToolReturned(returned) => returned.tokens = tokens.or(returned.tokens.take()),
            Input::RoundEnded(round) => round.tokens = tokens.or(round.tokens.take()),
            Input::StopRequested(stop) => stop.tokens = tokens.or(stop.tokens.take()),
            _ => {}
        }
        input
    }

    fn effect_rows(&self, policy: &Policy, effects: &[Effect], stop: Seq) -> Vec<EffectRow> {
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::RunVerifier { verifier, subject, .. } => Some(EffectRow {
                    key: self.content_key(policy, policy.verifier(verifier)?, *subject, Origin::Gate),
                    verifier: verifier.clone(),
                    stop,
                }),
                Effect::ReadTree { .. } => None,
            })
            .collect()
    }

    /// Performs what is outstanding and feeds it back, until there is an answer.
    fn settle(
        &self,
        session: &SessionId,
        first: Handled,
        patience: Patience<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Settled, RuntimeError> {
        let (stop, scope, warnings) = (first.seq, first.scope.clone(), first.warnings.clone());
        if let Some(answer) = first.answer {
            return Ok(Settled { seq: stop, answer, state: first.state, warnings });
        }
        let mut handled = first;
        loop {
            if patience.cancelled.load(Ordering::Relaxed) {
                return Err(RuntimeError::Cancelled);
            }
            let effects = std::mem::take(&mut handled.effects);
            handled = if effects.is_empty() {
                self.look_for_answer(session, stop, &scope, patience)?
            } else {
                self.fulfil(session, stop, &scope, &handled.policy, effects, patience, progress)?
            };
            // Only the stop's own answer counts: a result that nobody waits for is merely noted.
            if let Some(answer @ (Decision::Stop(_), _)) = handled.answer {
                return Ok(Settled { seq: stop, answer, state: handled.state, warnings });
            }
        }
    }

    /// Performs effects and hands each result in; returns what the last one came to.
    #[expect(clippy::too_many_arguments, reason = "one call site; a struct would only rename them")]
    fn fulfil(
        &self,
        session: &SessionId,
        stop: Seq,
        scope: &ScopeId,
        policy: &Policy,
        effects: Vec<Effect>,
        patience: Patience<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Handled, RuntimeError> {
        let mut wanted = Vec::new();
        let mut read = None;
        for effect in effects {
            match effect {
                Effect::RunVerifier { verifier, subject, .. } => wanted.push(Wanted { verifier, subject }),
                Effect::ReadTree { stop, .. } => read = Some(stop),
            }
        }
        let mut last: Option<Handled> = None;
        // An answer or a new wish must not be lost behind a result that changed nothing.
        let mut keep = |handled: Handled| {
            let says_something = matches!(handled.answer, Some((Decision::Stop(_), _)))
                || !handled.effects.is_empty();
            if says_something || last.is_none() {
                last = Some(handled);
            }
        };
        if let Some(asked_by) = read {
            let reading = self.place.read(Some(session), policy, None);
            let tree = reading
                .map(|reading| reading.fact)
                .map_err(|error| TreeUnknown { why: error.to_string() });
            let again = self.peek(session)?.is_some_and(|(state, _)| {
                state.pending(scope).is_some_and(|pending| pending.rejudged)
            });
            let input = Input::TreeRead(TreeRead { scope: scope.clone(), stop: asked_by, tree });
            keep(self.handle(own(session, Some(format!("tree:{asked_by}:{again}")), input))?);
        }
        self.perform(session, policy, &wanted, Origin::Gate, true, patience, progress, &mut |done| {
            let asked = wanted.iter().find(|wanted| wanted.verifier == done.evidence.verifier);
            let about = asked.map_or(done.evidence.subject, |wanted| wanted.subject).short().0;
            let key = format!("evidence:{stop}:{}:{about:x}", done.evidence.verifier);
            let evidence = EvidenceFact::of(&done.evidence, done.key, done.cached);
            let input = Input::EvidenceArrived(EvidenceArrived { scope: scope.clone(), evidence });
            keep(self.handle(own(session, Some(key), input))?);
            Ok(())
        })?;
        match last {
            Some(handled) => Ok(handled),
            None => self.look_for_answer(session, stop, scope, patience),
        }
    }

    /// Another process is finding out: waits for its decision, takes over what it left.
    fn look_for_answer(
        &self,
        session: &SessionId,
        stop: Seq,
        scope: &ScopeId,
        patience: Patience<'_>,
    ) -> Result<Handled, RuntimeError> {
        loop {
            let answer = self
                .store
                .events(session, stop)?
                .iter()
                .filter_map(|raw| load::decode(session, raw).ok().flatten())
                .find_map(|event| stop_answer(event, stop, scope));
            let (state, policy) = self.peek(session)?.ok_or_else(|| RuntimeError::Policy {
                session: session.clone(),
                what: "disappeared".to_owned(),
            })?;
            let effects = outstanding(&state, scope);
            if answer.is_some() || !effects.is_empty() {
                let warnings = Vec::new();
                let scope = scope.clone();
                return Ok(Handled { seq: stop, scope, answer, effects, state, policy, warnings });
            }
            if patience.cancelled.load(Ordering::Relaxed) {
                return Err(RuntimeError::Cancelled);
            }
            if patience.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(RuntimeError::Deadline);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

struct Settled {
    seq: Seq,
    answer: (Decision, Why),
    state: State,
    warnings: Vec<String>,
}

/// News of our own making.
fn own<'a>(session: &SessionId, key: Option<String>, input: Input) -> Delivery<'a> {
    Delivery {
        session: session.clone(),
        source: SourceName::new("runtime"),
        key,
        input,
        shell: None,
        argv: None,
        usage: None,
    }
}

fn row(event: &Event, key: Option<String>) -> NewEvent {
    NewEvent { kind: event.kind(), payload: event::encode(event), key }
}

fn scope_of(input: &Input) -> ScopeId {
    match input {
        Input::ToolRequested(request) => request.scope.clone(),
        Input::ToolReturned(returned) => returned.scope.clone(),
        Input::RoundEnded(round) => round.scope.clone(),
        Input::StopRequested(stop) => stop.scope.clone(),
        Input::EvidenceArrived(arrived) => arrived.scope.clone(),
        Input::TreeRead(read) => read.scope.clone(),
        _ => ScopeId::main(),
    }
}

/// Stops and prompts have no native id, and an agent that says "Done." four times sends
/// the same bytes four times: the n-th from one entry is the n-th from another.
fn counted_key(state: &State, delivery: &Delivery<'_>, scope: &ScopeId) -> Option<String> {
    match &delivery.input {
        Input::PromptSubmitted(_) => {
            Some(format!("prompt:{}", state.prompts_from(&delivery.source) + 1))
        }
        Input::StopRequested(_) => {
            let task = state.task.as_ref().map_or(1, |task| task.id.0);
            let nth = state.stops_from(scope, &delivery.source) + 1;
            Some(format!("stop:{task}:{scope}:{nth}"))
        }
        _ => None,
    }
}

fn repeated(input: &Input, of: Seq, source: &SourceName, scope: &ScopeId) -> Option<Event> {
    let what = match input {
        Input::PromptSubmitted(_) => Repeatable::Prompt,
        Input::StopRequested(_) => Repeatable::Stop,
        _ => return None,
    };
    Some(Event::Repeated { of, source: source.clone(), what, scope: scope.clone() })
}

/// What was answered to the input at `known`; inputs that are only noted were noted.
fn recorded_answer(
    session: &SessionId,
    tail: &dyn Tail,
    known: Seq,
    input: &Input,
) -> Result<Option<(Decision, Why)>, RuntimeError> {
    let scope = scope_of(input);
    for raw in tail.events_after(known)? {
        let Some(event) = load::decode(session, &raw)? else { continue };
        match event {
            Event::DecisionMade(made) if made.answers == known => {
                return Ok(Some((made.decision, made.why)));
            }
            event if matches!(input, Input::StopRequested(_)) => {
                if let Some(answer) = stop_answer(event, known, &scope) {
                    return Ok(Some(answer));
                }
            }
            _ => {}
        }
    }
    let waits = matches!(
        input,
        Input::StopRequested(_) | Input::EvidenceArrived(_) | Input::TreeRead(_)
    );
    Ok((!waits).then(|| (Decision::Noted, Why::new())))
}

/// The decision on this stop, or on a newer one of its scope that took its place.
fn stop_answer(event: Event, stop: Seq, scope: &ScopeId) -> Option<(Decision, Why)> {
    match event {
        Event::DecisionMade(DecisionMade { answers, scope: of, decision, why })
            if answers >= stop && of == *scope && matches!(decision, Decision::Stop(_)) =>
        {
            Some((decision, why))
        }
        _ => None,
    }
}

/// What the pending stop of this scope still waits for.
fn outstanding(state: &State, scope: &ScopeId) -> Vec<Effect> {
    let Some(pending) = state.pending(scope) else { return Vec::new() };
    let subject = |name: &VerifierName| match &pending.tree {
        Ok(tree) => tree.subject(name),
        Err(_) => pending.message,
    };
    let mut effects: Vec<Effect> = pending
        .waiting
        .iter()
        .map(|name| Effect::RunVerifier {
            scope: scope.clone(),
            verifier: name.clone(),
            subject: subject(name),
        })
        .collect();
    if pending.reading {
        effects.push(Effect::ReadTree { scope: scope.clone(), stop: pending.stop });
    }
    effects
}

/// The state in which a task ended that another one has taken the place of within the same
/// step: without it the listing would show that task as open for ever.
fn left_behind(
    session: &SessionId,
    tail: &dyn Tail,
    events: &[Event],
    now: &State,
) -> Result<Option<State>, RuntimeError> {
    let newest = now.task.as_ref().map(|task| task.id);
    let ended = events
        .iter()
        .position(|event| matches!(event, Event::TaskEnded { task, .. } if Some(*task) != newest));
    let Some(ended) = ended else { return Ok(None) };
    // Rare enough to fold anew, so that no other step pays for a copy of the state.
    let mut state = load::state(session, tail)?.state;
    for event in events.iter().take(ended + 1) {
        state.apply(event);
    }
    Ok(Some(state))
}

fn matters_for_listing(event: &Event) -> bool {
    matches!(
        event,
        Event::TaskOpened { .. } | Event::TaskReopened { .. } | Event::TaskEnded { .. } | Event::DecisionMade(_)
    )
}
