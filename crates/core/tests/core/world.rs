//! A world without clock, disk or agent: a tree that is a number, verifiers that say
//! what they are told to say, and a log of everything that `step` made of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use checkrein_core::accept::Accept;
use checkrein_core::decision::Decision;
use checkrein_core::digest::{Digest, Short};
use checkrein_core::effect::Effect;
use checkrein_core::event::{EVENT_VERSION, Event};
use checkrein_core::evidence::{Cause, EvidenceFact, Origin, Retryable, Verdict};
use checkrein_core::ids::{DetectorName, Millis, ScopeId, SourceName, VerifierName};
use checkrein_core::input::{
    Acts, AnswerFact, ApprovalFact, Calling, EvidenceArrived, Input, JudgeFact, NewestRun,
    PromptSubmitted, Reach, Stamped, StopRequested, TokenUse, ToolFacts, ToolKind, ToolRequested,
    ToolReturned, TreeFact, TreeRead, TreeUnknown,
};
use checkrein_core::layers::{LayerFact, LayerSays, Stage};
use checkrein_core::policy::{
    ApprovalMode, Approvals, BudgetMode, Caps, JudgeTerms, Loops, Policy, SessionCaps, Stance,
    Stances, SubagentVerify, Subagents, SubjectKind, Tier, TokenBudget, VerifiedNotice,
    VerifierSpec, VerifyOn,
};
use checkrein_core::state::State;
use checkrein_core::step::{Step, step};

/// A policy with these verifiers; `accept` in its own language, "" = all of them,
/// "-" = none. A name that ends in `~` depends on the tree's tens only, one that ends in `@`
/// asks a person, one that ends in `?` a judge. Judges are never in the accept of "".
pub(crate) fn policy(verifiers: &str, accept: &str) -> Policy {
    let specs: Vec<VerifierSpec> = verifiers.split_whitespace().map(spec).collect();
    let known: BTreeSet<VerifierName> = specs.iter().map(|spec| spec.name.clone()).collect();
    let accept = match accept {
        "-" => Accept::All(Vec::new()),
        "" => {
            let hard = specs.iter().filter(|spec| spec.tier != Tier::Judge);
            let names: BTreeSet<VerifierName> = hard.map(|spec| spec.name.clone()).collect();
            Accept::All(names.into_iter().map(Accept::Verifier).collect())
        }
        text => Accept::parse(text, &known).unwrap(),
    };
    Policy {
        goal: None,
        accept,
        verify_on: VerifyOn::Change,
        caps: Caps {
            token_budget: Some(1_000_000),
            wall_clock_ms: Some(4 * 3_600_000),
            tool_calls: Some(1_500),
            max_iterations: Some(300),
            attempts: 3,
            continues: 7,
            cost: None,
        },
        session_caps: SessionCaps::default(),
        subagents: Subagents {
            max_iterations: Some(150),
            verify: SubagentVerify::Never,
        },
        token_budget: TokenBudget {
            threshold_permille: 900,
            diminishing_tokens: 500,
            diminishing_rounds: 3,
            mode: BudgetMode::Limit,
        },
        loops: Loops {
            detectors: vec![
                DetectorName::from("generic_repeat"),
                DetectorName::from("global_circuit_breaker"),
            ],
            literal_breaker: false,
        },
        stance: Stances::default(),
        rules: String::new(),
        approval: ApprovalMode::default(),
        approvals: Approvals::default(),
        views: specs.iter().any(|spec| spec.tier == Tier::Person),
        veto: None,
        progress: None,
        middleware: Vec::new(),
        verifiers: specs,
        single_task: false,
        verified_notice: VerifiedNotice::default(),
        config_error: None,
    }
}

fn spec(name: &str) -> VerifierSpec {
    let coarse = name.ends_with('~');
    let (kind, tier) = match name.chars().last() {
        Some('@') => ("human", Tier::Person),
        Some('?') => ("judge", Tier::Judge),
        Some('!') => ("host", Tier::Hard),
        _ => ("command", Tier::Hard),
    };
    let judge = tier == Tier::Judge;
    VerifierSpec {
        name: VerifierName::new(name.trim_end_matches(['~', '@', '?', '!'])),
        kind: kind.to_owned(),
        tier,
        subject: match kind {
            "judge" => SubjectKind::Answer,
            "host" => SubjectKind::Stop,
            _ => SubjectKind::Tree,
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
        judge: judge.then_some(JudgeTerms {
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
pub(crate) fn layer(name: &str, stage: Stage, says: LayerSays) -> LayerFact {
    LayerFact {
        layer: name.into(),
        stage,
        says,
        reason: match says {
            LayerSays::Pass => String::new(),
            LayerSays::PassedOver | LayerSays::Blocked => "it took too long".to_owned(),
            _ => format!("{name} says so"),
        },
        arguments: (says == LayerSays::Rewrite).then(|| "{}".to_owned()),
        ms: 3,
    }
}

pub(crate) fn scope(name: &str) -> ScopeId {
    ScopeId::new(name)
}

/// What a verifier says next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saying {
    pub(crate) verdict: Verdict,
    pub(crate) cause: Option<Cause>,
    pub(crate) findings: Vec<u64>,
    pub(crate) retryable: Retryable,
    /// It judged this tree, whatever it was asked about.
    pub(crate) on: Option<u64>,
    /// The tree it left behind.
    pub(crate) after: Option<u64>,
}

impl Saying {
    pub(crate) fn pass() -> Self {
        Self {
            verdict: Verdict::Pass,
            cause: None,
            findings: Vec::new(),
            retryable: Retryable::Yes,
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

    pub(crate) fn because(cause: Cause) -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            cause: Some(cause),
            retryable: match cause {
                Cause::MissingProgram | Cause::Expired => Retryable::No,
                _ => Retryable::Yes,
            },
            ..Self::pass()
        }
    }
}

/// How a tool request is answered by the rules.
pub(crate) use checkrein_core::input::RuleDecision;

/// One session and all that surrounds it.
#[derive(Clone)]
pub(crate) struct World {
    /// What layers of middleware say of the next call or stop.
    pub(crate) layers: Vec<LayerFact>,
    /// The state has forgotten that the sub-agent of the next news was halted.
    pub(crate) halted: bool,
    pub(crate) policy: Policy,
    pub(crate) state: State,
    /// Every event, in order.
    pub(crate) log: Vec<Event>,
    /// Every input with what followed from it.
    pub(crate) steps: Vec<(Stamped, Step)>,
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
    pub(crate) sayings: BTreeMap<VerifierName, Saying>,
    pub(crate) stop: StopRequested,
    /// What calls for every judge at the next stops.
    pub(crate) calling: Calling,
    /// The agent can put a question to a person.
    pub(crate) can_ask: bool,
    /// What was looked up about the next requests.
    pub(crate) approval: Option<ApprovalFact>,
    /// The newest acts.
    pub(crate) acts: Acts,
    /// The newest runs of checks, if the runtime tells them.
    pub(crate) runs: Option<Box<[NewestRun]>>,
    /// There is no time to read the tree.
    pub(crate) cut: bool,
    /// How long each run takes.
    pub(crate) duration_ms: u64,
    /// What comes back was found by another process, which began then.
    pub(crate) other_run: Option<u64>,
    calls: u64,
}

impl World {
    pub(crate) fn new(policy: Policy) -> Self {
        let mut world = Self {
            state: State::default(),
            log: Vec::new(),
            steps: Vec::new(),
            open: Vec::new(),
            late: Vec::new(),
            now: 1_000_000,
            tree: Some(1),
            readings: VecDeque::new(),
            sayings: BTreeMap::new(),
            stop: StopRequested {
                scope: ScopeId::main(),
                message: "Done.".to_owned(),
                message_digest: Digest::of(b"Done."),
                tree: Err(TreeUnknown {
                    why: String::new(),
                    cut: false,
                }),
                block_cap: None,
                truncated: false,
                background: 0,
                over: None,
                answer: AnswerFact::default(),
                judges: Box::default(),
                tokens: None,
            },
            calling: Calling::Keyword,
            can_ask: false,
            approval: None,
            acts: Acts::default(),
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
            policy: Digest::of(&world.policy.to_blob()),
            v: EVENT_VERSION,
            guarded: None,
            equipped: Vec::new(),
        };
        world.record(sealed);
        world
    }

    /// What the runtime records by itself.
    pub(crate) fn record(&mut self, event: Event) {
        self.state.apply(&event);
        self.log.push(event);
    }

    /// Takes an input in at the world's time.
    pub(crate) fn news(&mut self, input: Input) -> Step {
        let asked = matches!(input, Input::ToolRequested(_) | Input::StopRequested(_));
        let layers = match asked {
            true => std::mem::take(&mut self.layers),
            false => Vec::new(),
        };
        let tells_runs = matches!(input, Input::StopRequested(_) | Input::TreeRead(_));
        let at = Millis(self.now);
        let stamped = Stamped {
            at,
            source: SourceName::from("user"),
            input,
            layers: layers.into(),
            task_list: None,
            halted: std::mem::take(&mut self.halted),
            runs: self.runs.clone().filter(|_| tells_runs),
            turned_back: self.state.is_turned_back(at),
            in_call: self.state.is_kept_by_call(at),
        };
        let made = step(&self.policy, &mut self.state, stamped.clone());
        self.log.extend(made.events.iter().cloned());
        self.open.extend(made.effects.iter().cloned());
        self.steps.push((stamped, made.clone()));
        made
    }

    pub(crate) fn tree_fact(&self, tree: u64) -> TreeFact {
        let subjects = self
            .policy
            .verifiers
            .iter()
            .map(|spec| (spec.name.clone(), files(spec, tree)))
            .collect();
        TreeFact {
            tree: Digest::of(&tree.to_le_bytes()),
            subjects,
            environment: Some(environment()),
            acts: Some(self.acts).filter(|acts| *acts != Acts::default()),
        }
    }

    fn reading(&mut self) -> Result<TreeFact, TreeUnknown> {
        if let Some(tree) = self.readings.pop_front() {
            self.tree = Some(tree);
        }
        let unknown = TreeUnknown {
            why: "no such folder".to_owned(),
            cut: self.cut,
        };
        self.tree.map(|tree| self.tree_fact(tree)).ok_or(unknown)
    }

    pub(crate) fn prompt(&mut self) -> Step {
        let tree = self.tree.map(|tree| self.tree_fact(tree));
        self.news(Input::PromptSubmitted(PromptSubmitted {
            text: "do it".to_owned(),
            acts: Some(self.acts).filter(|acts| tree.is_none() && *acts != Acts::default()),
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
        tokens: Option<TokenUse>,
    ) -> Step {
        self.calls += 1;
        let call_id = Some(format!("call-{}", self.calls));
        let call = Digest::of(name.as_bytes()).short();
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
            facts: ToolFacts {
                rule,
                reason: rule.map(|_| "because the rules say so".to_owned()),
                outside: name.starts_with("install"),
                counted: name.starts_with("counted"),
                reach: name.starts_with("reaching").then_some(Reach::Unknown),
                approval: self.approval.clone().map(Box::new),
                ..ToolFacts::default()
            },
            can_ask: self.can_ask,
            may_act: name.starts_with("do"),
            reports_outcome: name.starts_with("told"),
            tokens,
        }));
        if let (Some(outcome), Some(decision)) = (outcome, &made.decision)
            && may_run(decision)
        {
            self.tool_result(scope, call_id, name, outcome);
        }
        made
    }

    /// A call that begins with `write` writes.
    pub(crate) fn tool_result(
        &mut self,
        scope: &ScopeId,
        call_id: Option<String>,
        name: &str,
        outcome: u64,
    ) -> Step {
        self.news(Input::ToolReturned(ToolReturned {
            scope: scope.clone(),
            call_id,
            call: Digest::of(name.as_bytes()).short(),
            outcome: Short(outcome),
            error: false,
            wrote: name.starts_with("write"),
            tokens: None,
        }))
    }

    /// Asks for a stop; effects stay open.
    pub(crate) fn ask_stop(&mut self, scope: &ScopeId) -> Step {
        let tree = self.reading();
        let judges = self.policy.verifiers.iter();
        let judges = judges.filter(|spec| spec.tier == Tier::Judge);
        let judges = judges.map(|spec| JudgeFact {
            verifier: spec.name.clone(),
            calling: self.calling,
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
    pub(crate) fn evidence(&self, verifier: &VerifierName, asked: Digest) -> EvidenceFact {
        let saying = self
            .sayings
            .get(verifier)
            .cloned()
            .unwrap_or_else(Saying::pass);
        let spec = self.policy.verifier(verifier).unwrap();
        let subject = saying
            .on
            .map_or(asked, |tree| subject(spec, tree, self.acts));
        EvidenceFact {
            verifier: verifier.clone(),
            key: match self.other_run {
                Some(_) => Digest::of(b"another process"),
                None => Digest::of_parts([verifier.as_str().as_bytes(), &subject.as_bytes()[..]]),
            },
            verdict: saying.verdict,
            cause: saying.cause,
            subject,
            subject_after: saying
                .after
                .map_or(subject, |tree| self::subject(spec, tree, self.acts)),
            exit_code: Some(i32::from(saying.verdict == Verdict::Fail)),
            retryable: saying.retryable,
            origin: Origin::Gate,
            findings: saying.findings.iter().map(|id| Short(*id)).collect(),
            findings_total: saying.findings.len() as u32,
            duration_ms: self.duration_ms,
            cached: self.other_run.is_some(),
        }
    }

    /// What kept it from a verdict.
    pub(crate) fn held_up(&self, evidence: &EvidenceFact) -> Option<Short> {
        let saying = self.sayings.get(&evidence.verifier)?;
        match saying.cause {
            Some(Cause::ReplyDeadline | Cause::ClaimedElsewhere) => Some(Short(0)),
            Some(Cause::TreeMoving) => Some(Short(1)),
            // Only of files it can be told that they moved.
            _ if self.policy.verifier(&evidence.verifier)?.subject != SubjectKind::Tree => None,
            _ if evidence.subject == evidence.subject_after => None,
            _ => saying.after.map(Short),
        }
    }

    /// Answers the open effect at this place.
    pub(crate) fn answer(&mut self, at: usize) -> Step {
        let effect = self.open.remove(at);
        self.perform(effect)
    }

    /// Answers the effect of a replaced stop at this place.
    pub(crate) fn answer_late(&mut self, at: usize) -> Step {
        let effect = self.late.remove(at);
        self.perform(effect)
    }

    fn perform(&mut self, effect: Effect) -> Step {
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
                    newest.run = Some(evidence.key.short());
                }
                self.news(Input::EvidenceArrived(EvidenceArrived {
                    scope,
                    held_up: self.held_up(&evidence),
                    began: Some(Millis(self.other_run.unwrap_or(self.now))),
                    asked: Some(subject.short()),
                    tokens: 0,
                    cost: 0,
                    evidence,
                }))
            }
            Effect::ReadTree { scope, stop } => {
                let tree = self.reading();
                self.news(Input::TreeRead(TreeRead {
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
    pub(crate) fn decisions(&self) -> impl Iterator<Item = &checkrein_core::event::DecisionMade> {
        self.log.iter().filter_map(|event| match event {
            Event::DecisionMade(made) => Some(made),
            _ => None,
        })
    }
}

/// What all checks run with.
fn environment() -> Short {
    Digest::of(b"run environment").short()
}

/// What a verdict is about.
fn subject(spec: &VerifierSpec, tree: u64, acts: Acts) -> Digest {
    let fact = TreeFact {
        tree: Digest::of(b""),
        subjects: vec![(spec.name.clone(), files(spec, tree))],
        environment: Some(environment()),
        acts: Some(acts),
    };
    fact.about(spec)
}

fn files(spec: &VerifierSpec, tree: u64) -> Digest {
    let part = if spec.inputs.is_empty() {
        tree
    } else {
        tree / 10
    };
    Digest::of_parts([spec.name.as_str().as_bytes(), &part.to_le_bytes()])
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
