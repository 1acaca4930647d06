//! Runs the parts of a script: lists, conditions, subshells, and what a shell does after a command
//! and at its end.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::super::expansion::{Status, Value};
use super::super::flow::parsed_size;
use super::super::script::{Code, Function};
use super::super::script_reader::read_code_apart;
use super::Exists;
use super::state::{End, Ends, State, either, narrowed, next};
use crate::shell::ParsedScripts;

pub(super) struct Simulation<'a> {
    pub(super) functions: HashMap<String, Function>,
    /// Texts of traps and of `eval`, read.
    pub(super) handlers: HashMap<String, Option<Rc<Code>>>,
    pub(super) scripts: &'a ParsedScripts,
    pub(super) exists: Exists<'a>,
    pub(super) bash: bool,
    /// Names of variables that may be looked at.
    pub(super) reads: &'a BTreeSet<String>,
    /// Somebody asks for the statuses of the members of a pipe.
    pub(super) keeps_pipes: bool,
    pub(super) targets: BTreeSet<usize>,
    /// The same check as the target, once more.
    pub(super) again: &'a [usize],
    /// Work done so far, and how much it may be.
    pub(super) taken: usize,
    pub(super) most: usize,
    pub(super) given_up: bool,
    /// Targets that were come by.
    pub(super) reached: BTreeSet<usize>,
    pub(super) calls: usize,
    /// Conditions of loops around: what succeeds there after all was tried again.
    pub(super) in_condition: usize,
}

impl Simulation<'_> {
    /// `heeds`: whether `set -e` applies.
    pub(super) fn run(&mut self, code: &Code, state: State, heeds: bool) -> Ends {
        if self.taken >= self.most {
            self.given_up = true;
        }
        if self.given_up {
            return Ends::new();
        }
        self.taken += state.weight();
        let ends = self.run_one(code, state, heeds);
        self.narrowed(ends)
    }

    /// The ways, if they are not too many.
    pub(super) fn narrowed(&mut self, ends: Ends) -> Ends {
        narrowed(ends).unwrap_or_else(|| {
            self.given_up = true;
            Ends::new()
        })
    }

    /// The same of states before the next round of a loop.
    pub(super) fn narrowed_states(&mut self, states: BTreeSet<State>) -> BTreeSet<State> {
        let ends = states.into_iter().map(|state| (End::Next, state)).collect();
        let ends = self.narrowed(ends);
        ends.into_iter().map(|(_, state)| state).collect()
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
    pub(super) fn or_unknown(
        &mut self,
        ends: Ends,
        in_bash: bool,
        before: State,
        heeds: bool,
    ) -> Ends {
        let mut ends = ends;
        if in_bash && !self.bash {
            ends.extend(self.settled(vec![before.with(Status::Failed)], heeds));
        }
        ends
    }

    /// Goes on from each way that came to its end regularly.
    pub(super) fn then(
        &mut self,
        ends: Ends,
        mut go: impl FnMut(&mut Self, State) -> Ends,
    ) -> Ends {
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
    pub(super) fn settled(&mut self, states: Vec<State>, heeds: bool) -> Ends {
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

    pub(super) fn decided(&mut self, found: Option<bool>, state: State) -> Vec<State> {
        match found {
            Some(true) => vec![state.with(Status::Zero)],
            Some(false) => vec![state.with(Status::Failed)],
            None => either(state),
        }
    }

    /// A process of its own: what it sets is gone afterwards.
    pub(super) fn apart(&mut self, code: &Code, state: State, heeds: bool) -> Vec<State> {
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
    pub(super) fn leave(&mut self, ends: Ends) -> BTreeSet<State> {
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

    pub(super) fn handler(&mut self, handler: &Value, state: State) -> Ends {
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
    pub(super) fn read(&mut self, text: &str) -> Option<Rc<Code>> {
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
