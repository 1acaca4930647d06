//! The loop: load → fold → step → append → perform → feed back, until there is a decision.
//! Here is its beginning and its end; [`crate::transaction`] and [`crate::settle`] are the middle.

use std::borrow::Cow;
use std::sync::Arc;

use checkrein_core::decision::{Decision, StopDecision, StopFeedback};
use checkrein_core::digest::Digest;
use checkrein_core::event::Event;
use checkrein_core::evidence::{Evidence, InconclusiveCause};
use checkrein_core::explain::{self, DecisionFactor, StopHoldupCause};
use checkrein_core::feedback;
use checkrein_core::ids::{AgentName, EventSeq, ScopeId, SessionId};
use checkrein_core::input::Input;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_store::{EffectClaim, SessionView, Store};

use crate::config::{Compiled, ConfigError};
use crate::delivery::{Decided, Delivery, Patience, Progress, Seal};
use crate::error::RuntimeError;
use crate::guard::Look;
use crate::hosts::Hosts;
use crate::known_scope::KnownScope;
use crate::last_good::Fallback;
use crate::layers::{Layers, Stages};
use crate::workspace::Place;
use crate::{kept, load};
use checkrein_redaction::Redactor;

/// What a second installed entry says of a stop that the first one refuses in full.
pub(crate) const BESIDE: &str = "checkrein: not done yet, for the reason given beside this.";

/// One engine over one repo. Sessions share nothing mutable but the store (law 8).
pub struct Runtime {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) place: Place,
    pub(crate) seal: Box<Seal>,
    /// Knows what must not be kept.
    pub(crate) redactor: Redactor,
    pub(crate) look: Option<Box<Look>>,
    pub(crate) fallback: Option<Fallback>,
    pub(crate) level: &'static str,
    /// Whose messages these are, where no session's start says so.
    pub(crate) agent: AgentName,
    pub(crate) hosts: Hosts,
    pub(crate) layers: Vec<Layers>,
    pub(crate) stages: Stages,
    #[cfg(unix)]
    pub(crate) start_owner: Option<Box<crate::owner::StartOwner>>,
}

impl Runtime {
    /// An engine over this store and place; `seal` compiles the policy of a new session.
    pub fn new(store: Arc<dyn Store>, place: Place, seal: Box<Seal>) -> Self {
        let redactor = Redactor::from_environment(&place.env);
        Self {
            store,
            place,
            seal,
            redactor,
            look: None,
            fallback: None,
            level: "L1",
            agent: AgentName::new("unknown"),
            hosts: Hosts::default(),
            layers: Vec::new(),
            stages: Stages::HOOKS,
            #[cfg(unix)]
            start_owner: None,
        }
    }

    /// Whose messages it takes in. A session's start says it better: a hook that was installed in
    /// mid-session has seen none.
    #[must_use]
    pub fn for_agent(mut self, name: &str) -> Self {
        self.agent = AgentName::new(name);
        self
    }

    /// Asks these functions of the host for what its policies require of them.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Hosts) -> Self {
        self.hosts = hosts;
        self
    }

    /// Asks these layers of middleware, too, beside those of its policies.
    #[must_use]
    pub fn with_layers(mut self, layers: Layers) -> Self {
        self.layers.push(layers);
        self
    }

    /// The stages at which layers are asked, if not those of an agent's hooks.
    #[must_use]
    pub fn at_stages(mut self, stages: Stages) -> Self {
        self.stages = stages;
        self
    }

    /// Watches files whose edits could loosen what sessions are judged by (law 10).
    #[must_use]
    pub fn guarding(mut self, look: Box<Look>) -> Self {
        self.look = Some(look);
        self
    }

    /// Hands checks that may outlast an answer to a process of their own.
    #[cfg(unix)]
    #[must_use]
    pub fn with_owners(mut self, start: Box<crate::owner::StartOwner>) -> Self {
        self.start_owner = Some(start);
        self
    }

    /// What is promised while it judges, as listings say it.
    #[must_use]
    pub fn at_level(mut self, level: &'static str) -> Self {
        self.level = level;
        self
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
        // As it came: what is kept of it may be less.
        let message = match &delivery.input {
            Input::StopRequested(stop) => Some(stop.message.clone()),
            _ => None,
        };
        let scope = delivery.input.scope_id().cloned();
        let handled = self.handle(delivery, patience)?;
        let message = message.as_deref();
        let settled = self.settle(&session, handled, message, patience, progress)?;
        let (mut decision, why) = settled.answer;
        if let Decision::Stop(StopDecision::Continue { feedback }) = &mut decision {
            within_session(feedback, settled.session_continues, &settled.state);
        }
        let held_up_by =
            scope.and_then(|scope| self.held_up_by(&session, &scope, settled.seq, &why));
        let text = match &decision {
            // The entry that delivered it first says it in full: the agent pays for both.
            Decision::Stop(StopDecision::Continue { .. }) if settled.repeated => {
                Some(BESIDE.to_owned())
            }
            Decision::Stop(StopDecision::Continue { feedback }) => {
                Some(self.words(feedback, held_up_by))
            }
            _ => None,
        };
        Ok(Decided {
            seq: settled.seq,
            decision,
            why,
            text,
            rewritten: settled.rewritten,
            state: settled.state,
            warnings: settled.warnings,
            parked: settled.parked,
            notify: settled.notify,
            verified_notice: settled.verified_notice,
            config_error: settled.config_error,
            unread: settled.unread,
            repeated: settled.repeated,
            held_up_by,
        })
    }

    /// Feedback as an agent is told of it.
    pub fn words(&self, feedback: &StopFeedback, held_up_by: Option<StopHoldupCause>) -> String {
        feedback::render_feedback(feedback, held_up_by, &|key| self.evidence(key))
    }

    /// What kept this stop from being judged, if its reasons say that something did.
    fn held_up_by(
        &self,
        session: &SessionId,
        scope: &ScopeId,
        stop: EventSeq,
        why: &[DecisionFactor],
    ) -> Option<StopHoldupCause> {
        let says = |because: &DecisionFactor| {
            let cause = match because {
                DecisionFactor::Verdict { cause, .. } => *cause,
                _ => None,
            };
            *because == DecisionFactor::TreeMoved || cause == Some(InconclusiveCause::TreeMoving)
        };
        if !why.iter().any(says) {
            return None;
        }
        // It only chooses words: without the log they speak of files.
        let before = EventSeq(stop.0.saturating_sub(1));
        let rows = self.store.events_after(session, before).ok()?;
        let events = rows.iter().map(|raw| load::decode(session, raw).ok()?);
        let events: Vec<Event> = events.flatten().collect();
        explain::newest_stop_held_up_cause(&events, scope)
    }

    /// The right to have this conversation, for one process at a time and as long as it lives.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn converse(&self, session: &SessionId) -> Result<Option<EffectClaim>, RuntimeError> {
        let key = Digest::hash_parts([&b"conversation"[..], session.as_str().as_bytes()]);
        Ok(self.store.try_claim_effect(&key)?)
    }

    /// Adds a message to the conversation of an agent of our own.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn put_message(&self, session: &SessionId, body: &[u8]) -> Result<(), RuntimeError> {
        Ok(self.store.put_conversation_message(session, body)?)
    }

    /// The text without secrets, as all is kept.
    pub fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.redact_text(text)
    }

    /// That conversation so far.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn messages(&self, session: &SessionId) -> Result<Vec<Vec<u8>>, RuntimeError> {
        Ok(self.store.read_conversation_messages(session, usize::MAX)?)
    }

    /// The policy of a new session is sealed as `change` leaves it.
    #[must_use]
    pub fn sealing(
        mut self,
        change: impl Fn(&mut Compiled) -> Result<(), ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let seal = self.seal;
        self.seal = Box::new(move || {
            let mut compiled = seal()?;
            change(&mut compiled)?;
            Ok(compiled)
        });
        self
    }

    /// The evidence under this key, if it can be read.
    pub fn evidence(&self, key: &Digest) -> Option<Evidence> {
        let kept = self.store.read_evidence(key).ok().flatten()?;
        kept::evidence_of(&kept.bytes)
    }

    /// The session's state and policy; `None` for a session that has no log.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn peek(
        &self,
        session: &SessionId,
    ) -> Result<Option<(SessionState, Policy)>, RuntimeError> {
        self.read_session(session, |tail, state| {
            let policy = load::policy(session, &state, |digest| tail.read_stored_blob(digest))?;
            Ok((state, policy))
        })
    }

    /// Whether something could be recorded now.
    ///
    /// # Errors
    /// If the store cannot be written, or somebody else has been writing it for too long.
    pub fn check_writable(&self, session: &SessionId) -> Result<(), RuntimeError> {
        self.store.transact_on_session(session, &mut |_| Ok(None))?;
        Ok(())
    }

    /// Where the transcript of this conversation was read to; `None` for a session that has no log.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn cursor(
        &self,
        session: &SessionId,
        scope: &ScopeId,
    ) -> Result<Option<String>, RuntimeError> {
        self.read_session(session, |tail, state| {
            Ok(KnownScope::find(tail, &state, scope, true)?.cursor)
        })
    }

    /// Reads this session, with its state at one moment; `None` for a session that has no log. It takes no
    /// write lock, and others may have written by the time it returns.
    pub(crate) fn read_session<T>(
        &self,
        session: &SessionId,
        find: impl FnOnce(&dyn SessionView, SessionState) -> Result<T, RuntimeError>,
    ) -> Result<Option<T>, RuntimeError> {
        load::read_session(&*self.store, session, find)
    }
}

/// Where the session leaves fewer continuations than the task does, that is what is promised.
pub(crate) fn within_session(
    feedback: &mut StopFeedback,
    limit: Option<u32>,
    state: &SessionState,
) {
    let given = state.totals.continues;
    let left = limit.map_or(u32::MAX, |limit| limit.saturating_sub(given));
    feedback.continues_left = feedback.continues_left.min(left);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use checkrein_core::ids::ScopeId;
    use checkrein_core::input::{Input, SessionStartKind, SessionStarted};
    use checkrein_store::{SqliteStore, SqliteStoreOptions};

    use super::*;
    use crate::config::{Driver, compile};
    use crate::settle::own;

    /// Another process is in the middle of writing.
    #[test]
    fn looking_at_a_session_waits_for_no_writer() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let impatient = SqliteStoreOptions {
            busy_timeout: Duration::ZERO,
        };
        let store = SqliteStore::open_store_with_options(&state, impatient).unwrap();
        let place = Place {
            state: state.clone(),
            ..Place::here(folder.path())
        };
        let seal = || compile(None, None, Driver::Hook);
        let runtime = Runtime::new(Arc::new(store), place, Box::new(seal));
        let (session, cancelled) = (SessionId::from("s"), AtomicBool::new(false));
        let started = Input::SessionStarted(SessionStarted {
            agent: "test".into(),
            how: SessionStartKind::Startup,
            parent: None,
            tokens: None,
        });
        let patience = Patience {
            deadline: None,
            cancelled: &cancelled,
        };
        let begin = || runtime.take(own(&session, None, started.clone()), patience, &|_| {});
        begin().unwrap();
        let writer = SqliteStore::open_store_in_folder(&state).unwrap();
        let held = writer.transact_on_session(&session, &mut |_| {
            assert!(begin().is_err(), "nobody else writes meanwhile");
            let (state, _) = runtime.peek(&session).unwrap().unwrap();
            assert_eq!(state.agent, Some("test".into()));
            let cursor = runtime.cursor(&session, &ScopeId::main_scope()).unwrap();
            assert_eq!(cursor.as_deref(), Some(""));
            assert!(runtime.sealed_as(&session).unwrap().is_some());
            Ok(None)
        });
        held.unwrap();
    }
}
