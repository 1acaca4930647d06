//! Collects what judges need to know of a stop: what calls for them, which is a fact of the stop,
//! and what they are shown, from the session's log.

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::digest::EightByteDigest;
use checkrein_core::event::{Event, TaskOrigin};
use checkrein_core::evidence::{Evidence, Verdict};
use checkrein_core::ids::{ScopeId, SessionId, VerifierName};
use checkrein_core::input::{
    Input, JudgeTriggerFact, StampedInput, StopRequested, ToolKind, ToolRequested,
};
use checkrein_core::policy::{Policy, VerifierTier};
use checkrein_core::state::{PendingStop, SessionState};
use checkrein_verifiers::judge::{
    self, JudgeDefinition, JudgeInput, RequestAndAnswer, StandingTasksThenAndNow,
};

use crate::error::RuntimeError;
use crate::log_reader;
use crate::runtime::Runtime;

/// Turns of the conversation before the request that are shown (seed: OpenClaw pull request 21832).
const MAX_TURNS: usize = 5;
/// How many of the newest tool calls are shown.
const MAX_CALLS: usize = 40;
/// Characters of a call's arguments, and of those of a call that writes.
const MAX_ARGUMENT_CHARS: usize = 160;
const MAX_WRITTEN_CHARS: usize = 2_000;

/// Returns for each judge of the policy whether something calls for it. `message` is the whole
/// message.
pub(crate) fn judge_trigger_facts(
    policy: &Policy,
    stop: &StopRequested,
    message: &str,
) -> Box<[JudgeTriggerFact]> {
    let judges = policy.verifiers.iter();
    judges
        .filter(|spec| spec.tier == VerifierTier::Judge)
        .filter_map(|spec| {
            // Definitions are compiled by us, so each one can be read.
            let judge: JudgeDefinition = serde_json::from_str(&spec.definition).ok()?;
            let main = stop.scope.is_main_scope();
            Some(JudgeTriggerFact {
                verifier: spec.name.clone(),
                trigger: judge::evaluate_judge_trigger(&judge, main, stop.answer, message),
            })
        })
        .collect()
}

impl Runtime {
    /// Builds what the judges of this stop are shown, with secrets hidden.
    pub(crate) fn build_stop_judge_case(
        &self,
        session: &SessionId,
        policy: &Policy,
        state: &SessionState,
        scope: &ScopeId,
        message: &str,
    ) -> Result<JudgeInput, RuntimeError> {
        // The whole log is read: earlier tasks are the history that judges see.
        let mut story = SessionShownToJudge::default();
        let from = checkrein_core::ids::EventSeq(0);
        for raw in self.store.events_after(session, from)? {
            if let Some(event) = log_reader::decode_event(session, &raw)? {
                story.collect_event_for_judge(&event, scope);
            }
        }
        let mut case = JudgeInput {
            request: story.request,
            history: story.history,
            calls: story
                .calls
                .into_iter()
                .map(ToolCallShownToJudge::call_line_for_judge)
                .collect(),
            changes: story.changes.join("\n"),
            feedback: self.earlier_judge_objections(policy, &story.said),
            answer: message.to_owned(),
            heartbeat: story.heartbeat,
            tasks: story.tasks.standing_tasks_at_start_and_stop(),
            agent: state
                .agent
                .as_ref()
                .map_or(String::new(), ToString::to_string),
            ..JudgeInput::default()
        };
        // What the checks of this very stop found, and whether the answer is whole.
        if let Some(pending) = state.pending_stop(scope) {
            case.evidence = self.verdict_lines_for_judge_prompt(policy, pending);
            if pending.truncated {
                case.about
                    .push("the answer was cut by its output limit".to_owned());
            }
        }
        case.about.push(format!("agent: {}", case.agent));
        if let Some(task) = &state.task {
            let totals = &task.totals;
            case.about.push(format!(
                "worked for {} s in {} rounds with {} tool calls",
                state.agent_busy_ms() / 1_000,
                totals.rounds,
                totals.tool_calls
            ));
        }
        if !scope.is_main_scope() {
            case.about
                .push("this is a sub-agent's answer to the main agent".to_owned());
        }
        // Last, so that it covers everything above.
        self.redact_judge_case(&mut case);
        Ok(case)
    }

    fn redact_judge_case(&self, case: &mut JudgeInput) {
        let hide = |text: &mut String| {
            if let std::borrow::Cow::Owned(hidden) = self.redactor.redact_text(text) {
                *text = hidden;
            }
        };
        for turn in &mut case.history {
            hide(&mut turn.request);
            hide(&mut turn.answer);
        }
        let lists = [&mut case.calls, &mut case.evidence, &mut case.feedback];
        lists.into_iter().flatten().for_each(hide);
        for text in [&mut case.request, &mut case.changes, &mut case.answer] {
            hide(text);
        }
    }

    /// The findings of hard verifiers and persons, one per line.
    fn verdict_lines_for_judge_prompt(
        &self,
        policy: &Policy,
        pending: &PendingStop,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        // No judge is shown what another one said.
        for held in &pending.verdicts {
            let name = &held.fact.verifier;
            let outside = policy
                .verifier_spec(name)
                .is_some_and(|spec| spec.tier != VerifierTier::Judge);
            if !outside {
                continue;
            }
            let (verdict, _) = held.verdict_if_tree_unchanged();
            let word = match verdict {
                Verdict::Pass => "passes",
                Verdict::Fail => "fails",
                Verdict::Inconclusive => "could not tell",
            };
            lines.push(format!("{name} {word}"));
            let evidence = self.stored_evidence(&held.fact.key);
            let findings = evidence.into_iter().flat_map(|evidence| evidence.findings);
            lines.extend(
                findings
                    .take(10)
                    .map(|finding| format!("  {}", finding.message)),
            );
        }
        lines
    }

    /// The objections of judges to earlier answers to the same request.
    fn earlier_judge_objections(&self, policy: &Policy, said: &[AdverseVerdict]) -> Vec<String> {
        // Objections of checks are among the verdicts; here only those of judges are repeated.
        let judged = said.iter().filter(|said| {
            let spec = policy.verifier_spec(&said.verifier);
            spec.is_some_and(|spec| spec.tier == VerifierTier::Judge)
        });
        let evidence = judged.filter_map(|said| self.stored_evidence(&said.key));
        evidence.flat_map(finding_lines).collect()
    }
}

fn finding_lines(evidence: Evidence) -> Vec<String> {
    let point =
        |finding: checkrein_core::evidence::Finding| format!("{}: {}", finding.id, finding.message);
    evidence.findings.into_iter().map(point).collect()
}

/// A verdict against the agent.
struct AdverseVerdict {
    verifier: VerifierName,
    key: checkrein_core::digest::Digest,
}

/// A tool call.
struct ToolCallShownToJudge {
    call: EightByteDigest,
    text: String,
    came: Option<bool>,
}

impl ToolCallShownToJudge {
    fn call_line_for_judge(self) -> String {
        let came = match self.came {
            None => "",
            Some(false) => " -> ok",
            Some(true) => " -> failed",
        };
        format!("{}{came}", self.text)
    }
}

/// The part of a session that a judge is shown.
#[derive(Default)]
struct SessionShownToJudge {
    /// The newest prompt, until a task opens with it.
    prompted: String,
    request: String,
    answer: String,
    history: Vec<RequestAndAnswer>,
    calls: Vec<ToolCallShownToJudge>,
    changes: Vec<String>,
    said: Vec<AdverseVerdict>,
    heartbeat: bool,
    tasks: StandingTaskListSnapshots,
}

/// The list of standing tasks as it was read at different times.
#[derive(Default)]
struct StandingTaskListSnapshots {
    /// At the newest prompt, until a task opens with it.
    prompted: Option<String>,
    /// When the task began; `None` if it did not begin with a prompt.
    before: Option<String>,
    /// At the newest stop.
    now: Option<String>,
}

impl StandingTaskListSnapshots {
    fn standing_tasks_at_start_and_stop(self) -> Option<StandingTasksThenAndNow> {
        // A project without the list, now and at the start, tells the judge nothing about it.
        let any = self.now.is_some() || self.before.as_ref().is_some_and(|text| !text.is_empty());
        any.then_some(StandingTasksThenAndNow {
            now: self.now,
            before: self.before,
        })
    }
}

impl SessionShownToJudge {
    fn collect_event_for_judge(&mut self, event: &Event, scope: &ScopeId) {
        match event {
            Event::TaskOpened { by, .. } => {
                // A task that began without a prompt has no request.
                let request = match by {
                    TaskOrigin::Prompt => std::mem::take(&mut self.prompted),
                    TaskOrigin::Work => String::new(),
                };
                self.tasks.before = match by {
                    TaskOrigin::Prompt => self.tasks.prompted.take(),
                    TaskOrigin::Work => None,
                };
                // The task before becomes a turn of the history.
                let before = RequestAndAnswer {
                    request: std::mem::replace(&mut self.request, request),
                    answer: std::mem::take(&mut self.answer),
                };
                if !before.request.is_empty() || !before.answer.is_empty() {
                    self.history.push(before);
                }
                if self.history.len() > MAX_TURNS {
                    self.history.remove(0);
                }
                self.calls.clear();
                self.changes.clear();
                self.said.clear();
            }
            Event::Input(stamped) => {
                self.note_task_list_for_judge(stamped, scope);
                self.add_session_input_for_judge(&stamped.input, scope);
            }
            // Judges see the objections that the agent was told, and no others.
            Event::DecisionMade(made) if made.scope == *scope => {
                if let Decision::Stop(StopDecision::Continue { feedback }) = &made.decision {
                    let told = feedback.checks.iter().map(|check| AdverseVerdict {
                        verifier: check.verifier.clone(),
                        key: check.key,
                    });
                    self.said.extend(told);
                }
            }
            _ => {}
        }
    }

    fn note_task_list_for_judge(&mut self, stamped: &StampedInput, scope: &ScopeId) {
        let text = stamped.task_list.as_ref().map(|list| list.text.clone());
        match &stamped.input {
            Input::PromptSubmitted(_) => self.tasks.prompted = Some(text.unwrap_or_default()),
            Input::StopRequested(stop) if stop.scope == *scope => self.tasks.now = text,
            _ => {}
        }
    }

    fn add_session_input_for_judge(&mut self, input: &Input, scope: &ScopeId) {
        match input {
            Input::PromptSubmitted(prompt) => self.prompted.clone_from(&prompt.text),
            Input::ToolRequested(request) if request.scope == *scope => {
                self.collect_call_for_judge(request)
            }
            // The newest call that is still open, since an agent may use an id again.
            Input::ToolReturned(returned) if returned.scope == *scope => {
                let open = |call: &&mut ToolCallShownToJudge| {
                    call.call == returned.call && call.came.is_none()
                };
                if let Some(call) = self.calls.iter_mut().rev().find(open) {
                    call.came = Some(returned.error);
                }
            }
            Input::StopRequested(stop) if stop.scope == *scope => {
                self.answer.clone_from(&stop.message);
                self.heartbeat = stop.answer.heartbeat;
            }
            _ => {}
        }
    }

    fn collect_call_for_judge(&mut self, request: &ToolRequested) {
        let short = |most: usize| request.args.chars().take(most).collect::<String>();
        if self.calls.len() >= MAX_CALLS {
            self.calls.remove(0);
        }
        self.calls.push(ToolCallShownToJudge {
            call: request.call,
            text: format!("{} {}", request.tool, short(MAX_ARGUMENT_CHARS)),
            came: None,
        });
        // Of a writing call more is shown: its arguments are the change itself.
        if request.kind == ToolKind::Write {
            self.changes
                .push(format!("{} {}", request.tool, short(MAX_WRITTEN_CHARS)));
        }
    }
}
