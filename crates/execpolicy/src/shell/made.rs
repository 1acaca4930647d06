//! Files that a request writes and then runs: their code was not there to be read beforehand.

use std::collections::BTreeSet;

use crate::effects;
use crate::effects::glob::{self, Hit};
use crate::effects::judge::Judged;
use crate::effects::place::{Spot, UNKNOWN};

/// Files that are kept in mind.
const MOST: usize = 256;

/// Rounds in which what is made of what was made is followed.
const ROUNDS: usize = 4;

/// What was written and what was run so far.
#[derive(Debug, Default)]
pub(super) struct Made {
    files: Vec<Spot>,
    /// Those of them that come from the network.
    fetched: Vec<Spot>,
    folders: Vec<Spot>,
    started: Vec<Spot>,
    programs: BTreeSet<String>,
    /// Whether a program of this request reads code from its input.
    pub(super) takes: bool,
    /// What commands make of other files; redirects are known only when all commands are.
    later: Vec<Judged>,
}

impl Made {
    /// A redirect, or a patch, writes these; `fetched`: what comes from the network.
    pub(super) fn written(&mut self, judged: &Judged, fetched: bool) {
        keep(&mut self.files, &judged.made);
        if fetched {
            keep(&mut self.fetched, &judged.made);
        }
        keep(&mut self.started, &judged.started);
    }

    /// A command of this program does this; `fed`: what it reads is made by another command;
    /// `fetched`: what it writes comes from the network.
    pub(super) fn command(
        &mut self,
        program: &str,
        judged: &mut Judged,
        (fed, fetched): (bool, bool),
    ) {
        if fed || effects::carries(program) {
            keep(&mut self.files, &judged.made);
            if fed && program != "patch" {
                keep(&mut self.folders, &judged.filled);
            }
        }
        if fetched {
            keep(&mut self.fetched, &judged.made);
        }
        keep(&mut self.started, &std::mem::take(&mut judged.started));
        if self.programs.len() < MOST {
            self.programs.insert(program.to_owned());
        }
        let makes = !judged.made.is_empty() || !judged.filled.is_empty();
        if makes && !judged.read.is_empty() && self.later.len() < MOST {
            self.later.push(Judged {
                made: std::mem::take(&mut judged.made),
                filled: std::mem::take(&mut judged.filled),
                read: std::mem::take(&mut judged.read),
                copied: std::mem::take(&mut judged.copied),
                ..Judged::default()
            });
        }
    }

    /// Follows what is made of what was made.
    pub(super) fn follow(&mut self) {
        let later = std::mem::take(&mut self.later);
        for judged in later.iter().cycle().take(later.len() * ROUNDS) {
            if judged.read.iter().any(|spot| self.holds(spot)) {
                keep(&mut self.files, &judged.made);
                keep(&mut self.folders, &judged.filled);
            }
            if judged.read.iter().any(|spot| self.fetches(spot)) {
                keep(&mut self.fetched, &judged.made);
            }
            for (from, to) in &judged.copied {
                let within = |file: &Spot| file.through(from, to);
                let moved: Vec<Spot> = self.files.iter().filter_map(within).collect();
                keep(&mut self.files, &moved);
                let moved: Vec<Spot> = self.fetched.iter().filter_map(within).collect();
                keep(&mut self.fetched, &moved);
            }
        }
    }

    /// Whether a path can be one of these files, or lie in one of these folders.
    fn holds(&self, spot: &Spot) -> bool {
        let below = |folder: &Spot| spot.through(folder, folder).is_some();
        self.files.iter().any(|file| meets(file, spot)) || self.folders.iter().any(below)
    }

    /// Whether a path can be a file that comes from the network.
    fn fetches(&self, spot: &Spot) -> bool {
        self.fetched.iter().any(|file| meets(file, spot))
    }

    /// A file that comes from the network and is run.
    pub(super) fn fetched_at_once(&self) -> Option<String> {
        let spot = self.started.iter().find(|spot| self.fetches(spot));
        spot.map(Spot::path)
    }

    /// What is written and run; `renamed`: folders are searched for programs that only this
    /// request knows.
    pub(super) fn at_once(&self, renamed: bool) -> Option<String> {
        if let Some(spot) = self.started.iter().find(|spot| self.holds(spot)) {
            return Some(spot.path());
        }
        let file = |name: &str| {
            let named = |file: &&Spot| file.name().is_some_and(|own| glob::meets(own, name));
            self.files.iter().find(named).map(Spot::path)
        };
        // A compiler starts an assembler, a build a shell.
        let bare = |file: &&Spot| file.name().is_some_and(|name| !name.contains('.'));
        if renamed
            && self.programs.contains("chmod")
            && let Some(spot) = self.files.iter().find(bare)
        {
            return Some(spot.path());
        }
        self.programs.iter().find_map(|program| {
            let own = renamed.then(|| file(program)).flatten();
            own.or_else(|| effects::loads(program).find_map(file))
        })
    }
}

fn keep(kept: &mut Vec<Spot>, more: &[Spot]) {
    for spot in more {
        if kept.len() < MOST && !kept.contains(spot) {
            kept.push(spot.clone());
        }
    }
}

/// Whether two paths can be one; of what is not known only the last part counts.
fn meets(file: &Spot, run: &Spot) -> bool {
    let (Some(own), Some(name)) = (file.name(), run.name()) else {
        return false;
    };
    if file.is_open() || run.is_open() {
        return !own.contains(UNKNOWN) && !name.contains(UNKNOWN) && glob::meets(own, name);
    }
    let (file, run) = (file.path(), run.path());
    let file: Vec<&str> = file.split('/').collect();
    let run: Vec<&str> = run.split('/').collect();
    glob::names(&file, &run, false) != Hit::No
}
