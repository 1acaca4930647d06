//! What a checked patch comes to: for each file it touches, how it is now and how it is to be.
//! Nothing has been written.

use checkrein_core::digest::Digest;

use crate::parsed_patch::PatchFormat;
use crate::refusal::PatchRefusal;
use crate::tree_path::PathBelowRoot;

/// A patch that applies, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchPlan {
    /// How the patch is spelled.
    pub format: PatchFormat,
    /// What is to be done, one step a file.
    pub steps: Vec<PlannedFile>,
    /// What the patch says it does, in its own order.
    pub listed_actions: Vec<ListedFileAction>,
    /// What we do safely and the agents' own tools do not.
    pub hazards: Vec<PatchRefusal>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// Which.
    pub path: PathBelowRoot,
    /// The digest of what it holds now; `None` if it is not there.
    pub before: Option<Digest>,
    /// What it is to hold; `None` if it is to go.
    pub after: Option<PlannedFileContent>,
}

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFileContent {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is to be run; `None` leaves that as it is, and a new file plain.
    pub executable: Option<bool>,
    /// The file whose permissions it takes: itself, or the one it was moved from.
    pub permissions_from: Option<PathBelowRoot>,
}

/// What is done to a file, as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFileAction {
    /// What.
    pub action: FileAction,
    /// To which file; of a move, to where.
    pub path: String,
    /// From where it was moved or copied.
    pub from: Option<String>,
    /// Another file was there, and is gone afterwards.
    pub replaces: bool,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileAction {
    /// It is new, or written anew.
    Add,
    /// Its lines change.
    Update,
    /// It gets another name.
    Move,
    /// It is copied.
    Copy,
    /// It goes.
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
