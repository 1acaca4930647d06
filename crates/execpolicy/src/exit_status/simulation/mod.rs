//! Runs a script in thought, along every way it can take, to see whether it can end with
//! status 0 although a certain command of it failed, or without having run it.
//!
//! Programs may succeed or fail. Followed are the last status, variables that keep one, `set`,
//! traps, functions and tests; what is not known goes both ways.

mod commands;
mod compound;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::expansion::{Expansion, Scope, Status, Value};
use super::flow::parsed_size;
use super::script::{Code, Command, Function, Script};
use super::script_reader::read_code_apart;
use crate::shell::ParsedScripts;

/// Parts of scripts that are run for one question.
const MAX_STEPS: usize = 20_000;
/// Ways that are followed at once.
const MAX_WAYS: usize = 64;
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

/// What is there, so that tests can be answered.
pub(super) type Exists<'a> = &'a dyn Fn(&str, &str) -> Option<bool>;

/// A script to be run, with what is known around it.
pub(super) struct Run<'a> {
    pub(super) script: &'a Script,
    pub(super) scripts: &'a ParsedScripts,
    pub(super) exists: Exists<'a>,
    /// The shell knows what bash knows.
    pub(super) bash: bool,
}

impl Run<'_> {
    /// The answer for the commands that stand at these places; `None` if it could not be found.
    pub(super) fn ask(
        &self,
        question: Question,
        targets: &[usize],
        budget: &mut usize,
    ) -> Option<bool> {
        let again = match (question, targets) {
            (Question::HidesFailure, [target]) => same_checks(self.script, *target),
            _ => Vec::new(),
        };
        let mut simulation = self.simulation(targets, &again, *budget);
        let begins = State {
            variables: self.unset(),
            ..State::default()
        };
        let ends = simulation.run(&self.script.code, begins, true);
        let ends = simulation.leave(ends);
        *budget = budget.saturating_sub(simulation.taken);
        let answers = match question {
            Question::HidesFailure => simulation.reached,
            Question::SkipsAll | Question::RunsOne => self.script.has_all(targets),
        };
        if simulation.given_up || !answers {
            return None;
        }
        let mut zero = ends.iter().filter(|state| state.status == Status::Zero);
        Some(zero.any(|state| match question {
            Question::HidesFailure => state.failed,
            Question::SkipsAll => !state.ran,
            Question::RunsOne => state.ran,
        }))
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
        let own = names.filter(|name| !name.contains(|c: char| c.is_uppercase()));
        own.map(|name| (name.clone(), Value::Text(String::new())))
            .collect()
    }

    /// Whether this, run after a failure, fails or ends the script with a failure in any case.
    pub(super) fn ends_badly(&self, code: &Code, budget: &mut usize) -> bool {
        let mut simulation = self.simulation(&[], &[], *budget);
        let begins = State::default().with(Status::Failed);
        let ends = simulation.run(code, begins, false);
        *budget = budget.saturating_sub(simulation.taken);
        let badly = |(end, state): &(End, State)| {
            state.status == Status::Failed && matches!(end, End::Next | End::Exit | End::Return)
        };
        !simulation.given_up && ends.iter().all(badly)
    }

    fn simulation<'s>(
        &'s self,
        targets: &'s [usize],
        again: &'s [usize],
        budget: usize,
    ) -> Simulation<'s> {
        Simulation {
            functions: self.script.functions.clone(),
            handlers: HashMap::new(),
            scripts: self.scripts,
            exists: self.exists,
            bash: self.bash,
            targets,
            again,
            taken: 0,
            most: budget.min(MAX_STEPS),
            given_up: false,
            reached: false,
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

/// How a part of a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Next,
    Exit,
    Return,
    Break,
    Continue,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    status: Status,
    /// Of the members of the last pipe.
    pipe: Vec<Status>,
    variables: BTreeMap<String, Value>,
    ends_on_error: bool,
    fails_in_pipes: bool,
    /// What runs at the end, and after an error.
    at_exit: Option<Value>,
    at_error: Option<Value>,
    /// A target failed, and was not run again.
    failed: bool,
    /// A target was run.
    ran: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            status: Status::Zero,
            pipe: Vec::new(),
            variables: BTreeMap::new(),
            ends_on_error: false,
            fails_in_pipes: false,
            at_exit: None,
            at_error: None,
            failed: false,
            ran: false,
        }
    }
}

impl State {
    fn value(&self, word: &Expansion) -> Value {
        word.value(&self.scope())
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            variables: &self.variables,
            status: self.status,
            pipe: &self.pipe,
        }
    }

    fn with(mut self, status: Status) -> Self {
        self.status = status;
        self.pipe = vec![status];
        self
    }
}

type Ends = BTreeSet<(End, State)>;

struct Simulation<'a> {
    functions: HashMap<String, Function>,
    /// Texts of traps and of `eval`, read.
    handlers: HashMap<String, Option<Rc<Code>>>,
    scripts: &'a ParsedScripts,
    exists: Exists<'a>,
    bash: bool,
    targets: &'a [usize],
    /// The same check as the target, once more.
    again: &'a [usize],
    taken: usize,
    most: usize,
    given_up: bool,
    /// A target was come by.
    reached: bool,
    calls: usize,
    /// Conditions of loops around: what succeeds there after all was tried again.
    in_condition: usize,
}

fn next(state: State) -> Ends {
    Ends::from([(End::Next, state)])
}

/// It succeeds or fails.
fn either(state: State) -> Vec<State> {
    vec![state.clone().with(Status::Zero), state.with(Status::Failed)]
}

impl Simulation<'_> {
    /// `heeds`: whether `set -e` applies.
    fn run(&mut self, code: &Code, state: State, heeds: bool) -> Ends {
        if self.taken >= self.most {
            self.given_up = true;
        }
        if self.given_up {
            return Ends::new();
        }
        self.taken += 1;
        let ends = self.run_one(code, state, heeds);
        self.narrowed(ends)
    }

    /// Where there are too many ways, those are one that differ in variables only which no
    /// status stands in.
    fn narrowed(&mut self, ends: Ends) -> Ends {
        if ends.len() <= MAX_WAYS {
            return ends;
        }
        let statuses: BTreeSet<String> = ends
            .iter()
            .flat_map(|(_, state)| &state.variables)
            .filter(|(_, value)| **value == Value::Failure)
            .map(|(name, _)| name.clone())
            .collect();
        let narrowed: Ends = ends
            .into_iter()
            .map(|(end, mut state)| {
                for (name, value) in &mut state.variables {
                    if !statuses.contains(name) {
                        *value = Value::Unknown;
                    }
                }
                (end, state)
            })
            .collect();
        self.given_up |= narrowed.len() > MAX_WAYS;
        narrowed
    }

    fn run_one(&mut self, code: &Code, state: State, heeds: bool) -> Ends {
        match code {
            Code::Command(command) => self.command(command, state, heeds),
            Code::Assign {
                assignments,
                declares,
                in_bash,
            } => {
                let before = state.clone();
                let ends = self.assign(assignments, *declares, state, heeds);
                self.or_unknown(ends, *in_bash, before, heeds)
            }
            Code::Sequence(parts) => {
                let mut ends = next(state);
                for part in parts {
                    ends = self.then(ends, |machine, state| machine.run(part, state, heeds));
                }
                ends
            }
            Code::And(left, right) => {
                let ends = self.run(left, state, false);
                self.then(ends, |machine, state| match state.status {
                    Status::Zero => machine.run(right, state, heeds),
                    Status::Failed => next(state),
                })
            }
            Code::Or(left, right) => {
                let ends = self.run(left, state, false);
                self.then(ends, |machine, state| match state.status {
                    Status::Zero => next(state),
                    Status::Failed => machine.run(right, state, heeds),
                })
            }
            Code::Not(inner) => {
                let ends = self.run(inner, state, false);
                self.then(ends, |_, state| {
                    let turned = match state.status {
                        Status::Zero => Status::Failed,
                        Status::Failed => Status::Zero,
                    };
                    next(state.with(turned))
                })
            }
            Code::Pipe(members) => self.pipe(members, state, heeds),
            Code::Subshell(inner) => {
                let states = self.apart(inner, state, heeds);
                self.settled(states, heeds)
            }
            Code::If { arms, otherwise } => {
                self.condition(arms, otherwise.as_deref(), state, heeds)
            }
            Code::While {
                until,
                condition,
                body,
            } => self.while_loop(*until, condition, body, state, heeds),
            Code::For {
                variable,
                rounds,
                body,
            } => self.for_loop(variable, rounds, body, state, heeds),
            Code::Case { word, arms } => self.case(word, arms, state, heeds),
            Code::Background(inner) => {
                let ran = self
                    .run(inner, state.clone(), false)
                    .iter()
                    .any(|(_, end)| end.ran && !state.ran);
                // Whoever waits for it is not followed.
                self.given_up |= ran;
                next(state.with(Status::Zero))
            }
            Code::BothOutputs(inner) => {
                let ends = self.run(inner, state, heeds);
                if self.bash {
                    return ends;
                }
                let behind = ends.iter().map(|(_, state)| {
                    let state = state.clone().with(Status::Zero);
                    (End::Next, state)
                });
                let behind: Ends = behind.collect();
                ends.into_iter().chain(behind).collect()
            }
            Code::Test { words, in_bash } => {
                let found = self.test(words, &state);
                let states = self.decided(found, state.clone());
                let ends = self.settled(states, heeds);
                self.or_unknown(ends, *in_bash, state, heeds)
            }
            Code::Arithmetic(text) => {
                let ends = self.arithmetic(text, state.clone(), heeds);
                self.or_unknown(ends, true, state, heeds)
            }
            Code::Function => next(state.with(Status::Zero)),
            Code::Unknown => {
                let states = either(state);
                self.settled(states, heeds)
            }
        }
    }

    /// What only bash knows is an error to other shells.
    fn or_unknown(&mut self, ends: Ends, in_bash: bool, before: State, heeds: bool) -> Ends {
        let mut ends = ends;
        if in_bash && !self.bash {
            ends.extend(self.settled(vec![before.with(Status::Failed)], heeds));
        }
        ends
    }

    /// Goes on from each way that came to its end regularly.
    fn then(&mut self, ends: Ends, mut go: impl FnMut(&mut Self, State) -> Ends) -> Ends {
        let mut all = Ends::new();
        for (end, state) in ends {
            match end {
                End::Next => all.extend(go(self, state)),
                end => {
                    all.insert((end, state));
                }
            }
            all = self.narrowed(all);
        }
        all
    }

    /// What a shell does after a simple command: `set -e`, `trap ... ERR`.
    fn settled(&mut self, states: Vec<State>, heeds: bool) -> Ends {
        let mut ends = Ends::new();
        for state in states {
            if state.status == Status::Zero || !heeds {
                ends.insert((End::Next, state));
                continue;
            }
            let mut after = match state.at_error.clone() {
                Some(handler) => {
                    let handled = State {
                        at_error: None,
                        ..state.clone()
                    };
                    let ran = self.handler(&handler, handled);
                    let restored = ran.into_iter().map(|(end, mut after)| {
                        if end == End::Next {
                            after = after.with(Status::Failed);
                            after.at_error = Some(handler.clone());
                        }
                        (end, after)
                    });
                    restored.collect()
                }
                None => next(state.clone()),
            };
            if state.ends_on_error {
                after = after
                    .into_iter()
                    .map(|(end, state)| match end {
                        End::Next => (End::Exit, state),
                        end => (end, state),
                    })
                    .collect();
            }
            ends.extend(after);
        }
        ends
    }

    fn decided(&mut self, found: Option<bool>, state: State) -> Vec<State> {
        match found {
            Some(true) => vec![state.with(Status::Zero)],
            Some(false) => vec![state.with(Status::Failed)],
            None => either(state),
        }
    }

    /// A process of its own: what it sets is gone afterwards.
    fn apart(&mut self, code: &Code, state: State, heeds: bool) -> Vec<State> {
        let inside = State {
            at_exit: None,
            ..state.clone()
        };
        let ends = self.run(code, inside, heeds);
        let states = self.leave(ends);
        let outside = states.into_iter().map(|end| State {
            failed: end.failed,
            ran: end.ran,
            ..state.clone().with(end.status)
        });
        outside.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The end of a shell, with what it does there.
    fn leave(&mut self, ends: Ends) -> BTreeSet<State> {
        let mut all = BTreeSet::new();
        for (_, mut state) in ends {
            let Some(handler) = state.at_exit.take() else {
                all.insert(state);
                continue;
            };
            let status = state.status;
            for (end, after) in self.handler(&handler, state) {
                all.insert(match end {
                    End::Exit => after,
                    _ => after.with(status),
                });
            }
        }
        all
    }

    fn handler(&mut self, handler: &Value, state: State) -> Ends {
        let code = handler.text().and_then(|text| self.read(text));
        match code {
            Some(code) => self.run(&code, state, false),
            // Nobody knows what it does: it may say that all is well.
            None => {
                let mut ends = next(state.clone());
                ends.insert((End::Exit, state.with(Status::Zero)));
                ends
            }
        }
    }

    /// A text that is run as part of the script.
    fn read(&mut self, text: &str) -> Option<Rc<Code>> {
        if let Some(known) = self.handlers.get(text) {
            return known.clone();
        }
        let code = parsed_size(text)
            .then(|| self.scripts.tree(text))
            .flatten()
            .map(|tree| Rc::new(read_code_apart(tree.root_node(), text).code));
        self.handlers.insert(text.to_owned(), code.clone());
        code
    }
}
