//! Runs the loop: load → fold → step → append → perform → feed back, until there is a decision. Its
//! beginning and its end are here; [`crate::transaction`] and [`crate::await_decision`] are the
//! middle.

use std::borrow::Cow;
use std::sync::Arc;

use checkrein_core::decision::{Decision, StopDecision, StopFeedback};
use checkrein_core::digest::Digest;
use checkrein_core::event::Event;
use checkrein_core::evidence::{Evidence, InconclusiveCause};
use checkrein_core::explain::{self, ChangeKindHoldingUpStop, DecisionFactor};
use checkrein_core::feedback;
use checkrein_core::ids::{AgentName, EventSeq, ScopeId, SessionId};
use checkrein_core::input::Input;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_store::{EffectClaimGuard, SessionTransactionView, Store};

use crate::config::{CompiledPolicy, ConfigError};
use crate::error::RuntimeError;
use crate::event_delivery::{
    Deadline, DeliveryOutcome, EventDelivery, PolicyCompileFn, VerificationProgress,
};
use crate::guarded_files::GuardedFilesReader;
use crate::host_verifiers::HostVerifiers;
use crate::known_scope::ScopeBeforeEvent;
use crate::middleware::{FrontEndMiddlewareStages, MiddlewareRegistry};
use crate::policy_fallback::FallbackPoliciesForBrokenConfig;
use crate::workspace::TreeAndStateFolder;
use crate::{evidence_codec, log_reader};
use checkrein_redaction::Redactor;

/// The feedback of a second installed entry, for a stop that the first one refuses in full.
pub(crate) const SECOND_ENTRY_FEEDBACK: &str =
    "checkrein: not done yet, for the reason given beside this.";

/// One engine over one repo. Sessions share nothing mutable but the store (law 8).
pub struct Runtime {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) place: TreeAndStateFolder,
    pub(crate) policy_compiler: Box<PolicyCompileFn>,
    /// Hides secrets in everything that is kept.
    pub(crate) redactor: Redactor,
    pub(crate) guarded_reader: Option<Box<GuardedFilesReader>>,
    pub(crate) fallback: Option<FallbackPoliciesForBrokenConfig>,
    pub(crate) level: &'static str,
    /// The agent whose events these are, where no session's start says so.
    pub(crate) agent: AgentName,
    pub(crate) hosts: HostVerifiers,
    pub(crate) layers: Vec<MiddlewareRegistry>,
    pub(crate) stages: FrontEndMiddlewareStages,
    #[cfg(unix)]
    pub(crate) start_owner: Option<Box<crate::owner::WorkerLauncherFn>>,
}

impl Runtime {
    /// An engine over this store and place; `seal` compiles the policy of a new session.
    pub fn new(
        store: Arc<dyn Store>,
        place: TreeAndStateFolder,
        seal: Box<PolicyCompileFn>,
    ) -> Self {
        let redactor = Redactor::new_from_secret_variables(&place.env);
        Self {
            store,
            place,
            policy_compiler: seal,
            redactor,
            guarded_reader: None,
            fallback: None,
            level: "L1",
            agent: AgentName::new("unknown"),
            hosts: HostVerifiers::default(),
            layers: Vec::new(),
            stages: FrontEndMiddlewareStages::HOOKS,
            #[cfg(unix)]
            start_owner: None,
        }
    }

    /// Names the agent whose events are delivered. A session's start says it better, but a hook
    /// that was installed in mid-session has seen none.
    #[must_use]
    pub fn with_agent_name(mut self, name: &str) -> Self {
        self.agent = AgentName::new(name);
        self
    }

    /// Adds functions of the host, which are asked where a policy requires them.
    #[must_use]
    pub fn with_host_verifiers(mut self, hosts: HostVerifiers) -> Self {
        self.hosts = hosts;
        self
    }

    /// Adds layers of middleware, beside those of the policies.
    #[must_use]
    pub fn with_middleware(mut self, layers: MiddlewareRegistry) -> Self {
        self.layers.push(layers);
        self
    }

    /// Sets the stages at which layers are asked, if they are not those of an agent's hooks.
    #[must_use]
    pub fn with_middleware_stages(mut self, stages: FrontEndMiddlewareStages) -> Self {
        self.stages = stages;
        self
    }

    /// Watches files whose edits could loosen how sessions are judged (law 10).
    #[must_use]
    pub fn with_guarded_files(mut self, look: Box<GuardedFilesReader>) -> Self {
        self.guarded_reader = Some(look);
        self
    }

    /// Hands checks that may outlast an answer to a process of their own.
    #[cfg(unix)]
    #[must_use]
    pub fn with_worker_launcher(mut self, start: Box<crate::owner::WorkerLauncherFn>) -> Self {
        self.start_owner = Some(start);
        self
    }

    /// Sets the level of protection that listings show.
    #[must_use]
    pub fn with_protection_level(mut self, level: &'static str) -> Self {
        self.level = level;
        self
    }

    /// Takes an event in and answers it, performing what that needs.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge; the front door then answers by stance.
    pub fn deliver_event(
        &self,
        delivery: EventDelivery<'_>,
        patience: Deadline<'_>,
        progress: &(dyn Fn(VerificationProgress) + Sync),
    ) -> Result<DeliveryOutcome, RuntimeError> {
        let session = delivery.session.clone();
        // The message as it came, since less of it may be kept.
        let message = match &delivery.input {
            Input::StopRequested(stop) => Some(stop.message.clone()),
            _ => None,
        };
        let scope = delivery.input.conversation_scope_id().cloned();
        // First the event itself is decided on and recorded, then whatever its answer still needs.
        let handled = self.transact_event(delivery, patience)?;
        let message = message.as_deref();
        let settled =
            self.perform_effects_until_decision(&session, handled, message, patience, progress)?;
        let (mut decision, why) = settled.answer;
        // The core promises what the task has left; the session may have less.
        if let Decision::Stop(StopDecision::Continue { feedback }) = &mut decision {
            cap_continues_left_in_feedback(feedback, settled.session_continues, &settled.state);
        }
        let held_up_by = scope
            .and_then(|scope| self.change_holding_up_stop(&session, &scope, settled.seq, &why));
        let text = match &decision {
            // The entry that delivered the stop first gives the full feedback: the agent reads
            // both, and pays for both.
            Decision::Stop(StopDecision::Continue { .. }) if settled.repeated => {
                Some(SECOND_ENTRY_FEEDBACK.to_owned())
            }
            Decision::Stop(StopDecision::Continue { feedback }) => {
                Some(self.render_feedback(feedback, held_up_by))
            }
            _ => None,
        };
        Ok(DeliveryOutcome {
            seq: settled.seq,
            decision,
            why,
            feedback_text: text,
            rewritten: settled.rewritten,
            state: settled.state,
            warnings: settled.warnings,
            parked: settled.parked,
            notify: settled.notify,
            verified_notice: settled.verified_notice,
            config_error: settled.config_error,
            large_files: settled.large_files,
            repeated: settled.repeated,
            held_up_by,
        })
    }

    /// Renders feedback for the agent.
    pub fn render_feedback(
        &self,
        feedback: &StopFeedback,
        held_up_by: Option<ChangeKindHoldingUpStop>,
    ) -> String {
        feedback::render_feedback(feedback, held_up_by, &|key| self.stored_evidence(key))
    }

    /// Finds what kept this stop from being judged, if its reasons say that something did.
    fn change_holding_up_stop(
        &self,
        session: &SessionId,
        scope: &ScopeId,
        stop: EventSeq,
        why: &[DecisionFactor],
    ) -> Option<ChangeKindHoldingUpStop> {
        let says = |because: &DecisionFactor| {
            let cause = match because {
                DecisionFactor::Verdict { cause, .. } => *cause,
                _ => None,
            };
            *because == DecisionFactor::TreeMoved || cause == Some(InconclusiveCause::TreeMoving)
        };
        // Only a stop that was held up needs the log.
        if !why.iter().any(says) {
            return None;
        }
        // This only chooses words: without the log they speak of files.
        let before = EventSeq(stop.0.saturating_sub(1));
        let rows = self.store.events_after(session, before).ok()?;
        let events = rows
            .iter()
            .map(|raw| log_reader::decode_event(session, raw).ok()?);
        let events: Vec<Event> = events.flatten().collect();
        explain::newest_stop_held_up_cause(&events, scope)
    }

    /// Claims this conversation, for one process at a time and as long as the process lives.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn claim_conversation_for_process(
        &self,
        session: &SessionId,
    ) -> Result<Option<EffectClaimGuard>, RuntimeError> {
        // The prefix keeps this claim apart from those of checks.
        let key = Digest::hash_parts([&b"conversation"[..], session.as_str().as_bytes()]);
        Ok(self.store.try_claim_effect(&key)?)
    }

    /// Adds a message to the conversation of an agent of our own.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn append_conversation_message(
        &self,
        session: &SessionId,
        body: &[u8],
    ) -> Result<(), RuntimeError> {
        Ok(self.store.put_conversation_message(session, body)?)
    }

    /// Removes secrets from the text, as from everything that is kept.
    pub fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.redact_text(text)
    }

    /// Reads the messages of such a conversation so far.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn conversation_messages(&self, session: &SessionId) -> Result<Vec<Vec<u8>>, RuntimeError> {
        Ok(self
            .store
            .read_stored_conversation_messages(session, usize::MAX)?)
    }

    /// Lets `change` modify the policy of a new session before it is sealed.
    #[must_use]
    pub fn with_new_session_policy_modifier(
        mut self,
        change: impl Fn(&mut CompiledPolicy) -> Result<(), ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let seal = self.policy_compiler;
        // Modifiers wrap one another, so they apply in the order in which they are added.
        self.policy_compiler = Box::new(move || {
            let mut compiled = seal()?;
            change(&mut compiled)?;
            Ok(compiled)
        });
        self
    }

    /// The evidence under this key, if it can be read.
    pub fn stored_evidence(&self, key: &Digest) -> Option<Evidence> {
        let kept = self.store.read_evidence(key).ok().flatten()?;
        evidence_codec::decode_evidence(&kept.bytes)
    }

    /// The session's state and policy; `None` for a session that has no log.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn load_session_state_and_policy(
        &self,
        session: &SessionId,
    ) -> Result<Option<(SessionState, Policy)>, RuntimeError> {
        self.read_session_at_one_moment(session, |tail, state| {
            let policy = log_reader::load_recorded_policy(session, &state, |digest| {
                tail.read_stored_blob(digest)
            })?;
            Ok((state, policy))
        })
    }

    /// Whether something could be recorded now.
    ///
    /// # Errors
    /// If the store cannot be written, or somebody else has been writing it for too long.
    pub fn ensure_store_writable(&self, session: &SessionId) -> Result<(), RuntimeError> {
        // An empty transaction takes the write lock and changes nothing.
        self.store.transact_on_session(session, &mut |_| Ok(None))?;
        Ok(())
    }

    /// The place up to which the transcript of this conversation was read; `None` for a session
    /// that has no log.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn transcript_cursor(
        &self,
        session: &SessionId,
        scope: &ScopeId,
    ) -> Result<Option<String>, RuntimeError> {
        self.read_session_at_one_moment(session, |tail, state| {
            Ok(ScopeBeforeEvent::find_scope_state_or_row(tail, &state, scope, true)?.cursor)
        })
    }

    /// Reads this session, with its state at one moment; `None` for a session that has no log. It
    /// takes no write lock, so others may have written by the time it returns.
    pub(crate) fn read_session_at_one_moment<T>(
        &self,
        session: &SessionId,
        find: impl FnOnce(&dyn SessionTransactionView, SessionState) -> Result<T, RuntimeError>,
    ) -> Result<Option<T>, RuntimeError> {
        log_reader::query_session_view_and_state(&*self.store, session, find)
    }
}

/// Lowers the promised continuations to those that the session's cap leaves.
pub(crate) fn cap_continues_left_in_feedback(
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
    use crate::await_decision::new_runtime_event_delivery;
    use crate::config::{TaskDriverKind, compile_repo_and_personal_config};

    /// Another process is in the middle of writing.
    #[test]
    fn looking_at_a_session_waits_for_no_writer() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let impatient = SqliteStoreOptions {
            busy_timeout: Duration::ZERO,
        };
        let store = SqliteStore::open_store_with_options(&state, impatient).unwrap();
        let place = TreeAndStateFolder {
            state: state.clone(),
            ..TreeAndStateFolder::new_with_per_process_state_folder(folder.path())
        };
        let seal = || compile_repo_and_personal_config(None, None, TaskDriverKind::Hook);
        let runtime = Runtime::new(Arc::new(store), place, Box::new(seal));
        let (session, cancelled) = (SessionId::from("s"), AtomicBool::new(false));
        let started = Input::SessionStarted(SessionStarted {
            agent: "test".into(),
            how: SessionStartKind::Startup,
            parent: None,
            tokens: None,
        });
        let patience = Deadline {
            due_at: None,
            cancelled: &cancelled,
        };
        let begin = || {
            runtime.deliver_event(
                new_runtime_event_delivery(&session, None, started.clone()),
                patience,
                &|_| {},
            )
        };
        begin().unwrap();
        let writer = SqliteStore::open_store_in_folder(&state).unwrap();
        let held = writer.transact_on_session(&session, &mut |_| {
            assert!(begin().is_err(), "nobody else writes meanwhile");
            let (state, _) = runtime
                .load_session_state_and_policy(&session)
                .unwrap()
                .unwrap();
            assert_eq!(state.agent, Some("test".into()));
            let cursor = runtime
                .transcript_cursor(&session, &ScopeId::main_scope())
                .unwrap();
            assert_eq!(cursor.as_deref(), Some(""));
            assert!(
                runtime
                    .root_and_profile_at_seal(&session)
                    .unwrap()
                    .is_some()
            );
            Ok(None)
        });
        held.unwrap();
    }
}
