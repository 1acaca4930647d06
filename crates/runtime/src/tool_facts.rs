//! Gathers facts: what the runtime finds out about a tool request before the core judges it. Facts
//! depend only on the request and the sealed policy, so replay needs no shell parser. They are
//! gathered once per request, however often they are asked for.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_core::input::{
    ActReach, PatchCheckedAgainstTree, RuleDecision, ToolKind, ToolRequestFacts,
};
use checkrein_core::policy::Policy;
use checkrein_core::tool_action::{ScriptOrArgvOfToolCall, ToolAction};
use checkrein_execpolicy::{
    CommandStartFolders, EffectPolicy, FileCommandWouldChange, FilesCommandWouldChange,
    ParsedShellScriptCache, RuleSet, UnmatchedDecision, evaluate_argv_with_script_cache,
    evaluate_file_changes, evaluate_real_paths, evaluate_script_with_parse_cache,
    is_read_only_command,
};

use crate::read_only::{MAX_COMMANDS, is_call_read_only_with_scripts};
use crate::{patch_gate, start_folders, symlinks};
use checkrein_redaction::Redactor;
use checkrein_verifiers::tree::would_file_count_in_tree;

/// The action of one tool call, and the facts gathered about it so far.
#[derive(Default)]
pub struct ToolFactsBuilder<'a> {
    action: Option<&'a ToolAction>,
    scripts: ParsedShellScriptCache,
    gathered: RefCell<Option<ToolRequestFactsUnderPolicy>>,
}

struct ToolRequestFactsUnderPolicy {
    /// The policy that they were gathered under.
    under: Option<Digest>,
    facts: ToolRequestFacts,
}

/// Where a call is made, and the patch that was checked against the tree for it.
#[derive(Clone, Copy)]
pub(crate) struct ToolCallFoldersAndPatch<'a> {
    /// The tree that is worked in.
    pub(crate) root: &'a Path,
    /// Where relative paths begin.
    pub(crate) here: &'a Path,
    /// The patch that it applies.
    pub(crate) patch: Option<&'a PatchCheckedAgainstTree>,
}

/// What a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolCallChangeExtent {
    /// It is known to only read.
    Nothing,
    /// Files that count, and nothing else that a check could find.
    Counted,
    /// More than that; the reach says how far.
    Act(ActReach),
}

impl ToolCallChangeExtent {
    /// How far it may reach, if it is an act.
    pub(crate) fn act_reach(self) -> Option<ActReach> {
        match self {
            ToolCallChangeExtent::Act(reach) => Some(reach),
            ToolCallChangeExtent::Nothing | ToolCallChangeExtent::Counted => None,
        }
    }
}

impl<'a> ToolFactsBuilder<'a> {
    /// A builder for a call that does this; nothing has been found out yet.
    pub fn new(action: &'a ToolAction) -> Self {
        Self {
            action: Some(action),
            ..Self::default()
        }
    }

    /// What the call does; `None` if the event is no call.
    pub(crate) fn action_of_tool_call(&self) -> Option<&'a ToolAction> {
        self.action
    }

    /// The scripts of this call that were parsed.
    pub(crate) fn parsed_scripts(&self) -> &ParsedShellScriptCache {
        &self.scripts
    }

    /// The facts of a call of `tool` under a policy, which its digest identifies.
    pub(crate) fn tool_request_facts_under_policy(
        &self,
        (under, policy): (Option<Digest>, &Policy),
        tool: &str,
        place: ToolCallFoldersAndPatch<'_>,
        redactor: &Redactor,
    ) -> ToolRequestFacts {
        if let Some(gathered) = &*self.gathered.borrow()
            && gathered.under == under
        {
            return gathered.facts.clone();
        }
        let facts = self.gather_tool_request_facts(policy, tool, place, redactor);
        *self.gathered.borrow_mut() = Some(ToolRequestFactsUnderPolicy {
            under,
            facts: facts.clone(),
        });
        facts
    }

    fn gather_tool_request_facts(
        &self,
        policy: &Policy,
        tool: &str,
        place: ToolCallFoldersAndPatch<'_>,
        redactor: &Redactor,
    ) -> ToolRequestFacts {
        let rules = match RuleSet::deserialize_rule_set(&policy.rules) {
            Ok(rules) => rules,
            // Sealed rules are compiled by us. Unreadable ones must not open the gate.
            Err(error) => {
                return ToolRequestFacts {
                    rule: Some(RuleDecision::Forbidden),
                    reason: Some(format!("the sealed exec policy cannot be read: {error}")),
                    patch: place.patch.cloned().map(cap_recorded_patch_paths),
                    ..ToolRequestFacts::default()
                };
            }
        };
        // The sealed rules hold the tree's location only where a rule depends on it. Otherwise it
        // is filled in here.
        let rules = match rules.rules_depend_on_project_location() {
            true => rules,
            false => rules.with_project_roots(vec![place.root.display().to_string()]),
        };
        // Each step below can only make the answer stricter.
        let (mut facts, touched) = self.tool_call_facts_and_files(&rules, place);
        // A long word may have been cut in the middle of a secret, so the commands are read once
        // more from the redacted script. The decision is that of the first reading.
        if let Some(ScriptOrArgvOfToolCall::Script(script)) = self.tool_command()
            && let Cow::Owned(hidden) = redactor.redact_text(script)
        {
            facts.commands = evaluate_script_with_parse_cache(
                &self.scripts,
                &rules,
                &hidden,
                &self.tool_call_start_folders(place),
            )
            .0
            .commands;
        }
        apply_rules_to_real_paths(&rules, &mut facts, &touched.files, place);
        self.evaluate_possible_tool_writes(&rules, &mut facts, place);
        evaluate_mcp_tool(&rules, &mut facts, tool);
        if let Some(patch) = place.patch {
            add_rule_facts_of_patch(&rules, &mut facts, patch.clone(), place.root);
        }
        facts
    }

    fn tool_command(&self) -> Option<&'a ScriptOrArgvOfToolCall> {
        self.action?.command.as_ref()
    }

    /// Returns the facts of the command, or of the files that the call names, together with the
    /// files that it touches.
    fn tool_call_facts_and_files(
        &self,
        rules: &RuleSet,
        place: ToolCallFoldersAndPatch<'_>,
    ) -> (ToolRequestFacts, FilesCommandWouldChange) {
        match self.tool_command() {
            Some(ScriptOrArgvOfToolCall::Argv(argv)) => evaluate_argv_with_script_cache(
                &self.scripts,
                rules,
                argv,
                &self.tool_call_start_folders(place),
            ),
            Some(ScriptOrArgvOfToolCall::Script(script)) => evaluate_script_with_parse_cache(
                &self.scripts,
                rules,
                script,
                &self.tool_call_start_folders(place),
            ),
            None => {
                let files = self.files_call_would_change();
                let facts = match files.is_empty() {
                    true => ToolRequestFacts::default(),
                    false => evaluate_file_changes(rules, &files),
                };
                (facts, FilesCommandWouldChange { files, more: false })
            }
        }
    }

    /// Where its command starts.
    fn tool_call_start_folders(&self, place: ToolCallFoldersAndPatch<'_>) -> CommandStartFolders {
        let folders = |action| start_folders::call_start_folders(action, place.here, place.root);
        self.action
            .map_or_else(CommandStartFolders::start_folders_at_project_root, folders)
    }

    /// The files that the call names as written or removed.
    fn files_call_would_change(&self) -> Vec<FileCommandWouldChange> {
        let Some(action) = self.action else {
            return Vec::new();
        };
        let touched = |removed| {
            move |path: &String| FileCommandWouldChange {
                path: path.clone(),
                removed,
            }
        };
        let written = action.writes.iter().map(touched(false));
        written
            .chain(action.removes.iter().map(touched(true)))
            .collect()
    }

    /// If a tool is not known to only read, every argument that names a protected file counts as a
    /// file that it writes.
    fn evaluate_possible_tool_writes(
        &self,
        rules: &RuleSet,
        facts: &mut ToolRequestFacts,
        place: ToolCallFoldersAndPatch<'_>,
    ) {
        let Some(action) = self.action else { return };
        let possible: Vec<FileCommandWouldChange> =
            action.may_write.iter().map(predicted_file_write).collect();
        if !possible.is_empty() {
            merge_stricter_facts(facts, evaluate_real_paths(rules, &possible));
            apply_rules_to_real_paths(rules, facts, &possible, place);
        }
        // A list of paths that was cut may leave out a protected one.
        if action.is_cut && rules.protects_paths() {
            let reason = "policy asks: this call names more than can be looked through";
            merge_stricter_facts(
                facts,
                ToolRequestFacts {
                    rule: Some(RuleDecision::Prompt),
                    reason: Some(reason.to_owned()),
                    ..ToolRequestFacts::default()
                },
            );
        }
    }

    /// What the call may change.
    pub(crate) fn tool_call_change_extent(
        &self,
        place: ToolCallFoldersAndPatch<'_>,
        outside: bool,
        may_act: bool,
    ) -> ToolCallChangeExtent {
        let Some(action) = self.action else {
            return match may_act {
                true => ToolCallChangeExtent::Act(ActReach::Unknown),
                false => ToolCallChangeExtent::Nothing,
            };
        };
        // Before the reading of the command: what installs or starts services is an act, whatever
        // files it names.
        if outside {
            return ToolCallChangeExtent::Act(ActReach::Outside);
        }
        if is_call_read_only_with_scripts(&self.scripts, action, place.root) {
            return ToolCallChangeExtent::Nothing;
        }
        if self.tool_command().is_some() {
            return self.extent_of_changes_by_command(place);
        }
        // Only a writing tool with a whole list of paths is judged by its paths.
        if action.kind != ToolKind::Write || action.is_cut {
            return ToolCallChangeExtent::Act(ActReach::Unknown);
        }
        let named = [&action.writes, &action.removes, &action.may_write];
        let named = named.into_iter().flatten().map(String::as_str);
        // Some tools resolve such paths to another place.
        let is_odd = |path: &str| {
            path.starts_with(['~', '@', '\'', '"']) || !cfg!(windows) && path.contains('\\')
        };
        if named.clone().any(is_odd) {
            return ToolCallChangeExtent::Act(ActReach::Outside);
        }
        let patched = place.patch.into_iter().flat_map(|patch| &patch.paths);
        let mut paths: Vec<PathBuf> = named.map(|path| place.here.join(path)).collect();
        paths.extend(patched.map(|path| place.root.join(path)));
        match paths
            .iter()
            .all(|path| is_path_inside_folder(place.root, path))
        {
            true if !paths.is_empty() && are_all_paths_part_of_tree(&paths, place.root) => {
                ToolCallChangeExtent::Counted
            }
            true => ToolCallChangeExtent::Act(ActReach::Elsewhere),
            false => ToolCallChangeExtent::Act(ActReach::Outside),
        }
    }

    fn extent_of_changes_by_command(
        &self,
        place: ToolCallFoldersAndPatch<'_>,
    ) -> ToolCallChangeExtent {
        // Only what our table of programs takes for ordinary work on files, all of it.
        let bounds = EffectPolicy {
            unmatched: UnmatchedDecision::ByEffect,
            opaque_asks: true,
            reach_asks: true,
            roots: vec![place.root.display().to_string()],
            ..EffectPolicy::builtin_default_policy()
        };
        let (facts, touched) =
            self.tool_call_facts_and_files(&RuleSet::default().with_effect_policy(bounds), place);
        let is_known = facts.rule == Some(RuleDecision::Allow) && facts.unresolved.is_empty();
        if !is_known {
            return ToolCallChangeExtent::Act(ActReach::Unknown);
        }
        let files = touched.files.iter();
        // Paths may be relative to the command's start or to the root, so both have to count.
        let paths: Vec<PathBuf> = files
            .flat_map(|file| [place.here, place.root].map(|from| from.join(&file.path)))
            .collect();
        let are_new = paths.iter().all(|path| path.symlink_metadata().is_err());
        // A longer script may hold commands that the facts do not name.
        let plain = facts.commands.len() < MAX_COMMANDS
            && facts.commands.iter().all(|command| {
                only_writes_named_files(&command.argv, are_new)
                    || is_read_only_command(&command.argv)
            });
        let counts = plain
            && !touched.more
            && !paths.is_empty()
            && are_all_paths_part_of_tree(&paths, place.root);
        match counts {
            true => ToolCallChangeExtent::Counted,
            false => ToolCallChangeExtent::Act(ActReach::Elsewhere),
        }
    }

    /// Whether a call could do harm: any command that our own table of programs does not take for
    /// ordinary work on the project's files, and tools that it knows nothing of.
    pub(crate) fn is_risky_tool_call(
        &self,
        place: ToolCallFoldersAndPatch<'_>,
        may_act: bool,
    ) -> bool {
        let bounds = EffectPolicy {
            unmatched: UnmatchedDecision::ByEffect,
            reach_asks: true,
            roots: vec![place.root.display().to_string()],
            ..EffectPolicy::default()
        };
        let rules = RuleSet::default().with_effect_policy(bounds);
        let mut writes = self.files_call_would_change();
        if let Some(patch) = place.patch {
            let below =
                |path: &String| predicted_file_write(place.root.join(path).display().to_string());
            writes.extend(patch.paths.iter().map(below));
        }
        // Without a command and without paths, all that is known is whether the tool may act.
        if self.tool_command().is_none() && writes.is_empty() {
            return may_act;
        }
        let (facts, touched) = match self.tool_command() {
            Some(_) => self.tool_call_facts_and_files(&rules, place),
            None => Default::default(),
        };
        // Also by the real path: links, and the folder that the agent works in, change what a text
        // means.
        let mut touched = touched.files;
        touched.extend(writes.iter().cloned());
        let places = symlinks::real_paths_where_symlinks_differ(&touched, place.here, place.root);
        writes.extend(places.iter().map(|place| predicted_file_write(&place.path)));
        let asks = |facts: &ToolRequestFacts| facts.rule > Some(RuleDecision::Allow);
        asks(&facts) || asks(&evaluate_file_changes(&rules, &writes))
    }
}

/// Whether this command changes nothing but the content of files that it names. Times and modes do
/// not count as content, so a command that changes only those is something else; so is one that
/// makes folders, links or copies of folders.
fn only_writes_named_files(argv: &[String], are_new: bool) -> bool {
    let Some((program, words)) = argv.split_first() else {
        return false;
    };
    match program.as_str() {
        "mv" | "rm" | "sed" | "tee" | "truncate" => true,
        "cp" => !words.iter().any(|word| word.starts_with('-')),
        "touch" => are_new,
        _ => false,
    }
}

fn is_path_inside_folder(root: &Path, path: &Path) -> bool {
    // `..` is refused, not resolved: behind a link it can lead elsewhere than its text says.
    path.starts_with(root) && !path.components().any(|part| part == Component::ParentDir)
}

/// Whether a change to each of these files, existing or not, is a change of the tree.
fn are_all_paths_part_of_tree(paths: &[PathBuf], root: &Path) -> bool {
    paths.iter().all(|path| {
        is_path_inside_folder(root, path)
            && path
                .strip_prefix(root)
                .is_ok_and(|name| would_file_count_in_tree(root, name))
    })
}

fn predicted_file_write(path: impl AsRef<str>) -> FileCommandWouldChange {
    FileCommandWouldChange {
        path: path.as_ref().to_owned(),
        removed: false,
    }
}

/// Asks the rules about the touched files by their real paths as well.
fn apply_rules_to_real_paths(
    rules: &RuleSet,
    facts: &mut ToolRequestFacts,
    touched: &[FileCommandWouldChange],
    place: ToolCallFoldersAndPatch<'_>,
) {
    let places = symlinks::real_paths_where_symlinks_differ(touched, place.here, place.root);
    if !places.is_empty() {
        merge_stricter_facts(facts, evaluate_real_paths(rules, &places));
    }
}

fn merge_stricter_facts(facts: &mut ToolRequestFacts, other: ToolRequestFacts) {
    // An `allow` about a path lifts nothing.
    if other.rule > facts.rule && other.rule > Some(RuleDecision::Allow) {
        (facts.rule, facts.reason) = (other.rule, other.reason);
    }
}

/// Asks the rules about a tool of an MCP server, under any agent. They know it by the words `mcp
/// SERVER TOOL`. It is no command, so only rules on these words are asked.
fn evaluate_mcp_tool(rules: &RuleSet, facts: &mut ToolRequestFacts, tool: &str) {
    let named = tool.strip_prefix("mcp__");
    let Some((server, name)) = named.and_then(|named| named.split_once("__")) else {
        return;
    };
    let answer = rules.codex_execpolicy_check_result(&["mcp", server, name], None);
    let Some(rule) = answer.strictest_rule_decision() else {
        return;
    };
    // The strictest rule decides, so its reason is the one to give.
    let hit = answer.matches.iter().find(|hit| hit.decision == rule);
    let reason = hit.map(|hit| {
        let does = match rule {
            RuleDecision::Forbidden => "forbids",
            RuleDecision::Prompt | RuleDecision::Allow => "asks before",
        };
        let named = || format!("policy {does} `{}`", hit.matched_prefix.join(" "));
        hit.justification.clone().unwrap_or_else(named)
    });
    merge_stricter_facts(
        facts,
        ToolRequestFacts {
            rule: Some(rule),
            reason,
            ..ToolRequestFacts::default()
        },
    );
}

/// Asks the rules about the files that a patch writes, by where they really lie.
fn add_rule_facts_of_patch(
    rules: &RuleSet,
    facts: &mut ToolRequestFacts,
    patch: PatchCheckedAgainstTree,
    root: &Path,
) {
    let below = |path: &String| predicted_file_write(root.join(path).display().to_string());
    let changes: Vec<FileCommandWouldChange> = patch.paths.iter().map(below).collect();
    if !changes.is_empty() {
        let writes = evaluate_file_changes(rules, &changes);
        if writes.rule > facts.rule {
            (facts.rule, facts.reason) = (writes.rule, writes.reason);
        }
        let place = ToolCallFoldersAndPatch {
            root,
            here: root,
            patch: None,
        };
        apply_rules_to_real_paths(rules, facts, &changes, place);
    }
    facts.patch = Some(cap_recorded_patch_paths(patch));
}

/// All of its paths are judged; only the first are kept.
fn cap_recorded_patch_paths(mut patch: PatchCheckedAgainstTree) -> PatchCheckedAgainstTree {
    patch.paths.truncate(patch_gate::MAX_PATHS);
    patch
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::{self, NamedConfigText, TaskDriverKind};

    /// Asks all that is ever asked of one request; how often a script was parsed.
    fn parses(action: &ToolAction) -> usize {
        let source = NamedConfigText {
            name: "checkrein.toml".into(),
            text: "[policy]\nunmatched = \"by-effect\"\n".to_owned(),
        };
        let compiled =
            config::compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook)
                .unwrap();
        let policy = &compiled.policy;
        let redactor = Redactor::new_from_secret_variables(&BTreeMap::new());
        let facts = ToolFactsBuilder::new(action);
        let place = ToolCallFoldersAndPatch {
            root: Path::new("/project"),
            here: Path::new("/project"),
            patch: None,
        };
        if let Some(script) = action.shell_script_of_call() {
            checkrein_execpolicy::patches_in_script(facts.parsed_scripts(), script);
        }
        let under = |text: &str| (Some(Digest::hash_bytes(text.as_bytes())), policy);
        let first =
            facts.tool_request_facts_under_policy(under("sealed"), "shell", place, &redactor);
        facts.is_risky_tool_call(place, false);
        assert_eq!(
            facts.tool_request_facts_under_policy(under("sealed"), "shell", place, &redactor),
            first
        );
        facts.tool_request_facts_under_policy(under("sealed anew"), "shell", place, &redactor);
        facts.parsed_scripts().script_parse_count()
    }

    #[test]
    fn one_request_is_parsed_once() {
        let script =
            ToolAction::shell_action_from_script("cd src && git apply < a.patch; rm -rf $X");
        assert_eq!(parses(&script), 1);
        let argv = |words: &[&str]| ToolAction {
            command: Some(ScriptOrArgvOfToolCall::Argv(
                words.iter().map(|word| (*word).to_owned()).collect(),
            )),
            ..ToolAction::shell_action_from_script("")
        };
        assert_eq!(parses(&argv(&["bash", "-c", "ls; rm x"])), 1);
        assert_eq!(parses(&argv(&["ls", "-l"])), 0);
        let nested = ToolAction::shell_action_from_script("bash -c 'ls; rm x'");
        assert_eq!(parses(&nested), 2, "a script in a script");
    }
}
