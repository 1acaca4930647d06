//! Runs a script in thought, along every way it can take, to see whether it can end with
//! status 0 although a certain command of it failed, or without having run it.
//!
//! Programs may succeed or fail. Followed are the last status, variables that keep one, `set`,
//! traps, functions and tests; what is not known goes both ways.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::expansion::{
    Expansion, Scope, Status, Value, compared, holds, read_expansion, split_words, sum,
};
use super::flow::parsed_size;
use super::script::{Assignment, Code, Command, Function, Rounds, Script, read_code_apart};
use crate::shell::ParsedScripts;

/// Parts of scripts that are run for one question.
const MAX_STEPS: usize = 20_000;
/// Ways that are followed at once.
const MAX_WAYS: usize = 300;
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
        if ends.len() > MAX_WAYS {
            self.given_up = true;
        }
        ends
    }

    fn run_one(&mut self, code: &Code, state: State, heeds: bool) -> Ends {
        match code {
            Code::Command(command) => self.command(command, state, heeds),
            Code::Assign {
                assignments,
                declares,
            } => self.assign(assignments, *declares, state, heeds),
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
            Code::Test(words) => {
                let found = self.test(words, &state);
                let states = self.decided(found, state);
                self.settled(states, heeds)
            }
            Code::Arithmetic(text) => self.arithmetic(text, state, heeds),
            Code::Function => next(state.with(Status::Zero)),
            Code::Unknown => {
                let states = either(state);
                self.settled(states, heeds)
            }
        }
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
            if all.len() > MAX_WAYS {
                self.given_up = true;
                break;
            }
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
            .map(|tree| Rc::new(read_code_apart(tree.root_node(), text)));
        self.handlers.insert(text.to_owned(), code.clone());
        code
    }

    fn pipe(&mut self, members: &[Code], state: State, heeds: bool) -> Ends {
        let mut ways: BTreeSet<(Vec<Status>, bool, bool)> =
            BTreeSet::from([(Vec::new(), state.failed, state.ran)]);
        for member in members {
            let mut all = BTreeSet::new();
            for (statuses, failed, ran) in ways {
                let begins = State {
                    failed,
                    ran,
                    ..state.clone()
                };
                for end in self.apart(member, begins, heeds) {
                    let mut statuses = statuses.clone();
                    statuses.push(end.status);
                    all.insert((statuses, end.failed, end.ran));
                }
            }
            if all.len() > MAX_WAYS {
                self.given_up = true;
            }
            ways = all;
        }
        let states = ways.into_iter().map(|(statuses, failed, ran)| {
            let any = state.fails_in_pipes && statuses.contains(&Status::Failed);
            let status = match any {
                true => Status::Failed,
                false => statuses.last().copied().unwrap_or(Status::Zero),
            };
            State {
                status,
                pipe: statuses,
                failed,
                ran,
                ..state.clone()
            }
        });
        let states = states.collect();
        self.settled(states, heeds)
    }

    fn condition(
        &mut self,
        arms: &[(Code, Code)],
        otherwise: Option<&Code>,
        state: State,
        heeds: bool,
    ) -> Ends {
        let Some(((asked, body), rest)) = arms.split_first() else {
            return match otherwise {
                Some(code) => self.run(code, state, heeds),
                None => next(state.with(Status::Zero)),
            };
        };
        let ends = self.run(asked, state, false);
        self.then(ends, |machine, state| match state.status {
            Status::Zero => machine.run(body, state, heeds),
            Status::Failed => machine.condition(rest, otherwise, state, heeds),
        })
    }

    fn while_loop(
        &mut self,
        until: bool,
        condition: &Code,
        body: &Code,
        state: State,
        heeds: bool,
    ) -> Ends {
        let mut all = Ends::new();
        let mut ways = BTreeSet::from([state]);
        for _ in 0..MAX_ROUNDS {
            let mut again = BTreeSet::new();
            for state in ways {
                self.in_condition += 1;
                let ends = self.run(condition, state, false);
                self.in_condition -= 1;
                for (end, state) in ends {
                    let goes_on = (state.status == Status::Zero) != until;
                    match end {
                        End::Next if goes_on => {
                            for (end, state) in self.run(body, state, heeds) {
                                match end {
                                    End::Next | End::Continue => {
                                        again.insert(state);
                                    }
                                    End::Break => {
                                        all.insert((End::Next, state.with(Status::Zero)));
                                    }
                                    end => {
                                        all.insert((end, state));
                                    }
                                }
                            }
                        }
                        // Its status is that of the last round.
                        End::Next => {
                            all.insert((End::Next, state.clone().with(Status::Zero)));
                        }
                        end => {
                            all.insert((end, state));
                        }
                    }
                }
            }
            ways = again;
        }
        all
    }

    fn for_loop(
        &mut self,
        variable: &str,
        rounds: &Rounds,
        body: &Code,
        state: State,
        heeds: bool,
    ) -> Ends {
        let some = vec![Value::Unknown; MAX_ROUNDS - 1];
        let (values, stops_early) = match rounds {
            Rounds::Words(words) => {
                let words = words.iter().take(8).cloned();
                (words.map(Value::Text).collect(), false)
            }
            Rounds::Some | Rounds::Any => (some, true),
        };
        let mut all = Ends::new();
        let mut ways = BTreeSet::from([state]);
        for (at, value) in values.into_iter().enumerate() {
            if stops_early && (at > 0 || matches!(rounds, Rounds::Any)) {
                let stopped = ways.iter().map(|state| match at {
                    0 => (End::Next, state.clone().with(Status::Zero)),
                    _ => (End::Next, state.clone()),
                });
                all.extend(stopped);
            }
            let mut again = BTreeSet::new();
            for mut state in ways {
                state.variables.insert(variable.to_owned(), value.clone());
                for (end, state) in self.run(body, state, heeds) {
                    match end {
                        End::Next | End::Continue => {
                            again.insert(state);
                        }
                        End::Break => {
                            all.insert((End::Next, state.with(Status::Zero)));
                        }
                        end => {
                            all.insert((end, state));
                        }
                    }
                }
            }
            ways = again;
        }
        all.extend(ways.into_iter().map(|state| (End::Next, state)));
        all
    }

    fn case(
        &mut self,
        word: &Expansion,
        arms: &[(Vec<String>, Code)],
        state: State,
        heeds: bool,
    ) -> Ends {
        let value = state.value(word);
        let mut all = Ends::new();
        for (patterns, code) in arms {
            let matches: Vec<Option<bool>> = patterns
                .iter()
                .map(|pattern| fits(&value, pattern))
                .collect();
            if matches.contains(&Some(true)) {
                all.extend(self.run(code, state, heeds));
                return all;
            }
            if matches.contains(&None) {
                all.extend(self.run(code, state.clone(), heeds));
            }
        }
        all.insert((End::Next, state.with(Status::Zero)));
        all
    }

    fn assign(
        &mut self,
        assignments: &[Assignment],
        declares: bool,
        state: State,
        heeds: bool,
    ) -> Ends {
        let mut states = vec![state];
        let mut has_inner = false;
        for assignment in assignments {
            has_inner |= !assignment.inner.is_empty();
            states = self.inner(&assignment.inner, states);
            for state in &mut states {
                set(state, assignment);
            }
        }
        let states = states
            .into_iter()
            .map(|state| match declares || !has_inner {
                true => state.with(Status::Zero),
                false => state,
            });
        let states = states.collect();
        self.settled(states, heeds)
    }

    /// `$(a)` among the words of a command. The status is that of the last one.
    fn inner(&mut self, inner: &[Code], states: Vec<State>) -> Vec<State> {
        let mut states = states;
        for code in inner {
            let mut all = BTreeSet::new();
            for state in states {
                match code {
                    Code::Subshell(code) => all.extend(self.apart(code, state, false)),
                    _ => all.extend(either(state)),
                }
            }
            states = all.into_iter().collect();
        }
        states
    }

    fn command(&mut self, command: &Command, state: State, heeds: bool) -> Ends {
        let before = state.status;
        let pipe = state.pipe.clone();
        let mut all = Ends::new();
        for mut state in self.inner(&command.inner, vec![state]) {
            state.status = before;
            state.pipe.clone_from(&pipe);
            if self.targets.contains(&command.at) {
                all.extend(self.target(command, state, heeds));
            } else if self.again.contains(&command.at) {
                let mut succeeded = state.clone().with(Status::Zero);
                succeeded.failed = false;
                all.extend(self.settled(vec![succeeded, state.with(Status::Failed)], heeds));
            } else {
                let words: Vec<Value> =
                    command.words.iter().map(|word| state.value(word)).collect();
                all.extend(self.words(&words, &command.words, state, heeds));
            }
        }
        all
    }

    fn target(&mut self, command: &Command, state: State, heeds: bool) -> Ends {
        self.reached = true;
        let mut succeeded = state.clone().with(Status::Zero);
        let mut failed = state.with(Status::Failed);
        (succeeded.ran, failed.ran, failed.failed) = (true, true, true);
        succeeded.failed &= self.in_condition == 0;
        // `exec` never comes back.
        let first = command.words.first().map(|word| succeeded.value(word));
        if first.as_ref().and_then(Value::text) == Some("exec") {
            return Ends::from([(End::Exit, succeeded), (End::Exit, failed)]);
        }
        self.settled(vec![succeeded, failed], heeds)
    }

    fn words(&mut self, words: &[Value], written: &[Expansion], state: State, heeds: bool) -> Ends {
        let Some((name, arguments)) = words.split_first() else {
            return next(state);
        };
        let Some(name) = name
            .text()
            .map(|name| name.split_whitespace().next().unwrap_or(""))
        else {
            let states = either(state);
            return self.settled(states, heeds);
        };
        if let Some(function) = self.functions.get(name).cloned() {
            return self.call(&function, arguments, state, heeds);
        }
        let first = arguments.first();
        let done = match name {
            "exit" | "return" => {
                let end = if name == "exit" {
                    End::Exit
                } else {
                    End::Return
                };
                // One that is empty is none.
                let given = first.filter(|value| value.text() != Some(""));
                let states = match given.map(Value::as_status) {
                    None => vec![state],
                    Some(Some(status)) => vec![state.with(status)],
                    Some(None) => either(state),
                };
                return states.into_iter().map(|state| (end, state)).collect();
            }
            "break" => return Ends::from([(End::Break, state.with(Status::Zero))]),
            "continue" => return Ends::from([(End::Continue, state.with(Status::Zero))]),
            ":" | "true" | "echo" | "printf" | "shopt" | "alias" | "umask" | "trap" | "set"
            | "unset" | "shift" => {
                let mut state = state;
                match name {
                    "trap" => trap(arguments, &mut state),
                    "set" => options(arguments, &mut state),
                    "shift" | "unset" => state.variables.retain(|name, _| {
                        let given = arguments.iter().any(|word| word.text() == Some(name));
                        !given && !name.starts_with(|c: char| c.is_ascii_digit())
                    }),
                    _ => {}
                }
                vec![state.with(Status::Zero)]
            }
            "false" => vec![state.with(Status::Failed)],
            "test" | "[" => {
                let words = written.get(1..).unwrap_or(&[]);
                let found = self.test(words, &state);
                self.decided(found, state)
            }
            "let" => {
                let text: Vec<&str> = arguments.iter().filter_map(Value::text).collect();
                return self.arithmetic(&text.join(" "), state, heeds);
            }
            "read" | "mapfile" | "readarray" | "getopts" => {
                let mut state = state;
                for name in arguments.iter().filter_map(Value::text) {
                    state.variables.insert(name.to_owned(), Value::Unknown);
                }
                either(state)
            }
            "eval" => {
                let texts: Option<Vec<&str>> = arguments.iter().map(Value::text).collect();
                let code = texts.and_then(|texts| self.read(&texts.join(" ")));
                match code {
                    Some(code) => return self.run(&code, state, heeds),
                    None => either(state),
                }
            }
            "command" | "builtin"
                if first
                    .and_then(Value::text)
                    .is_some_and(|word| !word.starts_with('-')) =>
            {
                return self.words(arguments, written.get(1..).unwrap_or(&[]), state, heeds);
            }
            "command" | "which" | "type" | "hash" => {
                let mut names = arguments
                    .iter()
                    .filter(|word| word.text().is_none_or(|word| !word.starts_with('-')));
                let found = match (names.next().and_then(Value::text), names.next()) {
                    (Some(program), None) => (self.exists)("command", program),
                    _ => None,
                };
                self.decided(found, state)
            }
            "exec" if !arguments.is_empty() => {
                return either(state)
                    .into_iter()
                    .map(|state| (End::Exit, state))
                    .collect();
            }
            _ => either(state),
        };
        self.settled(done, heeds)
    }

    fn call(
        &mut self,
        function: &Function,
        arguments: &[Value],
        state: State,
        heeds: bool,
    ) -> Ends {
        if self.calls >= MAX_CALLS {
            self.given_up = true;
            return Ends::new();
        }
        let position = |at: usize| at.to_string();
        let mut inside = state.clone();
        for at in 1..=9 {
            let value = arguments.get(at - 1).cloned();
            let value = value.unwrap_or(Value::Text(String::new()));
            inside.variables.insert(position(at), value);
        }
        self.calls += 1;
        let ends = self.run(&function.body, inside, heeds);
        self.calls -= 1;
        let mut all = Ends::new();
        for (end, mut after) in ends {
            let own = function.own.iter().cloned();
            for name in own.chain((1..=9).map(position)) {
                match state.variables.get(&name) {
                    Some(value) => after.variables.insert(name, value.clone()),
                    None => after.variables.remove(&name),
                };
            }
            match end {
                End::Next | End::Return => all.extend(self.settled(vec![after], heeds)),
                end => {
                    all.insert((end, after));
                }
            }
        }
        all
    }

    fn test(&mut self, words: &[Expansion], state: &State) -> Option<bool> {
        let values: Vec<Value> = words.iter().map(|word| state.value(word)).collect();
        let values: &[Value] = match values.split_last() {
            Some((Value::Text(last), rest)) if last == "]" => rest,
            _ => &values,
        };
        holds(values, self.exists)
    }

    /// `((a++))`, `((a += b))`, `((a > 0))`.
    fn arithmetic(&mut self, text: &str, state: State, heeds: bool) -> Ends {
        let mut state = state;
        let words = split_words(text);
        if let [left, operator, right] = words.as_slice()
            && matches!(*operator, "==" | "!=" | "<" | ">" | "<=" | ">=")
        {
            let value = |word: &str| {
                let named = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
                let word = if named {
                    format!("${word}")
                } else {
                    word.to_owned()
                };
                state.value(&read_expansion(&word))
            };
            let found = compared(&value(left), operator, &value(right));
            let states = self.decided(found, state);
            return self.settled(states, heeds);
        }
        let end = text
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let rest = rest.trim_start();
        if rest.is_empty() && !name.is_empty() {
            let found = match state
                .value(&read_expansion(&format!("${name}")))
                .as_status()
            {
                Some(Status::Zero) => Some(false),
                Some(Status::Failed) => Some(true),
                None => None,
            };
            let states = self.decided(found, state);
            return self.settled(states, heeds);
        }
        let value = if rest.starts_with("++") {
            Some(Value::Failure)
        } else if let Some(more) = rest.strip_prefix("+=").or_else(|| rest.strip_prefix("|=")) {
            Some(sum(&format!("{name} + {more}"), &state.scope()))
        } else if rest.starts_with('=') && !rest.starts_with("==") {
            Some(sum(rest.trim_start_matches('='), &state.scope()))
        } else {
            None
        };
        if let Some(value) = value {
            state.variables.insert(name.to_owned(), value);
        }
        let states = either(state);
        self.settled(states, heeds)
    }
}

fn set(state: &mut State, assignment: &Assignment) {
    let mut value = state.value(&assignment.value);
    if assignment.appends {
        let before = state.variables.get(&assignment.name);
        value = match (before, value) {
            (Some(Value::Text(before)), Value::Text(more)) => {
                Value::Text(format!("{before}{more}"))
            }
            _ => Value::Unknown,
        };
    }
    state.variables.insert(assignment.name.clone(), value);
}

/// `set -e`, `set +e`, `set -o pipefail`.
fn options(arguments: &[Value], state: &mut State) {
    let mut words = arguments.iter().map(|word| word.text().unwrap_or(""));
    while let Some(word) = words.next() {
        let on = word.starts_with('-');
        let Some(letters) = word.strip_prefix(['-', '+']) else {
            return;
        };
        if letters.starts_with('-') {
            return;
        }
        if letters.contains('e') {
            state.ends_on_error = on;
        }
        for _ in letters.matches('o') {
            match words.next() {
                Some("pipefail") => state.fails_in_pipes = on,
                Some("errexit") => state.ends_on_error = on,
                _ => {}
            }
        }
    }
}

/// `trap 'exit 0' EXIT INT`. What is called now and then is taken to be called at the end.
fn trap(arguments: &[Value], state: &mut State) {
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first.text() == Some("--") => rest,
        _ => arguments,
    };
    let Some((handler, signals)) = arguments.split_first() else {
        return;
    };
    let handler = match handler.text() {
        Some("-" | "") => None,
        _ => Some(handler.clone()),
    };
    for signal in signals {
        match signal.text().map(|signal| signal.trim_start_matches("SIG")) {
            Some("ERR" | "err") => state.at_error.clone_from(&handler),
            Some("INT" | "HUP" | "TERM" | "QUIT" | "PIPE" | "1" | "2" | "3" | "13" | "15") => {}
            _ => state.at_exit.clone_from(&handler),
        }
    }
}

/// Whether a value is of a pattern of `case`; `None` if nobody knows.
fn fits(value: &Value, pattern: &str) -> Option<bool> {
    let pattern = pattern.trim_matches(['"', '\'']);
    if pattern == "*" {
        return Some(true);
    }
    if pattern.contains(['*', '?', '[', '$']) {
        return None;
    }
    compared(value, "=", &Value::Text(pattern.to_owned()))
}
