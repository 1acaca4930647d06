//! A simulated agent: what it does to the tree, what it tells its hooks, and what must not be wrong in their answers.
//! The rules are written here once more and share nothing with the code that they are held against.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use checkrein_core::decision::{Decision, StopDecision, StopFeedback};
use checkrein_core::evidence::Verdict;
use checkrein_core::explain::{DecisionExplanation, DecisionFactor};
use checkrein_core::ids::SessionId;
use checkrein_core::transition::Reason;
use checkrein_runtime::RuntimeError;

use crate::plan::{Action, Subject};
use crate::run::{AFTERLIFE, Stage, session};
use crate::scheduler::{Process, Time};
use crate::world::World;

/// Oftener no agent is sent back in one task.
const MOST_STOPS: u32 = 40;
/// By so much an answer may be late.
const LATE: Duration = Duration::from_secs(2);
/// A hook that only notes something has so long.
const SHORT: Duration = Duration::from_secs(30);
/// What was found so long ago is found out anew.
const FRESH_NS: u64 = 15 * 60 * 1_000_000_000;

/// An agent, and what it knows of its own session.
pub(crate) struct Agent {
    pub(crate) stage: Arc<Stage>,
    process: Process,
    session: String,
    calls: u32,
    pub(crate) stops: u32,
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
    /// Nothing while an act is being counted: whether it is yet nobody can say.
    fn of(world: &World) -> Option<Self> {
        (!world.is_act_being_counted()).then(|| Self {
            changes: world.changes(),
            renewals: world.renewals(),
        })
    }
}

impl Agent {
    pub(crate) fn new(stage: Arc<Stage>, process: Process, number: usize) -> Self {
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

    pub(crate) fn act(&mut self, actions: &[Action]) {
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

    pub(crate) fn prompt(&mut self) {
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
        checkrein_runtime::cancel_session_workers(
            &self.stage.state,
            &SessionId::new(self.session.clone()),
        );
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

    pub(crate) fn tool(&mut self, subject: &Subject, good: bool, reports: bool) {
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
        // Nothing is known of a call that is asked for while nobody judges and never comes back.
        let reports = reports || self.stage.world.is_off();
        let runs = self.counting_acts(|agent| agent.request(&id, tool, args.clone()));
        if !runs {
            return;
        }
        if *subject == Subject::Outside {
            self.stage.world.begin_outside_call(&self.session);
        }
        let scheduler = &self.stage.world.scheduler;
        let longest = match scheduler.random(3) {
            0 => 4_000,
            _ => 400,
        };
        scheduler.sleep(Duration::from_millis(u64::from(scheduler.random(longest))));
        self.stage.world.change(subject, good, &self.session);
        if reports {
            let result = serde_json::json!({
                "type": "tool_result", "session": self.session, "id": id, "tool": tool,
                "args": args, "result": "ok",
            });
            self.counting_acts(|agent| agent.tell(result));
            self.stage.world.end_outside_calls(&self.session);
        }
    }

    /// A call counts at its request and at its end: what passed before is asked anew.
    fn counting_acts<T>(&self, hook: impl FnOnce(&Self) -> T) -> T {
        let world = &self.stage.world;
        world.begin_counting_act();
        let answer = hook(self);
        world.end_counting_act();
        answer
    }

    /// Stops; says how the task ended, if it did.
    pub(crate) fn stop(
        &mut self,
        deadline: Duration,
        killed_after: Option<Duration>,
    ) -> Option<String> {
        let world = Arc::clone(&self.stage.world);
        self.stops += 1;
        let seals = self.stage.seals.load(Ordering::Relaxed);
        let before = (Unchanged::of(&world), world.scheduler.now());
        let runs = self.newest_runs();
        let were_fresh = self.are_fresh(&runs);
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
                self.look_at_ending(transition.reason, hook, before.1, after);
                // By the runs there were before it: what it has run itself is always fresh.
                if were_fresh && self.are_fresh(&runs) {
                    self.look_at_runs(hook, before.0);
                }
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
                self.accepted_at = match is_complete {
                    true => Unchanged::of(&world),
                    false => None,
                };
                Some(transition.reason.as_str().to_owned())
            }
            StopDecision::Halt { .. } => None,
        }
    }

    /// What an agent is told of a check is what a run of it found, and no newer one had ended when it stopped.
    fn look_at_feedback(&self, feedback: &StopFeedback, stopped: Time) {
        let world = &self.stage.world;
        for check in &feedback.checks {
            let kept = self.stage.store.read_evidence(&check.key).ok().flatten();
            let evidence = kept.and_then(|kept| checkrein_runtime::decode_evidence(&kept.bytes));
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

    fn look_at_ending(&self, reason: Reason, hook: Process, before: Time, after: Time) {
        let world = &self.stage.world;
        let (_, last_look) = world.looks_of(hook);
        match reason {
            Reason::TaskComplete => {
                let from = last_look.max(before);
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
                if !may_be_told && !world.failed_within(before, after) {
                    world.violation("gave up, although everything passed all the time");
                }
            }
            _ => {}
        }
    }

    /// When the newest run of each check began, by the wall clock.
    fn newest_runs(&self) -> Vec<Option<i64>> {
        let checks = self.stage.plan.checks.iter();
        checks
            .map(|check| self.stage.world.newest_began_ns(&check.name))
            .collect()
    }

    /// Whether what these runs found is young enough to be believed.
    fn are_fresh(&self, runs: &[Option<i64>]) -> bool {
        let now = self.stage.world.wall_ns();
        let is_fresh = |began: i64| now.abs_diff(began) < FRESH_NS;
        runs.iter().all(|began| began.is_some_and(is_fresh))
    }

    /// What passed is not run again where nothing was changed.
    fn look_at_runs(&self, hook: Process, before: Option<Unchanged>) {
        let world = &self.stage.world;
        let checks = self.stage.plan.checks.iter();
        if before.is_some()
            && self.accepted_at == before
            && Unchanged::of(world) == before
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
fn said(why: &DecisionExplanation) -> String {
    let lines = why.iter().filter_map(|because| match because {
        DecisionFactor::Verdict {
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
        DecisionFactor::AlreadyEnded => Some("ended before".to_owned()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}
