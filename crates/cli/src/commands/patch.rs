//! `checkrein patch check|apply`: says whether a patch applies here, and applies all of it or
//! nothing. Both first finish or roll back what a killed `apply` left in this root.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_core::digest::Digest;
use checkrein_execpolicy::{RuleSet, evaluate_file_writes};
use checkrein_patch::{
    self as patches, DiskTree, FileActionForDisplay, HunkMatchDialect, PatchPlan,
    PatchRecoveryOutcome, PatchRefusal, PatchWriteError, PathBelowRoot,
};
use serde_json::{Value, json};

use crate::args::{PatchArgs, PatchSubcommand};
use crate::locate::ProjectLocation;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::style::TextStyle;
use crate::{exit_code, guarded_files, locate, person, ui};

/// Bytes of a patch that are read.
const LONGEST: u64 = 256 << 20;

pub(crate) fn run_patch_command(args: &PatchArgs) -> Result<ExitCode, CommandError> {
    let (asked, applies) = match &args.what {
        PatchSubcommand::Check(asked) => (asked, false),
        PatchSubcommand::Apply(asked) => (asked, true),
    };
    let root = match &asked.root {
        Some(root) => root.clone(),
        None => std::env::current_dir()?,
    };
    let root = std::path::absolute(root)?;
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let disk = DiskTree::open_file_tree(&root, u64::MAX).map_err(|error| {
        CommandError::usage_error(
            format!("{}: {error}", root.display()),
            "--root names the folder that the patch is for",
        )
    })?;
    let text = read_patch(asked.file.as_deref())?;
    // Even `check` recovers first: it would otherwise judge a tree that is half written.
    let memory = patch_journal_folder_of_root(&root);
    let recovered = patches::recover_interrupted_apply(&disk, &memory)?;
    print_patch_recovery(&recovered);
    let checked = patches::parse_patch(&text, None)
        .map_err(|refusal| vec![refusal])
        .and_then(|patch| {
            patches::plan_patch_against_tree(
                &patch,
                &disk,
                &PathBelowRoot::tree_root_path(),
                HunkMatchDialect::Git,
            )
        });
    let code = match checked {
        Err(refusals) => {
            match asked.json {
                true => ui::print_json(&refused_patch_json(&refusals, &recovered)),
                false => {
                    ui::print_line_to_stdout(StyledLine::line_from_styled_text(
                        TextStyle::Bad,
                        "refused, nothing is changed",
                    ));
                    ui::print_line_to_stdout(&printable_lines_keeping_tabs(
                        &patches::render_patch_refusals(&refusals),
                    ));
                }
            }
            exit_code::NO
        }
        Ok(plan) => {
            if applies {
                // Asked when the plan is known, because only the plan says which files it writes.
                ensure_patch_permitted(&plan, &root, &located)?;
                patches::apply_patch_plan(&plan, &disk, &memory)?;
            }
            match asked.json {
                true => ui::print_json(&accepted_patch_json(&plan, applies, &recovered)),
                false => print_patch_plan(&plan, applies),
            }
            exit_code::YES
        }
    };
    Ok(exit_code::to_exit_code(code))
}

/// Checks that the patch may be applied. What a person decides is written only if one asks: hooks
/// of agents, our records, and files outside the repo that the command is typed in.
fn ensure_patch_permitted(
    plan: &PatchPlan,
    root: &Path,
    located: &ProjectLocation,
) -> Result<(), CommandError> {
    let real = root.canonicalize()?;
    // Git would run hooks and settings that a patch puts there.
    let in_git = real.components().any(|part| {
        let name = part
            .as_os_str()
            .to_str()
            .and_then(PathBelowRoot::parse_path_inside_tree);
        name.is_some_and(|name| name.has_dot_git_component())
    });
    if in_git {
        return Err(CommandError::caller_not_allowed_error(
            format!(
                "nothing is changed: {} lies in a `.git` folder",
                real.display()
            ),
            "git commands change what is in there",
        ));
    }
    let kept = guarded_files::hook_settings_files(located).into_iter();
    let kept = kept.chain(located.place.state.parent().map(Path::to_owned));
    // A path may be named by a link or by its real name, so both are protected.
    let kept = kept.flat_map(|path| [path.canonicalize().ok(), Some(path)]);
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    // Only protected paths matter here: no command is judged, so no rule of the policy
    // applies.
    let rules = RuleSet::default().with_protected_paths(kept.flatten().filter_map(text).collect());
    let paths: Vec<String> = plan
        .steps
        .iter()
        .map(|step| real.join(step.path.to_string()).display().to_string())
        .collect();
    let why = evaluate_file_writes(&rules, &paths).reason.or_else(|| {
        let top = located.top.canonicalize().ok();
        // If the top cannot be resolved, the root counts as outside.
        let outside = top.is_none_or(|top| !real.starts_with(top));
        outside.then(|| {
            format!(
                "{} lies outside of {}",
                real.display(),
                located.top.display()
            )
        })
    });
    let Some(why) = why else { return Ok(()) };
    match person::require_person("patch apply") {
        Ok(_) => Ok(()),
        Err(_) => Err(CommandError::caller_not_allowed_error(
            format!("nothing is changed: {}", escape_hidden_chars(&why)),
            "a person may do it, at a terminal of their own",
        )),
    }
}

/// Escapes the lines of a text but keeps its tabs: the lines are read to be typed again.
fn printable_lines_keeping_tabs(text: &str) -> String {
    let line = |line: &str| {
        line.split('\t')
            .map(escape_hidden_chars)
            .collect::<Vec<_>>()
            .join("\t")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn read_patch(file: Option<&Path>) -> Result<String, CommandError> {
    let named = file.filter(|file| *file != Path::new("-"));
    let mut bytes = Vec::new();
    match named {
        Some(file) => {
            let unread = |error: std::io::Error| {
                let what = format!("{}: {error}", file.display());
                CommandError::usage_error(
                    what,
                    "name the file that holds the patch, or - for stdin",
                )
            };
            let opened = std::fs::File::open(file).map_err(unread)?;
            opened
                .take(LONGEST)
                .read_to_end(&mut bytes)
                .map_err(unread)?;
        }
        // At a terminal without a file there is nothing to read, and waiting would look like
        // work.
        None if file.is_none() && std::io::stdin().is_terminal() => {
            return Err(CommandError::usage_error(
                "there is no patch",
                "checkrein patch check FILE, or: git diff | checkrein patch check",
            ));
        }
        None => {
            std::io::stdin().take(LONGEST).read_to_end(&mut bytes)?;
        }
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CommandError::usage_error(
            format!("the patch is not UTF-8 text (byte {at})"),
            "git apply takes patches of binary files",
        )
    })
}

/// Returns the folder for the journal of this root: outside of the tree, where others could write
/// it.
fn patch_journal_folder_of_root(root: &Path) -> PathBuf {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut name = Digest::hash_bytes(real.as_os_str().as_encoded_bytes()).to_hex();
    // 96 bits of the digest keep the roots apart.
    name.truncate(24);
    let state = locate::locate_project(root, None).place.state;
    state.join("patch").join(name)
}

fn print_patch_recovery(recovered: &PatchRecoveryOutcome) {
    match recovered {
        PatchRecoveryOutcome::Nothing => {}
        PatchRecoveryOutcome::RolledBack => {
            ui::print_wrapped_to_stderr(
                "checkrein: an earlier patch was interrupted before it was decided; its staged files are gone",
            );
        }
        PatchRecoveryOutcome::Finished { left_alone } if left_alone.is_empty() => {
            ui::print_wrapped_to_stderr(
                "checkrein: an earlier patch was interrupted while it was written; it is finished now",
            );
        }
        PatchRecoveryOutcome::Finished { left_alone } => ui::print_wrapped_to_stderr(&format!(
            "checkrein: an earlier patch was interrupted while it was written; it is finished now, but for files that were changed since and are left as they are: {}",
            escape_hidden_chars(&left_alone.join(", "))
        )),
        PatchRecoveryOutcome::Unreadable { kept } => ui::print_wrapped_to_stderr(&format!(
            "checkrein: what an earlier patch left behind cannot be read and was put aside as {kept}; look at the tree with git status: files named .checkrein-patch-… are its leftovers"
        )),
    }
}

fn print_patch_plan(plan: &PatchPlan, applied: bool) {
    let count = plan.listed_actions.len();
    let files = if count == 1 {
        "1 file"
    } else {
        &format!("{count} files")
    };
    let head = match applied {
        true => format!("applied: {files}"),
        false => format!("it applies: {files}"),
    };
    ui::print_line_to_stdout(StyledLine::line_from_styled_text(TextStyle::Good, &head));
    for one in &plan.listed_actions {
        ui::print_line_to_stdout(&format!(
            "  {:<7} {}",
            one.action.as_str(),
            patched_file_display_line(one)
        ));
    }
    for hazard in &plan.hazards {
        ui::print_wrapped_to_stderr(&format!(
            "note: {}",
            printable_lines_keeping_tabs(&hazard.to_string())
        ));
    }
}

fn patched_file_display_line(one: &FileActionForDisplay) -> String {
    let mut text = match &one.from {
        Some(from) => format!(
            "{} → {}",
            escape_hidden_chars(from),
            escape_hidden_chars(&one.path)
        ),
        None => escape_hidden_chars(&one.path),
    };
    if one.replaces {
        text.push_str("  (replaces the file that is there)");
    }
    text
}

fn accepted_patch_json(plan: &PatchPlan, applied: bool, recovered: &PatchRecoveryOutcome) -> Value {
    let files: Vec<Value> = plan
        .listed_actions
        .iter()
        .map(|one| {
            json!({
                "action": one.action.as_str(),
                "path": one.path,
                "from": one.from,
                "replaces": one.replaces,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "verdict": if applied { "applied" } else { "applies" },
        "format": plan.format.as_str(),
        "files": files,
        "notes": plan.hazards,
        "refusals": [],
        "recovered": patch_recovery_outcome_name(recovered),
    })
}

fn refused_patch_json(refusals: &[PatchRefusal], recovered: &PatchRecoveryOutcome) -> Value {
    json!({
        "schema": SCHEMA,
        "verdict": "refused",
        "format": null,
        "files": [],
        "notes": [],
        "refusals": refusals,
        "recovered": patch_recovery_outcome_name(recovered),
    })
}

const SCHEMA: &str = "checkrein/patch/1";

fn patch_recovery_outcome_name(recovered: &PatchRecoveryOutcome) -> Option<&'static str> {
    match recovered {
        PatchRecoveryOutcome::Nothing => None,
        PatchRecoveryOutcome::RolledBack => Some("taken_back"),
        PatchRecoveryOutcome::Finished { .. } => Some("finished"),
        PatchRecoveryOutcome::Unreadable { .. } => Some("unreadable"),
    }
}

impl From<PatchWriteError> for CommandError {
    fn from(error: PatchWriteError) -> Self {
        Self::cli_failure_error(error.to_string())
    }
}
