//! The gate for patches: before an agent's tool or a shell command applies one, finds out whether
//! it would apply and where it would write. Reads files, writes none. What it cannot tell for sure
//! is no reason to refuse: the tool that applies the patch refuses by itself.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use checkrein_core::input::{Input, PatchCheckedAgainstTree};
use checkrein_core::tool_action::{ScriptOrArgvOfToolCall, ToolAction};
use checkrein_execpolicy::{
    ParsedShellScriptCache, PatchApplyingCommand, PatchApplyingProgram, PatchTextSource,
};
use checkrein_patch::{
    DiskTree, HunkMatchDialect, ParsedPatch, PatchRefusal, PatchRefusalCause, PathBelowRoot,
    parse_diff, parse_patch, plan_patch_against_tree, render_patch_refusals,
};

use crate::event_delivery::{Deadline, EventDelivery};
use crate::start_folders;

/// The largest patch, and the largest file to be patched, that is examined.
const MAX_PATCH_BYTES: u64 = 8 << 20;
/// How many paths are kept in the log.
pub(crate) const MAX_PATHS: usize = 64;
/// Files that one request may patch.
const MAX_FILES: usize = 10_000;
/// The longest time until the gate answers; half of the time that is left, if that is less.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The stack of the examining thread: scripts nest.
const STACK_BYTES: usize = 8 << 20;

/// The patch to examine, and the folders it is applied in.
struct PatchToCheck {
    what: ToolCallPatchSource,
    scripts: ParsedShellScriptCache,
    here: PathBuf,
    root: PathBuf,
}

enum ToolCallPatchSource {
    /// The patch of Codex's own tool.
    Patch(String),
    Script(String),
    Words(Vec<String>),
}

/// Finds out what it can about the patch of a tool request. `root` is the tree that is worked in.
///
/// A thread of its own examines the patch and is abandoned if it takes too long: a hook that
/// exceeds its time lets the call pass that it was to stop.
pub(crate) fn dry_run_requested_patch(
    delivery: &EventDelivery<'_>,
    root: &Path,
    patience: Deadline<'_>,
) -> Option<PatchCheckedAgainstTree> {
    let Input::ToolRequested(_) = delivery.input else {
        return None;
    };
    let action = delivery.facts.action_of_tool_call()?;
    let asked = PatchToCheck {
        what: patch_requested_by_tool_call(action)?,
        scripts: delivery.facts.parsed_scripts().clone(),
        here: start_folders::patch_working_folder(action, delivery.working_folder.unwrap_or(root))?,
        root: root.to_owned(),
    };
    let left = patience
        .due_at
        .map(|deadline| deadline.saturating_duration_since(Instant::now()) / 2);
    check_patch_within_time(asked, left.unwrap_or(TIME_LIMIT).min(TIME_LIMIT))
}

fn patch_requested_by_tool_call(action: &ToolAction) -> Option<ToolCallPatchSource> {
    match (&action.patch, &action.command) {
        (Some(text), _) => Some(ToolCallPatchSource::Patch(text.clone())),
        (None, Some(ScriptOrArgvOfToolCall::Script(script))) if may_contain_patch(script) => {
            Some(ToolCallPatchSource::Script(script.clone()))
        }
        (None, Some(ScriptOrArgvOfToolCall::Argv(argv)))
            if argv.iter().any(|word| may_contain_patch(word)) =>
        {
            Some(ToolCallPatchSource::Words(argv.clone()))
        }
        (None, Some(_) | None) => None,
    }
}

fn check_patch_within_time(
    asked: PatchToCheck,
    limit: Duration,
) -> Option<PatchCheckedAgainstTree> {
    let (send, receive) = mpsc::channel();
    let looks = std::thread::Builder::new()
        .name("patch".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // If it took too long, nobody listens any more.
            let _ = send.send(check_patches_against_tree(&asked));
        });
    if let Err(error) = looks {
        return Some(unchecked_patch_refusal(&format!(
            "it could not be looked into: {error}"
        )));
    }
    match receive.recv_timeout(limit) {
        Ok(fact) => fact,
        Err(_) => Some(unchecked_patch_refusal(
            "it could not be looked through in the time that there is",
        )),
    }
}

/// Refuses a patch that could not be examined.
fn unchecked_patch_refusal(why: &str) -> PatchCheckedAgainstTree {
    PatchCheckedAgainstTree {
        paths: Vec::new(),
        refused: Some(format!(
            "this patch was not applied, no file is changed: {why}; send it in smaller pieces"
        )),
    }
}

fn check_patches_against_tree(asked: &PatchToCheck) -> Option<PatchCheckedAgainstTree> {
    let commands = match &asked.what {
        ToolCallPatchSource::Patch(text) => vec![PatchApplyingCommand {
            tool: PatchApplyingProgram::ApplyPatch,
            text: PatchTextSource::Inline(text.clone()),
            strip: None,
            started: None,
            folder: None,
            first: true,
            paths_only: false,
        }],
        ToolCallPatchSource::Script(script) => {
            checkrein_execpolicy::patches_in_script(&asked.scripts, script)
        }
        ToolCallPatchSource::Words(words) => checkrein_execpolicy::patch_commands_in_argv(words),
    };
    let mut all: Option<PatchCheckedAgainstTree> = None;
    for command in &commands {
        let Some(fact) = check_if_patch_command_applies(command, &asked.here, &asked.root) else {
            continue;
        };
        let all = all.get_or_insert_default();
        all.paths.extend(fact.paths);
        // The first refusal stands: later commands depend on what the first one does.
        all.refused = all.refused.take().or(fact.refused);
        if all.paths.len() > MAX_FILES {
            return Some(unchecked_patch_refusal(&format!(
                "it is about more than {MAX_FILES} files"
            )));
        }
    }
    all
}

/// A cheap test, since it is made for every command.
fn may_contain_patch(text: &str) -> bool {
    ["patch", "apply"].iter().any(|word| text.contains(word))
}

fn check_if_patch_command_applies(
    command: &PatchApplyingCommand,
    here: &Path,
    root: &Path,
) -> Option<PatchCheckedAgainstTree> {
    let place = |named: &Option<String>| match named {
        // What the shell would make of these is not known here.
        Some(folder) if folder.contains(['~', '$']) => None,
        Some(folder) => here.join(folder).canonicalize().ok(),
        None => here.canonicalize().ok(),
    };
    let folder = place(&command.folder)?;
    let text = match &command.text {
        PatchTextSource::Inline(text) => text.clone(),
        PatchTextSource::File(file) => {
            // The file is named from where the command started, or else from where the patch is
            // applied.
            let started = place(&command.started);
            let named = started.and_then(|started| read_regular_file(&started.join(file)));
            named.or_else(|| read_regular_file(&folder.join(file)))?
        }
    };
    let root = root.canonicalize().ok()?;
    // Nothing is told of files outside of the tree.
    let base = tree_path_from_relative(folder.strip_prefix(&root).ok()?)?;
    // Below the top of a repo, `git apply` takes paths relative to another folder.
    let sure = !command.paths_only
        && (command.tool != PatchApplyingProgram::GitApply || folder.join(".git").exists());
    let strip = match command.tool {
        PatchApplyingProgram::GitApply => command.strip.or(Some(1)),
        PatchApplyingProgram::Patch => command.strip,
        PatchApplyingProgram::ApplyPatch | PatchApplyingProgram::Checkrein => None,
    };
    let text = match command.tool {
        PatchApplyingProgram::Patch => strip_carriage_returns(text),
        PatchApplyingProgram::ApplyPatch
        | PatchApplyingProgram::GitApply
        | PatchApplyingProgram::Checkrein => text,
    };
    let parsed = match command.tool {
        PatchApplyingProgram::GitApply | PatchApplyingProgram::Patch => parse_diff(&text, strip),
        PatchApplyingProgram::ApplyPatch | PatchApplyingProgram::Checkrein => {
            parse_patch(&text, strip)
        }
    };
    let patch = match parsed {
        Ok(patch) => patch,
        Err(refusal) => {
            let ours = matches!(
                command.tool,
                PatchApplyingProgram::ApplyPatch | PatchApplyingProgram::Checkrein
            );
            let refused =
                ours && !command.paths_only && refusal.cause != PatchRefusalCause::Unsupported;
            // Other tools may read more than this parser, so the headers count.
            return Some(PatchCheckedAgainstTree {
                paths: paths_named_by_diff_headers(&text, strip)
                    .map(|path| join_patch_base(&base, path))
                    .take(MAX_FILES)
                    .collect(),
                refused: refused.then(|| patch_refusal_message(&[refusal])),
            });
        }
    };
    if patch.paths_changed_by_patch().count() > MAX_FILES {
        return Some(unchecked_patch_refusal(&format!(
            "it is about more than {MAX_FILES} files"
        )));
    }
    let disk = DiskTree::open_file_tree(&root, MAX_PATCH_BYTES).ok()?;
    let fit = match command.tool {
        PatchApplyingProgram::Patch => HunkMatchDialect::Gnu,
        PatchApplyingProgram::ApplyPatch
        | PatchApplyingProgram::GitApply
        | PatchApplyingProgram::Checkrein => HunkMatchDialect::Git,
    };
    let (below, refusals) = match plan_patch_against_tree(&patch, &disk, &base, fit) {
        Ok(plan) => {
            let paths = plan
                .steps
                .iter()
                .map(|step| step.path.to_string())
                .collect();
            // Our own tool moves a file onto itself without harm; others lose it.
            let hazards = match command.tool {
                PatchApplyingProgram::Checkrein => Vec::new(),
                PatchApplyingProgram::ApplyPatch
                | PatchApplyingProgram::GitApply
                | PatchApplyingProgram::Patch => plan.hazards,
            };
            (paths, hazards)
        }
        Err(refusals) => (patch_paths(&patch, &base), refusals),
    };
    // Only a certain refusal counts. What is wrong about the tree is certain for the first command
    // alone: a later one finds what the earlier ones have made.
    let counts = |refusal: &PatchRefusal| match refusal.cause {
        // Too large, or of another kind: the tool itself decides.
        PatchRefusalCause::Unreadable | PatchRefusalCause::Unsupported => false,
        cause if cause.patch_refusal_depends_on_tree() => command.first && sure,
        _ => sure,
    };
    let told: Vec<PatchRefusal> = refusals.into_iter().filter(counts).collect();
    Some(PatchCheckedAgainstTree {
        paths: below,
        refused: (!told.is_empty()).then(|| patch_refusal_message(&told)),
    })
}

/// Removes carriage returns as GNU `patch` does: from every line, if the headers have one.
fn strip_carriage_returns(text: String) -> String {
    let header = |line: &str| line.starts_with("+++ ") && line.ends_with('\r');
    match text.split('\n').any(header) {
        true => text.replace("\r\n", "\n"),
        false => text,
    }
}

fn patch_refusal_message(refusals: &[PatchRefusal]) -> String {
    format!(
        "this patch was not applied, no file is changed:\n{}\nlook at the file again and send the whole patch once more",
        render_patch_refusals(refusals)
    )
}

/// The paths that the patch names, where nothing better is known.
fn patch_paths(patch: &ParsedPatch, base: &PathBelowRoot) -> Vec<String> {
    patch
        .paths_changed_by_patch()
        .map(|path| join_patch_base(base, path))
        .collect()
}

fn join_patch_base(base: &PathBelowRoot, path: &str) -> String {
    match base.to_string().as_str() {
        "" => path.to_owned(),
        base => Path::new(base).join(path).display().to_string(),
    }
}

/// Returns the paths that the headers of a diff name.
fn paths_named_by_diff_headers(text: &str, strip: Option<usize>) -> impl Iterator<Item = &str> {
    let heads = ["--- ", "+++ ", "rename to ", "copy to "];
    let named = text
        .lines()
        .filter_map(move |line| heads.iter().find_map(|head| line.strip_prefix(head)));
    named
        .map(|name| name.split('\t').next().unwrap_or(name).trim())
        .filter(|name| *name != "/dev/null" && !name.is_empty())
        .map(move |name| match strip {
            Some(strip) => name.splitn(strip + 1, '/').last().unwrap_or(name),
            None => ["a/", "b/"]
                .iter()
                .find_map(|usual| name.strip_prefix(usual))
                .unwrap_or(name),
        })
}

fn tree_path_from_relative(below: &Path) -> Option<PathBelowRoot> {
    let names: Option<Vec<&str>> = below
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    PathBelowRoot::parse_path_inside_tree(&names?.join("/"))
}

/// Reads a plain file up to a size. Anything else is left to the command itself.
fn read_regular_file(path: &PathBuf) -> Option<String> {
    let length = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?
        .len();
    if length > MAX_PATCH_BYTES {
        return None;
    }
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(MAX_PATCH_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adds(count: usize) -> PatchToCheck {
        let files: String = (0..count)
            .map(|number| format!("*** Add File: n{number}\n+x\n"))
            .collect();
        let root = std::env::temp_dir();
        PatchToCheck {
            what: ToolCallPatchSource::Patch(format!("*** Begin Patch\n{files}*** End Patch")),
            scripts: ParsedShellScriptCache::default(),
            here: root.clone(),
            root,
        }
    }

    #[test]
    fn a_patch_that_takes_too_long_is_refused() {
        let fact = check_patch_within_time(adds(5_000), Duration::ZERO).unwrap();
        let why = fact.refused.unwrap();
        assert!(why.contains("in the time that there is"), "{why}");
        let fact = check_patch_within_time(adds(1), TIME_LIMIT).unwrap();
        assert_eq!((fact.refused, fact.paths.len()), (None, 1));
    }

    #[test]
    fn carriage_returns_that_patch_takes_off() {
        let diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
        let returns = diff.replace('\n', "\r\n");
        assert_eq!(strip_carriage_returns(returns), diff);
        // A file that has them, in a diff that has none of its own.
        let of_file = diff.replace("-a\n+b\n", "-a\r\n+b\r\n");
        assert_eq!(strip_carriage_returns(of_file.clone()), of_file);
    }
}
