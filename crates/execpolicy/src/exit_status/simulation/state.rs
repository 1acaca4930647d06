//! The state of a shell at a point of the script, and the ways that are followed at once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::super::expansion::{
    ShellExpansionContext, ShellValue, ShellWordPieces, ZeroOrNonzeroStatus,
};

/// Ways that are followed at once.
pub(super) const MAX_WAYS: usize = 32;
/// Bytes kept of the value of a variable.
const MAX_TEXT: usize = 4096;

/// How a part of a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ControlFlowEnd {
    Next,
    Exit,
    Return,
    Break,
    Continue,
}

/// The state on one way. Fields are compared in this order, so those that are expensive to compare
/// come last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShellStateOnOnePath {
    pub(super) status: ZeroOrNonzeroStatus,
    pub(super) errexit: bool,
    pub(super) pipefail: bool,
    /// Whether a target failed and was not run again.
    pub(super) failed: bool,
    /// Whether a target was run.
    pub(super) ran: bool,
    /// The statuses of the members of the last pipe; empty if the script does not ask for them.
    pub(super) pipe_statuses: Vec<ZeroOrNonzeroStatus>,
    /// The handlers that run at the end, and after an error.
    pub(super) exit_trap: Option<ShellValue>,
    pub(super) error_trap: Option<ShellValue>,
    pub(super) variables: Rc<BTreeMap<String, ShellValue>>,
}

impl ShellStateOnOnePath {
    /// Returns the state at the beginning, with the variables whose values are known.
    pub(super) fn initial_shell_simulation_state(variables: BTreeMap<String, ShellValue>) -> Self {
        Self {
            status: ZeroOrNonzeroStatus::Zero,
            errexit: false,
            pipefail: false,
            failed: false,
            ran: false,
            pipe_statuses: Vec::new(),
            exit_trap: None,
            error_trap: None,
            variables: Rc::new(variables),
        }
    }

    pub(super) fn shell_variable_value(&self, name: &str) -> Option<&ShellValue> {
        self.variables.get(name)
    }

    /// Sets a variable. A text that has grown too long becomes unknown.
    pub(super) fn set_variable(&mut self, name: &str, value: ShellValue) {
        let value = match value {
            ShellValue::Text(text) if text.len() > MAX_TEXT => ShellValue::Unknown,
            value => value,
        };
        // States share their variables, so they are copied only for a change.
        if self.variables.get(name) != Some(&value) {
            Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
        }
    }

    /// Removes the variables that are not to be kept.
    pub(super) fn retain_variables(&mut self, keeps: impl Fn(&str) -> bool) {
        if self.variables.keys().any(|name| !keeps(name)) {
            Rc::make_mut(&mut self.variables).retain(|name, _| keeps(name));
        }
    }

    /// Returns what it costs to copy and compare the state.
    pub(super) fn estimated_state_copy_cost(&self) -> usize {
        1 + self.variables.len() / 4 + self.pipe_statuses.len() / 4
    }

    pub(super) fn evaluate_word(&self, word: &ShellWordPieces) -> ShellValue {
        word.evaluate_expansion(&self.shell_expansion_context())
    }

    pub(super) fn shell_expansion_context(&self) -> ShellExpansionContext<'_> {
        ShellExpansionContext {
            variables: &self.variables,
            status: self.status,
            pipe_statuses: &self.pipe_statuses,
        }
    }

    pub(super) fn state_with_exit_status(mut self, status: ZeroOrNonzeroStatus) -> Self {
        self.status = status;
        // A simple command is a pipe of one member.
        self.pipe_statuses = vec![status];
        self
    }
}

pub(super) type ControlFlowEndsWithStates = BTreeSet<(ControlFlowEnd, ShellStateOnOnePath)>;

pub(super) fn normal_control_flow_end(state: ShellStateOnOnePath) -> ControlFlowEndsWithStates {
    ControlFlowEndsWithStates::from([(ControlFlowEnd::Next, state)])
}

/// Returns the states after a success and after a failure.
pub(super) fn states_after_success_and_failure(
    state: ShellStateOnOnePath,
) -> Vec<ShellStateOnOnePath> {
    vec![
        state
            .clone()
            .state_with_exit_status(ZeroOrNonzeroStatus::Zero),
        state.state_with_exit_status(ZeroOrNonzeroStatus::Failed),
    ]
}

/// Merges ways that differ in variables only, if there are too many: first in variables that hold
/// no status, then in any. Whether a target failed is never merged, so what was kept of a failure
/// is kept in all of them. Returns `None` if there are still too many.
pub(super) fn merge_script_states_to_limit(
    ends: ControlFlowEndsWithStates,
) -> Option<ControlFlowEndsWithStates> {
    if ends.len() <= MAX_WAYS {
        return Some(ends);
    }
    // Variables that hold a failure decide how the script ends, so they are merged last.
    let statuses: BTreeSet<String> = ends
        .iter()
        .flat_map(|(_, state)| state.variables.iter())
        .filter(|(_, value)| **value == ShellValue::Failure)
        .map(|(name, _)| name.clone())
        .collect();
    let mut ends = merge_similar_script_states(ends, &statuses);
    if ends.len() > MAX_WAYS {
        ends = merge_similar_script_states(ends, &BTreeSet::new());
    }
    (ends.len() <= MAX_WAYS).then_some(ends)
}

/// Merges ways that are the same but for variables outside `kept`; a variable whose values differ
/// becomes unknown.
fn merge_similar_script_states(
    ends: ControlFlowEndsWithStates,
    kept: &BTreeSet<String>,
) -> ControlFlowEndsWithStates {
    let mut groups: BTreeMap<(ControlFlowEnd, ShellStateOnOnePath), Vec<ShellStateOnOnePath>> =
        BTreeMap::new();
    for (end, state) in ends {
        let mut alike = ShellStateOnOnePath {
            variables: Rc::default(),
            ..state.clone()
        };
        let of_kept = |(name, value): (&String, &ShellValue)| {
            kept.contains(name).then(|| (name.clone(), value.clone()))
        };
        alike.variables = Rc::new(state.variables.iter().filter_map(of_kept).collect());
        groups.entry((end, alike)).or_default().push(state);
    }
    let mut all = ControlFlowEndsWithStates::new();
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
                    *value = ShellValue::Unknown;
                    true
                }
                // A variable that is missing is not known.
                None => false,
            });
        }
        all.insert((end, one));
    }
    all
}
