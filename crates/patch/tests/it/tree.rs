//! Small trees in memory and on disk, and what a patch makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use checkrein_patch::{Cause, Disk, Fit, Memory, Plan, Refusal, Tree, Within, apply, check, parse};

pub(crate) type Files = BTreeMap<String, String>;

pub(crate) fn files(pairs: &[(&str, &str)]) -> Files {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

pub(crate) fn memory(files: &Files) -> Memory {
    let mut memory = Memory::default();
    for (name, text) in files {
        let path = Within::read(name).unwrap();
        memory.files.insert(path, text.clone().into_bytes());
    }
    memory
}

pub(crate) fn checked(tree: &dyn Tree, patch: &str) -> Result<Plan, Vec<Refusal>> {
    let patch = parse(patch, None).map_err(|refusal| vec![refusal])?;
    check(&patch, tree, &Within::root(), Fit::Git)
}

/// The tree afterwards, or the first reason why not.
pub(crate) fn patched(before: &Files, patch: &str) -> Result<Files, Cause> {
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

pub(crate) fn lay(root: &Path, files: &Files) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The same on disk. The journal lies beside the tree.
pub(crate) fn on_disk(root: &Path, patch: &str) -> Result<Plan, Vec<Refusal>> {
    let disk = Disk::open(root, u64::MAX).unwrap();
    let plan = checked(&disk, patch)?;
    let memory = tempfile::tempdir().unwrap();
    apply(&plan, &disk, memory.path()).unwrap();
    Ok(plan)
}
