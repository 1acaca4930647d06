//! Runs one simulation: starts all actors, lets them take turns, and checks the invariants when all
//! are gone. The answers to agents are checked where they arrive, in `agent`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use checkrein_core::ids::{ScopeId, SessionId, SourceName};
use checkrein_core::input::{Input, StancePoint, StanceUsed};
use checkrein_core::policy::Stance;
use checkrein_runtime::config::{self, NamedConfigText, TaskDriverKind};
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, HookWorkerLinkEnd, Runtime, RuntimeError,
    ToolFactsBuilder, TreeAndStateFolder, replay,
};
use checkrein_store::{HashChainStatus, MemoryStore, SqliteStore, Store};

use crate::agent::SimulatedAgent;
use crate::link;
use crate::plan::{
    PlannedIncident, SimulatedCheck, SimulatedCheckDependency, SimulatedCheckTreeEffect,
    SimulationPlan,
};
use crate::scheduler::{SimulatedProcessId, SimulatedThreadScheduler, VirtualTime};
use crate::simulated_machine::SimulatedOperatingSystem;
use crate::store::SimulatedStore;
use crate::system::{SimulatedFileLocks, SystemOfSimulatedProcess};

/// Age from which a file timestamp is believed.
const STAMP_SETTLED: Duration = Duration::from_secs(70);
/// How often a hook checks whether Checkrein was switched off.
const OFF_POLL: Duration = Duration::from_millis(500);
/// Longest time that our processes may outlive their agent or session.
pub(crate) const MAX_OUTLIVING: Duration = Duration::from_secs(5);

/// Ignore rules of the simulated tree.
pub(crate) const IGNORE_RULES: &str = ".env\nlocal/\n";

/// The result of a simulation.
#[derive(Debug)]
pub struct SimulationOutcome {
    /// Violations of invariants.
    pub violations: Vec<String>,
    /// What happened, and when.
    pub story: Vec<(VirtualTime, String)>,
    /// How tasks ended, for statistics.
    pub endings: Vec<String>,
}

/// Runs a plan.
///
/// # Errors
/// If this machine cannot run it.
pub fn run_simulation_plan(plan: &SimulationPlan) -> std::io::Result<SimulationOutcome> {
    #[cfg(target_os = "linux")]
    let _stays = crate::cpu_pin::SimulationCpuPin::pin_current_thread();
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("tree");
    std::fs::create_dir(&root)?;
    // The tree is in memory. Only the ignore rules are read from the real folder.
    std::fs::write(root.join(".gitignore"), IGNORE_RULES)?;
    let scheduler = SimulatedThreadScheduler::new(plan.seed);
    let world = SimulatedOperatingSystem::new(Arc::clone(&scheduler), &root, plan);
    let state = folder.path().join("state");
    let store: Arc<dyn Store> = match plan.is_on_disk {
        true => Arc::new(SqliteStore::open_store_in_folder(&state).map_err(std::io::Error::other)?),
        false => Arc::new(MemoryStore::new()),
    };
    let stage = Arc::new(SimulationContext {
        machine: Arc::clone(&world),
        store,
        plan: plan.clone(),
        state,
        root,
        epoch: Instant::now(),
        locked: SimulatedFileLocks::default(),
        processes: Mutex::new(1000),
        owners: Mutex::default(),
        seals: AtomicU64::new(0),
        endings: Mutex::default(),
    });
    // The director is a simulated process as well, so that its waiting is part of the turns.
    let everybody = stage.next_simulated_process_number();
    stage.spawn_simulated_process_with_id(everybody, {
        let stage = Arc::clone(&stage);
        move || stage.run_all_actors()
    });
    if let Err(stuck) = scheduler.run_simulated_threads_to_end() {
        world.record_simulation_violation(stuck);
    }
    let endings = stage.endings.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(SimulationOutcome {
        violations: world.simulation_violations(),
        story: world.simulation_story(),
        endings: endings.clone(),
    })
}

/// What all actors share.
pub(crate) struct SimulationContext {
    pub(crate) machine: Arc<SimulatedOperatingSystem>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) plan: SimulationPlan,
    pub(crate) state: std::path::PathBuf,
    pub(crate) root: std::path::PathBuf,
    epoch: Instant,
    locked: SimulatedFileLocks,
    processes: Mutex<u32>,
    owners: Mutex<Vec<SimulatedProcessId>>,
    /// How often a person has sealed.
    pub(crate) seals: AtomicU64,
    endings: Mutex<Vec<String>>,
}

/// A hook's answer; `None` if it was killed, or for a call while Checkrein is off.
pub(crate) type SimulatedHookAnswer = Option<Result<DeliveryOutcome, RuntimeError>>;

impl SimulationContext {
    fn next_simulated_process_number(&self) -> SimulatedProcessId {
        let mut processes = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *processes += 1;
        SimulatedProcessId(*processes)
    }

    /// Starts a process with one thread.
    fn spawn_simulated_process_with_id(
        self: &Arc<Self>,
        process: SimulatedProcessId,
        work: impl FnOnce() + Send + 'static,
    ) {
        let scheduler = Arc::clone(&self.machine.scheduler);
        let thread = scheduler.register_simulated_thread(process);
        std::thread::spawn(move || {
            scheduler.begin_simulated_thread(thread);
            work();
            scheduler.end_simulated_thread(thread);
        });
    }

    fn kill_simulated_process(self: &Arc<Self>, process: SimulatedProcessId) {
        let scheduler = &self.machine.scheduler;
        if !scheduler.is_simulated_process_alive(process) {
            return;
        }
        self.machine
            .append_simulation_trace_line(format!("{process:?} is killed"));
        scheduler.kill_simulated_process(process);
        // Killed threads are parked, not unwound, so nothing of theirs is dropped. What a kernel
        // would close is closed here.
        self.locked.close_files_of_killed_process(process);
        // As on a real machine, its checks end a moment after it, and only then are their claims
        // free.
        let keeper = self.next_simulated_process_number();
        let stage = Arc::clone(self);
        let moment = Duration::from_millis(u64::from(scheduler.random_below(60)));
        self.spawn_simulated_process_with_id(keeper, move || {
            stage.machine.scheduler.sleep_simulated_thread(moment);
            stage.machine.drop_check_runs_of_process(process);
            stage.machine.release_process_claims(process);
            stage.machine.scheduler.spend_virtual_time(Duration::ZERO);
        });
    }

    fn simulated_system_for_process(
        &self,
        process: SimulatedProcessId,
        agent: SimulatedProcessId,
    ) -> SystemOfSimulatedProcess {
        SystemOfSimulatedProcess {
            machine: Arc::clone(&self.machine),
            process,
            agent,
            checks: self.plan.checks.clone().into(),
            epoch: self.epoch,
            locked: self.locked.clone(),
        }
    }

    fn runtime_of_simulated_process(
        self: &Arc<Self>,
        process: SimulatedProcessId,
        agent: SimulatedProcessId,
    ) -> Runtime {
        let place = TreeAndStateFolder {
            root: self.root.clone(),
            state: self.state.clone(),
            env: Arc::new(BTreeMap::new()),
            trusts_addresses: true,
            system: Arc::new(self.simulated_system_for_process(process, agent)),
        };
        // On disk each process opens its own connection, as real processes do.
        let inner = match self
            .plan
            .is_on_disk
            .then(|| SqliteStore::open_store_in_folder(&self.state))
        {
            Some(Ok(own)) => Arc::new(own),
            Some(Err(error)) => {
                self.machine
                    .record_simulation_violation(format!("no store: {error}"));
                Arc::clone(&self.store)
            }
            None => Arc::clone(&self.store),
        };
        let store = SimulatedStore {
            inner,
            machine: Arc::clone(&self.machine),
            process,
        };
        let sealing = Arc::clone(self);
        let seal = move || {
            let source = NamedConfigText {
                name: sealing.root.join("checkrein.toml"),
                text: sealing
                    .plan
                    .simulated_config_text(sealing.seals.load(Ordering::Relaxed)),
            };
            config::compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook)
        };
        let runtime =
            Runtime::new(Arc::new(store), place, Box::new(seal)).with_agent_name("generic");
        let stage = Arc::clone(self);
        runtime.with_worker_launcher(Box::new(move |_| {
            let owner = stage.next_simulated_process_number();
            stage.lock_simulated_workers().push(owner);
            let (ours, theirs) = link::simulated_link_pair(&stage.machine, process, owner);
            let beginning = Arc::clone(&stage);
            stage.spawn_simulated_process_with_id(owner, move || {
                beginning
                    .machine
                    .append_simulation_trace_line(format!("{owner:?} is an owner"));
                let runtime = beginning.runtime_of_simulated_process(owner, agent);
                let mut link = HookWorkerLinkEnd::over_transport(theirs);
                // Without a batch the hook was killed before it sent one: the owner has nothing to
                // do.
                if let Some(batch) = link.receive_check_batch_from_hook() {
                    let is_off = || beginning.machine.is_checkrein_off();
                    let owned = runtime.run_worker_batch(&batch, link, &is_off);
                    beginning
                        .machine
                        .append_simulation_trace_line(format!("{owner:?} ends: {owned:?}"));
                }
            });
            Ok(HookWorkerLinkEnd::over_transport(ours))
        }))
    }

    /// Runs a hook of an agent as a process of its own. It is killed after `killed_after`, if
    /// given.
    pub(crate) fn run_simulated_hook(
        self: &Arc<Self>,
        agent: SimulatedProcessId,
        line: serde_json::Value,
        deadline: Duration,
        killed_after: Option<Duration>,
    ) -> (SimulatedProcessId, SimulatedHookAnswer) {
        let hook = self.next_simulated_process_number();
        let answer = Arc::new(Mutex::new(None));
        let scheduler = Arc::clone(&self.machine.scheduler);
        self.spawn_simulated_process_with_id(hook, {
            let (stage, answer) = (Arc::clone(self), Arc::clone(&answer));
            move || {
                let taken = stage.deliver_simulated_hook_event(hook, agent, &line, deadline);
                *answer.lock().unwrap_or_else(PoisonError::into_inner) = taken;
            }
        });
        // The killer is a process of its own, so that it also runs while the hook waits.
        if let Some(span) = killed_after {
            let (stage, killer) = (Arc::clone(self), self.next_simulated_process_number());
            self.spawn_simulated_process_with_id(killer, move || {
                stage.machine.scheduler.sleep_simulated_thread(span);
                stage.kill_simulated_process(hook);
            });
        }
        scheduler.wait_for_simulated_processes(&[hook]);
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        (hook, answer.take())
    }

    fn deliver_simulated_hook_event(
        self: &Arc<Self>,
        hook: SimulatedProcessId,
        agent: SimulatedProcessId,
        line: &serde_json::Value,
        deadline: Duration,
    ) -> SimulatedHookAnswer {
        let runtime = self.runtime_of_simulated_process(hook, agent);
        let cancelled = Arc::new(AtomicBool::new(false));
        let patience = Deadline {
            due_at: Some(self.epoch + self.machine.scheduler.simulated_now() + deadline),
            cancelled: &cancelled,
        };
        let env: &dyn Fn(&str) -> Option<String> = &|_| None;
        let adapter = checkrein_adapters::find_adapter("generic");
        let read = adapter.and_then(|adapter| {
            adapter
                .parse_agent_hook_message(line.to_string().as_bytes(), env)
                .ok()
        });
        let Some(knock) = read else {
            self.machine
                .record_simulation_violation("the line of a hook cannot be read");
            return None;
        };
        // From here on this mirrors the hook of the command line, which decides what is delivered
        // while Checkrein is off.
        let mut input = knock.input.clone()?;
        if self.machine.is_checkrein_off() {
            match input {
                Input::ToolRequested(_) | Input::ToolReturned(_) => {
                    self.machine.invalidate_simulated_check_passes();
                    return runtime
                        .record_call_while_switched_off(&knock.session)
                        .err()
                        .map(|e| Err(e.into()));
                }
                Input::StopRequested(_) => input = input_passing_stop_while_off(),
                _ => {}
            }
        }
        let is_stop = matches!(input, Input::StopRequested(_));
        if is_stop {
            self.cancel_simulated_hook_when_off(hook, &cancelled);
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
            seen_tool_response: None,
            layers: Vec::new(),
            task_list: None,
            required_runs: None,
        };
        let mut taken =
            runtime.deliver_event(delivery(input, knock.key.clone()), patience, &|_| ());
        // Only switching off cancels here: the stop is then let through, as the real hook does.
        if matches!(taken, Err(RuntimeError::Cancelled)) {
            // The flag would cancel the second delivery, too.
            cancelled.store(false, Ordering::Relaxed);
            taken = runtime.deliver_event(
                delivery(input_passing_stop_while_off(), None),
                patience,
                &|_| (),
            );
        }
        Some(taken)
    }

    /// Cancels this hook as soon as Checkrein is switched off.
    fn cancel_simulated_hook_when_off(
        self: &Arc<Self>,
        hook: SimulatedProcessId,
        cancelled: &Arc<AtomicBool>,
    ) {
        let switches_off = |(_, incident): &(_, PlannedIncident)| {
            matches!(incident, PlannedIncident::SwitchOff(_))
        };
        if !self.plan.incidents.iter().any(switches_off) {
            return;
        }
        let (world, cancelled) = (Arc::clone(&self.machine), Arc::clone(cancelled));
        self.spawn_simulated_process_with_id(self.next_simulated_process_number(), move || {
            while world.scheduler.is_simulated_process_alive(hook) && !world.is_checkrein_off() {
                world.scheduler.sleep_simulated_thread(OFF_POLL);
            }
            cancelled.store(true, Ordering::Relaxed);
        });
    }

    fn lock_simulated_workers(&self) -> std::sync::MutexGuard<'_, Vec<SimulatedProcessId>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all actors at once, waits for them, then performs the final stop and checks the logs.
    fn run_all_actors(self: &Arc<Self>) {
        let mut started = Vec::new();
        for (number, actions) in self.plan.agents.iter().enumerate() {
            let process = self.next_simulated_process_number();
            let (stage, actions) = (Arc::clone(self), actions.clone());
            self.spawn_simulated_process_with_id(process, move || {
                let mut agent = SimulatedAgent::new(stage, process, number);
                agent.simulate_agent_actions(&actions);
            });
            started.push(process);
        }
        let neighbour = self.next_simulated_process_number();
        self.spawn_simulated_process_with_id(neighbour, {
            let stage = Arc::clone(self);
            move || stage.simulate_outside_file_changes()
        });
        started.push(neighbour);
        let incidents = self.next_simulated_process_number();
        self.spawn_simulated_process_with_id(incidents, {
            let stage = Arc::clone(self);
            move || stage.inject_simulated_incidents(incidents)
        });
        started.push(incidents);
        let scheduler = &self.machine.scheduler;
        scheduler.wait_for_simulated_processes(&started);
        // Owners may take this long to notice that their agent is gone.
        scheduler.sleep_simulated_thread(MAX_OUTLIVING);
        if self.machine.is_any_check_running() {
            self.machine
                .record_simulation_violation("a check runs 5 s after its agent is gone");
        }
        self.check_final_simulated_stop();
        self.verify_simulated_logs();
    }

    fn simulate_outside_file_changes(&self) {
        for deed in &self.plan.neighbour {
            for _ in 0..deed.times {
                self.machine.scheduler.sleep_simulated_thread(deed.after);
                match deed.mapped {
                    true => self.machine.change_simulated_file_through_mmap(
                        &deed.subject,
                        deed.good,
                        "a neighbour",
                    ),
                    false => self.machine.make_check_input_good_or_bad(
                        &deed.subject,
                        deed.good,
                        "a neighbour",
                    ),
                }
            }
        }
    }

    fn inject_simulated_incidents(self: &Arc<Self>, process: SimulatedProcessId) {
        let world = &self.machine;
        for (after, incident) in &self.plan.incidents {
            world.scheduler.sleep_simulated_thread(*after);
            match incident {
                PlannedIncident::Sleep(span) => world.suspend_simulated_machine(*span),
                PlannedIncident::PutClockBack(span) => {
                    // The age of evidence is unknown after that, so checks that passed may run again.
                    world.set_clock_back(*span);
                    world.invalidate_simulated_check_passes();
                }
                PlannedIncident::SwitchOff(span) => {
                    world.set_simulated_checkrein_off(true);
                    checkrein_runtime::cancel_all_workers(&self.state);
                    // A shorter time off ends before the limit, and checks may run again by then.
                    let at_once = MAX_OUTLIVING.min(*span);
                    world.scheduler.sleep_simulated_thread(at_once);
                    if at_once == MAX_OUTLIVING && world.is_any_check_running() {
                        world.record_simulation_violation(
                            "a check runs 5 s after it was switched off",
                        );
                    }
                    world
                        .scheduler
                        .sleep_simulated_thread(span.saturating_sub(at_once));
                    world.set_simulated_checkrein_off(false);
                }
                PlannedIncident::Seal => {
                    // Taken before the seal: owners that start afterwards belong to the new policy.
                    let owners = self.lock_simulated_workers().clone();
                    self.simulate_person_sealing_config(process);
                    world.scheduler.sleep_simulated_thread(MAX_OUTLIVING);
                    self.audit_workers_ended(&owners);
                }
            }
        }
    }

    fn simulate_person_sealing_config(self: &Arc<Self>, process: SimulatedProcessId) {
        self.machine
            .append_simulation_trace_line("a person seals another config");
        // Before the sessions are sealed again: the policy compiler reads the count.
        self.seals.fetch_add(1, Ordering::Relaxed);
        let runtime = self.runtime_of_simulated_process(process, process);
        for number in 0..self.plan.agents.len() {
            if let Err(error) = runtime
                .reseal_session_with_current_policy(&simulated_session_id(number), "a person")
            {
                self.machine
                    .record_simulation_violation(format!("nothing is sealed: {error}"));
            }
        }
        checkrein_runtime::cancel_all_workers(&self.state);
        self.machine.invalidate_simulated_check_passes();
    }

    /// Checks that these workers have ended.
    fn audit_workers_ended(&self, owners: &[SimulatedProcessId]) {
        for owner in self.machine.simulated_processes_running_checks(owners) {
            self.machine.record_simulation_violation(format!(
                "{owner:?} runs a check 5 s after it was to end"
            ));
        }
    }

    /// Checks that a stop is accepted once everything is good and nobody else is active.
    fn check_final_simulated_stop(self: &Arc<Self>) {
        // Such a check finds a good file where the tree has a bad one: nothing can be expected of
        // the stop.
        if self.plan.has_stashing_check() {
            return;
        }
        let process = self.next_simulated_process_number();
        let mut agent = SimulatedAgent::new(Arc::clone(self), process, 0);
        agent.simulate_prompt_submission();
        agent.perform_simulated_tool_call(
            &SimulatedCheckDependency::File("notes.txt".to_owned()),
            true,
            true,
        );
        for check in &self.plan.checks {
            for subject in &check.reads {
                agent.perform_simulated_tool_call(subject, true, true);
            }
        }
        // Until then digests of the files just written are not cached by their timestamps.
        self.machine.scheduler.sleep_simulated_thread(STAMP_SETTLED);
        let scheduler = Arc::clone(&self.machine.scheduler);
        self.spawn_simulated_process_with_id(process, move || {
            let longest = Duration::from_secs(300);
            let lasts = agent.context.plan.checks.iter().map(|check| check.duration);
            let outlasts = lasts.max().is_some_and(|lasts| lasts > longest);
            let mut ending = agent.simulate_agent_stop(longest, None);
            // A check that outlasts the deadline goes on in its owner; the agent stops again until
            // it ends.
            while outlasts && ending.is_none() && agent.stops < 6 {
                ending = agent.simulate_agent_stop(longest, None);
            }
            // A check that writes makes the others run once more, alone; that may take all of the
            // stops.
            let writes =
                |check: &SimulatedCheck| check.behavior != SimulatedCheckTreeEffect::OnlyReads;
            let may_last = outlasts && agent.context.plan.checks.iter().any(writes);
            let is_still_running = may_last && ending.is_none();
            if ending.as_deref() != Some("task_complete") && !is_still_running {
                let stage = &agent.context;
                stage.machine.record_simulation_violation(format!(
                    "all is at rest and good, and the stop comes to {ending:?}"
                ));
            }
        });
        scheduler.wait_for_simulated_processes(&[process]);
    }

    /// Checks that logs are whole and that replaying them gives the same decisions.
    fn verify_simulated_logs(&self) {
        for number in 0..self.plan.agents.len() {
            let session = simulated_session_id(number);
            match self.store.verify_chain(&session) {
                Ok(HashChainStatus::Whole { .. }) => {}
                other => self
                    .machine
                    .record_simulation_violation(format!("the log of {session} is {other:?}")),
            }
            // With the state cache and without it: the cache must never change a decision.
            for through_cache in [false, true] {
                match replay::replay_session(&*self.store, &session, through_cache) {
                    Ok(replayed) if replayed.differs_at.is_none() => {}
                    other => self.machine.record_simulation_violation(format!(
                        "{session} replays otherwise: {other:?}"
                    )),
                }
            }
        }
    }

    pub(crate) fn record_simulated_task_ending(&self, how: &str) {
        let mut endings = self.endings.lock().unwrap_or_else(PoisonError::into_inner);
        endings.push(how.to_owned());
    }
}

/// Returns the input that lets a stop through while Checkrein is off.
fn input_passing_stop_while_off() -> Input {
    Input::StanceUsed(StanceUsed {
        scope: ScopeId::main_scope(),
        at: StancePoint::Stop,
        stance: Stance::Allow,
        why: "it is switched off".to_owned(),
    })
}

pub(crate) fn simulated_session_id(number: usize) -> SessionId {
    SessionId::new(format!("session-{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{SimulatedAgentAction, SimulatedOutsideChange};

    fn plan(lasts_ms: u64, neighbour: SimulatedOutsideChange) -> SimulationPlan {
        let notes = SimulatedCheckDependency::File("notes.txt".to_owned());
        SimulationPlan {
            seed: 1,
            tick: Duration::from_nanos(1),
            checks: vec![SimulatedCheck {
                name: "tests".to_owned(),
                reads: vec![SimulatedCheckDependency::File("a.txt".to_owned())],
                duration: Duration::from_millis(lasts_ms),
                timeout: Duration::from_secs(600),
                behavior: SimulatedCheckTreeEffect::OnlyReads,
                declares_inputs: false,
            }],
            any_is_enough: false,
            agents: vec![vec![
                SimulatedAgentAction::Prompt,
                SimulatedAgentAction::Tool {
                    subject: notes,
                    good: true,
                    reports: true,
                    while_off: false,
                },
                SimulatedAgentAction::Stop {
                    killed_after: None,
                    deadline: Duration::from_secs(60),
                    repeats: 8,
                },
            ]],
            neighbour: vec![neighbour],
            incidents: Vec::new(),
            is_on_disk: false,
        }
    }

    /// Writes to a file every 300 ms.
    fn neighbour(times: u32) -> SimulatedOutsideChange {
        SimulatedOutsideChange {
            after: Duration::from_millis(300),
            subject: SimulatedCheckDependency::File("b.txt".to_owned()),
            good: true,
            mapped: false,
            times,
        }
    }

    /// What happens beside a neighbour that writes so often.
    fn lines(times: u32) -> Vec<String> {
        let outcome = run_simulation_plan(&plan(900, neighbour(times))).unwrap();
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
            let told = || {
                run_simulation_plan(&SimulationPlan::plan_from_seed(seed))
                    .unwrap()
                    .story
            };
            assert_eq!(told(), told());
        }
    }
}
