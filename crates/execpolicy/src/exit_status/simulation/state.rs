//! What the shell knows at a point of the script, and the ways that are followed at once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::super::expansion::{Expansion, Scope, Status, Value};

/// Ways that are followed at once.
pub(super) const MAX_WAYS: usize = 32;
/// Bytes of the value of a variable.
const MAX_TEXT: usize = 4096;

/// How a part of a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Next,
    Exit,
    Return,
    Break,
    Continue,
}

/// The order of the fields is that in which two are compared: what is dear comes last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) status: Status,
    pub(super) ends_on_error: bool,
    pub(super) fails_in_pipes: bool,
    /// A target failed, and was not run again.
    pub(super) failed: bool,
    /// A target was run.
    pub(super) ran: bool,
    /// Of the members of the last pipe; empty where nobody asks.
    pub(super) pipe: Vec<Status>,
    /// What runs at the end, and after an error.
    pub(super) at_exit: Option<Value>,
    pub(super) at_error: Option<Value>,
    pub(super) variables: Rc<BTreeMap<String, Value>>,
}

impl State {
    /// At the beginning, with the variables whose values are known.
    pub(super) fn first(variables: BTreeMap<String, Value>) -> Self {
        Self {
            status: Status::Zero,
            ends_on_error: false,
            fails_in_pipes: false,
            failed: false,
            ran: false,
            pipe: Vec::new(),
            at_exit: None,
            at_error: None,
            variables: Rc::new(variables),
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    /// Gives a variable this value. A text that has grown too long is not kept.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        let value = match value {
            Value::Text(text) if text.len() > MAX_TEXT => Value::Unknown,
            value => value,
        };
        if self.variables.get(name) != Some(&value) {
            Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
        }
    }

    /// Forgets the variables that are not kept.
    pub(super) fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        if self.variables.keys().any(|name| !keeps(name)) {
            Rc::make_mut(&mut self.variables).retain(|name, _| keeps(name));
        }
    }

    /// What it costs to copy and compare it.
    pub(super) fn weight(&self) -> usize {
        1 + self.variables.len() / 4 + self.pipe.len() / 4
    }

    pub(super) fn value(&self, word: &Expansion) -> Value {
        word.value(&self.scope())
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        Scope {
            variables: &self.variables,
            status: self.status,
            pipe: &self.pipe,
        }
    }

    pub(super) fn with(mut self, status: Status) -> Self {
        self.status = status;
        self.pipe = vec![status];
        self
    }
}

pub(super) type Ends = BTreeSet<(End, State)>;

pub(super) fn next(state: State) -> Ends {
    Ends::from([(End::Next, state)])
}

/// It succeeds or fails.
pub(super) fn either(state: State) -> Vec<State> {
    vec![state.clone().with(Status::Zero), state.with(Status::Failed)]
}

/// Where there are too many ways, those become one that differ in variables only: first in those which no
/// status stands in, then in any. Whether a target failed stays what it was, so that what was
/// kept of a failure is kept in all of them. `None`: there are still too many.
pub(super) fn narrowed(ends: Ends) -> Option<Ends> {
    if ends.len() <= MAX_WAYS {
        return Some(ends);
    }
    let statuses: BTreeSet<String> = ends
        .iter()
        .flat_map(|(_, state)| state.variables.iter())
        .filter(|(_, value)| **value == Value::Failure)
        .map(|(name, _)| name.clone())
        .collect();
    let mut ends = joined(ends, &statuses);
    if ends.len() > MAX_WAYS {
        ends = joined(ends, &BTreeSet::new());
    }
    (ends.len() <= MAX_WAYS).then_some(ends)
}

/// The ways with all variables unknown that differ between those which are otherwise the same,
/// but for the variables that are kept.
fn joined(ends: Ends, kept: &BTreeSet<String>) -> Ends {
    let mut groups: BTreeMap<(End, State), Vec<State>> = BTreeMap::new();
    for (end, state) in ends {
        let mut alike = State {
            variables: Rc::default(),
            ..state.clone()
        };
        let of_kept = |(name, value): (&String, &Value)| {
            kept.contains(name).then(|| (name.clone(), value.clone()))
        };
        alike.variables = Rc::new(state.variables.iter().filter_map(of_kept).collect());
        groups.entry((end, alike)).or_default().push(state);
    }
    let mut all = Ends::new();
    for ((end, _), states) in groups {
        let mut states = states.into_iter();
        let Some(mut one) = states.next() else {
            continue;
        };
        let variables = Rc::make_mut(&mut one.variables);
        for other in states {
            variables.retain(|name, value| match other.variables.get(name) {
                Some(same) if same == value => true,
                Some(_) => {
                    *value = Value::Unknown;
                    true
                }
                // One that is not there is not known.
                None => false,
            });
        }
        all.insert((end, one));
    }
    all
}
