//! Implements the relay outside of a confinement: it receives what hooks inside send, judges it
//! where the run is, and answers. What comes in is the agent's word: it names no store, no folder
//! and no session that the run did not begin.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::{Runtime, VerificationProgress};
use checkrein_store::{SqliteStore, Store as _};

use super::relay_client::{RelayReplyHeader, SOCKET_NAME, SandboxRelayRequestHeader};
use crate::agent_message::MAX_INPUT;
use crate::commands::{engine, hook};
use crate::locate::ProjectLocation;

/// Longest header of a request, in bytes.
const MAX_ENVELOPE: u64 = 1024 * 1024;
/// The level that is recorded with what is judged here.
pub(crate) const CONFINED_LEVEL: &str = "L2";

/// What judges the messages of one run.
pub(crate) struct RelayedHookServer {
    pub(crate) located: ProjectLocation,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) attempts: Option<u32>,
    /// Whether messages that are not from the run's own hooks are sealed as the run's are.
    pub(crate) under_run: bool,
    pub(crate) progress: Arc<dyn Fn(VerificationProgress) + Send + Sync>,
    sessions: Mutex<BTreeSet<SessionId>>,
}

impl RelayedHookServer {
    pub(crate) fn new(
        located: &ProjectLocation,
        store: Arc<SqliteStore>,
        attempts: Option<u32>,
        under_run: bool,
        progress: Arc<dyn Fn(VerificationProgress) + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            located: located.clone(),
            store,
            attempts,
            under_run,
            progress,
            sessions: Mutex::default(),
        })
    }

    /// Returns the runtime that judges a message.
    pub(crate) fn build_checkrein_runtime_for_relay(&self, from_run: bool) -> Runtime {
        let store = self.store.clone();
        let runtime = if from_run || self.under_run {
            engine::build_hook_runtime_under_run(&self.located, store, self.attempts)
        } else {
            engine::build_checkrein_runtime(&self.located, store, TaskDriverKind::Hook)
        };
        runtime.with_protection_level(CONFINED_LEVEL)
    }

    /// Allows a session that the run itself began or resumed.
    pub(crate) fn add_allowed_relay_session(&self, session: &SessionId) {
        self.lock_allowed_sessions().insert(session.clone());
    }

    /// Returns whether this session is the run's, or begins here.
    pub(crate) fn is_session_of_run(&self, session: &SessionId) -> bool {
        if self.lock_allowed_sessions().contains(session) {
            return true;
        }
        // A session without events is new and may begin here. One with events is another run's or
        // another agent's, and the agent inside must not write into it.
        let begins = self
            .store
            .events_after(session, EventSeq(0))
            .is_ok_and(|events| events.is_empty());
        if begins {
            self.add_allowed_relay_session(session);
        }
        begins
    }

    fn lock_allowed_sessions(&self) -> std::sync::MutexGuard<'_, BTreeSet<SessionId>> {
        // A thread that panicked over one message must not silence all later ones.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens in this folder as long as the process lives.
    #[cfg(unix)]
    pub(crate) fn serve_hook_relay_in_folder(self: Arc<Self>, folder: &Path) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::net::UnixListener;
        let opened = std::fs::File::open(folder)?;
        let listener = UnixListener::bind(format!(
            "/proc/self/fd/{}/{SOCKET_NAME}",
            opened.as_raw_fd()
        ))?;
        // One thread per message: a check that takes minutes must not keep other hooks waiting.
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let desk = Arc::clone(&self);
                // A connection that cannot be answered is closed, which the hook inside reports.
                std::thread::spawn(move || desk.serve_hook_from_sandbox(&stream));
            }
        });
        Ok(())
    }

    #[cfg(not(unix))]
    pub(crate) fn serve_hook_relay_in_folder(self: Arc<Self>, _folder: &Path) -> io::Result<()> {
        Err(io::Error::other("there are no confinements here"))
    }

    #[cfg(unix)]
    fn serve_hook_from_sandbox(&self, stream: &std::os::unix::net::UnixStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut envelope = Vec::new();
        reader
            .by_ref()
            .take(MAX_ENVELOPE)
            .read_until(b'\n', &mut envelope)?;
        let envelope: SandboxRelayRequestHeader = serde_json::from_slice(&envelope)?;
        let mut message = Vec::new();
        // The hook inside refuses longer messages itself. One that is longer all the same is cut
        // here and judged as one that cannot be read.
        reader.take(MAX_INPUT + 1).read_to_end(&mut message)?;
        // Adapters see the variables that the hook had inside, not those of `run`.
        let env = |name: &str| {
            let found = envelope.env.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let reply = hook::answer_relayed_hook_event(self, &envelope.arguments, &message, &env);
        let slip = RelayReplyHeader {
            exit_code: reply.exit_code,
            stdout: reply.stdout.len(),
            stderr: reply.stderr.len(),
        };
        let mut answer = serde_json::to_vec(&slip)?;
        answer.push(b'\n');
        answer.extend(reply.stdout);
        answer.extend(reply.stderr);
        let mut stream = stream;
        stream.write_all(&answer)
    }
}
