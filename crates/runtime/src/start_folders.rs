//! Finds where the command of a call starts: in the folder that the call names, or else where its
//! agent works. Both come from outside, so they are resolved through links as the system does it.

use std::path::{Component, Path, PathBuf};

use checkrein_core::tool_action::{CallStartFolder, ToolAction};
use checkrein_execpolicy::CommandStartFolders;

use crate::symlinks;

/// The most folders of one call that are tried below one another. With more, the start is unknown.
const MAX_NESTED_FOLDERS: usize = 4;

/// The folders in which the command of this call can start, spelled as the policy of `root` spells
/// them. `here` is where its agent works.
pub(crate) fn call_start_folders(
    action: &ToolAction,
    here: &Path,
    root: &Path,
) -> CommandStartFolders {
    // A server runs its tools where it was started, which may not be where the agent works now.
    let bases = match action.is_of_server && here != root {
        true => vec![here, root],
        false => vec![here],
    };
    let mut found: Vec<Option<String>> = Vec::new();
    for base in bases {
        let named = possible_start_folders(&action.folders);
        // Unless the call certainly starts in a folder that it names, it may start in the base
        // itself.
        if !action
            .folders
            .iter()
            .any(CallStartFolder::tool_call_names_its_start_folder)
        {
            found.push(Some(resolved_folder_text(base, root)));
        }
        found.extend(named.into_iter().map(|folder| {
            let folder = folder?;
            // A home folder is left to the rules, which judge it by its text.
            Some(match folder.starts_with('~') {
                true => folder,
                false => resolved_folder_text(&base.join(folder), root),
            })
        }));
    }
    CommandStartFolders::from_possible_folders(found)
}

/// Each folder, and each below every other: which of several counts is not known.
fn possible_start_folders(folders: &[CallStartFolder]) -> Vec<Option<String>> {
    let mut found: Vec<Option<String>> = Vec::new();
    if folders.len() > MAX_NESTED_FOLDERS {
        // `None` stands for a start that is not known.
        found.push(None);
        found.extend(
            folders
                .iter()
                .map(|folder| folder.folder_path_if_known().map(str::to_owned)),
        );
        return found;
    }
    for folder in folders {
        let one = folder.folder_path_if_known();
        found.push(one.map(str::to_owned));
        for other in folders
            .iter()
            .filter_map(CallStartFolder::folder_path_if_known)
        {
            if let Some(one) = one.filter(|one| *one != other)
                && !other.starts_with(['/', '~'])
            {
                found.push(Some(format!("{one}/{other}")));
            }
        }
    }
    found
}

/// The folder in which the patches of this call are applied, if it is known.
pub(crate) fn patch_working_folder(action: &ToolAction, here: &Path) -> Option<PathBuf> {
    match action.folders.as_slice() {
        [] | [CallStartFolder::Possible(_)] => Some(here.to_owned()),
        [only] => Some(here.join(only.folder_path_if_known()?)),
        _ => None,
    }
}

/// A folder by its real path, spelled from the top of the tree.
fn resolved_folder_text(folder: &Path, root: &Path) -> String {
    let folder = root.join(folder);
    let real = symlinks::real_path(&folder, false).zip(root.canonicalize().ok());
    let place = match real {
        Some((real, top)) => match real.strip_prefix(&top) {
            Ok(below) => root.join(below),
            Err(_) => real,
        },
        // Nothing is there to resolve, so the text has to do.
        None => normalize_path(&folder),
    };
    place.display().to_string()
}

/// Removes `.` and `..` from a path, by its text alone.
pub(crate) fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
