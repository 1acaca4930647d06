//! One simulation: starts everybody, lets them take turns, and looks at what must not happen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use checkrein_core::decision::{Decision, Feedback, StopDecision};
use checkrein_core::evidence::Verdict;
use checkrein_core::explain::{Because, Why};
use checkrein_core::ids::{ScopeId, SessionId, SourceName};
use checkrein_core::input::{Input, StanceAt, StanceUsed};
use checkrein_core::policy::Stance;
use checkrein_core::transition::Reason;
use checkrein_runtime::config::{self, Driver, Source};
use checkrein_runtime::{
    Decided, Delivery, OwnerLink, Patience, Place, Runtime, RuntimeError, ToolFactsBuilder, replay,
};
use checkrein_store::{Chain, MemoryStore, SqliteStore, Store};

use crate::link;
use crate::plan::{Action, CheckPlan, Habit, Incident, Plan, Subject};
use crate::scheduler::{Process, Scheduler, Time};
use crate::store::SimulatedStore;
use crate::system::{LockedFiles, SimulatedSystem};
use crate::world::World;

/// A stamp of this age is believed.
const AT_REST: Duration = Duration::from_secs(70);
/// Oftener no agent is sent back in one task.
const MOST_STOPS: u32 = 40;
/// By so much an answer may be late.
const LATE: Duration = Duration::from_secs(2);
/// After its agent or its session nothing of ours lives longer.
const AFTERLIFE: Duration = Duration::from_secs(5);
/// A hook that only notes something has so long.
const SHORT: Duration = Duration::from_secs(30);

/// What was found so long ago is found out anew.
const FRESH_NS: u64 = 15 * 60 * 1_000_000_000;

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
        true => Arc::new(SqliteStore::open(&state).map_err(std::io::Error::other)?),
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
struct Stage {
    world: Arc<World>,
    store: Arc<dyn Store>,
    plan: Plan,
    state: std::path::PathBuf,
    root: std::path::PathBuf,
    epoch: Instant,
    locked: LockedFiles,
    processes: Mutex<u32>,
    owners: Mutex<Vec<Process>>,
    /// How often a person sealed.
    seals: AtomicU64,
    endings: Mutex<Vec<String>>,
}

/// What a hook answered; nothing if it was killed, or while a person has it switched off.
type Answer = Option<Result<Decided, RuntimeError>>;

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
        let place = Place {
            root: self.root.clone(),
            state: self.state.clone(),
            env: Arc::new(BTreeMap::new()),
            addresses: true,
            system: Arc::new(self.system(process, agent)),
        };
        let inner = match self.plan.is_on_disk.then(|| SqliteStore::open(&self.state)) {
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
            let source = Source {
                name: sealing.root.join("checkrein.toml"),
                text: sealing.plan.config(sealing.seals.load(Ordering::Relaxed)),
            };
            config::compile(Some(&source), None, Driver::Hook)
        };
        let runtime = Runtime::new(Arc::new(store), place, Box::new(seal)).for_agent("generic");
        let stage = Arc::clone(self);
        runtime.with_owners(Box::new(move |_| {
            let owner = stage.new_process();
            stage.owners().push(owner);
            let (ours, theirs) = link::pair(&stage.world, process, owner);
            let beginning = Arc::clone(&stage);
            stage.start(owner, move || {
                beginning.world.tell(format!("{owner:?} is an owner"));
                let runtime = beginning.runtime(owner, agent);
                let mut link = OwnerLink::over(theirs);
                if let Some(batch) = link.batch() {
                    let is_off = || beginning.world.is_off();
                    let owned = runtime.own(&batch, link, &is_off);
                    beginning.world.tell(format!("{owner:?} ends: {owned:?}"));
                }
            });
            Ok(OwnerLink::over(ours))
        }))
    }

    /// What an agent's hook is told, as its own process. `killed_after`: by the agent, or whoever.
    fn hook(
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
        let cancelled = AtomicBool::new(false);
        let patience = Patience {
            deadline: Some(self.epoch + self.world.scheduler.now() + deadline),
            cancelled: &cancelled,
        };
        let env: &dyn Fn(&str) -> Option<String> = &|_| None;
        let adapter = checkrein_adapters::find("generic");
        let read = adapter.and_then(|adapter| adapter.read(line.to_string().as_bytes(), env).ok());
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
                        .call_while_off(&knock.session)
                        .err()
                        .map(|e| Err(e.into()));
                }
                Input::StopRequested(_) => input = stands_in(),
                _ => {}
            }
        }
        let delivery = Delivery {
            session: knock.session.clone(),
            source: SourceName::new("hook"),
            key: knock.key.clone(),
            input,
            facts: ToolFactsBuilder::new(&knock.action),
            works_in: None,
            usage: None,
            returned: None,
            layers: Vec::new(),
            task_list: None,
            runs: None,
        };
        Some(runtime.take(delivery, patience, &|_| ()))
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
                    let owners = self.owners().clone();
                    world.switch(true);
                    checkrein_runtime::cancel_all(&self.state);
                    let at_once = AFTERLIFE.min(*span);
                    world.scheduler.sleep(at_once);
                    if at_once == AFTERLIFE {
                        self.look_at_owners(&owners);
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
            if let Err(error) = runtime.renew(&session(number), "a person") {
                self.world.violation(format!("nothing is sealed: {error}"));
            }
        }
        checkrein_runtime::cancel_all(&self.state);
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
                Ok(Chain::Whole { .. }) => {}
                other => self
                    .world
                    .violation(format!("the log of {session} is {other:?}")),
            }
            for through_cache in [false, true] {
                match replay::session(&*self.store, &session, through_cache) {
                    Ok(replayed) if replayed.differs_at.is_none() => {}
                    other => self
                        .world
                        .violation(format!("{session} replays otherwise: {other:?}")),
                }
            }
        }
    }

    fn ended(&self, how: &str) {
        let mut endings = self.endings.lock().unwrap_or_else(PoisonError::into_inner);
        endings.push(how.to_owned());
    }
}

/// How a stop is let through while a person has Checkrein switched off.
fn stands_in() -> Input {
    Input::StanceUsed(StanceUsed {
        scope: ScopeId::main(),
        at: StanceAt::Stop,
        stance: Stance::Allow,
        why: "it is switched off".to_owned(),
    })
}

fn session(number: usize) -> SessionId {
    SessionId::new(format!("session-{number}"))
}

/// An agent, and what it knows of its own session.
struct Agent {
    stage: Arc<Stage>,
    process: Process,
    session: String,
    calls: u32,
    stops: u32,
    /// The task ended so before.
    gave_up: bool,
    /// What had been changed when a stop was accepted.
    accepted_at: Option<Unchanged>,
}

/// As long as it is so, nothing is run again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unchanged {
    changes: u64,
    renewals: u64,
}

impl Unchanged {
    fn of(world: &World) -> Self {
        Self {
            changes: world.changes(),
            renewals: world.renewals(),
        }
    }
}

impl Agent {
    fn new(stage: Arc<Stage>, process: Process, number: usize) -> Self {
        Self {
            stage,
            process,
            session: session(number).to_string(),
            // Ids are no other agent's.
            calls: process.0 * 1000,
            stops: 0,
            gave_up: false,
            accepted_at: None,
        }
    }

    fn act(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Prompt => self.prompt(),
                Action::Wait(span) => self.stage.world.scheduler.sleep(*span),
                Action::Tool {
                    subject,
                    good,
                    reports,
                    while_off,
                } => {
                    if *while_off {
                        self.stage.world.switch(true);
                    }
                    self.tool(subject, *good, *reports);
                    if *while_off {
                        self.stage.world.switch(false);
                    }
                }
                Action::Read => {
                    let call = self.next_call();
                    self.request(&call, "Read", serde_json::json!({"file_path": "a.txt"}));
                }
                Action::Stop {
                    killed_after,
                    deadline,
                    insists,
                } => {
                    let mut ending = self.stop(*deadline, *killed_after);
                    for _ in 0..*insists {
                        if ending.is_none() {
                            ending = self.stop(*deadline, None);
                        }
                    }
                }
                Action::End => self.end(),
            }
        }
    }

    fn tell(&self, line: serde_json::Value) {
        let (_, answer) = self.stage.hook(self.process, line, SHORT, None);
        if let Some(Err(error)) = answer {
            self.stage.world.violation(format!("a hook fails: {error}"));
        }
    }

    fn prompt(&mut self) {
        self.stage
            .world
            .tell(format!("{} is prompted", self.session));
        self.accepted_at = None;
        (self.stops, self.gave_up) = (0, false);
        self.tell(serde_json::json!({
            "type": "user", "session": self.session, "text": format!("do it, {}", self.calls),
        }));
        self.stage.world.end_outside_calls(&self.session);
    }

    fn end(&mut self) {
        let world = Arc::clone(&self.stage.world);
        world.tell(format!("{} is over", self.session));
        self.accepted_at = None;
        self.tell(serde_json::json!({"type": "end", "session": self.session}));
        world.end_outside_calls(&self.session);
        checkrein_runtime::cancel_session(&self.stage.state, &SessionId::new(self.session.clone()));
        world.scheduler.sleep(AFTERLIFE);
        let is_alone = self.stage.plan.agents.len() == 1;
        if is_alone && world.is_anything_running() {
            world.violation("a check runs 5 s after the end of its session");
        }
    }

    fn next_call(&mut self) -> String {
        self.calls += 1;
        format!("call-{}", self.calls)
    }

    fn request(&self, id: &str, tool: &str, args: serde_json::Value) -> bool {
        let line = serde_json::json!({
            "type": "tool_call", "session": self.session, "id": id, "tool": tool, "args": args,
        });
        let (_, answer) = self.stage.hook(self.process, line, SHORT, None);
        self.stage.world.end_outside_calls(&self.session);
        match answer {
            Some(Ok(decided)) => matches!(decided.decision, Decision::Tool(decision) if !matches!(
                decision,
                checkrein_core::decision::ToolDecision::Deny { .. }
                    | checkrein_core::decision::ToolDecision::Halt { .. }
            )),
            Some(Err(error)) => {
                self.stage.world.violation(format!("a hook fails: {error}"));
                false
            }
            None => true,
        }
    }

    fn tool(&mut self, subject: &Subject, good: bool, reports: bool) {
        let id = self.next_call();
        let command = match subject {
            Subject::File(name) if name != "conf/.env" => None,
            Subject::File(name) => Some(format!("echo x > {name}")),
            Subject::Program(name) => Some(format!("install-it {name}")),
            Subject::Outside => Some("systemctl restart service".to_owned()),
        };
        let (tool, args) = match (&command, subject) {
            (None, Subject::File(name)) => (
                "Write",
                serde_json::json!({"file_path": self.stage.root.join(name), "content": "x"}),
            ),
            (command, _) => ("Bash", serde_json::json!({"command": command})),
        };
        if !self.request(&id, tool, args.clone()) {
            return;
        }
        if *subject == Subject::Outside {
            self.stage.world.begin_outside_call(&self.session);
        }
        let scheduler = &self.stage.world.scheduler;
        scheduler.sleep(Duration::from_millis(u64::from(scheduler.random(400))));
        self.stage.world.change(subject, good, &self.session);
        if reports {
            self.tell(serde_json::json!({
                "type": "tool_result", "session": self.session, "id": id, "tool": tool,
                "args": args, "result": "ok",
            }));
            self.stage.world.end_outside_calls(&self.session);
        }
    }

    /// Stops; says how the task ended, if it did.
    fn stop(&mut self, deadline: Duration, killed_after: Option<Duration>) -> Option<String> {
        let world = Arc::clone(&self.stage.world);
        self.stops += 1;
        let seals = self.stage.seals.load(Ordering::Relaxed);
        let before = (Unchanged::of(&world), world.scheduler.now());
        let line = serde_json::json!({"type": "stop", "session": self.session, "text": "Done."});
        let (hook, answer) = self.stage.hook(self.process, line, deadline, killed_after);
        let after = world.scheduler.now();
        let seals = self.stage.seals.load(Ordering::Relaxed) - seals;
        self.look_at_work(hook, seals);
        match answer {
            Some(_) => world.end_outside_calls(&self.session),
            None => self.accepted_at = None,
        }
        let decided = match answer? {
            Ok(decided) => decided,
            // Whoever seals again and again while a stop is judged has it begin again each time.
            Err(RuntimeError::Deadline) if seals > 1 => return None,
            Err(error) => {
                world.violation(format!("{}: {error}", self.session));
                return None;
            }
        };
        if after > before.1 + deadline + LATE {
            let late = after.saturating_sub(before.1);
            world.violation(format!("an answer due in {deadline:?} came after {late:?}"));
        }
        let Decision::Stop(decision) = &decided.decision else {
            return None;
        };
        match decision {
            StopDecision::Continue { feedback } => {
                world.tell(format!(
                    "{} is sent back: {}",
                    self.session,
                    said(&decided.why)
                ));
                self.look_at_feedback(feedback, before.1);
                if self.stops > MOST_STOPS {
                    world.violation("a task does not end");
                }
                self.accepted_at = None;
                None
            }
            StopDecision::Accept { transition } => {
                let transition = transition.as_ref()?;
                self.look_at_ending(transition.reason, hook, before, after);
                let detail = transition.detail.as_deref().unwrap_or("");
                self.gave_up |= transition.reason == Reason::GaveUp;
                world.tell(format!(
                    "{} ends: {:?} {detail}: {}",
                    self.session,
                    transition.reason,
                    said(&decided.why)
                ));
                self.stage
                    .ended(&format!("{:?} {detail}", transition.reason));
                let is_complete = transition.reason == Reason::TaskComplete;
                self.accepted_at = is_complete.then(|| Unchanged::of(&world));
                Some(transition.reason.as_str().to_owned())
            }
            StopDecision::Halt { .. } => None,
        }
    }

    /// What an agent is told of a check is what a run of it found, and no newer one had ended when it stopped.
    fn look_at_feedback(&self, feedback: &Feedback, stopped: Time) {
        let world = &self.stage.world;
        for check in &feedback.checks {
            let kept = self.stage.store.evidence(&check.key).ok().flatten();
            let evidence = kept.and_then(|kept| checkrein_runtime::evidence_of(&kept.bytes));
            let Some(evidence) = evidence.filter(|_| check.verdict == Verdict::Fail) else {
                continue;
            };
            let run = evidence
                .excerpt
                .strip_prefix("run ")
                .and_then(|run| run.parse().ok());
            let name = check.verifier.as_str();
            let found = run.and_then(|run| world.findings_of(name, run, stopped));
            let told = evidence
                .findings
                .iter()
                .map(|finding| finding.id.clone())
                .collect();
            // What ran beside a stash says otherwise, and is not believed.
            if found != Some(told) && !self.stage.plan.has_stash() {
                world.violation(format!(
                    "the agent is told of {run:?} of {name}, which is outdated"
                ));
            }
        }
    }

    /// A stop takes so many looks and runs, and no more; each seal has it begin again.
    fn look_at_work(&self, hook: Process, seals: u64) {
        let world = &self.stage.world;
        let checks = u32::try_from(self.stage.plan.checks.len()).unwrap_or(u32::MAX);
        let times = 1 + u32::try_from(seals).unwrap_or(u32::MAX);
        let (looks, _) = world.looks_of(hook);
        if looks > (4 * checks + 4) * times {
            world.violation(format!("{looks} looks for {checks} checks"));
        }
        for check in &self.stage.plan.checks {
            let runs = world.runs_of(hook, &check.name);
            if runs > 4 * times {
                world.violation(format!("{} ran {runs} times in one stop", check.name));
            }
        }
    }

    fn look_at_ending(
        &self,
        reason: Reason,
        hook: Process,
        before: (Unchanged, Time),
        after: Time,
    ) {
        let world = &self.stage.world;
        let (_, last_look) = world.looks_of(hook);
        match reason {
            Reason::TaskComplete => {
                let from = last_look.max(before.1);
                // What is under way is taken in once it is done.
                let is_under_way = world.is_call_under_way(&self.session, from, after)
                    && world.passed_but_outside_within(from, after);
                if !world.passed_within(from, after) && !is_under_way {
                    world.violation(format!(
                        "a wrong task_complete: nothing passed between {from:?} and {after:?}"
                    ));
                }
            }
            Reason::GaveUp => {
                let may_be_told = self.gave_up || self.stage.plan.has_stash();
                if !may_be_told && !world.failed_within(before.1, after) {
                    world.violation("gave up, although everything passed all the time");
                }
            }
            _ => {}
        }
        let checks = self.stage.plan.checks.iter();
        let is_fresh = |check: &CheckPlan| {
            let began = world.newest_began_ns(&check.name);
            began.is_some_and(|began| world.wall_ns().abs_diff(began) < FRESH_NS)
        };
        if self.accepted_at == Some(before.0)
            && Unchanged::of(world) == before.0
            && checks.clone().all(is_fresh)
            && !self.stage.plan.has_stash()
            // A check that failed beside the one that was enough is asked anew in the next task.
            && !self.stage.plan.any_is_enough
        {
            let runs: u32 = checks.map(|check| world.runs_of(hook, &check.name)).sum();
            if runs > 0 {
                world.violation(format!("nothing was changed, and {runs} checks ran"));
            }
        }
    }
}

/// What was known of the checks.
fn said(why: &Why) -> String {
    let lines = why.iter().filter_map(|because| match because {
        Because::Verdict {
            verifier,
            verdict,
            cause,
            cached,
            ..
        } => {
            let cause = cause.map_or(String::new(), |cause| format!(" {cause:?}"));
            let cached = if *cached { " known" } else { "" };
            Some(format!("{verifier} {verdict:?}{cause}{cached}"))
        }
        Because::AlreadyEnded => Some("ended before".to_owned()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Deed;

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
