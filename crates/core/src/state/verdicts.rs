//! Keeps the verdicts that a stop rests on, and which findings the agent was told.
//!
//! The main conversation keeps its verdicts from stop to stop. A sub-agent's verdicts belong to its
//! stop and are dropped with it, so no stop sees what comes back for another (law 4). Reusing a
//! check that already ran is up to the runtime, which knows the earlier results.

use super::{
    FindingsToldToAgent, LastChanceRerun, MAX_TOLD, PendingStop, Task, VerifierVerdictInTask,
};
use crate::digest::EightByteDigest;
use crate::evidence::{EvidenceSummary, InconclusiveCause, MAX_FINDINGS, Verdict};
use crate::ids::{ScopeId, UnixMillis, VerifierName};
use crate::input::EvidenceArrived;

impl Task {
    /// Takes the verdicts that a main stop begins with: all known ones, except failures that may
    /// have been mended outside the tree since. A missing program that was there once may be back,
    /// so its verdict is dropped too.
    pub(super) fn take_verdicts_valid_at_stop(
        &mut self,
        equipped: &[VerifierName],
    ) -> Vec<VerifierVerdictInTask> {
        let came_back = |held: &VerifierVerdictInTask| {
            held.fact.cause == Some(InconclusiveCause::MissingProgram)
                && equipped.contains(&held.fact.verifier)
        };
        let overtaken = |held: &VerifierVerdictInTask| {
            held.fact.verdict != Verdict::Pass && self.outside.is_some_and(|(at, _)| held.stop < at)
        };
        let mut verdicts = std::mem::take(&mut self.verdicts);
        verdicts.retain(|held| !overtaken(held) && !came_back(held));
        verdicts
    }

    /// Keeps the newest verdict per verifier of a main stop that is no longer judged.
    pub(super) fn keep_newest_verdict_per_verifier(
        &mut self,
        mut verdicts: Vec<VerifierVerdictInTask>,
    ) {
        verdicts.retain(|held| !held.is_verdict_for_one_stop_only());
        // Verdicts are sorted by verifier and then by stop. Reversed, the newest of each verifier
        // comes first and survives the deduplication.
        verdicts.reverse();
        verdicts.dedup_by(|older, newer| older.fact.verifier == newer.fact.verifier);
        verdicts.reverse();
        self.verdicts = verdicts;
    }

    /// Compares the findings that the agent was told with what is still found, after a main stop
    /// was answered.
    pub(super) fn compare_told_findings_at_stop(&mut self, pending: PendingStop) {
        for told in &mut self.reported_findings {
            let held = pending.newest_verdict_of_verifier(&told.verifier);
            for (finding, there) in &mut told.findings {
                *there = held.is_some_and(|held| held.fact.findings.contains(finding));
            }
        }
        self.keep_newest_verdict_per_verifier(pending.verdicts);
    }

    /// Returns whether the run that began at `began` was the last-chance rerun about this subject.
    /// An earlier run says nothing about what was mended since.
    pub(crate) fn was_last_chance_rerun(
        &self,
        verifier: &VerifierName,
        subject: EightByteDigest,
        began: Option<UnixMillis>,
    ) -> bool {
        let since = self.last_chance_rerun_request_time(verifier, subject);
        since.is_some_and(|since| began.is_some_and(|began| began >= since))
    }

    /// Returns the time from which on a run of this check about this subject counts as its
    /// last-chance rerun.
    pub fn last_chance_rerun_request_time(
        &self,
        verifier: &VerifierName,
        subject: EightByteDigest,
    ) -> Option<UnixMillis> {
        let mut ran = self.final_reruns.iter();
        let is_this =
            |more: &&LastChanceRerun| more.verifier == *verifier && more.subject == subject;
        ran.find(is_this).map(|more| more.at)
    }

    /// Records last-chance reruns: per check its present subject and the time of the first request.
    /// A check that outlives its hook is requested again at each stop, and keeps the first time.
    pub(super) fn record_last_chance_reruns(&mut self, ran: Vec<LastChanceRerun>) {
        for new in ran {
            if self
                .last_chance_rerun_request_time(&new.verifier, new.subject)
                .is_none()
            {
                // One entry per check keeps the list bounded.
                self.final_reruns.retain(|old| old.verifier != new.verifier);
                self.final_reruns.push(new);
            }
        }
    }

    /// Drops the reruns whose results were counted, after a main stop was refused for them. At the
    /// next stop such a result is an earlier one again.
    pub(super) fn drop_judged_last_chance_reruns(&mut self) {
        let Some(pending) = self
            .conversation_scope_by_id(&ScopeId::main_scope())
            .and_then(|main| main.pending.as_ref())
        else {
            return;
        };
        let is_counted = |more: &LastChanceRerun| {
            pending
                .newest_verdict_of_verifier(&more.verifier)
                .is_some_and(|held| {
                    !held.is_verdict_for_one_stop_only()
                        && held.began.is_some_and(|at| at >= more.at)
                })
        };
        let left = self.final_reruns.iter().filter(|more| !is_counted(more));
        self.final_reruns = left.cloned().collect();
    }

    /// Remembers that these findings were told. At the limit, findings that are gone are dropped
    /// first.
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
                // A finding that is gone may return as new. One that is still there would be
                // described a second time (law 7).
                let gone = told.findings.iter().position(|(_, there)| !there);
                told.findings.remove(gone.unwrap_or(0));
            }
            told.findings.push((*finding, true));
        }
    }
}

impl PendingStop {
    /// Returns whether this stop asked for this evidence, or for evidence about the same subject: a
    /// stop that it replaced may have asked the same verifier about another tree. Older logs do not
    /// record what was asked.
    pub(super) fn did_stop_request_evidence(&self, arrived: &EvidenceArrived) -> bool {
        let fact = &arrived.evidence;
        let asked = |about: EightByteDigest| {
            self.requested_subjects
                .contains(&(fact.verifier.clone(), about))
        };
        let about = arrived.asked;
        about.is_none_or(|about| asked(about) || asked(fact.subject.to_eight_byte_digest()))
    }

    /// Keeps the evidence of a sub-agent's stop. Many such stops may be judged at once, so the
    /// checks of one share the space for findings that each check of a main stop has. The number of
    /// checks is known before the first result, so the order of arrival leaves no trace.
    pub(super) fn keep_subagent_stop_evidence(
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
        self.insert_stop_evidence(fact, arrived, now);
    }

    /// Keeps evidence in sorted order, so that the order of arrival leaves no trace. A run that
    /// began while the clock was ahead counts as begun now, so that it is not fresh until the clock
    /// has caught up.
    pub(super) fn insert_stop_evidence(
        &mut self,
        fact: EvidenceSummary,
        arrived: &EvidenceArrived,
        now: UnixMillis,
    ) {
        let place = |held: &VerifierVerdictInTask| (held.fact.verifier.clone(), held.stop);
        let new = VerifierVerdictInTask {
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
