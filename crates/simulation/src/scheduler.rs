//! Threads of simulated processes take turns: one runs at a time, the seed says which, and time goes on only
//! when nobody can. The same seed gives the same turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;

/// Of a simulated process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process(pub u32);

/// Of a simulated thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Thread(u64);

/// Virtual time since the simulation began.
pub type Time = Duration;

/// Who runs, and when.
#[derive(Debug)]
pub(crate) struct Scheduler {
    turns: Mutex<Turns>,
}

#[derive(Debug)]
struct Turns {
    random: Rng,
    now: Time,
    /// Those that have not ended and were not killed.
    threads: BTreeMap<Thread, ThreadState>,
    current: Option<Thread>,
    next_thread: u64,
    /// How often something was done: who polls is asked again only after that.
    steps: u64,
    /// Processes that were killed. Their threads never run again.
    killed: BTreeSet<Process>,
    /// What went wrong with the turns themselves.
    stuck: Option<String>,
    /// Who waits for the end of it all.
    over: Arc<Condvar>,
}

#[derive(Debug)]
struct ThreadState {
    process: Process,
    status: Status,
    turn: Arc<Condvar>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Status {
    /// It can go on.
    Ready,
    /// It asks again once something was done after this many steps.
    Polling(u64),
    /// It can go on from this time.
    Sleeping(Time),
    /// It can go on when these are at their end.
    WaitingForProcesses(Vec<Process>),
    /// The same for threads.
    Joining(Vec<Thread>),
}

thread_local! {
    static CURRENT: std::cell::Cell<Option<Thread>> = const { std::cell::Cell::new(None) };
}

/// How often, in ten, whoever runs goes on running.
const GOES_ON: u32 = 6;

impl Scheduler {
    /// Nobody runs yet.
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            turns: Mutex::new(Turns {
                random: Rng::with_seed(seed),
                now: Time::ZERO,
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

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time.
    pub(crate) fn now(&self) -> Time {
        self.turns().now
    }

    /// A number below `below`.
    pub(crate) fn random(&self, below: u32) -> u32 {
        self.turns().random.u32(0..below.max(1))
    }

    /// Enters a thread of this process, which is started by the caller.
    pub(crate) fn create(&self, process: Process) -> u64 {
        let mut turns = self.turns();
        let thread = Thread(turns.next_thread);
        turns.next_thread += 1;
        let state = ThreadState {
            process,
            status: Status::Ready,
            turn: Arc::new(Condvar::new()),
        };
        turns.threads.insert(thread, state);
        thread.0
    }

    /// The calling thread is this one; it goes on when it is its turn.
    pub(crate) fn begin(&self, thread: u64) {
        let thread = Thread(thread);
        CURRENT.with(|current| current.set(Some(thread)));
        let turns = self.turns();
        self.wait_for_turn(turns, thread);
    }

    /// The calling thread is at its end.
    pub(crate) fn end(&self, thread: u64) {
        let thread = Thread(thread);
        let mut turns = self.turns();
        turns.threads.remove(&thread);
        turns.steps += 1;
        if turns.current == Some(thread) {
            turns.current = None;
            turns.next();
        }
    }

    /// The calling thread waits for the end of these.
    pub(crate) fn join(&self, threads: &[u64]) {
        let threads = threads.iter().copied().map(Thread).collect();
        self.hand_on(self.turns(), Status::Joining(threads));
    }

    /// The calling thread waits until these processes have ended or were killed.
    pub(crate) fn wait_for(&self, processes: &[Process]) {
        let waiting = Status::WaitingForProcesses(processes.to_vec());
        self.hand_on(self.turns(), waiting);
    }

    /// Something was done that took so long; others may have a turn.
    pub(crate) fn did(&self, took: Duration) {
        let mut turns = self.turns();
        turns.steps += 1;
        turns.now += took;
        self.hand_on(turns, Status::Ready);
    }

    /// The calling thread waits so long.
    pub(crate) fn sleep(&self, span: Duration) {
        let mut turns = self.turns();
        turns.steps += 1;
        let until = turns.now + span;
        self.hand_on(turns, Status::Sleeping(until));
    }

    /// The calling thread waits until `ready` says so.
    pub(crate) fn wait(&self, ready: &mut dyn FnMut() -> bool) {
        while !ready() {
            let turns = self.turns();
            let steps = turns.steps;
            self.hand_on(turns, Status::Polling(steps));
        }
    }

    /// No thread of this process runs again. Of the calling thread's own process it does not come back.
    pub(crate) fn kill(&self, process: Process) {
        let mut turns = self.turns();
        turns.killed.insert(process);
        let own = turns.current;
        turns
            .threads
            .retain(|thread, state| state.process != process || own == Some(*thread));
        turns.steps += 1;
        self.hand_on(turns, Status::Ready);
    }

    /// Whether it was killed.
    pub(crate) fn is_killed(&self, process: Process) -> bool {
        self.turns().killed.contains(&process)
    }

    /// Whether some thread of this process has not ended.
    pub(crate) fn is_alive(&self, process: Process) -> bool {
        self.turns().is_alive(process)
    }

    /// Lets them run until none can; says what is wrong if some wait for ever.
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut turns = self.turns();
        turns.next();
        let over = Arc::clone(&turns.over);
        while turns.current.is_some() {
            turns = over.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
        turns.stuck.take().map_or(Ok(()), Err)
    }

    fn hand_on(&self, mut turns: MutexGuard<'_, Turns>, status: Status) {
        let Some(thread) = CURRENT.with(std::cell::Cell::get) else {
            return;
        };
        let is_ready = status == Status::Ready;
        if let Some(state) = turns.threads.get_mut(&thread) {
            state.status = status;
        }
        if turns.current == Some(thread) {
            let goes_on = is_ready && turns.may_run(thread) && turns.random.u32(0..10) < GOES_ON;
            if goes_on {
                return;
            }
            turns.current = None;
            turns.next();
        }
        self.wait_for_turn(turns, thread);
    }

    fn wait_for_turn(&self, mut turns: MutexGuard<'_, Turns>, thread: Thread) {
        let turn = turns
            .threads
            .get(&thread)
            .map(|state| Arc::clone(&state.turn));
        let Some(turn) = turn else {
            // It was killed before it began.
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

impl Turns {
    fn is_alive(&self, process: Process) -> bool {
        let mut states = self.threads.values();
        !self.killed.contains(&process) && states.any(|state| state.process == process)
    }

    fn may_run(&self, thread: Thread) -> bool {
        let Some(state) = self.threads.get(&thread) else {
            return false;
        };
        let can = match &state.status {
            Status::Ready => true,
            Status::Polling(steps) => self.steps > *steps,
            Status::Sleeping(until) => *until <= self.now,
            Status::WaitingForProcesses(processes) => {
                !processes.iter().any(|process| self.is_alive(*process))
            }
            Status::Joining(threads) => !threads
                .iter()
                .any(|thread| self.threads.contains_key(thread)),
        };
        can && !self.killed.contains(&state.process)
    }

    /// Chooses who runs next; time jumps to whoever wakes first where nobody can.
    fn next(&mut self) {
        loop {
            let able: Vec<Thread> = self
                .threads
                .keys()
                .copied()
                .filter(|thread| self.may_run(*thread))
                .collect();
            if !able.is_empty() {
                let chosen = able.get(self.random.usize(0..able.len())).copied();
                self.current = chosen;
                if let Some(state) = chosen.and_then(|chosen| self.threads.get_mut(&chosen)) {
                    state.status = Status::Ready;
                    state.turn.notify_all();
                }
                return;
            }
            let living = |state: &&ThreadState| !self.killed.contains(&state.process);
            let wakes = self.threads.values().filter(living);
            let wakes = wakes.filter_map(|state| match state.status.clone() {
                Status::Sleeping(until) => Some(until),
                _ => None,
            });
            match wakes.min() {
                Some(wake) => {
                    self.now = self.now.max(wake);
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
