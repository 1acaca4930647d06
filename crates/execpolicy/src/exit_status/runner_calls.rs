//! Parses calls of tools that run what the project defines: `npm run build`, `make -C dir test`.

use super::makefile::{
    failure_hiding_make_option, make_flag_ignoring_failures, make_shell_runs_scripts,
    shell_flags_run_command_string,
};

/// A call like `npm run build`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PackageScriptCall {
    /// The names of the scripts.
    pub(super) names: Vec<String>,
    /// The folder of the package, if one is given.
    pub(super) folder: Option<String>,
    /// The packages of the workspace that are meant, all if empty; `None`: the package in the
    /// folder.
    pub(super) workspaces: Option<Vec<String>>,
    /// Whether a missing script is no failure: `--if-present`.
    pub(super) optional: bool,
    /// Whether `preNAME` and `postNAME` run as well.
    pub(super) hooks: bool,
    /// The option with which a failure is ignored.
    pub(super) passed_over: Option<&'static str>,
}

/// A call like `make -C dir test`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RecipeRunnerInvocation {
    /// Targets; empty for the default one.
    pub(super) targets: Vec<String>,
    /// `-C DIR`.
    pub(super) folder: Option<String>,
    /// `-f FILE`.
    pub(super) file: Option<String>,
    /// The option with which failures are ignored.
    pub(super) passed_over: Option<&'static str>,
    /// Variables that the command line sets.
    pub(super) variables: Vec<(String, String)>,
}

pub(super) fn operand_words_before_double_dash(rest: &[&str]) -> Vec<String> {
    let words = rest.iter().take_while(|word| **word != "--");
    let names = words.filter(|word| !word.starts_with('-'));
    names.map(|word| (*word).to_owned()).collect()
}

pub(super) fn parse_package_script_call(program: &str, rest: &[&str]) -> Option<PackageScriptCall> {
    let mut scripts = PackageScriptCall {
        hooks: program == "npm" || program == "bun",
        ..PackageScriptCall::default()
    };
    let mut words: Vec<&str> = Vec::new();
    let mut all = rest.iter();
    while let Some(word) = all.next() {
        match *word {
            "--" => break,
            "--prefix" | "-C" | "--dir" | "--cwd" => {
                scripts.folder = all.next().map(|word| (*word).to_owned());
            }
            "--if-present" => scripts.optional = true,
            "-w" | "--workspace" | "--filter" | "-F" => {
                let named = scripts.workspaces.get_or_insert_default();
                named.extend(all.next().map(|word| (*word).to_owned()));
            }
            "-ws" | "--workspaces" | "-r" | "--recursive" => {
                scripts.workspaces.get_or_insert_default();
            }
            "--no-bail" => scripts.passed_over = Some("--no-bail"),
            option if option.starts_with("--workspace=") || option.starts_with("--filter=") => {
                let named = scripts.workspaces.get_or_insert_default();
                named.extend(option.split_once('=').map(|(_, name)| name.to_owned()));
            }
            option if option.starts_with("--prefix=") || option.starts_with("--cwd=") => {
                scripts.folder = option.split_once('=').map(|(_, folder)| folder.to_owned());
            }
            option if option.starts_with('-') => {}
            word => words.push(word),
        }
    }
    let name = match (program, words.as_slice()) {
        // This is the runner of bun itself, not a script of the package.
        ("bun", ["test", ..]) => return None,
        ("yarn", ["workspace", package, "run", name, ..] | ["workspace", package, name, ..]) => {
            let named = scripts.workspaces.get_or_insert_default();
            named.push((*package).to_owned());
            *name
        }
        ("yarn", ["workspaces", "run", name, ..] | ["workspaces", "foreach", "run", name, ..]) => {
            scripts.workspaces.get_or_insert_default();
            *name
        }
        (_, ["run" | "run-script" | "rum" | "urn", name, ..]) => *name,
        (_, ["run" | "run-script"]) => return None,
        ("npm" | "pnpm" | "yarn", ["test" | "t" | "tst", ..]) => "test",
        ("npm" | "pnpm" | "yarn", [name @ ("start" | "stop" | "restart"), ..]) => *name,
        // Only pnpm and yarn take other words for scripts, or for programs of packages.
        ("pnpm" | "yarn", [name, ..]) if !PACKAGE_COMMANDS.contains(name) => *name,
        _ => return None,
    };
    scripts.names.push(name.to_owned());
    Some(scripts)
}

/// Commands of pnpm and yarn that are no scripts.
const PACKAGE_COMMANDS: &[&str] = &[
    "add",
    "audit",
    "cache",
    "config",
    "create",
    "dedupe",
    "deploy",
    "dlx",
    "exec",
    "fetch",
    "i",
    "import",
    "info",
    "init",
    "install",
    "link",
    "list",
    "ls",
    "node",
    "outdated",
    "pack",
    "patch",
    "prune",
    "publish",
    "rebuild",
    "remove",
    "set",
    "store",
    "unlink",
    "up",
    "update",
    "upgrade",
    "version",
    "why",
    "workspace",
    "workspaces",
];

pub(super) fn parse_make_command_args(rest: &[&str]) -> RecipeRunnerInvocation {
    let mut call = RecipeRunnerInvocation::default();
    let mut all = rest.iter();
    while let Some(word) = all.next() {
        match *word {
            "-C" | "--directory" => call.folder = all.next().map(|word| (*word).to_owned()),
            "-f" | "--file" | "--makefile" => call.file = all.next().map(|word| (*word).to_owned()),
            // `-j` and `-l` may stand without a number.
            "-j" | "-l" | "-W" | "-I" => {
                let number = all.clone().next();
                if number.is_some_and(|word| word.parse::<u32>().is_ok()) {
                    all.next();
                }
            }
            option if option.starts_with('-') => {
                call.passed_over = failure_hiding_make_option(option).or(call.passed_over);
            }
            assignment if assignment.contains('=') => {
                let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
                // Variables of the command line can also keep make from failing.
                if name == "SHELL" && !make_shell_runs_scripts(value) {
                    call.passed_over = Some("SHELL=");
                }
                if name == ".SHELLFLAGS" && !shell_flags_run_command_string(value) {
                    call.passed_over = Some(".SHELLFLAGS=");
                }
                if name == "MAKEFLAGS" {
                    call.passed_over = make_flag_ignoring_failures(value).or(call.passed_over);
                }
                let name = name.trim_end_matches([':', '+', '?']).to_owned();
                call.variables.push((name, value.to_owned()));
            }
            target => call.targets.push(target.to_owned()),
        }
    }
    call
}

pub(super) fn parse_just_call(rest: &[&str]) -> RecipeRunnerInvocation {
    let mut call = RecipeRunnerInvocation::default();
    let mut all = rest.iter();
    while let Some(word) = all.next() {
        match *word {
            "-d" | "--working-directory" => call.folder = all.next().map(|word| (*word).to_owned()),
            "-f" | "--justfile" => call.file = all.next().map(|word| (*word).to_owned()),
            option if option.starts_with('-') => {}
            assignment if assignment.contains('=') => {}
            // Later words may be arguments of the first recipe. No recipe has such a name, so
            // nothing is read for them.
            recipe => call.targets.push(recipe.to_owned()),
        }
    }
    call
}
