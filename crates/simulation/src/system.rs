//! The machine as one simulated process sees it.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use checkrein_core::digest::Digest;
use checkrein_core::evidence::{
    Finding, FindingBaselineState, InconclusiveCause, Retryability, Verdict,
};
use checkrein_runtime::{System, ThreadBlockingPermission, UniqueProcessId};
use checkrein_verifiers::file_system::{FileStat, FileSystem, OpenFile, OpenFolder, SymlinkMode};
use checkrein_verifiers::{VerifierJob, VerifierKind, VerifierReport};

use crate::plan::{CheckPlan, Habit, Subject};
use crate::scheduler::{Process, Time};
use crate::world::World;

/// How often a running check looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);
/// And one that has a long way to go yet.
const LONG_TICK: Duration = Duration::from_millis(400);

/// See [`System`].
#[derive(Debug, Clone)]
pub(crate) struct SimulatedSystem {
    pub(crate) world: Arc<World>,
    pub(crate) process: Process,
    /// The agent above this hook.
    pub(crate) agent: Process,
    pub(crate) checks: Arc<[CheckPlan]>,
    /// The beginning of the simulation.
    pub(crate) epoch: Instant,
    /// Files that processes keep locked.
    pub(crate) locked: LockedFiles,
}

/// Files that processes keep locked: they are closed when their process is killed.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockedFiles(Arc<Mutex<Vec<(Process, u64, File)>>>);

impl LockedFiles {
    fn keep(&self, process: Process, file: File) -> Kept {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = files
            .iter()
            .map(|(_, number, _)| number + 1)
            .max()
            .unwrap_or(0);
        files.push((process, number, file));
        Kept {
            files: self.clone(),
            number,
        }
    }

    /// Closes those of a process.
    pub(crate) fn close(&self, process: Process) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(of, _, _)| *of != process);
    }
}

struct Kept {
    files: LockedFiles,
    number: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut files = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(_, number, _)| *number != self.number);
    }
}

impl FileSystem for SimulatedSystem {
    fn clock_now(&self) -> SystemTime {
        let ns = u64::try_from(self.world.wall_ns()).unwrap_or(0);
        UNIX_EPOCH + Duration::from_nanos(ns)
    }

    fn monotonic_now(&self) -> Instant {
        self.epoch + self.world.scheduler.now()
    }

    fn sleep(&self, time: Duration) {
        self.world.scheduler.sleep(time);
    }

    fn worthwhile_thread_count(&self) -> usize {
        1
    }

    fn open_folder_for_listing(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>> {
        self.world.open_folder(folder, self.process)
    }

    fn stat_file(&self, path: &Path, _: SymlinkMode) -> io::Result<FileStat> {
        self.world.stat(path)
    }

    fn open_file_for_reading(&self, path: &Path, _: SymlinkMode) -> io::Result<Box<dyn OpenFile>> {
        self.world.open_file(path)
    }

    fn read_link(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

impl System for SimulatedSystem {
    fn wait_until_ready(&self, ready: &mut dyn FnMut(ThreadBlockingPermission) -> bool) {
        self.world
            .scheduler
            .wait(&mut || ready(ThreadBlockingPermission::No));
    }

    fn register_thread(&self) -> u64 {
        self.world.scheduler.create(self.process)
    }

    fn mark_thread_started(&self, thread: u64) {
        self.world.scheduler.begin(thread);
    }

    fn mark_thread_ended(&self, thread: u64) {
        self.world.scheduler.end(thread);
    }

    fn wait_for_threads(&self, threads: &[u64]) {
        self.world.scheduler.join(threads);
    }

    fn run_verifier(&self, _: &dyn VerifierKind, job: &VerifierJob<'_>) -> VerifierReport {
        let name = job.spec.name.as_str();
        let check = self.checks.iter().find(|check| check.name == name);
        match check {
            Some(check) => self.run(check, job),
            None => VerifierReport::inconclusive_report(
                InconclusiveCause::MissingFile,
                Retryability::No,
                "no such check",
            ),
        }
    }

    fn script_programs_digest(
        &self,
        script: &str,
        _: &Path,
        _: &BTreeMap<OsString, OsString>,
    ) -> Digest {
        self.world.scheduler.did(Duration::from_micros(30));
        let version = self.world.program(script).unwrap_or(0);
        Digest::hash_bytes(&version.to_le_bytes())
    }

    fn find_agent_process_above_hook(&self) -> Option<UniqueProcessId> {
        Some(UniqueProcessId::new(self.agent.0, 1))
    }

    fn is_process_alive(&self, process: UniqueProcessId) -> bool {
        self.world.scheduler.is_alive(Process(process.pid()))
    }

    fn unique_name(&self) -> String {
        let scheduler = &self.world.scheduler;
        format!("{:08x}-{}", scheduler.random(u32::MAX), self.process.0)
    }

    fn keep_file_locked(&self, file: File) -> Box<dyn Any + Send + Sync> {
        Box::new(self.locked.keep(self.process, file))
    }
}

impl SimulatedSystem {
    fn run(&self, check: &CheckPlan, job: &VerifierJob<'_>) -> VerifierReport {
        let scheduler = &self.world.scheduler;
        let run = self.world.begin_run(&check.name, self.process);
        let began = scheduler.now();
        let times = u32::try_from(check.reads.len()).unwrap_or(1) + 2;
        let first = match check.reads.first() {
            Some(Subject::File(name)) => Some(name.as_str()),
            _ => None,
        };
        let mut stashed = None;
        let mut bad = BTreeSet::new();
        let mut cut = None;
        for (at, part) in (0..times).enumerate() {
            let jitter = scheduler.random(1_000);
            let until = began + check.lasts * part / times + Duration::from_micros(jitter.into());
            cut = cut.or_else(|| self.wait_until(until, job));
            if cut.is_some() {
                break;
            }
            if part == 0 {
                match (check.habit, first) {
                    (Habit::Stashes, Some(name)) => {
                        let old = self.world.content(name);
                        if old.as_ref().is_some_and(|old| !old.starts_with(b"good")) {
                            self.world.write_by_check(name, Some(b"good 0"));
                            stashed = Some((name, old));
                        }
                    }
                    (Habit::Rewrites, Some(name)) => {
                        if let Some(content) = self.world.content(name) {
                            self.world.write_by_check(name, Some(&content));
                        }
                    }
                    _ => {}
                }
                continue;
            }
            if let Some(subject) = check.reads.get(at - 1)
                && !self.world.read_by_check(subject)
            {
                bad.insert(subject.to_string());
            }
        }
        if let Some((name, old)) = stashed {
            self.world.write_by_check(name, old.as_deref());
        }
        let cut = cut.or_else(|| self.wait_until(began + check.lasts, job));
        let found = cut.is_none().then(|| bad.clone());
        self.world.end_run(&check.name, self.process, run, found);
        let duration_ms = millis(scheduler.now().saturating_sub(began));
        if let Some(cause) = cut {
            self.world.tell(format!("{} is cut: {cause:?}", check.name));
            let report =
                VerifierReport::inconclusive_report(cause, Retryability::Yes, format!("run {run}"));
            return VerifierReport {
                duration_ms,
                ..report
            };
        }
        let verdict = match bad.is_empty() {
            true => Verdict::Pass,
            false => Verdict::Fail,
        };
        self.world
            .tell(format!("{} says {verdict:?} {bad:?}", check.name));
        let findings: Vec<Finding> = bad.iter().map(|id| finding(id)).collect();
        let report = VerifierReport::inconclusive_report(
            InconclusiveCause::Crash,
            Retryability::Yes,
            format!("run {run}"),
        );
        VerifierReport {
            verdict,
            cause: None,
            findings_total: u32::try_from(findings.len()).unwrap_or(u32::MAX),
            findings,
            exit_code: Some(i32::from(!bad.is_empty())),
            duration_ms,
            ..report
        }
    }

    /// Waits until then; says why it is cut before.
    fn wait_until(&self, until: Time, job: &VerifierJob<'_>) -> Option<InconclusiveCause> {
        let scheduler = &self.world.scheduler;
        loop {
            if job.cancelled.load(Ordering::Relaxed) {
                return Some(InconclusiveCause::ReplyDeadline);
            }
            if job
                .deadline
                .is_some_and(|deadline| self.monotonic_now() >= deadline)
            {
                return Some(InconclusiveCause::ReplyDeadline);
            }
            let left = until.saturating_sub(scheduler.now());
            if left.is_zero() {
                return None;
            }
            let tick = (left / 40).clamp(TICK, LONG_TICK);
            scheduler.sleep(left.min(tick));
        }
    }
}

fn finding(id: &str) -> Finding {
    Finding {
        id: id.to_owned(),
        file: None,
        line: None,
        rule: None,
        message: format!("{id} is bad"),
        state: FindingBaselineState::New,
    }
}

fn millis(time: Time) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
