//! The machine as the engine sees it: files, clocks, threads, checks and other processes. A trait,
//! so that a simulation can stand in for the machine and decide what happens when; [`RealSystem`]
//! is the one that ships.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvError, TryRecvError};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::Scope;
use std::time::{Duration, Instant, UNIX_EPOCH};

use checkrein_core::digest::Digest;
use checkrein_core::ids::UnixMillis;
use checkrein_verifiers::file_system::ReadOnlyFileSystem;
pub use checkrein_verifiers::file_system::RealFileSystem as RealSystem;
use checkrein_verifiers::{VerifierJob, VerifierKind, VerifierReport, logs};

#[cfg(unix)]
use crate::owner::UniqueProcessId;
use crate::run_environment;

/// Everything that the engine asks of the machine beside files and clocks.
pub trait System: ReadOnlyFileSystem {
    /// Waits until `ready` returns true, calling it again and again. A call may block only if it is
    /// told that it may.
    fn wait_until_condition_holds(&self, ready: &mut dyn FnMut(MayBlockThread) -> bool);

    /// Announces a thread that is about to start; the returned number identifies it.
    fn register_thread(&self) -> u64;

    /// Notes that the thread runs.
    fn mark_os_thread_started(&self, thread: u64);

    /// Notes that the thread has ended.
    fn mark_thread_ended(&self, thread: u64);

    /// Waits until these threads have ended, unless the starter waits for them by itself.
    fn wait_for_threads(&self, threads: &[u64]);

    /// Runs a check.
    fn run_verifier(&self, verifier: &dyn VerifierKind, job: &VerifierJob<'_>) -> VerifierReport;

    /// Identifies the programs that a shell script calls by name, and their interpreters.
    fn script_programs_digest(
        &self,
        script: &str,
        root: &Path,
        env: &BTreeMap<OsString, OsString>,
    ) -> Digest;

    /// The agent's own process above this hook, if it can be found.
    #[cfg(unix)]
    fn find_agent_process_above_hook(&self) -> Option<UniqueProcessId>;

    /// Whether this process is still alive.
    #[cfg(unix)]
    fn is_process_alive(&self, process: UniqueProcessId) -> bool;

    /// Returns a name that nobody else has or can guess.
    fn unguessable_unique_name(&self) -> String;

    /// Keeps a file locked as long as the returned value lives, and no longer than this process.
    fn locked_file_guard(&self, file: File) -> Box<dyn Any + Send + Sync>;
}

/// Whether a waiting call may block its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayBlockThread {
    /// It may.
    Yes,
    /// It must return at once, because another thread decides who goes on.
    No,
}

impl dyn System + '_ {
    /// Milliseconds since the Unix epoch; 0 if the clock stands before it.
    pub(crate) fn now_millis(&self) -> UnixMillis {
        let since = self
            .clock_now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The time that has passed since `began`.
    pub(crate) fn elapsed_since(&self, began: Instant) -> Duration {
        self.monotonic_now().saturating_duration_since(began)
    }

    /// Receives the next message; `None` when there will be no more.
    pub(crate) fn wait_for_channel_message<T>(&self, receiver: &Receiver<T>) -> Option<T> {
        // Blocks only where it may: in a simulation another thread decides who goes on.
        let mut received = None;
        self.wait_until_condition_holds(&mut |may_block| {
            received = match may_block {
                MayBlockThread::Yes => Some(receiver.recv().map_err(|RecvError| ())),
                MayBlockThread::No => match receiver.try_recv() {
                    Ok(message) => Some(Ok(message)),
                    Err(TryRecvError::Disconnected) => Some(Err(())),
                    Err(TryRecvError::Empty) => None,
                },
            };
            received.is_some()
        });
        received.and_then(Result::ok)
    }

    /// Locks a mutex. A poisoned one guards nothing here that could be half done.
    pub(crate) fn lock_mutex<'m, T>(&self, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
        let mut locked = None;
        self.wait_until_condition_holds(&mut |may_block| {
            locked = match may_block {
                MayBlockThread::Yes => Some(mutex.lock().unwrap_or_else(PoisonError::into_inner)),
                MayBlockThread::No => match mutex.try_lock() {
                    Ok(guard) => Some(guard),
                    Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                    Err(TryLockError::WouldBlock) => None,
                },
            };
            locked.is_some()
        });
        // Not reached as long as `wait_until_ready` keeps its promise.
        locked.unwrap_or_else(|| mutex.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The threads of a scope. All have ended when this is dropped.
pub(crate) struct ScopedThreads<'scope, 'env> {
    system: &'scope dyn System,
    scope: &'scope Scope<'scope, 'env>,
    started: RefCell<Vec<u64>>,
}

impl<'scope, 'env> ScopedThreads<'scope, 'env> {
    pub(crate) fn new(system: &'scope dyn System, scope: &'scope Scope<'scope, 'env>) -> Self {
        Self {
            system,
            scope,
            started: RefCell::default(),
        }
    }

    pub(crate) fn spawn_scoped_thread(&self, work: impl FnOnce() + Send + 'scope) {
        let (system, thread) = (self.system, self.system.register_thread());
        // Registered before the thread exists, so that a simulation knows of it before it runs.
        self.started.borrow_mut().push(thread);
        self.scope.spawn(move || {
            system.mark_os_thread_started(thread);
            let _ending = ThreadEndNotifier { system, thread };
            work();
        });
    }
}

impl Drop for ScopedThreads<'_, '_> {
    fn drop(&mut self) {
        self.system.wait_for_threads(&self.started.borrow());
    }
}

/// Reports the end of a thread, however it ends.
struct ThreadEndNotifier<'s> {
    system: &'s dyn System,
    thread: u64,
}

impl Drop for ThreadEndNotifier<'_> {
    fn drop(&mut self) {
        self.system.mark_thread_ended(self.thread);
    }
}

/// The machine that this process runs on.
impl System for RealSystem {
    fn wait_until_condition_holds(&self, ready: &mut dyn FnMut(MayBlockThread) -> bool) {
        // Each call blocks by itself, so this loop does not spin.
        while !ready(MayBlockThread::Yes) {}
    }

    fn register_thread(&self) -> u64 {
        0
    }

    fn mark_os_thread_started(&self, _: u64) {}

    fn mark_thread_ended(&self, _: u64) {}

    /// The scope of the threads waits for them.
    fn wait_for_threads(&self, _: &[u64]) {}

    fn run_verifier(&self, verifier: &dyn VerifierKind, job: &VerifierJob<'_>) -> VerifierReport {
        verifier.run_verifier_job(job)
    }

    fn script_programs_digest(
        &self,
        script: &str,
        root: &Path,
        env: &BTreeMap<OsString, OsString>,
    ) -> Digest {
        run_environment::script_programs_digest(script, root, env)
    }

    #[cfg(unix)]
    fn find_agent_process_above_hook(&self) -> Option<UniqueProcessId> {
        UniqueProcessId::find_agent_process()
    }

    #[cfg(unix)]
    fn is_process_alive(&self, process: UniqueProcessId) -> bool {
        process.is_alive()
    }

    fn unguessable_unique_name(&self) -> String {
        logs::unique_run_name()
    }

    fn locked_file_guard(&self, file: File) -> Box<dyn Any + Send + Sync> {
        Box::new(file)
    }
}
