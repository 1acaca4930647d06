//! The thread where a run is judged: stores and checks block, and the caller's executor must not. It
//! looks at the clock as well.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use checkrein_core::ids::SessionId;
use checkrein_core::input::{Input, SessionStartKind};
use checkrein_core::state::Task;
use checkrein_core::transition::{Reason, Transition};
use checkrein_runtime::RuntimeError;
use checkrein_store::{EffectClaim, Store, StoreError};
use futures_channel::oneshot;

use super::LoopError;
use super::interrupt::{Over, Stop};
use super::journal::{self, Entry};
use super::settings;
use crate::{Engine, Session};

/// How early the clock is looked at again, once its time was up and checks had taken some of it.
const SOON: Duration = Duration::from_millis(20);

type Job = Box<dyn FnOnce(&Session<'_>) + Send>;

/// The agent's name in the store.
const AGENT: &str = "agent-loop";
/// What a model is told that waited for a person.
const ANSWERED: &str = "A person has answered what you asked for. Go on.";

/// How a run begins.
pub(super) enum Begin {
    New {
        model: String,
        errand: Option<String>,
        message: String,
    },
    Again {
        session: SessionId,
        more: Option<String>,
    },
}

/// How a conversation goes on.
pub(super) enum Next {
    /// Where it is.
    On,
    /// With this said to the model first.
    Told {
        text: String,
        /// By a person.
        prompt: bool,
    },
    /// It is over already.
    Over(Transition),
}

/// What is known once a session has begun.
pub(super) struct Opened {
    pub(super) session: SessionId,
    pub(super) warnings: Vec<String>,
    /// The conversation so far.
    pub(super) said: Vec<Entry>,
    pub(super) next: Next,
    /// What it costs is bounded.
    pub(super) capped: bool,
}

/// What a session's conversation says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// `provider/model` that it is had with.
    pub model: String,
    /// What the host says that it is for.
    pub errand: Option<String>,
}

/// The conversation of a session of [`super::AgentLoop`]; `None` if it has none.
///
/// # Errors
/// If the store cannot be read.
pub fn conversation(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Option<Conversation>, StoreError> {
    let said = store.read_conversation_messages(session, 1)?;
    let begun = said.first().map(|body| serde_json::from_slice(body));
    Ok(match begun {
        Some(Ok(Entry::Begun { model, errand })) => Some(Conversation { model, errand }),
        _ => None,
    })
}

pub(super) struct Desk {
    jobs: Option<Sender<Job>>,
    /// Says when its thread has let go of everything.
    gone: Option<oneshot::Receiver<()>>,
    stop: Stop,
}

impl Desk {
    /// Begins the session and its task.
    pub(super) async fn open(
        engine: Engine,
        begin: Begin,
        unpriced: Option<String>,
        stop: Stop,
    ) -> Result<(Self, Opened), LoopError> {
        let (jobs, come_in) = channel();
        let (tell, opened) = oneshot::channel();
        let (went, gone) = oneshot::channel();
        let of_thread = stop.clone();
        std::thread::Builder::new()
            .name("agent-loop".to_owned())
            .spawn(move || {
                match begun(&engine, begin, unpriced.as_deref()) {
                    Err(error) => {
                        let _ = tell.send(Err(error));
                    }
                    Ok((session, opened, mine)) => {
                        // Nobody waits for it any more if the run was dropped.
                        if tell.send(Ok(opened)).is_ok() {
                            work(&session, &come_in, &of_thread);
                        }
                        drop(mine);
                    }
                }
                // Nobody waits for that if the run was dropped.
                let _ = went.send(());
            })
            .map_err(LoopError::Thread)?;
        let desk = Self {
            jobs: Some(jobs),
            gone: Some(gone),
            stop,
        };
        let opened = opened
            .await
            .unwrap_or(Err(RuntimeError::Cancelled.into()))?;
        Ok((desk, opened))
    }

    /// Has the session do something.
    pub(super) async fn ask<T: Send + 'static>(
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

impl Desk {
    /// Nothing more is to be done: whoever comes next finds the conversation free.
    pub(super) async fn close(mut self) {
        drop(self.jobs.take());
        if let Some(gone) = self.gone.take() {
            // It is gone either way.
            let _ = gone.await;
        }
    }
}

impl Drop for Desk {
    /// Checks of a run that was dropped are for nobody.
    fn drop(&mut self) {
        self.stop.flag().store(true, Ordering::Relaxed);
    }
}

fn begun<'a>(
    engine: &'a Engine,
    begin: Begin,
    unpriced: Option<&str>,
) -> Result<(Session<'a>, Opened, EffectClaim), LoopError> {
    let mine = |id: &SessionId| {
        let claim = engine.runtime().claim_conversation(id)?;
        claim.ok_or_else(|| LoopError::Busy(id.clone()))
    };
    let (session, mine, mut opened) = match begin {
        Begin::New {
            model,
            errand,
            message,
        } => {
            let (session, warnings) = engine.session(AGENT)?;
            let mine = mine(session.id())?;
            let user = Entry::User {
                text: message.clone(),
                prompt: true,
            };
            // Before the task begins: what has begun can be taken up.
            Entry::Begun { model, errand }.write(&session)?;
            user.clone().write(&session)?;
            session.prompt_as(0, &message)?;
            let opened = Opened {
                warnings,
                said: vec![user],
                ..Opened::of(&session)
            };
            (session, mine, opened)
        }
        Begin::Again { session: id, more } => {
            if engine.runtime().conversation_messages(&id)?.is_empty() {
                return Err(LoopError::NothingSaid(id));
            }
            let mine = mine(&id)?;
            let (session, warnings) = engine.session_of(AGENT, id, SessionStartKind::Resume)?;
            let said = journal::read(&session)?;
            let next = taken_up(&session, &said, more)?;
            let opened = Opened {
                warnings,
                said,
                next,
                ..Opened::of(&session)
            };
            (session, mine, opened)
        }
    };
    if let Some((_, policy)) = session.peek()? {
        settings::priced(unpriced, &policy)?;
        opened.capped = policy.caps.cost.or(policy.session_caps.cost).is_some();
    }
    Ok((session, opened, mine))
}

impl Opened {
    fn of(session: &Session<'_>) -> Self {
        Self {
            session: session.id().clone(),
            warnings: Vec::new(),
            said: Vec::new(),
            next: Next::On,
            capped: false,
        }
    }
}

fn taken_up(
    session: &Session<'_>,
    said: &[Entry],
    more: Option<String>,
) -> Result<Next, LoopError> {
    if let Some(Entry::User { text, prompt: true }) = said.last() {
        // The process may have died before its task began; if not, this is known.
        let answers = said.iter().filter(|entry| entry.is_an_answer()).count();
        session.prompt_as(answers, text)?;
    }
    if let Some(text) = more {
        return Ok(Next::Told { text, prompt: true });
    }
    let task = session.peek()?.and_then(|(state, _)| state.task);
    let task = task.ok_or_else(|| LoopError::NothingSaid(session.id().clone()))?;
    if is_answered(&task) {
        return Ok(Next::Told {
            text: ANSWERED.to_owned(),
            prompt: false,
        });
    }
    Ok(task.ended.map_or(Next::On, Next::Over))
}

/// A person said what the task ended waiting for.
fn is_answered(task: &Task) -> bool {
    let ended = task.ended.as_ref();
    ended.is_some_and(|ended| ended.reason == Reason::AwaitingHuman) && task.bad_ending.is_none()
}

fn work(session: &Session<'_>, jobs: &Receiver<Job>, stop: &Stop) {
    let mut alarm = left(session).and_then(|left| Instant::now().checked_add(left));
    loop {
        let job = match alarm {
            Some(at) => jobs.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match job {
            Ok(job) => job(session),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let ended = session
                    .take(Input::TimePassed)
                    .map(|said| said.task_transition());
                if let Ok(Some(transition)) = ended {
                    stop.end(Over::Ended(transition));
                    alarm = None;
                } else {
                    let left = left(session).map(|left| left.max(SOON));
                    alarm = left.and_then(|left| Instant::now().checked_add(left));
                }
            }
        }
    }
}

/// How much is left of the time that the policy gives.
fn left(session: &Session<'_>) -> Option<Duration> {
    let (state, policy) = session.peek().ok().flatten()?;
    let limit = policy.caps.wall_clock_ms?;
    Some(Duration::from_millis(
        limit.saturating_sub(state.agent_busy_ms()),
    ))
}
