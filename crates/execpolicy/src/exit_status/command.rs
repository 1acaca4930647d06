//! Traces one command by its words: what it is known to be, what it runs in turn, and which state
//! of the shell it changes.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};
use tree_sitter::Node;

use super::build_tools::{MavenGradleTestHandling, test_handling_by_build_args};
use super::called_scripts::{is_shell, join_path_within_root, prepend_shell_options};
use super::detached_commands::why_command_detaches;
use super::recipes::RecipeFileKind;
use super::recognise::{RecognisedScriptCommand, classify_script_command_words};
use super::status_tracer::ExitStatusTracer;
use super::unknown_programs::operands_may_be_empty;
use super::{CommandStatusContext, MAX_WORK, shorten_to_first_line};
use crate::rule_set::basename;
use crate::shell::{
    CommandWord, NestedCode, StdinSource, WordKnowledge, code_run_by_command,
    command_word_from_syntax_node,
};

/// How deep commands like `timeout 5 COMMAND` may be nested.
const MAX_WRAPPERS: usize = 20;

impl<'t> ExitStatusTracer<'_, '_, 't> {
    pub(super) fn follow_exit_status_of_command(
        &mut self,
        node: Node<'t>,
        position: &CommandStatusContext,
    ) {
        let mut words: Vec<CommandWord> = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        for child in &children {
            match child.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => {}
                "variable_assignment" => {
                    self.note_path_variable_change(*child);
                    self.note_makeflags_assignment(*child);
                    self.note_bash_env_startup_file(self.node_text(*child));
                }
                _ => match self.expand_constant_shell_variable(self.node_text(*child)) {
                    Some(constant) => words.extend(constant),
                    // Where the grammar and the shell do not agree, it is some word.
                    None => words.push(
                        command_word_from_syntax_node(*child, self.text).unwrap_or_else(|| {
                            CommandWord::word_from_unresolved_text(
                                self.node_text(*child),
                                WordKnowledge::Unbounded,
                            )
                        }),
                    ),
                },
            }
        }
        // Substitutions run before the command.
        for child in children {
            self.trace_command_substitutions(child, position);
        }
        // The heredoc is taken here in any case, so that no later command gets it.
        let fed = self.stdin_text.take();
        let position = match self.command_status_matters(&words) {
            true => self.command_status_context(node, position),
            false => position.clone(),
        };
        for word in words.iter().filter(|word| word.is_assignment()) {
            self.note_bash_env_startup_file(&word.text);
        }
        // A startup file can change what every shell runs, so no status after it is believed.
        let position = match &self.startup_file {
            Some(text) if position.failure_reaches_check().is_ok() => position
                .with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text: text.clone(),
                }),
            _ => position,
        };
        let here = CommandStatusContext {
            folder: self.shell.folder.clone(),
            ..position
        };
        let from = self.reader.reading.commands.len();
        self.trace_command_exit_status(&words, self.node_text(node), fed.as_deref(), &here, 0);
        self.note_commands_recorded_for_node(node, from);
    }

    /// Returns whether it matters what becomes of this command's status. A program that exists and
    /// is not known to judge anything may fail without consequence.
    fn command_status_matters(&self, words: &[CommandWord]) -> bool {
        let Some(program) = words.first().and_then(CommandWord::program_path_if_known) else {
            return !words.is_empty();
        };
        let name = basename(program);
        // The commands in its body are asked about one by one.
        if self.functions.contains_key(program) {
            return false;
        }
        if matches!(name, "." | "source" | "wait") || is_shell(name) {
            return true;
        }
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        match classify_script_command_words(&texts) {
            RecognisedScriptCommand::Idle => {
                !code_run_by_command(name, words, &StdinSource::PlainFile).is_empty()
            }
            // Programs that nobody knows are asked about only while half of the work is left.
            RecognisedScriptCommand::Known(CheckScriptCommandKind::Program)
                if self.reader.work > MAX_WORK / 2 =>
            {
                true
            }
            RecognisedScriptCommand::Known(
                CheckScriptCommandKind::Program
                | CheckScriptCommandKind::Utility
                | CheckScriptCommandKind::Question,
            ) => {
                program.contains('/')
                    || name == "cargo"
                    || !(self.reader.project.has_program)(name)
                    || !code_run_by_command(name, words, &StdinSource::PlainFile).is_empty()
            }
            _ => true,
        }
    }

    /// Traces a command by its words. `text`: the command as it is written.
    pub(super) fn trace_command_exit_status(
        &mut self,
        words: &[CommandWord],
        text: &str,
        fed: Option<&str>,
        position: &CommandStatusContext,
        depth: usize,
    ) {
        if depth >= MAX_WRAPPERS {
            self.reader.unread = Some("it is nested too deeply");
            return;
        }
        let Some(program) = words.first().and_then(CommandWord::program_path_if_known) else {
            return self.trace_status_of_unknown_program(words, text, fed, position, depth);
        };
        let name = basename(program);
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let arguments = texts.get(1..).unwrap_or(&[]);
        // In `command pytest` and `timeout 5 pytest` no function is meant.
        if depth == 0 && self.script.functions.contains_key(program) {
            return self.trace_shell_function_call(words, &texts, text, position);
        }
        if let Some(alias) = self.aliases.get(program).cloned() {
            // Only the shell knows what the alias stands for.
            let here = position.with_status_hidden_by(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: alias,
            });
            self.reader.record_check_script_command(
                text,
                program,
                CheckScriptCommandKind::Tests(None),
                &here,
            );
            return;
        }
        match name {
            "alias" => {
                let given = arguments.iter().filter_map(|word| word.split_once('='));
                let named = given.map(|(name, _)| (name.to_owned(), shorten_to_first_line(text)));
                return self.aliases.extend(named);
            }
            "set" => return self.apply_set_options(arguments),
            "cd" | "pushd" => return self.trace_cd_command(arguments),
            // `wait JOB` returns the status of the job, so commands in the background are no
            // longer hidden.
            "wait" if arguments.iter().any(|word| !word.is_empty()) => {
                if position.failure_reaches_check().is_ok() {
                    for at in std::mem::take(&mut self.background) {
                        if let Some(command) = self.reader.reading.commands.get_mut(at) {
                            command.masked_by = None;
                        }
                    }
                }
                return;
            }
            // `trap 'exit 1' ERR` has the effect of `set -e`.
            "trap" => {
                let ends = |word: &&str| word.split_whitespace().any(|word| word == "exit");
                if arguments.contains(&"ERR") && arguments.first().is_some_and(ends) {
                    self.shell.errexit = true;
                }
                return;
            }
            "." | "source" => {
                self.reader.reading.changes_path |=
                    arguments.iter().any(|word| word.ends_with("activate"));
                if let Some(file) = arguments.first() {
                    let same = if position.bash { "bash" } else { "dash" };
                    let read = self.reader.analyze_script_file_exit_statuses(
                        file,
                        &[],
                        Some(same),
                        position,
                    );
                    // A file that was not read may define functions.
                    self.reader.reading.changes_path |= !read;
                }
                return;
            }
            // `exec` replaces the shell, so the status of the command is that of the script.
            "exec" if !arguments.is_empty() => {
                let here = CommandStatusContext {
                    own_reach: position.exit_reach.clone(),
                    ..position.clone()
                };
                self.trace_wrapped_command(name, words, text, fed, &here, depth);
                return;
            }
            // With `;`, `find` ends with 0 whatever its commands do.
            "find" | "gfind" if arguments.contains(&";") => {
                let here = position.with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text: "find -exec ... ;".to_owned(),
                });
                self.trace_wrapped_command(name, words, text, fed, &here, depth);
                return;
            }
            // Without `-e`, `script` does not return the status of its command.
            "script"
                if !arguments.iter().any(|word| {
                    matches!(*word, "-e" | "--return")
                        || word.starts_with('-') && !word.starts_with("--") && word.contains('e')
                }) =>
            {
                let here = position.with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text: "script without -e".to_owned(),
                });
                self.trace_wrapped_command(name, words, text, fed, &here, depth);
                return;
            }
            "xargs" | "gxargs" if arguments.iter().any(|word| is_no_run_if_empty(word)) => {
                let here = CommandStatusContext {
                    may_not_run: true,
                    ..position.clone()
                };
                self.trace_wrapped_command(name, words, text, fed, &here, depth);
                return;
            }
            name if is_shell(name) => {
                return self.trace_shell_invocation(words, text, fed, position);
            }
            _ => {}
        }
        let tests = test_handling_by_build_args(name, arguments);
        let lost = match &tests {
            MavenGradleTestHandling::Ignored(option) => Some(option.clone()),
            _ => why_command_detaches(name, arguments),
        };
        let position = &CommandStatusContext {
            may_not_run: position.may_not_run || tests == MavenGradleTestHandling::Skipped,
            ..match lost {
                Some(text) => position.with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text,
                }),
                None => position.clone(),
            }
        };
        if name == "cargo"
            && let Some(alias) = self.reader.expand_cargo_alias(&texts, position)
        {
            let words: Vec<CommandWord> = alias
                .into_iter()
                .map(CommandWord::new_literal_word)
                .collect();
            return self.trace_command_exit_status(&words, text, fed, position, depth + 1);
        }
        if name == "tox" {
            self.reader.trace_tox_commands(arguments, position);
        }
        if operands_may_be_empty(words) {
            // If that word is empty, the program lists what it knows, or prints help.
            let here = CommandStatusContext {
                may_not_run: true,
                ..position.clone()
            };
            self.reader.record_check_script_command(
                text,
                program,
                CheckScriptCommandKind::Tests(None),
                &here,
            );
            return;
        }
        match classify_script_command_words(&texts) {
            RecognisedScriptCommand::Idle => {
                self.trace_wrapped_command(name, words, text, fed, position, depth);
            }
            RecognisedScriptCommand::Wraps(at) => {
                let inner = words.get(at..).unwrap_or(&[]);
                self.trace_command_exit_status(inner, text, fed, position, depth + 1);
            }
            RecognisedScriptCommand::Script(at) => {
                let script = texts.get(at).copied().unwrap_or("");
                self.reader.analyze_script_exit_statuses(
                    script,
                    &position.child_process_exit_status_context(false),
                );
            }
            RecognisedScriptCommand::PackageScripts(call) => self
                .reader
                .analyze_package_script_exit_statuses(text, program, &call, position),
            RecognisedScriptCommand::Make(mut call) => {
                call.passed_over = call.passed_over.or(self.make_flags);
                self.reader.analyze_recipes_run_by_command(
                    text,
                    program,
                    RecipeFileKind::Make,
                    &call,
                    position,
                )
            }
            RecognisedScriptCommand::Just(call) => self.reader.analyze_recipes_run_by_command(
                text,
                program,
                RecipeFileKind::Just,
                &call,
                position,
            ),
            RecognisedScriptCommand::Known(CheckScriptCommandKind::Program)
                if program.contains('/') && !program.starts_with('/') =>
            {
                self.reader
                    .analyze_script_file_exit_statuses(program, &[], None, position);
                self.reader.record_check_script_command(
                    text,
                    program,
                    CheckScriptCommandKind::ProjectScript,
                    position,
                );
            }
            RecognisedScriptCommand::Known(
                kind @ (CheckScriptCommandKind::Program
                | CheckScriptCommandKind::Utility
                | CheckScriptCommandKind::Question),
            ) => {
                if !self.trace_wrapped_command(name, words, text, fed, position, depth)
                    && !self.guarded.iter().any(|known| known == program)
                {
                    self.reader
                        .record_check_script_command(text, program, kind, position);
                }
            }
            RecognisedScriptCommand::Known(kind) => self
                .reader
                .record_check_script_command(text, program, kind, position),
        }
    }

    /// Traces what a command like `timeout 5 COMMAND` runs; returns whether it is such a command.
    fn trace_wrapped_command(
        &mut self,
        name: &str,
        words: &[CommandWord],
        text: &str,
        fed: Option<&str>,
        position: &CommandStatusContext,
        depth: usize,
    ) -> bool {
        let mut wraps = false;
        // `time` is a keyword of the shell, so a function may follow it.
        let deeper = if name == "time" { depth } else { depth + 1 };
        for inner in code_run_by_command(name, words, &StdinSource::PlainFile) {
            match inner {
                NestedCode::WordsFrom(at) => {
                    wraps = true;
                    self.trace_command_exit_status(
                        words.get(at..).unwrap_or(&[]),
                        text,
                        fed,
                        position,
                        deeper,
                    );
                }
                NestedCode::Command(inner) => {
                    wraps = true;
                    self.trace_command_exit_status(&inner, text, fed, position, deeper);
                }
                NestedCode::Script { text, .. } => {
                    wraps = true;
                    self.reader.analyze_script_exit_statuses(
                        &text,
                        &position.child_process_exit_status_context(false),
                    );
                }
                NestedCode::PositionalArgs(_)
                | NestedCode::AnyWordFrom(_)
                | NestedCode::Code(_)
                | NestedCode::Unreadable(_)
                | NestedCode::Downloaded(_)
                | NestedCode::Interactive
                | NestedCode::Alias(..) => {}
            }
        }
        wraps
    }

    /// Traces `sh -c TEXT`, `bash FILE` and `sh <<END`.
    fn trace_shell_invocation(
        &mut self,
        words: &[CommandWord],
        text: &str,
        fed: Option<&str>,
        position: &CommandStatusContext,
    ) {
        let mut options: Vec<&str> = Vec::new();
        let mut at = 1;
        while let Some(word) = words.get(at).map(|word| word.text.as_str()) {
            if word == "--" {
                at += 1;
                break;
            }
            if !word.starts_with(['-', '+']) || word == "-" {
                break;
            }
            options.push(word);
            at += 1;
            // Each `o` takes the next word as its value.
            for _ in word.matches(['o', 'O']).filter(|_| !word.starts_with("--")) {
                options.extend(words.get(at).map(|word| word.text.as_str()));
                at += 1;
            }
        }
        let is_text = options
            .iter()
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c'));
        let shell = words.first().map_or("", |word| word.text.as_str());
        let within = CommandStatusContext {
            bash: self.reader.supports_bash_syntax(shell),
            ..position.child_process_exit_status_context(false)
        };
        match (words.get(at), fed) {
            (Some(script), _) if is_text => {
                self.reader.analyze_script_exit_statuses(
                    &prepend_shell_options(&options, &script.text),
                    &within,
                );
            }
            (Some(file), _) => {
                let file = file.text.clone();
                self.reader.analyze_script_file_exit_statuses(
                    &file,
                    &options,
                    Some(shell),
                    position,
                );
                self.reader.record_check_script_command(
                    text,
                    words.first().map_or("", |word| word.text.as_str()),
                    CheckScriptCommandKind::ProjectScript,
                    position,
                );
            }
            (None, Some(fed)) => self
                .reader
                .analyze_script_exit_statuses(&prepend_shell_options(&options, fed), &within),
            (None, None) => {
                // `sh < FILE` and `cat FILE | sh` read a script whose name is known.
                let Some(file) = self.stdin_file.take() else {
                    return;
                };
                let read = self.reader.analyze_script_file_exit_statuses(
                    &file,
                    &options,
                    Some(shell),
                    position,
                );
                if !read {
                    let hider = ExitStatusMask::unreadable_exit_status_mask(format!(
                        "{shell} reads {file}"
                    ));
                    let here = position.with_status_hidden_by(hider);
                    self.reader.record_check_script_command(
                        text,
                        shell,
                        CheckScriptCommandKind::Tests(None),
                        &here,
                    );
                }
            }
        }
    }

    fn apply_set_options(&mut self, arguments: &[&str]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let on = word.starts_with('-');
            let Some(letters) = word.strip_prefix(['-', '+']) else {
                return;
            };
            if letters.starts_with('-') {
                return;
            }
            if letters.contains('e') {
                self.shell.errexit = on;
            }
            for _ in letters.matches('o') {
                match words.next() {
                    Some(&"pipefail") => self.shell.pipefail = on,
                    Some(&"errexit") => self.shell.errexit = on,
                    _ => {}
                }
            }
        }
    }

    fn trace_cd_command(&mut self, arguments: &[&str]) {
        let to = arguments.iter().find(|word| !word.starts_with('-'));
        // In a folder that is not known, no file is found.
        self.shell.folder = to
            .and_then(|to| join_path_within_root(&self.shell.folder, to))
            .unwrap_or_else(|| "\0".to_owned());
    }
}

/// `xargs -r`: without input it runs nothing.
fn is_no_run_if_empty(word: &str) -> bool {
    word == "--no-run-if-empty"
        || word.starts_with('-')
            && word.chars().skip(1).all(|c| c.is_ascii_alphanumeric())
            && word.contains('r')
}
