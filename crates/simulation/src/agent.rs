//! Simulates an agent: it changes the tree, calls its hooks, and checks their answers. The rules
//! are written again here and share no code with what they check, so that one mistake cannot hide
//! in both.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use checkrein_core::decision::{Decision, StopDecision, StopFeedback};
use checkrein_core::evidence::Verdict;
use checkrein_core::explain::{DecisionExplanation, DecisionFactor};
use checkrein_core::ids::SessionId;
use checkrein_core::transition::Reason;
use checkrein_runtime::RuntimeError;

use crate::plan::{SimulatedAgentAction, SimulatedCheckDependency};
use crate::run::{MAX_OUTLIVING, SimulationContext, simulated_session_id};
use crate::scheduler::{SimulatedProcessId, VirtualTime};
use crate::simulated_machine::SimulatedOperatingSystem;

/// Most stops in one task before the simulation reports that the task does not end.
const MAX_STOPS: u32 = 40;
/// How late an answer may be.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Deadline of a hook that only records something.
const NOTE_DEADLINE: Duration = Duration::from_secs(30);
/// Age from which evidence is no longer believed and checks run again.
const FRESH_NS: u64 = 15 * 60 * 1_000_000_000;

/// An agent, and what it knows of its own session.
pub(crate) struct SimulatedAgent {
    pub(crate) context: Arc<SimulationContext>,
    process: SimulatedProcessId,
    session: String,
    calls: u32,
    pub(crate) stops: u32,
    /// Whether the task has ended with `gave_up` before.
    gave_up: bool,
    /// The change counters when the last stop was accepted.
    accepted_at: Option<EvidenceVoidingCounters>,
}

/// Counters of everything that voids evidence. As long as they are equal, no check has to run
/// again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EvidenceVoidingCounters {
    changes: u64,
    renewals: u64,
}

impl EvidenceVoidingCounters {
    /// Returns the counters; `None` while an act is being counted, because it may or may not be
    /// included.
    fn read_simulated_change_counters(world: &SimulatedOperatingSystem) -> Option<Self> {
        (!world.is_any_act_being_counted()).then(|| Self {
            changes: world.non_check_change_count(),
            renewals: world.evidence_invalidation_count(),
        })
    }
}

impl SimulatedAgent {
    pub(crate) fn new(
        stage: Arc<SimulationContext>,
        process: SimulatedProcessId,
        number: usize,
    ) -> Self {
        Self {
            context: stage,
            process,
            session: simulated_session_id(number).to_string(),
            // Call ids must differ between agents, so each process has a range of its own.
            calls: process.0 * 1000,
            stops: 0,
            gave_up: false,
            accepted_at: None,
        }
    }

    pub(crate) fn simulate_agent_actions(&mut self, actions: &[SimulatedAgentAction]) {
        for action in actions {
            match action {
                SimulatedAgentAction::Prompt => self.simulate_prompt_submission(),
                SimulatedAgentAction::Wait(span) => {
                    self.context.machine.scheduler.sleep_simulated_thread(*span)
                }
                SimulatedAgentAction::Tool {
                    subject,
                    good,
                    reports,
                    while_off,
                } => {
                    if *while_off {
                        self.context.machine.set_simulated_checkrein_off(true);
                    }
                    self.perform_simulated_tool_call(subject, *good, *reports);
                    if *while_off {
                        self.context.machine.set_simulated_checkrein_off(false);
                    }
                }
                SimulatedAgentAction::Read => {
                    let call = self.next_simulated_call_id();
                    self.ask_hook_before_simulated_call(
                        &call,
                        "Read",
                        serde_json::json!({"file_path": "a.txt"}),
                    );
                }
                SimulatedAgentAction::Stop {
                    killed_after,
                    deadline,
                    repeats: insists,
                } => {
                    let mut ending = self.simulate_agent_stop(*deadline, *killed_after);
                    for _ in 0..*insists {
                        if ending.is_none() {
                            ending = self.simulate_agent_stop(*deadline, None);
                        }
                    }
                }
                SimulatedAgentAction::End => self.end_simulated_session(),
            }
        }
    }

    fn send_simulated_hook_event(&self, line: serde_json::Value) {
        let (_, answer) = self
            .context
            .run_simulated_hook(self.process, line, NOTE_DEADLINE, None);
        if let Some(Err(error)) = answer {
            self.context
                .machine
                .record_simulation_violation(format!("a hook fails: {error}"));
        }
    }

    pub(crate) fn simulate_prompt_submission(&mut self) {
        self.context
            .machine
            .append_simulation_trace_line(format!("{} is prompted", self.session));
        self.accepted_at = None;
        (self.stops, self.gave_up) = (0, false);
        self.send_simulated_hook_event(serde_json::json!({
            "type": "user", "session": self.session, "text": format!("do it, {}", self.calls),
        }));
        self.context
            .machine
            .end_simulated_outside_tool_calls(&self.session);
    }

    fn end_simulated_session(&mut self) {
        let world = Arc::clone(&self.context.machine);
        world.append_simulation_trace_line(format!("{} is over", self.session));
        self.accepted_at = None;
        self.send_simulated_hook_event(serde_json::json!({"type": "end", "session": self.session}));
        world.end_simulated_outside_tool_calls(&self.session);
        // The hook of the command line does this at the end of a session as well.
        checkrein_runtime::cancel_session_workers(
            &self.context.state,
            &SessionId::new(self.session.clone()),
        );
        world.scheduler.sleep_simulated_thread(MAX_OUTLIVING);
        // With other sessions, a running check may be theirs.
        let is_alone = self.context.plan.agents.len() == 1;
        if is_alone && world.is_any_check_running() {
            world.record_simulation_violation("a check runs 5 s after the end of its session");
        }
    }

    fn next_simulated_call_id(&mut self) -> String {
        self.calls += 1;
        format!("call-{}", self.calls)
    }

    fn ask_hook_before_simulated_call(
        &self,
        id: &str,
        tool: &str,
        args: serde_json::Value,
    ) -> bool {
        let line = serde_json::json!({
            "type": "tool_call", "session": self.session, "id": id, "tool": tool, "args": args,
        });
        let (_, answer) = self
            .context
            .run_simulated_hook(self.process, line, NOTE_DEADLINE, None);
        self.context
            .machine
            .end_simulated_outside_tool_calls(&self.session);
        match answer {
            Some(Ok(decided)) => matches!(decided.decision, Decision::Tool(decision) if !matches!(
                decision,
                checkrein_core::decision::ToolDecision::Deny { .. }
                    | checkrein_core::decision::ToolDecision::Halt { .. }
            )),
            Some(Err(error)) => {
                self.context
                    .machine
                    .record_simulation_violation(format!("a hook fails: {error}"));
                false
            }
            // A killed or absent hook has no opinion, so the call runs.
            None => true,
        }
    }

    pub(crate) fn perform_simulated_tool_call(
        &mut self,
        subject: &SimulatedCheckDependency,
        good: bool,
        reports: bool,
    ) {
        let id = self.next_simulated_call_id();
        let command = match subject {
            SimulatedCheckDependency::File(name) if name != "conf/.env" => None,
            SimulatedCheckDependency::File(name) => Some(format!("echo x > {name}")),
            SimulatedCheckDependency::Program(name) => Some(format!("install-it {name}")),
            SimulatedCheckDependency::Outside => Some("systemctl restart service".to_owned()),
        };
        let (tool, args) = match (&command, subject) {
            (None, SimulatedCheckDependency::File(name)) => (
                "Write",
                serde_json::json!({"file_path": self.context.root.join(name), "content": "x"}),
            ),
            (command, _) => ("Bash", serde_json::json!({"command": command})),
        };
        // A call made while Checkrein is off must report: its request was not judged, so without an
        // outcome nothing would be known of it.
        let reports = reports || self.context.machine.is_checkrein_off();
        let runs = self.run_hook_counted_as_act(|agent| {
            agent.ask_hook_before_simulated_call(&id, tool, args.clone())
        });
        if !runs {
            return;
        }
        if *subject == SimulatedCheckDependency::Outside {
            self.context
                .machine
                .begin_simulated_call_with_outside_effects(&self.session);
        }
        let scheduler = &self.context.machine.scheduler;
        // Mostly short, sometimes long enough to overlap with another agent's stop.
        let longest = match scheduler.random_below(3) {
            0 => 4_000,
            _ => 400,
        };
        scheduler.sleep_simulated_thread(Duration::from_millis(u64::from(
            scheduler.random_below(longest),
        )));
        self.context
            .machine
            .make_check_input_good_or_bad(subject, good, &self.session);
        if reports {
            let result = serde_json::json!({
                "type": "tool_result", "session": self.session, "id": id, "tool": tool,
                "args": args, "result": "ok",
            });
            self.run_hook_counted_as_act(|agent| agent.send_simulated_hook_event(result));
            self.context
                .machine
                .end_simulated_outside_tool_calls(&self.session);
        }
    }

    /// Runs a hook that counts an act. Acts count at their request and at their end, and void
    /// earlier evidence.
    fn run_hook_counted_as_act<T>(&self, hook: impl FnOnce(&Self) -> T) -> T {
        let world = &self.context.machine;
        world.mark_act_counting_begun();
        let answer = hook(self);
        world.mark_act_counting_ended();
        answer
    }

    /// Simulates a stop; returns how the task ended, if it did.
    pub(crate) fn simulate_agent_stop(
        &mut self,
        deadline: Duration,
        killed_after: Option<Duration>,
    ) -> Option<String> {
        let world = Arc::clone(&self.context.machine);
        self.stops += 1;
        let seals = self.context.seals.load(Ordering::Relaxed);
        // Everything to compare with is read before the hook starts, since others act meanwhile.
        let before = (
            EvidenceVoidingCounters::read_simulated_change_counters(&world),
            world.scheduler.simulated_now(),
        );
        let runs = self.newest_check_run_start_times();
        let were_fresh = self.are_check_runs_recent_enough(&runs);
        let line = serde_json::json!({"type": "stop", "session": self.session, "text": "Done."});
        let (hook, answer) =
            self.context
                .run_simulated_hook(self.process, line, deadline, killed_after);
        let after = world.scheduler.simulated_now();
        let seals = self.context.seals.load(Ordering::Relaxed) - seals;
        self.check_stop_work_is_bounded(hook, seals);
        match answer {
            Some(_) => world.end_simulated_outside_tool_calls(&self.session),
            // A killed hook may or may not have recorded its stop.
            None => self.accepted_at = None,
        }
        let decided = match answer? {
            Ok(decided) => decided,
            // Each seal starts the judgement of the stop again, so several may use up the deadline.
            Err(RuntimeError::Deadline) if seals > 1 => return None,
            Err(error) => {
                world.record_simulation_violation(format!("{}: {error}", self.session));
                return None;
            }
        };
        if after > before.1 + deadline + MAX_DELAY {
            let late = after.saturating_sub(before.1);
            world.record_simulation_violation(format!(
                "an answer due in {deadline:?} came after {late:?}"
            ));
        }
        let Decision::Stop(decision) = &decided.decision else {
            return None;
        };
        match decision {
            StopDecision::Continue { feedback } => {
                world.append_simulation_trace_line(format!(
                    "{} is sent back: {}",
                    self.session,
                    describe_verdicts(&decided.why)
                ));
                self.check_feedback_matches_runs(feedback, before.1);
                if self.stops > MAX_STOPS {
                    world.record_simulation_violation("a task does not end");
                }
                self.accepted_at = None;
                None
            }
            StopDecision::Accept { transition } => {
                let transition = transition.as_ref()?;
                self.check_simulated_task_ending(transition.reason, hook, before.1, after);
                // Judged by the runs before this stop: those that it started itself are always
                // fresh.
                if were_fresh && self.are_check_runs_recent_enough(&runs) {
                    self.check_passed_checks_not_rerun(hook, before.0);
                }
                let detail = transition.detail.as_deref().unwrap_or("");
                self.gave_up |= transition.reason == Reason::GaveUp;
                world.append_simulation_trace_line(format!(
                    "{} ends: {:?} {detail}: {}",
                    self.session,
                    transition.reason,
                    describe_verdicts(&decided.why)
                ));
                self.context
                    .record_simulated_task_ending(&format!("{:?} {detail}", transition.reason));
                let is_complete = transition.reason == Reason::TaskComplete;
                self.accepted_at = match is_complete {
                    true => EvidenceVoidingCounters::read_simulated_change_counters(&world),
                    false => None,
                };
                Some(transition.reason.as_str().to_owned())
            }
            StopDecision::Halt { .. } => None,
        }
    }

    /// Checks that feedback reports what a run of the check found, and that no newer run had ended
    /// when the agent stopped.
    fn check_feedback_matches_runs(&self, feedback: &StopFeedback, stopped: VirtualTime) {
        let world = &self.context.machine;
        for check in &feedback.checks {
            let kept = self.context.store.read_evidence(&check.key).ok().flatten();
            let evidence = kept.and_then(|kept| checkrein_runtime::decode_evidence(&kept.bytes));
            let Some(evidence) = evidence.filter(|_| check.verdict == Verdict::Fail) else {
                continue;
            };
            // Simulated checks put the number of their run into the excerpt.
            let run = evidence
                .excerpt
                .strip_prefix("run ")
                .and_then(|run| run.parse().ok());
            let name = check.verifier.as_str();
            let found =
                run.and_then(|run| world.findings_of_recorded_simulated_run(name, run, stopped));
            let told = evidence
                .findings
                .iter()
                .map(|finding| finding.id.clone())
                .collect();
            // Runs during a stash find something else and are not believed.
            if found != Some(told) && !self.context.plan.has_stashing_check() {
                world.record_simulation_violation(format!(
                    "the agent is told of {run:?} of {name}, which is outdated"
                ));
            }
        }
    }

    /// Checks that a stop reads the tree and runs checks only a bounded number of times. Each seal
    /// starts the stop again.
    fn check_stop_work_is_bounded(&self, hook: SimulatedProcessId, seals: u64) {
        let world = &self.context.machine;
        let checks = u32::try_from(self.context.plan.checks.len()).unwrap_or(u32::MAX);
        let times = 1 + u32::try_from(seals).unwrap_or(u32::MAX);
        let (looks, _) = world.simulated_process_tree_read_stats(hook);
        if looks > (4 * checks + 4) * times {
            world.record_simulation_violation(format!("{looks} looks for {checks} checks"));
        }
        for check in &self.context.plan.checks {
            let runs = world.simulated_check_run_count(hook, &check.name);
            if runs > 4 * times {
                world.record_simulation_violation(format!(
                    "{} ran {runs} times in one stop",
                    check.name
                ));
            }
        }
    }

    fn check_simulated_task_ending(
        &self,
        reason: Reason,
        hook: SimulatedProcessId,
        before: VirtualTime,
        after: VirtualTime,
    ) {
        let world = &self.context.machine;
        let (_, last_look) = world.simulated_process_tree_read_stats(hook);
        match reason {
            Reason::TaskComplete => {
                // A completion is right if all checks would have passed at some moment between the
                // hook's last look at the tree and its answer. A change after that look cannot be
                // known.
                let from = last_look.max(before);
                // Another session's act that is still running counts only when it is done.
                let is_under_way = world.is_other_session_act_under_way(&self.session, from, after)
                    && world.would_checks_pass_ignoring_outside_state(from, after);
                if !world.checks_pass_sometime_in_span(from, after) && !is_under_way {
                    world.record_simulation_violation(format!(
                        "a wrong task_complete: nothing passed between {from:?} and {after:?}"
                    ));
                }
            }
            Reason::GaveUp => {
                let may_be_told = self.gave_up || self.context.plan.has_stashing_check();
                if !may_be_told && !world.would_check_fail_within_span(before, after) {
                    world.record_simulation_violation(
                        "gave up, although everything passed all the time",
                    );
                }
            }
            _ => {}
        }
    }

    /// Returns when the newest run of each check began, by the wall clock.
    fn newest_check_run_start_times(&self) -> Vec<Option<i64>> {
        let checks = self.context.plan.checks.iter();
        checks
            .map(|check| self.context.machine.newest_check_run_start_ns(&check.name))
            .collect()
    }

    /// Returns whether the findings of these runs are recent enough to be believed.
    fn are_check_runs_recent_enough(&self, runs: &[Option<i64>]) -> bool {
        let now = self.context.machine.simulated_wall_ns();
        let is_fresh = |began: i64| now.abs_diff(began) < FRESH_NS;
        runs.iter().all(|began| began.is_some_and(is_fresh))
    }

    /// Checks that checks that passed do not run again if nothing has changed.
    fn check_passed_checks_not_rerun(
        &self,
        hook: SimulatedProcessId,
        before: Option<EvidenceVoidingCounters>,
    ) {
        let world = &self.context.machine;
        let checks = self.context.plan.checks.iter();
        if before.is_some()
            && self.accepted_at == before
            && EvidenceVoidingCounters::read_simulated_change_counters(world) == before
            && !self.context.plan.has_stashing_check()
            // With `or`, a check that failed next to the sufficient one runs again in the next
            // task.
            && !self.context.plan.any_is_enough
        {
            let runs: u32 = checks
                .map(|check| world.simulated_check_run_count(hook, &check.name))
                .sum();
            if runs > 0 {
                world.record_simulation_violation(format!(
                    "nothing was changed, and {runs} checks ran"
                ));
            }
        }
    }
}

/// Describes the verdicts of a decision.
fn describe_verdicts(why: &DecisionExplanation) -> String {
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
