//! Folds events into [`State`]: the only code that writes it. It uses recorded decisions
//! and never re-decides, so an upgrade cannot change the past (law 3).

use std::collections::VecDeque;

use super::{
    Call, MAX_CURSORS, OnceMore, Pending, Scope, State, Task, Totals, TreeRecheck, WINDOW,
};
use crate::decision::{CheckFeedback, Decision, StopDecision};
use crate::digest::{Digest, Short};
use crate::effect::Effect;
use crate::event::{Action, Cap, DecisionMade, Detected, Event, Level, OpenedBy};
use crate::evidence::{Cause, Origin, Verdict};
use crate::explain::Because;
use crate::ids::{Millis, ScopeId, Seq, TaskId};
use crate::input::{
    Acts, EvidenceArrived, Input, SessionSource, Stamped, StopRequested, TokenUse, ToolKind,
    ToolRequested, ToolReturned, TreeFact, TreeRead,
};
use crate::layers::{LayerFact, LayerSays};
use crate::transition::{Reason, Transition};

impl State {
    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        self.last = self.last.next();
        match event {
            Event::PolicySealed {
                policy,
                guarded,
                equipped,
                ..
            } => {
                self.seal(*policy, *guarded);
                self.equipped.clone_from(equipped);
            }
            Event::PolicyRenewed {
                policy, guarded, ..
            } => {
                self.seal(*policy, *guarded);
                // A verdict of a verifier that is defined otherwise by now says nothing.
                if let Some(task) = &mut self.task {
                    task.verdicts.clear();
                    // Nor does one that is still on its way.
                    for pending in task.scopes.iter_mut().flat_map(|scope| &mut scope.pending) {
                        pending.waiting.clear();
                        pending.asked.clear();
                        pending.recheck.policy_renewed();
                        pending.verdicts.clear();
                    }
                }
            }
            Event::Input(stamped) => self.take_in(stamped),
            Event::Repeated { of, source, .. } => self.deliveries.repeated(*of, source),
            Event::TaskOpened {
                task,
                by,
                tree,
                acts,
            } => self.open(*task, *by, tree.clone(), *acts),
            Event::TaskReopened { .. } => {
                let now = self.now;
                if let Some(task) = &mut self.task {
                    task.ended = None;
                    // A stop that reopens a task is being judged: nobody is at work.
                    if task
                        .scope(&ScopeId::main())
                        .is_none_or(|scope| scope.pending.is_none())
                    {
                        task.working_since.get_or_insert(now);
                    }
                }
            }
            Event::Detected(detected) => self.detect(detected),
            Event::CapReached { cap, scope } => self.reach(*cap, scope),
            Event::Requested {
                stop,
                scope,
                effects,
            } => self.request(*stop, scope, effects),
            Event::FailureSetMet { set, subjects } => {
                if let Some(task) = &mut self.task {
                    task.meet(*set, *subjects);
                    task.count_run_once_more();
                }
            }
            Event::DecisionMade(made) => self.decide(made),
            Event::TaskEnded { transition, .. } => self.end(transition),
        }
    }

    fn seal(&mut self, policy: Digest, guarded: Option<Digest>) {
        self.policy = Some(policy);
        self.guarded = guarded.map(|blob| (self.last, blob));
    }

    fn take_in(&mut self, stamped: &Stamped) {
        let before = self.now;
        self.pass_time(stamped.at, stamped.turned_back);
        self.pass_over(stamped);
        if stamped.halted {
            self.halt_again(stamped.input.scope());
        }
        match &stamped.input {
            Input::SessionStarted(started) => {
                if started.how == SessionSource::Resume {
                    self.take_up(before);
                }
                self.agent.get_or_insert_with(|| started.agent.clone());
                // It says where to read from, and nothing about the work since the last stop.
                self.charge(&ScopeId::main(), started.tokens.as_ref());
            }
            Input::PromptSubmitted(prompt) => {
                let (at, source) = (stamped.at, &stamped.source);
                self.deliveries.prompted(self.last, at, source);
                self.prompt = Digest::of(prompt.text.as_bytes()).short();
                self.spend(&ScopeId::main(), prompt.tokens.as_ref());
            }
            Input::ToolRequested(request) => {
                count(&mut self.totals.tool_calls, 1);
                self.deliveries.called(&request.scope);
                self.spend(&request.scope, request.tokens.as_ref());
                self.work(self.last, stamped);
            }
            Input::ToolReturned(returned) => {
                self.spend(&returned.scope, returned.tokens.as_ref());
                self.end_call(returned);
            }
            Input::RoundEnded(round) => {
                self.shows_rounds = true;
                self.spend(&round.scope, round.tokens.as_ref());
                self.count_round(&round.scope);
            }
            Input::StopRequested(stop) => {
                let (at, source) = (stamped.at, &stamped.source);
                self.deliveries.stopped(&stop.scope, self.last, at, source);
                self.spend(&stop.scope, stop.tokens.as_ref());
                self.work(self.last, stamped);
            }
            Input::EvidenceArrived(arrived) => self.hold(arrived),
            Input::TreeRead(read) => {
                if self.read_tree(read) {
                    self.know_runs(&read.scope, stamped);
                }
            }
            Input::StopFailed(failed) => {
                if let Some(task) = &mut self.task
                    && !failed.scope.is_main()
                {
                    task.leave(&failed.scope);
                }
            }
            Input::ConfigEdited(edited) => {
                self.guarded = Some((self.last, edited.guarded));
                // Edits made with no task open are nobody's finding.
                if let Some(task) = self.task.as_mut().filter(|task| task.ended.is_none()) {
                    task.edit(&edited.paths);
                }
            }
            Input::SessionEnded(_)
            | Input::ProcessFailed(_)
            | Input::Interrupted
            | Input::TimePassed
            | Input::StanceUsed(_) => {}
            Input::PersonAnswered(answered) => {
                if let Some(task) = &mut self.task {
                    task.answered(answered);
                }
            }
        }
    }

    /// The sub-agent was halted in this task, and had to make room for others since.
    fn halt_again(&mut self, scope: Option<&ScopeId>) {
        if let (Some(task), Some(scope)) = (&mut self.task, scope) {
            task.scope_mut(scope).halted = true;
        }
    }

    /// A conversation is taken up again: since its last news nobody was at work.
    pub(super) fn take_up(&mut self, before: Millis) {
        let now = self.now;
        if let Some(task) = &mut self.task
            && task.working_since.is_some()
        {
            count(&mut self.totals.busy_ms, task.rest(before));
            task.working_since = Some(now);
        }
    }

    fn pass_over(&mut self, stamped: &Stamped) {
        let over = |fact: &LayerFact| fact.says == LayerSays::PassedOver && fact.stage.decides();
        if let Some(task) = &mut self.task {
            task.passed_over |= stamped.layers.iter().any(over);
        }
    }

    /// A tool request or stop, counted for the task; kept until there is one.
    fn work(&mut self, seq: Seq, stamped: &Stamped) {
        if self.task.is_none() {
            self.orphan = Some(Box::new((seq, stamped.clone())));
            return;
        }
        match &stamped.input {
            Input::ToolRequested(request) => self.start_call(seq, request),
            Input::StopRequested(stop) => {
                self.start_stop(seq, stop);
                self.know_runs(&stop.scope, stamped);
            }
            _ => {}
        }
    }

    fn spend(&mut self, scope: &ScopeId, tokens: Option<&TokenUse>) {
        self.charge(scope, tokens);
        if let Some(task) = &mut self.task {
            task.metered |= tokens.is_some();
        }
    }

    fn charge(&mut self, scope: &ScopeId, tokens: Option<&TokenUse>) {
        let Some(tokens) = tokens else { return };
        self.totals.charge(tokens);
        if let Some(task) = &mut self.task {
            task.totals.charge(tokens);
        }
        self.cursors.retain(|(known, _)| known != scope);
        if self.cursors.len() >= MAX_CURSORS
            && let Some(oldest) = self.cursors.iter().position(|(id, _)| !id.is_main())
        {
            self.cursors.remove(oldest);
        }
        self.cursors.push((scope.clone(), tokens.cursor.clone()));
    }

    fn start_call(&mut self, seq: Seq, request: &ToolRequested) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        if request.facts.outside {
            task.outside = Some((seq, now));
        }
        if let Some(veto) = &request.facts.veto {
            task.vetoes += u32::from(veto.asked);
            count(&mut task.totals.witnesses, veto.tokens);
            count(&mut self.totals.witnesses, veto.tokens);
        }
        if let Some(progress) = &request.facts.progress {
            task.ratings += u32::from(progress.asked);
            count(&mut task.totals.witnesses, progress.tokens);
            count(&mut self.totals.witnesses, progress.tokens);
            // What says nothing neither counts nor ends a row.
            if progress.score.is_some() {
                task.low = if progress.low { task.low + 1 } else { 0 };
            }
        }
        count(&mut task.totals.tool_calls, 1);
        if request.facts.counted || request.facts.reach.is_some() {
            task.acts_at_start = None;
        }
        task.working_since.get_or_insert(now);
        task.make_room(&request.scope);
        let scope = task.scope_mut(&request.scope);
        scope.struck = false;
        let window = &mut scope.window;
        if window.len() > WINDOW {
            window.pop_front();
        }
        window.push_back(Call {
            call: request.call,
            id: request
                .call_id
                .as_ref()
                .map(|id| Digest::of(id.as_bytes()).short()),
            outcome: None,
            poll: request.kind == ToolKind::Poll,
            write: request.kind == ToolKind::Write,
            reach: request.facts.reach,
            progress: false,
        });
    }

    /// A result belongs to the task of its request: one whose request is not in the
    /// window says nothing about this task's progress. A result that comes alone may not
    /// know what was called: the request does.
    fn end_call(&mut self, returned: &ToolReturned) {
        let Some(task) = &mut self.task else { return };
        if returned.wrote {
            task.acts_at_start = None;
        }
        task.came_back(returned.call);
        let scope = task.scope_mut(&returned.scope);
        scope.wrote |= returned.wrote;
        let Some(open) = scope.open_call(returned) else {
            return;
        };
        let Some(request) = scope.window.get(open).copied() else {
            return;
        };
        let wrote = returned.wrote || (request.write && !returned.error);
        scope.wrote |= wrote;
        task.came_back(request.call);
        let fresh = task.see(request.call, returned.outcome);
        let scope = task.scope_mut(&returned.scope);
        if let Some(call) = scope.window.get_mut(open) {
            call.close(returned.outcome, fresh || wrote);
        }
    }

    fn count_round(&mut self, scope: &ScopeId) {
        count(&mut self.totals.rounds, 1);
        if let Some(task) = &mut self.task {
            count(&mut task.totals.rounds, 1);
            count(&mut task.scope_mut(scope).rounds, 1);
        }
    }

    fn start_stop(&mut self, seq: Seq, stop: &StopRequested) {
        self.count_round(&stop.scope);
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        // A sub-agent's stop does not end the span of the main conversation.
        if stop.scope.is_main() {
            let span = task.rest(now);
            count(&mut self.totals.busy_ms, span);
            task.stops += 1;
            let used = task.totals.output_tokens.unwrap_or(0);
            // Without any reading nothing is known about the tokens since the last stop.
            let metered = std::mem::take(&mut task.metered);
            let delta = metered.then(|| used.saturating_sub(task.tokens_at_stop));
            task.tokens_at_stop = used;
            task.deltas = [delta, task.deltas[0]];
        }
        // A stop that was given up leaves what was found out for it.
        let older = task.scope_mut(&stop.scope).pending.take();
        let mut verdicts = Vec::new();
        if stop.scope.is_main() {
            if let Some(older) = older {
                task.take_back(older.verdicts);
            }
            verdicts = task.lend_verdicts(&self.equipped);
        }
        let judged = |main: bool| {
            let of = |scope: &&Scope| scope.id.is_main() == main && scope.pending.is_some();
            task.scopes.iter().filter(of).count() as u32
        };
        let (ahead, of_main) = (judged(false), judged(true));
        let below = task.continues_below;
        let (spent, refused) = (task.spent.is_some(), task.refused);
        let given = task.totals.continues - below + of_main;
        task.scope_mut(&stop.scope).pending = Some(Pending {
            stop: seq,
            at: now,
            tree: stop.tree.clone(),
            message: stop.message_digest,
            judges: stop.judges.to_vec(),
            block_cap: stop.block_cap,
            truncated: stop.truncated,
            background: stop.background,
            over: stop.over.clone(),
            waiting: Vec::new(),
            asked: Vec::new(),
            requested: seq,
            recheck: TreeRecheck::NotRead,
            no_attempt: false,
            runs: None,
            again: Vec::new(),
            verdicts,
            spent,
            refused,
            given,
            below,
            ahead,
        });
    }

    /// Which runs are the newest of checks, as they were found with the tree.
    fn know_runs(&mut self, scope: &ScopeId, stamped: &Stamped) {
        let Some(runs) = &stamped.runs else { return };
        let task = self.task.as_mut();
        if let Some(pending) = task.and_then(|task| task.pending_mut(scope)) {
            pending.runs = Some(runs.to_vec());
        }
    }

    fn hold(&mut self, arrived: &EvidenceArrived) {
        let fact = &arrived.evidence;
        self.totals.witness(arrived);
        if let Some(task) = &mut self.task {
            task.totals.witness(arrived);
        }
        // Evidence that was made by hand only informs (law 1).
        if fact.origin != Origin::Gate {
            return;
        }
        let (now, task) = (self.now, self.task.as_mut());
        let Some(pending) = task.and_then(|task| task.pending_mut(&arrived.scope)) else {
            return;
        };
        if !pending.is_answered_by(arrived) {
            return;
        }
        let waited = pending.waiting.len();
        pending.waiting.retain(|name| *name != fact.verifier);
        if pending.waiting.len() == waited {
            return;
        }
        pending.recheck.evidence_came();
        let mut runs = pending.runs.iter_mut().flatten();
        if let Some(newest) = runs.find(|newest| newest.verifier == fact.verifier) {
            newest.run = Some(fact.key.short());
        }
        match arrived.scope.is_main() {
            true => pending.keep(fact.clone(), arrived, now),
            false => pending.keep_some(fact.clone(), arrived, now),
        }
    }

    /// Whether the reading was for the stop that is being judged.
    fn read_tree(&mut self, read: &TreeRead) -> bool {
        let task = self.task.as_mut();
        let Some(pending) = task.and_then(|task| task.pending_mut(&read.scope)) else {
            return false;
        };
        // A reading for a stop that was replaced may be older than the newer stop's checks.
        if !pending.recheck.is_reading() || pending.stop != read.stop {
            return false;
        }
        let same = match (&pending.tree, &read.tree) {
            (Ok(before), Ok(now)) => before.is_alike(now),
            _ => false,
        };
        pending.no_attempt = read.no_attempt;
        pending.recheck.come_back(same);
        if pending.recheck == TreeRecheck::Moved {
            pending.tree.clone_from(&read.tree);
        }
        true
    }

    fn open(
        &mut self,
        id: TaskId,
        opened_by: OpenedBy,
        start: Option<TreeFact>,
        acts_at_start: Option<Acts>,
    ) {
        // What a session used before its first prompt was for that one.
        let is_first = id.0 == 1 && opened_by == OpenedBy::Prompt;
        let used = self.totals.output_tokens;
        let before = used.filter(|used| is_first && *used > 0);
        self.task = Some(Task {
            id,
            opened_by,
            opened_at: self.now,
            prompt: match opened_by {
                OpenedBy::Prompt => self.prompt,
                OpenedBy::Work => Short::default(),
            },
            start,
            acts_at_start,
            working_since: Some(self.now),
            ended: None,
            spent: None,
            halted: false,
            totals: Totals {
                output_tokens: before,
                ..Totals::default()
            },
            stops: 0,
            tokens_at_stop: 0,
            metered: false,
            deltas: [None, None],
            failure_sets: Vec::new(),
            last_failure: None,
            verdicts: Vec::new(),
            continues_below: 0,
            told: Vec::new(),
            grace: None,
            criticals: 0,
            nudged: Vec::new(),
            seen: VecDeque::new(),
            refused: None,
            asked: None,
            outside: None,
            edited: Vec::new(),
            edited_told: false,
            missing_told: Vec::new(),
            ran_once_more: Vec::new(),
            vetoes: 0,
            ratings: 0,
            low: 0,
            passed_over: false,
            scopes: Vec::new(),
        });
        if let Some(orphan) = self.orphan.take() {
            // Its tokens were counted for the session only: there was no task yet.
            if let (Some(task), Some(tokens)) = (&mut self.task, tokens_of(&orphan.1.input)) {
                task.totals.charge(tokens);
                task.metered = true;
            }
            self.pass_over(&orphan.1);
            self.work(orphan.0, &orphan.1);
        }
    }

    fn detect(&mut self, detected: &Detected) {
        let Some(task) = &mut self.task else { return };
        match detected.action {
            Action::Nudge => {
                let bucket = detected.count / 10;
                match task.nudged.iter_mut().find(|(key, _)| *key == detected.key) {
                    Some((_, told)) => *told = bucket,
                    None => super::push_bounded(&mut task.nudged, (detected.key, bucket)),
                }
            }
            Action::Deny | Action::Halt if detected.level == Level::Critical => {
                if detected.scope.is_main() {
                    task.criticals += 1;
                }
                // A call that a detector denied is not in the window.
                let scope = task.scope_mut(&detected.scope);
                scope.window.pop_back();
                scope.struck = true;
                // A sub-agent that goes in circles is halted for itself.
                if !detected.scope.is_main() {
                    scope.halted |= scope.criticals > 0;
                    scope.criticals += 1;
                }
            }
            Action::Deny | Action::Halt | Action::Observe | Action::Grace => {}
        }
    }

    fn reach(&mut self, cap: Cap, scope: &ScopeId) {
        let Some(task) = &mut self.task else { return };
        if scope.is_main() {
            task.grace.get_or_insert(cap);
        } else {
            let scope = task.scope_mut(scope);
            if scope.grace {
                scope.halted = true;
            }
            scope.grace = true;
        }
    }

    fn request(&mut self, stop: Seq, scope: &ScopeId, effects: &[Effect]) {
        let task = self.task.as_mut();
        let Some(pending) = task.and_then(|task| task.pending_mut(scope)) else {
            return;
        };
        if pending.stop != stop {
            return;
        }
        pending.requested = self.last;
        let mut run_once_more = Vec::new();
        for effect in effects {
            match effect {
                Effect::RunVerifier {
                    verifier,
                    subject,
                    again,
                    ..
                } => {
                    if *again {
                        pending.again.push(verifier.clone());
                        run_once_more.push(OnceMore {
                            verifier: verifier.clone(),
                            subject: subject.short(),
                            at: pending.at,
                        });
                    }
                    pending.waiting.push(verifier.clone());
                    pending.asked.push((verifier.clone(), subject.short()));
                }
                Effect::ReadTree { .. } => pending.recheck.request(),
            }
        }
        if let Some(task) = self.task.as_mut() {
            task.note_run_once_more(run_once_more);
        }
    }

    fn decide(&mut self, made: &DecisionMade) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        match &made.decision {
            Decision::Tool(decision) => task.answer_call(made, decision),
            Decision::Stop(decision) => {
                let pending = task
                    .scopes
                    .iter_mut()
                    .find(|scope| scope.id == made.scope)
                    .and_then(|scope| scope.pending.take());
                if let Some(pending) = pending.filter(|_| made.scope.is_main()) {
                    if let (Ok(tree), Some(failed)) = (&pending.tree, failed(&made.why)) {
                        self.last_judged = Some((tree.tree, failed));
                    }
                    task.close_stop(pending);
                }
                match decision {
                    StopDecision::Continue { feedback } => {
                        self.totals.continues += 1;
                        task.totals.continues += 1;
                        task.continues_below += u32::from(!made.scope.is_main());
                        task.refused = None;
                        let mut scopes = task.scopes.iter_mut();
                        let scope = scopes.find(|scope| scope.id == made.scope);
                        if let Some(scope) = scope.filter(|_| feedback.judges > 0) {
                            scope.sent_back += 1;
                        }
                        let missing =
                            |check: &&CheckFeedback| check.cause == Some(Cause::MissingProgram);
                        for check in feedback.checks.iter().filter(missing) {
                            if !task.missing_told.contains(&check.verifier) {
                                task.missing_told.push(check.verifier.clone());
                            }
                        }
                        // What a sub-agent is told the main conversation does not know.
                        if made.scope.is_main() {
                            task.working_since = Some(now);
                            for check in &feedback.checks {
                                task.tell(&check.verifier, &check.new);
                            }
                            task.edited_told |= !feedback.edited.is_empty();
                        }
                    }
                    StopDecision::Halt { .. } => task.halted = true,
                    StopDecision::Accept { .. } => {
                        if !made.scope.is_main() {
                            task.leave(&made.scope);
                        }
                    }
                }
            }
            Decision::Noted => {}
        }
    }

    fn end(&mut self, transition: &Transition) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        if transition.reason == Reason::Abandoned {
            // Nobody knows how long the agent was at work before it was left.
            task.working_since = None;
        }
        let span = task.rest(now);
        count(&mut self.totals.busy_ms, span);
        let spends = match &task.spent {
            None => true,
            Some(spent) => transition.replaces(spent),
        };
        if spends && !transition.reason.reopens_fully() {
            task.spent = Some(transition.clone());
        }
        task.ended = Some(transition.clone());
    }
}

/// Whether required checks were judged, and whether one of them said no.
fn failed(why: &[Because]) -> Option<bool> {
    why.iter()
        .filter_map(|because| match because {
            Because::Verdict {
                verdict,
                required: true,
                ..
            } => Some(*verdict == Verdict::Fail),
            _ => None,
        })
        .reduce(|one, other| one || other)
}

fn tokens_of(input: &Input) -> Option<&TokenUse> {
    match input {
        Input::ToolRequested(request) => request.tokens.as_ref(),
        Input::StopRequested(stop) => stop.tokens.as_ref(),
        _ => None,
    }
}

impl Totals {
    fn charge(&mut self, tokens: &TokenUse) {
        add(&mut self.output_tokens, tokens.output);
        if let Some(cost) = tokens.cost {
            add(&mut self.cost, cost);
        }
    }

    fn witness(&mut self, arrived: &EvidenceArrived) {
        count(&mut self.witnesses, arrived.tokens);
        count(&mut self.witness_cost, arrived.cost);
    }
}

fn add(total: &mut Option<u64>, more: u64) {
    *total = Some(total.unwrap_or(0).saturating_add(more));
}

/// What agents and models report may be any number.
fn count(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}
