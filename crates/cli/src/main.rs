//! The `checkrein` command: parses, runs, and returns an exit code. `hook` is on agents' hot path
//! and skips the argument parser of the other commands.

#[cfg(target_os = "linux")]
mod agent_exit;
mod agent_message;
mod args;
mod check_owner;
mod commands;
mod confine;
mod detect;
mod exit_code;
mod guarded_files;
mod locate;
mod masked;
mod notify;
mod off;
mod person;
mod policy_sources;
mod programs;
mod session_index;
mod session_location;
mod settings;
mod shell;
mod signals;
mod trust;
mod ui;

use std::process::ExitCode;

/// The allocator. musl's own takes pages from the system one by one and gives them back as it goes.
#[cfg(target_env = "musl")]
#[global_allocator]
static MEMORY: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    // The internal commands come first. They are no part of the help, and the confinement must
    // start before any thread does.
    let mut words = std::env::args_os().skip(1);
    #[cfg(target_os = "linux")]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == confine::EXEC_ARGUMENT)
    {
        return confine::namespace_exec::run_confined_exec_command(words.skip(1).collect());
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == notify::NOTIFIER_ARGUMENT)
    {
        let words: Vec<_> = words.skip(1).collect();
        return notify::notifier_main(&words);
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == check_owner::OWNER_ARGUMENT)
    {
        return check_owner::check_worker_main();
    }
    // Help for `hook` comes from the argument parser like all other help.
    if words.next().is_some_and(|word| word == "hook")
        && !std::env::args_os().any(|word| word == "--help" || word == "-h")
    {
        return commands::hook::hook_main(words.collect());
    }
    match args::parse_cli() {
        Ok(command) => match commands::run_cli_command(command) {
            Ok(code) => code,
            Err(error) => ui::errors::report_command_error(&error),
        },
        Err(code) => code,
    }
}
