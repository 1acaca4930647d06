//! Single commands: the target, functions, and what the shell does by itself.

use super::super::expansion::{
    Expansion, Status, Value, compared, holds, read_expansion, split_words, sum,
};
use super::super::script::{Command, Function};
use super::super::script_reader::compares_as_bash;
use super::MAX_CALLS;
use super::machine::Simulation;
use super::state::{End, Ends, State, either, next};

impl Simulation<'_> {
    pub(super) fn command(&mut self, command: &Command, state: State, heeds: bool) -> Ends {
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
        self.reached.insert(command.at);
        let mut succeeded = state.clone().with(Status::Zero);
        let mut failed = state.with(Status::Failed);
        (succeeded.ran, failed.ran, failed.failed) = (true, true, true);
        // Of several, nobody knows which one it was.
        succeeded.failed &= self.in_condition == 0 || self.targets.len() > 1;
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
                let mut ends: Ends = states.iter().cloned().map(|state| (end, state)).collect();
                if name == "return" && self.calls == 0 && self.bash {
                    // Outside a function it is an error, and bash goes on.
                    let failed = states.into_iter().map(|state| state.with(Status::Failed));
                    ends.extend(self.settled(failed.collect(), heeds));
                }
                return ends;
            }
            "break" => return Ends::from([(End::Break, state.with(Status::Zero))]),
            "continue" => return Ends::from([(End::Continue, state.with(Status::Zero))]),
            ":" | "true" | "echo" | "printf" | "shopt" | "alias" | "umask" | "trap" | "set"
            | "unset" | "shift" => {
                let mut state = state;
                if name == "trap"
                    && !self.bash
                    && arguments.iter().any(|word| word.text() == Some("ERR"))
                {
                    let mut trapped = state.clone();
                    trap(arguments, &mut trapped);
                    return self.settled(
                        vec![trapped.with(Status::Zero), state.with(Status::Failed)],
                        heeds,
                    );
                }
                // `set -n`: what follows is read only.
                let reads_only = match name {
                    "set" => options(arguments, &mut state),
                    "shopt" => shell_options(arguments, &mut state),
                    _ => false,
                };
                if reads_only {
                    return Ends::from([(End::Exit, state.with(Status::Zero))]);
                }
                match name {
                    "trap" => trap(arguments, &mut state),
                    "shift" | "unset" => state.retain(|name| {
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
                let states = self.decided(found, state.clone());
                let ends = self.settled(states, heeds);
                return self.or_unknown(ends, compares_as_bash(words), state, heeds);
            }
            "let" => {
                let text: Vec<&str> = arguments.iter().filter_map(Value::text).collect();
                let ends = self.arithmetic(&text.join(" "), state.clone(), heeds);
                return self.or_unknown(ends, true, state, heeds);
            }
            "read" | "mapfile" | "readarray" | "getopts" => {
                let mut state = state;
                for name in arguments.iter().filter_map(Value::text) {
                    state.set(name, Value::Unknown);
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
            inside.set(&position(at), value);
        }
        self.calls += 1;
        let ends = self.run(&function.body, inside, heeds);
        self.calls -= 1;
        let mut all = Ends::new();
        for (end, mut after) in ends {
            let own = function.own.iter().cloned();
            for name in own.chain((1..=9).map(position)) {
                match state.variable(&name) {
                    Some(value) => after.set(&name, value.clone()),
                    None => after.retain(|other| other != name),
                }
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

    pub(super) fn test(&mut self, words: &[Expansion], state: &State) -> Option<bool> {
        let values: Vec<Value> = words.iter().map(|word| state.value(word)).collect();
        let values: &[Value] = match values.split_last() {
            Some((Value::Text(last), rest)) if last == "]" => rest,
            _ => &values,
        };
        holds(values, self.exists)
    }

    /// `((a++))`, `((a += b))`, `((a > 0))`.
    pub(super) fn arithmetic(&mut self, text: &str, state: State, heeds: bool) -> Ends {
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
            state.set(name, value);
        }
        let states = either(state);
        self.settled(states, heeds)
    }
}

/// `set -e`, `set +e`, `set -o pipefail`. Whether nothing more is run: `set -n`.
fn options(arguments: &[Value], state: &mut State) -> bool {
    let mut reads_only = false;
    let mut words = arguments.iter().map(|word| word.text().unwrap_or(""));
    while let Some(word) = words.next() {
        let on = word.starts_with('-');
        let letters = word.strip_prefix(['-', '+']);
        let Some(letters) = letters.filter(|letters| !letters.starts_with('-')) else {
            break;
        };
        if letters.contains('e') {
            state.ends_on_error = on;
        }
        reads_only |= on && letters.contains('n');
        for _ in letters.matches('o') {
            reads_only |= switch(words.next(), on, state);
        }
    }
    reads_only
}

/// `shopt -uo errexit`.
fn shell_options(arguments: &[Value], state: &mut State) -> bool {
    let texts: Vec<&str> = arguments.iter().filter_map(Value::text).collect();
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
        reads_only |= switch(Some(*name), has('s'), state);
    }
    reads_only
}

/// Switches an option by its name. Whether nothing more is run.
fn switch(name: Option<&str>, on: bool, state: &mut State) -> bool {
    match name {
        Some("pipefail") => state.fails_in_pipes = on,
        Some("errexit") => state.ends_on_error = on,
        Some("noexec") => return on,
        _ => {}
    }
    false
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
