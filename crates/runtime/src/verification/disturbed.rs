//! Handles checks whose inputs were written while they ran. Files that change while nothing of ours
//! runs belong to a neighbour and are waited for; anything else is settled by a run of the check
//! alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;
use checkrein_core::evidence::{CheckRetryability, Evidence, InconclusiveCause, Verdict};
use checkrein_core::ids::UnixMillis;
use checkrein_core::policy::VerifierSpec;

use super::{
    CheckExecutionResult, KnownEvidenceOrRunClaim, ReturnedEvidence, VerificationBatchContext,
};
use crate::error::RuntimeError;
use crate::external_writes;
use crate::system::ScopedThreads;
use crate::tree_snapshots::TreeSnapshot;
use crate::writing_checks;

/// The interval at which files that a check wrote before are polled.
const WATCH_INTERVAL: Duration = Duration::from_millis(15);
/// The longest search for neighbours. It lasts as long as the disturbed check ran, up to this.
const MAX_DETECTION_TIME: Duration = Duration::from_secs(1);

/// A check whose inputs were written while it ran, or that was seen to write them before.
pub(crate) struct DisturbedCheck<'a> {
    pub(super) spec: &'a VerifierSpec,
    /// The files that were written.
    pub(super) written: Vec<String>,
    /// The disturbed run; `None` if the check has not run yet.
    pub(super) disturbed: Option<DisturbedCheckRun>,
    /// As of [`super::VerifierRunRequest`].
    pub(super) again: Option<UnixMillis>,
}

/// A run during which files were written.
pub(super) struct DisturbedCheckRun {
    pub(super) run: CheckExecutionResult,
    pub(super) before: Arc<TreeSnapshot>,
    pub(super) after: Arc<TreeSnapshot>,
}

/// How a check ran.
pub(super) enum CheckRunInterference {
    /// Nothing that it reads was written; others may have run beside it.
    Undisturbed,
    /// It ran with nothing of ours beside it.
    Alone(FilesChangedDuringSoloCheck),
    /// Neighbours wrote these files while it ran.
    WithExternalWrites(Vec<String>),
}

/// The changes to files while a check ran alone.
pub(super) struct FilesChangedDuringSoloCheck {
    /// Those that were written.
    wrote: Vec<String>,
    /// Watched files that were missing or different for a while.
    taken_away: Vec<String>,
    /// Written, but not watched.
    unseen: Vec<String>,
}

impl<'a> VerificationBatchContext<'a> {
    /// Looks, while no check runs, whether somebody writes the files that were written during the
    /// checks. Returns how long to wait for that; `None` if this stop has waited before.
    pub(super) fn wait_time_if_others_write_checked_files(
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
        // Asked before and after the watch: a check of another process may begin or end in between.
        let is_quiet = !self.is_any_tree_check_running_elsewhere()?;
        let theirs = external_writes::watch_files_for_writes(place, &written, time, self.patience);
        let known = external_writes::files_written_by_others(place);
        let is_new = theirs.iter().any(|path| !known.contains(path));
        // What a check of another process writes is no neighbour's.
        let are_neighbours = is_quiet && !self.is_any_tree_check_running_elsewhere()?;
        if are_neighbours {
            external_writes::record_writes_between_checks(place, &theirs);
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

    /// Whether another process runs a check of this tree.
    fn is_any_tree_check_running_elsewhere(&self) -> Result<bool, RuntimeError> {
        let is_check =
            |spec: &&VerifierSpec| spec.is_hard_tree_check() && !self.holds_claim_for_rerun(spec);
        let mut slots = self.policy.verifiers.iter().filter(is_check);
        // For a check of the tree the slot does not depend on the key.
        let key = Digest::hash_bytes(b"");
        slots.try_fold(false, |runs, spec| {
            let slot = self.check_run_claim_key(spec, key);
            // A slot that can be claimed is free. The claim is dropped at once.
            Ok(runs || self.runtime.store.try_claim_effect(&slot)?.is_none())
        })
    }

    /// Runs a check once more if only neighbours disturbed it and they hold still by then; any
    /// other check runs alone.
    pub(super) fn rerun_disturbed_check(
        &self,
        mut moved: DisturbedCheck<'a>,
        wait_until: Option<Instant>,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        let place = &self.runtime.place;
        let neighbours = external_writes::files_written_by_others(place);
        let by_neighbours = |ran: &DisturbedCheckRun| {
            let packages = ran
                .before
                .reading
                .changed_installed_package_markers(&ran.after.reading);
            let only_theirs = moved.written.iter().all(|path| neighbours.contains(path));
            packages.is_empty() && !moved.written.is_empty() && only_theirs
        };
        if !moved.disturbed.as_ref().is_some_and(by_neighbours) {
            return self.run_check_exclusively(moved, false);
        }
        // A process that waits for the slot need not wait for neighbours as well.
        drop(self.remove_kept_rerun_claim(moved.spec));
        let is_still = wait_until.is_some_and(|until| {
            external_writes::wait_until_files_unchanged(place, &moved.written, until, self.patience)
        });
        self.ensure_not_cancelled()?;
        // The neighbours never held still. The run is recorded as inconclusive, since another one
        // would be disturbed as well.
        let Some(ran) = moved.disturbed.take_if(|_| !is_still) else {
            return self.run_check_exclusively(moved, true);
        };
        let ran_beside = CheckRunInterference::WithExternalWrites(moved.written);
        let after = &ran.after.reading;
        let done = self.record_check_run(moved.spec, ran.run, &ran.before, after, ran_beside)?;
        // The reading after the run is older than the wait.
        Ok(ReturnedEvidence {
            run_here: false,
            ..done
        })
    }

    /// Runs a check with nothing else running, while the files that were written before are
    /// watched. A check that begins here has one more run, since what it writes depends on what it
    /// finds. A check that waited reads the tree anew.
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
        let mut claim = self.remove_kept_rerun_claim(spec);
        loop {
            let look = match waited {
                true => self
                    .looks
                    .read_fresh_tree_snapshot(|| self.read_current_tree_snapshot()),
                false => self
                    .looks
                    .reuse_any_snapshot_or_read(|| self.read_current_tree_snapshot()),
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
            // The claim was given back: another process may have found the evidence since.
            let Some(claim) = &claim else {
                match self.known_evidence_or_run_claim(spec, subject, key, acts, again)? {
                    KnownEvidenceOrRunClaim::Known(done)
                    | KnownEvidenceOrRunClaim::Unavailable(done) => {
                        return Ok(*done);
                    }
                    // The tree may have changed while another process held the claim.
                    KnownEvidenceOrRunClaim::Claimed(mine) => claim = Some(mine),
                }
                waited = true;
                continue;
            };
            // Two readings do not show that a file was gone in between. The watched files are
            // polled during the run.
            let mut watch = before.file_content_watch(&self.runtime.place.root, &written);
            let ended = AtomicBool::new(false);
            let run = std::thread::scope(|scope| {
                let threads = ScopedThreads::new(self.system_interface(), scope);
                threads.spawn_scoped_thread(|| {
                    while !ended.load(Ordering::Relaxed) && !watch.is_empty() {
                        watch.record_changes_of_watched_files();
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
            let wrote = before.paths_touched_between_readings(&after.reading, &spec.name);
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
                taken_away: watch.files_differing_too_long(),
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

    /// Notes whether a check that ran alone and left its inputs as they were changed them
    /// meanwhile.
    pub(super) fn note_check_writing_own_inputs(
        &self,
        spec: &VerifierSpec,
        evidence: &mut Evidence,
        lone: FilesChangedDuringSoloCheck,
    ) {
        let place = &self.runtime.place;
        // What neighbours wrote meanwhile is not the check's own.
        let neighbours = external_writes::files_written_by_others(place);
        let own = |paths: &[String]| -> Vec<String> {
            let own = paths.iter().filter(|path| !neighbours.contains(path));
            own.cloned().collect()
        };
        let restored = own(&lone.taken_away);
        if !restored.is_empty() {
            // It did the same before, so a further run would come to the same.
            if writing_checks::recorded_check_writes(place, spec).restores {
                evidence.retryable = CheckRetryability::No;
            }
            writing_checks::add_files_written_by_check(place, spec, &restored, true);
            return mark_evidence_inconclusive(
                evidence,
                InconclusiveCause::CheckRestores,
                restored,
            );
        }
        let wrote = own(&lone.wrote);
        if !wrote.is_empty() {
            evidence.check_writes = true;
            writing_checks::add_files_written_by_check(place, spec, &wrote, false);
        }
        // Files that were not watched, or that differed for longer than it takes to write one.
        let moved = [lone.unseen, lone.taken_away].concat();
        if !moved.is_empty() {
            mark_evidence_inconclusive(evidence, InconclusiveCause::TreeMoving, moved);
        }
    }
}

/// Makes evidence inconclusive because these files were written meanwhile.
pub(super) fn mark_evidence_inconclusive(
    evidence: &mut Evidence,
    cause: InconclusiveCause,
    moved: Vec<String>,
) {
    evidence.verdict = Verdict::Inconclusive;
    // A cause that the check gave itself is kept.
    evidence.cause = Some(evidence.cause.unwrap_or(cause));
    evidence.check_writes = false;
    evidence.moved = moved.into_iter().take(20).collect();
}
