//! Simulates the machine in memory: files with virtual timestamps, programs, and state outside of
//! the machine that checks read. Changes are recorded with their time, so that for each moment it
//! is known whether the checks would have passed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_verifiers::file_system::{
    FileKind, FileStamp, FileStat, OpenFileForReading, OpenFolder,
};

use crate::plan::{SimulatedCheck, SimulatedCheckDependency, SimulationPlan};
use crate::scheduler::{SimulatedProcessId, SimulatedThreadScheduler, VirtualTime};

/// Wall-clock time at the beginning of the simulation, in nanoseconds since 1970.
const EPOCH_NS: i64 = 1_700_000_000_000_000_000;
/// Bytes that one read returns at most. Files are longer, so that a change can fall between two
/// reads.
const READ_PIECE: usize = 4;
/// Delay until a write through a memory mapping shows in the timestamp.
const MAPPED_WRITE_DELAY: Duration = Duration::from_secs(30);
/// Longest time of a file-system call, in microseconds.
const SLOWEST_CALL: u32 = 60;

/// The machine.
#[derive(Debug)]
pub(crate) struct SimulatedOperatingSystem {
    /// Who runs, and when.
    pub(crate) scheduler: Arc<SimulatedThreadScheduler>,
    /// Where the tree is.
    pub(crate) root: PathBuf,
    /// The resolution of the file system's clock.
    tick: Duration,
    checks: Vec<SimulatedCheck>,
    /// Whether one passing check is enough.
    any_is_enough: bool,
    state: Mutex<SimulatedMachineState>,
}

#[derive(Debug, Default)]
struct SimulatedMachineState {
    files: BTreeMap<PathBuf, SimulatedFile>,
    inodes: u64,
    /// Versions of programs by name; an even one is good.
    programs: BTreeMap<String, u64>,
    /// What checks read beyond this machine; an even one is good.
    outside: u64,
    /// Number of changes that were not made by a check.
    changes: u64,
    /// Moments from which the checks would pass, or would not.
    passes: Vec<(VirtualTime, bool)>,
    /// The same, assuming that the outside is good.
    passes_but_outside: Vec<(VirtualTime, bool)>,
    /// Which checks are running, by whom.
    running: Vec<(String, SimulatedProcessId)>,
    /// How often each process has begun to read the tree, and when it last did.
    tree_reads: BTreeMap<SimulatedProcessId, (u32, VirtualTime)>,
    /// How often each process has run each check.
    runs: BTreeMap<(SimulatedProcessId, String), u32>,
    /// Findings by the run that made them.
    findings: BTreeMap<u64, SimulatedFinishedCheckRun>,
    /// When each run began, and the number of changes at that time.
    begun: BTreeMap<u64, (VirtualTime, u64)>,
    /// When the newest run of each check began, by the wall clock.
    newest_began_ns: BTreeMap<String, i64>,
    /// Claims and the processes that hold them.
    claims: BTreeMap<Digest, SimulatedProcessId>,
    story: Vec<(VirtualTime, String)>,
    violations: Vec<String>,
    /// How far the wall clock is ahead of the virtual time.
    clock_ahead_ns: i64,
    /// How many persons have Checkrein switched off.
    off_by: u32,
    /// Calls that changed the outside: their session, when they began, and when they were reported.
    outside_calls: Vec<(String, VirtualTime, Option<VirtualTime>)>,
    /// How often evidence was voided without a change: by a seal, by a counted act, by a call while
    /// Checkrein was off, or by a clock that was put back.
    renewals: u64,
    /// Number of hooks that are counting an act.
    acts_being_counted: u32,
}

/// A run that was not cancelled.
#[derive(Debug, Clone)]
struct SimulatedFinishedCheckRun {
    check: String,
    findings: BTreeSet<String>,
    ended: VirtualTime,
}

#[derive(Debug, Clone)]
struct SimulatedFile {
    content: Vec<u8>,
    inode: u64,
    /// When it was last written in a way that its timestamp shows.
    changed: VirtualTime,
    stamp_ns: i64,
}

/// The time of a write: in virtual time, and as its timestamp.
#[derive(Debug, Clone, Copy)]
struct SimulatedWriteTime {
    changed: VirtualTime,
    stamp_ns: i64,
}

impl SimulatedWriteTime {
    const START: Self = Self {
        changed: VirtualTime::ZERO,
        stamp_ns: EPOCH_NS,
    };
}

impl SimulatedOperatingSystem {
    /// Creates a machine for this plan. Everything that the checks read is good.
    pub(crate) fn new(
        scheduler: Arc<SimulatedThreadScheduler>,
        root: &Path,
        plan: &SimulationPlan,
    ) -> Arc<Self> {
        let checks = &plan.checks;
        let world = Self {
            scheduler,
            root: root.to_owned(),
            tick: plan.tick,
            checks: checks.clone(),
            any_is_enough: plan.any_is_enough,
            state: Mutex::default(),
        };
        let ignored = crate::run::IGNORE_RULES;
        world.lock_simulated_machine_state().write_simulated_file(
            &root.join(".gitignore"),
            ignored.as_bytes(),
            SimulatedWriteTime::START,
        );
        for subject in checks.iter().flat_map(|check| &check.reads) {
            world
                .lock_simulated_machine_state()
                .set_simulated_input_good(&world.root, subject, true, SimulatedWriteTime::START);
        }
        world.record_simulated_pass_state();
        Arc::new(world)
    }

    fn lock_simulated_machine_state(&self) -> MutexGuard<'_, SimulatedMachineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current time and the timestamp of a write.
    fn simulated_write_time_now(&self) -> SimulatedWriteTime {
        let (changed, wall_ns) = (self.scheduler.simulated_now(), self.simulated_wall_ns());
        let tick = i64::try_from(self.tick.as_nanos()).unwrap_or(1).max(1);
        // Rounded down, as file systems do: two writes within one tick have the same timestamp.
        let stamp_ns = wall_ns - wall_ns % tick;
        SimulatedWriteTime { changed, stamp_ns }
    }

    fn spend_random_system_call_time(&self) {
        let took = self.scheduler.random_below(SLOWEST_CALL);
        self.scheduler
            .spend_virtual_time(Duration::from_micros(u64::from(took)));
    }

    /// Makes an input good or bad, by anybody but a check.
    pub(crate) fn make_check_input_good_or_bad(
        &self,
        subject: &SimulatedCheckDependency,
        good: bool,
        who: &str,
    ) {
        let stamp = self.simulated_write_time_now();
        let mut state = self.lock_simulated_machine_state();
        state.set_simulated_input_good(&self.root, subject, good, stamp);
        state.changes += 1;
        // The lock must be released before time is spent: the next thread to run may need it.
        drop(state);
        self.record_simulated_pass_state();
        self.append_simulation_trace_line(format!(
            "{who} makes {subject} {}",
            good_or_bad_word(good)
        ));
        self.spend_random_system_call_time();
    }

    /// Like [`Self::make_check_input_good_or_bad`], but through a memory mapping: the timestamp
    /// stays unchanged, unless the last visible write is older than the delay after which a mapped
    /// page is written back.
    pub(crate) fn change_simulated_file_through_mmap(
        &self,
        subject: &SimulatedCheckDependency,
        good: bool,
        who: &str,
    ) {
        let stamp = self.simulated_write_time_now();
        let mut state = self.lock_simulated_machine_state();
        // Only files can be mapped; programs and the outside change as usual.
        let old = match subject {
            SimulatedCheckDependency::File(name) => {
                let file = state.files.get(&self.root.join(name));
                let is_recent = |age: Duration| age < MAPPED_WRITE_DELAY;
                let file = file.filter(|f| is_recent(stamp.changed.saturating_sub(f.changed)));
                file.map(|file| (self.root.join(name), file.changed, file.stamp_ns))
            }
            SimulatedCheckDependency::Program(_) | SimulatedCheckDependency::Outside => None,
        };
        state.set_simulated_input_good(&self.root, subject, good, stamp);
        // The content changes but the timestamp does not: what a digest cache must not rely on.
        if let Some((path, changed, stamp_ns)) = old
            && let Some(file) = state.files.get_mut(&path)
        {
            (file.changed, file.stamp_ns) = (changed, stamp_ns);
        }
        state.changes += 1;
        drop(state);
        // Recorded before any time is spent, so that no other process can act in between.
        self.record_simulated_pass_state();
        self.append_simulation_trace_line(format!(
            "{who} makes {subject} {} through a mapping",
            good_or_bad_word(good)
        ));
        self.spend_random_system_call_time();
    }

    /// Writes a file on behalf of a check; `None` removes it.
    pub(crate) fn write_file_on_behalf_of_check(&self, name: &str, content: Option<&[u8]>) {
        let stamp = self.simulated_write_time_now();
        let path = self.root.join(name);
        let mut state = self.lock_simulated_machine_state();
        match content {
            Some(content) => state.write_simulated_file(&path, content, stamp),
            None => {
                state.files.remove(&path);
            }
        }
        drop(state);
        self.record_simulated_pass_state();
        self.spend_random_system_call_time();
    }

    /// Returns what a check finds when it reads an input.
    pub(crate) fn does_simulated_input_pass_check(
        &self,
        subject: &SimulatedCheckDependency,
    ) -> bool {
        let good = self
            .lock_simulated_machine_state()
            .is_simulated_check_input_good(&self.root, subject);
        self.spend_random_system_call_time();
        good
    }

    /// Content of a file.
    pub(crate) fn read_simulated_file(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.lock_simulated_machine_state();
        let file = state.files.get(&self.root.join(name))?;
        Some(file.content.clone())
    }

    /// The version of a program, if there is one of that name.
    pub(crate) fn simulated_program_version(&self, name: &str) -> Option<u64> {
        self.lock_simulated_machine_state()
            .programs
            .get(name)
            .copied()
    }

    /// Returns the number of changes that were not made by a check.
    pub(crate) fn non_check_change_count(&self) -> u64 {
        self.lock_simulated_machine_state().changes
    }

    fn record_simulated_pass_state(&self) {
        let now = self.scheduler.simulated_now();
        let mut state = self.lock_simulated_machine_state();
        let passes = self
            .checks_would_pass(|subject| state.is_simulated_check_input_good(&self.root, subject));
        let but_outside = self.checks_would_pass(|subject| {
            *subject == SimulatedCheckDependency::Outside
                || state.is_simulated_check_input_good(&self.root, subject)
        });
        record_simulated_check_pass_change(&mut state.passes, now, passes);
        record_simulated_check_pass_change(&mut state.passes_but_outside, now, but_outside);
    }

    fn checks_would_pass(&self, is_good: impl Fn(&SimulatedCheckDependency) -> bool) -> bool {
        let mut passing = self
            .checks
            .iter()
            .map(|check| check.reads.iter().all(&is_good));
        match self.any_is_enough {
            true => passing.any(|passes| passes),
            false => passing.all(|passes| passes),
        }
    }

    /// Whether all checks would have passed at some moment of this span, were all well outside.
    pub(crate) fn would_checks_pass_ignoring_outside_state(
        &self,
        from: VirtualTime,
        to: VirtualTime,
    ) -> bool {
        check_state_occurred_in_span(
            &self.lock_simulated_machine_state().passes_but_outside,
            from,
            to,
            true,
        )
    }

    /// Whether all checks would have passed at some moment of this span.
    pub(crate) fn checks_pass_sometime_in_span(&self, from: VirtualTime, to: VirtualTime) -> bool {
        check_state_occurred_in_span(&self.lock_simulated_machine_state().passes, from, to, true)
    }

    /// Whether some check would have failed at some moment of this span.
    pub(crate) fn would_check_fail_within_span(&self, from: VirtualTime, to: VirtualTime) -> bool {
        check_state_occurred_in_span(&self.lock_simulated_machine_state().passes, from, to, false)
    }

    /// Begins a run of a check; returns the number of the run.
    pub(crate) fn begin_simulated_check_run(
        &self,
        check: &str,
        process: SimulatedProcessId,
    ) -> u64 {
        let wall_ns = self.simulated_wall_ns();
        let mut state = self.lock_simulated_machine_state();
        // The invariant of claims: no two runs of one check in one root overlap.
        if let Some((_, other)) = state.running.iter().find(|(name, _)| name == check) {
            let other = *other;
            state.violations.push(format!(
                "two runs of one check overlap: {check}, by {process:?} and by {other:?}"
            ));
        }
        state.running.push((check.to_owned(), process));
        *state.runs.entry((process, check.to_owned())).or_default() += 1;
        // The total of all runs is unique, since each run has increased it.
        let run = u64::from(state.runs.values().sum::<u32>());
        let begun = (self.scheduler.simulated_now(), state.changes);
        state.begun.insert(run, begun);
        state.newest_began_ns.insert(check.to_owned(), wall_ns);
        drop(state);
        self.append_simulation_trace_line(format!("{process:?} runs {check}"));
        run
    }

    /// Ends a run, with its findings unless it was cancelled.
    pub(crate) fn end_simulated_check_run(
        &self,
        check: &str,
        process: SimulatedProcessId,
        run: u64,
        findings: Option<BTreeSet<String>>,
    ) {
        let mut state = self.lock_simulated_machine_state();
        let found = state
            .running
            .iter()
            .position(|(name, by)| name == check && *by == process);
        if let Some(found) = found {
            // Not found if the process was killed and its runs were dropped.
            state.running.remove(found);
        }
        let now = self.scheduler.simulated_now();
        if let Some(findings) = findings {
            let finished = SimulatedFinishedCheckRun {
                check: check.to_owned(),
                findings,
                ended: now,
            };
            state.findings.insert(run, finished);
        }
    }

    /// Returns what a run of a check found. `None` if there is no such run, or if it is outdated: a
    /// later run ended before `by`, found something else, and nothing has changed since it began.
    pub(crate) fn findings_of_recorded_simulated_run(
        &self,
        check: &str,
        run: u64,
        by: VirtualTime,
    ) -> Option<BTreeSet<String>> {
        let state = self.lock_simulated_machine_state();
        let told = state
            .findings
            .get(&run)
            .filter(|told| told.check == check)?;
        let is_the_last_word = |(later, finished): (&u64, &SimulatedFinishedCheckRun)| {
            let begun = state.begun.get(later);
            let nothing_changed = |(begun, changes): &(VirtualTime, u64)| {
                // A later run that began before a change proves nothing about the tree as it is.
                *begun >= told.ended && *changes == state.changes
            };
            finished.check == check
                && finished.ended <= by
                && finished.findings != told.findings
                && begun.is_some_and(nothing_changed)
        };
        let mut later = state.findings.range(run + 1..);
        (!later.any(is_the_last_word)).then(|| told.findings.clone())
    }

    /// When the newest run of a check began, by the wall clock.
    pub(crate) fn newest_check_run_start_ns(&self, check: &str) -> Option<i64> {
        self.lock_simulated_machine_state()
            .newest_began_ns
            .get(check)
            .copied()
    }

    /// Whether any check is running.
    pub(crate) fn is_any_check_running(&self) -> bool {
        !self.lock_simulated_machine_state().running.is_empty()
    }

    /// How often this process has run this check.
    pub(crate) fn simulated_check_run_count(
        &self,
        process: SimulatedProcessId,
        check: &str,
    ) -> u32 {
        let state = self.lock_simulated_machine_state();
        let runs = state.runs.get(&(process, check.to_owned()));
        runs.copied().unwrap_or(0)
    }

    /// How often this process has begun to read the tree, and when it did last.
    pub(crate) fn simulated_process_tree_read_stats(
        &self,
        process: SimulatedProcessId,
    ) -> (u32, VirtualTime) {
        let state = self.lock_simulated_machine_state();
        state.tree_reads.get(&process).copied().unwrap_or_default()
    }

    /// Takes a claim for a process, if nobody has it.
    pub(crate) fn try_claim_check_for_process(
        &self,
        key: &Digest,
        process: SimulatedProcessId,
    ) -> bool {
        let mut state = self.lock_simulated_machine_state();
        let is_free = !state.claims.contains_key(key);
        if is_free {
            state.claims.insert(*key, process);
        }
        is_free
    }

    /// Releases a claim.
    pub(crate) fn release_check_claim(&self, key: &Digest, process: SimulatedProcessId) {
        let mut state = self.lock_simulated_machine_state();
        if state.claims.get(key) == Some(&process) {
            state.claims.remove(key);
        }
    }

    /// Frees all claims of a process that is gone.
    pub(crate) fn release_process_claims(&self, process: SimulatedProcessId) {
        self.lock_simulated_machine_state()
            .claims
            .retain(|_, by| *by != process);
    }

    /// Ends the runs of a process that is gone.
    pub(crate) fn drop_check_runs_of_process(&self, process: SimulatedProcessId) {
        self.lock_simulated_machine_state()
            .running
            .retain(|(_, by)| *by != process);
    }

    /// Adds a line to the story.
    pub(crate) fn append_simulation_trace_line(&self, line: impl Into<String>) {
        let now = self.scheduler.simulated_now();
        self.lock_simulated_machine_state()
            .story
            .push((now, line.into()));
    }

    /// Records a violation of an invariant.
    pub(crate) fn record_simulation_violation(&self, what: impl Into<String>) {
        let what = what.into();
        self.append_simulation_trace_line(format!("VIOLATION: {what}"));
        self.lock_simulated_machine_state().violations.push(what);
    }

    /// Returns the violations so far.
    pub(crate) fn simulation_violations(&self) -> Vec<String> {
        self.lock_simulated_machine_state().violations.clone()
    }

    /// What happened.
    pub(crate) fn simulation_story(&self) -> Vec<(VirtualTime, String)> {
        self.lock_simulated_machine_state().story.clone()
    }

    pub(crate) fn simulated_wall_ns(&self) -> i64 {
        let ahead = self.lock_simulated_machine_state().clock_ahead_ns;
        EPOCH_NS + simulated_time_to_nanos(self.scheduler.simulated_now()) + ahead
    }

    /// Suspends the machine: only the wall clock goes on. Mapped pages are written back by then, so
    /// the next mapped write shows in the timestamp.
    pub(crate) fn suspend_simulated_machine(&self, span: Duration) {
        self.append_simulation_trace_line(format!("the machine sleeps for {span:?}"));
        let mut state = self.lock_simulated_machine_state();
        state.clock_ahead_ns += simulated_time_to_nanos(span);
        // Moves the last visible write back by the delay; see `change_simulated_file_through_mmap`.
        for file in state.files.values_mut() {
            file.changed = file.changed.saturating_sub(MAPPED_WRITE_DELAY);
        }
        drop(state);
        self.spend_random_system_call_time();
    }

    /// Puts the wall clock back.
    pub(crate) fn set_clock_back(&self, span: Duration) {
        self.append_simulation_trace_line(format!("the clock is put back by {span:?}"));
        self.lock_simulated_machine_state().clock_ahead_ns -= simulated_time_to_nanos(span);
        self.spend_random_system_call_time();
    }

    /// Whether a person has switched Checkrein off.
    pub(crate) fn is_checkrein_off(&self) -> bool {
        self.lock_simulated_machine_state().off_by > 0
    }

    /// Switches Checkrein off, or on again; it stays off as long as anybody wants it off.
    pub(crate) fn set_simulated_checkrein_off(&self, is_off: bool) {
        self.append_simulation_trace_line(format!(
            "a person switches {}",
            if is_off { "off" } else { "on" }
        ));
        let mut state = self.lock_simulated_machine_state();
        state.off_by = match is_off {
            true => state.off_by + 1,
            false => state.off_by.saturating_sub(1),
        };
        drop(state);
        self.spend_random_system_call_time();
    }

    /// Records that a session's call changes the outside.
    pub(crate) fn begin_simulated_call_with_outside_effects(&self, session: &str) {
        let now = self.scheduler.simulated_now();
        let mut state = self.lock_simulated_machine_state();
        state.outside_calls.push((session.to_owned(), now, None));
    }

    /// Records that all outside calls of a session are done.
    pub(crate) fn end_simulated_outside_tool_calls(&self, session: &str) {
        let now = self.scheduler.simulated_now();
        let mut state = self.lock_simulated_machine_state();
        // Ended calls stay in the list: audits ask about spans in the past.
        let own = |call: &&mut (String, VirtualTime, Option<VirtualTime>)| {
            call.0 == session && call.2.is_none()
        };
        for call in state.outside_calls.iter_mut().filter(own) {
            call.2 = Some(now);
        }
    }

    /// Whether another session's call that changes the outside was under way in this span.
    pub(crate) fn is_other_session_act_under_way(
        &self,
        other_than: &str,
        from: VirtualTime,
        to: VirtualTime,
    ) -> bool {
        let state = self.lock_simulated_machine_state();
        let mut calls = state.outside_calls.iter();
        calls.any(|(session, begin, end)| {
            session != other_than && *begin < to && end.is_none_or(|end| end > from)
        })
    }

    /// Voids earlier evidence: checks that passed have to run again.
    pub(crate) fn invalidate_simulated_check_passes(&self) {
        self.lock_simulated_machine_state().renewals += 1;
    }

    /// Marks that a hook begins to count an act.
    pub(crate) fn mark_act_counting_begun(&self) {
        self.lock_simulated_machine_state().acts_being_counted += 1;
    }

    /// Marks that the act is counted, or that it is not known whether it is.
    pub(crate) fn mark_act_counting_ended(&self) {
        let mut state = self.lock_simulated_machine_state();
        // A killed hook ends up here, too: its act may have been counted, so evidence is void
        // either way.
        state.acts_being_counted -= 1;
        state.renewals += 1;
    }

    pub(crate) fn is_any_act_being_counted(&self) -> bool {
        self.lock_simulated_machine_state().acts_being_counted > 0
    }

    /// Returns how often evidence was voided without a change.
    pub(crate) fn evidence_invalidation_count(&self) -> u64 {
        self.lock_simulated_machine_state().renewals
    }

    /// Which of these processes run a check.
    pub(crate) fn simulated_processes_running_checks(
        &self,
        processes: &[SimulatedProcessId],
    ) -> Vec<SimulatedProcessId> {
        let state = self.lock_simulated_machine_state();
        let running = state.running.iter().map(|(_, by)| *by);
        running.filter(|by| processes.contains(by)).collect()
    }

    pub(crate) fn stat_simulated_path(&self, path: &Path) -> io::Result<FileStat> {
        self.spend_random_system_call_time();
        self.lock_simulated_machine_state()
            .stat_simulated_path(path)
    }

    pub(crate) fn open_simulated_folder(
        self: &Arc<Self>,
        path: &Path,
        process: SimulatedProcessId,
    ) -> io::Result<Box<dyn OpenFolder>> {
        if path == self.root {
            let now = self.scheduler.simulated_now();
            let mut state = self.lock_simulated_machine_state();
            // Opening the root is what begins a read of the tree.
            let looks = state.tree_reads.entry(process).or_default();
            *looks = (looks.0 + 1, now);
            state
                .story
                .push((now, format!("{process:?} reads the tree")));
        }
        self.spend_random_system_call_time();
        let state = self.lock_simulated_machine_state();
        // Folders have no entry of their own: a folder exists if something is below it.
        let is_folder = path == self.root || state.paths_below(path).next().is_some();
        drop(state);
        match is_folder {
            true => Ok(Box::new(SimulatedOpenFolder {
                world: Arc::clone(self),
                path: path.to_owned(),
            })),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(crate) fn open_simulated_file_to_read(
        self: &Arc<Self>,
        path: &Path,
    ) -> io::Result<Box<dyn OpenFileForReading>> {
        self.spend_random_system_call_time();
        let state = self.lock_simulated_machine_state();
        let file = state.files.get(path);
        let inode = file.ok_or(ErrorKind::NotFound)?.inode;
        drop(state);
        Ok(Box::new(SimulatedOpenFile {
            world: Arc::clone(self),
            path: path.to_owned(),
            inode,
            at: 0,
        }))
    }
}

fn record_simulated_check_pass_change(
    all: &mut Vec<(VirtualTime, bool)>,
    now: VirtualTime,
    passes: bool,
) {
    // Only transitions are stored.
    if all.last().is_none_or(|(_, last)| *last != passes) {
        all.push((now, passes));
    }
}

fn check_state_occurred_in_span(
    all: &[(VirtualTime, bool)],
    from: VirtualTime,
    to: VirtualTime,
    wanted: bool,
) -> bool {
    let mut at_start = None;
    for (since, passes) in all {
        // The last transition before the span says how it begins.
        if *since <= from {
            at_start = Some(*passes);
        } else if *since <= to && *passes == wanted {
            return true;
        }
    }
    at_start == Some(wanted)
}

impl SimulatedMachineState {
    fn write_simulated_file(&mut self, path: &Path, content: &[u8], when: SimulatedWriteTime) {
        // A write keeps the inode, as writing in place does.
        let inode = match self.files.get(path) {
            Some(file) => file.inode,
            None => {
                self.inodes += 1;
                self.inodes
            }
        };
        let content = content.to_vec();
        self.files.insert(
            path.to_owned(),
            SimulatedFile {
                content,
                inode,
                changed: when.changed,
                stamp_ns: when.stamp_ns,
            },
        );
    }

    fn set_simulated_input_good(
        &mut self,
        root: &Path,
        subject: &SimulatedCheckDependency,
        good: bool,
        stamp: SimulatedWriteTime,
    ) {
        // Every change gives new content, except a restored stash: equal digests mean that nothing
        // changed.
        let next = |version: u64| (version | 1) + if good { 1 } else { 2 };
        match subject {
            SimulatedCheckDependency::File(name) => {
                self.inodes += 1;
                let content = format!("{} {}", good_or_bad_word(good), self.inodes);
                self.write_simulated_file(&root.join(name), content.as_bytes(), stamp);
            }
            SimulatedCheckDependency::Program(name) => {
                let version = self.programs.get(name).copied().unwrap_or(0);
                self.programs.insert(name.clone(), next(version));
            }
            SimulatedCheckDependency::Outside => self.outside = next(self.outside),
        }
    }

    fn is_simulated_check_input_good(
        &self,
        root: &Path,
        subject: &SimulatedCheckDependency,
    ) -> bool {
        match subject {
            SimulatedCheckDependency::File(name) => {
                let file = self.files.get(&root.join(name));
                file.is_some_and(|file| file.content.starts_with(b"good"))
            }
            SimulatedCheckDependency::Program(name) => {
                self.programs.get(name).is_some_and(|v| v % 2 == 0)
            }
            SimulatedCheckDependency::Outside => self.outside.is_multiple_of(2),
        }
    }

    fn paths_below(&self, folder: &Path) -> impl Iterator<Item = &Path> {
        let paths = self.files.keys().map(PathBuf::as_path);
        let folder = folder.to_owned();
        paths.filter(move |path| path.starts_with(&folder) && *path != folder)
    }

    fn stat_simulated_path(&self, path: &Path) -> io::Result<FileStat> {
        if let Some(file) = self.files.get(path) {
            let changed_ns = file.stamp_ns;
            return Ok(FileStat {
                kind: FileKind::File,
                stamp: FileStamp {
                    size: file.content.len() as u64,
                    modified_ns: changed_ns,
                    changed_ns,
                    device: 1,
                    inode: file.inode,
                    mode: 0o644,
                },
            });
        }
        match self.paths_below(path).next() {
            Some(_) => Ok(FileStat {
                kind: FileKind::Folder,
                stamp: FileStamp {
                    size: 0,
                    modified_ns: EPOCH_NS,
                    changed_ns: EPOCH_NS,
                    device: 1,
                    inode: 0,
                    mode: 0o755,
                },
            }),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

fn simulated_time_to_nanos(time: VirtualTime) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn good_or_bad_word(good: bool) -> &'static str {
    if good { "good" } else { "bad" }
}

struct SimulatedOpenFolder {
    world: Arc<SimulatedOperatingSystem>,
    path: PathBuf,
}

impl OpenFolder for SimulatedOpenFolder {
    fn for_each_folder_entry(
        &mut self,
        each: &mut dyn FnMut(&OsStr, io::Result<FileKind>),
    ) -> io::Result<()> {
        let state = self.world.lock_simulated_machine_state();
        // Folders exist only through the files below them. Sorted, so that listings do not depend
        // on a hash.
        let mut entries = BTreeMap::new();
        for path in state.paths_below(&self.path) {
            let Ok(below) = path.strip_prefix(&self.path) else {
                continue;
            };
            let mut parts = below.iter();
            let (Some(name), rest) = (parts.next(), parts.next()) else {
                continue;
            };
            let kind = match rest {
                None => FileKind::File,
                Some(_) => FileKind::Folder,
            };
            entries.insert(name.to_owned(), kind);
        }
        drop(state);
        for (name, kind) in entries {
            each(&name, Ok(kind));
        }
        Ok(())
    }

    fn stat_folder_entry(&self, name: &OsStr) -> io::Result<FileStat> {
        self.world.stat_simulated_path(&self.path.join(name))
    }
}

struct SimulatedOpenFile {
    world: Arc<SimulatedOperatingSystem>,
    path: PathBuf,
    inode: u64,
    at: usize,
}

impl Read for SimulatedOpenFile {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        let state = self.world.lock_simulated_machine_state();
        let file = state.files.get(&self.path);
        // The file was removed or replaced since it was opened: it reads as empty from here on.
        let Some(file) = file.filter(|file| file.inode == self.inode) else {
            return Ok(0);
        };
        let rest = file.content.get(self.at..).unwrap_or_default();
        let length = rest.len().min(READ_PIECE).min(block.len());
        for (to, from) in block.iter_mut().zip(rest.iter().take(length)) {
            *to = *from;
        }
        self.at += length;
        drop(state);
        self.world.spend_random_system_call_time();
        Ok(length)
    }
}

impl OpenFileForReading for SimulatedOpenFile {
    fn stat_open_file(&self) -> io::Result<FileStat> {
        self.world.stat_simulated_path(&self.path)
    }
}
