//! Runs a script in thought, along every way it can take, to see whether it can end with
//! status 0 although a certain command of it failed, or without having run it.
//!
//! Programs may succeed or fail. Followed are the last status, variables that keep one, `set`,
//! traps, functions and tests; what is not known goes both ways.

mod commands;
mod compound;
mod machine;
mod state;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::expansion::{Expansion, Status, Value};
use super::script::{Code, Command, Script};
use crate::shell::ParsedScripts;
use machine::Simulation;
use state::{End, State};

/// Work for one question: parts of scripts that are run, each by what it costs to copy what is
/// known there.
const MAX_WORK: usize = 8_000;
/// Functions inside one another.
const MAX_CALLS: usize = 12;
/// Rounds of a loop whose end is not known.
const MAX_ROUNDS: usize = 3;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether it can end with 0 although one of the commands failed.
    HidesFailure,
    /// Whether it can end with 0 without having run any of them.
    SkipsAll,
    /// Whether it can end with 0 having run one of them.
    RunsOne,
}

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// No way leads there, as far as that could be read.
    NotReached,
    /// It would have taken too long to find out.
    TooMuch,
}

/// What is there, so that tests can be answered.
pub(super) type Exists<'a> = &'a dyn Fn(&str, &str) -> Option<bool>;

/// A script to be run, with what is known around it.
pub(super) struct Run<'a> {
    pub(super) script: &'a Script,
    pub(super) scripts: &'a ParsedScripts,
    pub(super) exists: Exists<'a>,
    /// The shell knows what bash knows.
    pub(super) bash: bool,
    /// It asks for the statuses of the members of a pipe.
    pub(super) keeps_pipes: bool,
}

impl Run<'_> {
    /// The answer for the commands that stand at these places.
    pub(super) fn ask(&self, question: Question, targets: &[usize], budget: &mut usize) -> Answer {
        // What is looked up in the whole script for each question.
        *budget = budget.saturating_sub(self.script.size / 4);
        if *budget == 0 {
            return Answer::TooMuch;
        }
        let again = match (question, targets) {
            (Question::HidesFailure, [target]) => same_checks(self.script, *target),
            _ => Vec::new(),
        };
        let mut simulation = self.simulation(targets, &again, *budget);
        let ends = simulation.run(&self.script.code, State::first(self.unset()), true);
        let ends = simulation.leave(ends);
        *budget = budget.saturating_sub(simulation.taken);
        if simulation.given_up {
            return Answer::TooMuch;
        }
        let answers = match question {
            Question::HidesFailure => targets.iter().all(|at| simulation.reached.contains(at)),
            Question::SkipsAll | Question::RunsOne => self.script.has_all(targets),
        };
        if !answers {
            return Answer::NotReached;
        }
        let mut zero = ends.iter().filter(|state| state.status == Status::Zero);
        let found = zero.any(|state| match question {
            Question::HidesFailure => state.failed,
            Question::SkipsAll => !state.ran,
            Question::RunsOne => state.ran,
        });
        match found {
            true => Answer::Yes,
            false => Answer::No,
        }
    }

    /// Those of these commands of which none can fail without the script failing; empty if one can, or
    /// if that could not be found out.
    pub(super) fn honest(&self, targets: &[usize], budget: &mut usize) -> BTreeSet<usize> {
        let mut simulation = self.simulation(targets, &[], *budget);
        let ends = simulation.run(&self.script.code, State::first(self.unset()), true);
        let ends = simulation.leave(ends);
        *budget = budget.saturating_sub(simulation.taken);
        let hides = |state: &State| state.status == Status::Zero && state.failed;
        match simulation.given_up || ends.iter().any(hides) {
            true => BTreeSet::new(),
            false => simulation.reached,
        }
    }

    /// Variables of the script's own have no value before it gives them one. Those of the
    /// environment are in capitals.
    fn unset(&self) -> BTreeMap<String, Value> {
        let mut assignments = Vec::new();
        self.script.code.assignments(&mut assignments);
        for function in self.script.functions.values() {
            function.body.assignments(&mut assignments);
        }
        let names = assignments.into_iter().map(|one| &one.name);
        let names = names.filter(|name| self.script.reads.contains(*name));
        let own = names.filter(|name| !name.contains(|c: char| c.is_uppercase()));
        own.map(|name| (name.clone(), Value::Text(String::new())))
            .collect()
    }

    /// Whether this, run after a failure, fails or ends the script with a failure in any case.
    pub(super) fn ends_badly(&self, code: &Code, budget: &mut usize) -> bool {
        let mut simulation = self.simulation(&[], &[], *budget);
        let begins = State::first(BTreeMap::new()).with(Status::Failed);
        let ends = simulation.run(code, begins, false);
        *budget = budget.saturating_sub(simulation.taken);
        let badly = |(end, state): &(End, State)| {
            state.status == Status::Failed && matches!(end, End::Next | End::Exit | End::Return)
        };
        !simulation.given_up && ends.iter().all(badly)
    }

    fn simulation<'s>(
        &'s self,
        targets: &[usize],
        again: &'s [usize],
        budget: usize,
    ) -> Simulation<'s> {
        Simulation {
            functions: self.script.functions.clone(),
            handlers: HashMap::new(),
            scripts: self.scripts,
            exists: self.exists,
            bash: self.bash,
            targets: targets.iter().copied().collect(),
            again,
            reads: &self.script.reads,
            keeps_pipes: self.keeps_pipes,
            // What it takes to begin.
            taken: self.script.functions.len() / 4,
            most: budget.min(MAX_WORK),
            given_up: false,
            reached: BTreeSet::new(),
            calls: 0,
            in_condition: 0,
        }
    }
}

/// Options with which a checker mends what it finds, and fails for the rest.
const MENDS: &[&str] = &["--fix", "--unsafe-fixes", "--show-fixes"];

/// Places of commands that are the same check as the one at `target`: what it finds there is
/// what counts.
fn same_checks(script: &Script, target: usize) -> Vec<usize> {
    let mut commands = Vec::new();
    script.code.commands(&mut commands);
    let words = |command: &Command| {
        let words: Option<Vec<String>> = command.words.iter().map(Expansion::literal).collect();
        words.filter(|words| {
            !words
                .iter()
                .any(|word| matches!(word.as_str(), "cd" | "pushd"))
        })
    };
    let moves = commands.iter().any(|command| {
        let first = command.words.first().and_then(Expansion::literal);
        first.is_none_or(|first| matches!(first.as_str(), "cd" | "pushd" | "." | "source"))
    });
    let checked = |command: &Command| {
        let mut words = words(command)?;
        words.retain(|word| !MENDS.contains(&word.as_str()));
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
