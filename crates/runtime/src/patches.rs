//! The gate for patches: before an agent's tool or a shell command applies one, would it
//! apply, and where would it write? Reads files, writes none. What it cannot tell for sure is
//! no reason to refuse: the tool that applies the patch says no itself.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use checkrein_core::input::{Input, PatchFact};
use checkrein_execpolicy::{PatchCommand, PatchText, PatchTool};
use checkrein_patch::{Cause, Disk, Fit, Patch, Refusal, Within, check, parse, told};

use crate::delivery::Delivery;

/// A longer patch, or a larger file that one is for, is not looked into.
const LARGEST: u64 = 8 << 20;
/// Paths that are kept.
const MAX_PATHS: usize = 64;

/// What can be told about the patch of a tool request. `root` is the tree that is worked in.
pub(crate) fn of_request(delivery: &Delivery<'_>, root: &Path) -> Option<PatchFact> {
    let Input::ToolRequested(_) = delivery.input else {
        return None;
    };
    let here = delivery.works_in.unwrap_or(root);
    let commands = match (delivery.patch, delivery.shell, delivery.argv) {
        (Some(text), _, _) => vec![PatchCommand {
            tool: PatchTool::ApplyPatch,
            text: PatchText::Here(text.to_owned()),
            strip: None,
            folder: None,
            first: true,
        }],
        (None, Some(script), _) if may_patch(script) => checkrein_execpolicy::patches(script),
        (None, None, Some(argv)) if argv.iter().any(|word| may_patch(word)) => {
            checkrein_execpolicy::patches_of_words(argv)
        }
        _ => return None,
    };
    let mut all: Option<PatchFact> = None;
    for command in &commands {
        let Some(fact) = of_command(command, here, root) else {
            continue;
        };
        let all = all.get_or_insert_default();
        all.paths.extend(fact.paths);
        all.paths.truncate(MAX_PATHS);
        all.refused = all.refused.take().or(fact.refused);
    }
    all
}

/// Cheap, since every command is asked.
fn may_patch(text: &str) -> bool {
    ["patch", "apply"].iter().any(|word| text.contains(word))
}

fn of_command(command: &PatchCommand, here: &Path, root: &Path) -> Option<PatchFact> {
    let folder = match &command.folder {
        Some(folder) if folder.contains(['~', '$']) => return None,
        Some(folder) => here.join(folder),
        None => here.to_owned(),
    };
    let folder = folder.canonicalize().ok()?;
    let text = match &command.text {
        PatchText::Here(text) => text.clone(),
        PatchText::File(file) => read(&folder.join(file))?,
    };
    let root = root.canonicalize().ok()?;
    // Whoever works outside of the tree is told nothing of what lies there.
    let base = within(folder.strip_prefix(&root).ok()?)?;
    // In a folder of a repo git takes paths for another folder's.
    let sure = command.tool != PatchTool::GitApply || folder.join(".git").exists();
    let strip = match command.tool {
        PatchTool::GitApply => command.strip.or(Some(1)),
        PatchTool::Patch => command.strip,
        PatchTool::ApplyPatch | PatchTool::Own => None,
    };
    let patch = match parse(&text, strip) {
        Ok(patch) => patch,
        Err(refusal) => {
            let ours = matches!(command.tool, PatchTool::ApplyPatch | PatchTool::Own);
            let refused = ours && refusal.cause != Cause::Unsupported;
            return refused.then(|| PatchFact {
                paths: Vec::new(),
                refused: Some(reason(&[refusal])),
            });
        }
    };
    let disk = Disk::open(&root, LARGEST).ok()?;
    let fit = match command.tool {
        PatchTool::Patch => Fit::Gnu,
        PatchTool::ApplyPatch | PatchTool::GitApply | PatchTool::Own => Fit::Git,
    };
    let (below, refusals) = match check(&patch, &disk, &base, fit) {
        Ok(plan) => {
            let paths = plan
                .steps
                .iter()
                .map(|step| step.path.to_string())
                .collect();
            // We move a file onto itself without harm; others lose it.
            let hazards = match command.tool {
                PatchTool::Own => Vec::new(),
                PatchTool::ApplyPatch | PatchTool::GitApply | PatchTool::Patch => plan.hazards,
            };
            (paths, hazards)
        }
        Err(refusals) => (spelled(&patch, &base), refusals),
    };
    let counts = |refusal: &Refusal| match refusal.cause {
        // Too large to be looked into, or of another kind: the tool knows.
        Cause::Unreadable | Cause::Unsupported => false,
        cause if cause.is_about_tree() => command.first && sure,
        _ => sure,
    };
    let told: Vec<Refusal> = refusals.into_iter().filter(counts).collect();
    Some(PatchFact {
        paths: below.into_iter().take(MAX_PATHS).collect(),
        refused: (!told.is_empty()).then(|| reason(&told)),
    })
}

fn reason(refusals: &[Refusal]) -> String {
    format!(
        "this patch was not applied, no file is changed:\n{}\nlook at the file again and send the whole patch once more",
        told(refusals)
    )
}

/// The paths that it names, where nothing better is known.
fn spelled(patch: &Patch, base: &Within) -> Vec<String> {
    let base = base.to_string();
    patch
        .paths()
        .map(|path| match base.as_str() {
            "" => path.to_owned(),
            base => Path::new(base).join(path).display().to_string(),
        })
        .collect()
}

fn within(below: &Path) -> Option<Within> {
    let names: Option<Vec<&str>> = below
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    Within::read(&names?.join("/"))
}

/// A plain file, up to a size; whatever else it is, the command will find out.
fn read(path: &PathBuf) -> Option<String> {
    let length = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?
        .len();
    if length > LARGEST {
        return None;
    }
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(LARGEST)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}
