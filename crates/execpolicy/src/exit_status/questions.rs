//! What is asked of a script that is run in thought: whether it hides a failure, and what it
//! can do without.

use std::collections::BTreeSet;
use std::ops::Range;

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};
use tree_sitter::Node;

use super::called::joined;
use super::expansion::{Expansion, read_expansion};
use super::flow::{Flow, statements_of};
use super::recognise::{Recognised, recognise};
use super::script_reader::read_code;
use super::simulation::{self, Answer, Question};
use super::{MAX_COMMANDS, Position, ProjectEntry, shortened};

/// Programs that print the files that they are given.
const PRINTERS: &[&str] = &[
    "awk", "cat", "egrep", "fgrep", "grep", "head", "less", "more", "sed", "tac", "tail",
];

impl<'t> Flow<'_, '_, 't> {
    /// Runs the script in thought.
    fn ask(&mut self, question: Question, targets: &[usize]) -> Answer {
        let (folder, project) = (self.position.folder.clone(), self.reader.project);
        let changes_path = self.reader.reading.changes_path || self.text.contains("cd ");
        let exists = |operator: &str, name: &str| {
            // What the runner itself makes or removes is there only afterwards.
            if changes_path || question == Question::HidesFailure {
                return None;
            }
            if operator == "command" {
                return (!name.contains(['/', '$'])).then(|| (project.has_program)(name));
            }
            let entry = (project.entry)(&joined(&folder, name)?)?;
            let file = matches!(entry, ProjectEntry::File { .. });
            match operator {
                "-f" => Some(file),
                "-e" | "-r" => Some(entry != ProjectEntry::Nothing),
                "-d" => Some(entry == ProjectEntry::Folder),
                "-x" => Some(match entry {
                    ProjectEntry::File { executable, .. } => executable,
                    other => other == ProjectEntry::Folder,
                }),
                "-s" => Some(!matches!(
                    entry,
                    ProjectEntry::Nothing | ProjectEntry::File { empty: true, .. }
                )),
                _ => None,
            }
        };
        let reader = &mut *self.reader;
        let run = simulation::Run {
            script: &self.script,
            scripts: &reader.scripts,
            bash: self.position.bash,
            exists: &exists,
            keeps_pipes: keeps_pipes(self.text),
        };
        run.ask(question, targets, &mut reader.work)
    }

    /// The commands that judge something, as far as their words are known, if the script hides the failure
    /// of none of them: one question instead of one for each.
    fn find_honest(&mut self) -> BTreeSet<usize> {
        let judges = self.script.commands().into_iter().filter(|command| {
            let words: Vec<String> = command
                .words
                .iter()
                .map(|word| word.literal().unwrap_or_else(|| "$".to_owned()))
                .collect();
            let texts: Vec<&str> = words.iter().map(String::as_str).collect();
            let called = texts.first().copied().unwrap_or("");
            let known = match recognise(&texts) {
                Recognised::Idle => false,
                Recognised::Known(kind) => kind != CheckScriptCommandKind::Program,
                _ => true,
            };
            known && command.at != usize::MAX && !self.script.functions.contains_key(called)
        });
        let targets: Vec<usize> = judges.map(|command| command.at).collect();
        if targets.len() < 2 || targets.len() > MAX_COMMANDS {
            return BTreeSet::new();
        }
        let reader = &mut *self.reader;
        let run = simulation::Run {
            script: &self.script,
            scripts: &reader.scripts,
            bash: self.position.bash,
            exists: &|_, _| None,
            keeps_pipes: keeps_pipes(self.text),
        };
        run.honest(&targets, &mut reader.work)
    }

    /// Whether what comes after a failure ends badly in any case.
    pub(super) fn ends_badly(&mut self, node: Node<'t>) -> bool {
        let code = read_code(node, self.text).code;
        let reader = &mut *self.reader;
        let run = simulation::Run {
            script: &self.script,
            scripts: &reader.scripts,
            bash: self.position.bash,
            exists: &|_, _| None,
            keeps_pipes: true,
        };
        run.ends_badly(&code, &mut reader.work)
    }

    /// Whether a command of the script prints this file, as it is written.
    pub(super) fn shows_file(&self, file: &str) -> bool {
        let file = read_expansion(file);
        self.script.commands().iter().any(|command| {
            let program = command.words.first().and_then(Expansion::literal);
            let prints = program.is_some_and(|name| PRINTERS.contains(&name.as_str()));
            prints && command.words.contains(&file)
        })
    }

    /// Where a command stands, all that the script does with its status taken together.
    pub(super) fn position_of(&mut self, node: Node<'t>, position: &Position) -> Position {
        let at = node.start_byte();
        let hides = match self.hides.get(&at) {
            Some(known) => known.clone(),
            None => {
                let honest = match self.honest.take() {
                    Some(honest) => honest,
                    None => self.find_honest(),
                };
                let hides = match honest.contains(&at) {
                    true => Answer::No,
                    false => self.ask(Question::HidesFailure, &[at]),
                };
                self.honest = Some(honest);
                self.hides.insert(at, hides.clone());
                hides
            }
        };
        match hides {
            Answer::No => Position {
                value: self.position.reach(),
                ..position.clone()
            },
            Answer::Yes | Answer::TooMuch if position.reach().is_ok() => {
                let hider = match hides {
                    Answer::TooMuch => ExitStatusMask::mask_from_unreadable_context(
                        "the script has too many ways to end",
                    ),
                    _ => self.last_hider(),
                };
                Position {
                    ends_on_error: false,
                    ..position.hidden(hider)
                }
            }
            Answer::Yes | Answer::TooMuch | Answer::NotReached => position.clone(),
        }
    }

    /// What hides a status where no single place does: a trap, or what comes last.
    fn last_hider(&self) -> ExitStatusMask {
        let mut pending = vec![self.root];
        while let Some(node) = pending.pop() {
            let source = self.source(node);
            if node.kind() == "command" && source.starts_with("trap ") {
                return ExitStatusMask {
                    form: ExitStatusMaskKind::Trap,
                    text: shortened(source),
                };
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        let last = statements_of(self.root).last().map(|(node, _)| *node);
        let source = last.map_or("", |last| self.source(last));
        ExitStatusMask {
            form: ExitStatusMaskKind::Sequence,
            text: shortened(source),
        }
    }

    /// Takes down what was noted of the command at a place.
    pub(super) fn noted(&mut self, node: Node<'t>, from: usize) {
        let to = self.reader.reading.commands.len();
        if from < to {
            self.noted.push((node.start_byte(), from..to));
        }
    }

    /// Marks tests that the script can do without, and checkers that it does not come to.
    pub(super) fn find_skipped(&mut self) {
        let of_kind = |flow: &Self, wanted: &dyn Fn(CheckScriptCommandKind) -> bool| {
            let commands = &flow.reader.reading.commands;
            let fits = |(_, range): &&(usize, Range<usize>)| {
                let noted = commands.get(range.clone()).unwrap_or(&[]);
                noted.iter().any(|command| wanted(command.kind))
            };
            let found = flow.noted.iter().filter(fits);
            found.cloned().collect::<Vec<_>>()
        };
        let tests = of_kind(self, &|kind| {
            matches!(kind, CheckScriptCommandKind::Tests(_))
        });
        let checkers = of_kind(self, &|kind| kind == CheckScriptCommandKind::Checker);
        let places =
            |noted: &[(usize, Range<usize>)]| noted.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        let mut skipped = Vec::new();
        if !tests.is_empty() {
            let answer = self.ask(Question::SkipsAll, &places(&tests));
            if matches!(answer, Answer::Yes | Answer::TooMuch) {
                skipped = tests;
            }
        } else if !checkers.is_empty() {
            let answer = self.ask(Question::RunsOne, &places(&checkers));
            if matches!(answer, Answer::No | Answer::TooMuch) {
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
            if !others.is_empty() && self.ask(Question::RunsOne, &at) == Answer::No {
                for (_, range) in others {
                    for place in range {
                        self.reader
                            .doubt(place, "the script can end well only without it");
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

/// Whether the script asks for the statuses of the members of a pipe.
fn keeps_pipes(text: &str) -> bool {
    text.contains("PIPESTATUS") || text.contains("pipestatus")
}
