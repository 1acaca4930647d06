//! Developer tools of this repository: `cargo xtask COMMAND`. Each command has a file or folder of
//! its own and one entry in [`COMMANDS`].
#![expect(clippy::print_stdout, reason = "a chore's answer is its output")]
#![expect(clippy::print_stderr, reason = "and its progress goes beside it")]

mod agents;
mod bench;
mod build;
mod calibration;
mod checkout_copy;
mod ci;
mod everyday;
mod fuzz;
mod install;
mod laws;
mod parity;
mod policy_table;
mod refresh;
mod renames;
mod rows;
mod simulate;
mod targets;
mod tokens;
mod toolchain;

use std::process::ExitCode;

/// Runs a command with its arguments; the error is a message for people.
type XtaskCommandFn = fn(&[String]) -> Result<ExitCode, String>;

/// Name, help text and function of each command.
const COMMANDS: &[(&str, &str, XtaskCommandFn)] = &[
    (
        "agents",
        "[claude-code|codex] [--case NAME] [--keep]: the real agents against a scripted model on loopback",
        agents::run_agent_cases,
    ),
    (
        "bench",
        "hook | replay | check | patch | policy | witness: how fast, beside the peers, as ratios",
        bench::run_bench,
    ),
    (
        "calibration",
        "FOLDER: what `judge calibrate` makes of LLMBar's recorded answers (a checkout of it), beside the published numbers",
        calibration::compare_with_published_llmbar_figures,
    ),
    (
        "ci",
        "everything a change has to pass: format, lint, tests, the core alone, documentation",
        ci::run_ci,
    ),
    (
        "everyday",
        "FOLDER: how often the policy of a freshly initialised repo interrupts lines drawn from 40 public repositories in FOLDER",
        everyday::measure_everyday_command_prompts,
    ),
    (
        "fuzz",
        "[TARGET]... [--seconds N]: libFuzzer over what parses a stranger's bytes",
        fuzz::run_fuzz_targets,
    ),
    (
        "install",
        "[--root DIR]: builds checkrein as fast as it gets and puts it into cargo's bin folder",
        install::build_and_install_checkrein,
    ),
    (
        "laws",
        "which test keeps which law; --break [LAW]... breaks them and sees each test go red; --refresh [REV] carries what breaks them over from there",
        laws::run_laws_command,
    ),
    (
        "parity",
        "rules [--pairs N] [--seed N] | patch [--cases N] [--seed N] [--show]: our answers beside the real program's (CODEX_BIN)",
        parity::run_parity,
    ),
    (
        "policy-table",
        "DIR: what an exec policy by effect lets through, of recorded runs in DIR and of our own lists",
        policy_table::print_policy_decision_table,
    ),
    (
        "renames",
        "[REV]... [--run]: that commits which only rename (.git-blame-ignore-revs) change no byte of what is persisted; --run runs the golden tests at each",
        renames::check_commits_only_rename,
    ),
    (
        "rows",
        "what the documents behind Checkrein promise, row by row, and the test that sees it or the issue that builds it; --run runs the tests",
        rows::check_document_promises,
    ),
    (
        "simulate",
        "[--seconds N] [--seed N] [--story SEED] [--debug] [--planted [NAME]...]: processes that take turns as a seed says; what must never happen",
        simulate::run_simulations,
    ),
    (
        "targets",
        "type-checks for Windows and wasm32; --install gets what that needs",
        targets::check_all_cross_compile_targets,
    ),
    (
        "tokens",
        "what the supervisor's questions cost in tokens: a run of 100 steps, and `scope` risky beside all",
        tokens::run_question_token_tests,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        return print_xtask_help();
    };
    match COMMANDS.iter().find(|(known, ..)| known == name) {
        None => print_xtask_help(),
        Some((_, _, command)) => command(rest).unwrap_or_else(|error| {
            // Commands report their findings with status 1; status 2 says that one could not do its
            // work.
            eprintln!("xtask {name}: {error}");
            ExitCode::from(2)
        }),
    }
}

fn print_xtask_help() -> ExitCode {
    eprintln!("usage: cargo xtask COMMAND");
    for (name, about, _) in COMMANDS {
        eprintln!("  {name:<10} {about}");
    }
    ExitCode::from(2)
}
