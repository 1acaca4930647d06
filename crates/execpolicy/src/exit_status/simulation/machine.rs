//! Simulates the parts of a script: lists, conditions, subshells, and what a shell does after a
//! command and at its end.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::super::expansion::{ShellValue, ZeroOrNonzeroStatus};
use super::super::script_model::{ScriptNode, ShellFunction};
use super::super::script_reader::read_script_without_positions;
use super::super::status_tracer::is_short_enough_to_parse;
use super::ShellFileTestFn;
use super::state::{
    ControlFlowEnd, ControlFlowEndsWithStates, ShellStateOnOnePath, merge_script_states_to_limit,
    normal_control_flow_end, states_after_success_and_failure,
};
use crate::shell::ParsedShellScriptCache;

pub(super) struct ScriptSimulation<'a> {
    pub(super) functions: HashMap<String, ShellFunction>,
    /// Parsed texts of traps and of `eval`.
    pub(super) handlers: HashMap<String, Option<Rc<ScriptNode>>>,
    pub(super) scripts: &'a ParsedShellScriptCache,
    pub(super) exists: ShellFileTestFn<'a>,
    pub(super) bash: bool,
    /// Names of variables that something may read.
    pub(super) reads: &'a BTreeSet<String>,
    /// Whether the script asks for the statuses of the members of a pipe.
    pub(super) keeps_pipes: bool,
    pub(super) targets: BTreeSet<usize>,
    /// Places at which the check of the target runs once more.
    pub(super) same_checks: &'a [usize],
    /// Work done so far, and its limit.
    pub(super) work_done: usize,
    pub(super) work_limit: usize,
    pub(super) given_up: bool,
    /// Targets that were reached.
    pub(super) reached: BTreeSet<usize>,
    pub(super) call_depth: usize,
    /// Loop conditions around the command: a target that succeeds there in the end was tried
    /// again.
    pub(super) in_condition: usize,
}

impl ScriptSimulation<'_> {
    /// Simulates a part of the script. `heeds`: whether `set -e` applies.
    pub(super) fn simulate_script_node(
        &mut self,
        code: &ScriptNode,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        if self.work_done >= self.work_limit {
            self.given_up = true;
        }
        // Without ends nothing after this part is simulated, so giving up is quick.
        if self.given_up {
            return ControlFlowEndsWithStates::new();
        }
        self.work_done += state.estimated_state_copy_cost();
        let ends = self.simulate_node_by_kind(code, state, heeds);
        self.limit_possible_ends_or_give_up(ends)
    }

    /// Returns the ways if they are not too many, and gives up otherwise.
    pub(super) fn limit_possible_ends_or_give_up(
        &mut self,
        ends: ControlFlowEndsWithStates,
    ) -> ControlFlowEndsWithStates {
        merge_script_states_to_limit(ends).unwrap_or_else(|| {
            self.given_up = true;
            ControlFlowEndsWithStates::new()
        })
    }

    /// Does the same for the states before the next round of a loop.
    pub(super) fn merge_states_or_give_up(
        &mut self,
        states: BTreeSet<ShellStateOnOnePath>,
    ) -> BTreeSet<ShellStateOnOnePath> {
        let ends = states
            .into_iter()
            .map(|state| (ControlFlowEnd::Next, state))
            .collect();
        let ends = self.limit_possible_ends_or_give_up(ends);
        ends.into_iter().map(|(_, state)| state).collect()
    }

    fn simulate_node_by_kind(
        &mut self,
        code: &ScriptNode,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        match code {
            ScriptNode::Command(command) => self.simulate_command(command, state, heeds),
            ScriptNode::Assign {
                assignments,
                declares,
                in_bash,
            } => {
                let before = state.clone();
                let ends = self.simulate_assignments(assignments, *declares, state, heeds);
                self.add_failure_outcome_unless_bash(ends, *in_bash, before, heeds)
            }
            ScriptNode::Sequence(parts) => {
                let mut ends = normal_control_flow_end(state);
                for part in parts {
                    ends = self.continue_paths_that_ended_normally(ends, |machine, state| {
                        machine.simulate_script_node(part, state, heeds)
                    });
                }
                ends
            }
            ScriptNode::And(left, right) => {
                // A failure to the left of `&&` or `||` does not trigger `set -e`.
                let ends = self.simulate_script_node(left, state, false);
                self.continue_paths_that_ended_normally(ends, |machine, state| match state.status {
                    ZeroOrNonzeroStatus::Zero => machine.simulate_script_node(right, state, heeds),
                    ZeroOrNonzeroStatus::Failed => normal_control_flow_end(state),
                })
            }
            ScriptNode::Or(left, right) => {
                let ends = self.simulate_script_node(left, state, false);
                self.continue_paths_that_ended_normally(ends, |machine, state| match state.status {
                    ZeroOrNonzeroStatus::Zero => normal_control_flow_end(state),
                    ZeroOrNonzeroStatus::Failed => {
                        machine.simulate_script_node(right, state, heeds)
                    }
                })
            }
            // `set -e` ignores a failure that is negated.
            ScriptNode::Not(inner) => {
                let ends = self.simulate_script_node(inner, state, false);
                self.continue_paths_that_ended_normally(ends, |_, state| {
                    let turned = match state.status {
                        ZeroOrNonzeroStatus::Zero => ZeroOrNonzeroStatus::Failed,
                        ZeroOrNonzeroStatus::Failed => ZeroOrNonzeroStatus::Zero,
                    };
                    normal_control_flow_end(state.state_with_exit_status(turned))
                })
            }
            ScriptNode::Pipe(members) => self.simulate_pipeline_statuses(members, state, heeds),
            ScriptNode::Subshell(inner) => {
                let states = self.simulate_subshell(inner, state, heeds);
                self.apply_errexit_and_err_trap(states, heeds)
            }
            ScriptNode::If { arms, otherwise } => {
                self.simulate_if(arms, otherwise.as_deref(), state, heeds)
            }
            ScriptNode::While {
                until,
                condition,
                body,
            } => self.simulate_while_loop(*until, condition, body, state, heeds),
            ScriptNode::For {
                variable,
                rounds,
                body,
            } => self.simulate_for_loop(variable, rounds, body, state, heeds),
            ScriptNode::Case { word, arms } => {
                self.simulate_case_statement(word, arms, state, heeds)
            }
            // A command in the background gives status 0 at once, whatever becomes of it.
            ScriptNode::Background(inner) => {
                let ran = self
                    .simulate_script_node(inner, state.clone(), false)
                    .iter()
                    .any(|(_, end)| end.ran && !state.ran);
                // A `wait` for it is not followed, so nothing can be said about a target in the
                // background.
                self.given_up |= ran;
                normal_control_flow_end(state.state_with_exit_status(ZeroOrNonzeroStatus::Zero))
            }
            ScriptNode::BothOutputs(inner) => {
                let ends = self.simulate_script_node(inner, state, heeds);
                if self.bash {
                    return ends;
                }
                // Other shells run it in the background, so it can go on with status 0 as well.
                let behind = ends.iter().map(|(_, state)| {
                    let state = state
                        .clone()
                        .state_with_exit_status(ZeroOrNonzeroStatus::Zero);
                    (ControlFlowEnd::Next, state)
                });
                let behind: ControlFlowEndsWithStates = behind.collect();
                ends.into_iter().chain(behind).collect()
            }
            ScriptNode::Test { words, in_bash } => {
                let found = self.evaluate_test_command(words, &state);
                let states = self.shell_states_after_condition(found, state.clone());
                let ends = self.apply_errexit_and_err_trap(states, heeds);
                self.add_failure_outcome_unless_bash(ends, *in_bash, state, heeds)
            }
            ScriptNode::Arithmetic(text) => {
                let ends = self.simulate_arithmetic_command(text, state.clone(), heeds);
                self.add_failure_outcome_unless_bash(ends, true, state, heeds)
            }
            // A definition runs nothing.
            ScriptNode::Function => {
                normal_control_flow_end(state.state_with_exit_status(ZeroOrNonzeroStatus::Zero))
            }
            ScriptNode::Unknown => {
                let states = states_after_success_and_failure(state);
                self.apply_errexit_and_err_trap(states, heeds)
            }
        }
    }

    /// Adds a failing end for what only bash knows: it is an error to other shells.
    pub(super) fn add_failure_outcome_unless_bash(
        &mut self,
        ends: ControlFlowEndsWithStates,
        in_bash: bool,
        before: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let mut ends = ends;
        if in_bash && !self.bash {
            ends.extend(self.apply_errexit_and_err_trap(
                vec![before.state_with_exit_status(ZeroOrNonzeroStatus::Failed)],
                heeds,
            ));
        }
        ends
    }

    /// Continues from each way that ended normally.
    pub(super) fn continue_paths_that_ended_normally(
        &mut self,
        ends: ControlFlowEndsWithStates,
        mut go: impl FnMut(&mut Self, ShellStateOnOnePath) -> ControlFlowEndsWithStates,
    ) -> ControlFlowEndsWithStates {
        let mut all = ControlFlowEndsWithStates::new();
        for (end, state) in ends {
            match end {
                ControlFlowEnd::Next => all.extend(go(self, state)),
                end => {
                    all.insert((end, state));
                }
            }
            // The set is bounded after each way, so it never grows far beyond the limit.
            all = self.limit_possible_ends_or_give_up(all);
        }
        all
    }

    /// Applies what a shell does after a simple command: `set -e`, `trap ... ERR`.
    pub(super) fn apply_errexit_and_err_trap(
        &mut self,
        states: Vec<ShellStateOnOnePath>,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let mut ends = ControlFlowEndsWithStates::new();
        for state in states {
            if state.status == ZeroOrNonzeroStatus::Zero || !heeds {
                ends.insert((ControlFlowEnd::Next, state));
                continue;
            }
            let mut after = match state.error_trap.clone() {
                Some(handler) => {
                    // Failures inside the handler do not call it again.
                    let handled = ShellStateOnOnePath {
                        error_trap: None,
                        ..state.clone()
                    };
                    let ran = self.simulate_trap_handler(&handler, handled);
                    let restored = ran.into_iter().map(|(end, mut after)| {
                        // After the handler the failure of the command is still the status.
                        if end == ControlFlowEnd::Next {
                            after = after.state_with_exit_status(ZeroOrNonzeroStatus::Failed);
                            after.error_trap = Some(handler.clone());
                        }
                        (end, after)
                    });
                    restored.collect()
                }
                None => normal_control_flow_end(state.clone()),
            };
            // The handler runs first, and then the script ends.
            if state.errexit {
                after = after
                    .into_iter()
                    .map(|(end, state)| match end {
                        ControlFlowEnd::Next => (ControlFlowEnd::Exit, state),
                        end => (end, state),
                    })
                    .collect();
            }
            ends.extend(after);
        }
        ends
    }

    pub(super) fn shell_states_after_condition(
        &mut self,
        found: Option<bool>,
        state: ShellStateOnOnePath,
    ) -> Vec<ShellStateOnOnePath> {
        match found {
            Some(true) => vec![state.state_with_exit_status(ZeroOrNonzeroStatus::Zero)],
            Some(false) => vec![state.state_with_exit_status(ZeroOrNonzeroStatus::Failed)],
            None => states_after_success_and_failure(state),
        }
    }

    /// Simulates a process of its own: what it sets is gone afterwards.
    pub(super) fn simulate_subshell(
        &mut self,
        code: &ScriptNode,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> Vec<ShellStateOnOnePath> {
        // A subshell does not inherit the `EXIT` trap.
        let inside = ShellStateOnOnePath {
            exit_trap: None,
            ..state.clone()
        };
        let ends = self.simulate_script_node(code, inside, heeds);
        let states = self.simulate_exit_traps(ends);
        let outside = states.into_iter().map(|end| ShellStateOnOnePath {
            failed: end.failed,
            ran: end.ran,
            ..state.clone().state_with_exit_status(end.status)
        });
        outside.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Simulates the end of a shell, with its `EXIT` trap.
    pub(super) fn simulate_exit_traps(
        &mut self,
        ends: ControlFlowEndsWithStates,
    ) -> BTreeSet<ShellStateOnOnePath> {
        let mut all = BTreeSet::new();
        for (_, mut state) in ends {
            let Some(handler) = state.exit_trap.take() else {
                all.insert(state);
                continue;
            };
            let status = state.status;
            for (end, after) in self.simulate_trap_handler(&handler, state) {
                // Only an `exit` in the handler changes the status.
                all.insert(match end {
                    ControlFlowEnd::Exit => after,
                    _ => after.state_with_exit_status(status),
                });
            }
        }
        all
    }

    pub(super) fn simulate_trap_handler(
        &mut self,
        handler: &ShellValue,
        state: ShellStateOnOnePath,
    ) -> ControlFlowEndsWithStates {
        let code = handler
            .shell_text_if_known()
            .and_then(|text| self.parse_eval_text(text));
        match code {
            Some(code) => self.simulate_script_node(&code, state, false),
            // What it does is not known; it may end the script with 0.
            None => {
                let mut ends = normal_control_flow_end(state.clone());
                ends.insert((
                    ControlFlowEnd::Exit,
                    state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                ));
                ends
            }
        }
    }

    /// Parses a text that is run as part of the script.
    pub(super) fn parse_eval_text(&mut self, text: &str) -> Option<Rc<ScriptNode>> {
        // The same handler runs on many ways; it is parsed once.
        if let Some(known) = self.handlers.get(text) {
            return known.clone();
        }
        let code = is_short_enough_to_parse(text)
            .then(|| self.scripts.shell_syntax_tree(text))
            .flatten()
            .map(|tree| Rc::new(read_script_without_positions(tree.root_node(), text).code));
        self.handlers.insert(text.to_owned(), code.clone());
        code
    }
}
