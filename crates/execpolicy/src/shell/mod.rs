//! Judges shell commands against the rules: a real grammar parses the script, and every command
//! that it can run is judged, wherever it stands.
//!
//! What cannot be read is recorded and, if any rule restricts, asked about; it is never allowed.

mod arithmetic;
mod command_effects;
mod downloaded_code;
mod environment_changes;
mod fact_collector;
mod fragments;
mod grammar_mask;
mod lexical_scan;
mod nested_code;
mod parse_cache;
mod patches;
mod quoting;
mod stdin;
mod substitution_output;
mod syntax_walk;
mod word;
mod working_dirs;
mod wrapper_options;
mod wrappers;
mod write_then_run;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use checkrein_core::input::ToolRequestFacts;

use crate::effect_policy::{EffectPolicy, UnmatchedDecision};
use crate::effects::evaluation::NestedCommandOrCode;
use crate::effects::paths::{LexicalPath, ProjectAndHomeFolders, UNKNOWN};
use crate::effects::word_expansion::{
    KnownShellVariables, POSITIONAL_ARGS, WordPlaceholderAndValues,
};
use crate::effects::{self, CommandEffect, dangerous_variables};
use crate::rule_set::{RuleSet, basename};
use crate::self_protection;
use command_effects::CommandReadabilityAndHazards;
use fact_collector::{CommandFactsCollector, PromptReasons};
pub use fact_collector::{FileCommandWouldChange, FilesCommandWouldChange};
pub(crate) use nested_code::{NestedCode, code_run_by_command};
pub use parse_cache::ParsedShellScriptCache;
pub use patches::{
    PatchApplyingCommand, PatchApplyingProgram, PatchTextSource, patch_commands_in_argv,
    patches_in_script,
};
pub(crate) use stdin::StdinSource;
pub(crate) use word::{CommandWord, WordKnowledge, command_word_from_syntax_node};
pub use working_dirs::CommandStartFolders;
pub(crate) use working_dirs::WorkingDir;
use working_dirs::WorkingDirs;
use write_then_run::WriteThenRunTracker;

/// Bytes of a script that is parsed; a longer one is only scanned.
const MAX_SCRIPT: usize = 1 << 20;
/// Bytes of all scripts of one request together.
const MAX_BYTES: usize = 2 << 20;
/// How deep scripts and wrappers may be nested.
const MAX_DEPTH: u16 = 24;
/// Commands of one request that are unfolded; the rest is only scanned.
const MAX_COMMANDS: usize = 200_000;
/// Links, and values of a placeholder, that are kept.
const MOST_FILES: usize = 256;
/// Function calls whose words are kept together.
const MAX_CALL_ARGUMENTS: usize = 16;
/// Words of a command of unsure shape that are each tried as a command.
const MAX_TRIED: usize = 64;

/// Judges every command that a shell script can run.
///
/// The overall rule is `Allow` only if every command has an allow rule of its own and
/// nothing is unresolved; with a prompt or forbidden rule loaded, anything unresolved
/// makes it at least `Prompt`.
pub fn evaluate_script(rules: &RuleSet, script: &str) -> ToolRequestFacts {
    evaluate_script_with_parse_cache(
        &ParsedShellScriptCache::default(),
        rules,
        script,
        &CommandStartFolders::start_folders_at_project_root(),
    )
    .0
}

/// Judges a command that an agent gives as words, without a shell; what it runs in turn
/// (`bash -lc TEXT`, `env`, ...) included.
pub fn evaluate_argv<S: AsRef<str>>(rules: &RuleSet, argv: &[S]) -> ToolRequestFacts {
    evaluate_argv_with_script_cache(
        &ParsedShellScriptCache::default(),
        rules,
        argv,
        &CommandStartFolders::start_folders_at_project_root(),
    )
    .0
}

/// Judges a script whose syntax trees may be used again for later questions, and returns the files
/// that it changes as well. Where those really lie is for the caller to check: this crate reads no
/// files.
pub fn evaluate_script_with_parse_cache(
    scripts: &ParsedShellScriptCache,
    rules: &RuleSet,
    script: &str,
    start: &CommandStartFolders,
) -> (ToolRequestFacts, FilesCommandWouldChange) {
    let mut judge = CommandEvaluator::new(rules);
    judge.scripts = scripts.clone();
    judge.queue_script_for_evaluation(
        script,
        StdinSource::Interactive,
        0,
        &start.0,
        ProgramHost::Machine,
    );
    judge.finish_facts_and_touched_files()
}

/// Judges a command given as words, as [`evaluate_script_with_parse_cache`] judges a script.
pub fn evaluate_argv_with_script_cache<S: AsRef<str>>(
    scripts: &ParsedShellScriptCache,
    rules: &RuleSet,
    argv: &[S],
    start: &CommandStartFolders,
) -> (ToolRequestFacts, FilesCommandWouldChange) {
    let mut judge = CommandEvaluator::new(rules);
    judge.scripts = scripts.clone();
    judge.queue_argv_for_evaluation(argv, start);
    judge.finish_facts_and_touched_files()
}

/// Judges a tool call that writes these files. No prefix rule can name such a call, so only the
/// bounds that need no rule apply.
pub fn evaluate_file_writes(rules: &RuleSet, paths: &[String]) -> ToolRequestFacts {
    let written = |path: &String| FileCommandWouldChange {
        path: path.clone(),
        removed: false,
    };
    let touched: Vec<FileCommandWouldChange> = paths.iter().map(written).collect();
    evaluate_file_changes(rules, &touched)
}

/// Judges a tool call that writes or removes these files.
pub fn evaluate_file_changes(
    rules: &RuleSet,
    changes: &[FileCommandWouldChange],
) -> ToolRequestFacts {
    let mut judge = CommandEvaluator::new(rules);
    for change in changes {
        judge.evaluate_file_change(change);
    }
    judge.into_tool_request_facts()
}

/// Judges files by where they really lie: by the rules that no config switches off and by the
/// protected paths. Whether they lie in the project is not asked here; their names answered that.
pub fn evaluate_real_paths(rules: &RuleSet, places: &[FileCommandWouldChange]) -> ToolRequestFacts {
    let bounds = EffectPolicy {
        unmatched: UnmatchedDecision::Allow,
        ..rules.effect_policy().clone()
    };
    let rules = RuleSet::default()
        .with_protected_paths(rules.protected_paths().to_vec())
        .with_effect_policy(bounds);
    let mut judge = CommandEvaluator::new(&rules);
    for place in places {
        judge.evaluate_file_change(place);
    }
    judge.into_tool_request_facts()
}

/// A command that waits to be judged.
struct CommandQueuedForEvaluation {
    words: Rc<[CommandWord]>,
    /// Index of its first word: a wrapper shares the words with the command that it runs.
    first_word: usize,
    stdin: StdinSource,
    depth: u16,
    /// Whether it is certain to be a command. If not, it counts only if a rule restricts it.
    sure: bool,
    dirs: WorkingDirs,
    placeholder: Option<Rc<WordPlaceholderAndValues>>,
    origin: ProgramHost,
}

/// Who provides the program of a command, and where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ProgramHost {
    /// This machine.
    Machine,
    /// The project, or a package registry.
    Project,
    /// A container, which has files of its own.
    Container,
    /// A script in a container, which has a system of its own; which files are shared is not
    /// known.
    ContainerScript,
    /// Another machine: stopping it stops no work here.
    Remote,
}

struct CommandEvaluator<'r> {
    collector: CommandFactsCollector<'r>,
    scripts: ParsedShellScriptCache,
    pending: VecDeque<CommandQueuedForEvaluation>,
    aliases: HashMap<String, String>,
    bytes: usize,
    commands: usize,
    /// Scripts read already, each with its standard input. Without this, a shell that is fed
    /// itself would double the work with every level.
    scripts_read: HashSet<(String, StdinSource, ProgramHost)>,
    roots: ProjectAndHomeFolders,
    variables: KnownShellVariables,
    functions: HashSet<String>,
    /// The arguments of functions and scripts, all words of one call together.
    call_arguments: Vec<Vec<CommandWord>>,
    /// Texts that would run code if evaluated as arithmetic, and whether anything evaluates
    /// arithmetic.
    arithmetic_injections: Vec<String>,
    reads_arithmetic: bool,
    links: Vec<(LexicalPath, LexicalPath)>,
    write_then_run: WriteThenRunTracker,
    /// Judged last, since a link that a command makes changes where a redirect leads. The flag
    /// says whether the redirect stands in a script that a container runs.
    redirected: Vec<(syntax_walk::FileRedirect, bool)>,
}

impl<'r> CommandEvaluator<'r> {
    fn new(rules: &'r RuleSet) -> Self {
        Self {
            collector: CommandFactsCollector::new(rules),
            scripts: ParsedShellScriptCache::default(),
            pending: VecDeque::new(),
            aliases: HashMap::new(),
            bytes: 0,
            commands: 0,
            scripts_read: HashSet::new(),
            roots: ProjectAndHomeFolders::new(&rules.effect_policy().roots),
            variables: KnownShellVariables::default(),
            functions: HashSet::new(),
            call_arguments: Vec::new(),
            arithmetic_injections: Vec::new(),
            reads_arithmetic: false,
            links: Vec::new(),
            write_then_run: WriteThenRunTracker::default(),
            redirected: Vec::new(),
        }
    }

    fn queue_argv_for_evaluation<S: AsRef<str>>(
        &mut self,
        argv: &[S],
        start: &CommandStartFolders,
    ) {
        let words: Vec<CommandWord> = argv
            .iter()
            .map(|word| CommandWord::new_literal_word(word.as_ref()))
            .collect();
        self.queue_command_to_evaluate(CommandQueuedForEvaluation {
            words: words.into(),
            first_word: 0,
            stdin: StdinSource::Interactive,
            depth: 0,
            sure: true,
            dirs: start.0.clone(),
            placeholder: None,
            origin: ProgramHost::Machine,
        });
    }

    fn evaluate_file_change(
        &mut self,
        FileCommandWouldChange { path, removed }: &FileCommandWouldChange,
    ) {
        let act = match removed {
            true => effects::FileAccess::Remove,
            false => effects::FileAccess::Write,
        };
        let effects = [CommandEffect::File(
            act,
            CommandWord::new_literal_word(path.as_str()),
        )];
        self.evaluate_effects_without_command(
            &effects,
            &CommandStartFolders::start_folders_at_project_root().0,
        );
    }

    fn into_tool_request_facts(self) -> ToolRequestFacts {
        self.finish_facts_and_touched_files().0
    }

    fn finish_facts_and_touched_files(mut self) -> (ToolRequestFacts, FilesCommandWouldChange) {
        while let Some(command) = self.pending.pop_front() {
            self.evaluate_queued_command(&command);
        }
        // A spent budget means that some word was not followed to its end.
        if self.variables.is_expansion_budget_spent() {
            self.collector
                .note_unresolved_command_part("more than can be followed");
        }
        // Such a text runs nothing unless the request also evaluates arithmetic somewhere.
        if self.reads_arithmetic {
            for trap in std::mem::take(&mut self.arithmetic_injections) {
                self.record_unparsed_script_piece(&trap);
            }
        }
        for (redirected, contained) in std::mem::take(&mut self.redirected) {
            self.evaluate_redirect(&redirected, contained);
        }
        // Copies can have a redirect as their source, so they are followed after all redirects.
        self.write_then_run.follow_copies_of_created_files();
        if self.policy_asks_about_hazards()
            && let Some(path) = self.write_then_run.file_downloaded_then_run()
        {
            let why = format!(
                "policy asks: {path}: this {}",
                downloaded_code::DOWNLOAD_HAZARD
            );
            self.collector.record_reason_to_ask_person(why);
        }
        if self.decides_unmatched_by_effect()
            && let Some(path) = self
                .write_then_run
                .file_written_then_run(self.variables.is_variable_set("PATH"))
        {
            let why = format!("policy asks: {path} is written and run at once");
            self.collector.record_reason_to_ask_person(why);
        }
        self.collector.into_facts_and_touched_files()
    }

    fn decides_unmatched_by_effect(&self) -> bool {
        self.collector.rule_set_in_use().effect_policy().unmatched == UnmatchedDecision::ByEffect
    }

    fn policy_asks_about_hazards(&self) -> bool {
        self.collector.rule_set_in_use().effect_policy().hazard_asks
    }

    fn queue_command_to_evaluate(&mut self, command: CommandQueuedForEvaluation) {
        self.pending.push_back(command);
    }

    fn record_unparsed_script_piece(&mut self, piece: &str) {
        self.collector.note_unresolved_command_part(piece);
        self.collector.scan_unparsed_for_forbidden_words(piece);
    }

    fn queue_script_for_evaluation(
        &mut self,
        text: &str,
        feed: StdinSource,
        depth: u16,
        dirs: &WorkingDirs,
        kind: ProgramHost,
    ) {
        // The queue is worked breadth first, so an earlier reading of the same script was no
        // deeper and has found all that this one could.
        if depth > 0
            && !self
                .scripts_read
                .insert((text.to_owned(), feed.clone(), kind))
        {
            return;
        }
        self.bytes = self.bytes.saturating_add(text.len());
        // A text beyond the bounds is not dropped: it is recorded as unresolved and scanned for
        // words that a rule forbids.
        if text.len() > MAX_SCRIPT || self.bytes > MAX_BYTES || depth > MAX_DEPTH {
            self.record_unparsed_script_piece(text);
            return;
        }
        let script = syntax_walk::parse_script_into_commands(&self.scripts, text, &feed, dirs);
        if script.broken {
            self.record_unparsed_script_piece(text);
        }
        // A patch in Codex's format names its files in the text, whatever the grammar makes of it.
        for path in self_protection::codex_patch_paths(text) {
            let effects = [CommandEffect::File(
                effects::FileAccess::Write,
                CommandWord::new_literal_word(path),
            )];
            self.evaluate_effects_without_command(&effects, dirs);
        }
        if !script.broken && script.doubtful.is_empty() {
            return self.queue_script_contents(script, depth, dirs, kind);
        }
        // The commands of the whole reading are kept, so that a fragment that yields the same
        // command does not have it judged twice.
        let read = script.commands.iter().cloned();
        let read = read.map(|found| (found.words.clone(), found)).collect();
        self.queue_script_contents(script, depth, dirs, kind);
        self.queue_commands_of_broken_script(text, &read, &feed, depth, (dirs, kind));
    }

    /// Records and queues what was read of a script.
    fn queue_script_contents(
        &mut self,
        script: syntax_walk::AnalyzedShellScript,
        depth: u16,
        dirs: &WorkingDirs,
        kind: ProgramHost,
    ) {
        self.functions.extend(script.functions);
        self.arithmetic_injections
            .extend(script.arithmetic_injections);
        self.reads_arithmetic |= script.reads_arithmetic;
        // All assignments are recorded before any command is judged: a variable stands for every
        // value that the script gives it.
        for (name, value) in &script.assigned {
            self.evaluate_shell_assignment(name, value.as_ref(), depth, dirs);
        }
        for found in &script.commands {
            let given = self.function_or_set_arguments(&found.words).to_vec();
            for word in &given {
                self.variables
                    .record_shell_variable_value(POSITIONAL_ARGS, Some(word.clone()));
            }
            let dashes = given
                .iter()
                .take_while(|word| word.as_literal() == Some("--"));
            let words = given.get(dashes.count()..).unwrap_or(&[]);
            // A call whose first word is an expansion is left out, since `$@` could then be
            // replaced by itself.
            let named = words
                .first()
                .is_some_and(|word| word.knowledge == WordKnowledge::Literal);
            if named && self.call_arguments.len() < MAX_CALL_ARGUMENTS {
                self.call_arguments.push(words.to_vec());
            }
        }
        let contained = kind == ProgramHost::ContainerScript;
        let redirected = script.redirected.into_iter();
        self.redirected
            .extend(redirected.map(|redirected| (redirected, contained)));
        for piece in &script.doubtful {
            self.record_unparsed_script_piece(piece);
        }
        for found in script.commands {
            self.queue_command_to_evaluate(CommandQueuedForEvaluation {
                words: found.words.into(),
                first_word: 0,
                stdin: found.stdin,
                depth,
                sure: true,
                dirs: found.dirs,
                placeholder: None,
                // A script is read as it stands, whoever brings it.
                origin: match kind {
                    ProgramHost::Project => ProgramHost::Machine,
                    kind => kind,
                },
            });
        }
    }

    /// Evaluates a script that the grammar cannot be trusted with, piece by piece. What is read of
    /// a piece holds, and a piece that cannot be read hides none of the others. `known`: the
    /// commands that the grammar found in the whole script, by their words.
    fn queue_commands_of_broken_script(
        &mut self,
        text: &str,
        known: &HashMap<Vec<CommandWord>, syntax_walk::ScriptCommand>,
        feed: &StdinSource,
        depth: u16,
        (dirs, kind): (&WorkingDirs, ProgramHost),
    ) {
        // Folders and downloads carry over from one piece to the next, as they would in the
        // script.
        let mut dirs = dirs.clone();
        let mut fetches = false;
        for piece in fragments::split_script_fragments(text) {
            let whole = piece.pipeline_to_script_text();
            self.bytes = self.bytes.saturating_add(whole.len());
            if self.bytes > MAX_BYTES {
                return;
            }
            let mut read = vec![syntax_walk::parse_script_into_commands(
                &self.scripts,
                &whole,
                feed,
                &dirs,
            )];
            // Only a pipeline that is still broken as a whole is tried member by member.
            let members: Vec<fragments::PipelineMember> =
                match read.first().is_some_and(|read| read.broken) {
                    true => piece.members,
                    false => Vec::new(),
                };
            for (at, member) in members.iter().enumerate() {
                let feed = match (at, fetches) {
                    (0, _) => feed.clone(),
                    (_, true) => StdinSource::Downloaded,
                    (_, false) => StdinSource::CommandOutput,
                };
                let script = syntax_walk::parse_script_into_commands(
                    &self.scripts,
                    &member.pipeline_member_to_script_text(),
                    &feed,
                    &dirs,
                );
                read.push(match script.broken {
                    true => {
                        self.analyze_unparsable_command_by_quoting(member, feed, depth, &dirs, kind)
                    }
                    false => script,
                });
            }
            for mut script in read.into_iter().filter(|script| !script.broken) {
                let mut words = script.commands.iter().map(|found| &found.words);
                fetches |= words.any(|words| downloaded_code::calls_downloader(words));
                let is_new =
                    |found: &syntax_walk::ScriptCommand| known.get(&found.words) != Some(found);
                script.commands.retain(is_new);
                let ends_in = script.ends_in.take();
                self.queue_script_contents(script, depth, &dirs, kind);
                dirs = ends_in.unwrap_or(dirs);
            }
        }
    }

    /// Reads a command that the grammar cannot parse even alone, by the rules of quoting.
    fn analyze_unparsable_command_by_quoting(
        &mut self,
        member: &fragments::PipelineMember,
        feed: StdinSource,
        depth: u16,
        dirs: &WorkingDirs,
        kind: ProgramHost,
    ) -> syntax_walk::AnalyzedShellScript {
        // Substitutions run even where the command around them is not understood.
        for text in member.substitution_scripts() {
            self.queue_script_for_evaluation(text, StdinSource::PlainFile, depth + 1, dirs, kind);
        }
        let (words, written) = member.words_and_write_targets();
        syntax_walk::AnalyzedShellScript::single_command_script_from_words(
            words, written, feed, dirs,
        )
    }

    /// Returns the arguments given to a function that is called in these words, or by `set` to the
    /// script itself.
    fn function_or_set_arguments<'w>(&self, words: &'w [CommandWord]) -> &'w [CommandWord] {
        let calls = |word: &CommandWord| {
            word.as_literal()
                .is_some_and(|name| name == "set" || self.functions.contains(name))
        };
        let at = words
            .iter()
            .position(calls)
            .map_or(words.len(), |at| at + 1);
        words.get(at..).unwrap_or(&[])
    }

    fn evaluate_redirect(&mut self, redirected: &syntax_walk::FileRedirect, contained: bool) {
        // `>&2` and `2>&1` name no file.
        let digits = |text: &str| {
            text == "-" || !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
        };
        if redirected.path.as_literal().is_some_and(digits)
            || redirected.path.text.starts_with(['<', '>'])
        {
            return;
        }
        // Appending loses nothing that is there, so it is the milder effect.
        let act = match redirected.written {
            true if redirected.appended => effects::FileAccess::Write,
            true => effects::FileAccess::Replace,
            false => effects::FileAccess::Read,
        };
        let mut effects = vec![CommandEffect::File(act, redirected.path.clone())];
        // Some command of the request reads its program from standard input, and this file may be
        // it.
        if self.write_then_run.reads_stdin_code && !redirected.written {
            effects.push(CommandEffect::StartsFile(redirected.path.clone()));
        }
        self.evaluate_fetched_or_contained_effects(
            &effects,
            &redirected.dirs,
            redirected.fetched,
            contained,
        );
    }

    /// Evaluates effects that belong to no command that a rule could name.
    fn evaluate_effects_without_command(&mut self, effects: &[CommandEffect], dirs: &WorkingDirs) {
        self.evaluate_fetched_or_contained_effects(effects, dirs, false, false);
    }

    /// Does the same. `fetched`: what is written comes from the network. `contained`: a container
    /// does it.
    fn evaluate_fetched_or_contained_effects(
        &mut self,
        effects: &[CommandEffect],
        dirs: &WorkingDirs,
        fetched: bool,
        contained: bool,
    ) {
        let judged = self.evaluate_and_record_effects(effects, dirs, None, contained);
        self.write_then_run
            .track_files_written_by_redirect_or_patch(&judged, fetched);
        if self.decides_unmatched_by_effect()
            && let Some(why) = judged.prompt_reason
        {
            self.collector
                .record_reason_to_ask_person(format!("policy asks: this {why}"));
        }
    }

    fn evaluate_shell_assignment(
        &mut self,
        name: &str,
        value: Option<&CommandWord>,
        depth: u16,
        dirs: &WorkingDirs,
    ) {
        self.variables
            .record_shell_variable_value(name, value.cloned());
        // The name that a substitution prints counts as a value too: `RM=$(which rm)`.
        if let Some([word]) = value
            .and_then(|value| substitution_output::words_printed_by_substitution(&value.text))
            .as_deref()
        {
            self.variables
                .record_shell_variable_value(name, Some(word.clone()));
        }
        match dangerous_variables::hazard_of_setting_variable(name, value) {
            Some(dangerous_variables::EnvVariableHazard::Runs(run)) => self
                .queue_code_run_by_effect(
                    run,
                    &StdinSource::PlainFile,
                    depth + 1,
                    (dirs, ProgramHost::Machine),
                    None,
                ),
            Some(dangerous_variables::EnvVariableHazard::Prompts(why))
                if self.decides_unmatched_by_effect() =>
            {
                self.collector
                    .record_reason_to_ask_person(format!("policy asks: setting {name} {why}"));
            }
            Some(dangerous_variables::EnvVariableHazard::Prompts(_)) | None => {}
        }
    }

    /// Queues the code that an effect runs.
    fn queue_code_run_by_effect(
        &mut self,
        run: NestedCommandOrCode,
        feed: &StdinSource,
        depth: u16,
        (dirs, kind): (&WorkingDirs, ProgramHost),
        hole: Option<Rc<WordPlaceholderAndValues>>,
    ) {
        let (words, kind) = match run {
            NestedCommandOrCode::Script(word) => {
                // The known part of the text is still judged below.
                if word.knowledge != WordKnowledge::Literal {
                    self.collector.note_unresolved_command_part(&word.text);
                }
                return self.queue_script_for_evaluation(
                    &word.text,
                    feed.clone(),
                    depth,
                    dirs,
                    kind,
                );
            }
            // It was read together with the command that it is fed to.
            NestedCommandOrCode::StdinCode(_) => return,
            // A command that a tool of the project starts is an ordinary command again.
            NestedCommandOrCode::Command(words) if kind == ProgramHost::Project => {
                (words, ProgramHost::Machine)
            }
            NestedCommandOrCode::Command(words) => (words, kind),
            NestedCommandOrCode::ProjectTool(words) if kind == ProgramHost::Machine => {
                (words, ProgramHost::Project)
            }
            NestedCommandOrCode::ProjectTool(words) => (words, kind),
            NestedCommandOrCode::ContainerCommand(words) => (words, ProgramHost::Container),
        };
        self.queue_command_to_evaluate(CommandQueuedForEvaluation {
            words: words.into(),
            first_word: 0,
            stdin: feed.clone(),
            depth,
            sure: true,
            dirs: dirs.clone(),
            placeholder: hole,
            origin: kind,
        });
    }

    /// Returns the words as the shell expands them, as far as that can be told.
    fn expand_words_like_shell<'w>(
        &self,
        words: &'w [CommandWord],
        hole: Option<&WordPlaceholderAndValues>,
    ) -> Cow<'w, [CommandWord]> {
        if words
            .iter()
            .all(|word| word.knowledge == WordKnowledge::Literal)
        {
            return Cow::Borrowed(words);
        }
        let settled = words.iter().flat_map(|word| {
            let exact = self.variables.expand_to_literal_words(word, hole);
            exact.unwrap_or_else(|| vec![word.clone()])
        });
        Cow::Owned(settled.collect())
    }

    fn evaluate_queued_command(&mut self, command: &CommandQueuedForEvaluation) {
        let words = command.words.get(command.first_word..).unwrap_or(&[]);
        let Some(first) = words.first() else { return };
        self.commands += 1;
        // Beyond the bounds a command is still scanned, so a forbidden one cannot hide behind many
        // others.
        if self.commands > MAX_COMMANDS || command.depth > MAX_DEPTH {
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            self.record_unparsed_script_piece(&texts.join(" "));
            return;
        }
        let Some(program) = first.program_path_if_known() else {
            if command.sure {
                self.collector.note_unresolved_command_part(&first.text);
                self.collector.add_unknown_program_to_verdict(words);
                if self.policy_asks_about_hazards()
                    && downloaded_code::is_code_from_downloader(&first.text, &self.variables)
                {
                    self.collector
                        .record_prompt_for_risky_command(words, downloaded_code::DOWNLOAD_HAZARD);
                }
                self.evaluate_command_named_by_variable(command, words);
            }
            // An unquoted expansion may come to nothing; then a later word is the command.
            if first.knowledge == WordKnowledge::Unbounded && command.sure {
                self.queue_every_suffix_as_command(command, 1);
            }
            return;
        };
        // Rules match the words as written. Effects are judged by the words as the shell expands
        // them.
        let settled = self.expand_words_like_shell(words, command.placeholder.as_deref());
        let facts = match command.sure {
            true => self.gather_hazards_and_queue_nested_commands(command, &settled, program),
            false => CommandReadabilityAndHazards::default(),
        };
        if !command.sure {
            self.assess_words_that_may_be_command(command, &settled, program);
        }
        let inner = nested_code::code_run_by_command(basename(program), words, &command.stdin);
        let asks = PromptReasons {
            effects: facts.prompt_reason.as_deref(),
            hazard: facts
                .hazard
                .or_else(|| self.hazard_of_downloaded_code(command, &inner)),
        };
        self.collector
            .add_command_to_verdict(words, program, command.sure, asks);
        self.queue_alias_expansion(command, words, program);
        self.queue_nested_code(command, words, inner, facts.readable);
        // The verdict on the words as written holds. The expanded words can only add to it.
        if let Cow::Owned(settled) = settled
            && settled != words
        {
            let words: Rc<[CommandWord]> = settled.into();
            let command = CommandQueuedForEvaluation {
                words: Rc::clone(&words),
                first_word: 0,
                stdin: command.stdin.clone(),
                depth: command.depth,
                sure: command.sure,
                dirs: command.dirs.clone(),
                placeholder: command.placeholder.clone(),
                origin: command.origin,
            };
            let program = words
                .first()
                .and_then(CommandWord::program_path_if_known)
                .unwrap_or("");
            let inner = nested_code::code_run_by_command(basename(program), &words, &command.stdin);
            if let Some(why) = self.hazard_of_downloaded_code(&command, &inner) {
                self.collector.record_prompt_for_risky_command(&words, why);
            }
            self.queue_nested_code(&command, &words, inner, facts.readable);
        }
    }

    /// Judges a command whose name is a constant of this script (`X=rm; $X -rf /`) by that name as
    /// well. The command itself stays recorded as unresolved.
    fn evaluate_command_named_by_variable(
        &mut self,
        command: &CommandQueuedForEvaluation,
        words: &[CommandWord],
    ) {
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        // Each command adds one for every constant, so the queue counts towards the bound here.
        if self.commands + self.pending.len() > MAX_COMMANDS {
            return;
        }
        let constants = self.variables.known_texts_of_word(first);
        let mut begins: Vec<Vec<CommandWord>> = constants
            .iter()
            .map(|name| {
                name.split_whitespace()
                    .map(CommandWord::new_literal_word)
                    .collect()
            })
            .collect();
        // `{rm,-rf,x}` and an array expand to several words, which form one command together.
        let list = first.text.contains("[@]") || first.text.contains("[*]");
        if list || first.text.contains('{') && first.text.contains(',') {
            begins.push(
                constants
                    .iter()
                    .map(CommandWord::new_literal_word)
                    .collect(),
            );
        }
        begins.extend(substitution_output::words_printed_by_substitution(
            &first.text,
        ));
        // `set -- rm -rf /; "$@"`: the words of one call are tried as one command.
        if matches!(first.text.as_str(), "$@" | "${@}" | "$*" | "${*}") {
            begins.extend(self.call_arguments.iter().cloned());
        }
        for own in begins {
            let words: Vec<CommandWord> = own.into_iter().chain(rest.iter().cloned()).collect();
            let named = words.first().and_then(CommandWord::program_path_if_known);
            // A name that still holds an expansion is not known; queueing it would lead here
            // again.
            if named.is_none_or(|named| named.contains(['$', '`'])) {
                continue;
            }
            self.queue_command_to_evaluate(CommandQueuedForEvaluation {
                words: words.into(),
                first_word: 0,
                stdin: command.stdin.clone(),
                depth: command.depth + 1,
                sure: true,
                dirs: command.dirs.clone(),
                placeholder: command.placeholder.clone(),
                origin: command.origin,
            });
        }
    }

    /// Returns why a person is asked if code that a command runs comes from the network.
    fn hazard_of_downloaded_code(
        &self,
        command: &CommandQueuedForEvaluation,
        inner: &[NestedCode],
    ) -> Option<&'static str> {
        // In `curl ... | xargs sh -c` the code is the word that `xargs` adds.
        let added = |text: &str| {
            command.stdin == StdinSource::Downloaded && matches!(text, "" | "{}" | "%")
        };
        let fetched = |inner: &NestedCode| match inner {
            NestedCode::Downloaded(_) => true,
            NestedCode::Unreadable(text) if added(text) => true,
            NestedCode::Code(text) | NestedCode::Unreadable(text) => {
                downloaded_code::is_code_from_downloader(text, &self.variables)
            }
            NestedCode::Script { text, sure: false } => added(text),
            _ => false,
        };
        let asks = command.sure && self.policy_asks_about_hazards();
        (asks && inner.iter().any(fetched)).then_some(downloaded_code::DOWNLOAD_HAZARD)
    }

    fn queue_nested_code(
        &mut self,
        command: &CommandQueuedForEvaluation,
        words: &[CommandWord],
        inner: Vec<NestedCode>,
        readable: bool,
    ) {
        let mut hole = None;
        let program = words
            .first()
            .and_then(CommandWord::program_path_if_known)
            .unwrap_or("");
        // A wrapper may start its command in another folder: `env -C FOLDER COMMAND`.
        let moved;
        let command = match nested_code::wrapper_command_start_folder(basename(program), words) {
            None => command,
            Some(folder) => {
                let dirs = command
                    .dirs
                    .iter()
                    .map(|dir| working_dirs::working_dir_with_cd_step(dir, &folder));
                moved = CommandQueuedForEvaluation {
                    words: Rc::clone(&command.words),
                    stdin: command.stdin.clone(),
                    dirs: dirs.collect(),
                    placeholder: command.placeholder.clone(),
                    ..*command
                };
                &moved
            }
        };
        for inner in inner {
            match inner {
                // Where effects decide, code in another language that was read in full is not
                // unresolved.
                NestedCode::Code(_) if readable && self.decides_unmatched_by_effect() => {}
                NestedCode::Code(piece) => {
                    self.queue_nested_code_item(command, words, NestedCode::Unreadable(piece))
                }
                NestedCode::Command(inner) => {
                    let hole = hole.get_or_insert_with(|| {
                        capped_find_xargs_placeholder_values(words, &command.stdin).map(Rc::new)
                    });
                    self.queue_command_to_evaluate(CommandQueuedForEvaluation {
                        words: inner.into(),
                        first_word: 0,
                        stdin: command.stdin.clone(),
                        depth: command.depth + 1,
                        sure: command.sure,
                        dirs: command.dirs.clone(),
                        placeholder: hole.clone(),
                        origin: command.origin,
                    });
                }
                inner => self.queue_nested_code_item(command, words, inner),
            }
        }
    }

    fn queue_alias_expansion(
        &mut self,
        command: &CommandQueuedForEvaluation,
        words: &[CommandWord],
        program: &str,
    ) {
        // Removed while in use, as the shell does: `alias ls='ls -l'` is no loop.
        let Some(text) = self.aliases.remove(program) else {
            return;
        };
        if let Some(value) = shlex::split(&text).filter(|value| !value.is_empty()) {
            let value = value.into_iter().map(CommandWord::new_literal_word);
            let words: Vec<CommandWord> = value.chain(words.iter().skip(1).cloned()).collect();
            self.queue_command_to_evaluate(CommandQueuedForEvaluation {
                words: words.into(),
                first_word: 0,
                stdin: command.stdin.clone(),
                depth: command.depth + 1,
                sure: command.sure,
                dirs: command.dirs.clone(),
                placeholder: command.placeholder.clone(),
                origin: command.origin,
            });
        }
        self.aliases.insert(program.to_owned(), text);
    }

    fn queue_nested_code_item(
        &mut self,
        command: &CommandQueuedForEvaluation,
        words: &[CommandWord],
        inner: NestedCode,
    ) {
        let depth = command.depth + 1;
        match inner {
            NestedCode::WordsFrom(at) => {
                self.queue_command_to_evaluate(CommandQueuedForEvaluation {
                    words: Rc::clone(&command.words),
                    first_word: command.first_word + at,
                    stdin: command.stdin.clone(),
                    depth,
                    sure: command.sure,
                    dirs: command.dirs.clone(),
                    placeholder: command.placeholder.clone(),
                    origin: command.origin,
                })
            }
            // `queue_nested_code` handles these, since it works out the placeholder once for all
            // of them.
            NestedCode::Command(_) => {}
            NestedCode::PositionalArgs(given) => {
                for word in given {
                    let filled = self
                        .variables
                        .fill_word_placeholder(&word, command.placeholder.as_deref());
                    for word in filled {
                        self.variables
                            .record_shell_variable_value(POSITIONAL_ARGS, word);
                    }
                }
            }
            NestedCode::Script { text, sure } => {
                if !sure {
                    self.collector.note_unresolved_command_part(&text);
                }
                // For a script in a container only the system is separate; files of the project
                // may be shared.
                let kind = match command.origin {
                    ProgramHost::Container => ProgramHost::ContainerScript,
                    ProgramHost::Machine if nested_code::runs_on_other_machine(words) => {
                        ProgramHost::Remote
                    }
                    kind => kind,
                };
                self.queue_script_for_evaluation(
                    &text,
                    command.stdin.clone(),
                    depth,
                    &command.dirs,
                    kind,
                );
            }
            NestedCode::AnyWordFrom(at) => {
                let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                // Trying the words of a guess again adds nothing: they are being tried already.
                if command.sure {
                    self.collector
                        .note_unresolved_command_part(&texts.join(" "));
                    self.queue_every_suffix_as_command(command, at);
                }
            }
            NestedCode::Code(piece)
            | NestedCode::Unreadable(piece)
            | NestedCode::Downloaded(piece) => {
                if command.sure {
                    self.collector.note_unresolved_command_part(&piece);
                }
            }
            NestedCode::Interactive => {
                if command.sure {
                    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                    self.collector
                        .note_unseen_interactive_input(&texts.join(" "));
                }
            }
            // The text is judged even if the alias is never used.
            NestedCode::Alias(name, text) => {
                self.queue_script_for_evaluation(
                    &text,
                    StdinSource::PlainFile,
                    depth,
                    &command.dirs,
                    command.origin,
                );
                self.aliases.insert(name, text);
            }
        }
    }

    /// Tries every suffix of the words as a command.
    fn queue_every_suffix_as_command(&mut self, command: &CommandQueuedForEvaluation, at: usize) {
        for from in (command.first_word + at..command.words.len()).take(MAX_TRIED) {
            self.queue_command_to_evaluate(CommandQueuedForEvaluation {
                words: Rc::clone(&command.words),
                first_word: from,
                stdin: command.stdin.clone(),
                depth: command.depth + 1,
                sure: false,
                dirs: command.dirs.clone(),
                placeholder: None,
                origin: command.origin,
            });
        }
        // The words beyond the bound are only matched against the rules and not unfolded further.
        for from in (command.first_word + at..command.words.len()).skip(MAX_TRIED) {
            let words = command.words.get(from..).unwrap_or(&[]);
            if let Some(program) = words.first().and_then(CommandWord::program_path_if_known) {
                self.collector.add_command_to_verdict(
                    words,
                    program,
                    false,
                    PromptReasons::default(),
                );
            }
        }
    }
}

/// Returns what stands for the unknown words in the command that `find`, `fd` or `xargs` runs.
fn capped_find_xargs_placeholder_values(
    words: &[CommandWord],
    feed: &StdinSource,
) -> Option<WordPlaceholderAndValues> {
    let (placeholder, mut values) = find_or_xargs_placeholder(words, feed)?;
    // Too many names are replaced by a single unknown one, so that none is silently left out.
    if values.len() > MOST_FILES {
        values = vec![CommandWord::word_from_unresolved_text(
            UNKNOWN,
            WordKnowledge::SingleWord,
        )];
    }
    Some((placeholder, values))
}

fn find_or_xargs_placeholder(
    words: &[CommandWord],
    feed: &StdinSource,
) -> Option<WordPlaceholderAndValues> {
    let name = words
        .first()
        .and_then(CommandWord::as_literal)
        .map(basename)?;
    match name {
        "find" | "gfind" => Some(("{}".to_owned(), effects::paths_found_by_find(words))),
        "fd" | "fdfind" => Some(("{}".to_owned(), effects::printed_file_names(words)?)),
        "xargs" | "gxargs" => {
            let placeholder = nested_code::xargs_placeholder(words);
            match feed {
                StdinSource::Paths(paths) => {
                    Some((placeholder.unwrap_or_default(), paths.to_vec()))
                }
                // Without a placeholder, `nested_code` adds the words of a known text itself.
                StdinSource::Text { text, sure: true } => {
                    let lines = text.lines().map(CommandWord::new_literal_word).collect();
                    Some((placeholder?, lines))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
