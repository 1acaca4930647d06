//! Questions to the simulation of a script: whether it hides a failure, and what it can do
//! without.

use std::collections::BTreeSet;
use std::ops::Range;

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};
use tree_sitter::Node;

use super::called_scripts::join_path_within_root;
use super::expansion::{ShellWordPieces, parse_word_pieces};
use super::recognise::{RecognisedScriptCommand, classify_script_command_words};
use super::script_reader::read_script_with_positions;
use super::simulation::{self, ScriptExitStatusQuestion, ScriptQuestionYesOrNo};
use super::status_tracer::{ExitStatusTracer, shell_list_statements};
use super::{CommandStatusContext, FileFolderOrNothing, MAX_COMMANDS, shorten_to_first_line};

/// Programs that print the files that they are given.
const FILE_PRINTERS: &[&str] = &[
    "awk", "cat", "egrep", "fgrep", "grep", "head", "less", "more", "sed", "tac", "tail",
];

impl<'t> ExitStatusTracer<'_, '_, 't> {
    /// Answers a question by simulating the script.
    fn answer_by_simulating_script(
        &mut self,
        question: ScriptExitStatusQuestion,
        targets: &[usize],
    ) -> ScriptQuestionYesOrNo {
        let (folder, project) = (self.position.folder.clone(), self.reader.project);
        // After a change of folder or `PATH`, a lookup of files and programs says nothing.
        let changes_path = self.reader.reading.changes_path || self.text.contains("cd ");
        let exists = |operator: &str, name: &str| {
            // A runner can make or remove files itself, so for its failure no lookup counts.
            if changes_path || question == ScriptExitStatusQuestion::HidesFailure {
                return None;
            }
            if operator == "command" {
                return (!name.contains(['/', '$'])).then(|| (project.has_program)(name));
            }
            // What lies outside of the root is not looked up.
            let entry = (project.entry)(&join_path_within_root(&folder, name)?)?;
            let file = matches!(entry, FileFolderOrNothing::File { .. });
            match operator {
                "-f" => Some(file),
                "-e" | "-r" => Some(entry != FileFolderOrNothing::Nothing),
                "-d" => Some(entry == FileFolderOrNothing::Folder),
                "-x" => Some(match entry {
                    FileFolderOrNothing::File { executable, .. } => executable,
                    other => other == FileFolderOrNothing::Folder,
                }),
                "-s" => Some(!matches!(
                    entry,
                    FileFolderOrNothing::Nothing | FileFolderOrNothing::File { empty: true, .. }
                )),
                _ => None,
            }
        };
        let reader = &mut *self.reader;
        let run = simulation::ShellScriptToSimulate {
            script: &self.script,
            scripts: &reader.scripts,
            bash: self.position.bash,
            exists: &exists,
            keeps_pipes: reads_pipe_statuses(self.text),
        };
        run.exit_status_answer_by_simulating_script(question, targets, &mut reader.work)
    }

    /// Returns the commands that judge something, as far as their words are known, if the script
    /// hides the failure of none of them. This takes one question instead of one for each command.
    fn judging_commands_if_none_masked(&mut self) -> BTreeSet<usize> {
        let judges = self
            .script
            .all_script_commands()
            .into_iter()
            .filter(|command| {
                let words: Vec<String> = command
                    .words
                    .iter()
                    .map(|word| word.literal_text().unwrap_or_else(|| "$".to_owned()))
                    .collect();
                let texts: Vec<&str> = words.iter().map(String::as_str).collect();
                let called = texts.first().copied().unwrap_or("");
                let known = match classify_script_command_words(&texts) {
                    RecognisedScriptCommand::Idle => false,
                    RecognisedScriptCommand::Known(kind) => kind != CheckScriptCommandKind::Program,
                    _ => true,
                };
                known && command.at != usize::MAX && !self.script.functions.contains_key(called)
            });
        let targets: Vec<usize> = judges.map(|command| command.at).collect();
        // For a single command this would be no cheaper than its own question.
        if targets.len() < 2 || targets.len() > MAX_COMMANDS {
            return BTreeSet::new();
        }
        let reader = &mut *self.reader;
        let run = simulation::ShellScriptToSimulate {
            script: &self.script,
            scripts: &reader.scripts,
            bash: self.position.bash,
            exists: &|_, _| None,
            keeps_pipes: reads_pipe_statuses(self.text),
        };
        run.commands_if_no_failure_masked(&targets, &mut reader.work)
    }

    /// Returns whether what comes after a failure always ends badly.
    pub(super) fn ends_badly_after_failure(&mut self, node: Node<'t>) -> bool {
        let code = read_script_with_positions(node, self.text).code;
        let reader = &mut *self.reader;
        let run = simulation::ShellScriptToSimulate {
            script: &self.script,
            scripts: &reader.scripts,
            bash: self.position.bash,
            exists: &|_, _| None,
            keeps_pipes: true,
        };
        run.code_always_fails_after_failure(&code, &mut reader.work)
    }

    /// Returns whether a command of the script prints this file, spelled in the same way.
    pub(super) fn any_command_prints_file(&self, file: &str) -> bool {
        let file = parse_word_pieces(file);
        self.script.all_script_commands().iter().any(|command| {
            let program = command
                .words
                .first()
                .and_then(ShellWordPieces::literal_text);
            let prints = program.is_some_and(|name| FILE_PRINTERS.contains(&name.as_str()));
            prints && command.words.contains(&file)
        })
    }

    /// Returns the context of a command, with all that the script does with its status taken into
    /// account.
    pub(super) fn command_status_context(
        &mut self,
        node: Node<'t>,
        position: &CommandStatusContext,
    ) -> CommandStatusContext {
        let at = node.start_byte();
        let hides = match self.hides.get(&at) {
            Some(known) => known.clone(),
            // All commands are asked about together first, so that an honest script costs one
            // question.
            None => {
                let honest = match self.unhidden.take() {
                    Some(honest) => honest,
                    None => self.judging_commands_if_none_masked(),
                };
                let hides = match honest.contains(&at) {
                    true => ScriptQuestionYesOrNo::No,
                    false => self
                        .answer_by_simulating_script(ScriptExitStatusQuestion::HidesFailure, &[at]),
                };
                self.unhidden = Some(honest);
                self.hides.insert(at, hides.clone());
                hides
            }
        };
        match hides {
            ScriptQuestionYesOrNo::No => CommandStatusContext {
                own_reach: self.position.failure_reaches_check(),
                ..position.clone()
            },
            ScriptQuestionYesOrNo::Yes | ScriptQuestionYesOrNo::TooMuch
                if position.failure_reaches_check().is_ok() =>
            {
                let hider = match hides {
                    ScriptQuestionYesOrNo::TooMuch => ExitStatusMask::unreadable_exit_status_mask(
                        "the script has too many ways to end",
                    ),
                    _ => self.trap_or_last_hiding_exit_status(),
                };
                CommandStatusContext {
                    errexit: false,
                    ..position.with_status_hidden_by(hider)
                }
            }
            ScriptQuestionYesOrNo::Yes
            | ScriptQuestionYesOrNo::TooMuch
            | ScriptQuestionYesOrNo::NotReached => position.clone(),
        }
    }

    /// Returns what hides a status if no single place does: a trap, or the last statement.
    fn trap_or_last_hiding_exit_status(&self) -> ExitStatusMask {
        let mut pending = vec![self.root];
        while let Some(node) = pending.pop() {
            let source = self.node_text(node);
            if node.kind() == "command" && source.starts_with("trap ") {
                return ExitStatusMask {
                    form: ExitStatusMaskKind::Trap,
                    text: shorten_to_first_line(source),
                };
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        let last = shell_list_statements(self.root)
            .last()
            .map(|(node, _)| *node);
        let source = last.map_or("", |last| self.node_text(last));
        ExitStatusMask {
            form: ExitStatusMaskKind::Sequence,
            text: shorten_to_first_line(source),
        }
    }

    /// Remembers which commands were recorded for the command at a place.
    pub(super) fn note_commands_recorded_for_node(&mut self, node: Node<'t>, from: usize) {
        let to = self.reader.reading.commands.len();
        if from < to {
            self.command_ranges.push((node.start_byte(), from..to));
        }
    }

    /// Marks tests that the script can do without, and checkers that it cannot run and still end
    /// well.
    pub(super) fn mark_checks_script_may_skip(&mut self) {
        let of_kind = |flow: &Self, wanted: &dyn Fn(CheckScriptCommandKind) -> bool| {
            let commands = &flow.reader.reading.commands;
            let fits = |(_, range): &&(usize, Range<usize>)| {
                let noted = commands.get(range.clone()).unwrap_or(&[]);
                noted.iter().any(|command| wanted(command.kind))
            };
            let found = flow.command_ranges.iter().filter(fits);
            found.cloned().collect::<Vec<_>>()
        };
        let tests = of_kind(self, &|kind| {
            matches!(kind, CheckScriptCommandKind::Tests(_))
        });
        let checkers = of_kind(self, &|kind| kind == CheckScriptCommandKind::Checker);
        let places =
            |noted: &[(usize, Range<usize>)]| noted.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        let mut skipped = Vec::new();
        // Tests must run on every way that ends well. Without tests, one such way with a checker
        // is enough.
        if !tests.is_empty() {
            let answer = self
                .answer_by_simulating_script(ScriptExitStatusQuestion::SkipsAll, &places(&tests));
            if matches!(
                answer,
                ScriptQuestionYesOrNo::Yes | ScriptQuestionYesOrNo::TooMuch
            ) {
                skipped = tests;
            }
        } else if !checkers.is_empty() {
            let answer = self
                .answer_by_simulating_script(ScriptExitStatusQuestion::RunsOne, &places(&checkers));
            if matches!(
                answer,
                ScriptQuestionYesOrNo::No | ScriptQuestionYesOrNo::TooMuch
            ) {
                skipped = checkers;
            }
        } else {
            let others = of_kind(self, &|kind| {
                matches!(
                    kind,
                    CheckScriptCommandKind::ProjectScript | CheckScriptCommandKind::Program
                )
            });
            let at = places(&others);
            if !others.is_empty()
                && self.answer_by_simulating_script(ScriptExitStatusQuestion::RunsOne, &at)
                    == ScriptQuestionYesOrNo::No
            {
                for (_, range) in others {
                    for place in range {
                        self.reader.mark_command_doubtful(
                            place,
                            "the script can end well only without it",
                        );
                    }
                }
            }
        }
        for (_, range) in skipped {
            for command in self
                .reader
                .reading
                .commands
                .get_mut(range)
                .unwrap_or_default()
            {
                command.may_not_run = true;
            }
        }
    }
}

/// Returns whether the script asks for the statuses of the members of a pipe.
fn reads_pipe_statuses(text: &str) -> bool {
    text.contains("PIPESTATUS") || text.contains("pipestatus")
}
