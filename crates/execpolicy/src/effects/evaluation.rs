//! Whether effects are ordinary work, where they fall: the table says what a command does, the
//! ground where, the policy what of that is asked about.

use checkrein_core::input::RuleDecision;

use super::paths::{PathLocation, ProjectRoots, ResolvedPath};
use super::word_expansion::{KnownShellVariables, WordPlaceholder};
use super::{CodeLanguage, CommandEffect, EffectKind, FileAccess, glob};
use crate::effect_policy::{EffectPolicy, UnmatchedDecision};
use crate::shell::{CommandWord, WorkingDir};

/// Spots of one word that are told apart.
const MOST: usize = 64;

/// Why a person is asked about a file system on a loop device: a file lies behind it, and which one
/// only the machine knows.
const LOOP_DEVICE_REASON: &str = "replaces all that is in the file behind a loop device: make the file system in \
                    the file itself, or leave that to the person";

/// What stands around a command.
pub(crate) struct EffectEvalContext<'a> {
    /// Where the project is.
    pub(crate) roots: &'a ProjectRoots,
    /// Variables.
    pub(crate) variables: &'a KnownShellVariables,
    /// Where it can run.
    pub(crate) dirs: &'a [WorkingDir],
    /// Its placeholder.
    pub(crate) placeholder: Option<&'a WordPlaceholder>,
    /// Whether a container runs it: homes and the system are its own there, disks are not.
    pub(crate) contained: bool,
}

/// Code that runs in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NestedCommandOrCode {
    /// A text that a shell reads.
    Script(CommandWord),
    /// Another command.
    Command(Vec<CommandWord>),
    /// A program that the project or a registry brings.
    ProjectTool(Vec<CommandWord>),
    /// A command in a file system of its own.
    ContainerCommand(Vec<CommandWord>),
    /// Whatever stands on its input.
    StdinCode(CodeLanguage),
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct EvaluatedEffects {
    /// Why a person is asked.
    pub(crate) prompt_reason: Option<String>,
    /// What protects a path, and why.
    pub(crate) protected: Option<(RuleDecision, String)>,
    /// What it destroys that nobody means to.
    pub(crate) destruction_reason: Option<String>,
    /// Why a person is asked, whatever else is ordinary, and what to do instead.
    pub(crate) hazard: Option<&'static str>,
    /// What it runs in turn.
    pub(crate) spawned: Vec<NestedCommandOrCode>,
    /// Files that it puts something into.
    pub(crate) written_files: Vec<ResolvedPath>,
    /// Folders that it puts files into under names that are not known.
    pub(crate) filled_folders: Vec<ResolvedPath>,
    /// Those of them of which nobody will see the names.
    pub(crate) unlisted_folders: Vec<ResolvedPath>,
    /// Files and folders that it reads.
    pub(crate) read: Vec<ResolvedPath>,
    /// From where to where it copies or moves.
    pub(crate) copied: Vec<(ResolvedPath, ResolvedPath)>,
    /// Files whose code it runs.
    pub(crate) started_files: Vec<ResolvedPath>,
    /// Places that it writes, also in, or gives another name.
    pub(crate) written: Vec<ResolvedPath>,
    /// Places that a program names which writes something, and cannot be read.
    pub(crate) perhaps_written: Vec<ResolvedPath>,
    /// Places that it removes.
    pub(crate) removed: Vec<ResolvedPath>,
    /// Other names for places.
    pub(crate) links: Vec<(ResolvedPath, ResolvedPath)>,
}

/// Judges the effects of one command.
pub(crate) fn evaluate_effects(
    effects: &[CommandEffect],
    scene: &EffectEvalContext<'_>,
    bounds: &EffectPolicy,
    links: &[(ResolvedPath, ResolvedPath)],
) -> EvaluatedEffects {
    let mut sight = EffectEvaluator {
        context: scene,
        policy: bounds,
        links,
        from: scene
            .dirs
            .iter()
            .flat_map(|dir| possible_working_dirs(scene, dir))
            .take(MOST)
            .collect(),
        changes_modes: effects.contains(&CommandEffect::Kind(EffectKind::ChangesModes)),
        result: EvaluatedEffects::default(),
    };
    for effect in effects {
        sight.evaluate_effect(effect);
    }
    sight.result
}

/// The folders that a chain of `cd` can lead to.
fn possible_working_dirs(scene: &EffectEvalContext<'_>, dir: &WorkingDir) -> Vec<ResolvedPath> {
    let mut steps = Vec::new();
    let mut at = dir;
    while let Some(step) = at {
        steps.push(&step.to);
        at = &step.from;
    }
    let mut now = vec![scene.roots.initial_working_dir()];
    for word in steps.into_iter().rev() {
        let paths = scene.variables.possible_paths(word, None);
        if !scene
            .variables
            .consume_expansion_budget(now.len() * paths.len() * 8)
        {
            return vec![scene.roots.unknown_path()];
        }
        now = now
            .iter()
            .flat_map(|from| {
                paths
                    .iter()
                    .map(|path| scene.roots.resolve_path_named_in_command(from, path))
            })
            .take(MOST)
            .collect();
    }
    now
}

struct EffectEvaluator<'a, 's> {
    context: &'a EffectEvalContext<'s>,
    policy: &'a EffectPolicy,
    links: &'a [(ResolvedPath, ResolvedPath)],
    from: Vec<ResolvedPath>,
    /// Whether it changes the rights of all that lies below what it writes.
    changes_modes: bool,
    result: EvaluatedEffects,
}

impl EffectEvaluator<'_, '_> {
    fn require_asking_person(&mut self, why: &str) {
        if self.result.prompt_reason.is_none() {
            self.result.prompt_reason = Some(why.to_owned());
        }
    }

    fn record_ask_reason_for_path(&mut self, spot: &ResolvedPath, why: &str) {
        if self.result.prompt_reason.is_none() {
            self.result.prompt_reason = Some(format!("{why}: {}", display_path(spot)));
        }
    }

    fn record_forbidden_destruction(&mut self, why: impl FnOnce() -> String) {
        if self.policy.forbids_destruction && self.result.destruction_reason.is_none() {
            self.result.destruction_reason = Some(why());
        }
    }

    /// Where a word can point, and through links made before where that leads.
    fn resolve_word_paths(&self, word: &CommandWord) -> Vec<ResolvedPath> {
        let paths = self
            .context
            .variables
            .possible_paths(word, self.context.placeholder);
        let mut found: Vec<ResolvedPath> = Vec::new();
        let cost = self.from.len() * paths.len() * (self.links.len() + 4);
        if !self.context.variables.consume_expansion_budget(cost) {
            return vec![self.context.roots.unknown_path()];
        }
        for from in &self.from {
            for path in &paths {
                if found.len() >= MOST {
                    return found;
                }
                let spot = self.context.roots.resolve_path_named_in_command(from, path);
                for (name, place) in self.links {
                    found.extend(spot.resolve_path_alias(name, place));
                }
                found.push(spot);
            }
        }
        found
    }

    fn evaluate_effect(&mut self, effect: &CommandEffect) {
        match effect {
            CommandEffect::Kind(deed) => {
                if let Some(why) = deed.destruction_reason() {
                    self.record_forbidden_destruction(|| why.to_owned());
                }
                if self.policy.hazard_asks {
                    self.result.hazard = self.result.hazard.or_else(|| deed.hazard_reason());
                }
                if let Some(why) = deed.prompt_reason(self.policy.opaque_asks) {
                    self.require_asking_person(why);
                } else if self.policy.reach_asks && deed.reaches_beyond_project() {
                    self.require_asking_person("reaches beyond the project's files");
                }
            }
            CommandEffect::File(act, word) => {
                for spot in self.resolve_word_paths(word) {
                    self.evaluate_file_access(*act, &spot);
                }
            }
            CommandEffect::PutInto(folder, sources) => {
                self.evaluate_copy_into_folder(folder, sources)
            }
            CommandEffect::Link(source, target, symbolic) => {
                self.evaluate_link(source, target, *symbolic)
            }
            CommandEffect::Patch(folder) => {
                let folder = folder
                    .clone()
                    .unwrap_or_else(|| CommandWord::new_literal_word("."));
                // Which files it names is seen where files are read.
                let before = self.result.unlisted_folders.len();
                for spot in self.resolve_word_paths(&folder) {
                    self.evaluate_file_access(FileAccess::Unpack, &spot);
                }
                self.result.unlisted_folders.truncate(before);
            }
            CommandEffect::ChangeDir(word) => self.from = self.resolve_word_paths(word),
            CommandEffect::RunsScript(word) => self
                .result
                .spawned
                .push(NestedCommandOrCode::Script(word.clone())),
            CommandEffect::RunsFile(word) => {
                for spot in self.resolve_word_paths(word) {
                    match self.context.roots.classify_path_location(&spot) {
                        PathLocation::NoStorage | PathLocation::Unknown | PathLocation::Device => {
                            self.require_asking_person("runs code that cannot be read beforehand")
                        }
                        _ if self.policy.opaque_asks => {
                            self.require_asking_person("runs code that is not read beforehand")
                        }
                        _ => self.result.started_files.push(spot),
                    }
                }
            }
            CommandEffect::Sends(word) => {
                let names = self.context.variables;
                let open = |path: &String| path.contains(super::paths::UNKNOWN);
                let told = word.text.contains(['(', '`'])
                    || names
                        .possible_paths(word, self.context.placeholder)
                        .iter()
                        .any(open)
                        && names.has_computed_value(&word.text);
                if told
                    && names
                        .possible_paths(word, self.context.placeholder)
                        .iter()
                        .any(open)
                    && let Some(why) = EffectKind::Uploads.prompt_reason(true)
                {
                    self.require_asking_person(why);
                }
            }
            CommandEffect::PossibleOption(word) => {
                let hole = self.context.placeholder;
                if self.context.variables.may_be_option(word, hole)
                    && let Some(why) = EffectKind::UnknownOptions.prompt_reason(true)
                {
                    self.require_asking_person(why);
                }
            }
            CommandEffect::StartsFile(word) => {
                let spots = self.resolve_word_paths(word);
                self.result.started_files.extend(spots);
            }
            CommandEffect::StdinCode(language) => self
                .result
                .spawned
                .push(NestedCommandOrCode::StdinCode(*language)),
            CommandEffect::Command(words) => self
                .result
                .spawned
                .push(NestedCommandOrCode::Command(words.clone())),
            CommandEffect::ProjectTool(words) => self
                .result
                .spawned
                .push(NestedCommandOrCode::ProjectTool(words.clone())),
            CommandEffect::ContainerCommand(words) => self
                .result
                .spawned
                .push(NestedCommandOrCode::ContainerCommand(words.clone())),
        }
    }

    fn evaluate_file_access(&mut self, act: FileAccess, spot: &ResolvedPath) {
        let ground = self.context.roots;
        let place = ground.classify_path_location(spot);
        match act {
            FileAccess::List => {}
            FileAccess::ReadUnshown => self.result.read.push(spot.clone()),
            FileAccess::Read | FileAccess::ReadBelow => {
                self.result.read.push(spot.clone());
                if ground.is_secret_path(spot, act == FileAccess::ReadBelow) {
                    self.record_ask_reason_for_path(spot, "reads what may be a secret");
                } else if place == PathLocation::Device {
                    self.record_ask_reason_for_path(spot, "reads a device");
                }
            }
            FileAccess::Format => {
                self.check_protected_write(spot, SubtreeExtent::Nothing);
                self.result.written.push(spot.clone());
                if ground.is_loop_device(spot) {
                    if self.policy.hazard_asks {
                        self.result.hazard = self.result.hazard.or(Some(LOOP_DEVICE_REASON));
                    }
                    return self.record_ask_reason_for_path(spot, "writes a device");
                }
                // A file of any other name is an image, wherever it lies.
                let disk = matches!(place, PathLocation::Device | PathLocation::Unknown)
                    || ground.is_disk_device_path(spot);
                if disk {
                    self.record_forbidden_destruction(|| {
                        format!("destroys what is on a disk: {}", display_path(spot))
                    });
                }
            }
            FileAccess::Write | FileAccess::WriteBelow | FileAccess::Unpack => {
                if ground.is_disk_device_path(spot) {
                    self.record_forbidden_destruction(|| {
                        format!("overwrites a disk: {}", display_path(spot))
                    });
                } else if spot.absolute_path_text() == "/proc/sysrq-trigger" {
                    self.record_forbidden_destruction(|| {
                        format!("stops the machine: {}", display_path(spot))
                    });
                }
                if self.changes_modes
                    && self.is_host_system_folder(spot)
                    && !ground.is_user_managed_system_folder(spot)
                {
                    self.record_forbidden_destruction(|| {
                        format!(
                            "changes the rights of a system folder: {}",
                            display_path(spot)
                        )
                    });
                }
                match act {
                    FileAccess::Write => self.check_protected_write(spot, SubtreeExtent::Nothing),
                    // Which of the names in it those are is not known.
                    _ => self.check_protected_write(spot, SubtreeExtent::Some),
                }
                self.prompt_if_guarded_path(spot);
                if !ground.is_scratch_root(spot) {
                    self.ask_about_write_location(place, spot);
                }
                match act {
                    FileAccess::Write => self.result.written_files.push(spot.clone()),
                    _ => {
                        self.result.filled_folders.push(spot.clone());
                        self.result.unlisted_folders.push(spot.clone());
                    }
                }
                // `<>` of Perl runs it.
                if spot
                    .file_name()
                    .is_some_and(|name| name.trim().ends_with('|'))
                {
                    self.record_ask_reason_for_path(
                        spot,
                        "makes a file whose name reads as a command",
                    );
                }
                if spot
                    .file_name()
                    .is_some_and(|name| name.len() > 1 && name.starts_with('-'))
                {
                    self.record_ask_reason_for_path(
                        spot,
                        "makes a file whose name reads as an option",
                    );
                }
                self.result.written.push(spot.clone());
            }
            FileAccess::Replace => {
                self.record_account_file_overwrite(spot);
                self.evaluate_file_access(FileAccess::Write, spot);
            }
            FileAccess::ClearContents => {
                if self.is_host_home(spot) {
                    self.record_forbidden_destruction(|| {
                        format!("removes what is in a home folder: {}", display_path(spot))
                    });
                } else if self.is_host_system_folder(spot) {
                    self.record_forbidden_destruction(|| {
                        format!("removes a part of the system: {}", display_path(spot))
                    });
                }
            }
            FileAccess::BreakPermissions => {
                if self.is_host_home(spot) {
                    self.record_forbidden_destruction(|| {
                        format!(
                            "changes the rights of a home folder: {}",
                            display_path(spot)
                        )
                    });
                }
            }
            FileAccess::NamedInCode => self.record_protected_path_mention(spot),
            FileAccess::MayWrite => self.result.perhaps_written.push(spot.clone()),
            FileAccess::Remove => {
                if self.is_host_home(spot) {
                    self.record_forbidden_destruction(|| {
                        format!("removes a home folder: {}", display_path(spot))
                    });
                } else if self.is_host_system_folder(spot) || ground.is_disk_device_path(spot) {
                    self.record_forbidden_destruction(|| {
                        format!("removes a part of the system: {}", display_path(spot))
                    });
                }
                self.check_protected_write(spot, SubtreeExtent::All);
                self.prompt_if_guarded_path(spot);
                self.result.removed.push(spot.clone());
                match place {
                    PathLocation::Tree { sure: true } if ground.matches_all_project_files(spot) => {
                        self.require_asking_person("removes all that is in the project's tree")
                    }
                    PathLocation::Tree { sure: true }
                    | PathLocation::Scratch { sure: true }
                    | PathLocation::NoStorage => {}
                    PathLocation::Tree { sure: false }
                    | PathLocation::Scratch { sure: false }
                    | PathLocation::Unknown => {
                        self.require_asking_person("removes what only the run knows")
                    }
                    PathLocation::WholeTree => {
                        self.require_asking_person("removes all that is in the project's tree")
                    }
                    PathLocation::Git => {
                        self.record_ask_reason_for_path(spot, "removes Git's own files")
                    }
                    PathLocation::Device | PathLocation::Startup | PathLocation::Outside => self
                        .record_ask_reason_for_path(
                            spot,
                            "removes what lies outside the project's tree",
                        ),
                }
            }
        }
    }

    fn is_host_home(&self, spot: &ResolvedPath) -> bool {
        !self.context.contained && self.context.roots.is_home(spot)
    }

    fn is_host_system_folder(&self, spot: &ResolvedPath) -> bool {
        !self.context.contained && self.context.roots.is_system_folder(spot)
    }

    /// Whether nobody logs in without what was there.
    fn record_account_file_overwrite(&mut self, spot: &ResolvedPath) {
        if !self.context.contained && self.context.roots.is_account_file(spot) {
            self.record_forbidden_destruction(|| {
                format!(
                    "overwrites the accounts of the system: {}",
                    display_path(spot)
                )
            });
        }
    }

    fn ask_about_write_location(&mut self, place: PathLocation, spot: &ResolvedPath) {
        match place {
            PathLocation::Tree { .. }
            | PathLocation::WholeTree
            | PathLocation::NoStorage
            | PathLocation::Scratch { .. } => {}
            PathLocation::Git => self.record_ask_reason_for_path(spot, "writes Git's own files"),
            PathLocation::Device => self.record_ask_reason_for_path(spot, "writes a device"),
            PathLocation::Startup => self.record_ask_reason_for_path(
                spot,
                "writes what a login or a scheduler starts by itself",
            ),
            PathLocation::Outside => {
                self.record_ask_reason_for_path(spot, "writes outside the project's tree")
            }
            PathLocation::Unknown => self.require_asking_person("writes where only the run knows"),
        }
    }

    /// Files that go into a folder under their own names.
    fn evaluate_copy_into_folder(&mut self, folder: &CommandWord, sources: &[CommandWord]) {
        let folders = self.resolve_word_paths(folder);
        for source in sources {
            for inner in self.resolve_word_paths(source) {
                let Some(name) = inner.file_name() else {
                    continue;
                };
                for folder in &folders {
                    let spot = folder.join_path_part(name);
                    self.result.read.push(inner.clone());
                    self.result.copied.push((inner.clone(), spot.clone()));
                    self.result.copied.push((inner.clone(), folder.clone()));
                    self.check_protected_write(&spot, SubtreeExtent::Nothing);
                    self.prompt_if_guarded_path(&spot);
                    self.record_account_file_overwrite(&spot);
                    if self.context.roots.classify_path_location(&spot) == PathLocation::Git {
                        self.record_ask_reason_for_path(&spot, "writes Git's own files");
                    }
                    self.result.written.push(spot.clone());
                    self.result.written_files.push(spot);
                }
            }
        }
    }

    fn evaluate_link(&mut self, source: &CommandWord, target: &CommandWord, symbolic: bool) {
        let targets = self.resolve_word_paths(target);
        let mut sources = self.resolve_word_paths(source);
        if symbolic && !source.text.starts_with(['/', '~', '$']) {
            // From where the link lies, not from here.
            for target in &targets {
                let paths = self
                    .context
                    .variables
                    .possible_paths(source, self.context.placeholder);
                sources.extend(paths.iter().map(|path| {
                    self.context
                        .roots
                        .resolve_path_named_in_command(&target.parent_folder(), path)
                }));
            }
        }
        for spot in &sources {
            self.check_protected_write(spot, SubtreeExtent::All);
            self.result.written.push(spot.clone());
            if self.context.roots.is_secret_path(spot, false) {
                self.record_ask_reason_for_path(spot, "gives another name to what may be a secret");
            }
            let place = self.context.roots.classify_path_location(spot);
            if !symbolic
                && !matches!(
                    place,
                    PathLocation::Tree { .. } | PathLocation::Scratch { .. }
                )
                || place == PathLocation::Git
                || place == PathLocation::Device
                || place == PathLocation::Startup
            {
                self.ask_about_write_location(place, spot);
            }
            for target in &targets {
                let within = spot
                    .file_name()
                    .map(|name| (target.join_path_part(name), spot.clone()));
                self.result.links.push((target.clone(), spot.clone()));
                self.result.links.extend(within);
            }
        }
        self.result.links.truncate(MOST);
    }

    /// Whether a path that is written is one that nobody writes.
    fn check_protected_write(&mut self, spot: &ResolvedPath, below: SubtreeExtent) {
        if self.policy.protect.is_empty() {
            return;
        }
        let open = spot.path_has_unknown_part();
        let Some(parts) = self.project_relative_path_parts(spot) else {
            if matches!(
                self.context.roots.classify_path_location(spot),
                PathLocation::Unknown
            ) {
                self.record_possibly_protected_path(spot);
            }
            return;
        };
        for pattern in &self.policy.protect {
            match match_protected_pattern(pattern, &parts, below) {
                glob::GlobMatchCertainty::Certain if !open => {
                    let why = format!(
                        "{} is protected by `{pattern}`: leave it as it is, or ask the person",
                        display_path(spot)
                    );
                    self.result.protected = Some((RuleDecision::Forbidden, why));
                    return;
                }
                glob::GlobMatchCertainty::No => {}
                glob::GlobMatchCertainty::Certain | glob::GlobMatchCertainty::Possible => {
                    self.record_possibly_protected_path(spot)
                }
            }
        }
    }

    /// Whether a path that unreadable code names is one that nobody writes.
    fn record_protected_path_mention(&mut self, spot: &ResolvedPath) {
        let parts = self
            .project_relative_path_parts(spot)
            .filter(|parts| !parts.is_empty());
        let meant = |parts: &Vec<String>| {
            let mut patterns = self.policy.protect.iter();
            patterns.any(|pattern| {
                match_protected_pattern(pattern, parts, SubtreeExtent::All)
                    == glob::GlobMatchCertainty::Certain
            })
        };
        if parts.as_ref().is_some_and(meant) {
            self.record_possibly_protected_path(spot);
        }
    }

    /// The path from the top of the project.
    fn project_relative_path_parts(&self, spot: &ResolvedPath) -> Option<Vec<String>> {
        let parts = self.context.roots.project_relative_parts(spot)?;
        let part = |part: &String| match part.contains(super::paths::UNKNOWN) {
            true => "**".to_owned(),
            false => part.clone(),
        };
        Some(parts.iter().map(part).collect())
    }

    /// Whether this is what checks the work: settings of agents, our own.
    fn prompt_if_guarded_path(&mut self, spot: &ResolvedPath) {
        let path = spot.absolute_path_text();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let Some((name, above)) = parts.split_last() else {
            return;
        };
        let meant = |own: &&str| *name != "?*" && glob::globs_intersect(own, name);
        let agents = |part: &&str| matches!(*part, ".claude" | ".codex");
        // A folder that is named goes with all that is in it, as if it were removed itself.
        let top = self
            .context
            .roots
            .project_relative_parts(spot)
            .unwrap_or_default();
        let named = top.first().is_some_and(|first| !glob::is_glob(first));
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
            || open && glob::is_glob(name) && settings.iter().any(meant)
            || ["checkrein.toml"].iter().any(meant)
                && (!glob::is_glob(name) || name.starts_with('c'))
        {
            self.record_ask_reason_for_path(spot, "changes what checks this work");
        }
    }

    fn record_possibly_protected_path(&mut self, spot: &ResolvedPath) {
        if self.result.protected.is_none() {
            let why = format!("this may write a protected path: {}", display_path(spot));
            self.result.protected = Some((RuleDecision::Prompt, why));
        }
    }
}

/// What of a folder is meant beside the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubtreeExtent {
    /// Nothing.
    Nothing,
    /// Some of what lies under it.
    Some,
    /// All that lies under it.
    All,
}

fn match_protected_pattern(
    pattern: &str,
    path: &[String],
    below: SubtreeExtent,
) -> glob::GlobMatchCertainty {
    let pattern: Vec<&str> = pattern
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let itself = glob::match_path_pattern(&pattern, &path, false);
    match below {
        SubtreeExtent::Nothing => itself,
        SubtreeExtent::All => glob::match_path_pattern(&pattern, &path, true),
        SubtreeExtent::Some => {
            // Whatever it is called, or only some of it.
            let any = [path.as_slice(), &["?*"]].concat();
            let whole = glob::match_path_pattern(&pattern, &any, false);
            let part = glob::match_path_pattern(&pattern, &path, true)
                .min(glob::GlobMatchCertainty::Possible);
            itself.max(whole).max(part)
        }
    }
}

/// A path for people.
pub(crate) fn display_path(spot: &ResolvedPath) -> String {
    let path = spot.absolute_path_text();
    let path = path
        .strip_prefix(super::paths::TREE)
        .map_or(path.as_str(), |rest| rest.trim_start_matches('/'));
    let path = if path.is_empty() { "." } else { path };
    path.replace("/\u{2}home-of/", "")
        .replace("/\u{2}home", "~")
        .replace(['\u{1}', '\u{2}', '\u{3}'], "…")
}

/// Whether effects are worth finding out.
pub(crate) fn policy_needs_command_effects(bounds: &EffectPolicy) -> bool {
    bounds.unmatched == UnmatchedDecision::ByEffect
        || bounds.forbids_destruction
        || bounds.hazard_asks
        || !bounds.protect.is_empty()
}
