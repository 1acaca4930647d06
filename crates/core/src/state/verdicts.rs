//! Which verdicts a stop rests on, and what of them was told.
//!
//! The main conversation keeps its verdicts from stop to stop; a sub-agent's are its stop's
//! own and go with it. So no stop sees what comes back for another (law 4); that the same
//! check is not run twice is the runtime's business, which knows what was found before.

use super::{
    FindingsToldToAgent, KeptVerifierVerdict, LastChanceRerun, MAX_TOLD, PendingStop, Task,
};
use crate::digest::EightByteDigest;
use crate::evidence::{EvidenceSummary, InconclusiveCause, MAX_FINDINGS, Verdict};
use crate::ids::{ScopeId, UnixMillis, VerifierName};
use crate::input::EvidenceArrived;

impl Task {
    /// What a main stop begins with: all that is known, but no fail that may have been
    /// mended outside the tree since. A program that was there once can come back.
    pub(super) fn take_verdicts_valid_at_stop(
        &mut self,
        equipped: &[VerifierName],
    ) -> Vec<KeptVerifierVerdict> {
        let came_back = |held: &KeptVerifierVerdict| {
            held.fact.cause == Some(InconclusiveCause::MissingProgram)
                && equipped.contains(&held.fact.verifier)
        };
        let overtaken = |held: &KeptVerifierVerdict| {
            held.fact.verdict != Verdict::Pass && self.outside.is_some_and(|(at, _)| held.stop < at)
        };
        let mut verdicts = std::mem::take(&mut self.verdicts);
        verdicts.retain(|held| !overtaken(held) && !came_back(held));
        verdicts
    }

    /// A main stop is no longer judged: the newest of its verdicts by verifier are kept.
    pub(super) fn keep_newest_verdicts(&mut self, mut verdicts: Vec<KeptVerifierVerdict>) {
        verdicts.retain(|held| !held.is_transient_verdict());
        verdicts.reverse();
        verdicts.dedup_by(|older, newer| older.fact.verifier == newer.fact.verifier);
        verdicts.reverse();
        self.verdicts = verdicts;
    }

    /// A main stop was answered: what was told is compared with what is still there.
    pub(super) fn compare_told_findings_at_stop(&mut self, pending: PendingStop) {
        for told in &mut self.reported_findings {
            let held = pending.newest_verdict_of_verifier(&told.verifier);
            for (finding, there) in &mut told.findings {
                *there = held.is_some_and(|held| held.fact.findings.contains(finding));
            }
        }
        self.keep_newest_verdicts(pending.verdicts);
    }

    /// Whether a run that began then came of running the check once more about this. One that had begun before
    /// says nothing of what was mended since.
    pub(crate) fn was_last_chance_rerun(
        &self,
        verifier: &VerifierName,
        subject: EightByteDigest,
        began: Option<UnixMillis>,
    ) -> bool {
        let since = self.last_chance_rerun_start_time(verifier, subject);
        since.is_some_and(|since| began.is_some_and(|began| began >= since))
    }

    /// When a run of this check about this has to begin that is to be the one more.
    pub fn last_chance_rerun_start_time(
        &self,
        verifier: &VerifierName,
        subject: EightByteDigest,
    ) -> Option<UnixMillis> {
        let mut ran = self.final_reruns.iter();
        let is_this =
            |more: &&LastChanceRerun| more.verifier == *verifier && more.subject == subject;
        ran.find(is_this).map(|more| more.at)
    }

    /// Remembers that these are to run once more; of each check what it is about now, and when it was asked for
    /// first: what runs longer than its hook is asked for at each stop.
    pub(super) fn record_last_chance_reruns(&mut self, ran: Vec<LastChanceRerun>) {
        for new in ran {
            if self
                .last_chance_rerun_start_time(&new.verifier, new.subject)
                .is_none()
            {
                self.final_reruns.retain(|old| old.verifier != new.verifier);
                self.final_reruns.push(new);
            }
        }
    }

    /// A main stop is refused for what is known by now: what ran once more for it is known from before to the next.
    pub(super) fn drop_counted_last_chance_reruns(&mut self) {
        let Some(pending) = self
            .scope_by_id(&ScopeId::main_scope())
            .and_then(|main| main.pending.as_ref())
        else {
            return;
        };
        let is_counted = |more: &LastChanceRerun| {
            pending
                .newest_verdict_of_verifier(&more.verifier)
                .is_some_and(|held| {
                    !held.is_transient_verdict() && held.began.is_some_and(|at| at >= more.at)
                })
        };
        let left = self.final_reruns.iter().filter(|more| !is_counted(more));
        self.final_reruns = left.cloned().collect();
    }

    /// Remembers that these findings were told; forgets first what is no longer found.
    pub(super) fn record_findings_told_to_agent(
        &mut self,
        verifier: &VerifierName,
        findings: &[EightByteDigest],
    ) {
        if findings.is_empty() {
            return;
        }
        let told = match self
            .reported_findings
            .iter()
            .position(|told| told.verifier == *verifier)
        {
            Some(at) => self.reported_findings.remove(at),
            None => FindingsToldToAgent {
                verifier: verifier.clone(),
                findings: Vec::new(),
            },
        };
        self.reported_findings.push(told);
        let Some(told) = self.reported_findings.last_mut() else {
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

impl PendingStop {
    /// Whether it asked for this, or for evidence about the same: a stop that it replaced may
    /// have asked the same verifier about another tree. Older logs do not say what was asked.
    pub(super) fn pending_stop_asked_for_evidence(&self, arrived: &EvidenceArrived) -> bool {
        let fact = &arrived.evidence;
        let asked = |about: EightByteDigest| {
            self.requested_subjects
                .contains(&(fact.verifier.clone(), about))
        };
        let about = arrived.asked;
        about.is_none_or(|about| asked(about) || asked(fact.subject.to_short_digest()))
    }

    /// Of a sub-agent's stop: many of them may be judged at once, so that their checks share the
    /// room that each check of a main stop has for findings. How many checks there are is known
    /// before the first comes back, so that the order of arrival leaves no trace.
    pub(super) fn keep_subagent_verdict(
        &mut self,
        mut fact: EvidenceSummary,
        arrived: &EvidenceArrived,
        now: UnixMillis,
    ) {
        let mut checks: Vec<&VerifierName> = self
            .requested_subjects
            .iter()
            .map(|(name, _)| name)
            .collect();
        checks.sort_unstable();
        checks.dedup();
        fact.findings.truncate(MAX_FINDINGS / checks.len().max(1));
        self.keep_stop_evidence(fact, arrived, now);
    }

    /// Holds what came back for it; sorted, so that the order of arrival leaves no trace. A run that
    /// began when the clock was ahead began by now: it is not to be fresh until the clock has caught up.
    pub(super) fn keep_stop_evidence(
        &mut self,
        fact: EvidenceSummary,
        arrived: &EvidenceArrived,
        now: UnixMillis,
    ) {
        let place = |held: &KeptVerifierVerdict| (held.fact.verifier.clone(), held.stop);
        let new = KeptVerifierVerdict {
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
