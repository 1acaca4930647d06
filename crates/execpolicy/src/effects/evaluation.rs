//! Decides whether a command's effects are ordinary work. The program table says what the command
//! does, [`ProjectAndHomeFolders`] says where, and [`EffectPolicy`] says what a person is asked about.

use checkrein_core::input::RuleDecision;

use super::paths::{LexicalPath, PathLocation, ProjectAndHomeFolders};
use super::word_expansion::{KnownShellVariables, WordPlaceholderAndValues};
use super::{CodeLanguage, CommandEffect, FileAccess, NonFileEffectKind, glob};
use crate::effect_policy::{EffectPolicy, UnmatchedDecision};
use crate::shell::{CommandWord, WorkingDir};

/// Maximum number of locations that are told apart for one word.
const MOST: usize = 64;

/// Why a person is asked about a file system on a loop device. A file lies behind the device, and
/// only the machine knows which one.
const LOOP_DEVICE_REASON: &str = "replaces all that is in the file behind a loop device: make the file system in \
                    the file itself, or leave that to the person";

/// The surroundings in which a command runs.
pub(crate) struct EffectEvalContext<'a> {
    /// The folders of the project.
    pub(crate) roots: &'a ProjectAndHomeFolders,
    /// The values that variables can have.
    pub(crate) variables: &'a KnownShellVariables,
    /// The folders in which the command can run.
    pub(crate) dirs: &'a [WorkingDir],
    /// The placeholder in its words, such as `{}`, if there is one.
    pub(crate) placeholder: Option<&'a WordPlaceholderAndValues>,
    /// Whether a container runs it. Homes and system folders are the container's own there; disks
    /// are still the host's.
    pub(crate) contained: bool,
}

/// A command or code that the evaluated command runs in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NestedCommandOrCode {
    /// A text that a shell reads.
    Script(CommandWord),
    /// Another command.
    Command(Vec<CommandWord>),
    /// A program that the project or a registry supplies.
    ProjectTool(Vec<CommandWord>),
    /// A command that runs in a file system of its own.
    ContainerCommand(Vec<CommandWord>),
    /// Code on its standard input.
    StdinCode(CodeLanguage),
}

/// The result of evaluating the effects of one command.
#[derive(Debug, Default)]
pub(crate) struct CommandEffectsEvaluation {
    /// Why a person is asked.
    pub(crate) prompt_reason: Option<String>,
    /// The decision for a protected path, and its reason.
    pub(crate) protected: Option<(RuleDecision, String)>,
    /// Why it is refused: it destroys what nobody means to lose.
    pub(crate) destruction_reason: Option<String>,
    /// Why a person is asked even where the rest is ordinary work, and what to do instead.
    pub(crate) hazard: Option<&'static str>,
    /// What it runs in turn.
    pub(crate) spawned: Vec<NestedCommandOrCode>,
    /// Files that it puts something into.
    pub(crate) written_files: Vec<LexicalPath>,
    /// Folders into which it writes files whose names are not known.
    pub(crate) filled_folders: Vec<LexicalPath>,
    /// Those of the filled folders whose file names are not read from anywhere later.
    pub(crate) unlisted_folders: Vec<LexicalPath>,
    /// Files and folders that it reads.
    pub(crate) read: Vec<LexicalPath>,
    /// Sources and targets that it copies or moves.
    pub(crate) copied: Vec<(LexicalPath, LexicalPath)>,
    /// Files whose code it runs.
    pub(crate) started_files: Vec<LexicalPath>,
    /// Locations that it writes, writes into, or gives another name.
    pub(crate) written: Vec<LexicalPath>,
    /// Locations that are named in unreadable code which writes some file.
    pub(crate) perhaps_written: Vec<LexicalPath>,
    /// Locations that it removes.
    pub(crate) removed: Vec<LexicalPath>,
    /// Links that it makes: the new name and its target.
    pub(crate) links: Vec<(LexicalPath, LexicalPath)>,
}

/// Judges the effects of one command.
pub(crate) fn evaluate_effects(
    effects: &[CommandEffect],
    scene: &EffectEvalContext<'_>,
    bounds: &EffectPolicy,
    links: &[(LexicalPath, LexicalPath)],
) -> CommandEffectsEvaluation {
    let mut sight = EffectEvaluator {
        context: scene,
        policy: bounds,
        links,
        from: scene
            .dirs
            .iter()
            // Where the folder is not certain, the effects are judged from each possible one.
            .flat_map(|dir| possible_working_dirs(scene, dir))
            .take(MOST)
            .collect(),
        changes_modes: effects.contains(&CommandEffect::Kind(NonFileEffectKind::ChangesModes)),
        result: CommandEffectsEvaluation::default(),
    };
    for effect in effects {
        sight.record_effect_evaluation(effect);
    }
    sight.result
}

/// Returns the folders that a chain of `cd` commands can lead to.
fn possible_working_dirs(scene: &EffectEvalContext<'_>, dir: &WorkingDir) -> Vec<LexicalPath> {
    let mut steps = Vec::new();
    let mut at = dir;
    while let Some(step) = at {
        steps.push(&step.to);
        at = &step.from;
    }
    let mut now = vec![scene.roots.initial_working_dir()];
    // The chain was collected from the last `cd` back, and is walked from the first.
    for word in steps.into_iter().rev() {
        let paths = scene.variables.possible_paths_of_word(word, None);
        if !scene
            .variables
            .consume_expansion_budget(now.len() * paths.len() * 8)
        {
            // Out of budget the folder counts as unknown, which asks; it never counts as the
            // project's.
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
    links: &'a [(LexicalPath, LexicalPath)],
    from: Vec<LexicalPath>,
    /// Whether it changes permissions recursively below what it writes.
    changes_modes: bool,
    result: CommandEffectsEvaluation,
}

impl EffectEvaluator<'_, '_> {
    fn record_reason_to_ask_person(&mut self, why: &str) {
        // The first reason is kept: it is the one that the person is shown.
        if self.result.prompt_reason.is_none() {
            self.result.prompt_reason = Some(why.to_owned());
        }
    }

    fn record_ask_reason_for_path(&mut self, spot: &LexicalPath, why: &str) {
        if self.result.prompt_reason.is_none() {
            self.result.prompt_reason = Some(format!("{why}: {}", display_path(spot)));
        }
    }

    fn record_destruction_forbid_reason(&mut self, why: impl FnOnce() -> String) {
        if self.policy.forbids_destruction && self.result.destruction_reason.is_none() {
            self.result.destruction_reason = Some(why());
        }
    }

    /// Returns where a word can point, and where that leads through links made earlier.
    fn resolve_word_paths(&self, word: &CommandWord) -> Vec<LexicalPath> {
        let paths = self
            .context
            .variables
            .possible_paths_of_word(word, self.context.placeholder);
        let mut found: Vec<LexicalPath> = Vec::new();
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
                // Both the name and its target count: a protected file may be reached through
                // either.
                for (name, place) in self.links {
                    found.extend(spot.path_with_alias_replaced(name, place));
                }
                found.push(spot);
            }
        }
        found
    }

    fn record_effect_evaluation(&mut self, effect: &CommandEffect) {
        match effect {
            CommandEffect::Kind(deed) => {
                // Three independent answers: refuse, ask as a hazard, ask as not ordinary work.
                if let Some(why) = deed.destruction_reason() {
                    self.record_destruction_forbid_reason(|| why.to_owned());
                }
                if self.policy.hazard_asks {
                    self.result.hazard = self.result.hazard.or_else(|| deed.hazard_reason());
                }
                if let Some(why) = deed.prompt_reason(self.policy.opaque_asks) {
                    self.record_reason_to_ask_person(why);
                } else if self.policy.reach_asks && deed.is_effect_beyond_project_files() {
                    self.record_reason_to_ask_person("reaches beyond the project's files");
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
                self.evaluate_link_creation(source, target, *symbolic)
            }
            CommandEffect::Patch(folder) => {
                let folder = folder
                    .clone()
                    .unwrap_or_else(|| CommandWord::new_literal_word("."));
                // The caller reads the patch and judges the files that it names.
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
                        // A pipe, a device or an unknown path holds no file whose text could be
                        // judged.
                        PathLocation::NoStorage | PathLocation::Unknown | PathLocation::Device => {
                            self.record_reason_to_ask_person(
                                "runs code that cannot be read beforehand",
                            )
                        }
                        _ if self.policy.opaque_asks => self
                            .record_reason_to_ask_person("runs code that is not read beforehand"),
                        _ => self.result.started_files.push(spot),
                    }
                }
            }
            CommandEffect::Sends(word) => {
                let names = self.context.variables;
                let open = |path: &String| path.contains(super::paths::UNKNOWN);
                // A variable that the script never set may go out, such as a host name; output of a
                // command, or a value that the script built, may not.
                let told = word.text.contains(['(', '`'])
                    || names
                        .possible_paths_of_word(word, self.context.placeholder)
                        .iter()
                        .any(open)
                        && names.holds_script_computed_value(&word.text);
                if told
                    && names
                        .possible_paths_of_word(word, self.context.placeholder)
                        .iter()
                        .any(open)
                    && let Some(why) = NonFileEffectKind::Uploads.prompt_reason(true)
                {
                    self.record_reason_to_ask_person(why);
                }
            }
            CommandEffect::PossibleOption(word) => {
                let hole = self.context.placeholder;
                if self.context.variables.may_be_option(word, hole)
                    && let Some(why) = NonFileEffectKind::UnknownOptions.prompt_reason(true)
                {
                    self.record_reason_to_ask_person(why);
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

    fn evaluate_file_access(&mut self, act: FileAccess, spot: &LexicalPath) {
        let ground = self.context.roots;
        let place = ground.classify_path_location(spot);
        match act {
            // Names alone give nothing away that is asked about.
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
                self.record_write_if_protected(spot, AffectedSubtreePart::Nothing);
                self.result.written.push(spot.clone());
                // A loop device is a hazard and no refused destruction: the file behind it may be
                // an image.
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
                    self.record_destruction_forbid_reason(|| {
                        format!("destroys what is on a disk: {}", display_path(spot))
                    });
                }
            }
            FileAccess::Write | FileAccess::WriteBelow | FileAccess::Unpack => {
                // Phase 1: what is refused outright wherever destruction is.
                if ground.is_disk_device_path(spot) {
                    self.record_destruction_forbid_reason(|| {
                        format!("overwrites a disk: {}", display_path(spot))
                    });
                // Linux reboots or halts on a single letter written to this file.
                } else if spot.absolute_path_text() == "/proc/sysrq-trigger" {
                    self.record_destruction_forbid_reason(|| {
                        format!("stops the machine: {}", display_path(spot))
                    });
                }
                if self.changes_modes
                    && self.is_host_system_folder(spot)
                    && !ground.is_user_managed_system_folder(spot)
                {
                    self.record_destruction_forbid_reason(|| {
                        format!(
                            "changes the rights of a system folder: {}",
                            display_path(spot)
                        )
                    });
                }
                // Phase 2: protected paths and the settings that check this work.
                match act {
                    FileAccess::Write => {
                        self.record_write_if_protected(spot, AffectedSubtreePart::Nothing)
                    }
                    // Which of the names in it those are is not known.
                    _ => self.record_write_if_protected(spot, AffectedSubtreePart::Some),
                }
                self.record_ask_if_settings_path(spot);
                // Files that go into `/tmp` itself are scratch, although `/tmp` lies outside the
                // project.
                if !ground.is_scratch_root(spot) {
                    self.record_ask_reason_for_write(place, spot);
                }
                match act {
                    FileAccess::Write => self.result.written_files.push(spot.clone()),
                    _ => {
                        self.result.filled_folders.push(spot.clone());
                        self.result.unlisted_folders.push(spot.clone());
                    }
                }
                // Phase 3: names that a later command would misread. Perl's `<>` runs a file name
                // that ends in `|`; behind `*`, a name that begins with `-` is read as an option.
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
                // Appending to `/etc/passwd` adds a user; replacing it locks everybody out.
                self.record_passwd_file_overwrite(spot);
                self.evaluate_file_access(FileAccess::Write, spot);
            }
            FileAccess::ClearContents => {
                if self.is_home_outside_container(spot) {
                    self.record_destruction_forbid_reason(|| {
                        format!("removes what is in a home folder: {}", display_path(spot))
                    });
                } else if self.is_host_system_folder(spot) {
                    self.record_destruction_forbid_reason(|| {
                        format!("removes a part of the system: {}", display_path(spot))
                    });
                }
            }
            FileAccess::BreakPermissions => {
                if self.is_home_outside_container(spot) {
                    self.record_destruction_forbid_reason(|| {
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
                if self.is_home_outside_container(spot) {
                    self.record_destruction_forbid_reason(|| {
                        format!("removes a home folder: {}", display_path(spot))
                    });
                // A disk counts inside of a container, too: its `/dev` entry is the real one.
                } else if self.is_host_system_folder(spot) || ground.is_disk_device_path(spot) {
                    self.record_destruction_forbid_reason(|| {
                        format!("removes a part of the system: {}", display_path(spot))
                    });
                }
                // Removing a folder removes every protected file below it.
                self.record_write_if_protected(spot, AffectedSubtreePart::All);
                self.record_ask_if_settings_path(spot);
                self.result.removed.push(spot.clone());
                match place {
                    PathLocation::Tree { sure: true } if ground.matches_all_project_files(spot) => {
                        self.record_reason_to_ask_person(
                            "removes all that is in the project's tree",
                        )
                    }
                    PathLocation::Tree { sure: true }
                    | PathLocation::Scratch { sure: true }
                    | PathLocation::NoStorage => {}
                    PathLocation::Tree { sure: false }
                    | PathLocation::Scratch { sure: false }
                    | PathLocation::Unknown => {
                        self.record_reason_to_ask_person("removes what only the run knows")
                    }
                    PathLocation::WholeTree => self
                        .record_reason_to_ask_person("removes all that is in the project's tree"),
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

    fn is_home_outside_container(&self, spot: &LexicalPath) -> bool {
        !self.context.contained && self.context.roots.is_home(spot)
    }

    fn is_host_system_folder(&self, spot: &LexicalPath) -> bool {
        !self.context.contained && self.context.roots.is_system_folder(spot)
    }

    /// Records that a file is overwritten without which nobody can log in.
    fn record_passwd_file_overwrite(&mut self, spot: &LexicalPath) {
        if !self.context.contained && self.context.roots.is_account_database_file(spot) {
            self.record_destruction_forbid_reason(|| {
                format!(
                    "overwrites the accounts of the system: {}",
                    display_path(spot)
                )
            });
        }
    }

    fn record_ask_reason_for_write(&mut self, place: PathLocation, spot: &LexicalPath) {
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
            PathLocation::Unknown => {
                self.record_reason_to_ask_person("writes where only the run knows")
            }
        }
    }

    /// Evaluates files that are put into a folder under their own names.
    fn evaluate_copy_into_folder(&mut self, folder: &CommandWord, sources: &[CommandWord]) {
        let folders = self.resolve_word_paths(folder);
        for source in sources {
            for inner in self.resolve_word_paths(source) {
                // A source without a last part is `/`, which has no name to be put under.
                let Some(name) = inner.file_name() else {
                    continue;
                };
                for folder in &folders {
                    let spot = folder.join_path_part(name);
                    self.result.read.push(inner.clone());
                    self.result.copied.push((inner.clone(), spot.clone()));
                    // The target may be a file or a folder; both readings are recorded, as it is
                    // not looked up.
                    self.result.copied.push((inner.clone(), folder.clone()));
                    self.record_write_if_protected(&spot, AffectedSubtreePart::Nothing);
                    self.record_ask_if_settings_path(&spot);
                    self.record_passwd_file_overwrite(&spot);
                    // Other locations were judged with the folder itself; only `.git` can come in
                    // by the name.
                    if self.context.roots.classify_path_location(&spot) == PathLocation::Git {
                        self.record_ask_reason_for_path(&spot, "writes Git's own files");
                    }
                    self.result.written.push(spot.clone());
                    self.result.written_files.push(spot);
                }
            }
        }
    }

    fn evaluate_link_creation(
        &mut self,
        source: &CommandWord,
        target: &CommandWord,
        symbolic: bool,
    ) {
        let targets = self.resolve_word_paths(target);
        // A relative target of a symbolic link starts at the folder of the link. The reading from
        // the working folder is kept as well.
        let mut sources = self.resolve_word_paths(source);
        if symbolic && !source.text.starts_with(['/', '~', '$']) {
            // From where the link lies, not from here.
            for target in &targets {
                let paths = self
                    .context
                    .variables
                    .possible_paths_of_word(source, self.context.placeholder);
                sources.extend(paths.iter().map(|path| {
                    self.context
                        .roots
                        .resolve_path_named_in_command(&target.parent_folder(), path)
                }));
            }
        }
        for spot in &sources {
            // Whoever writes through the link writes the source, so the source counts as written.
            self.record_write_if_protected(spot, AffectedSubtreePart::All);
            self.result.written.push(spot.clone());
            if self.context.roots.is_secret_path(spot, false) {
                self.record_ask_reason_for_path(spot, "gives another name to what may be a secret");
            }
            let place = self.context.roots.classify_path_location(spot);
            // A hard link shares the inode, so it is judged like a write wherever the source lies.
            if !symbolic
                && !matches!(
                    place,
                    PathLocation::Tree { .. } | PathLocation::Scratch { .. }
                )
                || place == PathLocation::Git
                || place == PathLocation::Device
                || place == PathLocation::Startup
            {
                self.record_ask_reason_for_write(place, spot);
            }
            for target in &targets {
                // `ln FILE FOLDER` makes the link inside of the folder, under the name of the file.
                let within = spot
                    .file_name()
                    .map(|name| (target.join_path_part(name), spot.clone()));
                self.result.links.push((target.clone(), spot.clone()));
                self.result.links.extend(within);
            }
        }
        // Links multiply with each other, and every later path is compared with all of them.
        self.result.links.truncate(MOST);
    }

    /// Records whether a written path is protected, certainly or possibly.
    fn record_write_if_protected(&mut self, spot: &LexicalPath, below: AffectedSubtreePart) {
        if self.policy.protect.is_empty() {
            return;
        }
        let open = spot.path_has_unknown_part();
        let Some(parts) = self.project_relative_path_parts(spot) else {
            // An unknown path may be a protected one; a known path outside of the project is none.
            if matches!(
                self.context.roots.classify_path_location(spot),
                PathLocation::Unknown
            ) {
                self.record_possibly_protected_path(spot);
            }
            return;
        };
        for pattern in &self.policy.protect {
            match protected_pattern_match_certainty(pattern, &parts, below) {
                // Only a certain match of a known path is refused. Everything less is asked about.
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

    /// Records that unreadable code names a protected path, which it may write.
    fn record_protected_path_mention(&mut self, spot: &LexicalPath) {
        let parts = self
            .project_relative_path_parts(spot)
            .filter(|parts| !parts.is_empty());
        let meant = |parts: &Vec<String>| {
            let mut patterns = self.policy.protect.iter();
            patterns.any(|pattern| {
                protected_pattern_match_certainty(pattern, parts, AffectedSubtreePart::All)
                    == glob::GlobMatchCertainty::Certain
            })
        };
        if parts.as_ref().is_some_and(meant) {
            self.record_possibly_protected_path(spot);
        }
    }

    /// Returns the path relative to the project, with unknown parts as `**`.
    fn project_relative_path_parts(&self, spot: &LexicalPath) -> Option<Vec<String>> {
        let parts = self.context.roots.project_relative_parts(spot)?;
        // An unknown part can hold slashes, and so any number of parts.
        let part = |part: &String| match part.contains(super::paths::UNKNOWN) {
            true => "**".to_owned(),
            false => part.clone(),
        };
        Some(parts.iter().map(part).collect())
    }

    /// Asks before the settings of agents or of Checkrein itself are changed.
    fn record_ask_if_settings_path(&mut self, spot: &LexicalPath) {
        let path = spot.absolute_path_text();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let Some((name, above)) = parts.split_last() else {
            return;
        };
        // A part of unknown name (`?*`) would match every settings file, and would ask about each
        // write.
        let meant = |own: &&str| *name != "?*" && glob::globs_intersect(own, name);
        let agents = |part: &&str| matches!(*part, ".claude" | ".codex");
        // A pattern below a named folder of the project (`src/**/*.json`) is judged like the folder
        // itself, so it does not ask for the sake of settings that may lie deep in it.
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

    fn record_possibly_protected_path(&mut self, spot: &LexicalPath) {
        if self.result.protected.is_none() {
            let why = format!("this may write a protected path: {}", display_path(spot));
            self.result.protected = Some((RuleDecision::Prompt, why));
        }
    }
}

/// How much of what lies under a folder is affected besides the folder itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AffectedSubtreePart {
    /// Nothing.
    Nothing,
    /// Some of what lies under it.
    Some,
    /// All that lies under it.
    All,
}

fn protected_pattern_match_certainty(
    pattern: &str,
    path: &[String],
    below: AffectedSubtreePart,
) -> glob::GlobMatchCertainty {
    let pattern: Vec<&str> = pattern
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let itself = glob::path_pattern_match_certainty(&pattern, &path, false);
    match below {
        AffectedSubtreePart::Nothing => itself,
        AffectedSubtreePart::All => glob::path_pattern_match_certainty(&pattern, &path, true),
        AffectedSubtreePart::Some => {
            // One file of any name in the folder, or a part of its subtree: the second is never
            // certain, because it may be another part.
            let any = [path.as_slice(), &["?*"]].concat();
            let whole = glob::path_pattern_match_certainty(&pattern, &any, false);
            let part = glob::path_pattern_match_certainty(&pattern, &path, true)
                .min(glob::GlobMatchCertainty::Possible);
            itself.max(whole).max(part)
        }
    }
}

/// Formats a path for messages; unknown parts become `…`.
pub(crate) fn display_path(spot: &LexicalPath) -> String {
    let path = spot.absolute_path_text();
    let path = path
        .strip_prefix(super::paths::TREE)
        .map_or(path.as_str(), |rest| rest.trim_start_matches('/'));
    let path = if path.is_empty() { "." } else { path };
    path.replace("/\u{2}home-of/", "")
        .replace("/\u{2}home", "~")
        .replace(['\u{1}', '\u{2}', '\u{3}'], "…")
}

/// Whether the policy makes any use of a command's effects.
pub(crate) fn policy_needs_command_effects(bounds: &EffectPolicy) -> bool {
    bounds.unmatched == UnmatchedDecision::ByEffect
        || bounds.forbids_destruction
        || bounds.hazard_asks
        || !bounds.protect.is_empty()
}
