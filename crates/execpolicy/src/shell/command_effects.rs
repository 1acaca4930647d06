//! Determines and judges the effects of a command, beside what the rules say about its words. Code
//! that the command runs in turn is queued for evaluation.

use checkrein_core::input::RuleDecision;

use super::stdin::StdinSource;
use super::word::CommandWord;
use super::working_dirs::WorkingDirs;
use super::{
    CommandEvaluator, CommandQueuedForEvaluation, MOST_FILES, ProgramHost, downloaded_code, patches,
};
use crate::effects::evaluation::{self as sight, CommandEffectsEvaluation, EffectEvalContext};
use crate::effects::paths::PathLocation;
use crate::effects::word_expansion::WordPlaceholderAndValues;
use crate::effects::{self, CommandEffect, NonFileEffectKind, code};
use crate::rule_set::basename;
use crate::self_protection;

/// What is known about a command beside its words.
#[derive(Default)]
pub(super) struct CommandReadabilityAndHazards {
    /// The reason to ask a person because of the command's effects.
    pub(super) prompt_reason: Option<String>,
    /// The reason to ask a person even if a rule allows the command.
    pub(super) hazard: Option<&'static str>,
    /// Whether all code in the command could be read.
    pub(super) readable: bool,
}

impl CommandEvaluator<'_> {
    /// Judges effects, records them with the collector and remembers the links that they make.
    pub(super) fn evaluate_and_record_effects(
        &mut self,
        effects: &[CommandEffect],
        dirs: &WorkingDirs,
        hole: Option<&WordPlaceholderAndValues>,
        contained: bool,
    ) -> CommandEffectsEvaluation {
        let rules = self.collector.rule_set_in_use();
        let scene = EffectEvalContext {
            roots: &self.roots,
            variables: &self.variables,
            dirs,
            placeholder: hole,
            contained,
        };
        let judged = sight::evaluate_effects(effects, &scene, rules.effect_policy(), &self.links);
        if let Some((decision, why)) = &judged.protected {
            self.collector
                .record_prompt_or_forbid_reason(*decision, why.clone());
        }
        if let Some(what) = &judged.destruction_reason {
            self.collector.forbid_destruction(what);
        }
        self.forbid_if_guarded_file_changes(&judged);
        for spot in &judged.written {
            self.collector
                .record_file_command_may_change(&sight::display_path(spot), false);
        }
        for spot in &judged.removed {
            self.collector
                .record_file_command_may_change(&sight::display_path(spot), true);
        }
        // Links are kept so that a later command that writes through one is judged by its target.
        if self.links.len() < MOST_FILES {
            self.links.extend_from_slice(&judged.links);
        }
        judged
    }

    /// Forbids changes to the files that decide whether anybody is judged, whatever the rules say.
    fn forbid_if_guarded_file_changes(&mut self, judged: &CommandEffectsEvaluation) {
        let protected = self.collector.rule_set_in_use().protected_paths();
        let written = judged.written.iter().chain(&judged.perhaps_written);
        let written = written.map(|spot| (spot, self_protection::PredictedPathChange::Written));
        let removed = judged
            .removed
            .iter()
            .map(|spot| (spot, self_protection::PredictedPathChange::Removed));
        let filled = judged.unlisted_folders.iter();
        // A folder that is copied or linked to such a place brings the files in it along.
        let copied = judged.copied.iter();
        let copied = copied.filter(|(from, to)| from.file_name() == to.file_name());
        let linked = judged.links.iter();
        let put = copied.map(|(_, to)| to).chain(linked.map(|(to, _)| to));
        // Names inside a scratch folder configure no agent, so copies and links there are left
        // alone.
        let put = put.filter(|spot| {
            !matches!(
                self.roots.classify_path_location(spot),
                PathLocation::Scratch { .. }
            )
        });
        let filled = filled
            .chain(put)
            .map(|spot| (spot, self_protection::PredictedPathChange::Filled));
        for (spot, change) in written.chain(removed).chain(filled) {
            if let Some(why) = self_protection::refusal_if_protected_path_changes(
                spot,
                change,
                &self.roots,
                protected,
            ) {
                self.collector
                    .record_prompt_or_forbid_reason(RuleDecision::Forbidden, why);
            }
        }
    }

    /// Collects what is known about a command beside its words, and queues what it runs.
    pub(super) fn gather_hazards_and_queue_nested_commands(
        &mut self,
        command: &CommandQueuedForEvaluation,
        words: &[CommandWord],
        program: &str,
    ) -> CommandReadabilityAndHazards {
        let name = basename(program);
        // The body of a function or alias is judged where it is defined. A name that is also a
        // known program is judged as that program as well, since the definition may not apply
        // here.
        let own = self.functions.contains(program) || self.aliases.contains_key(program);
        if own && !effects::is_known_program(program) {
            return CommandReadabilityAndHazards {
                readable: true,
                ..CommandReadabilityAndHazards::default()
            };
        }
        let brought = matches!(
            command.origin,
            ProgramHost::Project | ProgramHost::Container
        );
        let mut effects = effects::command_effects(program, words, brought);
        // An unquoted expansion that is empty leaves no word at all, so the command is also judged
        // without those words.
        if words.iter().any(CommandWord::is_wholly_unknown_word) {
            let rest = words.iter().filter(|word| !word.is_wholly_unknown_word());
            let rest: Vec<CommandWord> = rest.cloned().collect();
            effects.extend(effects::command_effects(program, &rest, brought));
        }
        match command.origin {
            ProgramHost::Machine => {}
            // A word given to a tool of the project can look like a program's name
            // (`cargo test shutdown`), and a shutdown elsewhere stops no work here.
            ProgramHost::Project | ProgramHost::Container => {
                drop_effects_of_bare_arguments(&mut effects, words)
            }
            ProgramHost::Remote | ProgramHost::ContainerScript => effects.retain(|effect| {
                *effect != CommandEffect::Kind(NonFileEffectKind::ShutsDownMachine)
            }),
        }
        // Code on standard input depends on the redirects, which the table of programs does not
        // see.
        let fed: Vec<_> = effects
            .iter()
            .filter_map(|effect| match effect {
                CommandEffect::StdinCode(language) => Some(*language),
                _ => None,
            })
            .collect();
        for language in fed {
            add_stdin_code_effects(language, &command.stdin, &mut effects);
        }
        // A patch on standard input stands in the script and can be read.
        if let (StdinSource::Text { text, sure: true }, "patch" | "gpatch" | "git") =
            (&command.stdin, name)
            && effects.iter().any(CommandEffect::is_patch_write_effect)
        {
            // The paths in its headers replace the unknown write that the table of programs
            // assumes.
            effects.retain(|effect| !effect.is_patch_write_effect());
            effects.extend(patches::paths_in_diff_headers(text).map(|path| {
                CommandEffect::File(
                    effects::FileAccess::Write,
                    CommandWord::new_literal_word(path),
                )
            }));
        }
        // Codex's patch format comes on standard input or as the only argument.
        let text = match (&command.stdin, words) {
            (StdinSource::Text { text, sure: true }, [_] | [_, _] | [_, _, _]) => {
                Some(text.to_string())
            }
            (_, [_, word]) => word.as_literal().map(str::to_owned),
            _ => None,
        };
        if let (Some(text), "apply_patch" | "applypatch" | "checkrein") = (text, name)
            && effects.iter().any(CommandEffect::is_patch_write_effect)
            && text.contains("*** Begin Patch")
        {
            effects.retain(|effect| !effect.is_patch_write_effect());
            let paths =
                self_protection::codex_patch_paths(&text).map(CommandWord::new_literal_word);
            effects.extend(paths.map(|path| CommandEffect::File(effects::FileAccess::Write, path)));
        }
        let removes = |effect: &CommandEffect| {
            matches!(effect, CommandEffect::File(effects::FileAccess::Remove, _))
        };
        if command.origin == ProgramHost::Container {
            // The project's files may be mounted in the container, so a removal still counts as
            // destroyed data. All other paths are the container's own.
            if effects.iter().any(removes) {
                effects.push(CommandEffect::Kind(NonFileEffectKind::DestroysData));
            }
            effects.retain(|effect| {
                !matches!(
                    effect,
                    CommandEffect::File(..)
                        | CommandEffect::PutInto(..)
                        | CommandEffect::Link(..)
                        | CommandEffect::RunsFile(_)
                )
            });
        }
        let readable = !effects.contains(&CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        let contained = command.origin == ProgramHost::ContainerScript;
        let hole = command.placeholder.as_deref();
        // Everything from here on needs the judged effects: tracking of created files, variables
        // that `env` sets, and code that the command spawns.
        let mut judged = self.evaluate_and_record_effects(&effects, &command.dirs, hole, contained);
        let takes = effects
            .iter()
            .any(|effect| matches!(effect, CommandEffect::StdinCode(_)));
        self.write_then_run.reads_stdin_code |= takes;
        let fetched =
            downloaded_code::is_downloader(name) || command.stdin == StdinSource::Downloaded;
        let fed = matches!(
            command.stdin,
            StdinSource::CommandOutput | StdinSource::Downloaded | StdinSource::Text { .. }
        );
        self.write_then_run
            .track_files_made_by_command(name, &mut judged, (fed, fetched));
        // `env NAME=value` sets variables just as an assignment before a command does.
        if matches!(name, "env" | "genv") {
            for word in words.iter().skip(1).filter(|word| word.is_assignment()) {
                if let Some((name, _)) = word.text.split_once('=') {
                    self.evaluate_shell_assignment(
                        name,
                        word.suffix_after_char('=').as_ref(),
                        command.depth,
                        &command.dirs,
                    );
                }
            }
        }
        for run in judged.spawned {
            self.queue_code_run_by_effect(
                run,
                &command.stdin,
                command.depth + 1,
                (&command.dirs, command.origin),
                command.placeholder.clone(),
            );
        }
        CommandReadabilityAndHazards {
            prompt_reason: judged.prompt_reason,
            hazard: judged.hazard,
            readable,
        }
    }

    /// Judges words that may not be a command. As with rules, only what forbids counts for them:
    /// destruction and changes to guarded files.
    pub(super) fn assess_words_that_may_be_command(
        &mut self,
        command: &CommandQueuedForEvaluation,
        words: &[CommandWord],
        program: &str,
    ) {
        // Paths inside a container name none of the files that are guarded here.
        if command.origin == ProgramHost::Container {
            return;
        }
        let bounds = self.collector.rule_set_in_use().effect_policy();
        let scene = EffectEvalContext {
            roots: &self.roots,
            variables: &self.variables,
            dirs: &command.dirs,
            placeholder: command.placeholder.as_deref(),
            contained: command.origin == ProgramHost::ContainerScript,
        };
        let mut effects = effects::command_effects(program, words, true);
        drop_effects_of_bare_arguments(&mut effects, words);
        let judged = sight::evaluate_effects(&effects, &scene, bounds, &self.links);
        if let Some(what) = &judged.destruction_reason {
            self.collector.forbid_destruction(what);
        }
        self.forbid_if_guarded_file_changes(&judged);
    }
}

/// Drops effects that rest on a bare argument. An argument of a project's tool may name a test, a
/// target or a container's own program (`cargo test shutdown`), which stops nothing on this
/// machine. A disk counts only if a device is named.
fn drop_effects_of_bare_arguments(effects: &mut Vec<CommandEffect>, words: &[CommandWord]) {
    let names_device = words.iter().any(|word| word.text.contains("/dev/"));
    effects.retain(|effect| match effect {
        CommandEffect::Kind(NonFileEffectKind::ShutsDownMachine) => false,
        CommandEffect::Kind(NonFileEffectKind::WipesDisk) => names_device,
        _ => true,
    });
}

/// Adds the effects of code that a program reads from standard input.
fn add_stdin_code_effects(
    language: effects::CodeLanguage,
    feed: &StdinSource,
    effects: &mut Vec<CommandEffect>,
) {
    use effects::CodeLanguage::{Redis, RemoteInput, Shell, Sql, Sqlite, Unread};
    match feed {
        // Shell code on standard input is read by the grammar, as a script of its own.
        _ if language == Shell => {}
        StdinSource::Interactive | StdinSource::PlainFile if language == Unread => {}
        StdinSource::Interactive | StdinSource::Text { sure: true, .. }
            if language == RemoteInput => {}
        _ if language == RemoteInput => {
            effects.push(CommandEffect::Kind(NonFileEffectKind::Uploads))
        }
        StdinSource::Text { text, sure: true } => code::add_code_effects(language, text, effects),
        // The input is a file or is not known, so neither are the statements that it holds.
        StdinSource::Interactive | StdinSource::PlainFile
            if matches!(language, Sql | Sqlite | Redis) =>
        {
            effects.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions))
        }
        StdinSource::Interactive | StdinSource::PlainFile => {
            effects.push(CommandEffect::Kind(NonFileEffectKind::Opaque))
        }
        StdinSource::Text { .. }
        | StdinSource::Paths(_)
        | StdinSource::CommandOutput
        | StdinSource::Downloaded => {
            effects.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode))
        }
    }
}
