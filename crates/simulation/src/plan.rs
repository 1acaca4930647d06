//! Generates the plan of a simulation from a seed: the checks, what agents, neighbours and persons
//! do, and who is killed when. A failing plan is shrunk by leaving things out.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

/// Something that a check reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SimulatedCheckDependency {
    /// A file of the tree.
    File(String),
    /// A program that it starts.
    Program(String),
    /// What only a tool call can change.
    Outside,
}

impl fmt::Display for SimulatedCheckDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => f.write_str(name),
            Self::Program(name) => write!(f, "program {name}"),
            Self::Outside => f.write_str("the outside"),
        }
    }
}

/// A check.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedCheck {
    pub(crate) name: String,
    /// It passes if all of these are good, each at the time that it is read.
    pub(crate) reads: Vec<SimulatedCheckDependency>,
    /// How long it runs.
    pub(crate) duration: Duration,
    /// Its timeout. A check that may outlast its hook is run by an owner.
    pub(crate) timeout: Duration,
    pub(crate) behavior: SimulatedCheckTreeEffect,
    pub(crate) declares_inputs: bool,
}

impl fmt::Display for SimulatedCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reads: Vec<String> = self
            .reads
            .iter()
            .map(SimulatedCheckDependency::to_string)
            .collect();
        let habit = match self.behavior {
            SimulatedCheckTreeEffect::OnlyReads => "",
            SimulatedCheckTreeEffect::Rewrites => ", rewrites the first",
            SimulatedCheckTreeEffect::Stashes => ", stashes the first",
        };
        let (name, reads) = (&self.name, reads.join(", "));
        write!(f, "{name} reads {reads} in {:?}{habit}", self.duration)
    }
}

/// What a check does to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimulatedCheckTreeEffect {
    /// Nothing.
    OnlyReads,
    /// It writes the first file in each run, with unchanged content.
    Rewrites,
    /// It replaces the first file by a good one while it runs, as `git stash` may.
    Stashes,
}

/// An action of an agent.
#[derive(Debug, Clone)]
pub(crate) enum SimulatedAgentAction {
    Prompt,
    Wait(Duration),
    /// A tool call that makes something good or bad.
    Tool {
        subject: SimulatedCheckDependency,
        good: bool,
        /// Whether it reports its result.
        reports: bool,
        /// Whether a person has switched Checkrein off during the call.
        while_off: bool,
    },
    /// A call that only looks.
    Read,
    Stop {
        /// When the hook is killed, if it is.
        killed_after: Option<Duration>,
        /// The hook's deadline.
        deadline: Duration,
        /// How often the agent stops again at once after it was sent back.
        repeats: u32,
    },
    /// The session is over, and goes on later.
    End,
}

/// A change by somebody else.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedOutsideChange {
    pub(crate) after: Duration,
    pub(crate) subject: SimulatedCheckDependency,
    pub(crate) good: bool,
    /// Whether the file is written through a memory mapping, which leaves its timestamp unchanged.
    pub(crate) mapped: bool,
    /// How often it happens, at equal intervals.
    pub(crate) times: u32,
}

/// An event of the machine, or an act of a person.
#[derive(Debug, Clone)]
pub(crate) enum PlannedIncident {
    /// The machine is suspended for this time.
    Sleep(Duration),
    /// The wall clock is put back by this much.
    PutClockBack(Duration),
    /// A person switches Checkrein off for this time.
    SwitchOff(Duration),
    /// A person seals another config, in which checks have longer timeouts.
    Seal,
}

/// Everything that happens in a simulation.
#[derive(Debug, Clone)]
pub struct SimulationPlan {
    pub(crate) seed: u64,
    /// The resolution of file timestamps.
    pub(crate) tick: Duration,
    pub(crate) checks: Vec<SimulatedCheck>,
    /// Whether one passing check is enough.
    pub(crate) any_is_enough: bool,
    /// What each session's agent does.
    pub(crate) agents: Vec<Vec<SimulatedAgentAction>>,
    pub(crate) neighbour: Vec<SimulatedOutsideChange>,
    /// Incidents, each with the time since the one before.
    pub(crate) incidents: Vec<(Duration, PlannedIncident)>,
    /// Whether the store is on the real disk.
    pub(crate) is_on_disk: bool,
}

impl SimulationPlan {
    /// Returns the plan of a seed.
    pub fn plan_from_seed(seed: u64) -> Self {
        // The order of the draws below is part of what a seed means: a change of it gives every
        // recorded seed another plan.
        let mut random = Rng::with_seed(seed);
        let r = &mut random;
        // Nanoseconds: from a precise file system to one whose clock ticks with the kernel's timer.
        let tick = *pick_random_item(r, &[1_u64, 1_000, 4_000_000, 10_000_000]);
        let mut checks: Vec<SimulatedCheck> = (0..r.u32(1..=3))
            .map(|at| random_simulated_check_plan(r, at))
            .collect();
        let subjects: Vec<SimulatedCheckDependency> =
            checks.iter().flat_map(|c| c.reads.clone()).collect();
        // Mostly one: the stricter audits apply only to a session that is alone.
        let sessions = if r.u32(0..3) == 0 { 2 } else { 1 };
        let mut agents: Vec<_> = (0..sessions)
            .map(|_| random_simulated_agent_actions(r, &subjects))
            .collect();
        let mut neighbour = match r.u32(0..6) {
            0 | 2 => Vec::new(),
            1 => vec![plan_repeated_good_outside_writes(r, &subjects)],
            3 => vec![meddling_neighbour_change(r, &subjects)],
            _ => (0..r.u32(1..=5))
                .map(|_| random_outside_change(r, &subjects))
                .collect(),
        };
        // Scenes that chance alone brings about too rarely.
        let scene = r.u32(0..12);
        let asks_outside = checks.iter_mut().find(|check| !check.declares_inputs);
        if let Some(check) = asks_outside.filter(|_| scene < 3) {
            check.reads.push(SimulatedCheckDependency::Outside);
            check.reads.dedup();
            match scene {
                0 => {
                    agents = vec![insistent_agent_actions(r)];
                    neighbour = vec![simulated_repair_by_person(r)];
                }
                1 => {
                    // A quick check next to a slow one: its finding is old when the slow one ends.
                    check.duration = Duration::from_millis(30);
                    check.behavior = SimulatedCheckTreeEffect::OnlyReads;
                    checks.push(random_slow_simulated_check(r));
                    agents = vec![
                        actions_toggling_outside_state(r),
                        simulated_repeated_stop_actions(r),
                    ];
                    neighbour.clear();
                }
                _ => {
                    agents = vec![
                        agent_actions_breaking_outside_state(r),
                        simulated_repeated_stop_actions(r),
                    ];
                    neighbour.clear();
                }
            }
        }
        let any_is_enough = r.u32(0..6) == 0;
        let incidents = match r.u32(0..4) {
            0 => (0..r.u32(1..=3))
                .map(|_| random_simulated_incident(r))
                .collect(),
            _ => Vec::new(),
        };
        // Rarely, since SQLite on a real disk is slow.
        let is_on_disk = r.u32(0..20) == 0;
        Self {
            seed,
            tick: Duration::from_nanos(tick),
            checks,
            any_is_enough,
            agents,
            neighbour,
            incidents,
            is_on_disk,
        }
    }

    /// Returns plans that leave one thing out, the largest parts first.
    pub fn smaller_plans(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        // Large parts come first, since every success restarts the search with a smaller plan.
        for at in (0..self.agents.len()).filter(|_| self.agents.len() > 1) {
            let mut plan = self.clone();
            plan.agents.remove(at);
            plans.push(plan);
        }
        if !self.neighbour.is_empty() {
            let neighbour = Vec::new();
            plans.push(Self {
                neighbour,
                ..self.clone()
            });
        }
        for at in (0..self.checks.len()).filter(|_| self.checks.len() > 1) {
            let mut plan = self.clone();
            plan.checks.remove(at);
            plans.push(plan);
        }
        for at in 0..self.incidents.len() {
            let mut plan = self.clone();
            plan.incidents.remove(at);
            plans.push(plan);
        }
        for at in 0..self.neighbour.len() {
            let mut plan = self.clone();
            plan.neighbour.remove(at);
            plans.push(plan);
        }
        for agent in 0..self.agents.len() {
            let actions = self.agents.get(agent).map_or(0, Vec::len);
            for at in 0..actions {
                let mut plan = self.clone();
                if let Some(actions) = plan.agents.get_mut(agent) {
                    actions.remove(at);
                }
                plans.push(plan);
            }
        }
        plans
    }

    /// Returns whether the findings of a check may differ from the tree's content.
    pub(crate) fn has_stashing_check(&self) -> bool {
        self.checks
            .iter()
            .any(|check| check.behavior == SimulatedCheckTreeEffect::Stashes)
    }

    /// Returns the config text after this many seals.
    pub(crate) fn simulated_config_text(&self, seals: u64) -> String {
        let mut text = String::new();
        if self.any_is_enough {
            let names = self.checks.iter().map(|check| check.name.as_str());
            let accept = names.collect::<Vec<_>>().join(" or ");
            text.push_str(&format!("accept = \"{accept}\"\n"));
        }
        for check in &self.checks {
            text.push_str("[[verifier]]\n");
            text.push_str(&format!("name = \"{0}\"\nrun = \"{0}\"\n", check.name));
            // Every seal has another timeout, and thus another policy.
            let timeout = check.timeout.as_secs() + seals;
            text.push_str(&format!("timeout = \"{timeout}s\"\n"));
            if check.declares_inputs {
                text.push_str("inputs = [\"**\", \"conf/.env\", \"local/data\"]\n");
            }
        }
        text
    }
}

fn pick_random_item<'a, T>(random: &mut Rng, all: &'a [T]) -> &'a T {
    let at = random.usize(0..all.len().max(1));
    all.get(at)
        .unwrap_or_else(|| unreachable!("nothing to pick from"))
}

fn random_simulated_check_plan(r: &mut Rng, at: u32) -> SimulatedCheck {
    let name = format!("check-{}", char::from(b'a' + u8::try_from(at).unwrap_or(0)));
    let files = ["a.txt", "b.txt", "src/c.txt", "conf/.env"];
    let mut reads: Vec<SimulatedCheckDependency> = (0..r.u32(1..=3))
        .map(|_| SimulatedCheckDependency::File((*pick_random_item(r, &files)).to_owned()))
        .collect();
    if r.u32(0..4) == 0 {
        reads.push(SimulatedCheckDependency::Program(name.clone()));
    }
    let declares_inputs = r.u32(0..4) == 0;
    match declares_inputs {
        true => reads.push(SimulatedCheckDependency::File("local/data".to_owned())),
        false if r.u32(0..3) == 0 => reads.push(SimulatedCheckDependency::Outside),
        false => {}
    }
    reads.sort();
    reads.dedup();
    let is_file =
        matches!(reads.first(), Some(SimulatedCheckDependency::File(name)) if name != "conf/.env");
    let habit = match r.u32(0..8) {
        0 => SimulatedCheckTreeEffect::Rewrites,
        1 if is_file => SimulatedCheckTreeEffect::Stashes,
        _ => SimulatedCheckTreeEffect::OnlyReads,
    };
    // A stashing check must be short: while it runs, the tree is not what it seems.
    let spans: &[u64] = match habit {
        SimulatedCheckTreeEffect::Stashes => &[900, 3_000],
        // Longer than the 15 minutes for which evidence is believed.
        _ if r.u32(0..60) == 0 => &[1_200_000],
        _ => &[30, 200, 900, 3_000, 14_000, 40_000],
    };
    let lasts = Duration::from_millis(*pick_random_item(r, spans));
    // With little spare time a check ends within its hook; with much it may outlast it and needs an
    // owner.
    let spare = match r.u32(0..2) {
        0 => Duration::from_secs(2),
        _ => Duration::from_secs(600),
    };
    SimulatedCheck {
        name,
        reads,
        duration: lasts,
        timeout: lasts + spare,
        behavior: habit,
        declares_inputs,
    }
}

/// Returns a check that reads an unchanged file for a few seconds.
fn random_slow_simulated_check(r: &mut Rng) -> SimulatedCheck {
    let lasts = Duration::from_millis(r.u64(1_000..4_000));
    SimulatedCheck {
        name: "check-d".to_owned(),
        reads: vec![SimulatedCheckDependency::File("b.txt".to_owned())],
        duration: lasts,
        timeout: lasts + Duration::from_secs(600),
        behavior: SimulatedCheckTreeEffect::OnlyReads,
        declares_inputs: false,
    }
}

fn random_simulated_agent_actions(
    r: &mut Rng,
    subjects: &[SimulatedCheckDependency],
) -> Vec<SimulatedAgentAction> {
    let mut actions = vec![SimulatedAgentAction::Prompt];
    for _ in 0..r.u32(1..=4) {
        for _ in 0..r.u32(0..=3) {
            actions.push(match r.u32(0..7) {
                0 => SimulatedAgentAction::Wait(random_duration(r)),
                1 => SimulatedAgentAction::Read,
                2 => SimulatedAgentAction::Tool {
                    subject: SimulatedCheckDependency::File("notes.txt".to_owned()),
                    good: true,
                    reports: true,
                    while_off: false,
                },
                _ => SimulatedAgentAction::Tool {
                    subject: pick_random_item(r, subjects).clone(),
                    good: r.u32(0..3) > 0,
                    reports: r.u32(0..4) > 0,
                    while_off: false,
                },
            });
        }
        actions.push(random_simulated_stop_action(r));
        // Between two stops of a task something may change that no file shows; only the act count
        // reveals it.
        let unseen: Vec<&SimulatedCheckDependency> = subjects
            .iter()
            .filter(|subject| !matches!(subject, SimulatedCheckDependency::File(_)))
            .collect();
        if r.u32(0..3) == 0 && !unseen.is_empty() {
            actions.push(SimulatedAgentAction::Tool {
                subject: (*pick_random_item(r, &unseen)).clone(),
                good: r.u32(0..3) == 0,
                reports: r.u32(0..4) > 0,
                while_off: r.u32(0..4) == 0,
            });
            actions.push(random_simulated_stop_action(r));
        }
        match r.u32(0..12) {
            0 | 1 => actions.push(SimulatedAgentAction::Prompt),
            2 => actions.push(SimulatedAgentAction::End),
            _ => {}
        }
    }
    actions
}

fn random_simulated_stop_action(r: &mut Rng) -> SimulatedAgentAction {
    SimulatedAgentAction::Stop {
        killed_after: (r.u32(0..6) == 0).then(|| random_duration(r)),
        deadline: Duration::from_secs(*pick_random_item(r, &[8, 20, 60])),
        repeats: *pick_random_item(r, &[0, 0, 1, 3, 8]),
    }
}

fn simulated_stop_without_interruption() -> SimulatedAgentAction {
    SimulatedAgentAction::Stop {
        killed_after: None,
        deadline: Duration::from_secs(60),
        repeats: 0,
    }
}

fn simulated_action_breaking_outside_state(reports: bool) -> SimulatedAgentAction {
    SimulatedAgentAction::Tool {
        subject: SimulatedCheckDependency::Outside,
        good: false,
        reports,
        while_off: false,
    }
}

/// Returns an agent that breaks the outside state and stops until it is accepted.
fn insistent_agent_actions(r: &mut Rng) -> Vec<SimulatedAgentAction> {
    let mut actions = vec![
        SimulatedAgentAction::Prompt,
        simulated_action_breaking_outside_state(true),
    ];
    for _ in 0..4 {
        actions.push(simulated_stop_without_interruption());
        actions.push(SimulatedAgentAction::Wait(Duration::from_millis(
            r.u64(1_000..20_000),
        )));
    }
    actions
}

/// Returns the repair of the outside state by a person, unannounced.
fn simulated_repair_by_person(r: &mut Rng) -> SimulatedOutsideChange {
    SimulatedOutsideChange {
        after: Duration::from_millis(r.u64(1_000..60_000)),
        subject: SimulatedCheckDependency::Outside,
        good: true,
        mapped: false,
        times: 1,
    }
}

/// Returns an agent that breaks the outside state, reports no result, and stops.
fn agent_actions_breaking_outside_state(r: &mut Rng) -> Vec<SimulatedAgentAction> {
    let waits = SimulatedAgentAction::Wait(Duration::from_millis(r.u64(100..3_000)));
    vec![
        SimulatedAgentAction::Prompt,
        waits,
        simulated_action_breaking_outside_state(false),
        simulated_stop_without_interruption(),
    ]
}

/// Returns an agent that breaks and repairs the outside state again and again.
fn actions_toggling_outside_state(r: &mut Rng) -> Vec<SimulatedAgentAction> {
    let mut actions = vec![SimulatedAgentAction::Prompt];
    for good in [false, true].repeat(6) {
        actions.push(SimulatedAgentAction::Tool {
            subject: SimulatedCheckDependency::Outside,
            good,
            reports: true,
            while_off: false,
        });
        actions.push(SimulatedAgentAction::Wait(Duration::from_millis(
            r.u64(0..3_000),
        )));
    }
    actions
}

/// Returns an agent that stops again and again while another one works.
fn simulated_repeated_stop_actions(r: &mut Rng) -> Vec<SimulatedAgentAction> {
    let writes = SimulatedAgentAction::Tool {
        subject: SimulatedCheckDependency::File("notes.txt".to_owned()),
        good: true,
        reports: true,
        while_off: false,
    };
    let mut actions = vec![SimulatedAgentAction::Prompt, writes];
    for _ in 0..12 {
        actions.push(simulated_stop_without_interruption());
        actions.push(SimulatedAgentAction::Wait(Duration::from_millis(
            r.u64(0..300),
        )));
    }
    actions
}

fn random_outside_change(
    r: &mut Rng,
    subjects: &[SimulatedCheckDependency],
) -> SimulatedOutsideChange {
    let is_uncounted = |subject: &&SimulatedCheckDependency| match subject {
        SimulatedCheckDependency::File(name) => name == "conf/.env",
        SimulatedCheckDependency::Program(_) => true,
        SimulatedCheckDependency::Outside => false,
    };
    // Preferably something that does not count as the tree, since only that goes unnoticed.
    // `Outside` changes only by tool calls.
    let mut files: Vec<&SimulatedCheckDependency> = subjects.iter().filter(is_uncounted).collect();
    if files.is_empty() || r.u32(0..3) > 0 {
        let is_here =
            |subject: &&SimulatedCheckDependency| **subject != SimulatedCheckDependency::Outside;
        files = subjects.iter().filter(is_here).collect();
    }
    let subject = match files.is_empty() {
        true => SimulatedCheckDependency::File("notes.txt".to_owned()),
        false => (*pick_random_item(r, &files)).clone(),
    };
    SimulatedOutsideChange {
        after: random_duration(r),
        subject,
        good: r.bool(),
        mapped: r.u32(0..8) == 0,
        times: 1,
    }
}

/// Returns a random incident, mostly at a time when agents are active.
fn random_simulated_incident(r: &mut Rng) -> (Duration, PlannedIncident) {
    let longest = *pick_random_item(r, &[100, 1_500, 20_000, 70_000]);
    let after = Duration::from_millis(r.u64(0..=longest));
    let incident = match r.u32(0..4) {
        0 => PlannedIncident::Sleep(Duration::from_secs(*pick_random_item(
            r,
            &[30, 900, 30_000],
        ))),
        1 => PlannedIncident::PutClockBack(Duration::from_secs(*pick_random_item(
            r,
            &[1, 100, 4_000],
        ))),
        2 => PlannedIncident::SwitchOff(random_duration(r)),
        _ => PlannedIncident::Seal,
    };
    (after, incident)
}

/// Returns a neighbour that writes again and again, and only good content.
fn plan_repeated_good_outside_writes(
    r: &mut Rng,
    subjects: &[SimulatedCheckDependency],
) -> SimulatedOutsideChange {
    SimulatedOutsideChange {
        after: Duration::from_millis(r.u64(300..3_000)),
        good: true,
        mapped: false,
        times: r.u32(20..200),
        ..random_outside_change(r, subjects)
    }
}

/// Returns a neighbour that breaks something that no counted file shows, while agents are active.
fn meddling_neighbour_change(
    r: &mut Rng,
    subjects: &[SimulatedCheckDependency],
) -> SimulatedOutsideChange {
    let is_program = |subject: &&SimulatedCheckDependency| {
        matches!(subject, SimulatedCheckDependency::Program(_))
    };
    let program = subjects.iter().find(is_program).cloned();
    SimulatedOutsideChange {
        after: Duration::from_millis(r.u64(300..4_000)),
        subject: program.unwrap_or_else(|| SimulatedCheckDependency::File("conf/.env".to_owned())),
        good: false,
        mapped: false,
        times: r.u32(1..4),
    }
}

fn random_duration(r: &mut Rng) -> Duration {
    let longest = *pick_random_item(r, &[5_u64, 100, 1_500, 20_000, 70_000, 1_000_000]);
    Duration::from_millis(r.u64(0..=longest))
}
