//! Represents a parsed patch: the files that it names and the changes that it wants. Nothing here
//! has been checked against a tree.

/// The format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchFormat {
    /// `*** Begin Patch`, the format of Codex's `apply_patch`.
    V4a,
    /// Unified diff, plain or git's.
    Unified,
}

impl PatchFormat {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            PatchFormat::V4a => "v4a",
            PatchFormat::Unified => "unified",
        }
    }
}

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPatch {
    pub(crate) format: PatchFormat,
    pub(crate) changes: Vec<PatchFileSection>,
}

impl ParsedPatch {
    /// Its format.
    pub fn patch_format(&self) -> PatchFormat {
        self.format
    }

    /// Returns the paths that it writes, moves to or removes, as it spells them.
    pub fn paths_changed_by_patch(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().flat_map(|change| {
            let to = match &change.kind {
                PatchFileChange::Update { to, .. } => to.as_deref(),
                PatchFileChange::Hunks { to, .. } => to.as_deref(),
                PatchFileChange::Add(_)
                | PatchFileChange::Create { .. }
                | PatchFileChange::Delete
                | PatchFileChange::Remove(_) => None,
            };
            [Some(change.path.as_str()), to].into_iter().flatten()
        })
    }
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatchFileSection {
    /// The path as the patch spells it.
    pub(crate) path: String,
    /// The line of the patch that names it, from 1.
    pub(crate) line: usize,
    pub(crate) kind: PatchFileChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchFileChange {
    /// V4A: writes this content, even if the file exists.
    Add(String),
    /// V4A: removes the file.
    Delete,
    /// V4A: replaces blocks of lines that are searched for in the file.
    Update {
        to: Option<String>,
        chunks: Vec<UpdateChunk>,
    },
    /// Unified: creates a file, which must not exist.
    Create {
        content: String,
        executable: Option<bool>,
    },
    /// Unified: removes a file that must hold exactly these lines.
    Remove(Vec<Hunk>),
    /// Unified: applies hunks at the lines that they name; the result may get another name.
    Hunks {
        hunks: Vec<Hunk>,
        to: Option<String>,
        /// Whether the file under the first name stays unchanged.
        is_copy: bool,
        executable: Option<bool>,
        /// Whether it creates the file if there is none.
        creates_if_missing: bool,
    },
}

/// A block of lines of a V4A update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UpdateChunk {
    /// The line of the patch it begins at, from 1.
    pub(crate) line: usize,
    /// The text after `@@`.
    pub(crate) context: Option<String>,
    pub(crate) lines: Vec<PatchChunkLine>,
    /// Whether `*** End of File` follows it.
    pub(crate) at_end: bool,
}

impl UpdateChunk {
    /// Returns the lines that the file must contain.
    pub(crate) fn old_lines(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| match line {
                PatchChunkLine::Keep(text) | PatchChunkLine::Remove(text) => Some(text.as_str()),
                PatchChunkLine::Insert(_) => None,
            })
            .collect()
    }
}

/// A line of a chunk, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchChunkLine {
    Keep(String),
    Remove(String),
    Insert(String),
}

/// A hunk of a unified diff. Lines carry their line end, where they have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line of the patch it begins at, from 1.
    pub(crate) line: usize,
    /// The line of the old file that its header names, from 1; 0 means before the first line.
    pub(crate) old_start: usize,
    /// The same in the new file.
    pub(crate) new_start: usize,
    pub(crate) old: Vec<String>,
    pub(crate) new: Vec<String>,
    /// Lines of context before the first change.
    pub(crate) leading: usize,
    /// Lines of context after the last change.
    pub(crate) trailing: usize,
}
