//! A patch as it was written: which files it names and what it wants done to them. Nothing
//! here is known to be true of a tree.

/// How a patch is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchFormat {
    /// `*** Begin ParsedPatch`, the language of Codex's `apply_patch`.
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
    /// How it is spelled.
    pub fn patch_format(&self) -> PatchFormat {
        self.format
    }

    /// The files it writes, moves onto or removes, as it spells them.
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

/// What is wanted of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatchFileSection {
    /// The path as it is spelled.
    pub(crate) path: String,
    /// The line of the patch that names it, from 1.
    pub(crate) line: usize,
    pub(crate) kind: PatchFileChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchFileChange {
    /// V4A: this content, whatever is there.
    Add(String),
    /// V4A: away with it.
    Delete,
    /// V4A: blocks of lines looked for in the file.
    Update {
        to: Option<String>,
        chunks: Vec<UpdateChunk>,
    },
    /// Unified: a new file; nothing may be there.
    Create {
        content: String,
        executable: Option<bool>,
    },
    /// Unified: away with a file that holds exactly this.
    Remove(Vec<Hunk>),
    /// Unified: hunks at places that are named, perhaps under another name afterwards.
    Hunks {
        hunks: Vec<Hunk>,
        to: Option<String>,
        /// The first name stays as it is.
        is_copy: bool,
        executable: Option<bool>,
        /// It wants nothing to be there, and makes the file if it is not.
        creates_if_missing: bool,
    },
}

/// A block of lines of a V4A update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UpdateChunk {
    /// The line of the patch it begins at, from 1.
    pub(crate) line: usize,
    /// What stands behind `@@`.
    pub(crate) context: Option<String>,
    pub(crate) lines: Vec<ChunkLine>,
    /// `*** End of File` stands behind it.
    pub(crate) at_end: bool,
}

impl UpdateChunk {
    /// The lines that the file is to have.
    pub(crate) fn old_lines(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| match line {
                ChunkLine::Keep(text) | ChunkLine::Remove(text) => Some(text.as_str()),
                ChunkLine::Insert(_) => None,
            })
            .collect()
    }
}

/// A line of a chunk, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkLine {
    Keep(String),
    Remove(String),
    Insert(String),
}

/// A hunk of a unified diff. Lines carry their line end, where they have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line of the patch it begins at, from 1.
    pub(crate) line: usize,
    /// The line where it says that it belongs in the old file, from 1; 0 before the first.
    pub(crate) old_start: usize,
    /// The same in the new file.
    pub(crate) new_start: usize,
    pub(crate) old: Vec<String>,
    pub(crate) new: Vec<String>,
    /// Lines of context before the first change.
    pub(crate) leading: usize,
    /// Lines of context behind the last change.
    pub(crate) trailing: usize,
}
