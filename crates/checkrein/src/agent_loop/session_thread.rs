//! Runs the session of one agent loop on a thread of its own, because stores and checks block and
//! the caller's executor must not be held up. The thread also enforces the wall-clock cap.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use checkrein_core::ids::SessionId;
use checkrein_core::input::{Input, SessionStartKind};
use checkrein_core::state::Task;
use checkrein_core::transition::{Reason, Transition};
use checkrein_runtime::RuntimeError;
use checkrein_store::{EffectClaimGuard, Store, StoreError};
use futures_channel::oneshot;

use super::AgentLoopStartError;
use super::interrupt::{AgentLoopEarlyEnd, LoopRunEarlyEndSignal};
use super::journal::{self, AgentLoopJournalEntry};
use super::settings;
use crate::{Engine, Session};

/// Shortest delay before the wall-clock cap is checked again after the alarm came too early, which
/// happens because time spent in checks does not count.
const SOON: Duration = Duration::from_millis(20);

type SessionJob = Box<dyn FnOnce(&Session<'_>) + Send>;

/// The agent's name in the store.
const AGENT: &str = "agent-loop";
/// Message to a model whose task ended waiting for a person who has answered since.
const ANSWERED: &str = "A person has answered what you asked for. Go on.";

/// How a run begins.
pub(super) enum NewOrResumedAgentLoopRun {
    New {
        model: String,
        purpose: Option<String>,
        message: String,
    },
    Resume {
        session: SessionId,
        more: Option<String>,
    },
}

/// How a conversation goes on.
pub(super) enum ConversationNextStep {
    /// It continues with the last journaled entry.
    Proceed,
    /// This message is sent to the model first.
    SendMessage {
        text: String,
        /// Whether a person wrote it.
        prompt: bool,
    },
    /// It is over already.
    Ended(Transition),
}

/// What is known once a session has begun.
pub(super) struct StartedAgentLoopSession {
    pub(super) session: SessionId,
    pub(super) warnings: Vec<String>,
    /// The conversation so far.
    pub(super) entries: Vec<AgentLoopJournalEntry>,
    pub(super) next: ConversationNextStep,
    /// Whether a cost cap applies.
    pub(super) cost_capped: bool,
}

/// The model and the purpose that a session's conversation was begun with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAndPurposeOfConversation {
    /// The model, as `provider/model`.
    pub model: String,
    /// The purpose, in the host's words.
    pub purpose: Option<String>,
}

/// Reads what the conversation of a session of [`super::AgentLoop`] was begun with; `None` if the
/// session has no conversation.
///
/// # Errors
/// If the store cannot be read.
pub fn stored_conversation_model_and_purpose(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Option<ModelAndPurposeOfConversation>, StoreError> {
    let said = store.read_stored_conversation_messages(session, 1)?;
    let begun = said.first().map(|body| serde_json::from_slice(body));
    Ok(match begun {
        Some(Ok(AgentLoopJournalEntry::Begun {
            model,
            purpose: errand,
        })) => Some(ModelAndPurposeOfConversation {
            model,
            purpose: errand,
        }),
        _ => None,
    })
}

pub(super) struct SessionThreadHandle {
    jobs: Option<Sender<SessionJob>>,
    /// Resolves once the thread has released the session and its claim.
    gone: Option<oneshot::Receiver<()>>,
    stop: LoopRunEarlyEndSignal,
}

impl SessionThreadHandle {
    /// Starts the thread, which begins or resumes the session and its task.
    pub(super) async fn start_agent_loop_session_thread(
        engine: Engine,
        begin: NewOrResumedAgentLoopRun,
        unpriced: Option<String>,
        stop: LoopRunEarlyEndSignal,
    ) -> Result<(Self, StartedAgentLoopSession), AgentLoopStartError> {
        let (jobs, come_in) = channel();
        let (tell, opened) = oneshot::channel();
        let (went, gone) = oneshot::channel();
        let of_thread = stop.clone();
        std::thread::Builder::new()
            .name("agent-loop".to_owned())
            .spawn(move || {
                match open_and_claim_session(&engine, begin, unpriced.as_deref()) {
                    Err(error) => {
                        let _ = tell.send(Err(error));
                    }
                    Ok((session, opened, mine)) => {
                        // The receiver is gone if the caller dropped the run: then no job will
                        // come.
                        if tell.send(Ok(opened)).is_ok() {
                            serve_session_jobs(&session, &come_in, &of_thread);
                        }
                        drop(mine);
                    }
                }
                // Nobody waits for that if the run was dropped.
                let _ = went.send(());
            })
            .map_err(AgentLoopStartError::Thread)?;
        let desk = Self {
            // Dropping the sender is what ends the thread.
            jobs: Some(jobs),
            gone: Some(gone),
            stop,
        };
        let opened = opened
            .await
            .unwrap_or(Err(RuntimeError::Cancelled.into()))?;
        Ok((desk, opened))
    }

    /// Runs a closure with the session on its thread and returns the result.
    pub(super) async fn run_on_session_thread<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Session<'_>) -> Result<T, RuntimeError> + Send + 'static,
    ) -> Result<T, String> {
        const GONE: &str = "the thread that judges is gone";
        let (tell, told) = oneshot::channel();
        let job = move |session: &Session<'_>| {
            // Nobody waits for it any more if the run was dropped.
            let _ = tell.send(what(session));
        };
        let jobs = self.jobs.as_ref().ok_or_else(|| GONE.to_owned())?;
        jobs.send(Box::new(job)).map_err(|_| GONE.to_owned())?;
        let answer = told.await.map_err(|_| GONE.to_owned())?;
        answer.map_err(|error| error.to_string())
    }
}

impl SessionThreadHandle {
    /// Ends the thread and waits until it has released the claim, so that the next run of the same
    /// conversation is not refused as busy.
    pub(super) async fn close_session_thread(mut self) {
        drop(self.jobs.take());
        if let Some(gone) = self.gone.take() {
            // An error means that the thread panicked, which releases the claim as well.
            let _ = gone.await;
        }
    }
}

impl Drop for SessionThreadHandle {
    /// Cancels checks that still run: nobody waits for the result of a dropped run.
    fn drop(&mut self) {
        self.stop
            .checks_cancel_flag()
            .store(true, Ordering::Relaxed);
    }
}

fn open_and_claim_session<'a>(
    engine: &'a Engine,
    begin: NewOrResumedAgentLoopRun,
    unpriced: Option<&str>,
) -> Result<(Session<'a>, StartedAgentLoopSession, EffectClaimGuard), AgentLoopStartError> {
    // One run per conversation: two would interleave their entries in one journal.
    let mine = |id: &SessionId| {
        let claim = engine.inner_runtime().claim_conversation_for_process(id)?;
        claim.ok_or_else(|| AgentLoopStartError::Busy(id.clone()))
    };
    let (session, mine, mut opened) = match begin {
        NewOrResumedAgentLoopRun::New {
            model,
            purpose: errand,
            message,
        } => {
            let (session, warnings) = engine.session(AGENT)?;
            let mine = mine(session.session_id())?;
            let user = AgentLoopJournalEntry::User {
                text: message.clone(),
                prompt: true,
            };
            // Saved before the task begins: a task whose prompt is not in the journal could not be
            // resumed.
            AgentLoopJournalEntry::Begun {
                model,
                purpose: errand,
            }
            .save_conversation_entry(&session)?;
            user.clone().save_conversation_entry(&session)?;
            session.submit_prompt_keyed(0, &message)?;
            let opened = StartedAgentLoopSession {
                warnings,
                entries: vec![user],
                ..StartedAgentLoopSession::new_opened_session(&session)
            };
            (session, mine, opened)
        }
        NewOrResumedAgentLoopRun::Resume { session: id, more } => {
            if engine
                .inner_runtime()
                .conversation_messages(&id)?
                .is_empty()
            {
                return Err(AgentLoopStartError::NoConversation(id));
            }
            // Claimed before the journal is read, or another run could append to it in between.
            let mine = mine(&id)?;
            let (session, warnings) =
                engine.begin_or_resume_session_by_id(AGENT, id, SessionStartKind::Resume)?;
            let said = journal::read_agent_loop_journal(&session)?;
            let next = plan_conversation_resumption(&session, &said, more)?;
            let opened = StartedAgentLoopSession {
                warnings,
                entries: said,
                next,
                ..StartedAgentLoopSession::new_opened_session(&session)
            };
            (session, mine, opened)
        }
    };
    if let Some((_, policy)) = session.current_session_state()? {
        settings::require_price_for_cost_cap(unpriced, &policy)?;
        opened.cost_capped = policy.caps.cost.or(policy.session_caps.cost).is_some();
    }
    Ok((session, opened, mine))
}

impl StartedAgentLoopSession {
    fn new_opened_session(session: &Session<'_>) -> Self {
        Self {
            session: session.session_id().clone(),
            warnings: Vec::new(),
            entries: Vec::new(),
            next: ConversationNextStep::Proceed,
            cost_capped: false,
        }
    }
}

fn plan_conversation_resumption(
    session: &Session<'_>,
    said: &[AgentLoopJournalEntry],
    more: Option<String>,
) -> Result<ConversationNextStep, AgentLoopStartError> {
    if let Some(AgentLoopJournalEntry::User { text, prompt: true }) = said.last() {
        // The process may have died before its task began. If the task did begin, the runtime knows
        // the key and the prompt has no effect.
        let answers = said.iter().filter(|entry| entry.is_model_answer()).count();
        session.submit_prompt_keyed(answers, text)?;
    }
    // Before the checks below: a new prompt opens the next task, however the last one ended.
    if let Some(text) = more {
        return Ok(ConversationNextStep::SendMessage { text, prompt: true });
    }
    // The state is read after the prompt above was submitted, which may have opened the task.
    let task = session
        .current_session_state()?
        .and_then(|(state, _)| state.task);
    let task =
        task.ok_or_else(|| AgentLoopStartError::NoConversation(session.session_id().clone()))?;
    if has_person_answered_task(&task) {
        return Ok(ConversationNextStep::SendMessage {
            text: ANSWERED.to_owned(),
            prompt: false,
        });
    }
    Ok(task
        .ended
        .map_or(ConversationNextStep::Proceed, ConversationNextStep::Ended))
}

/// Returns whether the task ended waiting for a person, and the person has answered since.
fn has_person_answered_task(task: &Task) -> bool {
    let ended = task.ended.as_ref();
    ended.is_some_and(|ended| ended.reason == Reason::AwaitingHuman) && task.bad_ending.is_none()
}

fn serve_session_jobs(
    session: &Session<'_>,
    jobs: &Receiver<SessionJob>,
    stop: &LoopRunEarlyEndSignal,
) {
    let mut alarm =
        remaining_wall_clock_cap(session).and_then(|left| Instant::now().checked_add(left));
    loop {
        let job = match alarm {
            Some(at) => jobs.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match job {
            Ok(job) => job(session),
            Err(RecvTimeoutError::Disconnected) => return,
            // The alarm only asks. Whether the cap is reached is decided by the core, which
            // subtracts the time that checks took.
            Err(RecvTimeoutError::Timeout) => {
                let ended = session
                    .submit_agent_event(Input::TimePassed)
                    .map(|said| said.task_transition());
                if let Ok(Some(transition)) = ended {
                    stop.transition_of_run_ended_early(AgentLoopEarlyEnd::Ended(transition));
                    alarm = None;
                } else {
                    let left = remaining_wall_clock_cap(session).map(|left| left.max(SOON));
                    alarm = left.and_then(|left| Instant::now().checked_add(left));
                }
            }
        }
    }
}

/// Returns what is left of the wall-clock cap; `None` without a cap.
fn remaining_wall_clock_cap(session: &Session<'_>) -> Option<Duration> {
    let (state, policy) = session.current_session_state().ok().flatten()?;
    let limit = policy.caps.wall_clock_ms?;
    Some(Duration::from_millis(
        limit.saturating_sub(state.agent_busy_ms()),
    ))
}
