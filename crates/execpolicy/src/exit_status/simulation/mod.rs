//! Simulates a script along every way it can take, to find out whether it can end with status 0
//! although a certain command of it failed, or without having run that command.
//!
//! Programs may succeed or fail. The simulation follows the last status, variables that keep one,
//! `set`, traps, functions and tests; what is not known goes both ways.

mod commands;
mod compound;
mod machine;
mod state;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::expansion::{ShellValue, ShellWordPieces, ZeroOrNonzeroStatus};
use super::script_model::{ParsedShellScript, ScriptNode, SimpleCommand};
use crate::shell::ParsedShellScriptCache;
use machine::ScriptSimulation;
use state::{ControlFlowEnd, ShellStateOnOnePath};

/// Work for one question: parts of scripts that are run, each by what it costs to copy what is
/// known there.
const MAX_WORK: usize = 8_000;
/// How deep functions may call one another.
const MAX_CALLS: usize = 12;
/// Rounds of a loop whose end is not known.
const MAX_ROUNDS: usize = 3;

/// The question about a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptExitStatusQuestion {
    /// Whether it can end with 0 although one of the commands failed.
    HidesFailure,
    /// Whether it can end with 0 without having run any of them.
    SkipsAll,
    /// Whether it can end with 0 having run one of them.
    RunsOne,
}

/// The answer to a question about a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScriptQuestionYesOrNo {
    Yes,
    No,
    /// No way leads there, as far as that could be read.
    NotReached,
    /// It would have taken too long to find out.
    TooMuch,
}

/// Answers tests of files and programs by what exists in the project.
pub(super) type ShellFileTestFn<'a> = &'a dyn Fn(&str, &str) -> Option<bool>;

/// A script to simulate, with what is known around it.
pub(super) struct ShellScriptToSimulate<'a> {
    pub(super) script: &'a ParsedShellScript,
    pub(super) scripts: &'a ParsedShellScriptCache,
    pub(super) exists: ShellFileTestFn<'a>,
    /// Whether the shell supports bash syntax.
    pub(super) bash: bool,
    /// Whether the script asks for the statuses of the members of a pipe.
    pub(super) keeps_pipes: bool,
}

impl ShellScriptToSimulate<'_> {
    /// Returns the answer for the commands at these places.
    pub(super) fn exit_status_answer_by_simulating_script(
        &self,
        question: ScriptExitStatusQuestion,
        targets: &[usize],
        budget: &mut usize,
    ) -> ScriptQuestionYesOrNo {
        // The lookups in the whole script cost something for each question.
        *budget = budget.saturating_sub(self.script.size / 4);
        if *budget == 0 {
            return ScriptQuestionYesOrNo::TooMuch;
        }
        // A later run of the same check stands for the earlier one. With several targets it would
        // not be known which of them it repeats.
        let again = match (question, targets) {
            (ScriptExitStatusQuestion::HidesFailure, [target]) => {
                same_command_positions_in_script(self.script, *target)
            }
            _ => Vec::new(),
        };
        let mut simulation = self.new_script_simulation(targets, &again, *budget);
        let ends = simulation.simulate_script_node(
            &self.script.code,
            ShellStateOnOnePath::initial_shell_simulation_state(self.initially_empty_variables()),
            true,
        );
        let ends = simulation.simulate_exit_traps(ends);
        *budget = budget.saturating_sub(simulation.work_done);
        // An answer from a part of the ways would be a guess.
        if simulation.given_up {
            return ScriptQuestionYesOrNo::TooMuch;
        }
        // A target that no way reaches, or that the model does not hold, has no answer.
        let answers = match question {
            ScriptExitStatusQuestion::HidesFailure => {
                targets.iter().all(|at| simulation.reached.contains(at))
            }
            ScriptExitStatusQuestion::SkipsAll | ScriptExitStatusQuestion::RunsOne => {
                self.script.has_commands_at_offsets(targets)
            }
        };
        if !answers {
            return ScriptQuestionYesOrNo::NotReached;
        }
        let mut zero = ends
            .iter()
            .filter(|state| state.status == ZeroOrNonzeroStatus::Zero);
        let found = zero.any(|state| match question {
            ScriptExitStatusQuestion::HidesFailure => state.failed,
            ScriptExitStatusQuestion::SkipsAll => !state.ran,
            ScriptExitStatusQuestion::RunsOne => state.ran,
        });
        match found {
            true => ScriptQuestionYesOrNo::Yes,
            false => ScriptQuestionYesOrNo::No,
        }
    }

    /// Returns these commands if the script hides the failure of none of them; empty if it hides
    /// one, or if that could not be found out.
    pub(super) fn commands_if_no_failure_masked(
        &self,
        targets: &[usize],
        budget: &mut usize,
    ) -> BTreeSet<usize> {
        let mut simulation = self.new_script_simulation(targets, &[], *budget);
        let ends = simulation.simulate_script_node(
            &self.script.code,
            ShellStateOnOnePath::initial_shell_simulation_state(self.initially_empty_variables()),
            true,
        );
        let ends = simulation.simulate_exit_traps(ends);
        *budget = budget.saturating_sub(simulation.work_done);
        let hides =
            |state: &ShellStateOnOnePath| state.status == ZeroOrNonzeroStatus::Zero && state.failed;
        match simulation.given_up || ends.iter().any(hides) {
            true => BTreeSet::new(),
            false => simulation.reached,
        }
    }

    /// Returns the variables of the script itself, which are empty until it sets them. Names in
    /// capitals may come from the environment.
    fn initially_empty_variables(&self) -> BTreeMap<String, ShellValue> {
        let mut assignments = Vec::new();
        self.script
            .code
            .collect_script_assignments(&mut assignments);
        for function in self.script.functions.values() {
            function.body.collect_script_assignments(&mut assignments);
        }
        let names = assignments.into_iter().map(|one| &one.name);
        let names = names.filter(|name| self.script.reads.contains(*name));
        let own = names.filter(|name| !name.contains(|c: char| c.is_uppercase()));
        own.map(|name| (name.clone(), ShellValue::Text(String::new())))
            .collect()
    }

    /// Returns whether this part, run after a failure, always fails or ends the script with a
    /// failure.
    pub(super) fn code_always_fails_after_failure(
        &self,
        code: &ScriptNode,
        budget: &mut usize,
    ) -> bool {
        let mut simulation = self.new_script_simulation(&[], &[], *budget);
        let begins = ShellStateOnOnePath::initial_shell_simulation_state(BTreeMap::new())
            .state_with_exit_status(ZeroOrNonzeroStatus::Failed);
        let ends = simulation.simulate_script_node(code, begins, false);
        *budget = budget.saturating_sub(simulation.work_done);
        let badly = |(end, state): &(ControlFlowEnd, ShellStateOnOnePath)| {
            state.status == ZeroOrNonzeroStatus::Failed
                && matches!(
                    end,
                    ControlFlowEnd::Next | ControlFlowEnd::Exit | ControlFlowEnd::Return
                )
        };
        !simulation.given_up && ends.iter().all(badly)
    }

    fn new_script_simulation<'s>(
        &'s self,
        targets: &[usize],
        again: &'s [usize],
        budget: usize,
    ) -> ScriptSimulation<'s> {
        ScriptSimulation {
            functions: self.script.functions.clone(),
            handlers: HashMap::new(),
            scripts: self.scripts,
            exists: self.exists,
            bash: self.bash,
            targets: targets.iter().copied().collect(),
            same_checks: again,
            reads: &self.script.reads,
            keeps_pipes: self.keeps_pipes,
            // Copying the functions costs something as well.
            work_done: self.script.functions.len() / 4,
            work_limit: budget.min(MAX_WORK),
            given_up: false,
            reached: BTreeSet::new(),
            call_depth: 0,
            in_condition: 0,
        }
    }
}

/// Options with which a checker fixes what it finds, and fails for the rest.
const FIX_OPTIONS: &[&str] = &["--fix", "--unsafe-fixes", "--show-fixes"];

/// Returns the places of commands that are the same check as the one at `target`: what it finds
/// there counts.
fn same_command_positions_in_script(script: &ParsedShellScript, target: usize) -> Vec<usize> {
    let mut commands = Vec::new();
    script.code.collect_script_commands(&mut commands);
    let words = |command: &SimpleCommand| {
        let words: Option<Vec<String>> = command
            .words
            .iter()
            .map(ShellWordPieces::literal_text)
            .collect();
        words.filter(|words| {
            !words
                .iter()
                .any(|word| matches!(word.as_str(), "cd" | "pushd"))
        })
    };
    // In another folder the same words are another check.
    let moves = commands.iter().any(|command| {
        let first = command
            .words
            .first()
            .and_then(ShellWordPieces::literal_text);
        first.is_none_or(|first| matches!(first.as_str(), "cd" | "pushd" | "." | "source"))
    });
    let checked = |command: &SimpleCommand| {
        let mut words = words(command)?;
        words.retain(|word| !FIX_OPTIONS.contains(&word.as_str()));
        Some(words)
    };
    let own = commands.iter().find(|command| command.at == target);
    let Some(own) = own.and_then(|command| checked(command)).filter(|_| !moves) else {
        return Vec::new();
    };
    let same = commands
        .iter()
        .filter(|command| command.at != target && checked(command).as_ref() == Some(&own));
    same.map(|command| command.at).collect()
}
