//! Which verdicts a task holds, and what of them was told.
//!
//! Stops of several scopes may be judged at once, each on the tree it was asked on. So a
//! verdict is kept as long as one of them rests on it, whoever's evidence comes in between:
//! otherwise the order of arrival would decide (law 4).

use super::{Held, MAX_TOLD, Pending, Task, Told};
use crate::digest::Short;
use crate::evidence::EvidenceFact;
use crate::ids::{Seq, VerifierName};

impl Task {
    /// Holds what came back for `stop`.
    pub(super) fn keep(&mut self, fact: &EvidenceFact, stop: Seq) {
        let mut new = Held {
            fact: fact.clone(),
            stop,
        };
        let scopes = &self.scopes;
        self.verdicts.retain(|held| {
            if held.fact.verifier != new.fact.verifier {
                return true;
            }
            let replaced = held.fact.subject == new.fact.subject
                && (held.stop == stop || (!held.is_cut() && !new.is_cut()));
            if replaced {
                new.stop = new.stop.max(held.stop);
            }
            let mut pending = scopes.iter().filter_map(|scope| scope.pending.as_ref());
            !replaced && pending.any(|pending| pending.rests_on(held))
        });
        // Sorted, so that the order of arrival leaves no trace.
        let at = self.verdicts.partition_point(|held| {
            (&held.fact.verifier, held.stop) <= (&new.fact.verifier, new.stop)
        });
        self.verdicts.insert(at, new);
    }

    /// A stop was answered: what nobody rests on any more goes, and if it was the main one
    /// what was told is compared with what is still there.
    pub(super) fn close_stop(&mut self, main: bool) {
        let newest: Vec<(VerifierName, Seq)> = self
            .verdicts
            .iter()
            .filter_map(|held| self.held(&held.fact.verifier))
            .map(|held| (held.fact.verifier.clone(), held.stop))
            .collect();
        let scopes = &self.scopes;
        self.verdicts.retain(|held| {
            let mut pending = scopes.iter().filter_map(|scope| scope.pending.as_ref());
            let is_newest = newest
                .iter()
                .any(|(name, stop)| *name == held.fact.verifier && *stop == held.stop);
            is_newest || pending.any(|pending| pending.rests_on(held))
        });
        if !main {
            return;
        }
        for told in &mut self.told {
            let held = self
                .verdicts
                .iter()
                .filter(|held| held.fact.verifier == told.verifier)
                .max_by_key(|held| held.stop);
            for (finding, there) in &mut told.findings {
                *there = held.is_some_and(|held| held.fact.findings.contains(finding));
            }
        }
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
    /// Whether this stop is, or may come to be, settled by this verdict.
    fn rests_on(&self, held: &Held) -> bool {
        let about = held.fact.subject;
        let read = self
            .tree
            .as_ref()
            .is_ok_and(|tree| tree.subject(&held.fact.verifier) == about);
        let asked = self
            .asked
            .iter()
            .any(|(name, subject)| *name == held.fact.verifier && *subject == about.short());
        (read || asked || self.message == about) && held.settles(about, self.stop)
            || held.stop == self.stop
    }
}
