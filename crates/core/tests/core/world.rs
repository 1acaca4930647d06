//! A world without clock, disk or agent: a tree that is a number, verifiers that say
//! what they are told to say, and a log of everything that `step` made of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use checkrein_core::accept::AcceptExpr;
use checkrein_core::decision::Decision;
use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::effect::Effect;
use checkrein_core::event::{EVENT_VERSION, Event};
use checkrein_core::evidence::{
    CheckRetryability, EvidenceSummary, GateOrManualOrigin, InconclusiveCause, Verdict,
};
use checkrein_core::ids::{DetectorName, ScopeId, SourceName, UnixMillis, VerifierName};
use checkrein_core::input::{
    ActReach, AgentAnswerFacts, ApprovalStatusFact, EvidenceArrived, Input, JudgeTriggerFact,
    JudgeTriggerOrSkipReason, NewestCheckRun, NewestInvalidatingActNumbers, OpenClawCallFacts,
    OpenClawOutcomeFacts, PromptSubmitted, StampedInput, StopRequested, TokenUsage, ToolKind,
    ToolOutcomeFacts, ToolRequestFacts, ToolRequested, ToolReturned, TreeDigests, TreeReadError,
    TreeReadingArrived,
};
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareAnswerFact, MiddlewareStage};
use checkrein_core::policy::{
    ApprovalMode, ApprovalSettings, JudgeAttemptsAndShadowMode, LoopPolicy, Policy, SessionCaps,
    Stance, StancePolicy, SubagentPolicy, SubagentStopVerification, TaskCaps, TokenBudgetSettings,
    TokenLimitOrTarget, VerdictSubjectKind, VerifiedNoticeMode, VerifierSpec, VerifierTier,
    VerifyOnChangeOrAlways,
};
use checkrein_core::state::SessionState;
use checkrein_core::step::{StateMachineStep, apply_input_and_decide};
use checkrein_core::tool_outcome::openclaw::OpenClawTool;

/// A policy with these verifiers; `accept` in its own language, "" = all of them,
/// "-" = none. A name that ends in `~` depends on the tree's tens only, one that ends in `@`
/// asks a person, one that ends in `?` a judge. Judges are never in the accept of "".
pub(crate) fn policy(verifiers: &str, accept: &str) -> Policy {
    let specs: Vec<VerifierSpec> = verifiers.split_whitespace().map(spec).collect();
    let known: BTreeSet<VerifierName> = specs.iter().map(|spec| spec.name.clone()).collect();
    let accept = match accept {
        "-" => AcceptExpr::All(Vec::new()),
        "" => {
            let hard = specs.iter().filter(|spec| spec.tier != VerifierTier::Judge);
            let names: BTreeSet<VerifierName> = hard.map(|spec| spec.name.clone()).collect();
            AcceptExpr::All(names.into_iter().map(AcceptExpr::Verifier).collect())
        }
        text => AcceptExpr::parse(text, &known).unwrap(),
    };
    Policy {
        goal: None,
        accept,
        verify_on: VerifyOnChangeOrAlways::Change,
        caps: TaskCaps {
            token_budget: Some(1_000_000),
            wall_clock_ms: Some(4 * 3_600_000),
            tool_calls: Some(1_500),
            max_iterations: Some(300),
            attempts: 3,
            continues: 7,
            cost: None,
        },
        session_caps: SessionCaps::default(),
        subagents: SubagentPolicy {
            max_iterations: Some(150),
            verify: SubagentStopVerification::Never,
        },
        token_budget: TokenBudgetSettings {
            threshold_permille: 900,
            diminishing_tokens: 500,
            diminishing_rounds: 3,
            mode: TokenLimitOrTarget::Limit,
        },
        loops: LoopPolicy {
            detectors: vec![
                DetectorName::from("generic_repeat"),
                DetectorName::from("global_circuit_breaker"),
            ],
            ..LoopPolicy::default()
        },
        stance: StancePolicy::default(),
        rules: String::new(),
        approval: ApprovalMode::default(),
        approvals: ApprovalSettings::default(),
        ask_person_without_change: specs.iter().any(|spec| spec.tier == VerifierTier::Person),
        veto: None,
        progress: None,
        middleware: Vec::new(),
        verifiers: specs,
        single_task: false,
        verified_notice: VerifiedNoticeMode::default(),
        config_error: None,
    }
}

fn spec(name: &str) -> VerifierSpec {
    let coarse = name.ends_with('~');
    let (kind, tier) = match name.chars().last() {
        Some('@') => ("human", VerifierTier::Person),
        Some('?') => ("judge", VerifierTier::Judge),
        Some('!') => ("host", VerifierTier::Hard),
        _ => ("command", VerifierTier::Hard),
    };
    let judge = tier == VerifierTier::Judge;
    VerifierSpec {
        name: VerifierName::new(name.trim_end_matches(['~', '@', '?', '!'])),
        kind: kind.to_owned(),
        tier,
        subject: match kind {
            "judge" => VerdictSubjectKind::Answer,
            "host" => VerdictSubjectKind::Stop,
            _ => VerdictSubjectKind::Tree,
        },
        definition: "{}".to_owned(),
        inputs: if coarse {
            vec!["tens/**".to_owned()]
        } else {
            Vec::new()
        },
        outputs: Vec::new(),
        timeout_ms: 60_000,
        retries: 1,
        advisory: false,
        stance: match judge {
            true => Stance::Allow,
            false => Stance::Block,
        },
        judge: judge.then_some(JudgeAttemptsAndShadowMode {
            max_attempts: 3,
            shadow: false,
        }),
    }
}

/// A policy changed in place, for tables.
pub(crate) fn with(mut policy: Policy, change: impl Fn(&mut Policy)) -> Policy {
    change(&mut policy);
    policy
}

/// All verifiers of the policy with this stance.
pub(crate) fn stance(policy: Policy, stance: Stance) -> Policy {
    with(policy, |policy| {
        policy
            .verifiers
            .iter_mut()
            .for_each(|spec| spec.stance = stance);
    })
}

/// A layer's word.
pub(crate) fn layer(
    name: &str,
    stage: MiddlewareStage,
    says: MiddlewareAnswer,
) -> MiddlewareAnswerFact {
    MiddlewareAnswerFact {
        layer: name.into(),
        stage,
        says,
        reason: match says {
            MiddlewareAnswer::Pass => String::new(),
            MiddlewareAnswer::PassedOver | MiddlewareAnswer::BlockedByStance => {
                "it took too long".to_owned()
            }
            _ => format!("{name} says so"),
        },
        arguments: (says == MiddlewareAnswer::Rewrite).then(|| "{}".to_owned()),
        ms: 3,
    }
}

pub(crate) fn scope(name: &str) -> ScopeId {
    ScopeId::new(name)
}

/// What a verifier says next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptedVerdict {
    pub(crate) verdict: Verdict,
    pub(crate) cause: Option<InconclusiveCause>,
    pub(crate) findings: Vec<u64>,
    pub(crate) retryable: CheckRetryability,
    /// It judged this tree, whatever it was asked about.
    pub(crate) on: Option<u64>,
    /// The tree it left behind.
    pub(crate) after: Option<u64>,
}

impl ScriptedVerdict {
    pub(crate) fn pass() -> Self {
        Self {
            verdict: Verdict::Pass,
            cause: None,
            findings: Vec::new(),
            retryable: CheckRetryability::Yes,
            on: None,
            after: None,
        }
    }

    pub(crate) fn fail(findings: &[u64]) -> Self {
        Self {
            verdict: Verdict::Fail,
            findings: findings.to_vec(),
            ..Self::pass()
        }
    }

    pub(crate) fn because(cause: InconclusiveCause) -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            cause: Some(cause),
            retryable: match cause {
                InconclusiveCause::MissingProgram | InconclusiveCause::Expired => {
                    CheckRetryability::No
                }
                _ => CheckRetryability::Yes,
            },
            ..Self::pass()
        }
    }
}

/// How a tool request is answered by the rules.
pub(crate) use checkrein_core::input::RuleDecision;

/// One session and all that surrounds it.
#[derive(Clone)]
pub(crate) struct CoreWorld {
    /// What layers of middleware say of the next call, round or stop.
    pub(crate) layers: Vec<MiddlewareAnswerFact>,
    /// The state has forgotten that the sub-agent of the next news was halted.
    pub(crate) halted: bool,
    pub(crate) policy: Policy,
    pub(crate) state: SessionState,
    /// Every event, in order.
    pub(crate) log: Vec<Event>,
    /// Every input with what followed from it.
    pub(crate) steps: Vec<(StampedInput, StateMachineStep)>,
    /// Effects not answered yet.
    pub(crate) open: Vec<Effect>,
    /// Effects of stops that were replaced before they were answered.
    pub(crate) late: Vec<Effect>,
    /// The clock, in milliseconds.
    pub(crate) now: u64,
    /// The tree; `None` = unreadable.
    pub(crate) tree: Option<u64>,
    /// Trees that the next readings find instead.
    pub(crate) readings: VecDeque<u64>,
    pub(crate) sayings: BTreeMap<VerifierName, ScriptedVerdict>,
    pub(crate) stop: StopRequested,
    /// What calls for every judge at the next stops.
    pub(crate) calling: JudgeTriggerOrSkipReason,
    /// The agent can put a question to a person.
    pub(crate) can_ask: bool,
    /// What was looked up about the next requests.
    pub(crate) approval: Option<ApprovalStatusFact>,
    /// The newest acts.
    pub(crate) acts: NewestInvalidatingActNumbers,
    /// The newest runs of checks, if the runtime tells them.
    pub(crate) runs: Option<Box<[NewestCheckRun]>>,
    /// There is no time to read the tree.
    pub(crate) cut: bool,
    /// How long each run takes.
    pub(crate) duration_ms: u64,
    /// What comes back was found by another process, which began then.
    pub(crate) other_run: Option<u64>,
    calls: u64,
}

impl CoreWorld {
    pub(crate) fn new(policy: Policy) -> Self {
        let mut world = Self {
            state: SessionState::default(),
            log: Vec::new(),
            steps: Vec::new(),
            open: Vec::new(),
            late: Vec::new(),
            now: 1_000_000,
            tree: Some(1),
            readings: VecDeque::new(),
            sayings: BTreeMap::new(),
            stop: StopRequested {
                scope: ScopeId::main_scope(),
                message: "Done.".to_owned(),
                message_digest: Digest::hash_bytes(b"Done."),
                tree: Err(TreeReadError {
                    why: String::new(),
                    cut: false,
                }),
                block_cap: None,
                truncated: false,
                background: 0,
                agent_ending: None,
                answer: AgentAnswerFacts::default(),
                judges: Box::default(),
                tokens: None,
            },
            calling: JudgeTriggerOrSkipReason::Keyword,
            can_ask: false,
            approval: None,
            acts: NewestInvalidatingActNumbers::default(),
            runs: None,
            cut: false,
            duration_ms: 10,
            other_run: None,
            calls: 0,
            layers: Vec::new(),
            halted: false,
            policy,
        };
        let sealed = Event::PolicySealed {
            policy: Digest::hash_bytes(&world.policy.to_policy_blob()),
            v: EVENT_VERSION,
            guarded: None,
            equipped: Vec::new(),
        };
        world.record(sealed);
        world
    }

    /// What the runtime records by itself.
    pub(crate) fn record(&mut self, event: Event) {
        self.state.apply_event(&event);
        self.log.push(event);
    }

    /// Takes an input in at the world's time.
    pub(crate) fn news(&mut self, input: Input) -> StateMachineStep {
        let asked = matches!(
            input,
            Input::ToolRequested(_) | Input::StopRequested(_) | Input::RoundEnded(_)
        );
        let layers = match asked {
            true => std::mem::take(&mut self.layers),
            false => Vec::new(),
        };
        let tells_runs = matches!(input, Input::StopRequested(_) | Input::TreeRead(_));
        let at = UnixMillis(self.now);
        let stamped = StampedInput {
            at,
            source: SourceName::from("user"),
            input,
            layers: layers.into(),
            task_list: None,
            halted: std::mem::take(&mut self.halted),
            newest_runs: self.runs.clone().filter(|_| tells_runs),
            turned_back: self.state.is_clock_turned_back(at),
            in_call: self.state.is_task_kept_open_by_call(at),
        };
        let made = apply_input_and_decide(&self.policy, &mut self.state, stamped.clone());
        self.log.extend(made.events.iter().cloned());
        self.open.extend(made.effects.iter().cloned());
        self.steps.push((stamped, made.clone()));
        made
    }

    pub(crate) fn tree_fact(&self, tree: u64) -> TreeDigests {
        let subjects = self
            .policy
            .verifiers
            .iter()
            .map(|spec| (spec.name.clone(), files(spec, tree)))
            .collect();
        TreeDigests {
            tree: Digest::hash_bytes(&tree.to_le_bytes()),
            subjects,
            environment: Some(environment()),
            acts: Some(self.acts).filter(|acts| *acts != NewestInvalidatingActNumbers::default()),
        }
    }

    fn reading(&mut self) -> Result<TreeDigests, TreeReadError> {
        if let Some(tree) = self.readings.pop_front() {
            self.tree = Some(tree);
        }
        let unknown = TreeReadError {
            why: "no such folder".to_owned(),
            cut: self.cut,
        };
        self.tree.map(|tree| self.tree_fact(tree)).ok_or(unknown)
    }

    pub(crate) fn prompt(&mut self) -> StateMachineStep {
        let tree = self.tree.map(|tree| self.tree_fact(tree));
        self.news(Input::PromptSubmitted(PromptSubmitted {
            text: "do it".to_owned(),
            acts: Some(self.acts)
                .filter(|acts| tree.is_none() && *acts != NewestInvalidatingActNumbers::default()),
            tree,
            tokens: None,
            tells_calls: false,
        }))
    }

    /// A tool request; with an outcome its result follows, if it may run.
    pub(crate) fn tool(
        &mut self,
        scope: &ScopeId,
        name: &str,
        outcome: Option<u64>,
        rule: Option<RuleDecision>,
        tokens: Option<TokenUsage>,
    ) -> StateMachineStep {
        self.calls += 1;
        let call_id = Some(format!("call-{}", self.calls));
        let call = Digest::hash_bytes(name.as_bytes()).to_eight_byte_digest();
        let made = self.news(Input::ToolRequested(ToolRequested {
            scope: scope.clone(),
            call_id: call_id.clone(),
            tool: name.to_owned(),
            kind: match name {
                _ if name.starts_with("poll") => ToolKind::Poll,
                _ if name.starts_with("write") => ToolKind::Write,
                _ if name.starts_with("run") => ToolKind::Shell,
                _ => ToolKind::Other,
            },
            args: "{}".to_owned(),
            call,
            facts: ToolRequestFacts {
                rule,
                reason: rule.map(|_| "because the rules say so".to_owned()),
                outside: name.starts_with("install"),
                counted: name.starts_with("counted"),
                reach: name.starts_with("reaching").then_some(ActReach::Unknown),
                approval: self.approval.clone().map(Box::new),
                ..ToolRequestFacts::default()
            },
            can_ask: self.can_ask,
            may_act: name.starts_with("do"),
            waits: false,
            reports_outcome: name.starts_with("told"),
            openclaw: self.openclaw_facts(name, call_id.as_deref()),
            tokens,
        }));
        if let (Some(outcome), Some(decision)) = (outcome, &made.decision)
            && may_run(decision)
        {
            self.tool_result(scope, call_id, name, outcome);
        }
        made
    }

    /// What OpenClaw's rules read of the call, under the preset that asks for it.
    fn openclaw_facts(&self, name: &str, call_id: Option<&str>) -> Option<OpenClawCallFacts> {
        self.policy.loops.pinned?;
        let tool = OpenClawTool::from_tool_name(name);
        let args = serde_json::Value::Null;
        Some(OpenClawCallFacts {
            alone: self.policy.loops.detectors.is_empty(),
            ..tool.call_facts(tool.call_digest(&args), &args, call_id, None)
        })
    }

    /// A call with these arguments; its result is told by `tool_result`.
    pub(crate) fn tool_with_arguments(
        &mut self,
        scope: &ScopeId,
        name: &str,
        arguments: &str,
    ) -> StateMachineStep {
        self.news(Input::ToolRequested(ToolRequested {
            scope: scope.clone(),
            call_id: None,
            tool: name.to_owned(),
            kind: match name {
                "run" => ToolKind::Shell,
                _ => ToolKind::Other,
            },
            args: arguments.to_owned(),
            call: Digest::hash_bytes(format!("{name} {arguments}").as_bytes())
                .to_eight_byte_digest(),
            facts: ToolRequestFacts::default(),
            can_ask: false,
            may_act: false,
            waits: false,
            reports_outcome: false,
            openclaw: None,
            tokens: None,
        }))
    }

    /// A call that begins with `write` writes.
    pub(crate) fn tool_result(
        &mut self,
        scope: &ScopeId,
        call_id: Option<String>,
        name: &str,
        outcome: u64,
    ) -> StateMachineStep {
        let call = self.openclaw_facts(name, call_id.as_deref());
        let openclaw = call.map(|call| OpenClawOutcomeFacts {
            call,
            result: Some(EightByteDigest(outcome)),
            failure: None,
            vetoed: false,
            no_progress: false,
            unknown_tool: None,
        });
        self.news(Input::ToolReturned(ToolReturned {
            excerpt: None,
            scope: scope.clone(),
            call_id,
            call: Digest::hash_bytes(name.as_bytes()).to_eight_byte_digest(),
            outcome: EightByteDigest(outcome),
            error: false,
            wrote: name.starts_with("write"),
            facts: ToolOutcomeFacts {
                openclaw,
                ..ToolOutcomeFacts::default()
            },
            tokens: None,
        }))
    }

    /// Asks for a stop; effects stay open.
    pub(crate) fn ask_stop(&mut self, scope: &ScopeId) -> StateMachineStep {
        let tree = self.reading();
        let judges = self.policy.verifiers.iter();
        let judges = judges.filter(|spec| spec.tier == VerifierTier::Judge);
        let judges = judges.map(|spec| JudgeTriggerFact {
            verifier: spec.name.clone(),
            trigger: self.calling,
        });
        let stop = StopRequested {
            scope: scope.clone(),
            tree,
            judges: judges.collect(),
            ..self.stop.clone()
        };
        self.stop.tokens = None;
        // What an older stop of the scope asked for, nobody waits for any more.
        let of_scope = |effect: &mut Effect| scope_of(effect) == scope;
        self.late.extend(self.open.extract_if(.., of_scope));
        self.news(Input::StopRequested(stop))
    }

    /// What a verifier says about the subject it was asked about.
    pub(crate) fn evidence(&self, verifier: &VerifierName, asked: Digest) -> EvidenceSummary {
        let saying = self
            .sayings
            .get(verifier)
            .cloned()
            .unwrap_or_else(ScriptedVerdict::pass);
        let spec = self.policy.verifier_spec(verifier).unwrap();
        let subject = saying
            .on
            .map_or(asked, |tree| subject(spec, tree, self.acts));
        EvidenceSummary {
            verifier: verifier.clone(),
            key: match self.other_run {
                Some(_) => Digest::hash_bytes(b"another process"),
                None => Digest::hash_parts([verifier.as_str().as_bytes(), &subject.as_bytes()[..]]),
            },
            verdict: saying.verdict,
            cause: saying.cause,
            subject,
            subject_after: saying
                .after
                .map_or(subject, |tree| self::subject(spec, tree, self.acts)),
            exit_code: Some(i32::from(saying.verdict == Verdict::Fail)),
            retryable: saying.retryable,
            origin: GateOrManualOrigin::Gate,
            findings: saying
                .findings
                .iter()
                .map(|id| EightByteDigest(*id))
                .collect(),
            findings_total: saying.findings.len() as u32,
            duration_ms: self.duration_ms,
            cached: self.other_run.is_some(),
        }
    }

    /// What kept it from a verdict.
    pub(crate) fn held_up(&self, evidence: &EvidenceSummary) -> Option<EightByteDigest> {
        let saying = self.sayings.get(&evidence.verifier)?;
        match saying.cause {
            Some(InconclusiveCause::ReplyDeadline | InconclusiveCause::ClaimedElsewhere) => {
                Some(EightByteDigest(0))
            }
            Some(InconclusiveCause::TreeMoving) => Some(EightByteDigest(1)),
            // Only of files it can be told that they moved.
            _ if self.policy.verifier_spec(&evidence.verifier)?.subject
                != VerdictSubjectKind::Tree =>
            {
                None
            }
            _ if evidence.subject == evidence.subject_after => None,
            _ => saying.after.map(EightByteDigest),
        }
    }

    /// Answers the open effect at this place.
    pub(crate) fn answer(&mut self, at: usize) -> StateMachineStep {
        let effect = self.open.remove(at);
        self.perform(effect)
    }

    /// Answers the effect of a replaced stop at this place.
    pub(crate) fn answer_late(&mut self, at: usize) -> StateMachineStep {
        let effect = self.late.remove(at);
        self.perform(effect)
    }

    fn perform(&mut self, effect: Effect) -> StateMachineStep {
        match effect {
            Effect::RunVerifier {
                scope,
                verifier,
                subject,
                ..
            } => {
                let evidence = self.evidence(&verifier, subject);
                let mut runs = self.runs.iter_mut().flatten();
                if let Some(newest) = runs.find(|newest| newest.verifier == verifier) {
                    newest.run = Some(evidence.key.to_eight_byte_digest());
                }
                self.news(Input::EvidenceArrived(EvidenceArrived {
                    scope,
                    held_up: self.held_up(&evidence),
                    began: Some(UnixMillis(self.other_run.unwrap_or(self.now))),
                    asked: Some(subject.to_eight_byte_digest()),
                    tokens: 0,
                    cost: 0,
                    evidence,
                }))
            }
            Effect::ReadTree { scope, stop } => {
                let tree = self.reading();
                self.news(Input::TreeRead(TreeReadingArrived {
                    scope,
                    stop,
                    no_attempt: true,
                    tree,
                }))
            }
        }
    }

    /// Asks for a stop and answers everything until it is decided.
    pub(crate) fn stop(&mut self, scope: &ScopeId) -> (Vec<Effect>, Decision) {
        let mut asked = Vec::new();
        let mut made = self.ask_stop(scope);
        loop {
            let of_scope = |effect: &&Effect| scope_of(effect) == scope;
            asked.extend(made.effects.iter().filter(of_scope).cloned());
            // What comes back first may be for a stop of another scope.
            let answered = made
                .events
                .iter()
                .any(|event| matches!(event, Event::DecisionMade(made) if made.scope == *scope));
            if let Some(decision) = made.decision.filter(|_| answered || self.open.is_empty()) {
                return (asked, decision);
            }
            assert!(!self.open.is_empty(), "undecided, and nothing to wait for");
            made = self.answer(0);
        }
    }

    /// The transition of the newest task.
    pub(crate) fn ending(&self) -> Option<String> {
        let ended = self.state.task.as_ref()?.ended.as_ref()?;
        Some(crate::story::transition(ended))
    }

    /// Every decision with its reasons, in order.
    pub(crate) fn decisions(
        &self,
    ) -> impl Iterator<Item = &checkrein_core::event::DecisionOnInput> {
        self.log.iter().filter_map(|event| match event {
            Event::DecisionMade(made) => Some(made),
            _ => None,
        })
    }
}

/// What all checks run with.
fn environment() -> EightByteDigest {
    Digest::hash_bytes(b"run environment").to_eight_byte_digest()
}

/// What a verdict is about.
fn subject(spec: &VerifierSpec, tree: u64, acts: NewestInvalidatingActNumbers) -> Digest {
    let fact = TreeDigests {
        tree: Digest::hash_bytes(b""),
        subjects: vec![(spec.name.clone(), files(spec, tree))],
        environment: Some(environment()),
        acts: Some(acts),
    };
    fact.verdict_subject_digest(spec)
}

fn files(spec: &VerifierSpec, tree: u64) -> Digest {
    let part = if spec.inputs.is_empty() {
        tree
    } else {
        tree / 10
    };
    Digest::hash_parts([spec.name.as_str().as_bytes(), &part.to_le_bytes()])
}

pub(crate) fn scope_of(effect: &Effect) -> &ScopeId {
    match effect {
        Effect::RunVerifier { scope, .. } | Effect::ReadTree { scope, .. } => scope,
    }
}

fn may_run(decision: &Decision) -> bool {
    use checkrein_core::decision::ToolDecision;
    matches!(
        decision,
        Decision::Tool(
            ToolDecision::Allow | ToolDecision::Nudge { .. } | ToolDecision::Rewrite { .. }
        )
    )
}
