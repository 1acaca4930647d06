//! Represents a checked patch: for each file, its state now and its state after the patch. Nothing
//! has been written yet.

use checkrein_core::digest::Digest;

use crate::parsed_patch::PatchFormat;
use crate::refusal::PatchRefusal;
use crate::tree_path::PathBelowRoot;

/// A patch that applies, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchPlan {
    /// The format of the patch.
    pub format: PatchFormat,
    /// The planned changes, one step per file.
    pub steps: Vec<PlannedFileChange>,
    /// The actions of the patch, in its own order.
    pub listed_actions: Vec<FileActionForDisplay>,
    /// Operations that are safe here but lose data in the agents' own tools.
    pub hazards: Vec<PatchRefusal>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFileChange {
    /// Which.
    pub path: PathBelowRoot,
    /// The digest of its current content; `None` if it does not exist.
    pub before: Option<Digest>,
    /// Its new content; `None` if it is removed.
    pub after: Option<PlannedFileContent>,
}

/// The new content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFileContent {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is executable; `None` keeps the current mode, and a new file is not executable.
    pub executable: Option<bool>,
    /// The file whose permissions it takes: itself, or the one it was moved from.
    pub permissions_from: Option<PathBelowRoot>,
}

/// A change of a file as it is listed for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileActionForDisplay {
    /// What.
    pub action: FileAction,
    /// The file; for a move or a copy, the target.
    pub path: String,
    /// The source of a move or a copy.
    pub from: Option<String>,
    /// Whether it replaces an existing file.
    pub replaces: bool,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileAction {
    /// The file is created or overwritten.
    Add,
    /// Its lines change.
    Update,
    /// The file is moved.
    Move,
    /// The file is copied.
    Copy,
    /// The file is removed.
    Delete,
}

impl FileAction {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            FileAction::Add => "add",
            FileAction::Update => "update",
            FileAction::Move => "move",
            FileAction::Copy => "copy",
            FileAction::Delete => "delete",
        }
    }
}
