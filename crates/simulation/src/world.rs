//! The machine in memory: files with virtual stamps, programs, and something outside of it all that checks read.
//! Whatever changes is written down with its time, so that what a check would have said is known of each moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_verifiers::file_system::{FileKind, FileStamp, FileStat, OpenFile, OpenFolder};

use crate::plan::{CheckPlan, Plan, Subject};
use crate::scheduler::{Process, Scheduler, Time};

/// The simulation begins at this time of the wall clock, in nanoseconds since 1970.
const BEGINNING: i64 = 1_700_000_000_000_000_000;
/// So much of a file comes in one piece.
const PIECE: usize = 4;
/// After so long what is written through a mapping shows in the stamp.
const LATEST_SHOWN: Duration = Duration::from_secs(30);
/// What the file system takes for each call, at most.
const SLOWEST_CALL: u32 = 60;

/// The machine.
#[derive(Debug)]
pub(crate) struct World {
    /// Who runs, and when.
    pub(crate) scheduler: Arc<Scheduler>,
    /// Where the tree is.
    pub(crate) root: PathBuf,
    /// How coarse the clock of the file system is.
    tick: Duration,
    checks: Vec<CheckPlan>,
    /// One that passes is enough.
    any_is_enough: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, File>,
    inodes: u64,
    /// Versions of programs by name; an even one is good.
    programs: BTreeMap<String, u64>,
    /// What checks read beyond this machine; an even one is good.
    outside: u64,
    /// Changes that were made by whoever is no check.
    changes: u64,
    /// From when on all checks would pass, or would not.
    passes: Vec<(Time, bool)>,
    /// The same if all were well outside.
    passes_but_outside: Vec<(Time, bool)>,
    /// Which checks are running, by whom.
    running: Vec<(String, Process)>,
    /// How often each process has begun to read the tree, and when it did last.
    looks: BTreeMap<Process, (u32, Time)>,
    /// How often each process has run each check.
    runs: BTreeMap<(Process, String), u32>,
    /// Findings by the run that made them.
    findings: BTreeMap<u64, Finished>,
    /// How much had been changed when each run began.
    begun: BTreeMap<u64, (Time, u64)>,
    /// When the newest run of each check began, by the wall clock.
    newest_began_ns: BTreeMap<String, i64>,
    /// Who holds which claim, and from when on it is free after its holder was killed.
    claims: BTreeMap<Digest, Process>,
    story: Vec<(Time, String)>,
    violations: Vec<String>,
    /// By how much the wall clock is ahead of the virtual time, since the beginning.
    clock_ahead_ns: i64,
    /// How many have Checkrein switched off.
    off_by: u32,
    /// Calls that changed what is outside, by their sessions: when they began, and when they were reported.
    outside_calls: Vec<(String, Time, Option<Time>)>,
    /// How often a person sealed, or a call was made while it was off: what passed before is asked anew.
    renewals: u64,
    /// Hooks at work that count one.
    acts_being_counted: u32,
}

/// A run that was not cut.
#[derive(Debug, Clone)]
struct Finished {
    check: String,
    findings: BTreeSet<String>,
    ended: Time,
}

#[derive(Debug, Clone)]
struct File {
    content: Vec<u8>,
    inode: u64,
    /// When it was written last so that its stamp shows it.
    changed: Time,
    stamp_ns: i64,
}

/// When a file is written: in virtual time, and by its stamp.
#[derive(Debug, Clone, Copy)]
struct When {
    changed: Time,
    stamp_ns: i64,
}

impl When {
    const BEGINNING: Self = Self {
        changed: Time::ZERO,
        stamp_ns: BEGINNING,
    };
}

impl World {
    /// One with the checks of this plan; all that they read is good.
    pub(crate) fn new(scheduler: Arc<Scheduler>, root: &Path, plan: &Plan) -> Arc<Self> {
        let checks = &plan.checks;
        let world = Self {
            scheduler,
            root: root.to_owned(),
            tick: plan.tick,
            checks: checks.clone(),
            any_is_enough: plan.any_is_enough,
            state: Mutex::default(),
        };
        let ignored = crate::run::IGNORED;
        world.state().write(
            &root.join(".gitignore"),
            ignored.as_bytes(),
            When::BEGINNING,
        );
        for subject in checks.iter().flat_map(|check| &check.reads) {
            world
                .state()
                .set(&world.root, subject, true, When::BEGINNING);
        }
        world.note_passes();
        Arc::new(world)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, and what is written into stamps.
    fn stamp_time(&self) -> When {
        let (changed, wall_ns) = (self.scheduler.now(), self.wall_ns());
        let tick = i64::try_from(self.tick.as_nanos()).unwrap_or(1).max(1);
        let stamp_ns = wall_ns - wall_ns % tick;
        When { changed, stamp_ns }
    }

    fn did(&self) {
        let took = self.scheduler.random(SLOWEST_CALL);
        self.scheduler.did(Duration::from_micros(u64::from(took)));
    }

    /// Somebody who is no check makes it good or bad.
    pub(crate) fn change(&self, subject: &Subject, good: bool, who: &str) {
        let stamp = self.stamp_time();
        let mut state = self.state();
        state.set(&self.root, subject, good, stamp);
        state.changes += 1;
        drop(state);
        self.note_passes();
        self.tell(format!("{who} makes {subject} {}", word(good)));
        self.did();
    }

    /// The same to a file through a mapping: its stamp stays, unless it is as old as a page that is written
    /// through a mapping may be before it shows.
    pub(crate) fn change_mapped(&self, subject: &Subject, good: bool, who: &str) {
        let stamp = self.stamp_time();
        let mut state = self.state();
        let old = match subject {
            Subject::File(name) => {
                let file = state.files.get(&self.root.join(name));
                let is_recent = |age: Duration| age < LATEST_SHOWN;
                let file = file.filter(|f| is_recent(stamp.changed.saturating_sub(f.changed)));
                file.map(|file| (self.root.join(name), file.changed, file.stamp_ns))
            }
            Subject::Program(_) | Subject::Outside => None,
        };
        state.set(&self.root, subject, good, stamp);
        if let Some((path, changed, stamp_ns)) = old
            && let Some(file) = state.files.get_mut(&path)
        {
            (file.changed, file.stamp_ns) = (changed, stamp_ns);
        }
        state.changes += 1;
        drop(state);
        self.note_passes();
        self.tell(format!(
            "{who} makes {subject} {} through a mapping",
            word(good)
        ));
        self.did();
    }

    /// A check writes what it wants; `None` removes it.
    pub(crate) fn write_by_check(&self, name: &str, content: Option<&[u8]>) {
        let stamp = self.stamp_time();
        let path = self.root.join(name);
        let mut state = self.state();
        match content {
            Some(content) => state.write(&path, content, stamp),
            None => {
                state.files.remove(&path);
            }
        }
        drop(state);
        self.note_passes();
        self.did();
    }

    /// What a check reads there.
    pub(crate) fn read_by_check(&self, subject: &Subject) -> bool {
        let good = self.state().is_good(&self.root, subject);
        self.did();
        good
    }

    /// Content of a file.
    pub(crate) fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = state.files.get(&self.root.join(name))?;
        Some(file.content.clone())
    }

    /// The version of a program, if there is one of that name.
    pub(crate) fn program(&self, name: &str) -> Option<u64> {
        self.state().programs.get(name).copied()
    }

    /// How often whoever is no check changed something.
    pub(crate) fn changes(&self) -> u64 {
        self.state().changes
    }

    fn note_passes(&self) {
        let now = self.scheduler.now();
        let mut state = self.state();
        let passes = self.passes(|subject| state.is_good(&self.root, subject));
        let but_outside = self
            .passes(|subject| *subject == Subject::Outside || state.is_good(&self.root, subject));
        note(&mut state.passes, now, passes);
        note(&mut state.passes_but_outside, now, but_outside);
    }

    fn passes(&self, is_good: impl Fn(&Subject) -> bool) -> bool {
        let mut passing = self
            .checks
            .iter()
            .map(|check| check.reads.iter().all(&is_good));
        match self.any_is_enough {
            true => passing.any(|passes| passes),
            false => passing.all(|passes| passes),
        }
    }

    /// Whether all checks would have passed at some moment of this span, were all well outside.
    pub(crate) fn passed_but_outside_within(&self, from: Time, to: Time) -> bool {
        any_within(&self.state().passes_but_outside, from, to, true)
    }

    /// Whether all checks would have passed at some moment of this span.
    pub(crate) fn passed_within(&self, from: Time, to: Time) -> bool {
        any_within(&self.state().passes, from, to, true)
    }

    /// Whether some check would have failed at some moment of this span.
    pub(crate) fn failed_within(&self, from: Time, to: Time) -> bool {
        any_within(&self.state().passes, from, to, false)
    }

    /// A check begins; the number is this run's.
    pub(crate) fn begin_run(&self, check: &str, process: Process) -> u64 {
        let wall_ns = self.wall_ns();
        let mut state = self.state();
        if let Some((_, other)) = state.running.iter().find(|(name, _)| name == check) {
            let other = *other;
            state.violations.push(format!(
                "two runs of one check overlap: {check}, by {process:?} and by {other:?}"
            ));
        }
        state.running.push((check.to_owned(), process));
        *state.runs.entry((process, check.to_owned())).or_default() += 1;
        let run = u64::from(state.runs.values().sum::<u32>());
        let begun = (self.scheduler.now(), state.changes);
        state.begun.insert(run, begun);
        state.newest_began_ns.insert(check.to_owned(), wall_ns);
        drop(state);
        self.tell(format!("{process:?} runs {check}"));
        run
    }

    /// It ends, with these findings unless it was cut.
    pub(crate) fn end_run(
        &self,
        check: &str,
        process: Process,
        run: u64,
        findings: Option<BTreeSet<String>>,
    ) {
        let mut state = self.state();
        let found = state
            .running
            .iter()
            .position(|(name, by)| name == check && *by == process);
        if let Some(found) = found {
            state.running.remove(found);
        }
        let now = self.scheduler.now();
        if let Some(findings) = findings {
            let finished = Finished {
                check: check.to_owned(),
                findings,
                ended: now,
            };
            state.findings.insert(run, finished);
        }
    }

    /// What a run of this check found. `None` if it did not run, or if a later one, since which nothing was
    /// changed, found something else before this time.
    pub(crate) fn findings_of(&self, check: &str, run: u64, by: Time) -> Option<BTreeSet<String>> {
        let state = self.state();
        let told = state
            .findings
            .get(&run)
            .filter(|told| told.check == check)?;
        let is_the_last_word = |(later, finished): (&u64, &Finished)| {
            let begun = state.begun.get(later);
            let nothing_changed =
                |(begun, changes): &(Time, u64)| *begun >= told.ended && *changes == state.changes;
            finished.check == check
                && finished.ended <= by
                && finished.findings != told.findings
                && begun.is_some_and(nothing_changed)
        };
        let mut later = state.findings.range(run + 1..);
        (!later.any(is_the_last_word)).then(|| told.findings.clone())
    }

    /// When the newest run of a check began, by the wall clock.
    pub(crate) fn newest_began_ns(&self, check: &str) -> Option<i64> {
        self.state().newest_began_ns.get(check).copied()
    }

    /// Whether any check is running.
    pub(crate) fn is_anything_running(&self) -> bool {
        !self.state().running.is_empty()
    }

    /// How often this process has run this check.
    pub(crate) fn runs_of(&self, process: Process, check: &str) -> u32 {
        let state = self.state();
        let runs = state.runs.get(&(process, check.to_owned()));
        runs.copied().unwrap_or(0)
    }

    /// How often this process has begun to read the tree, and when it did last.
    pub(crate) fn looks_of(&self, process: Process) -> (u32, Time) {
        let state = self.state();
        state.looks.get(&process).copied().unwrap_or_default()
    }

    /// Takes a claim for a process, if nobody has it.
    pub(crate) fn claim(&self, key: &Digest, process: Process) -> bool {
        let mut state = self.state();
        let is_free = !state.claims.contains_key(key);
        if is_free {
            state.claims.insert(*key, process);
        }
        is_free
    }

    /// Gives a claim back.
    pub(crate) fn give_back(&self, key: &Digest, process: Process) {
        let mut state = self.state();
        if state.claims.get(key) == Some(&process) {
            state.claims.remove(key);
        }
    }

    /// Frees all claims of a process that is gone.
    pub(crate) fn free_claims(&self, process: Process) {
        self.state().claims.retain(|_, by| *by != process);
    }

    /// Ends the runs of a process that is gone.
    pub(crate) fn forget_runs(&self, process: Process) {
        self.state().running.retain(|(_, by)| *by != process);
    }

    /// Adds a line to the story.
    pub(crate) fn tell(&self, line: impl Into<String>) {
        let now = self.scheduler.now();
        self.state().story.push((now, line.into()));
    }

    /// Something happened that must not.
    pub(crate) fn violation(&self, what: impl Into<String>) {
        let what = what.into();
        self.tell(format!("VIOLATION: {what}"));
        self.state().violations.push(what);
    }

    /// What must not have happened.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    /// What happened.
    pub(crate) fn story(&self) -> Vec<(Time, String)> {
        self.state().story.clone()
    }

    pub(crate) fn wall_ns(&self) -> i64 {
        let ahead = self.state().clock_ahead_ns;
        BEGINNING + nanoseconds(self.scheduler.now()) + ahead
    }

    /// The machine sleeps for so long: the wall clock goes on meanwhile and nothing else does. What was written
    /// through a mapping is on the disk by then, and the next such write shows.
    pub(crate) fn sleep(&self, span: Duration) {
        self.tell(format!("the machine sleeps for {span:?}"));
        let mut state = self.state();
        state.clock_ahead_ns += nanoseconds(span);
        for file in state.files.values_mut() {
            file.changed = file.changed.saturating_sub(LATEST_SHOWN);
        }
        drop(state);
        self.did();
    }

    /// The wall clock was ahead by so much, and is put right.
    pub(crate) fn put_clock_back(&self, span: Duration) {
        self.tell(format!("the clock is put back by {span:?}"));
        self.state().clock_ahead_ns -= nanoseconds(span);
        self.did();
    }

    /// Whether a person has switched Checkrein off.
    pub(crate) fn is_off(&self) -> bool {
        self.state().off_by > 0
    }

    /// Switches it off, or on again unless somebody else wants it off.
    pub(crate) fn switch(&self, is_off: bool) {
        self.tell(format!(
            "a person switches {}",
            if is_off { "off" } else { "on" }
        ));
        let mut state = self.state();
        state.off_by = match is_off {
            true => state.off_by + 1,
            false => state.off_by.saturating_sub(1),
        };
        drop(state);
        self.did();
    }

    /// A session calls what changes the outside.
    pub(crate) fn begin_outside_call(&self, session: &str) {
        let now = self.scheduler.now();
        let mut state = self.state();
        state.outside_calls.push((session.to_owned(), now, None));
    }

    /// Whatever this session has called has done its work.
    pub(crate) fn end_outside_calls(&self, session: &str) {
        let now = self.scheduler.now();
        let mut state = self.state();
        let own = |call: &&mut (String, Time, Option<Time>)| call.0 == session && call.2.is_none();
        for call in state.outside_calls.iter_mut().filter(own) {
            call.2 = Some(now);
        }
    }

    /// Whether another session's call that changes the outside was under way in this span.
    pub(crate) fn is_call_under_way(&self, other_than: &str, from: Time, to: Time) -> bool {
        let state = self.state();
        let mut calls = state.outside_calls.iter();
        calls.any(|(session, begin, end)| {
            session != other_than && *begin < to && end.is_none_or(|end| end > from)
        })
    }

    /// Whatever passed before is asked anew.
    pub(crate) fn renew(&self) {
        self.state().renewals += 1;
    }

    /// A hook counts an act from here on.
    pub(crate) fn begin_counting_act(&self) {
        self.state().acts_being_counted += 1;
    }

    /// It has, or nobody knows.
    pub(crate) fn end_counting_act(&self) {
        let mut state = self.state();
        state.acts_being_counted -= 1;
        state.renewals += 1;
    }

    pub(crate) fn is_act_being_counted(&self) -> bool {
        self.state().acts_being_counted > 0
    }

    /// How often that was so.
    pub(crate) fn renewals(&self) -> u64 {
        self.state().renewals
    }

    /// Which of these processes run a check.
    pub(crate) fn running_by(&self, processes: &[Process]) -> Vec<Process> {
        let state = self.state();
        let running = state.running.iter().map(|(_, by)| *by);
        running.filter(|by| processes.contains(by)).collect()
    }

    pub(crate) fn stat(&self, path: &Path) -> io::Result<FileStat> {
        self.did();
        self.state().stat(path)
    }

    pub(crate) fn open_folder(
        self: &Arc<Self>,
        path: &Path,
        process: Process,
    ) -> io::Result<Box<dyn OpenFolder>> {
        if path == self.root {
            let now = self.scheduler.now();
            let mut state = self.state();
            let looks = state.looks.entry(process).or_default();
            *looks = (looks.0 + 1, now);
            state
                .story
                .push((now, format!("{process:?} reads the tree")));
        }
        self.did();
        let state = self.state();
        let is_folder = path == self.root || state.names_below(path).next().is_some();
        drop(state);
        match is_folder {
            true => Ok(Box::new(Folder {
                world: Arc::clone(self),
                path: path.to_owned(),
            })),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(crate) fn open_file(self: &Arc<Self>, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.did();
        let state = self.state();
        let file = state.files.get(path);
        let inode = file.ok_or(ErrorKind::NotFound)?.inode;
        drop(state);
        Ok(Box::new(Opened {
            world: Arc::clone(self),
            path: path.to_owned(),
            inode,
            at: 0,
        }))
    }
}

fn note(all: &mut Vec<(Time, bool)>, now: Time, passes: bool) {
    if all.last().is_none_or(|(_, last)| *last != passes) {
        all.push((now, passes));
    }
}

fn any_within(all: &[(Time, bool)], from: Time, to: Time, wanted: bool) -> bool {
    let mut at_start = None;
    for (since, passes) in all {
        if *since <= from {
            at_start = Some(*passes);
        } else if *since <= to && *passes == wanted {
            return true;
        }
    }
    at_start == Some(wanted)
}

impl State {
    fn write(&mut self, path: &Path, content: &[u8], when: When) {
        let inode = match self.files.get(path) {
            Some(file) => file.inode,
            None => {
                self.inodes += 1;
                self.inodes
            }
        };
        let content = content.to_vec();
        self.files.insert(
            path.to_owned(),
            File {
                content,
                inode,
                changed: when.changed,
                stamp_ns: when.stamp_ns,
            },
        );
    }

    fn set(&mut self, root: &Path, subject: &Subject, good: bool, stamp: When) {
        // No two changes come to the same content but for the one that a stash brings back.
        let next = |version: u64| (version | 1) + if good { 1 } else { 2 };
        match subject {
            Subject::File(name) => {
                self.inodes += 1;
                let content = format!("{} {}", word(good), self.inodes);
                self.write(&root.join(name), content.as_bytes(), stamp);
            }
            Subject::Program(name) => {
                let version = self.programs.get(name).copied().unwrap_or(0);
                self.programs.insert(name.clone(), next(version));
            }
            Subject::Outside => self.outside = next(self.outside),
        }
    }

    fn is_good(&self, root: &Path, subject: &Subject) -> bool {
        match subject {
            Subject::File(name) => {
                let file = self.files.get(&root.join(name));
                file.is_some_and(|file| file.content.starts_with(b"good"))
            }
            Subject::Program(name) => self.programs.get(name).is_some_and(|v| v % 2 == 0),
            Subject::Outside => self.outside.is_multiple_of(2),
        }
    }

    fn names_below(&self, folder: &Path) -> impl Iterator<Item = &Path> {
        let paths = self.files.keys().map(PathBuf::as_path);
        let folder = folder.to_owned();
        paths.filter(move |path| path.starts_with(&folder) && *path != folder)
    }

    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        if let Some(file) = self.files.get(path) {
            let changed_ns = file.stamp_ns;
            return Ok(FileStat {
                kind: FileKind::File,
                stamp: FileStamp {
                    size: file.content.len() as u64,
                    modified_ns: changed_ns,
                    changed_ns,
                    device: 1,
                    inode: file.inode,
                    mode: 0o644,
                },
            });
        }
        match self.names_below(path).next() {
            Some(_) => Ok(FileStat {
                kind: FileKind::Folder,
                stamp: FileStamp {
                    size: 0,
                    modified_ns: BEGINNING,
                    changed_ns: BEGINNING,
                    device: 1,
                    inode: 0,
                    mode: 0o755,
                },
            }),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

fn nanoseconds(time: Time) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn word(good: bool) -> &'static str {
    if good { "good" } else { "bad" }
}

struct Folder {
    world: Arc<World>,
    path: PathBuf,
}

impl OpenFolder for Folder {
    fn for_each_folder_entry(
        &mut self,
        each: &mut dyn FnMut(&OsStr, io::Result<FileKind>),
    ) -> io::Result<()> {
        let state = self.world.state();
        let mut entries = BTreeMap::new();
        for path in state.names_below(&self.path) {
            let Ok(below) = path.strip_prefix(&self.path) else {
                continue;
            };
            let mut parts = below.iter();
            let (Some(name), rest) = (parts.next(), parts.next()) else {
                continue;
            };
            let kind = match rest {
                None => FileKind::File,
                Some(_) => FileKind::Folder,
            };
            entries.insert(name.to_owned(), kind);
        }
        drop(state);
        for (name, kind) in entries {
            each(&name, Ok(kind));
        }
        Ok(())
    }

    fn stat_folder_entry(&self, name: &OsStr) -> io::Result<FileStat> {
        self.world.stat(&self.path.join(name))
    }
}

struct Opened {
    world: Arc<World>,
    path: PathBuf,
    inode: u64,
    at: usize,
}

impl Read for Opened {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        let state = self.world.state();
        let file = state.files.get(&self.path);
        let Some(file) = file.filter(|file| file.inode == self.inode) else {
            return Ok(0);
        };
        let rest = file.content.get(self.at..).unwrap_or_default();
        let length = rest.len().min(PIECE).min(block.len());
        for (to, from) in block.iter_mut().zip(rest.iter().take(length)) {
            *to = *from;
        }
        self.at += length;
        drop(state);
        self.world.did();
        Ok(length)
    }
}

impl OpenFile for Opened {
    fn stat_open_file(&self) -> io::Result<FileStat> {
        self.world.stat(&self.path)
    }
}
