//! Commands whose program need not be what its name says, or that only the run knows: functions,
//! `$PYTHON -m pytest`, `npm run $T`.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};

use super::CommandStatusContext;
use super::recognise::{RecognisedCommand, recognise_command};
use super::status_tracer::ExitStatusTracer;
use crate::rule_set::basename;
use crate::shell::CommandWord;

impl ExitStatusTracer<'_, '_, '_> {
    /// A call of a function. One that is called as a runner is, and runs none, is none.
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
        if self.call_stack.iter().any(|known| known == program) {
            return;
        }
        if let Some(body) = body {
            self.call_stack.push(program.to_owned());
            self.arguments.push(words.get(1..).unwrap_or(&[]).to_vec());
            self.trace_node_exit_status(body, position);
            self.arguments.pop();
            self.call_stack.pop();
        }
        let kind = match recognise_command(texts) {
            RecognisedCommand::Known(
                kind @ (CheckScriptCommandKind::Tests(_) | CheckScriptCommandKind::Checker),
            ) => kind,
            RecognisedCommand::PackageScripts(_)
            | RecognisedCommand::Make(_)
            | RecognisedCommand::Just(_) => CheckScriptCommandKind::Tests(None),
            _ if body.is_some() => return,
            // One of a file that the script reads in.
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
                .note_verdict_relevant_command(text, program, kind, position);
        } else if !runs {
            let here = position.with_status_mask(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: format!("{program}() {{ ... }}"),
            });
            self.reader
                .note_verdict_relevant_command(text, program, kind, &here);
        }
    }

    /// A command whose program only the run knows: `$PYTHON -m pytest`, `$SUDO pytest`.
    pub(super) fn trace_unknown_program_command(
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
            return self.trace_command_words(&words, text, fed, position, depth + 1);
        }
        if !first.may_be_empty() && !basename(&first.text).contains(['$', '`', '*']) {
            // Only its folder is not known.
            let named = std::iter::once(CommandWord::new_literal_word(first.text.as_str()));
            let words: Vec<CommandWord> = named.chain(rest.iter().cloned()).collect();
            return self.trace_command_words(&words, text, fed, position, depth + 1);
        }
        let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
        let behind = match texts.as_slice() {
            ["-m", _, ..] => rest.get(1..),
            rest_texts => match recognise_command(rest_texts) {
                RecognisedCommand::Known(
                    CheckScriptCommandKind::Tests(_) | CheckScriptCommandKind::Checker,
                ) => Some(rest),
                _ => None,
            },
        };
        match behind {
            Some(behind) => self.trace_command_words(behind, text, fed, position, depth + 1),
            // If it comes to nothing, nothing is run.
            None if self.call_stack.is_empty() && words.iter().all(CommandWord::may_be_empty) => {
                let here = CommandStatusContext {
                    may_not_run: true,
                    ..position.clone()
                };
                self.reader.note_verdict_relevant_command(
                    text,
                    &first.text,
                    CheckScriptCommandKind::Tests(None),
                    &here,
                );
            }
            None => self.reader.note_verdict_relevant_command(
                text,
                &first.text,
                CheckScriptCommandKind::Program,
                position,
            ),
        }
    }
}

/// Programs that list what they know, or help, where no command is given to them.
const LIST_OR_HELP: &[&str] = &[
    "bun", "bundle", "cargo", "composer", "deno", "dotnet", "go", "gradle", "just", "make", "mise",
    "mix", "node", "npm", "npx", "pdm", "perl", "php", "pipenv", "pnpm", "poe", "poetry", "python",
    "python3", "rake", "ruby", "task", "turbo", "uv", "yarn",
];

/// `npm run $T`, `cargo $T`, `python "$F"`: whether nothing that is known says what to do.
pub(super) fn operands_may_be_empty(words: &[CommandWord]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let lists = LIST_OR_HELP.contains(&basename(&program.text));
    // To these, what they run is named behind `run`.
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
