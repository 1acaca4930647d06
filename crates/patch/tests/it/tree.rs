//! Small trees in memory and on disk, and what a patch makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use checkrein_patch::{
    DiskTree, FileTreeReader, HunkMatchDialect, InMemoryFileTree, PatchPlan, PatchRefusal,
    PatchRefusalCause, PathBelowRoot, apply_patch_plan, parse_patch, plan_patch_against_tree,
};

pub(crate) type FileTexts = BTreeMap<String, String>;

pub(crate) fn files(pairs: &[(&str, &str)]) -> FileTexts {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

pub(crate) fn memory(files: &FileTexts) -> InMemoryFileTree {
    let mut memory = InMemoryFileTree::default();
    for (name, text) in files {
        let path = PathBelowRoot::parse_path_inside_tree(name).unwrap();
        memory.files.insert(path, text.clone().into_bytes());
    }
    memory
}

pub(crate) fn checked(
    tree: &dyn FileTreeReader,
    patch: &str,
) -> Result<PatchPlan, Vec<PatchRefusal>> {
    let patch = parse_patch(patch, None).map_err(|refusal| vec![refusal])?;
    plan_patch_against_tree(
        &patch,
        tree,
        &PathBelowRoot::tree_root_path(),
        HunkMatchDialect::Git,
    )
}

/// The tree afterwards, or the first reason why not.
pub(crate) fn patched(before: &FileTexts, patch: &str) -> Result<FileTexts, PatchRefusalCause> {
    let plan = checked(&memory(before), patch).map_err(|refusals| refusals[0].cause)?;
    let mut after = before.clone();
    for step in plan.steps {
        match step.after {
            Some(content) => {
                let text = String::from_utf8(content.bytes).unwrap();
                after.insert(step.path.to_string(), text);
            }
            None => {
                after.remove(&step.path.to_string());
            }
        }
    }
    Ok(after)
}

pub(crate) fn lay(root: &Path, files: &FileTexts) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The same on disk. The journal lies beside the tree.
pub(crate) fn on_disk(root: &Path, patch: &str) -> Result<PatchPlan, Vec<PatchRefusal>> {
    let disk = DiskTree::open_file_tree(root, u64::MAX).unwrap();
    let plan = checked(&disk, patch)?;
    let memory = tempfile::tempdir().unwrap();
    apply_patch_plan(&plan, &disk, memory.path()).unwrap();
    Ok(plan)
}
