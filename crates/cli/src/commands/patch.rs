//! `checkrein patch check|apply`: would this patch apply here, and do it all or not at all.
//! What a killed `apply` left in this root is taken up first, by either.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_core::digest::Digest;
use checkrein_execpolicy::{RuleSet, evaluate_file_writes};
use checkrein_patch::{
    self as patches, DiskTree, HunkMatchDialect, ListedFileAction, PatchApplyError, PatchPlan,
    PatchRecoveryOutcome, PatchRefusal, PathBelowRoot,
};
use serde_json::{Value, json};

use crate::args::{Patch, PatchDo};
use crate::locate::Located;
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::printable::printable;
use crate::ui::style::Paint;
use crate::{exit_code, guarded, locate, person, ui};

/// A longer patch is not read.
const LONGEST: u64 = 256 << 20;

pub(crate) fn run(args: &Patch) -> Result<ExitCode, CommandError> {
    let (asked, applies) = match &args.what {
        PatchDo::Check(asked) => (asked, false),
        PatchDo::Apply(asked) => (asked, true),
    };
    let root = match &asked.root {
        Some(root) => root.clone(),
        None => std::env::current_dir()?,
    };
    let root = std::path::absolute(root)?;
    let located = locate::locate(&std::env::current_dir()?, None);
    let disk = DiskTree::open_file_tree(&root, u64::MAX).map_err(|error| {
        CommandError::usage(
            format!("{}: {error}", root.display()),
            "--root names the folder that the patch is for",
        )
    })?;
    let text = read(asked.file.as_deref())?;
    let memory = memory(&root);
    let recovered = patches::recover_interrupted_apply(&disk, &memory)?;
    tell(&recovered);
    let checked = patches::parse_patch(&text, None)
        .map_err(|refusal| vec![refusal])
        .and_then(|patch| {
            patches::check_patch(
                &patch,
                &disk,
                &PathBelowRoot::tree_root_path(),
                HunkMatchDialect::Git,
            )
        });
    let code = match checked {
        Err(refusals) => {
            match asked.json {
                true => ui::json(&refused(&refusals, &recovered)),
                false => {
                    ui::answer(Line::painted(Paint::Bad, "refused, nothing is changed"));
                    ui::answer(&lines(&patches::render_refusals(&refusals)));
                }
            }
            exit_code::NO
        }
        Ok(plan) => {
            if applies {
                permitted(&plan, &root, &located)?;
                patches::apply_patch_plan(&plan, &disk, &memory)?;
            }
            match asked.json {
                true => ui::json(&accepted(&plan, applies, &recovered)),
                false => show(&plan, applies),
            }
            exit_code::YES
        }
    };
    Ok(exit_code::exit(code))
}

/// What a person decides is written only if one asks: hooks of agents, what we remember, and
/// what lies outside the repo that the command is typed in.
fn permitted(plan: &PatchPlan, root: &Path, located: &Located) -> Result<(), CommandError> {
    let real = root.canonicalize()?;
    let in_git = real.components().any(|part| {
        let name = part
            .as_os_str()
            .to_str()
            .and_then(PathBelowRoot::parse_path_inside_tree);
        name.is_some_and(|name| name.has_dot_git_component())
    });
    if in_git {
        return Err(CommandError::forbidden(
            format!(
                "nothing is changed: {} lies in a `.git` folder",
                real.display()
            ),
            "git commands change what is in there",
        ));
    }
    let kept = guarded::settings(located).into_iter();
    let kept = kept.chain(located.place.state.parent().map(Path::to_owned));
    let kept = kept.flat_map(|path| [path.canonicalize().ok(), Some(path)]);
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    let rules = RuleSet::default().with_protected_paths(kept.flatten().filter_map(text).collect());
    let paths: Vec<String> = plan
        .steps
        .iter()
        .map(|step| real.join(step.path.to_string()).display().to_string())
        .collect();
    let why = evaluate_file_writes(&rules, &paths).reason.or_else(|| {
        let top = located.top.canonicalize().ok();
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
    match person::required("patch apply") {
        Ok(_) => Ok(()),
        Err(_) => Err(CommandError::forbidden(
            format!("nothing is changed: {}", printable(&why)),
            "a person may do it, at a terminal of their own",
        )),
    }
}

/// A file's own tabs stay: its lines are read to be typed again.
fn lines(text: &str) -> String {
    let line = |line: &str| {
        line.split('\t')
            .map(printable)
            .collect::<Vec<_>>()
            .join("\t")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn read(file: Option<&Path>) -> Result<String, CommandError> {
    let named = file.filter(|file| *file != Path::new("-"));
    let mut bytes = Vec::new();
    match named {
        Some(file) => {
            let unread = |error: std::io::Error| {
                let what = format!("{}: {error}", file.display());
                CommandError::usage(what, "name the file that holds the patch, or - for stdin")
            };
            let opened = std::fs::File::open(file).map_err(unread)?;
            opened
                .take(LONGEST)
                .read_to_end(&mut bytes)
                .map_err(unread)?;
        }
        None if file.is_none() && std::io::stdin().is_terminal() => {
            return Err(CommandError::usage(
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
        CommandError::usage(
            format!("the patch is not UTF-8 text (byte {at})"),
            "git apply takes patches of binary files",
        )
    })
}

/// Where the journal of this root is kept: not in the tree, where others could write it.
fn memory(root: &Path) -> PathBuf {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut name = Digest::hash_bytes(real.as_os_str().as_encoded_bytes()).to_hex();
    name.truncate(24);
    let state = locate::locate(root, None).place.state;
    state.join("patch").join(name)
}

fn tell(recovered: &PatchRecoveryOutcome) {
    match recovered {
        PatchRecoveryOutcome::Nothing => {}
        PatchRecoveryOutcome::RolledBack => {
            ui::say(
                "checkrein: an earlier patch was interrupted before it was decided; its staged files are gone",
            );
        }
        PatchRecoveryOutcome::Finished { left_alone } if left_alone.is_empty() => {
            ui::say(
                "checkrein: an earlier patch was interrupted while it was written; it is finished now",
            );
        }
        PatchRecoveryOutcome::Finished { left_alone } => ui::say(&format!(
            "checkrein: an earlier patch was interrupted while it was written; it is finished now, but for files that were changed since and are left as they are: {}",
            printable(&left_alone.join(", "))
        )),
        PatchRecoveryOutcome::Unreadable { kept } => ui::say(&format!(
            "checkrein: what an earlier patch left behind cannot be read and was put aside as {kept}; look at the tree with git status: files named .checkrein-patch-… are its leftovers"
        )),
    }
}

fn show(plan: &PatchPlan, applied: bool) {
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
    ui::answer(Line::painted(Paint::Good, &head));
    for one in &plan.listed_actions {
        ui::answer(&format!("  {:<7} {}", one.action.as_str(), named(one)));
    }
    for hazard in &plan.hazards {
        ui::say(&format!("note: {}", lines(&hazard.to_string())));
    }
}

fn named(one: &ListedFileAction) -> String {
    let mut text = match &one.from {
        Some(from) => format!("{} → {}", printable(from), printable(&one.path)),
        None => printable(&one.path),
    };
    if one.replaces {
        text.push_str("  (replaces the file that is there)");
    }
    text
}

fn accepted(plan: &PatchPlan, applied: bool, recovered: &PatchRecoveryOutcome) -> Value {
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
        "recovered": word(recovered),
    })
}

fn refused(refusals: &[PatchRefusal], recovered: &PatchRecoveryOutcome) -> Value {
    json!({
        "schema": SCHEMA,
        "verdict": "refused",
        "format": null,
        "files": [],
        "notes": [],
        "refusals": refusals,
        "recovered": word(recovered),
    })
}

const SCHEMA: &str = "checkrein/patch/1";

fn word(recovered: &PatchRecoveryOutcome) -> Option<&'static str> {
    match recovered {
        PatchRecoveryOutcome::Nothing => None,
        PatchRecoveryOutcome::RolledBack => Some("taken_back"),
        PatchRecoveryOutcome::Finished { .. } => Some("finished"),
        PatchRecoveryOutcome::Unreadable { .. } => Some("unreadable"),
    }
}

impl From<PatchApplyError> for CommandError {
    fn from(error: PatchApplyError) -> Self {
        Self::failed(error.to_string())
    }
}
