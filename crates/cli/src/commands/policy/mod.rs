//! `checkrein policy`: shows what rules say about a command, tests whether they do what their
//! authors expect, and translates another agent's permissions into rules.

mod check;
mod codex;
mod import;
mod test;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_core::input::RuleDecision;
use checkrein_execpolicy::{ProgramPathBaseFolders, RulesCompileError};

use crate::args::PolicySubcommand;
use crate::ui::errors::CommandError;
use crate::ui::style::TextStyle;

/// Bytes of a file that are read.
const MAX_FILE: u64 = 8 << 20;

pub(crate) fn run_policy_command(args: &PolicySubcommand) -> Result<ExitCode, CommandError> {
    match args {
        PolicySubcommand::Check(args) if args.codex_exit => {
            codex::run_codex_style_policy_check(args)
        }
        PolicySubcommand::Check(args) => check::run_policy_check(args),
        PolicySubcommand::Test(args) => test::run_policy_test(args),
        PolicySubcommand::Import(args) => import::run_policy_import(args),
    }
}

/// Returns the folder and home that relative programs are resolved by.
fn program_path_base_of_current_dir() -> std::io::Result<ProgramPathBaseFolders> {
    let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    Ok(ProgramPathBaseFolders {
        folder: std::env::current_dir()?.to_string_lossy().into_owned(),
        home: home.to_string_lossy().into_owned(),
    })
}

/// Reads a file that was named on the command line; it may be a pipe.
fn read_file_up_to_limit(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

/// Reads the named rules files in their order, as name and text.
fn read_rules_files(paths: &[PathBuf]) -> Result<Vec<(String, String)>, CommandError> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = read_file_up_to_limit(path).map_err(|error| {
            let what = format!("{name}: cannot be read: {error}");
            CommandError::usage_error(
                what,
                "--rules names files in the language of docs/policy.md",
            )
        })?;
        Ok((name, text))
    };
    paths.iter().map(read).collect()
}

fn as_str_pairs(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect()
}

impl From<RulesCompileError> for CommandError {
    fn from(error: RulesCompileError) -> Self {
        Self::usage_error(
            error.to_string(),
            "nothing was judged: mend the file, then `checkrein policy test` tries its examples",
        )
    }
}

fn rule_decision_name(decision: RuleDecision) -> &'static str {
    match decision {
        RuleDecision::Allow => "allow",
        RuleDecision::Prompt => "prompt",
        RuleDecision::Forbidden => "forbidden",
    }
}

fn rule_decision_paint(decision: RuleDecision) -> TextStyle {
    match decision {
        RuleDecision::Allow => TextStyle::Good,
        RuleDecision::Prompt => TextStyle::Warn,
        RuleDecision::Forbidden => TextStyle::Bad,
    }
}
