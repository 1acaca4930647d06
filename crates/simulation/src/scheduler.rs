//! Schedules the threads of simulated processes. One thread runs at a time, the seed decides which
//! one, and time jumps forward when none can run. The same seed gives the same schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;

/// The id of a simulated process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SimulatedProcessId(pub u32);

/// The id of a simulated thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SimulatedThreadId(u64);

/// Virtual time since the simulation began.
pub type VirtualTime = Duration;

/// Decides which thread runs, and holds the virtual time.
#[derive(Debug)]
pub(crate) struct SimulatedThreadScheduler {
    state: Mutex<SimulatedSchedulerState>,
}

#[derive(Debug)]
struct SimulatedSchedulerState {
    random: Rng,
    now: VirtualTime,
    /// Threads that have not ended and were not killed.
    threads: BTreeMap<SimulatedThreadId, SimulatedThreadRecord>,
    current: Option<SimulatedThreadId>,
    next_thread: u64,
    /// Number of steps so far. A polling thread is asked again only after another step.
    steps: u64,
    /// Processes that were killed. Their threads never run again.
    killed: BTreeSet<SimulatedProcessId>,
    /// Why the schedule cannot go on, if threads wait for ever.
    stuck: Option<String>,
    /// Signals the end of the simulation.
    over: Arc<Condvar>,
}

#[derive(Debug)]
struct SimulatedThreadRecord {
    process: SimulatedProcessId,
    status: SimulatedThreadStatus,
    turn: Arc<Condvar>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SimulatedThreadStatus {
    /// It can go on.
    Ready,
    /// It polls again once there are more steps than this.
    Polling(u64),
    /// It can go on from this time.
    Sleeping(VirtualTime),
    /// It can go on when these processes have ended.
    WaitingForProcesses(Vec<SimulatedProcessId>),
    /// The same for threads.
    Joining(Vec<SimulatedThreadId>),
}

thread_local! {
    static CURRENT: std::cell::Cell<Option<SimulatedThreadId>> = const { std::cell::Cell::new(None) };
}

/// Probability, in tenths, that the running thread keeps running.
const KEEP_RUNNING_TENTHS: u32 = 6;

impl SimulatedThreadScheduler {
    /// Creates a scheduler without threads.
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(SimulatedSchedulerState {
                random: Rng::with_seed(seed),
                now: VirtualTime::ZERO,
                threads: BTreeMap::new(),
                current: None,
                next_thread: 1,
                steps: 0,
                killed: BTreeSet::new(),
                stuck: None,
                over: Arc::new(Condvar::new()),
            }),
        })
    }

    fn lock_scheduler_state(&self) -> MutexGuard<'_, SimulatedSchedulerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time.
    pub(crate) fn simulated_now(&self) -> VirtualTime {
        self.lock_scheduler_state().now
    }

    /// A number below `below`.
    pub(crate) fn random_below(&self, below: u32) -> u32 {
        self.lock_scheduler_state().random.u32(0..below.max(1))
    }

    /// Registers a thread of this process, which the caller then starts.
    pub(crate) fn register_simulated_thread(&self, process: SimulatedProcessId) -> u64 {
        let mut turns = self.lock_scheduler_state();
        // Numbered and inserted by the parent, not by the thread itself: the order in which the
        // system starts threads must not matter.
        let thread = SimulatedThreadId(turns.next_thread);
        turns.next_thread += 1;
        let state = SimulatedThreadRecord {
            process,
            status: SimulatedThreadStatus::Ready,
            turn: Arc::new(Condvar::new()),
        };
        turns.threads.insert(thread, state);
        thread.0
    }

    /// Makes the calling thread this one and waits for its first turn.
    pub(crate) fn begin_simulated_thread(&self, thread: u64) {
        let thread = SimulatedThreadId(thread);
        CURRENT.with(|current| current.set(Some(thread)));
        let turns = self.lock_scheduler_state();
        self.wait_for_thread_turn(turns, thread);
    }

    /// Ends the calling thread.
    pub(crate) fn end_simulated_thread(&self, thread: u64) {
        let thread = SimulatedThreadId(thread);
        let mut turns = self.lock_scheduler_state();
        // Removed before the next one is chosen, so that threads that join this one can run.
        turns.threads.remove(&thread);
        turns.steps += 1;
        if turns.current == Some(thread) {
            turns.current = None;
            turns.schedule_next_simulated_thread();
        }
    }

    /// Waits for the end of these threads.
    pub(crate) fn join_simulated_threads(&self, threads: &[u64]) {
        let threads = threads.iter().copied().map(SimulatedThreadId).collect();
        self.yield_turn(
            self.lock_scheduler_state(),
            SimulatedThreadStatus::Joining(threads),
        );
    }

    /// The calling thread waits until these processes have ended or were killed.
    pub(crate) fn wait_for_simulated_processes(&self, processes: &[SimulatedProcessId]) {
        let waiting = SimulatedThreadStatus::WaitingForProcesses(processes.to_vec());
        self.yield_turn(self.lock_scheduler_state(), waiting);
    }

    /// Advances the time by what an operation took, and may give the turn to another thread.
    pub(crate) fn spend_virtual_time(&self, took: Duration) {
        let mut turns = self.lock_scheduler_state();
        turns.steps += 1;
        turns.now += took;
        self.yield_turn(turns, SimulatedThreadStatus::Ready);
    }

    /// Suspends the calling thread for a time.
    pub(crate) fn sleep_simulated_thread(&self, span: Duration) {
        let mut turns = self.lock_scheduler_state();
        turns.steps += 1;
        let until = turns.now + span;
        self.yield_turn(turns, SimulatedThreadStatus::Sleeping(until));
    }

    /// Suspends the calling thread until `ready` returns true.
    pub(crate) fn block_simulated_thread_until(&self, ready: &mut dyn FnMut() -> bool) {
        while !ready() {
            let turns = self.lock_scheduler_state();
            let steps = turns.steps;
            self.yield_turn(turns, SimulatedThreadStatus::Polling(steps));
        }
    }

    /// Kills a process: none of its threads runs again. Does not return if it is the calling
    /// thread's process.
    pub(crate) fn kill_simulated_process(&self, process: SimulatedProcessId) {
        let mut turns = self.lock_scheduler_state();
        turns.killed.insert(process);
        let own = turns.current;
        turns
            .threads
            // The calling thread stays registered: it still has to hand over its turn below.
            .retain(|thread, state| state.process != process || own == Some(*thread));
        turns.steps += 1;
        self.yield_turn(turns, SimulatedThreadStatus::Ready);
    }

    /// Whether it was killed.
    pub(crate) fn is_killed(&self, process: SimulatedProcessId) -> bool {
        self.lock_scheduler_state().killed.contains(&process)
    }

    /// Whether some thread of this process has not ended.
    pub(crate) fn is_simulated_process_alive(&self, process: SimulatedProcessId) -> bool {
        self.lock_scheduler_state()
            .is_simulated_process_alive(process)
    }

    /// Runs all threads until none can run; fails if some wait for ever.
    pub(crate) fn run_simulated_threads_to_end(&self) -> Result<(), String> {
        let mut turns = self.lock_scheduler_state();
        turns.schedule_next_simulated_thread();
        let over = Arc::clone(&turns.over);
        while turns.current.is_some() {
            turns = over.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
        turns.stuck.take().map_or(Ok(()), Err)
    }

    fn yield_turn(
        &self,
        mut turns: MutexGuard<'_, SimulatedSchedulerState>,
        status: SimulatedThreadStatus,
    ) {
        // A thread outside of the simulation, such as the one that prepares it, takes no turns.
        let Some(thread) = CURRENT.with(std::cell::Cell::get) else {
            return;
        };
        let is_ready = status == SimulatedThreadStatus::Ready;
        if let Some(state) = turns.threads.get_mut(&thread) {
            state.status = status;
        }
        if turns.current == Some(thread) {
            let goes_on = is_ready
                && turns.can_simulated_thread_run(thread)
                // A switch at every step would rarely let one process get far ahead of another.
                && turns.random.u32(0..10) < KEEP_RUNNING_TENTHS;
            if goes_on {
                return;
            }
            turns.current = None;
            turns.schedule_next_simulated_thread();
        }
        self.wait_for_thread_turn(turns, thread);
    }

    fn wait_for_thread_turn(
        &self,
        mut turns: MutexGuard<'_, SimulatedSchedulerState>,
        thread: SimulatedThreadId,
    ) {
        let turn = turns
            .threads
            .get(&thread)
            .map(|state| Arc::clone(&state.turn));
        let Some(turn) = turn else {
            // Killed before its first turn. The thread cannot be ended from outside and must not go
            // on.
            drop(turns);
            loop {
                std::thread::park();
            }
        };
        while turns.current != Some(thread) {
            turns = turn.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl SimulatedSchedulerState {
    fn is_simulated_process_alive(&self, process: SimulatedProcessId) -> bool {
        let mut states = self.threads.values();
        !self.killed.contains(&process) && states.any(|state| state.process == process)
    }

    fn can_simulated_thread_run(&self, thread: SimulatedThreadId) -> bool {
        let Some(state) = self.threads.get(&thread) else {
            return false;
        };
        let can = match &state.status {
            SimulatedThreadStatus::Ready => true,
            SimulatedThreadStatus::Polling(steps) => self.steps > *steps,
            SimulatedThreadStatus::Sleeping(until) => *until <= self.now,
            SimulatedThreadStatus::WaitingForProcesses(processes) => !processes
                .iter()
                .any(|process| self.is_simulated_process_alive(*process)),
            SimulatedThreadStatus::Joining(threads) => !threads
                .iter()
                .any(|thread| self.threads.contains_key(thread)),
        };
        can && !self.killed.contains(&state.process)
    }

    /// Chooses the next thread. If none can run, the time jumps to the first that wakes.
    fn schedule_next_simulated_thread(&mut self) {
        loop {
            // In the order of a sorted map: with hash order the seed would not determine the
            // choice.
            let able: Vec<SimulatedThreadId> = self
                .threads
                .keys()
                .copied()
                .filter(|thread| self.can_simulated_thread_run(*thread))
                .collect();
            if !able.is_empty() {
                let chosen = able.get(self.random.usize(0..able.len())).copied();
                self.current = chosen;
                if let Some(state) = chosen.and_then(|chosen| self.threads.get_mut(&chosen)) {
                    state.status = SimulatedThreadStatus::Ready;
                    state.turn.notify_all();
                }
                return;
            }
            // A killed sleeper must not move the clock.
            let living = |state: &&SimulatedThreadRecord| !self.killed.contains(&state.process);
            let wakes = self.threads.values().filter(living);
            let wakes = wakes.filter_map(|state| match state.status.clone() {
                SimulatedThreadStatus::Sleeping(until) => Some(until),
                _ => None,
            });
            match wakes.min() {
                Some(wake) => {
                    self.now = self.now.max(wake);
                    // Time has passed, which pollers may be waiting for.
                    self.steps += 1;
                }
                None => {
                    if let Some(state) = self.threads.values().find(|state| living(state)) {
                        self.stuck = Some(format!("{:?} waits for ever", state.process));
                    }
                    self.current = None;
                    self.over.notify_all();
                    return;
                }
            }
        }
    }
}
