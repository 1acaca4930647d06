//! Which verdicts a stop rests on, and what of them was told.
//!
//! The main conversation keeps its verdicts from stop to stop; a sub-agent's are its stop's
//! own and go with it. So no stop sees what comes back for another (law 4); that the same
//! check is not run twice is the runtime's business, which knows what was found before.

use super::{Held, MAX_TOLD, OnceMore, Pending, Task, Told};
use crate::digest::Short;
use crate::evidence::{Cause, EvidenceFact, MAX_FINDINGS, Verdict};
use crate::ids::{Millis, ScopeId, VerifierName};
use crate::input::EvidenceArrived;

impl Task {
    /// What a main stop begins with: all that is known, but no fail that may have been
    /// mended outside the tree since. A program that was there once can come back.
    pub(super) fn lend_verdicts(&mut self, equipped: &[VerifierName]) -> Vec<Held> {
        let came_back = |held: &Held| {
            held.fact.cause == Some(Cause::MissingProgram) && equipped.contains(&held.fact.verifier)
        };
        let overtaken = |held: &Held| {
            held.fact.verdict != Verdict::Pass && self.outside.is_some_and(|(at, _)| held.stop < at)
        };
        let mut verdicts = std::mem::take(&mut self.verdicts);
        verdicts.retain(|held| !overtaken(held) && !came_back(held));
        verdicts
    }

    /// A main stop is no longer judged: the newest of its verdicts by verifier are kept.
    pub(super) fn take_back(&mut self, mut verdicts: Vec<Held>) {
        verdicts.retain(|held| !held.is_cut());
        verdicts.reverse();
        verdicts.dedup_by(|older, newer| older.fact.verifier == newer.fact.verifier);
        verdicts.reverse();
        self.verdicts = verdicts;
    }

    /// A main stop was answered: what was told is compared with what is still there.
    pub(super) fn close_stop(&mut self, pending: Pending) {
        for told in &mut self.told {
            let held = pending.held(&told.verifier);
            for (finding, there) in &mut told.findings {
                *there = held.is_some_and(|held| held.fact.findings.contains(finding));
            }
        }
        self.take_back(pending.verdicts);
    }

    /// Whether a run that began then came of running the check once more about this. One that had begun before
    /// says nothing of what was mended since.
    pub(crate) fn has_run_once_more(
        &self,
        verifier: &VerifierName,
        subject: Short,
        began: Option<Millis>,
    ) -> bool {
        let since = self.once_more_since(verifier, subject);
        since.is_some_and(|since| began.is_some_and(|began| began >= since))
    }

    /// When a run of this check about this has to begin that is to be the one more.
    pub fn once_more_since(&self, verifier: &VerifierName, subject: Short) -> Option<Millis> {
        let mut ran = self.ran_once_more.iter();
        let is_this = |more: &&OnceMore| more.verifier == *verifier && more.subject == subject;
        ran.find(is_this).map(|more| more.at)
    }

    /// Remembers that these are to run once more; of each check what it is about now, and when it was asked for
    /// first: what runs longer than its hook is asked for at each stop.
    pub(super) fn note_run_once_more(&mut self, ran: Vec<OnceMore>) {
        for new in ran {
            if self.once_more_since(&new.verifier, new.subject).is_none() {
                self.ran_once_more
                    .retain(|old| old.verifier != new.verifier);
                self.ran_once_more.push(new);
            }
        }
    }

    /// A main stop is refused for what is known by now: what ran once more for it is known from before to the next.
    pub(super) fn count_run_once_more(&mut self) {
        let Some(pending) = self
            .scope(&ScopeId::main())
            .and_then(|main| main.pending.as_ref())
        else {
            return;
        };
        let is_counted = |more: &OnceMore| {
            pending
                .held(&more.verifier)
                .is_some_and(|held| !held.is_cut() && held.began.is_some_and(|at| at >= more.at))
        };
        let left = self.ran_once_more.iter().filter(|more| !is_counted(more));
        self.ran_once_more = left.cloned().collect();
    }

    /// Remembers that these findings were told; forgets first what is no longer found.
    pub(super) fn tell(&mut self, verifier: &VerifierName, findings: &[Short]) {
        if findings.is_empty() {
            return;
        }
        let told = match self.told.iter().position(|told| told.verifier == *verifier) {
            Some(at) => self.told.remove(at),
            None => Told {
                verifier: verifier.clone(),
                findings: Vec::new(),
            },
        };
        self.told.push(told);
        let Some(told) = self.told.last_mut() else {
            return;
        };
        for finding in findings {
            if told.findings.len() >= MAX_TOLD {
                let gone = told.findings.iter().position(|(_, there)| !there);
                told.findings.remove(gone.unwrap_or(0));
            }
            told.findings.push((*finding, true));
        }
    }
}

impl Pending {
    /// Whether it asked for this, or for evidence about the same: a stop that it replaced may
    /// have asked the same verifier about another tree. Older logs do not say what was asked.
    pub(super) fn is_answered_by(&self, arrived: &EvidenceArrived) -> bool {
        let fact = &arrived.evidence;
        let asked = |about: Short| self.asked.contains(&(fact.verifier.clone(), about));
        let about = arrived.asked;
        about.is_none_or(|about| asked(about) || asked(fact.subject.short()))
    }

    /// Of a sub-agent's stop: many of them may be judged at once, so that their checks share the
    /// room that each check of a main stop has for findings. How many checks there are is known
    /// before the first comes back, so that the order of arrival leaves no trace.
    pub(super) fn keep_some(
        &mut self,
        mut fact: EvidenceFact,
        arrived: &EvidenceArrived,
        now: Millis,
    ) {
        let mut checks: Vec<&VerifierName> = self.asked.iter().map(|(name, _)| name).collect();
        checks.sort_unstable();
        checks.dedup();
        fact.findings.truncate(MAX_FINDINGS / checks.len().max(1));
        self.keep(fact, arrived, now);
    }

    /// Holds what came back for it; sorted, so that the order of arrival leaves no trace. A run that
    /// began when the clock was ahead began by now: it is not to be fresh until the clock has caught up.
    pub(super) fn keep(&mut self, fact: EvidenceFact, arrived: &EvidenceArrived, now: Millis) {
        let place = |held: &Held| (held.fact.verifier.clone(), held.stop);
        let new = Held {
            fact,
            held_up: arrived.held_up,
            began: arrived.began.map(|began| began.min(now)),
            stop: self.stop,
        };
        let at = place(&new);
        self.verdicts.retain(|held| place(held) != at);
        let before = self.verdicts.partition_point(|held| place(held) < at);
        self.verdicts.insert(before, new);
    }
}
