//! `policy check --codex-exit`: gives the answer of `codex execpolicy check` to the byte, for
//! callers of that command. Nothing of ours is added: no splitting, no effects, no rules.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use checkrein_execpolicy::compile_rules_with_base_folder;

use crate::args::PolicyCheckArgs;
use crate::ui::errors::CommandError;
use crate::{exit_code, ui};

pub(super) fn run_codex_style_policy_check(
    args: &PolicyCheckArgs,
) -> Result<ExitCode, CommandError> {
    let here = super::program_path_base_of_current_dir()?;
    let mut files = Vec::new();
    let mut unread = None;
    for path in &args.rules {
        let name = path.display().to_string();
        match super::read_file_up_to_limit(path) {
            Ok(text) => files.push((name, text)),
            Err(error) => {
                unread = Some((name, error.to_string()));
                break;
            }
        }
    }
    // Codex reads one file after the other, so an error in an earlier file is reported first.
    let rules = match compile_rules_with_base_folder(&super::as_str_pairs(&files), &here) {
        Ok(rules) => rules,
        Err(error) => {
            let file = error.rules_file_with_error().unwrap_or_default();
            return Ok(print_codex_style_error(
                "parse",
                file,
                &error.codex_rules_error_text(),
            ));
        }
    };
    if let Some((name, why)) = unread {
        return Ok(print_codex_style_error("read", &name, &why));
    }
    let resolve = args.resolve_host_executables.then_some(&here);
    // Codex's output to the byte, whatever the command holds.
    let document = rules
        .codex_execpolicy_check_result(&args.command, resolve)
        .to_codex_check_json();
    ui::write_stdout_bytes(format!("{document}\n").as_bytes());
    Ok(exit_code::to_exit_code(exit_code::YES))
}

fn print_codex_style_error(what: &str, file: &str, cause: &str) -> ExitCode {
    let cause = cause.replace('\n', "\n    ");
    let text = format!("Error: failed to {what} policy at {file}\n\nCaused by:\n    {cause}");
    // A program that compares gets the text as it is; a terminal gets nothing that steers it.
    match std::io::stderr().is_terminal() {
        true => ui::print_wrapped_to_stderr(&text),
        false => ui::write_stderr_bytes((text + "\n").as_bytes()),
    }
    exit_code::to_exit_code(exit_code::NO)
}
