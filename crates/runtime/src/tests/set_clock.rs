//! For tests: the real machine with a clock of its own, which only those move who sleep or wait.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use checkrein_core::digest::Digest;
use checkrein_verifiers::file_system::{
    FileStat, OpenFileForReading, OpenFolder, ReadOnlyFileSystem, SymlinkMode,
};
use checkrein_verifiers::{VerifierJob, VerifierKind, VerifierReport};

use crate::owner::UniqueProcessId;
use crate::system::{MayBlockThread, RealSystem, System};

/// Who waits looks again after so long.
const AGAIN: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct SetClock {
    began: (SystemTime, Instant),
    passed: Mutex<Duration>,
}

impl SetClock {
    pub(crate) fn new() -> Arc<Self> {
        Self::behind(Duration::ZERO)
    }

    /// One by which it is earlier than it is.
    pub(crate) fn behind(by: Duration) -> Arc<Self> {
        Arc::new(Self {
            began: (SystemTime::now() - by, Instant::now()),
            passed: Mutex::default(),
        })
    }

    /// How much time has passed on it.
    pub(crate) fn passed(&self) -> Duration {
        *self.passed.lock().unwrap()
    }
}

impl ReadOnlyFileSystem for SetClock {
    fn clock_now(&self) -> SystemTime {
        self.began.0 + self.passed()
    }

    fn monotonic_now(&self) -> Instant {
        self.began.1 + self.passed()
    }

    fn sleep(&self, time: Duration) {
        *self.passed.lock().unwrap() += time;
    }

    fn worthwhile_thread_count(&self) -> usize {
        RealSystem.worthwhile_thread_count()
    }

    fn open_folder_for_listing(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>> {
        RealSystem.open_folder_for_listing(folder)
    }

    fn stat_file(&self, path: &Path, links: SymlinkMode) -> io::Result<FileStat> {
        RealSystem.stat_file(path, links)
    }

    fn open_file_for_reading(
        &self,
        path: &Path,
        links: SymlinkMode,
    ) -> io::Result<Box<dyn OpenFileForReading>> {
        RealSystem.open_file_for_reading(path, links)
    }

    fn read_link(&self, link: &Path) -> io::Result<PathBuf> {
        RealSystem.read_link(link)
    }
}

impl System for SetClock {
    fn wait_until_condition_holds(&self, ready: &mut dyn FnMut(MayBlockThread) -> bool) {
        while !ready(MayBlockThread::No) {
            self.sleep(AGAIN);
        }
    }

    fn register_thread(&self) -> u64 {
        RealSystem.register_thread()
    }

    fn mark_os_thread_started(&self, thread: u64) {
        RealSystem.mark_os_thread_started(thread);
    }

    fn mark_thread_ended(&self, thread: u64) {
        RealSystem.mark_thread_ended(thread);
    }

    fn wait_for_threads(&self, threads: &[u64]) {
        RealSystem.wait_for_threads(threads);
    }

    fn run_verifier(&self, verifier: &dyn VerifierKind, job: &VerifierJob<'_>) -> VerifierReport {
        RealSystem.run_verifier(verifier, job)
    }

    fn script_programs_digest(
        &self,
        script: &str,
        root: &Path,
        env: &BTreeMap<OsString, OsString>,
    ) -> Digest {
        RealSystem.script_programs_digest(script, root, env)
    }

    #[cfg(unix)]
    fn find_agent_process_above_hook(&self) -> Option<UniqueProcessId> {
        RealSystem.find_agent_process_above_hook()
    }

    #[cfg(unix)]
    fn is_process_alive(&self, process: UniqueProcessId) -> bool {
        RealSystem.is_process_alive(process)
    }

    fn unguessable_unique_name(&self) -> String {
        RealSystem.unguessable_unique_name()
    }

    fn locked_file_guard(&self, file: File) -> Box<dyn Any + Send + Sync> {
        RealSystem.locked_file_guard(file)
    }
}
