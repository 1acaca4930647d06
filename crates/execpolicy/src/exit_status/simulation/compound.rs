//! Simulates pipes, conditions, loops and assignments.

use std::collections::BTreeSet;

use super::super::expansion::{
    ShellValue, ShellWordPieces, ZeroOrNonzeroStatus, compare_test_operands,
};
use super::super::script_model::{LoopIterations, ScriptNode, VariableAssignment};
use super::MAX_ROUNDS;
use super::machine::ScriptSimulation;
use super::state::{
    ControlFlowEnd, ControlFlowEndsWithStates, MAX_WAYS, ShellStateOnOnePath,
    normal_control_flow_end, states_after_success_and_failure,
};

/// How the members of a pipe have ended so far.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PipelineMemberStatuses {
    /// All of them if the script asks for them, else only the last one.
    statuses: Vec<ZeroOrNonzeroStatus>,
    any_failed: bool,
    failed: bool,
    ran: bool,
}

impl ScriptSimulation<'_> {
    pub(super) fn simulate_pipeline_statuses(
        &mut self,
        members: &[ScriptNode],
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let keeps = self.keeps_pipes;
        let mut ways = BTreeSet::from([PipelineMemberStatuses {
            statuses: Vec::new(),
            any_failed: false,
            failed: state.failed,
            ran: state.ran,
        }]);
        for member in members {
            let mut all = BTreeSet::new();
            for way in ways {
                let begins = ShellStateOnOnePath {
                    failed: way.failed,
                    ran: way.ran,
                    ..state.clone()
                };
                // Each member runs in a subshell.
                for end in self.simulate_subshell(member, begins, heeds) {
                    let mut statuses = match keeps {
                        true => way.statuses.clone(),
                        false => Vec::new(),
                    };
                    statuses.push(end.status);
                    all.insert(PipelineMemberStatuses {
                        statuses,
                        any_failed: way.any_failed || end.status == ZeroOrNonzeroStatus::Failed,
                        failed: end.failed,
                        ran: end.ran,
                    });
                }
            }
            if all.len() > MAX_WAYS {
                self.given_up = true;
            }
            if self.given_up {
                return ControlFlowEndsWithStates::new();
            }
            ways = all;
        }
        let states = ways.into_iter().map(|way| {
            // With `pipefail` the pipe fails if any member does.
            let status = match state.pipefail && way.any_failed {
                true => ZeroOrNonzeroStatus::Failed,
                false => way
                    .statuses
                    .last()
                    .copied()
                    .unwrap_or(ZeroOrNonzeroStatus::Zero),
            };
            ShellStateOnOnePath {
                status,
                pipe_statuses: if keeps { way.statuses } else { Vec::new() },
                failed: way.failed,
                ran: way.ran,
                ..state.clone()
            }
        });
        let states = states.collect();
        self.apply_errexit_and_err_trap(states, heeds)
    }

    pub(super) fn simulate_if(
        &mut self,
        arms: &[(ScriptNode, ScriptNode)],
        otherwise: Option<&ScriptNode>,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let Some(((asked, body), rest)) = arms.split_first() else {
            return match otherwise {
                Some(code) => self.simulate_script_node(code, state, heeds),
                // If no condition holds, the status of an `if` is 0.
                None => {
                    normal_control_flow_end(state.state_with_exit_status(ZeroOrNonzeroStatus::Zero))
                }
            };
        };
        // `set -e` does not apply in a condition.
        let ends = self.simulate_script_node(asked, state, false);
        self.continue_paths_that_ended_normally(ends, |machine, state| match state.status {
            ZeroOrNonzeroStatus::Zero => machine.simulate_script_node(body, state, heeds),
            ZeroOrNonzeroStatus::Failed => machine.simulate_if(rest, otherwise, state, heeds),
        })
    }

    pub(super) fn simulate_while_loop(
        &mut self,
        until: bool,
        condition: &ScriptNode,
        body: &ScriptNode,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let mut all = ControlFlowEndsWithStates::new();
        let mut ways = BTreeSet::from([state]);
        // States that are still in the loop after the last round are dropped.
        for _ in 0..MAX_ROUNDS {
            let mut again = BTreeSet::new();
            for state in ways {
                self.in_condition += 1;
                let ends = self.simulate_script_node(condition, state, false);
                self.in_condition -= 1;
                for (end, state) in ends {
                    let goes_on = (state.status == ZeroOrNonzeroStatus::Zero) != until;
                    match end {
                        ControlFlowEnd::Next if goes_on => {
                            for (end, state) in self.simulate_script_node(body, state, heeds) {
                                match end {
                                    ControlFlowEnd::Next | ControlFlowEnd::Continue => {
                                        again.insert(state);
                                    }
                                    ControlFlowEnd::Break => {
                                        all.insert((
                                            ControlFlowEnd::Next,
                                            state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                                        ));
                                    }
                                    end => {
                                        all.insert((end, state));
                                    }
                                }
                            }
                        }
                        // The loop is taken to end with 0; in a shell its status is that of the
                        // last round.
                        ControlFlowEnd::Next => {
                            all.insert((
                                ControlFlowEnd::Next,
                                state
                                    .clone()
                                    .state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                            ));
                        }
                        end => {
                            all.insert((end, state));
                        }
                    }
                }
            }
            ways = self.merge_states_or_give_up(again);
        }
        all
    }

    pub(super) fn simulate_for_loop(
        &mut self,
        variable: &str,
        rounds: &LoopIterations,
        body: &ScriptNode,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let some = vec![ShellValue::Unknown; MAX_ROUNDS - 1];
        let (values, stops_early) = match rounds {
            LoopIterations::Words(words) => {
                let words = words.iter().take(8).cloned();
                (words.map(ShellValue::Text).collect(), false)
            }
            LoopIterations::Some | LoopIterations::Any => (some, true),
        };
        let mut all = ControlFlowEndsWithStates::new();
        let mut ways = BTreeSet::from([state]);
        for (at, value) in values.into_iter().enumerate() {
            // A list that is not known may end after any round.
            if stops_early && (at > 0 || matches!(rounds, LoopIterations::Any)) {
                let stopped = ways.iter().map(|state| match at {
                    0 => (
                        ControlFlowEnd::Next,
                        state
                            .clone()
                            .state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                    ),
                    _ => (ControlFlowEnd::Next, state.clone()),
                });
                all.extend(stopped);
            }
            let mut again = BTreeSet::new();
            for mut state in ways {
                state.set_variable(variable, value.clone());
                for (end, state) in self.simulate_script_node(body, state, heeds) {
                    match end {
                        ControlFlowEnd::Next | ControlFlowEnd::Continue => {
                            again.insert(state);
                        }
                        ControlFlowEnd::Break => {
                            all.insert((
                                ControlFlowEnd::Next,
                                state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                            ));
                        }
                        end => {
                            all.insert((end, state));
                        }
                    }
                }
            }
            ways = self.merge_states_or_give_up(again);
        }
        all.extend(ways.into_iter().map(|state| (ControlFlowEnd::Next, state)));
        all
    }

    pub(super) fn simulate_case_statement(
        &mut self,
        word: &ShellWordPieces,
        arms: &[(Vec<String>, ScriptNode)],
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let value = state.evaluate_word(word);
        let mut all = ControlFlowEndsWithStates::new();
        // A pattern that surely matches ends the `case`; one that may match leaves both ways open.
        for (patterns, code) in arms {
            let matches: Vec<Option<bool>> = patterns
                .iter()
                .map(|pattern| matches_case_pattern(&value, pattern))
                .collect();
            if matches.contains(&Some(true)) {
                all.extend(self.simulate_script_node(code, state, heeds));
                return all;
            }
            if matches.contains(&None) {
                all.extend(self.simulate_script_node(code, state.clone(), heeds));
            }
        }
        all.insert((
            ControlFlowEnd::Next,
            state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
        ));
        all
    }

    pub(super) fn simulate_assignments(
        &mut self,
        assignments: &[VariableAssignment],
        declares: bool,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let mut states = vec![state];
        let mut has_inner = false;
        for assignment in assignments {
            has_inner |= !assignment.substitutions.is_empty();
            states = self.simulate_command_substitution_statuses(&assignment.substitutions, states);
            // Variables that nothing reads are not kept, so that more states are equal.
            if self.reads.contains(&assignment.name) {
                for state in &mut states {
                    simulate_variable_assignment(state, assignment);
                }
            }
        }
        // `x=$(a)` has the status of `a`; `local x=$(a)` and values without a command have status
        // 0.
        let states = states
            .into_iter()
            .map(|state| match declares || !has_inner {
                true => state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                false => state,
            });
        let states = states.collect();
        self.apply_errexit_and_err_trap(states, heeds)
    }

    /// Simulates `$(a)` among the words of a command. The status is that of the last one.
    pub(super) fn simulate_command_substitution_statuses(
        &mut self,
        inner: &[ScriptNode],
        states: Vec<ShellStateOnOnePath>,
    ) -> Vec<ShellStateOnOnePath> {
        let mut states = states;
        for code in inner {
            let mut all = BTreeSet::new();
            for state in states {
                match code {
                    ScriptNode::Subshell(code) => {
                        all.extend(self.simulate_subshell(code, state, false))
                    }
                    _ => all.extend(states_after_success_and_failure(state)),
                }
            }
            states = all.into_iter().collect();
        }
        states
    }
}

fn simulate_variable_assignment(state: &mut ShellStateOnOnePath, assignment: &VariableAssignment) {
    let mut value = state.evaluate_word(&assignment.value);
    if assignment.appends {
        let before = state.shell_variable_value(&assignment.name);
        value = match (before, value) {
            (Some(ShellValue::Text(before)), ShellValue::Text(more)) => {
                ShellValue::Text(format!("{before}{more}"))
            }
            _ => ShellValue::Unknown,
        };
    }
    state.set_variable(&assignment.name, value);
}

/// Returns whether a value matches a pattern of `case`; `None` if that is not known.
fn matches_case_pattern(value: &ShellValue, pattern: &str) -> Option<bool> {
    let pattern = pattern.trim_matches(['"', '\'']);
    if pattern == "*" {
        return Some(true);
    }
    if pattern.contains(['*', '?', '[', '$']) {
        return None;
    }
    compare_test_operands(value, "=", &ShellValue::Text(pattern.to_owned()))
}
