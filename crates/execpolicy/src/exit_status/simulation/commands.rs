//! Simulates single commands: targets, calls of functions, and builtins of the shell.

use super::super::expansion::{
    ShellValue, ShellWordPieces, ZeroOrNonzeroStatus, compare_test_operands, evaluate_arithmetic,
    evaluate_shell_test_command, parse_word_pieces, split_shell_words_keeping_quotes,
};
use super::super::script_model::{ShellFunction, SimpleCommand};
use super::super::script_reader::uses_bash_only_equality;
use super::MAX_CALLS;
use super::machine::ScriptSimulation;
use super::state::{
    ControlFlowEnd, ControlFlowEndsWithStates, ShellStateOnOnePath, normal_control_flow_end,
    states_after_success_and_failure,
};

impl ScriptSimulation<'_> {
    pub(super) fn simulate_command(
        &mut self,
        command: &SimpleCommand,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let before = state.status;
        let pipe = state.pipe_statuses.clone();
        let mut all = ControlFlowEndsWithStates::new();
        for mut state in
            self.simulate_command_substitution_statuses(&command.substitutions, vec![state])
        {
            // In the words of a command, `$?` is the status before it, not that of a substitution
            // in it.
            state.status = before;
            state.pipe_statuses.clone_from(&pipe);
            if self.targets.contains(&command.at) {
                all.extend(self.simulate_success_and_failure(command, state, heeds));
            } else if self.same_checks.contains(&command.at) {
                // The same check ran again, so if it succeeds its earlier failure no longer
                // counts.
                let mut succeeded = state
                    .clone()
                    .state_with_exit_status(ZeroOrNonzeroStatus::Zero);
                succeeded.failed = false;
                all.extend(self.apply_errexit_and_err_trap(
                    vec![
                        succeeded,
                        state.state_with_exit_status(ZeroOrNonzeroStatus::Failed),
                    ],
                    heeds,
                ));
            } else {
                let words: Vec<ShellValue> = command
                    .words
                    .iter()
                    .map(|word| state.evaluate_word(word))
                    .collect();
                all.extend(self.end_states_after_simple_command(
                    &words,
                    &command.words,
                    state,
                    heeds,
                ));
            }
        }
        all
    }

    fn simulate_success_and_failure(
        &mut self,
        command: &SimpleCommand,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        self.reached.insert(command.at);
        let mut succeeded = state
            .clone()
            .state_with_exit_status(ZeroOrNonzeroStatus::Zero);
        let mut failed = state.state_with_exit_status(ZeroOrNonzeroStatus::Failed);
        (succeeded.ran, failed.ran, failed.failed) = (true, true, true);
        // A target that succeeds in the condition of a loop was tried again. With several targets
        // it is not known which of them it was.
        succeeded.failed &= self.in_condition == 0 || self.targets.len() > 1;
        // `exec` never returns.
        let first = command
            .words
            .first()
            .map(|word| succeeded.evaluate_word(word));
        if first.as_ref().and_then(ShellValue::shell_text_if_known) == Some("exec") {
            return ControlFlowEndsWithStates::from([
                (ControlFlowEnd::Exit, succeeded),
                (ControlFlowEnd::Exit, failed),
            ]);
        }
        self.apply_errexit_and_err_trap(vec![succeeded, failed], heeds)
    }

    fn end_states_after_simple_command(
        &mut self,
        words: &[ShellValue],
        written: &[ShellWordPieces],
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let Some((name, arguments)) = words.split_first() else {
            return normal_control_flow_end(state);
        };
        let Some(name) = name
            .shell_text_if_known()
            .map(|name| name.split_whitespace().next().unwrap_or(""))
        else {
            // A program that is not known may end either way.
            let states = states_after_success_and_failure(state);
            return self.apply_errexit_and_err_trap(states, heeds);
        };
        if let Some(function) = self.functions.get(name).cloned() {
            return self.simulate_function_call(&function, arguments, state, heeds);
        }
        let first = arguments.first();
        let done = match name {
            "exit" | "return" => {
                let end = if name == "exit" {
                    ControlFlowEnd::Exit
                } else {
                    ControlFlowEnd::Return
                };
                // An empty argument counts as none.
                let given = first.filter(|value| value.shell_text_if_known() != Some(""));
                let states = match given.map(ShellValue::as_shell_exit_status) {
                    None => vec![state],
                    Some(Some(status)) => vec![state.state_with_exit_status(status)],
                    Some(None) => states_after_success_and_failure(state),
                };
                let mut ends: ControlFlowEndsWithStates =
                    states.iter().cloned().map(|state| (end, state)).collect();
                if name == "return" && self.call_depth == 0 && self.bash {
                    // Outside a function `return` is an error, and bash goes on.
                    let failed = states
                        .into_iter()
                        .map(|state| state.state_with_exit_status(ZeroOrNonzeroStatus::Failed));
                    ends.extend(self.apply_errexit_and_err_trap(failed.collect(), heeds));
                }
                return ends;
            }
            "break" => {
                return ControlFlowEndsWithStates::from([(
                    ControlFlowEnd::Break,
                    state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                )]);
            }
            "continue" => {
                return ControlFlowEndsWithStates::from([(
                    ControlFlowEnd::Continue,
                    state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                )]);
            }
            ":" | "true" | "echo" | "printf" | "shopt" | "alias" | "umask" | "trap" | "set"
            | "unset" | "shift" => {
                let mut state = state;
                // Some shells do not know the `ERR` trap, and for them this is an error.
                if name == "trap"
                    && !self.bash
                    && arguments
                        .iter()
                        .any(|word| word.shell_text_if_known() == Some("ERR"))
                {
                    let mut trapped = state.clone();
                    simulate_trap_command(arguments, &mut trapped);
                    return self.apply_errexit_and_err_trap(
                        vec![
                            trapped.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                            state.state_with_exit_status(ZeroOrNonzeroStatus::Failed),
                        ],
                        heeds,
                    );
                }
                // After `set -n` commands are read and not run.
                let reads_only = match name {
                    "set" => apply_shell_set_options(arguments, &mut state),
                    "shopt" => apply_shopt(arguments, &mut state),
                    _ => false,
                };
                if reads_only {
                    return ControlFlowEndsWithStates::from([(
                        ControlFlowEnd::Exit,
                        state.state_with_exit_status(ZeroOrNonzeroStatus::Zero),
                    )]);
                }
                match name {
                    "trap" => simulate_trap_command(arguments, &mut state),
                    // `shift` changes all positional parameters, so none of them is known any
                    // more.
                    "shift" | "unset" => state.retain_variables(|name| {
                        let given = arguments
                            .iter()
                            .any(|word| word.shell_text_if_known() == Some(name));
                        !given && !name.starts_with(|c: char| c.is_ascii_digit())
                    }),
                    _ => {}
                }
                vec![state.state_with_exit_status(ZeroOrNonzeroStatus::Zero)]
            }
            "false" => vec![state.state_with_exit_status(ZeroOrNonzeroStatus::Failed)],
            "test" | "[" => {
                let words = written.get(1..).unwrap_or(&[]);
                let found = self.evaluate_test_command(words, &state);
                let states = self.shell_states_after_condition(found, state.clone());
                let ends = self.apply_errexit_and_err_trap(states, heeds);
                return self.add_failure_outcome_unless_bash(
                    ends,
                    uses_bash_only_equality(words),
                    state,
                    heeds,
                );
            }
            "let" => {
                let text: Vec<&str> = arguments
                    .iter()
                    .filter_map(ShellValue::shell_text_if_known)
                    .collect();
                let ends = self.simulate_arithmetic_command(&text.join(" "), state.clone(), heeds);
                return self.add_failure_outcome_unless_bash(ends, true, state, heeds);
            }
            // It is not known what is read, nor whether anything is.
            "read" | "mapfile" | "readarray" | "getopts" => {
                let mut state = state;
                for name in arguments.iter().filter_map(ShellValue::shell_text_if_known) {
                    state.set_variable(name, ShellValue::Unknown);
                }
                states_after_success_and_failure(state)
            }
            // A text that is known runs as a part of the script.
            "eval" => {
                let texts: Option<Vec<&str>> = arguments
                    .iter()
                    .map(ShellValue::shell_text_if_known)
                    .collect();
                let code = texts.and_then(|texts| self.parse_eval_text(&texts.join(" ")));
                match code {
                    Some(code) => return self.simulate_script_node(&code, state, heeds),
                    None => states_after_success_and_failure(state),
                }
            }
            "command" | "builtin"
                if first
                    .and_then(ShellValue::shell_text_if_known)
                    .is_some_and(|word| !word.starts_with('-')) =>
            {
                return self.end_states_after_simple_command(
                    arguments,
                    written.get(1..).unwrap_or(&[]),
                    state,
                    heeds,
                );
            }
            // Only a lookup of a single name is answered.
            "command" | "which" | "type" | "hash" => {
                let mut names = arguments.iter().filter(|word| {
                    word.shell_text_if_known()
                        .is_none_or(|word| !word.starts_with('-'))
                });
                let found = match (
                    names.next().and_then(ShellValue::shell_text_if_known),
                    names.next(),
                ) {
                    (Some(program), None) => (self.exists)("command", program),
                    _ => None,
                };
                self.shell_states_after_condition(found, state)
            }
            // Without arguments `exec` only applies its redirects.
            "exec" if !arguments.is_empty() => {
                return states_after_success_and_failure(state)
                    .into_iter()
                    .map(|state| (ControlFlowEnd::Exit, state))
                    .collect();
            }
            _ => states_after_success_and_failure(state),
        };
        self.apply_errexit_and_err_trap(done, heeds)
    }

    fn simulate_function_call(
        &mut self,
        function: &ShellFunction,
        arguments: &[ShellValue],
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        // A recursion would be followed without end.
        if self.call_depth >= MAX_CALLS {
            self.given_up = true;
            return ControlFlowEndsWithStates::new();
        }
        let position = |at: usize| at.to_string();
        let mut inside = state.clone();
        for at in 1..=9 {
            let value = arguments.get(at - 1).cloned();
            let value = value.unwrap_or(ShellValue::Text(String::new()));
            inside.set_variable(&position(at), value);
        }
        self.call_depth += 1;
        let ends = self.simulate_script_node(&function.body, inside, heeds);
        self.call_depth -= 1;
        let mut all = ControlFlowEndsWithStates::new();
        for (end, mut after) in ends {
            // Local variables and positional parameters get their values from before the call
            // back.
            let own = function.local_variables.iter().cloned();
            for name in own.chain((1..=9).map(position)) {
                match state.shell_variable_value(&name) {
                    Some(value) => after.set_variable(&name, value.clone()),
                    None => after.retain_variables(|other| other != name),
                }
            }
            match end {
                ControlFlowEnd::Next | ControlFlowEnd::Return => {
                    all.extend(self.apply_errexit_and_err_trap(vec![after], heeds))
                }
                end => {
                    all.insert((end, after));
                }
            }
        }
        all
    }

    pub(super) fn evaluate_test_command(
        &mut self,
        words: &[ShellWordPieces],
        state: &ShellStateOnOnePath,
    ) -> Option<bool> {
        let values: Vec<ShellValue> = words.iter().map(|word| state.evaluate_word(word)).collect();
        let values: &[ShellValue] = match values.split_last() {
            Some((ShellValue::Text(last), rest)) if last == "]" => rest,
            _ => &values,
        };
        evaluate_shell_test_command(values, self.exists)
    }

    /// Simulates `((a++))`, `((a += b))` and `((a > 0))`.
    pub(super) fn simulate_arithmetic_command(
        &mut self,
        text: &str,
        state: ShellStateOnOnePath,
        heeds: bool,
    ) -> ControlFlowEndsWithStates {
        let mut state = state;
        let words = split_shell_words_keeping_quotes(text);
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
                state.evaluate_word(&parse_word_pieces(&word))
            };
            let found = compare_test_operands(&value(left), operator, &value(right));
            let states = self.shell_states_after_condition(found, state);
            return self.apply_errexit_and_err_trap(states, heeds);
        }
        let end = text
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let rest = rest.trim_start();
        if rest.is_empty() && !name.is_empty() {
            // `((x))` succeeds if the value is not 0.
            let found = match state
                .evaluate_word(&parse_word_pieces(&format!("${name}")))
                .as_shell_exit_status()
            {
                Some(ZeroOrNonzeroStatus::Zero) => Some(false),
                Some(ZeroOrNonzeroStatus::Failed) => Some(true),
                None => None,
            };
            let states = self.shell_states_after_condition(found, state);
            return self.apply_errexit_and_err_trap(states, heeds);
        }
        // A counter that was incremented is taken to be above 0.
        let value = if rest.starts_with("++") {
            Some(ShellValue::Failure)
        } else if let Some(more) = rest.strip_prefix("+=").or_else(|| rest.strip_prefix("|=")) {
            Some(evaluate_arithmetic(
                &format!("{name} + {more}"),
                &state.shell_expansion_context(),
            ))
        } else if rest.starts_with('=') && !rest.starts_with("==") {
            Some(evaluate_arithmetic(
                rest.trim_start_matches('='),
                &state.shell_expansion_context(),
            ))
        } else {
            None
        };
        if let Some(value) = value {
            state.set_variable(name, value);
        }
        let states = states_after_success_and_failure(state);
        self.apply_errexit_and_err_trap(states, heeds)
    }
}

/// Applies `set -e`, `set +e` and `set -o pipefail`. Returns whether nothing more is run:
/// `set -n`.
fn apply_shell_set_options(arguments: &[ShellValue], state: &mut ShellStateOnOnePath) -> bool {
    let mut reads_only = false;
    let mut words = arguments
        .iter()
        .map(|word| word.shell_text_if_known().unwrap_or(""));
    while let Some(word) = words.next() {
        let on = word.starts_with('-');
        let letters = word.strip_prefix(['-', '+']);
        let Some(letters) = letters.filter(|letters| !letters.starts_with('-')) else {
            break;
        };
        if letters.contains('e') {
            state.errexit = on;
        }
        reads_only |= on && letters.contains('n');
        for _ in letters.matches('o') {
            reads_only |= simulate_shell_option_switch(words.next(), on, state);
        }
    }
    reads_only
}

/// Applies `shopt -uo errexit`. Returns whether nothing more is run.
fn apply_shopt(arguments: &[ShellValue], state: &mut ShellStateOnOnePath) -> bool {
    let texts: Vec<&str> = arguments
        .iter()
        .filter_map(ShellValue::shell_text_if_known)
        .collect();
    let has = |letter: char| {
        texts
            .iter()
            .any(|word| word.starts_with('-') && word.contains(letter))
    };
    if !has('o') || !(has('s') || has('u')) {
        return false;
    }
    let mut reads_only = false;
    for name in texts.iter().filter(|word| !word.starts_with('-')) {
        reads_only |= simulate_shell_option_switch(Some(*name), has('s'), state);
    }
    reads_only
}

/// Switches an option by its name. Returns whether nothing more is run.
fn simulate_shell_option_switch(
    name: Option<&str>,
    on: bool,
    state: &mut ShellStateOnOnePath,
) -> bool {
    match name {
        Some("pipefail") => state.pipefail = on,
        Some("errexit") => state.errexit = on,
        Some("noexec") => return on,
        _ => {}
    }
    false
}

/// Applies `trap 'exit 0' EXIT INT`. A handler that can run at other times is taken to run at the
/// end.
fn simulate_trap_command(arguments: &[ShellValue], state: &mut ShellStateOnOnePath) {
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first.shell_text_if_known() == Some("--") => rest,
        _ => arguments,
    };
    let Some((handler, signals)) = arguments.split_first() else {
        return;
    };
    let handler = match handler.shell_text_if_known() {
        Some("-" | "") => None,
        _ => Some(handler.clone()),
    };
    for signal in signals {
        match signal
            .shell_text_if_known()
            .map(|signal| signal.trim_start_matches("SIG"))
        {
            Some("ERR" | "err") => state.error_trap.clone_from(&handler),
            // None of these signals is sent because a command failed.
            Some("INT" | "HUP" | "TERM" | "QUIT" | "PIPE" | "1" | "2" | "3" | "13" | "15") => {}
            _ => state.exit_trap.clone_from(&handler),
        }
    }
}
