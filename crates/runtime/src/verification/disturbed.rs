//! Checks whose inputs were written while they ran. What is written while nothing of ours runs is a neighbour's, and
//! is waited for; anything else is found out by a run of the check alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;
use checkrein_core::evidence::{Evidence, InconclusiveCause, Retryability, Verdict};
use checkrein_core::ids::UnixMillis;
use checkrein_core::policy::VerifierSpec;

use super::{CheckExecutionResult, EvidenceOrCheckClaim, ReturnedEvidence, VerificationBatch};
use crate::error::RuntimeError;
use crate::external_writes;
use crate::system::ScopedThreads;
use crate::tree_snapshots::TreeSnapshot;
use crate::writing_checks;

/// How often a file is looked at that a check wrote before.
const WATCH_INTERVAL: Duration = Duration::from_millis(15);
/// Neighbours are looked for as long as the check ran that was disturbed, but no longer than this.
const MAX_DETECTION_TIME: Duration = Duration::from_secs(1);

/// A check whose inputs were written while it ran, or that was seen to write them before.
pub(crate) struct DisturbedCheck<'a> {
    pub(super) spec: &'a VerifierSpec,
    /// The files that were written.
    pub(super) written: Vec<String>,
    /// How it ran; nothing if it has not run yet.
    pub(super) disturbed: Option<DisturbedRun>,
    /// As of [`super::VerificationRequest`].
    pub(super) again: Option<UnixMillis>,
}

/// A run while which files were written.
pub(super) struct DisturbedRun {
    pub(super) run: CheckExecutionResult,
    pub(super) before: Arc<TreeSnapshot>,
    pub(super) after: Arc<TreeSnapshot>,
}

/// How a check ran.
pub(super) enum CheckRunInterference {
    /// Maybe beside others; nothing that it reads was written.
    Undisturbed,
    /// With nothing of ours beside it.
    Alone(FilesChangedDuringSoloCheck),
    /// While neighbours wrote these.
    WithExternalWrites(Vec<String>),
}

/// What became of the files while a check ran alone.
pub(super) struct FilesChangedDuringSoloCheck {
    /// Those that were written.
    wrote: Vec<String>,
    /// Of those that were watched: gone or otherwise for a while.
    taken_away: Vec<String>,
    /// Written, but not watched.
    unseen: Vec<String>,
}

impl<'a> VerificationBatch<'a> {
    /// Looks, while no check runs, whether somebody writes what was written during the checks. How long it
    /// may be waited for, if it was not in this stop.
    pub(super) fn detect_external_writers(
        &self,
        moved: &[Box<DisturbedCheck<'a>>],
    ) -> Result<Option<Duration>, RuntimeError> {
        let disturbed = || moved.iter().filter(|moved| moved.disturbed.is_some());
        let ran = disturbed().filter_map(|moved| moved.disturbed.as_ref());
        let Some(longest) = ran.map(|ran| ran.run.report.duration_ms).max() else {
            return Ok(None);
        };
        let place = &self.runtime.place;
        let mut written: Vec<String> = disturbed().flat_map(|of| of.written.clone()).collect();
        written.sort_unstable();
        written.dedup();
        let time = MAX_DETECTION_TIME.min(Duration::from_millis(longest));
        let is_quiet = !self.is_check_running_elsewhere()?;
        let theirs = external_writes::detect_external_writes(place, &written, time, self.patience);
        let known = external_writes::externally_written_files(place);
        let is_new = theirs.iter().any(|path| !known.contains(path));
        // What another process's check writes is no neighbour's.
        let are_neighbours = is_quiet && !self.is_check_running_elsewhere()?;
        if are_neighbours {
            external_writes::record_external_writes(place, &theirs);
        }
        let longest = match are_neighbours && is_new {
            true => self.looks.longest_wait,
            false => self.looks.longest_wait.min(external_writes::SECOND_WAIT),
        };
        let longest = longest.min(external_writes::max_external_write_wait(
            place,
            self.patience,
        ));
        Ok((!self.looks.mark_waited_for_external_writers()).then_some(longest))
    }

    /// Whether another process has the slot of a check of this tree.
    fn is_check_running_elsewhere(&self) -> Result<bool, RuntimeError> {
        let is_check = |spec: &&VerifierSpec| spec.is_tree_check() && !self.has_rerun_claim(spec);
        let mut slots = self.policy.verifiers.iter().filter(is_check);
        // The key of a check of the tree is no part of its slot.
        let key = Digest::hash_bytes(b"");
        slots.try_fold(false, |runs, spec| {
            let slot = self.check_run_claim_key(spec, key);
            Ok(runs || self.runtime.store.try_claim_effect(&slot)?.is_none())
        })
    }

    /// One that only neighbours disturbed runs once more if they hold still by then; any other runs alone.
    pub(super) fn rerun_disturbed(
        &self,
        mut moved: DisturbedCheck<'a>,
        wait_until: Option<Instant>,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        let place = &self.runtime.place;
        let neighbours = external_writes::externally_written_files(place);
        let by_neighbours = |ran: &DisturbedRun| {
            let packages = ran
                .before
                .reading
                .changed_package_markers(&ran.after.reading);
            let only_theirs = moved.written.iter().all(|path| neighbours.contains(path));
            packages.is_empty() && !moved.written.is_empty() && only_theirs
        };
        if !moved.disturbed.as_ref().is_some_and(by_neighbours) {
            return self.run_check_exclusively(moved, false);
        }
        // Whoever waits for it need not wait for neighbours.
        drop(self.take_rerun_claim(moved.spec));
        let is_still = wait_until.is_some_and(|until| {
            external_writes::wait_until_files_unchanged(place, &moved.written, until, self.patience)
        });
        self.ensure_not_cancelled()?;
        let Some(ran) = moved.disturbed.take_if(|_| !is_still) else {
            return self.run_check_exclusively(moved, true);
        };
        let ran_beside = CheckRunInterference::WithExternalWrites(moved.written);
        let after = &ran.after.reading;
        let done = self.record_check_run(moved.spec, ran.run, &ran.before, after, ran_beside)?;
        // What was read of the tree after the run is older than the wait.
        Ok(ReturnedEvidence {
            run_here: false,
            ..done
        })
    }

    /// With nothing else running, and an eye on the files that were written before. Who began so has one
    /// more run: what it writes depends on what it finds. Whoever waited looks at the tree anew.
    fn run_check_exclusively(
        &self,
        moved: DisturbedCheck<'_>,
        mut waited: bool,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        let DisturbedCheck {
            spec,
            mut written,
            disturbed,
            again,
        } = moved;
        let mut more = disturbed.is_none();
        let mut claim = self.take_rerun_claim(spec);
        loop {
            let look = match waited {
                true => self
                    .looks
                    .read_fresh_tree_snapshot(|| self.read_current_tree_snapshot()),
                false => self
                    .looks
                    .reuse_or_read_tree_snapshot(|| self.read_current_tree_snapshot()),
            };
            let look = match look {
                Ok(look) => look,
                Err(why) => {
                    self.ensure_not_cancelled()?;
                    let none = Digest::hash_bytes(b"");
                    return Ok(self.unreadable_tree_evidence(
                        spec,
                        none,
                        self.evidence_cache_key(spec, none),
                        &why,
                    ));
                }
            };
            let before = &look.reading;
            let subject = before.fact.verifier_input_digest(spec);
            let acts = before
                .fact
                .acts
                .map_or(0, |acts| acts.newest_voiding_act(spec));
            let key = self.evidence_cache_key(spec, subject);
            let Some(claim) = &claim else {
                match self.known_evidence_or_run_claim(spec, subject, key, acts, again)? {
                    EvidenceOrCheckClaim::Known(done) | EvidenceOrCheckClaim::Unavailable(done) => {
                        return Ok(*done);
                    }
                    // The tree may have changed while another had it.
                    EvidenceOrCheckClaim::Claimed(mine) => claim = Some(mine),
                }
                waited = true;
                continue;
            };
            let mut watch = before.watch_files(&self.runtime.place.root, &written);
            let ended = AtomicBool::new(false);
            let run = std::thread::scope(|scope| {
                let threads = ScopedThreads::new(self.system_interface(), scope);
                threads.spawn_scoped_thread(|| {
                    while !ended.load(Ordering::Relaxed) && !watch.is_empty() {
                        watch.poll_watched_files_once();
                        self.system_interface().sleep(WATCH_INTERVAL);
                    }
                });
                let run = self.run_check(spec, claim);
                ended.store(true, Ordering::Relaxed);
                run
            });
            self.ensure_not_cancelled()?;
            self.looks.record_evidence_time();
            let after = match self
                .looks
                .read_fresh_tree_snapshot(|| self.read_current_tree_snapshot())
            {
                Ok(after) => after,
                Err(why) => {
                    self.ensure_not_cancelled()?;
                    return Ok(self.unreadable_tree_evidence(spec, subject, key, &why));
                }
            };
            let wrote = before.changed_or_rewritten_paths(&after.reading, &spec.name);
            let unseen: Vec<String> = wrote
                .iter()
                .filter(|path| !written.contains(path))
                .cloned()
                .collect();
            let is_cut = run.report.cause == Some(InconclusiveCause::ReplyDeadline);
            if more && !is_cut && !unseen.is_empty() {
                more = false;
                written.extend(unseen);
                continue;
            }
            let lone = FilesChangedDuringSoloCheck {
                taken_away: watch.files_taken_away_during_check(),
                wrote,
                unseen,
            };
            return self.record_check_run(
                spec,
                run,
                &look,
                &after.reading,
                CheckRunInterference::Alone(lone),
            );
        }
    }

    /// Of a check that ran alone and left its inputs as they were: whether they were so all the time.
    pub(super) fn note_check_writing_own_inputs(
        &self,
        spec: &VerifierSpec,
        evidence: &mut Evidence,
        lone: FilesChangedDuringSoloCheck,
    ) {
        let place = &self.runtime.place;
        // What others wrote meanwhile is not its own.
        let neighbours = external_writes::externally_written_files(place);
        let own = |paths: &[String]| -> Vec<String> {
            let own = paths.iter().filter(|path| !neighbours.contains(path));
            own.cloned().collect()
        };
        let restored = own(&lone.taken_away);
        if !restored.is_empty() {
            if writing_checks::recorded_check_writes(place, spec).restores {
                evidence.retryable = Retryability::No;
            }
            writing_checks::record_check_writes(place, spec, &restored, true);
            return mark_evidence_inconclusive(
                evidence,
                InconclusiveCause::CheckRestores,
                restored,
            );
        }
        let wrote = own(&lone.wrote);
        if !wrote.is_empty() {
            evidence.check_writes = true;
            writing_checks::record_check_writes(place, spec, &wrote, false);
        }
        // Others than those that were watched, or otherwise for longer than it takes to write one.
        let moved = [lone.unseen, lone.taken_away].concat();
        if !moved.is_empty() {
            mark_evidence_inconclusive(evidence, InconclusiveCause::TreeMoving, moved);
        }
    }
}

/// The verdict says nothing, since these were written meanwhile.
pub(super) fn mark_evidence_inconclusive(
    evidence: &mut Evidence,
    cause: InconclusiveCause,
    moved: Vec<String>,
) {
    evidence.verdict = Verdict::Inconclusive;
    evidence.cause = Some(evidence.cause.unwrap_or(cause));
    evidence.check_writes = false;
    evidence.moved = moved.into_iter().take(20).collect();
}
