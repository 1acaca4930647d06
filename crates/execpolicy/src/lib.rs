//! Exec policy: may this command run?
//!
//! Two halves that meet in [`RuleSet`]. [`compile`] evaluates `.rules` files (the
//! Starlark language of Codex) once, when the policy is sealed; hook processes load the
//! result with [`RuleSet::from_text`] and never touch Starlark. [`judge_script`] and
//! [`judge_argv`] then find every command that a request can run and ask the rules.
//! Nothing here reads a file, runs a process or looks at the environment.

mod canonical;
mod check;
mod compile;
mod effects;
mod exit_status;
mod network;
mod own;
mod policy;
mod readers;
mod rules;
mod shell;

pub use check::{Answer, RuleMatch, Surroundings};
pub use compile::{Entry, Example, Listing, RulesError, Says, compile, compile_from, list};
pub use exit_status::{Project, ProjectEntry, read_exit_statuses};
pub use network::{NetworkRule, Protocol};
pub use policy::{Bounds, Unmatched};
pub use readers::is_reader;
pub use rules::{Match, RuleSet, RuleSetError};
pub use shell::{
    ParsedScripts, PatchCommand, PatchText, PatchTool, StartFolders, Touched, Touches, judge_argv,
    judge_changes, judge_parsed_argv, judge_parsed_script, judge_places, judge_script,
    judge_writes, patches_in, patches_of_words,
};
