//! The hook's side.

use std::sync::mpsc::Sender;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::evidence::{EvidenceOrigin, InconclusiveCause, Retryability};
use checkrein_core::ids::UnixMillis;
use checkrein_core::policy::VerifierSpec;
use checkrein_verifiers::VerifierReport;

use super::link::{Heard, HookSays, OwnerLink, OwnerSays};
use super::records::{FoundOwner, OwnerRecord, entered, running};
use super::{OwnedBatch, OwnedCheck};
use crate::delivery::Progress;
use crate::error::RuntimeError;
use crate::perform::{Answer, Batch, Done, Found, Wanted};
use crate::{kept, printed};

/// After so many lost owners a session has none any more: here no process may outlive its hook.
const MOST_LOST: usize = 2;

/// An owner at work.
pub(crate) struct Owned {
    link: OwnerLink,
    /// What it is to find out.
    pub(crate) wanted: Vec<Wanted>,
    since: UnixMillis,
}

impl<'a> Batch<'a> {
    /// Hands to an owner what may outlast the answer. `None` where nothing may, or no owner can be: then
    /// this process runs what it can in its time, as for what another owner is finding out already.
    pub(crate) fn hand_over(&self, wanted: &[Wanted]) -> Option<Owned> {
        let start = self.runtime.start_owner.as_ref()?;
        let session = self.session?;
        let left = self.patience.deadline?;
        let left = left.saturating_duration_since(self.system().monotonic_now());
        if self.origin != EvidenceOrigin::Gate || printed::may_be_into(&self.runtime.place.root) {
            return None;
        }
        let outlasts = |checks: &[(&VerifierSpec, &Wanted)]| {
            let mut checks = checks.iter();
            checks.any(|(spec, _)| may_outlast(spec, left))
        };
        let mut unknown: Vec<(&VerifierSpec, &Wanted)> = wanted
            .iter()
            .filter_map(|want| Some((self.policy.verifier_spec(&want.verifier)?, want)))
            .filter(|(spec, _)| spec.is_tree_check())
            .collect();
        // Mostly the agent waits long enough, and nothing more is asked.
        if !outlasts(&unknown) {
            return None;
        }
        unknown.retain(|(spec, want)| !self.is_known(spec, want));
        if !outlasts(&unknown) {
            return None;
        }
        let place = &self.runtime.place;
        let policy = Digest::hash_bytes(&self.policy.to_policy_blob());
        let found = entered(&place.state);
        let of_session = |owner: &&FoundOwner| owner.record.batch.session == *session;
        let lost = found.iter().filter(of_session);
        if lost.filter(|owner| !owner.lives()).count() >= MOST_LOST {
            return None;
        }
        let here = |owner: &&FoundOwner| owner.record.batch.root == place.root && owner.lives();
        let mut checks = Vec::new();
        for (_, want) in unknown {
            let check = OwnedCheck {
                verifier: want.verifier.clone(),
                content: want.content,
                acts: want.acts,
                again: want.again,
            };
            let mut joined = false;
            for owner in found.iter().filter(here) {
                match check.beside(&owner.record, policy) {
                    Beside::Joined => joined = true,
                    // What it runs is about what is not there any more.
                    Beside::Outdated => owner.cancel(self.system()),
                    Beside::Stale if of_session(&owner) => owner.cancel(self.system()),
                    Beside::Stale | Beside::Apart => {}
                }
            }
            if !joined {
                checks.push(check);
            }
        }
        if checks.is_empty() {
            return None;
        }
        let batch = OwnedBatch {
            id: self.system().unique_name(),
            root: place.root.clone(),
            state: place.state.clone(),
            addresses: place.addresses,
            session: session.clone(),
            policy,
            since: self.since,
            agent: self.system().agent()?,
            checks,
            longest_wait_ms: u64::try_from(self.looks.longest_wait.as_millis()).unwrap_or(u64::MAX),
        };
        let link = start(&batch.id).ok()?;
        link.say(&batch).ok()?;
        let is_owned = |want: &&Wanted| {
            let mut checks = batch.checks.iter();
            checks.any(|check| check.verifier == want.verifier)
        };
        Some(Owned {
            link,
            wanted: wanted.iter().filter(is_owned).cloned().collect(),
            since: self.now(),
        })
    }

    /// Passes on what an owner finds, until the answer is due: then it goes on alone. What an owner that
    /// was lost leaves is found out here.
    pub(crate) fn wait_for_owner(&self, owned: Owned, sender: &Sender<Answer<'a>>) {
        let Owned {
            mut link,
            mut wanted,
            since,
        } = owned;
        let send = |answer| {
            // A receiver that is gone has failed already and says so.
            let _ = sender.send(answer);
        };
        while !wanted.is_empty() {
            if let Err(cancelled) = self.check_cancelled() {
                return send(Err(cancelled));
            }
            if self.patience.is_over(self.system()) {
                // An owner that cannot be told to go on ends with this link.
                if link.say(&HookSays::Keep).is_err() {
                    break;
                }
                self.looks.goes_on_elsewhere();
                for want in &wanted {
                    send(self.still_running(want, since));
                }
                return;
            }
            match link.hear() {
                Heard::Said(OwnerSays::Started { verifier, command }) => {
                    (self.progress)(Progress::Started { verifier, command });
                }
                Heard::Said(OwnerSays::Done { run }) => match self.found_by_owner(&wanted, run) {
                    Ok(Some(done)) => {
                        wanted.retain(|want| want.verifier != done.evidence.verifier);
                        self.looks.found_out();
                        self.looks.found_elsewhere();
                        send(Ok(Found::Done(Box::new(done))));
                    }
                    Ok(None) => {}
                    Err(error) => return send(Err(error)),
                },
                Heard::Nothing => {}
                Heard::End => break,
            }
        }
        drop(link);
        for want in &wanted {
            if let Some(spec) = self.policy.verifier_spec(&want.verifier) {
                self.first(spec, want, self.looks.begin_check(), sender);
            }
        }
    }

    fn found_by_owner(&self, wanted: &[Wanted], run: Digest) -> Result<Option<Done>, RuntimeError> {
        let kept = self.runtime.store.read_evidence(&run)?;
        let found = kept.and_then(|kept| kept::run(run, &kept.bytes));
        let is_wanted = |run: &kept::Run| {
            let mut wanted = wanted.iter();
            wanted.any(|want| want.verifier == run.evidence.verifier)
        };
        Ok(found.filter(is_wanted).map(|run| Done {
            key: run.id,
            began: run.began,
            evidence: run.evidence,
            cached: false,
            parked: None,
            run_here: false,
        }))
    }

    fn still_running(&self, want: &Wanted, since: UnixMillis) -> Answer<'a> {
        let Some(spec) = self.policy.verifier_spec(&want.verifier) else {
            return Err(RuntimeError::Deadline);
        };
        let done = self.owned_elsewhere(spec, want.content, since)?;
        Ok(Found::Done(Box::new(done)))
    }

    /// What is said of a check that an owner goes on with, kept apart from its runs.
    pub(crate) fn owned_elsewhere(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
        since: UnixMillis,
    ) -> Result<Done, RuntimeError> {
        let now = self.now();
        let report = VerifierReport {
            note: Some(still_running_words(now.millis_since(since))),
            ..VerifierReport::inconclusive_report(
                InconclusiveCause::ClaimedElsewhere,
                Retryability::Yes,
                "",
            )
        };
        let none = Digest::hash_bytes(b"");
        let evidence = self.evidence(spec, report, subject, subject, none, none);
        let key = self.key(spec, subject);
        let key = kept::put_apart(&*self.runtime.store, &key, kept::When::now(now), &evidence)?;
        Ok(Done {
            key,
            evidence,
            cached: false,
            began: now,
            parked: None,
            run_here: false,
        })
    }

    /// Since when an owner is finding out what this process waits for.
    pub(crate) fn owned_since(&self, spec: &VerifierSpec, subject: Digest) -> Option<UnixMillis> {
        let place = &self.runtime.place;
        running(&place.state, &place.root, spec, subject)
    }
}

/// How a check that is wanted stands to what an owner does.
enum Beside {
    /// It is the same.
    Joined,
    /// The same check, about other files or by another policy.
    Outdated,
    /// The same, but something was done since.
    Stale,
    /// Another check, or the same one before it was to run once more.
    Apart,
}

impl OwnedCheck {
    fn beside(&self, owner: &OwnerRecord, policy: Digest) -> Beside {
        let batch = &owner.batch;
        let mut checks = batch.checks.iter();
        match checks.find(|check| check.verifier == self.verifier) {
            None => Beside::Apart,
            Some(check) if check.content != self.content || batch.policy != policy => {
                Beside::Outdated
            }
            Some(check) if check.acts < self.acts => Beside::Stale,
            // Its run says nothing of what was mended since; ours begins when that one is at its end.
            Some(_) if self.again.is_some_and(|since| owner.since < since) => Beside::Apart,
            Some(_) => Beside::Joined,
        }
    }
}

fn may_outlast(spec: &VerifierSpec, left: Duration) -> bool {
    let longest = spec.timeout_ms.saturating_mul(u64::from(spec.retries) + 1);
    Duration::from_millis(longest) > left
}

fn still_running_words(ms: u64) -> String {
    let seconds = ms / 1000;
    let span = match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    };
    format!(
        "still running for {span}; stop again when you have nothing else to do; changing files starts it again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_check_is_joined_outdated_stale_or_apart() {
        let check = |verifier: &str, content: &[u8], acts, again: Option<u64>| OwnedCheck {
            verifier: verifier.into(),
            content: Digest::hash_bytes(content),
            acts,
            again: again.map(UnixMillis),
        };
        let policy = Digest::hash_bytes(b"a policy");
        let owner = OwnerRecord {
            since: UnixMillis(100),
            batch: OwnedBatch {
                id: "one".to_owned(),
                root: "/project".into(),
                state: "/state".into(),
                addresses: true,
                session: checkrein_core::ids::SessionId::new("a session"),
                policy,
                since: None,
                checks: vec![check("tests", b"files", 5, None)],
                longest_wait_ms: 0,
                agent: crate::owner::ProcessId::new(1, 1),
            },
        };
        let beside = |wanted: OwnedCheck, policy| match wanted.beside(&owner, policy) {
            Beside::Joined => "joined",
            Beside::Outdated => "outdated",
            Beside::Stale => "stale",
            Beside::Apart => "apart",
        };
        assert_eq!(beside(check("lint", b"files", 5, None), policy), "apart");
        assert_eq!(
            beside(check("tests", b"others", 5, None), policy),
            "outdated"
        );
        let other = Digest::hash_bytes(b"another");
        assert_eq!(beside(check("tests", b"files", 5, None), other), "outdated");
        assert_eq!(beside(check("tests", b"files", 6, None), policy), "stale");
        assert_eq!(beside(check("tests", b"files", 5, None), policy), "joined");
        assert_eq!(beside(check("tests", b"files", 4, None), policy), "joined");
        // It began before what it is to find was asked for.
        assert_eq!(
            beside(check("tests", b"files", 5, Some(101)), policy),
            "apart"
        );
        assert_eq!(
            beside(check("tests", b"files", 5, Some(100)), policy),
            "joined"
        );
    }

    #[test]
    fn a_check_may_outlast_what_its_timeout_and_retries_exceed() {
        let mut spec = crate::owner::records::tests::spec("tests");
        spec.timeout_ms = 10_000;
        spec.retries = 2;
        assert!(may_outlast(&spec, Duration::from_millis(29_999)));
        assert!(!may_outlast(&spec, Duration::from_secs(30)));
    }

    #[test]
    fn words_say_how_long_it_has_been_running() {
        let of = |ms| still_running_words(ms).split(';').next().map(str::to_owned);
        assert_eq!(of(999).as_deref(), Some("still running for 0 s"));
        assert_eq!(of(59_999).as_deref(), Some("still running for 59 s"));
        assert_eq!(of(60_000).as_deref(), Some("still running for 1 min"));
        assert_eq!(of(250_000).as_deref(), Some("still running for 4 min 10 s"));
    }
}
