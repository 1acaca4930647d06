//! Traces commands whose program need not be what its name says, or that only the run knows:
//! functions, `$PYTHON -m pytest`, `npm run $T`.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};

use super::CommandStatusContext;
use super::recognise::{RecognisedScriptCommand, classify_script_command_words};
use super::status_tracer::ExitStatusTracer;
use crate::rule_set::basename;
use crate::shell::CommandWord;

impl ExitStatusTracer<'_, '_, '_> {
    /// Traces a call of a function. A function that is named like a runner, and runs none, does
    /// not count as one.
    pub(super) fn trace_shell_function_call(
        &mut self,
        words: &[CommandWord],
        texts: &[&str],
        text: &str,
        position: &CommandStatusContext,
    ) {
        let program = texts.first().copied().unwrap_or("");
        let from = self.reader.reading.commands.len();
        let body = self.functions.get(program).copied();
        // A recursive call adds nothing.
        if self.call_stack.iter().any(|known| known == program) {
            return;
        }
        if let Some(body) = body {
            self.call_stack.push(program.to_owned());
            self.arguments.push(words.get(1..).unwrap_or(&[]).to_vec());
            self.trace_statuses_below_node(body, position);
            self.arguments.pop();
            self.call_stack.pop();
        }
        let kind = match classify_script_command_words(texts) {
            RecognisedScriptCommand::Known(
                kind @ (CheckScriptCommandKind::Tests(_) | CheckScriptCommandKind::Checker),
            ) => kind,
            RecognisedScriptCommand::PackageScripts(_)
            | RecognisedScriptCommand::Make(_)
            | RecognisedScriptCommand::Just(_) => CheckScriptCommandKind::Tests(None),
            _ if body.is_some() => return,
            // It is defined in a file that the script sources.
            _ => CheckScriptCommandKind::Program,
        };
        let noted = self.reader.reading.commands.get(from..).unwrap_or(&[]);
        let runs = noted.iter().any(|command| {
            matches!(
                command.kind,
                CheckScriptCommandKind::Tests(_)
                    | CheckScriptCommandKind::Checker
                    | CheckScriptCommandKind::ProjectScript
            )
        });
        if kind == CheckScriptCommandKind::Program {
            self.reader
                .record_check_script_command(text, program, kind, position);
        } else if !runs {
            let here = position.with_status_hidden_by(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: format!("{program}() {{ ... }}"),
            });
            self.reader
                .record_check_script_command(text, program, kind, &here);
        }
    }

    /// Traces a command whose program only the run knows: `$PYTHON -m pytest`, `$SUDO pytest`.
    pub(super) fn trace_status_of_unknown_program(
        &mut self,
        words: &[CommandWord],
        text: &str,
        fed: Option<&str>,
        position: &CommandStatusContext,
        depth: usize,
    ) {
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        // `${PYTHON:-python3}` is read as its default.
        let default = first.text.strip_prefix("${").and_then(|inner| {
            let (_, default) = inner.strip_suffix('}')?.split_once(":-")?;
            Some(
                default
                    .split_whitespace()
                    .map(CommandWord::new_literal_word),
            )
        });
        if let Some(default) = default.filter(|_| !first.text.contains(['\'', '"', '`', '('])) {
            let words: Vec<CommandWord> = default.chain(rest.iter().cloned()).collect();
            return self.trace_command_exit_status(&words, text, fed, position, depth + 1);
        }
        if !first.may_be_empty() && !basename(&first.text).contains(['$', '`', '*']) {
            // Only the folder is not known.
            let named = std::iter::once(CommandWord::new_literal_word(first.text.as_str()));
            let words: Vec<CommandWord> = named.chain(rest.iter().cloned()).collect();
            return self.trace_command_exit_status(&words, text, fed, position, depth + 1);
        }
        let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
        // Whatever the program is, the words after it name the runner.
        let behind = match texts.as_slice() {
            ["-m", _, ..] => rest.get(1..),
            rest_texts => match classify_script_command_words(rest_texts) {
                RecognisedScriptCommand::Known(
                    CheckScriptCommandKind::Tests(_) | CheckScriptCommandKind::Checker,
                ) => Some(rest),
                _ => None,
            },
        };
        match behind {
            Some(behind) => self.trace_command_exit_status(behind, text, fed, position, depth + 1),
            // If all words are empty, nothing is run.
            None if self.call_stack.is_empty() && words.iter().all(CommandWord::may_be_empty) => {
                let here = CommandStatusContext {
                    may_not_run: true,
                    ..position.clone()
                };
                self.reader.record_check_script_command(
                    text,
                    &first.text,
                    CheckScriptCommandKind::Tests(None),
                    &here,
                );
            }
            None => self.reader.record_check_script_command(
                text,
                &first.text,
                CheckScriptCommandKind::Program,
                position,
            ),
        }
    }
}

/// Programs that list what they know, or print help, if no command is given.
const LIST_OR_HELP: &[&str] = &[
    "bun", "bundle", "cargo", "composer", "deno", "dotnet", "go", "gradle", "just", "make", "mise",
    "mix", "node", "npm", "npx", "pdm", "perl", "php", "pipenv", "pnpm", "poe", "poetry", "python",
    "python3", "rake", "ruby", "task", "turbo", "uv", "yarn",
];

/// Returns whether nothing that is known says what to do: `npm run $T`, `cargo $T`, `python "$F"`.
pub(super) fn operands_may_be_empty(words: &[CommandWord]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let lists = LIST_OR_HELP.contains(&basename(&program.text));
    // Except for these, `run` stands before the name of what is run.
    let named = !matches!(basename(&program.text), "cargo" | "go" | "dotnet" | "deno");
    let mut operands = rest
        .iter()
        .filter(|word| !word.text.starts_with('-'))
        .filter(|word| {
            !named || !matches!(word.text.as_str(), "run" | "run-script" | "exec" | "x")
        });
    lists
        && operands.next().is_some_and(CommandWord::may_be_empty)
        && operands.all(CommandWord::may_be_empty)
}
