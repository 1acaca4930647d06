//! Whether effects are ordinary work, where they fall: the table says what a command does, the
//! ground where, the policy what of that is asked about.

use checkrein_core::input::RuleDecision;

use super::means::{Hole, Names};
use super::place::{Ground, Place, Spot};
use super::{Act, Deed, Effect, Language, glob};
use crate::policy::{Bounds, Unmatched};
use crate::shell::{Dir, Word};

/// Spots of one word that are told apart.
const MOST: usize = 64;

/// Why a person is asked about a file system on a loop device: a file lies behind it, and which one
/// only the machine knows.
const LOOP: &str = "replaces all that is in the file behind a loop device: make the file system in \
                    the file itself, or leave that to the person";

/// What stands around a command.
pub(crate) struct Scene<'a> {
    /// Where the project is.
    pub(crate) ground: &'a Ground,
    /// Variables.
    pub(crate) names: &'a Names,
    /// Where it can run.
    pub(crate) dirs: &'a [Dir],
    /// Its placeholder.
    pub(crate) hole: Option<&'a Hole>,
    /// Whether a container runs it: homes and the system are its own there, disks are not.
    pub(crate) contained: bool,
}

/// Code that runs in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Run {
    /// A text that a shell reads.
    Script(Word),
    /// Another command.
    Command(Vec<Word>),
    /// A program that the project or a registry brings.
    Tool(Vec<Word>),
    /// A command in a file system of its own.
    Inside(Vec<Word>),
    /// Whatever stands on its input.
    Fed(Language),
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Why a person is asked.
    pub(crate) asks: Option<String>,
    /// What protects a path, and why.
    pub(crate) protected: Option<(RuleDecision, String)>,
    /// What it destroys that nobody means to.
    pub(crate) destroys: Option<String>,
    /// Why a person is asked, whatever else is ordinary, and what to do instead.
    pub(crate) hazard: Option<&'static str>,
    /// What it runs in turn.
    pub(crate) runs: Vec<Run>,
    /// Files that it puts something into.
    pub(crate) made: Vec<Spot>,
    /// Folders that it puts files into under names that are not known.
    pub(crate) filled: Vec<Spot>,
    /// Those of them of which nobody will see the names.
    pub(crate) unseen: Vec<Spot>,
    /// Files and folders that it reads.
    pub(crate) read: Vec<Spot>,
    /// From where to where it copies or moves.
    pub(crate) copied: Vec<(Spot, Spot)>,
    /// Files whose code it runs.
    pub(crate) started: Vec<Spot>,
    /// Places that it writes, also in, or gives another name.
    pub(crate) written: Vec<Spot>,
    /// Places that a program names which writes something, and cannot be read.
    pub(crate) perhaps_written: Vec<Spot>,
    /// Places that it removes.
    pub(crate) removed: Vec<Spot>,
    /// Other names for places.
    pub(crate) links: Vec<(Spot, Spot)>,
}

/// Judges the effects of one command.
pub(crate) fn judge(
    effects: &[Effect],
    scene: &Scene<'_>,
    bounds: &Bounds,
    links: &[(Spot, Spot)],
) -> Judged {
    let mut sight = Sight {
        scene,
        bounds,
        links,
        from: scene
            .dirs
            .iter()
            .flat_map(|dir| spots(scene, dir))
            .take(MOST)
            .collect(),
        spoils: effects.contains(&Effect::Deed(Deed::Modes)),
        judged: Judged::default(),
    };
    for effect in effects {
        sight.effect(effect);
    }
    sight.judged
}

/// The folders that a chain of `cd` can lead to.
fn spots(scene: &Scene<'_>, dir: &Dir) -> Vec<Spot> {
    let mut steps = Vec::new();
    let mut at = dir;
    while let Some(step) = at {
        steps.push(&step.to);
        at = &step.from;
    }
    let mut now = vec![scene.ground.start()];
    for word in steps.into_iter().rev() {
        let paths = scene.names.paths(word, None);
        if !scene.names.burn(now.len() * paths.len() * 8) {
            return vec![scene.ground.unknown()];
        }
        now = now
            .iter()
            .flat_map(|from| paths.iter().map(|path| scene.ground.spot(from, path)))
            .take(MOST)
            .collect();
    }
    now
}

struct Sight<'a, 's> {
    scene: &'a Scene<'s>,
    bounds: &'a Bounds,
    links: &'a [(Spot, Spot)],
    from: Vec<Spot>,
    /// Whether it changes the rights of all that lies below what it writes.
    spoils: bool,
    judged: Judged,
}

impl Sight<'_, '_> {
    fn asks(&mut self, why: &str) {
        if self.judged.asks.is_none() {
            self.judged.asks = Some(why.to_owned());
        }
    }

    fn asks_at(&mut self, spot: &Spot, why: &str) {
        if self.judged.asks.is_none() {
            self.judged.asks = Some(format!("{why}: {}", shown(spot)));
        }
    }

    fn destroys(&mut self, why: impl FnOnce() -> String) {
        if self.bounds.forbids_destruction && self.judged.destroys.is_none() {
            self.judged.destroys = Some(why());
        }
    }

    /// Where a word can point, and through links made before where that leads.
    fn spots(&self, word: &Word) -> Vec<Spot> {
        let paths = self.scene.names.paths(word, self.scene.hole);
        let mut found: Vec<Spot> = Vec::new();
        let cost = self.from.len() * paths.len() * (self.links.len() + 4);
        if !self.scene.names.burn(cost) {
            return vec![self.scene.ground.unknown()];
        }
        for from in &self.from {
            for path in &paths {
                if found.len() >= MOST {
                    return found;
                }
                let spot = self.scene.ground.spot(from, path);
                for (name, place) in self.links {
                    found.extend(spot.through(name, place));
                }
                found.push(spot);
            }
        }
        found
    }

    fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Deed(deed) => {
                if let Some(why) = deed.destroys() {
                    self.destroys(|| why.to_owned());
                }
                if self.bounds.hazard_asks {
                    self.judged.hazard = self.judged.hazard.or_else(|| deed.hazard());
                }
                if let Some(why) = deed.asks(self.bounds.opaque_asks) {
                    self.asks(why);
                } else if self.bounds.reach_asks && deed.reaches() {
                    self.asks("reaches beyond the project's files");
                }
            }
            Effect::File(act, word) => {
                for spot in self.spots(word) {
                    self.file(*act, &spot);
                }
            }
            Effect::PutInto(folder, sources) => self.put(folder, sources),
            Effect::Link(source, target, symbolic) => self.link(source, target, *symbolic),
            Effect::Patch(folder) => {
                let folder = folder.clone().unwrap_or_else(|| Word::fixed("."));
                // Which files it names is seen where files are read.
                let before = self.judged.unseen.len();
                for spot in self.spots(&folder) {
                    self.file(Act::Unpack, &spot);
                }
                self.judged.unseen.truncate(before);
            }
            Effect::At(word) => self.from = self.spots(word),
            Effect::Runs(word) => self.judged.runs.push(Run::Script(word.clone())),
            Effect::RunsFile(word) => {
                for spot in self.spots(word) {
                    match self.scene.ground.place(&spot) {
                        Place::Nowhere | Place::Unknown | Place::Device => {
                            self.asks("runs code that cannot be read beforehand")
                        }
                        _ if self.bounds.opaque_asks => {
                            self.asks("runs code that is not read beforehand")
                        }
                        _ => self.judged.started.push(spot),
                    }
                }
            }
            Effect::Sends(word) => {
                let names = self.scene.names;
                let open = |path: &String| path.contains(super::place::UNKNOWN);
                let told = word.text.contains(['(', '`'])
                    || names.paths(word, self.scene.hole).iter().any(open)
                        && names.is_partly_set(&word.text);
                if told
                    && names.paths(word, self.scene.hole).iter().any(open)
                    && let Some(why) = Deed::Uploads.asks(true)
                {
                    self.asks(why);
                }
            }
            Effect::Option(word) => {
                let hole = self.scene.hole;
                if self.scene.names.may_be_option(word, hole)
                    && let Some(why) = Deed::Unclear.asks(true)
                {
                    self.asks(why);
                }
            }
            Effect::Starts(word) => {
                let spots = self.spots(word);
                self.judged.started.extend(spots);
            }
            Effect::Fed(language) => self.judged.runs.push(Run::Fed(*language)),
            Effect::Command(words) => self.judged.runs.push(Run::Command(words.clone())),
            Effect::Tool(words) => self.judged.runs.push(Run::Tool(words.clone())),
            Effect::Inside(words) => self.judged.runs.push(Run::Inside(words.clone())),
        }
    }

    fn file(&mut self, act: Act, spot: &Spot) {
        let ground = self.scene.ground;
        let place = ground.place(spot);
        match act {
            Act::List => {}
            Act::Use => self.judged.read.push(spot.clone()),
            Act::Read | Act::ReadBelow => {
                self.judged.read.push(spot.clone());
                if ground.is_secret(spot, act == Act::ReadBelow) {
                    self.asks_at(spot, "reads what may be a secret");
                } else if place == Place::Device {
                    self.asks_at(spot, "reads a device");
                }
            }
            Act::Format => {
                self.protected(spot, Below::Nothing);
                self.judged.written.push(spot.clone());
                if ground.is_loop(spot) {
                    if self.bounds.hazard_asks {
                        self.judged.hazard = self.judged.hazard.or(Some(LOOP));
                    }
                    return self.asks_at(spot, "writes a device");
                }
                // A file of any other name is an image, wherever it lies.
                let disk = matches!(place, Place::Device | Place::Unknown) || ground.is_disk(spot);
                if disk {
                    self.destroys(|| format!("destroys what is on a disk: {}", shown(spot)));
                }
            }
            Act::Write | Act::WriteBelow | Act::Unpack => {
                if ground.is_disk(spot) {
                    self.destroys(|| format!("overwrites a disk: {}", shown(spot)));
                } else if spot.path() == "/proc/sysrq-trigger" {
                    self.destroys(|| format!("stops the machine: {}", shown(spot)));
                }
                if self.spoils && self.is_system(spot) && !ground.is_for_additions(spot) {
                    self.destroys(|| {
                        format!("changes the rights of a system folder: {}", shown(spot))
                    });
                }
                match act {
                    Act::Write => self.protected(spot, Below::Nothing),
                    // Which of the names in it those are is not known.
                    _ => self.protected(spot, Below::Some),
                }
                self.guarded(spot);
                if !ground.is_passing(spot) {
                    self.writes(place, spot);
                }
                match act {
                    Act::Write => self.judged.made.push(spot.clone()),
                    _ => {
                        self.judged.filled.push(spot.clone());
                        self.judged.unseen.push(spot.clone());
                    }
                }
                // `<>` of Perl runs it.
                if spot.name().is_some_and(|name| name.trim().ends_with('|')) {
                    self.asks_at(spot, "makes a file whose name reads as a command");
                }
                if spot
                    .name()
                    .is_some_and(|name| name.len() > 1 && name.starts_with('-'))
                {
                    self.asks_at(spot, "makes a file whose name reads as an option");
                }
                self.judged.written.push(spot.clone());
            }
            Act::Replace => {
                self.replaced(spot);
                self.file(Act::Write, spot);
            }
            Act::Clear => {
                if self.is_home(spot) {
                    self.destroys(|| format!("removes what is in a home folder: {}", shown(spot)));
                } else if self.is_system(spot) {
                    self.destroys(|| format!("removes a part of the system: {}", shown(spot)));
                }
            }
            Act::Spoil => {
                if self.is_home(spot) {
                    self.destroys(|| {
                        format!("changes the rights of a home folder: {}", shown(spot))
                    });
                }
            }
            Act::Named => self.named(spot),
            Act::MayWrite => self.judged.perhaps_written.push(spot.clone()),
            Act::Remove => {
                if self.is_home(spot) {
                    self.destroys(|| format!("removes a home folder: {}", shown(spot)));
                } else if self.is_system(spot) || ground.is_disk(spot) {
                    self.destroys(|| format!("removes a part of the system: {}", shown(spot)));
                }
                self.protected(spot, Below::All);
                self.guarded(spot);
                self.judged.removed.push(spot.clone());
                match place {
                    Place::Tree { sure: true } if ground.is_everything(spot) => {
                        self.asks("removes all that is in the project's tree")
                    }
                    Place::Tree { sure: true } | Place::Scratch { sure: true } | Place::Nowhere => {
                    }
                    Place::Tree { sure: false }
                    | Place::Scratch { sure: false }
                    | Place::Unknown => self.asks("removes what only the run knows"),
                    Place::WholeTree => self.asks("removes all that is in the project's tree"),
                    Place::Git => self.asks_at(spot, "removes Git's own files"),
                    Place::Device | Place::Startup | Place::Outside => {
                        self.asks_at(spot, "removes what lies outside the project's tree")
                    }
                }
            }
        }
    }

    fn is_home(&self, spot: &Spot) -> bool {
        !self.scene.contained && self.scene.ground.is_home(spot)
    }

    fn is_system(&self, spot: &Spot) -> bool {
        !self.scene.contained && self.scene.ground.is_system(spot)
    }

    /// Whether nobody logs in without what was there.
    fn replaced(&mut self, spot: &Spot) {
        if !self.scene.contained && self.scene.ground.is_login(spot) {
            self.destroys(|| format!("overwrites the accounts of the system: {}", shown(spot)));
        }
    }

    fn writes(&mut self, place: Place, spot: &Spot) {
        match place {
            Place::Tree { .. } | Place::WholeTree | Place::Nowhere | Place::Scratch { .. } => {}
            Place::Git => self.asks_at(spot, "writes Git's own files"),
            Place::Device => self.asks_at(spot, "writes a device"),
            Place::Startup => {
                self.asks_at(spot, "writes what a login or a scheduler starts by itself")
            }
            Place::Outside => self.asks_at(spot, "writes outside the project's tree"),
            Place::Unknown => self.asks("writes where only the run knows"),
        }
    }

    /// Files that go into a folder under their own names.
    fn put(&mut self, folder: &Word, sources: &[Word]) {
        let folders = self.spots(folder);
        for source in sources {
            for inner in self.spots(source) {
                let Some(name) = inner.name() else { continue };
                for folder in &folders {
                    let spot = folder.with(name);
                    self.judged.read.push(inner.clone());
                    self.judged.copied.push((inner.clone(), spot.clone()));
                    self.judged.copied.push((inner.clone(), folder.clone()));
                    self.protected(&spot, Below::Nothing);
                    self.guarded(&spot);
                    self.replaced(&spot);
                    if self.scene.ground.place(&spot) == Place::Git {
                        self.asks_at(&spot, "writes Git's own files");
                    }
                    self.judged.written.push(spot.clone());
                    self.judged.made.push(spot);
                }
            }
        }
    }

    fn link(&mut self, source: &Word, target: &Word, symbolic: bool) {
        let targets = self.spots(target);
        let mut sources = self.spots(source);
        if symbolic && !source.text.starts_with(['/', '~', '$']) {
            // From where the link lies, not from here.
            for target in &targets {
                let paths = self.scene.names.paths(source, self.scene.hole);
                sources.extend(
                    paths
                        .iter()
                        .map(|path| self.scene.ground.spot(&target.parent(), path)),
                );
            }
        }
        for spot in &sources {
            self.protected(spot, Below::All);
            self.judged.written.push(spot.clone());
            if self.scene.ground.is_secret(spot, false) {
                self.asks_at(spot, "gives another name to what may be a secret");
            }
            let place = self.scene.ground.place(spot);
            if !symbolic && !matches!(place, Place::Tree { .. } | Place::Scratch { .. })
                || place == Place::Git
                || place == Place::Device
                || place == Place::Startup
            {
                self.writes(place, spot);
            }
            for target in &targets {
                let within = spot.name().map(|name| (target.with(name), spot.clone()));
                self.judged.links.push((target.clone(), spot.clone()));
                self.judged.links.extend(within);
            }
        }
        self.judged.links.truncate(MOST);
    }

    /// Whether a path that is written is one that nobody writes.
    fn protected(&mut self, spot: &Spot, below: Below) {
        if self.bounds.protect.is_empty() {
            return;
        }
        let open = spot.is_open();
        let Some(parts) = self.parts(spot) else {
            if matches!(self.scene.ground.place(spot), Place::Unknown) {
                self.may_protect(spot);
            }
            return;
        };
        for pattern in &self.bounds.protect {
            match hit(pattern, &parts, below) {
                glob::Hit::Sure if !open => {
                    let why = format!(
                        "{} is protected by `{pattern}`: leave it as it is, or ask the person",
                        shown(spot)
                    );
                    self.judged.protected = Some((RuleDecision::Forbidden, why));
                    return;
                }
                glob::Hit::No => {}
                glob::Hit::Sure | glob::Hit::May => self.may_protect(spot),
            }
        }
    }

    /// Whether a path that unreadable code names is one that nobody writes.
    fn named(&mut self, spot: &Spot) {
        let parts = self.parts(spot).filter(|parts| !parts.is_empty());
        let meant = |parts: &Vec<String>| {
            let mut patterns = self.bounds.protect.iter();
            patterns.any(|pattern| hit(pattern, parts, Below::All) == glob::Hit::Sure)
        };
        if parts.as_ref().is_some_and(meant) {
            self.may_protect(spot);
        }
    }

    /// The path from the top of the project.
    fn parts(&self, spot: &Spot) -> Option<Vec<String>> {
        let parts = self.scene.ground.below_top(spot)?;
        let part = |part: &String| match part.contains(super::place::UNKNOWN) {
            true => "**".to_owned(),
            false => part.clone(),
        };
        Some(parts.iter().map(part).collect())
    }

    /// Whether this is what checks the work: settings of agents, our own.
    fn guarded(&mut self, spot: &Spot) {
        let path = spot.path();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let Some((name, above)) = parts.split_last() else {
            return;
        };
        let meant = |own: &&str| *name != "?*" && glob::meets(own, name);
        let agents = |part: &&str| matches!(*part, ".claude" | ".codex");
        // A folder that is named goes with all that is in it, as if it were removed itself.
        let top = self.scene.ground.below_top(spot).unwrap_or_default();
        let named = top.first().is_some_and(|first| !glob::wild(first));
        let open = above.contains(&"**") && !named || above.iter().any(agents);
        let settings = [
            "settings.json",
            "settings.local.json",
            "hooks.json",
            "config.toml",
        ];
        if agents(name)
            || above.iter().any(agents) && *name == "?*"
            || above.iter().any(agents) && settings.iter().any(meant)
            || open && glob::wild(name) && settings.iter().any(meant)
            || ["checkrein.toml"].iter().any(meant) && (!glob::wild(name) || name.starts_with('c'))
        {
            self.asks_at(spot, "changes what checks this work");
        }
    }

    fn may_protect(&mut self, spot: &Spot) {
        if self.judged.protected.is_none() {
            let why = format!("this may write a protected path: {}", shown(spot));
            self.judged.protected = Some((RuleDecision::Prompt, why));
        }
    }
}

/// What of a folder is meant beside the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    /// Nothing.
    Nothing,
    /// Some of what lies under it.
    Some,
    /// All that lies under it.
    All,
}

fn hit(pattern: &str, path: &[String], below: Below) -> glob::Hit {
    let pattern: Vec<&str> = pattern
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let itself = glob::names(&pattern, &path, false);
    match below {
        Below::Nothing => itself,
        Below::All => glob::names(&pattern, &path, true),
        Below::Some => {
            // Whatever it is called, or only some of it.
            let any = [path.as_slice(), &["?*"]].concat();
            let whole = glob::names(&pattern, &any, false);
            let part = glob::names(&pattern, &path, true).min(glob::Hit::May);
            itself.max(whole).max(part)
        }
    }
}

/// A path for people.
pub(crate) fn shown(spot: &Spot) -> String {
    let path = spot.path();
    let path = path
        .strip_prefix(super::place::TREE)
        .map_or(path.as_str(), |rest| rest.trim_start_matches('/'));
    let path = if path.is_empty() { "." } else { path };
    path.replace("/\u{2}home-of/", "")
        .replace("/\u{2}home", "~")
        .replace(['\u{1}', '\u{2}', '\u{3}'], "…")
}

/// Whether effects are worth finding out.
pub(crate) fn matter(bounds: &Bounds) -> bool {
    bounds.unmatched == Unmatched::ByEffect
        || bounds.forbids_destruction
        || bounds.hazard_asks
        || !bounds.protect.is_empty()
}
