//! Implements [`System`] and [`ReadOnlyFileSystem`] for one simulated process.

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
    CheckRetryability, Finding, FindingStatusAgainstBaseline, InconclusiveCause, Verdict,
};
use checkrein_runtime::{MayBlockThread, System, UniqueProcessId};
use checkrein_verifiers::file_system::{
    FileStat, OpenFileForReading, OpenFolder, ReadOnlyFileSystem, SymlinkMode,
};
use checkrein_verifiers::{VerifierJob, VerifierKind, VerifierReport};

use crate::plan::{SimulatedCheck, SimulatedCheckDependency, SimulatedCheckTreeEffect};
use crate::scheduler::{SimulatedProcessId, VirtualTime};
use crate::simulated_machine::SimulatedOperatingSystem;

/// How often a running check looks whether it was cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The same for a check with much time left.
const LONG_POLL_INTERVAL: Duration = Duration::from_millis(400);

/// See [`System`].
#[derive(Debug, Clone)]
pub(crate) struct SystemOfSimulatedProcess {
    pub(crate) machine: Arc<SimulatedOperatingSystem>,
    pub(crate) process: SimulatedProcessId,
    /// The agent above this hook.
    pub(crate) agent: SimulatedProcessId,
    pub(crate) checks: Arc<[SimulatedCheck]>,
    /// The real time that stands for the beginning of the simulation.
    pub(crate) epoch: Instant,
    /// Files that processes keep locked.
    pub(crate) locked: SimulatedFileLocks,
}

/// Files that processes keep locked: they are closed when their process is killed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimulatedFileLocks(Arc<Mutex<Vec<(SimulatedProcessId, u64, File)>>>);

impl SimulatedFileLocks {
    fn hold_simulated_file_lock(
        &self,
        process: SimulatedProcessId,
        file: File,
    ) -> SimulatedFileLockGuard {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = files
            .iter()
            .map(|(_, number, _)| number + 1)
            .max()
            .unwrap_or(0);
        files.push((process, number, file));
        SimulatedFileLockGuard {
            files: self.clone(),
            number,
        }
    }

    /// Closes the files of a killed process, as a kernel would.
    pub(crate) fn close_files_of_killed_process(&self, process: SimulatedProcessId) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(of, _, _)| *of != process);
    }
}

struct SimulatedFileLockGuard {
    files: SimulatedFileLocks,
    number: u64,
}

impl Drop for SimulatedFileLockGuard {
    fn drop(&mut self) {
        let mut files = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(_, number, _)| *number != self.number);
    }
}

impl ReadOnlyFileSystem for SystemOfSimulatedProcess {
    fn clock_now(&self) -> SystemTime {
        let ns = u64::try_from(self.machine.simulated_wall_ns()).unwrap_or(0);
        UNIX_EPOCH + Duration::from_nanos(ns)
    }

    fn monotonic_now(&self) -> Instant {
        // `Instant` cannot be made from a number, so virtual time is added to a real instant.
        self.epoch + self.machine.scheduler.simulated_now()
    }

    fn sleep(&self, time: Duration) {
        self.machine.scheduler.sleep_simulated_thread(time);
    }

    fn worthwhile_thread_count(&self) -> usize {
        // One thread: more would only multiply the turns of a tree read.
        1
    }

    fn open_folder_for_listing(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>> {
        self.machine.open_simulated_folder(folder, self.process)
    }

    fn stat_file(&self, path: &Path, _: SymlinkMode) -> io::Result<FileStat> {
        self.machine.stat_simulated_path(path)
    }

    fn open_file_for_reading(
        &self,
        path: &Path,
        _: SymlinkMode,
    ) -> io::Result<Box<dyn OpenFileForReading>> {
        self.machine.open_simulated_file_to_read(path)
    }

    // The simulated tree has no links.
    fn read_link(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

impl System for SystemOfSimulatedProcess {
    fn wait_until_condition_holds(&self, ready: &mut dyn FnMut(MayBlockThread) -> bool) {
        self.machine
            .scheduler
            .block_simulated_thread_until(&mut || ready(MayBlockThread::No));
    }

    fn register_thread(&self) -> u64 {
        self.machine
            .scheduler
            .register_simulated_thread(self.process)
    }

    fn mark_os_thread_started(&self, thread: u64) {
        self.machine.scheduler.begin_simulated_thread(thread);
    }

    fn mark_thread_ended(&self, thread: u64) {
        self.machine.scheduler.end_simulated_thread(thread);
    }

    fn wait_for_threads(&self, threads: &[u64]) {
        self.machine.scheduler.join_simulated_threads(threads);
    }

    fn run_verifier(&self, _: &dyn VerifierKind, job: &VerifierJob<'_>) -> VerifierReport {
        let name = job.spec.name.as_str();
        let check = self.checks.iter().find(|check| check.name == name);
        match check {
            Some(check) => self.run_simulated_check(check, job),
            None => VerifierReport::inconclusive_report(
                InconclusiveCause::MissingFile,
                CheckRetryability::No,
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
        self.machine
            .scheduler
            .spend_virtual_time(Duration::from_micros(30));
        // A check's script is just the name of its program.
        let version = self.machine.simulated_program_version(script).unwrap_or(0);
        Digest::hash_bytes(&version.to_le_bytes())
    }

    fn find_agent_process_above_hook(&self) -> Option<UniqueProcessId> {
        // Process numbers are never reused here, so any start time will do.
        Some(UniqueProcessId::new(self.agent.0, 1))
    }

    fn is_process_alive(&self, process: UniqueProcessId) -> bool {
        self.machine
            .scheduler
            .is_simulated_process_alive(SimulatedProcessId(process.pid()))
    }

    fn unguessable_unique_name(&self) -> String {
        let scheduler = &self.machine.scheduler;
        format!(
            "{:08x}-{}",
            scheduler.random_below(u32::MAX),
            self.process.0
        )
    }

    fn locked_file_guard(&self, file: File) -> Box<dyn Any + Send + Sync> {
        Box::new(self.locked.hold_simulated_file_lock(self.process, file))
    }
}

impl SystemOfSimulatedProcess {
    fn run_simulated_check(&self, check: &SimulatedCheck, job: &VerifierJob<'_>) -> VerifierReport {
        let scheduler = &self.machine.scheduler;
        let run = self
            .machine
            .begin_simulated_check_run(&check.name, self.process);
        let began = scheduler.simulated_now();
        // One part for the beginning, one for each input and one for the end: inputs are read at
        // different times, so a change in the middle can be missed.
        let times = u32::try_from(check.reads.len()).unwrap_or(1) + 2;
        let first = match check.reads.first() {
            Some(SimulatedCheckDependency::File(name)) => Some(name.as_str()),
            _ => None,
        };
        let mut stashed = None;
        let mut bad = BTreeSet::new();
        let mut cut = None;
        for (at, part) in (0..times).enumerate() {
            let jitter = scheduler.random_below(1_000);
            // The jitter lets two checks with equal durations read in either order.
            let until =
                began + check.duration * part / times + Duration::from_micros(jitter.into());
            cut = cut.or_else(|| self.wait_unless_aborted(until, job));
            if cut.is_some() {
                break;
            }
            if part == 0 {
                match (check.behavior, first) {
                    (SimulatedCheckTreeEffect::Stashes, Some(name)) => {
                        let old = self.machine.read_simulated_file(name);
                        if old.as_ref().is_some_and(|old| !old.starts_with(b"good")) {
                            self.machine
                                .write_file_on_behalf_of_check(name, Some(b"good 0"));
                            stashed = Some((name, old));
                        }
                    }
                    (SimulatedCheckTreeEffect::Rewrites, Some(name)) => {
                        if let Some(content) = self.machine.read_simulated_file(name) {
                            self.machine
                                .write_file_on_behalf_of_check(name, Some(&content));
                        }
                    }
                    _ => {}
                }
                continue;
            }
            if let Some(subject) = check.reads.get(at - 1)
                && !self.machine.does_simulated_input_pass_check(subject)
            {
                bad.insert(subject.to_string());
            }
        }
        // Also after a cut: a check that is cancelled restores its stash, a killed one does not get
        // here.
        if let Some((name, old)) = stashed {
            self.machine
                .write_file_on_behalf_of_check(name, old.as_deref());
        }
        let cut = cut.or_else(|| self.wait_unless_aborted(began + check.duration, job));
        let found = cut.is_none().then(|| bad.clone());
        self.machine
            .end_simulated_check_run(&check.name, self.process, run, found);
        let duration_ms = simulated_time_to_millis(scheduler.simulated_now().saturating_sub(began));
        if let Some(cause) = cut {
            self.machine
                .append_simulation_trace_line(format!("{} is cut: {cause:?}", check.name));
            let report = VerifierReport::inconclusive_report(
                cause,
                CheckRetryability::Yes,
                format!("run {run}"),
            );
            return VerifierReport {
                duration_ms,
                ..report
            };
        }
        let verdict = match bad.is_empty() {
            true => Verdict::Pass,
            false => Verdict::Fail,
        };
        self.machine
            .append_simulation_trace_line(format!("{} says {verdict:?} {bad:?}", check.name));
        let findings: Vec<Finding> = bad
            .iter()
            .map(|id| simulated_check_failure_finding(id))
            .collect();
        // Only a source of the remaining fields; verdict and cause are replaced below.
        let report = VerifierReport::inconclusive_report(
            InconclusiveCause::Crash,
            CheckRetryability::Yes,
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

    /// Waits until a time; returns the cause if the check is cancelled before.
    fn wait_unless_aborted(
        &self,
        until: VirtualTime,
        job: &VerifierJob<'_>,
    ) -> Option<InconclusiveCause> {
        let scheduler = &self.machine.scheduler;
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
            let left = until.saturating_sub(scheduler.simulated_now());
            if left.is_zero() {
                return None;
            }
            // Long checks poll less often, or a check of 20 minutes would take tens of thousands of
            // turns.
            let tick = (left / 40).clamp(POLL_INTERVAL, LONG_POLL_INTERVAL);
            scheduler.sleep_simulated_thread(left.min(tick));
        }
    }
}

fn simulated_check_failure_finding(id: &str) -> Finding {
    Finding {
        id: id.to_owned(),
        file: None,
        line: None,
        rule: None,
        message: format!("{id} is bad"),
        state: FindingStatusAgainstBaseline::New,
    }
}

fn simulated_time_to_millis(time: VirtualTime) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
