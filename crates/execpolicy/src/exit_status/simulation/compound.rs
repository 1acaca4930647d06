//! Pipes, conditions, loops and assignments.

use std::collections::BTreeSet;

use super::super::expansion::{Expansion, Status, Value, compared};
use super::super::script::{Assignment, Code, Rounds};
use super::MAX_ROUNDS;
use super::machine::Simulation;
use super::state::{End, Ends, MAX_WAYS, State, either, next};

/// How the members of a pipe ended so far.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PipeWay {
    /// All of them where somebody asks, else the last one.
    statuses: Vec<Status>,
    any_failed: bool,
    failed: bool,
    ran: bool,
}

impl Simulation<'_> {
    pub(super) fn pipe(&mut self, members: &[Code], state: State, heeds: bool) -> Ends {
        let keeps = self.keeps_pipes;
        let mut ways = BTreeSet::from([PipeWay {
            statuses: Vec::new(),
            any_failed: false,
            failed: state.failed,
            ran: state.ran,
        }]);
        for member in members {
            let mut all = BTreeSet::new();
            for way in ways {
                let begins = State {
                    failed: way.failed,
                    ran: way.ran,
                    ..state.clone()
                };
                for end in self.apart(member, begins, heeds) {
                    let mut statuses = match keeps {
                        true => way.statuses.clone(),
                        false => Vec::new(),
                    };
                    statuses.push(end.status);
                    all.insert(PipeWay {
                        statuses,
                        any_failed: way.any_failed || end.status == Status::Failed,
                        failed: end.failed,
                        ran: end.ran,
                    });
                }
            }
            if all.len() > MAX_WAYS {
                self.given_up = true;
            }
            if self.given_up {
                return Ends::new();
            }
            ways = all;
        }
        let states = ways.into_iter().map(|way| {
            let status = match state.fails_in_pipes && way.any_failed {
                true => Status::Failed,
                false => way.statuses.last().copied().unwrap_or(Status::Zero),
            };
            State {
                status,
                pipe: if keeps { way.statuses } else { Vec::new() },
                failed: way.failed,
                ran: way.ran,
                ..state.clone()
            }
        });
        let states = states.collect();
        self.settled(states, heeds)
    }

    pub(super) fn condition(
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

    pub(super) fn while_loop(
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
            ways = self.narrowed_states(again);
        }
        all
    }

    pub(super) fn for_loop(
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
                state.set(variable, value.clone());
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
            ways = self.narrowed_states(again);
        }
        all.extend(ways.into_iter().map(|state| (End::Next, state)));
        all
    }

    pub(super) fn case(
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

    pub(super) fn assign(
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
            if self.reads.contains(&assignment.name) {
                for state in &mut states {
                    set(state, assignment);
                }
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
    pub(super) fn inner(&mut self, inner: &[Code], states: Vec<State>) -> Vec<State> {
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
}

fn set(state: &mut State, assignment: &Assignment) {
    let mut value = state.value(&assignment.value);
    if assignment.appends {
        let before = state.variable(&assignment.name);
        value = match (before, value) {
            (Some(Value::Text(before)), Value::Text(more)) => {
                Value::Text(format!("{before}{more}"))
            }
            _ => Value::Unknown,
        };
    }
    state.set(&assignment.name, value);
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
