//! Performs verification: claims, processes, the tree before and after.
//!
//! An effect is performed only by who holds its claim; who finds it claimed waits for
//! its evidence. If a check's inputs were written while it ran, also if they hold the same
//! afterwards, it runs once more, alone, and from then on always alone. A fixpoint is valid unless files
//! were taken away meanwhile (`check_restores`), anything else is inconclusive (`tree_moving`).

use std::borrow::Cow;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::evidence::{
    self, Evidence, EvidenceOrigin, Finding, InconclusiveCause, Retryability, Verdict,
};
use checkrein_core::ids::{SessionId, UnixMillis, VerifierName};
use checkrein_core::policy::{Policy, VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_store::{EffectClaim, EvidenceFinality, StoredApprovalRequest};
use checkrein_verifiers::judge::JudgeInput;
use checkrein_verifiers::tree::TreeReadResult;
use checkrein_verifiers::{VerifierJob, VerifierReport};

use crate::delivery::{Patience, Progress};
use crate::driver::Runtime;
use crate::error::RuntimeError;
use crate::looks::{BusyCheck, Look, Looks};
use crate::system::{System, Threads};
use crate::workspace::Tracked;
use crate::{approvals, exit_statuses, kept, logs, writers};

mod moved;

use self::moved::{Disturbed, Moved, Ran, hold_up};

/// How long to wait before looking again for evidence that another process is after.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A verification that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) verifier: VerifierName,
    /// What the core asks about.
    pub(crate) subject: Digest,
    /// The same without acts: what runs are kept under.
    pub(crate) content: Digest,
    /// What began before this act was counted is out of date.
    pub(crate) acts: u64,
    /// What is known is not taken, but of a run that began since then.
    pub(crate) again: Option<UnixMillis>,
}

/// Evidence that came back.
pub(crate) struct Done {
    pub(crate) key: Digest,
    pub(crate) evidence: Evidence,
    pub(crate) cached: bool,
    /// When the run began that found it.
    pub(crate) began: UnixMillis,
    /// A person has to be told of this.
    pub(crate) parked: Option<StoredApprovalRequest>,
    /// By a run of this process, after which it looked at the tree.
    pub(crate) run_here: bool,
}

impl Runtime {
    /// The key of evidence and claim: everything that could change the verdict, and no session.
    pub(crate) fn content_key(
        &self,
        policy: &Policy,
        spec: &VerifierSpec,
        subject: Digest,
        origin: EvidenceOrigin,
    ) -> Digest {
        let origin = match origin {
            EvidenceOrigin::Gate => &b"gate"[..],
            EvidenceOrigin::Manual => b"manual",
        };
        Digest::hash_parts([
            &spec.definition_digest().as_bytes()[..],
            spec.name.as_str().as_bytes(),
            &subject.as_bytes()[..],
            &Digest::hash_bytes(&policy.to_policy_blob()).as_bytes()[..],
            &self.place.environment().as_bytes()[..],
            origin,
            // Under this key is the newest of many runs, and not the first.
            b"newest",
        ])
    }

    /// Performs all that is wanted, in parallel, handing each result over as it comes.
    #[expect(
        clippy::too_many_arguments,
        reason = "two call sites; a struct would only rename them"
    )]
    pub(crate) fn perform<'s>(
        &self,
        session: impl Into<Option<&'s SessionId>>,
        policy: &Policy,
        wanted: &[Wanted],
        origin: EvidenceOrigin,
        use_cache: bool,
        since: Option<UnixMillis>,
        message: Option<&str>,
        case: Option<&JudgeInput>,
        patience: Patience<'_>,
        looks: &Looks,
        progress: &(dyn Fn(Progress) + Sync),
        on_done: &mut dyn FnMut(Done) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let batch = Batch {
            runtime: self,
            session: session.into(),
            tracked: OnceLock::new(),
            policy,
            origin,
            use_cache,
            since,
            message,
            case,
            patience,
            progress,
            looks,
            kept: Mutex::new(Vec::new()),
        };
        let mut moved: Vec<Box<Moved<'_>>> = Vec::new();
        let owned = batch.hand_over(wanted);
        let system = batch.system();
        std::thread::scope(|scope| {
            let threads = Threads::new(system, scope);
            let (sender, receiver) = channel();
            let is_owned = |want: &Wanted| {
                let mut owned = owned.iter().flat_map(|owned| &owned.wanted);
                owned.any(|owned| owned.verifier == want.verifier)
            };
            let ours: Vec<&Wanted> = wanted.iter().filter(|want| !is_owned(want)).collect();
            if let Some(owned) = owned {
                let (batch, sender) = (&batch, sender.clone());
                threads.spawn(move || batch.wait_for_owner(owned, &sender));
            }
            for want in ours {
                let Some(spec) = policy.verifier_spec(&want.verifier) else {
                    continue;
                };
                let (batch, sender) = (&batch, sender.clone());
                let busy = batch.looks.begin_check();
                threads.spawn(move || batch.first(spec, want, busy, &sender));
            }
            drop(sender);
            while let Some(found) = system.receive(&receiver) {
                match found? {
                    Found::Done(done) => {
                        batch.finished(&done);
                        on_done(*done)?;
                    }
                    Found::Moved(again) => moved.push(again),
                }
            }
            Ok::<(), RuntimeError>(())
        })?;
        let wait = batch.find_neighbours(&moved)?;
        let wait_until = wait.map(|wait| system.monotonic_now() + wait);
        for again in moved {
            let done = batch.judge_moved(*again, wait_until)?;
            if !done.run_here {
                looks.found_out();
            }
            batch.finished(&done);
            on_done(done)?;
        }
        Ok(())
    }
}

/// What the threads of one `perform` share.
pub(crate) struct Batch<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) session: Option<&'a SessionId>,
    /// Files that count whatever ignore files say; asked for once, if anything has to run.
    tracked: OnceLock<Tracked>,
    pub(crate) policy: &'a Policy,
    pub(crate) origin: EvidenceOrigin,
    use_cache: bool,
    /// When the task began, if this is for one.
    pub(crate) since: Option<UnixMillis>,
    /// The final message, whole, where this process has it.
    message: Option<&'a str>,
    /// What judges are shown, where it is this process's answer that they judge.
    case: Option<&'a JudgeInput>,
    pub(crate) patience: Patience<'a>,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
    pub(crate) looks: &'a Looks,
    /// Claims on checks that run once more, alone. Whoever of us waits for another process gives
    /// them back: that one may wait for them.
    kept: Mutex<Vec<(VerifierName, EffectClaim)>>,
}

pub(crate) enum Found<'a> {
    Done(Box<Done>),
    Moved(Box<Moved<'a>>),
}

/// What came of running a check.
pub(crate) struct Finished {
    report: VerifierReport,
    /// How often it took.
    tries: u32,
    began: UnixMillis,
}

/// Evidence that is there already, or the right to find it.
enum Turn {
    Known(Box<Done>),
    Mine(EffectClaim),
    Given(Box<Done>),
}

pub(crate) type Answer<'a> = Result<Found<'a>, RuntimeError>;

impl<'a> Batch<'a> {
    pub(crate) fn system(&self) -> &'a dyn System {
        &*self.runtime.place.system
    }

    pub(crate) fn now(&self) -> UnixMillis {
        self.system().millis()
    }

    pub(crate) fn first(
        &self,
        spec: &'a VerifierSpec,
        wanted: &Wanted,
        busy: BusyCheck<'_>,
        sender: &Sender<Answer<'a>>,
    ) {
        let found = self.find(spec, wanted, busy);
        // A run says so itself, before it looks at the tree.
        let by_run = |found: &Found<'_>| match found {
            Found::Done(done) => done.run_here,
            Found::Moved(_) => true,
        };
        if !found.as_ref().is_ok_and(by_run) {
            self.looks.found_out();
        }
        // A receiver that is gone has failed already and says so.
        let _ = sender.send(found);
    }

    fn find(&self, spec: &'a VerifierSpec, wanted: &Wanted, busy: BusyCheck<'_>) -> Answer<'a> {
        let (subject, acts) = (wanted.content, wanted.acts);
        // Nobody else is asked about files that were not all seen. A command is: that it fails is
        // true whatever else is there.
        if spec.subject != VerdictSubjectKind::Message
            && !spec.is_tree_check()
            && let Some(why) = &self.tracked().unknown
        {
            let report = VerifierReport::inconclusive_report(
                InconclusiveCause::TreeUnreadable,
                Retryability::Yes,
                "",
            );
            let none = Digest::hash_bytes(b"");
            let evidence = self.evidence(spec, report, subject, subject, none, none);
            let evidence = self.of_unknown_files(evidence, why);
            let found = kept::When {
                acts,
                ..kept::When::now(self.now())
            };
            let done = self.put(self.key(spec, subject), evidence, found)?;
            return Ok(Found::Done(Box::new(done)));
        }
        if spec.tier == VerifierTier::Person {
            return Ok(Found::Done(Box::new(self.person(spec, subject)?)));
        }
        if spec.subject == VerdictSubjectKind::Stop {
            return Ok(Found::Done(Box::new(self.host(spec, subject)?)));
        }
        let key = self.key(spec, subject);
        let claim = match self.turn(spec, subject, key, acts, wanted.again)? {
            Turn::Known(done) | Turn::Given(done) => return Ok(Found::Done(done)),
            Turn::Mine(claim) => claim,
        };
        match spec.subject {
            VerdictSubjectKind::Message => {
                // At a stop of another message than ours, that one's own process judges it.
                let ours = |message: &str| Digest::hash_bytes(message.as_bytes()) == subject;
                let theirs = self.message.is_some_and(|message| !ours(message));
                return self.of_message(spec, subject, key, &claim, theirs);
            }
            VerdictSubjectKind::Answer => {
                let theirs = self.origin == EvidenceOrigin::Gate && self.case.is_none();
                return self.of_message(spec, subject, key, &claim, theirs);
            }
            VerdictSubjectKind::Tree | VerdictSubjectKind::Stop => {}
        }
        let before = match self.looks.any(|| self.read()) {
            Ok(before) => before,
            Err(why) => {
                self.check_cancelled()?;
                return Ok(Found::Done(Box::new(self.unread(spec, subject, key, &why))));
            }
        };
        let written = writers::known(&self.runtime.place, spec).paths;
        if !written.is_empty() {
            self.keep_claim(spec, claim);
            return Ok(Found::Moved(Box::new(Moved {
                spec,
                written,
                disturbed: None,
                again: wanted.again,
            })));
        }
        let run = self.run(spec, &claim);
        self.check_cancelled()?;
        self.looks.found_out();
        let after = match self.looks.after(busy, || self.read()) {
            Ok(after) => after,
            Err(why) => {
                self.check_cancelled()?;
                return Ok(Found::Done(Box::new(self.unread(spec, subject, key, &why))));
            }
        };
        // A check that was cut is not run again: there is no time left for it.
        let (was, is) = (&before.reading, &after.reading);
        let written = was.changed_or_rewritten_paths(is, &spec.name);
        let is_cut = run.report.cause == Some(InconclusiveCause::ReplyDeadline);
        if is_cut || written.is_empty() && held_still(spec, was, is) {
            let done = self.keep(spec, run, &before, is, Ran::Undisturbed)?;
            return Ok(Found::Done(Box::new(done)));
        }
        self.keep_claim(spec, claim);
        Ok(Found::Moved(Box::new(Moved {
            spec,
            written,
            disturbed: Some(Disturbed { run, before, after }),
            again: wanted.again,
        })))
    }

    /// What is about the message alone: the tree is not looked at, and nothing can move.
    fn of_message(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
        key: Digest,
        claim: &EffectClaim,
        theirs: bool,
    ) -> Answer<'a> {
        let none = Digest::hash_bytes(b"");
        if theirs {
            let why = "another process was judging another message of this agent";
            let report = VerifierReport::inconclusive_report(
                InconclusiveCause::ClaimedElsewhere,
                Retryability::Yes,
                why,
            );
            let evidence = self.evidence(spec, report, subject, subject, none, none);
            let done = Done {
                key,
                evidence,
                cached: false,
                began: self.now(),
                parked: None,
                run_here: false,
            };
            return Ok(Found::Done(Box::new(done)));
        }
        let run = self.run(spec, claim);
        self.check_cancelled()?;
        let mut evidence = self.evidence(spec, run.report, subject, subject, none, none);
        evidence.tries = run.tries;
        let found = kept::When {
            began: run.began,
            ..kept::When::now(self.now())
        };
        self.put(key, evidence, found)
            .map(|done| Found::Done(Box::new(done)))
    }

    /// What a person said about exactly this. By hand nobody is asked.
    fn person(&self, spec: &VerifierSpec, subject: Digest) -> Result<Done, RuntimeError> {
        let asks = self.session.filter(|_| self.origin == EvidenceOrigin::Gate);
        let ours = |message: &&str| Digest::hash_bytes(message.as_bytes()) == subject;
        let message = self.message.filter(ours);
        let word = self
            .runtime
            .word_about(asks, self.policy, spec, subject, message)?;
        let none = Digest::hash_bytes(b"");
        let report = approvals::report(&word);
        let evidence = self.evidence(spec, report, subject, subject, none, none);
        let key = approvals::evidence_key(self.key(spec, subject), &word, &evidence);
        let bytes = kept::encode(kept::When::now(self.now()), &evidence);
        self.runtime
            .store
            .put_evidence(&key, &bytes, EvidenceFinality::Final)?;
        Ok(Done {
            key,
            evidence,
            cached: false,
            began: self.now(),
            parked: word.parked(),
            run_here: false,
        })
    }

    /// What a function of the host says of this stop. Only this process can ask it, so there is
    /// nothing to claim.
    fn host(&self, spec: &VerifierSpec, subject: Digest) -> Result<Done, RuntimeError> {
        (self.progress)(Progress::Started {
            verifier: spec.name.clone(),
            command: String::new(),
        });
        let report = self.runtime.hosts.ask(&spec.name);
        self.check_cancelled()?;
        let none = Digest::hash_bytes(b"");
        let key = self.key(spec, subject);
        let key = Digest::hash_parts([
            &key.as_bytes()[..],
            report.excerpt.as_bytes(),
            report.verdict.verdict_digest_tag().as_bytes(),
        ]);
        self.put(
            key,
            self.evidence(spec, report, subject, subject, none, none),
            kept::When::now(self.now()),
        )
    }

    /// Known evidence, or a claim; while another holds the claim, waits for what it finds.
    fn turn(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
        key: Digest,
        acts: u64,
        again: Option<UnixMillis>,
    ) -> Result<Turn, RuntimeError> {
        let use_cache = self.use_cache && again.is_none();
        // What is waited for is as old as when it was asked for.
        let asked = self.now();
        let store = &*self.runtime.store;
        let slot = self.slot(spec, key);
        let before = kept::newest(store, &key)?;
        let is_new = |run: &kept::Run| before.as_ref().is_none_or(|before| before.id != run.id);
        // Whoever waited takes what came of the run that was waited for, and nothing older; but not that it
        // was held up, which may have been for want of time.
        let serves = |run: &kept::Run, came: bool| match again {
            // A run that had begun before says nothing of what was mended since.
            Some(since) => run.began >= since,
            None => came && is_new(run) && run.evidence.paths_changed_during_run_digest().is_none(),
        };
        let mut waited = false;
        loop {
            let now = if waited {
                kept::newest(store, &key)?
            } else {
                before.clone()
            };
            let usable = now.filter(|run| {
                let is_known = use_cache && self.is_current(run);
                self.is_about(spec, run, acts, asked) && (is_known || serves(run, waited))
            });
            if let Some(run) = usable {
                if waited {
                    self.looks.found_elsewhere();
                }
                return Ok(Turn::Known(known(run)));
            }
            if let Some(claim) = store.try_claim_effect(&slot)? {
                if waited {
                    self.looks.found_elsewhere();
                }
                // It may have been found between our look and our claim.
                let newest = kept::newest(store, &key)?.filter(|run| {
                    is_fresh(spec, run, acts, asked) && serves(run, use_cache || waited)
                });
                return Ok(match newest {
                    Some(run) => Turn::Known(known(run)),
                    None => Turn::Mine(claim),
                });
            }
            if !waited {
                (self.progress)(Progress::Waiting {
                    verifier: spec.name.clone(),
                });
            }
            waited = true;
            lock(&self.kept).clear();
            self.check_cancelled()?;
            if self.patience.is_over(self.system()) {
                self.looks.goes_on_elsewhere();
                if let Some(since) = self.owned_since(spec, subject) {
                    let done = self.owned_elsewhere(spec, subject, since)?;
                    return Ok(Turn::Given(Box::new(done)));
                }
                let why = "another process was still running it when the answer was due";
                let report = VerifierReport::inconclusive_report(
                    InconclusiveCause::ClaimedElsewhere,
                    Retryability::Yes,
                    why,
                );
                let none = Digest::hash_bytes(b"");
                let evidence = self.evidence(spec, report, subject, subject, none, none);
                return Ok(Turn::Given(Box::new(Done {
                    key,
                    evidence,
                    cached: false,
                    began: self.now(),
                    parked: None,
                    run_here: false,
                })));
            }
            self.system().sleep(LOOK_AGAIN);
        }
    }

    /// Whether this stop finds the verdict without a run.
    pub(crate) fn is_known(&self, spec: &VerifierSpec, want: &Wanted) -> bool {
        let run = kept::newest(&*self.runtime.store, &self.key(spec, want.content));
        let run = run.ok().flatten();
        run.is_some_and(|run| {
            let use_cache = self.use_cache && want.again.is_none();
            self.is_about(spec, &run, want.acts, self.now()) && use_cache && self.is_current(&run)
        })
    }

    /// Whether a run of its key can say anything here.
    fn is_about(&self, spec: &VerifierSpec, run: &kept::Run, acts: u64, asked: UnixMillis) -> bool {
        // A judge also reads what is no part of its subject: the conversation.
        let here = spec.tier != VerifierTier::Judge || self.is_of_task(run);
        here && is_fresh(spec, run, acts, asked)
    }

    /// Whether it was found since the task began.
    fn is_of_task(&self, run: &kept::Run) -> bool {
        self.since.is_some_and(|since| run.at >= since)
    }

    /// Only the newest run is asked. A pass holds wherever its key does. A fail holds in the task that saw it: what mended
    /// it may lie outside everything that the key can name. What was inconclusive, but neither
    /// cut nor about a tree that moved, is not tried again in its task either: a stop of another
    /// scope would come to the same (law 7).
    fn is_current(&self, run: &kept::Run) -> bool {
        let evidence = &run.evidence;
        let in_task = self.is_of_task(run);
        match evidence.verdict {
            Verdict::Pass => true,
            Verdict::Fail => in_task || self.since.is_none(),
            Verdict::Inconclusive => {
                in_task
                    && evidence.paths_changed_during_run_digest().is_none()
                    && matches!(
                        evidence.cause,
                        Some(
                            InconclusiveCause::Timeout
                                | InconclusiveCause::Crash
                                | InconclusiveCause::MissingFile
                                | InconclusiveCause::VacuousPass
                                | InconclusiveCause::Masked
                                | InconclusiveCause::ModelUnavailable
                                | InconclusiveCause::Unreadable
                                | InconclusiveCause::InconsistentJudge
                        )
                    )
            }
        }
    }

    fn run(&self, spec: &VerifierSpec, claim: &EffectClaim) -> Finished {
        let began = self.now();
        let Some(verifier) = checkrein_verifiers::find_verifier_kind(&spec.kind) else {
            let why = format!("this build has no verifiers of kind '{}'", spec.kind);
            return Finished {
                report: VerifierReport::inconclusive_report(
                    InconclusiveCause::Internal,
                    Retryability::No,
                    why,
                ),
                tries: 0,
                began,
            };
        };
        (self.progress)(Progress::Started {
            verifier: spec.name.clone(),
            command: spec.definition.clone(),
        });
        let place = &self.runtime.place;
        let logs = logs::folder(place);
        let tools = place.state.join("tools.json");
        let statuses = exit_statuses::of_check(&place.root, &place.env, spec);
        let job = VerifierJob {
            exit_statuses: statuses.as_ref(),
            tool_versions_file: &tools,
            spec,
            root: &place.root,
            message: self.message,
            case: self.case,
            deadline: self.patience.deadline,
            log_dir: &logs,
            cancelled: self.patience.cancelled,
            env: &place.env,
            model_env: &place.models(),
            lock: claim.held_lock_file(),
            redact: &|text| self.runtime.redactor.redact_bytes(text),
        };
        let mut report = self.system().verify(verifier, &job);
        let mut tries = 1;
        while tries <= spec.retries && is_worth_a_retry(&report) && self.check_cancelled().is_ok() {
            tries += 1;
            let before_ms = report.duration_ms;
            report = self.system().verify(verifier, &job);
            report.duration_ms = report.duration_ms.saturating_add(before_ms);
        }
        Finished {
            report,
            tries,
            began,
        }
    }

    fn tracked(&self) -> &Tracked {
        let place = &self.runtime.place;
        self.tracked
            .get_or_init(|| place.tracked(self.session, self.patience))
    }

    fn read(&self) -> Result<Look, String> {
        let began = self.system().monotonic_now();
        let acts = self.runtime.acts(self.session);
        let acts = acts.map_err(|error| error.to_string())?;
        let place = &self.runtime.place;
        let reading = place.read(
            self.tracked(),
            self.policy,
            self.patience.limits(self.system()),
        );
        let mut reading = reading.map_err(|error| error.to_string())?;
        reading.fact.acts = Some(acts.newest);
        Ok(Look {
            began,
            took: self.system().since(began),
            reading,
            acts: acts.total,
        })
    }

    fn keep(
        &self,
        spec: &VerifierSpec,
        run: Finished,
        look: &Look,
        after: &TreeReadResult,
        ran: Ran,
    ) -> Result<Done, RuntimeError> {
        let before = &look.reading;
        let (subject, subject_after) = (
            before.fact.verifier_input_digest(spec),
            after.fact.verifier_input_digest(spec),
        );
        let still = subject == subject_after;
        let mut evidence = self.evidence(
            spec,
            run.report,
            subject,
            subject_after,
            before.fact.tree,
            after.fact.tree,
        );
        evidence.tries = run.tries;
        if let Some(why) = &self.tracked().unknown
            && evidence.verdict == Verdict::Pass
        {
            evidence = self.of_unknown_files(evidence, why);
        }
        evidence.alone = matches!(ran, Ran::Alone(_));
        let says_nothing = matches!(ran, Ran::BesideNeighbours(_));
        match ran {
            Ran::BesideNeighbours(wrote) => {
                evidence.cause = None;
                evidence.retryable = Retryability::Yes;
                hold_up(&mut evidence, InconclusiveCause::TreeMoving, wrote);
            }
            _ if !still => {
                let mut moved = before.changed_paths_between_readings(after, Some(&spec.name));
                moved.extend(before.changed_package_markers(after));
                hold_up(&mut evidence, InconclusiveCause::TreeMoving, moved);
            }
            Ran::Alone(lone) => self.judge_writer(spec, &mut evidence, lone),
            Ran::Undisturbed => {}
        }
        let found = kept::When {
            at: self.now(),
            began: run.began,
            acts: look.acts,
        };
        let key = self.key(spec, subject);
        let done = if says_nothing {
            // It takes the place of no run that says something.
            let key = kept::put_apart(&*self.runtime.store, &key, found, &evidence)?;
            done_by(key, evidence, found)
        } else {
            self.put(key, evidence, found)?
        };
        Ok(Done {
            run_here: true,
            ..done
        })
    }

    /// Keeps what was found, as the newest of its key.
    fn put(
        &self,
        key: Digest,
        evidence: Evidence,
        found: kept::When,
    ) -> Result<Done, RuntimeError> {
        let key = kept::put(&*self.runtime.store, &key, found, &evidence)?;
        Ok(done_by(key, evidence, found))
    }

    fn unread(&self, spec: &VerifierSpec, subject: Digest, key: Digest, why: &str) -> Done {
        // Cut short like a check is, and mended in the same way.
        let cause = if self.patience.is_over(self.system()) {
            InconclusiveCause::ReplyDeadline
        } else {
            InconclusiveCause::TreeUnreadable
        };
        let report = VerifierReport::inconclusive_report(cause, Retryability::Yes, why);
        let none = Digest::hash_bytes(b"");
        Done {
            key,
            evidence: self.evidence(spec, report, subject, subject, none, none),
            cached: false,
            began: self.now(),
            parked: None,
            run_here: false,
        }
    }

    pub(crate) fn evidence(
        &self,
        spec: &VerifierSpec,
        report: VerifierReport,
        subject: Digest,
        subject_after: Digest,
        tree: Digest,
        tree_after: Digest,
    ) -> Evidence {
        let redactor = &self.runtime.redactor;
        let hide = |text: String| match redactor.redact_text(&text) {
            Cow::Owned(hidden) => hidden,
            Cow::Borrowed(_) => text,
        };
        // An id may be made of a message. It is hidden before anything is said of it, so
        // that every later reader means the same finding.
        let findings = report.findings.into_iter().map(|finding| Finding {
            id: hide(finding.id),
            message: hide(finding.message),
            rule: finding.rule.map(hide),
            ..finding
        });
        Evidence {
            verifier: spec.name.clone(),
            verdict: report.verdict,
            cause: report.cause,
            findings: findings.collect(),
            findings_total: report.findings_total,
            subject,
            subject_after,
            tree,
            tree_after,
            moved: Vec::new(),
            check_writes: false,
            alone: false,
            command: report.command.map(hide),
            exit_code: report.exit_code,
            duration_ms: report.duration_ms,
            retryable: report.retryable,
            origin: self.origin,
            counts: report.counts,
            note: report.note.map(hide),
            excerpt: hide(report.excerpt),
            log: report.log,
            output_bytes: report.output_bytes,
            tries: 1,
            stripped: report.stripped,
            tools: report.tools,
            judge_usage: report.testimony,
        }
    }

    /// What is said of files that were not all seen says nothing.
    fn of_unknown_files(&self, evidence: Evidence, why: &str) -> Evidence {
        let why = self.runtime.redactor.redact_text(why);
        Evidence {
            verdict: Verdict::Inconclusive,
            cause: Some(InconclusiveCause::TreeUnreadable),
            retryable: Retryability::Yes,
            excerpt: format!("[checkrein: {why}]\n"),
            note: Some(why.into_owned()),
            ..evidence
        }
    }

    pub(crate) fn key(&self, spec: &VerifierSpec, subject: Digest) -> Digest {
        self.runtime
            .content_key(self.policy, spec, subject, self.origin)
    }

    /// What is claimed for a run under this key. Of a check of the tree no two runs overlap, whatever
    /// they are about: they work in the same files.
    fn slot(&self, spec: &VerifierSpec, key: Digest) -> Digest {
        match spec.is_tree_check() {
            true => Digest::hash_parts([
                &b"slot"[..],
                self.runtime.place.root_text().as_bytes(),
                spec.name.as_str().as_bytes(),
            ]),
            false => key,
        }
    }

    fn keep_claim(&self, spec: &VerifierSpec, claim: EffectClaim) {
        lock(&self.kept).push((spec.name.clone(), claim));
    }

    fn has_claim(&self, spec: &VerifierSpec) -> bool {
        lock(&self.kept).iter().any(|(name, _)| *name == spec.name)
    }

    fn take_claim(&self, spec: &VerifierSpec) -> Option<EffectClaim> {
        let mut kept = lock(&self.kept);
        let at = kept.iter().position(|(name, _)| *name == spec.name)?;
        Some(kept.swap_remove(at).1)
    }

    fn finished(&self, done: &Done) {
        (self.progress)(Progress::Finished {
            verifier: done.evidence.verifier.clone(),
            verdict: done.evidence.verdict,
            cause: done.evidence.cause,
            duration_ms: done.evidence.duration_ms,
            cached: done.cached,
        });
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), RuntimeError> {
        if self
            .patience
            .cancelled
            .load(std::sync::atomic::Ordering::Relaxed)
        {
            return Err(RuntimeError::Cancelled);
        }
        Ok(())
    }
}

/// Whether no act that concerns it came after the run began, and it is not too old to be believed.
fn is_fresh(spec: &VerifierSpec, run: &kept::Run, acts: u64, now: UnixMillis) -> bool {
    // Of a run that a clock that was ahead says to be yet to come nobody knows the age.
    let is_old =
        || evidence::is_evidence_too_old(now.0.abs_diff(run.began.0), run.evidence.duration_ms);
    run.acts >= acts && !(spec.is_tree_check() && spec.inputs.is_empty() && is_old())
}

fn done_by(key: Digest, evidence: Evidence, found: kept::When) -> Done {
    Done {
        key,
        began: found.began,
        evidence,
        cached: false,
        parked: None,
        run_here: false,
    }
}

fn known(run: kept::Run) -> Box<Done> {
    Box::new(Done {
        key: run.id,
        began: run.began,
        evidence: run.evidence,
        cached: true,
        parked: None,
        run_here: false,
    })
}

/// A poisoned lock guards nothing that could be half done.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held_still(spec: &VerifierSpec, before: &TreeReadResult, after: &TreeReadResult) -> bool {
    before.fact.verifier_input_digest(spec) == after.fact.verifier_input_digest(spec)
}

fn is_worth_a_retry(report: &VerifierReport) -> bool {
    report.verdict == Verdict::Inconclusive
        && report.retryable == Retryability::Yes
        && report.cause != Some(InconclusiveCause::ReplyDeadline)
}
