//! A patch as it was written: which files it names and what it wants done to them. Nothing
//! here is known to be true of a tree.

/// How a patch is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `*** Begin Patch`, the language of Codex's `apply_patch`.
    V4a,
    /// Unified diff, plain or git's.
    Unified,
}

impl Format {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::V4a => "v4a",
            Format::Unified => "unified",
        }
    }
}

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub(crate) format: Format,
    pub(crate) changes: Vec<Change>,
}

impl Patch {
    /// How it is spelled.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The files it writes, moves onto or removes, as it spells them.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().flat_map(|change| {
            let to = match &change.what {
                What::Update { to, .. } => to.as_deref(),
                What::Hunks { to, .. } => to.as_deref(),
                What::Add(_) | What::Create { .. } | What::Delete | What::Remove(_) => None,
            };
            [Some(change.path.as_str()), to].into_iter().flatten()
        })
    }
}

/// What is wanted of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The path as it is spelled.
    pub(crate) path: String,
    /// The line of the patch that names it, from 1.
    pub(crate) line: usize,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// V4A: this content, whatever is there.
    Add(String),
    /// V4A: away with it.
    Delete,
    /// V4A: blocks of lines looked for in the file.
    Update {
        to: Option<String>,
        chunks: Vec<Chunk>,
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
        copies: bool,
        executable: Option<bool>,
        /// It wants nothing to be there, and makes the file if it is not.
        makes: bool,
    },
}

/// A block of lines of a V4A update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The line of the patch it begins at, from 1.
    pub(crate) line: usize,
    /// What stands behind `@@`.
    pub(crate) context: Option<String>,
    pub(crate) lines: Vec<Line>,
    /// `*** End of File` stands behind it.
    pub(crate) at_end: bool,
}

impl Chunk {
    /// The lines that the file is to have.
    pub(crate) fn old(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| match line {
                Line::Keep(text) | Line::Remove(text) => Some(text.as_str()),
                Line::Insert(_) => None,
            })
            .collect()
    }
}

/// A line of a chunk, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
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
