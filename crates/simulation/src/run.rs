//! One simulation: starts everybody, lets them take turns, and looks at what must not have happened when all are gone.
//! What an agent is told is looked at where it is told, in `agent`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use checkrein_core::ids::{ScopeId, SessionId, SourceName};
use checkrein_core::input::{Input, StancePoint, StanceUsed};
use checkrein_core::policy::Stance;
use checkrein_runtime::config::{self, ConfigSource, TaskDriver};
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, Runtime, RuntimeError, ToolFactsBuilder,
    TreeAndStateFolder, WorkerLink, replay,
};
use checkrein_store::{HashChainStatus, MemoryStore, SqliteStore, Store};

use crate::agent::Agent;
use crate::link;
use crate::plan::{CheckPlan, Habit, Incident, Plan, Subject};
use crate::scheduler::{Process, Scheduler, Time};
use crate::store::SimulatedStore;
use crate::system::{LockedFiles, SimulatedSystem};
use crate::world::World;

/// A stamp of this age is believed.
const AT_REST: Duration = Duration::from_secs(70);
/// How often a hook looks whether it was switched off.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// After its agent or its session nothing of ours lives longer.
pub(crate) const AFTERLIFE: Duration = Duration::from_secs(5);

/// Names of what does not count.
pub(crate) const IGNORED: &str = ".env\nlocal/\n";

/// What came of a simulation.
#[derive(Debug)]
pub struct Outcome {
    /// What must not have happened.
    pub violations: Vec<String>,
    /// What happened, and when.
    pub story: Vec<(Time, String)>,
    /// How tasks ended, for counting.
    pub endings: Vec<String>,
}

/// Runs a plan.
///
/// # Errors
/// If this machine cannot run it.
pub fn run(plan: &Plan) -> std::io::Result<Outcome> {
    #[cfg(target_os = "linux")]
    let _stays = crate::one_processor::OneProcessor::stay();
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("tree");
    std::fs::create_dir(&root)?;
    // Only names of ignored files are asked of the real folder.
    std::fs::write(root.join(".gitignore"), IGNORED)?;
    let scheduler = Scheduler::new(plan.seed);
    let world = World::new(Arc::clone(&scheduler), &root, plan);
    let state = folder.path().join("state");
    let store: Arc<dyn Store> = match plan.is_on_disk {
        true => Arc::new(SqliteStore::open_store_in_folder(&state).map_err(std::io::Error::other)?),
        false => Arc::new(MemoryStore::new()),
    };
    let stage = Arc::new(Stage {
        world: Arc::clone(&world),
        store,
        plan: plan.clone(),
        state,
        root,
        epoch: Instant::now(),
        locked: LockedFiles::default(),
        processes: Mutex::new(1000),
        owners: Mutex::default(),
        seals: AtomicU64::new(0),
        endings: Mutex::default(),
    });
    let everybody = stage.new_process();
    stage.start(everybody, {
        let stage = Arc::clone(&stage);
        move || stage.everybody()
    });
    if let Err(stuck) = scheduler.run() {
        world.violation(stuck);
    }
    let endings = stage.endings.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome {
        violations: world.violations(),
        story: world.story(),
        endings: endings.clone(),
    })
}

/// What everybody shares.
pub(crate) struct Stage {
    pub(crate) world: Arc<World>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) plan: Plan,
    pub(crate) state: std::path::PathBuf,
    pub(crate) root: std::path::PathBuf,
    epoch: Instant,
    locked: LockedFiles,
    processes: Mutex<u32>,
    owners: Mutex<Vec<Process>>,
    /// How often a person sealed.
    pub(crate) seals: AtomicU64,
    endings: Mutex<Vec<String>>,
}

/// What a hook answered; nothing if it was killed, or while a person has it switched off.
pub(crate) type Answer = Option<Result<DeliveryOutcome, RuntimeError>>;

impl Stage {
    fn new_process(&self) -> Process {
        let mut processes = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *processes += 1;
        Process(*processes)
    }

    /// Starts a process with one thread.
    fn start(self: &Arc<Self>, process: Process, work: impl FnOnce() + Send + 'static) {
        let scheduler = Arc::clone(&self.world.scheduler);
        let thread = scheduler.create(process);
        std::thread::spawn(move || {
            scheduler.begin(thread);
            work();
            scheduler.end(thread);
        });
    }

    fn kill(self: &Arc<Self>, process: Process) {
        let scheduler = &self.world.scheduler;
        if !scheduler.is_alive(process) {
            return;
        }
        self.world.tell(format!("{process:?} is killed"));
        scheduler.kill(process);
        self.locked.close(process);
        // Its checks are ended by who keeps their processes, a moment later; then the claims are free.
        let keeper = self.new_process();
        let stage = Arc::clone(self);
        let moment = Duration::from_millis(u64::from(scheduler.random(60)));
        self.start(keeper, move || {
            stage.world.scheduler.sleep(moment);
            stage.world.forget_runs(process);
            stage.world.free_claims(process);
            stage.world.scheduler.did(Duration::ZERO);
        });
    }

    fn system(&self, process: Process, agent: Process) -> SimulatedSystem {
        SimulatedSystem {
            world: Arc::clone(&self.world),
            process,
            agent,
            checks: self.plan.checks.clone().into(),
            epoch: self.epoch,
            locked: self.locked.clone(),
        }
    }

    fn runtime(self: &Arc<Self>, process: Process, agent: Process) -> Runtime {
        let place = TreeAndStateFolder {
            root: self.root.clone(),
            state: self.state.clone(),
            env: Arc::new(BTreeMap::new()),
            trusts_addresses: true,
            system: Arc::new(self.system(process, agent)),
        };
        let inner = match self
            .plan
            .is_on_disk
            .then(|| SqliteStore::open_store_in_folder(&self.state))
        {
            Some(Ok(own)) => Arc::new(own),
            Some(Err(error)) => {
                self.world.violation(format!("no store: {error}"));
                Arc::clone(&self.store)
            }
            None => Arc::clone(&self.store),
        };
        let store = SimulatedStore {
            inner,
            world: Arc::clone(&self.world),
            process,
        };
        let sealing = Arc::clone(self);
        let seal = move || {
            let source = ConfigSource {
                name: sealing.root.join("checkrein.toml"),
                text: sealing.plan.config(sealing.seals.load(Ordering::Relaxed)),
            };
            config::compile_config(Some(&source), None, TaskDriver::Hook)
        };
        let runtime =
            Runtime::new(Arc::new(store), place, Box::new(seal)).with_agent_name("generic");
        let stage = Arc::clone(self);
        runtime.with_worker_launcher(Box::new(move |_| {
            let owner = stage.new_process();
            stage.owners().push(owner);
            let (ours, theirs) = link::pair(&stage.world, process, owner);
            let beginning = Arc::clone(&stage);
            stage.start(owner, move || {
                beginning.world.tell(format!("{owner:?} is an owner"));
                let runtime = beginning.runtime(owner, agent);
                let mut link = WorkerLink::over_transport(theirs);
                if let Some(batch) = link.receive_batch_from_hook() {
                    let is_off = || beginning.world.is_off();
                    let owned = runtime.run_worker_batch(&batch, link, &is_off);
                    beginning.world.tell(format!("{owner:?} ends: {owned:?}"));
                }
            });
            Ok(WorkerLink::over_transport(ours))
        }))
    }

    /// What an agent's hook is told, as its own process. `killed_after`: by the agent, or whoever.
    pub(crate) fn hook(
        self: &Arc<Self>,
        agent: Process,
        line: serde_json::Value,
        deadline: Duration,
        killed_after: Option<Duration>,
    ) -> (Process, Answer) {
        let hook = self.new_process();
        let answer = Arc::new(Mutex::new(None));
        let scheduler = Arc::clone(&self.world.scheduler);
        self.start(hook, {
            let (stage, answer) = (Arc::clone(self), Arc::clone(&answer));
            move || {
                let taken = stage.take(hook, agent, &line, deadline);
                *answer.lock().unwrap_or_else(PoisonError::into_inner) = taken;
            }
        });
        if let Some(span) = killed_after {
            let (stage, killer) = (Arc::clone(self), self.new_process());
            self.start(killer, move || {
                stage.world.scheduler.sleep(span);
                stage.kill(hook);
            });
        }
        scheduler.wait_for(&[hook]);
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        (hook, answer.take())
    }

    fn take(
        self: &Arc<Self>,
        hook: Process,
        agent: Process,
        line: &serde_json::Value,
        deadline: Duration,
    ) -> Answer {
        let runtime = self.runtime(hook, agent);
        let cancelled = Arc::new(AtomicBool::new(false));
        let patience = Deadline {
            due_at: Some(self.epoch + self.world.scheduler.now() + deadline),
            cancelled: &cancelled,
        };
        let env: &dyn Fn(&str) -> Option<String> = &|_| None;
        let adapter = checkrein_adapters::find_adapter("generic");
        let read = adapter.and_then(|adapter| {
            adapter
                .parse_agent_event(line.to_string().as_bytes(), env)
                .ok()
        });
        let Some(knock) = read else {
            self.world.violation("the line of a hook cannot be read");
            return None;
        };
        let mut input = knock.input.clone()?;
        if self.world.is_off() {
            match input {
                Input::ToolRequested(_) | Input::ToolReturned(_) => {
                    self.world.renew();
                    return runtime
                        .record_call_while_switched_off(&knock.session)
                        .err()
                        .map(|e| Err(e.into()));
                }
                Input::StopRequested(_) => input = stands_in(),
                _ => {}
            }
        }
        let is_stop = matches!(input, Input::StopRequested(_));
        if is_stop {
            self.listen_for_off(hook, &cancelled);
        }
        let delivery = |input, key| EventDelivery {
            session: knock.session.clone(),
            source: SourceName::new("hook"),
            key,
            input,
            facts: ToolFactsBuilder::new(&knock.action),
            working_folder: None,
            usage: None,
            tool_response: None,
            layers: Vec::new(),
            task_list: None,
            required_runs: None,
        };
        let mut taken =
            runtime.deliver_event(delivery(input, knock.key.clone()), patience, &|_| ());
        // Nothing else cancels here.
        if matches!(taken, Err(RuntimeError::Cancelled)) {
            cancelled.store(false, Ordering::Relaxed);
            taken = runtime.deliver_event(delivery(stands_in(), None), patience, &|_| ());
        }
        Some(taken)
    }

    /// From here on switching off cancels what this hook does.
    fn listen_for_off(self: &Arc<Self>, hook: Process, cancelled: &Arc<AtomicBool>) {
        let switches_off =
            |(_, incident): &(_, Incident)| matches!(incident, Incident::SwitchOff(_));
        if !self.plan.incidents.iter().any(switches_off) {
            return;
        }
        let (world, cancelled) = (Arc::clone(&self.world), Arc::clone(cancelled));
        self.start(self.new_process(), move || {
            while world.scheduler.is_alive(hook) && !world.is_off() {
                world.scheduler.sleep(LOOK_AGAIN);
            }
            cancelled.store(true, Ordering::Relaxed);
        });
    }

    fn owners(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everybody at once, then rest, then each agent once more.
    fn everybody(self: &Arc<Self>) {
        let mut started = Vec::new();
        for (number, actions) in self.plan.agents.iter().enumerate() {
            let process = self.new_process();
            let (stage, actions) = (Arc::clone(self), actions.clone());
            self.start(process, move || {
                let mut agent = Agent::new(stage, process, number);
                agent.act(&actions);
            });
            started.push(process);
        }
        let neighbour = self.new_process();
        self.start(neighbour, {
            let stage = Arc::clone(self);
            move || stage.neighbour()
        });
        started.push(neighbour);
        let incidents = self.new_process();
        self.start(incidents, {
            let stage = Arc::clone(self);
            move || stage.incidents(incidents)
        });
        started.push(incidents);
        let scheduler = &self.world.scheduler;
        scheduler.wait_for(&started);
        scheduler.sleep(AFTERLIFE);
        if self.world.is_anything_running() {
            self.world
                .violation("a check runs 5 s after its agent is gone");
        }
        self.rest();
        self.look_at_logs();
    }

    fn neighbour(&self) {
        for deed in &self.plan.neighbour {
            for _ in 0..deed.times {
                self.world.scheduler.sleep(deed.after);
                match deed.mapped {
                    true => self
                        .world
                        .change_mapped(&deed.subject, deed.good, "a neighbour"),
                    false => self.world.change(&deed.subject, deed.good, "a neighbour"),
                }
            }
        }
    }

    fn incidents(self: &Arc<Self>, process: Process) {
        let world = &self.world;
        for (after, incident) in &self.plan.incidents {
            world.scheduler.sleep(*after);
            match incident {
                Incident::Sleep(span) => world.sleep(*span),
                Incident::PutClockBack(span) => {
                    world.put_clock_back(*span);
                    world.renew();
                }
                Incident::SwitchOff(span) => {
                    world.switch(true);
                    checkrein_runtime::cancel_all_workers(&self.state);
                    let at_once = AFTERLIFE.min(*span);
                    world.scheduler.sleep(at_once);
                    if at_once == AFTERLIFE && world.is_anything_running() {
                        world.violation("a check runs 5 s after it was switched off");
                    }
                    world.scheduler.sleep(span.saturating_sub(at_once));
                    world.switch(false);
                }
                Incident::Seal => {
                    let owners = self.owners().clone();
                    self.seal(process);
                    world.scheduler.sleep(AFTERLIFE);
                    self.look_at_owners(&owners);
                }
            }
        }
    }

    fn seal(self: &Arc<Self>, process: Process) {
        self.world.tell("a person seals another config");
        self.seals.fetch_add(1, Ordering::Relaxed);
        let runtime = self.runtime(process, process);
        for number in 0..self.plan.agents.len() {
            if let Err(error) = runtime.reseal_session(&session(number), "a person") {
                self.world.violation(format!("nothing is sealed: {error}"));
            }
        }
        checkrein_runtime::cancel_all_workers(&self.state);
        self.world.renew();
    }

    /// These were to end.
    fn look_at_owners(&self, owners: &[Process]) {
        for owner in self.world.running_by(owners) {
            self.world
                .violation(format!("{owner:?} runs a check 5 s after it was to end"));
        }
    }

    /// Everything is mended, nobody else is at work: the next stop is accepted.
    fn rest(self: &Arc<Self>) {
        if self.plan.has_stash() {
            return;
        }
        let process = self.new_process();
        let mut agent = Agent::new(Arc::clone(self), process, 0);
        agent.prompt();
        agent.tool(&Subject::File("notes.txt".to_owned()), true, true);
        for check in &self.plan.checks {
            for subject in &check.reads {
                agent.tool(subject, true, true);
            }
        }
        self.world.scheduler.sleep(AT_REST);
        let scheduler = Arc::clone(&self.world.scheduler);
        self.start(process, move || {
            let longest = Duration::from_secs(300);
            let lasts = agent.stage.plan.checks.iter().map(|check| check.lasts);
            let outlasts = lasts.max().is_some_and(|lasts| lasts > longest);
            let mut ending = agent.stop(longest, None);
            // It is told to stop again until what runs has come to an end.
            while outlasts && ending.is_none() && agent.stops < 6 {
                ending = agent.stop(longest, None);
            }
            // One that writes has the others run once more, alone: that may take all of the stops.
            let writes = |check: &CheckPlan| check.habit != Habit::OnlyReads;
            let may_last = outlasts && agent.stage.plan.checks.iter().any(writes);
            let is_still_running = may_last && ending.is_none();
            if ending.as_deref() != Some("task_complete") && !is_still_running {
                let stage = &agent.stage;
                stage.world.violation(format!(
                    "all is at rest and good, and the stop comes to {ending:?}"
                ));
            }
        });
        scheduler.wait_for(&[process]);
    }

    /// Logs are whole, and stepping them again decides the same.
    fn look_at_logs(&self) {
        for number in 0..self.plan.agents.len() {
            let session = session(number);
            match self.store.verify_chain(&session) {
                Ok(HashChainStatus::Whole { .. }) => {}
                other => self
                    .world
                    .violation(format!("the log of {session} is {other:?}")),
            }
            for through_cache in [false, true] {
                match replay::replay_session(&*self.store, &session, through_cache) {
                    Ok(replayed) if replayed.differs_at.is_none() => {}
                    other => self
                        .world
                        .violation(format!("{session} replays otherwise: {other:?}")),
                }
            }
        }
    }

    pub(crate) fn ended(&self, how: &str) {
        let mut endings = self.endings.lock().unwrap_or_else(PoisonError::into_inner);
        endings.push(how.to_owned());
    }
}

/// How a stop is let through while a person has Checkrein switched off.
fn stands_in() -> Input {
    Input::StanceUsed(StanceUsed {
        scope: ScopeId::main_scope(),
        at: StancePoint::Stop,
        stance: Stance::Allow,
        why: "it is switched off".to_owned(),
    })
}

pub(crate) fn session(number: usize) -> SessionId {
    SessionId::new(format!("session-{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Action, Deed};

    fn plan(lasts_ms: u64, neighbour: Deed) -> Plan {
        let notes = Subject::File("notes.txt".to_owned());
        Plan {
            seed: 1,
            tick: Duration::from_nanos(1),
            checks: vec![CheckPlan {
                name: "tests".to_owned(),
                reads: vec![Subject::File("a.txt".to_owned())],
                lasts: Duration::from_millis(lasts_ms),
                timeout: Duration::from_secs(600),
                habit: Habit::OnlyReads,
                declares_inputs: false,
            }],
            any_is_enough: false,
            agents: vec![vec![
                Action::Prompt,
                Action::Tool {
                    subject: notes,
                    good: true,
                    reports: true,
                    while_off: false,
                },
                Action::Stop {
                    killed_after: None,
                    deadline: Duration::from_secs(60),
                    insists: 8,
                },
            ]],
            neighbour: vec![neighbour],
            incidents: Vec::new(),
            is_on_disk: false,
        }
    }

    /// Writes to a file every 300 ms.
    fn neighbour(times: u32) -> Deed {
        Deed {
            after: Duration::from_millis(300),
            subject: Subject::File("b.txt".to_owned()),
            good: true,
            mapped: false,
            times,
        }
    }

    /// What happens beside a neighbour that writes so often.
    fn lines(times: u32) -> Vec<String> {
        let outcome = run(&plan(900, neighbour(times))).unwrap();
        assert_eq!(outcome.violations, Vec::<String>::new());
        outcome.story.into_iter().map(|(_, line)| line).collect()
    }

    /// It writes for eight seconds, and nobody knows of it before.
    #[test]
    fn a_disturbed_check_waits_for_a_neighbour_and_runs_once_more() {
        let lines = lines(27);
        let end = lines.iter().position(|line| line.contains(" ends: Task"));
        let first_stop = &lines[..end.unwrap()];
        let count = |what: &str| first_stop.iter().filter(|line| line.contains(what)).count();
        assert_eq!(
            (count("is sent back"), count("runs tests")),
            (0, 2),
            "{lines:#?}"
        );
    }

    /// It writes for 15 seconds: the first stop is sent back, and the second waits before anything runs.
    #[test]
    fn a_stop_waits_for_a_neighbour_that_is_known() {
        let lines = lines(50);
        let sent_back: Vec<usize> = (0..lines.len())
            .filter(|at| lines[*at].contains("is sent back"))
            .collect();
        assert_eq!(sent_back.len(), 1, "{lines:#?}");
        let end = lines.iter().position(|line| line.contains(" ends: Task"));
        let second_stop = &lines[sent_back[0]..end.unwrap()];
        let runs = second_stop
            .iter()
            .filter(|line| line.contains("runs tests"));
        assert_eq!(runs.count(), 1, "{lines:#?}");
    }

    #[test]
    fn the_same_seed_tells_the_same_story() {
        for seed in [3, 70, 205] {
            let told = || run(&Plan::of(seed)).unwrap().story;
            assert_eq!(told(), told());
        }
    }
}
