//! `checkrein policy`: what rules say about a command, whether they do what their authors
//! expect, and rules from another agent's permissions.

mod check;
mod codex;
mod import;
mod test;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_core::input::RuleDecision;
use checkrein_execpolicy::{ProgramPathResolutionBase, RulesCompileError};

use crate::args::Policy;
use crate::ui::errors::CommandError;
use crate::ui::style::Paint;

/// One file more than this is none.
const MAX_FILE: u64 = 8 << 20;

pub(crate) fn run(args: &Policy) -> Result<ExitCode, CommandError> {
    match args {
        Policy::Check(args) if args.codex_exit => codex::run(args),
        Policy::Check(args) => check::run(args),
        Policy::Test(args) => test::run(args),
        Policy::Import(args) => import::run(args),
    }
}

/// Where relative programs begin for whoever types a command here.
fn here() -> std::io::Result<ProgramPathResolutionBase> {
    let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    Ok(ProgramPathResolutionBase {
        folder: std::env::current_dir()?.to_string_lossy().into_owned(),
        home: home.to_string_lossy().into_owned(),
    })
}

/// A file that was named on the command line, a pipe too.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

/// Rules files that were named, in that order: name and text.
fn read_all(paths: &[PathBuf]) -> Result<Vec<(String, String)>, CommandError> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = read(path).map_err(|error| {
            let what = format!("{name}: cannot be read: {error}");
            CommandError::usage(
                what,
                "--rules names files in the language of docs/policy.md",
            )
        })?;
        Ok((name, text))
    };
    paths.iter().map(read).collect()
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect()
}

impl From<RulesCompileError> for CommandError {
    fn from(error: RulesCompileError) -> Self {
        Self::usage(
            error.to_string(),
            "nothing was judged: mend the file, then `checkrein policy test` tries its examples",
        )
    }
}

fn word(decision: RuleDecision) -> &'static str {
    match decision {
        RuleDecision::Allow => "allow",
        RuleDecision::Prompt => "prompt",
        RuleDecision::Forbidden => "forbidden",
    }
}

fn paint(decision: RuleDecision) -> Paint {
    match decision {
        RuleDecision::Allow => Paint::Good,
        RuleDecision::Prompt => Paint::Warn,
        RuleDecision::Forbidden => Paint::Bad,
    }
}
