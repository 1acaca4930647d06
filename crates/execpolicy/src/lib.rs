//! Exec policy: may this command run?
//!
//! Two halves that meet in [`RuleSet`]. [`compile_execpolicy_rules_files`] evaluates `.rules` files (the
//! Starlark language of Codex) once, when the policy is sealed; hook processes load the
//! result with [`RuleSet::deserialize_rule_set`] and never touch Starlark. [`evaluate_script`] and
//! [`evaluate_argv`] then find every command that a request can run and ask the rules.
//! Nothing here reads a file, runs a process or looks at the environment.

mod canonical_form;
mod codex_check;
mod compile;
mod effect_policy;
mod effects;
mod exit_status;
mod network_rules;
mod read_only_commands;
mod rule_set;
mod self_protection;
mod shell;

pub use codex_check::{CodexFormatRuleMatch, ExecPolicyCheckResult, ProgramPathBaseFolders};
pub use compile::{
    ListedRule, RuleExample, RulesCompileError, RulesFileListing, RulesListingEntry,
    compile_and_list_rules, compile_execpolicy_rules_files, compile_rules_with_base_folder,
};
pub use effect_policy::{EffectPolicy, UnmatchedDecision};
pub use exit_status::{FileFolderOrNothing, ScriptProjectView, analyze_exit_status_masking};
pub use network_rules::{NetworkProtocol, NetworkRule};
pub use read_only_commands::is_read_only_command;
pub use rule_set::{MatchedRule, RuleSet, StoredRuleSetReadError};
pub use shell::{
    CommandStartFolders, FileCommandWouldChange, FilesCommandWouldChange, ParsedShellScriptCache,
    PatchApplyingCommand, PatchApplyingProgram, PatchTextSource, evaluate_argv,
    evaluate_argv_with_script_cache, evaluate_file_changes, evaluate_file_writes,
    evaluate_real_paths, evaluate_script, evaluate_script_with_parse_cache, patch_commands_in_argv,
    patches_in_script,
};
