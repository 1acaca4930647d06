//! What a checked patch comes to: for each file it touches, how it is now and how it is to be.
//! Nothing has been written.

use checkrein_core::digest::Digest;

use crate::model::Format;
use crate::path::Within;
use crate::refusal::Refusal;

/// A patch that applies, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How the patch is spelled.
    pub format: Format,
    /// What is to be done, one step a file.
    pub steps: Vec<Step>,
    /// What the patch says it does, in its own order.
    pub listed: Vec<Listed>,
    /// What we do safely and the agents' own tools do not.
    pub hazards: Vec<Refusal>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub path: Within,
    /// The digest of what it holds now; `None` if it is not there.
    pub before: Option<Digest>,
    /// What it is to hold; `None` if it is to go.
    pub after: Option<Content>,
}

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is to be run; `None` leaves that as it is, and a new file plain.
    pub executable: Option<bool>,
    /// The file whose permissions it takes: itself, or the one it was moved from.
    pub like: Option<Within>,
}

/// What is done to a file, as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What.
    pub action: Action,
    /// To which file; of a move, to where.
    pub path: String,
    /// From where it was moved or copied.
    pub from: Option<String>,
    /// Another file was there, and is gone afterwards.
    pub replaces: bool,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
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

impl Action {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Add => "add",
            Action::Update => "update",
            Action::Move => "move",
            Action::Copy => "copy",
            Action::Delete => "delete",
        }
    }
}
