//! Reads the files that make up an index: the index of a worktree and, where that is split, the
//! shared index which it builds on.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Instant;

use super::repository::{GitRepository, is_missing};
use super::{GitReadError, IndexEntries, parse_index};
use crate::regular;

/// Longer no index is, nor all names in it together.
const LARGEST: u64 = 256 << 20;
/// The time is looked at after so many bytes.
const PIECE: u64 = 4 << 20;

impl GitRepository {
    /// The entries of the index, those of a shared index among them. A repository without an
    /// index has none.
    ///
    /// # Errors
    /// If the index cannot be read, or not by `until`.
    pub(super) fn index_entries(&self, until: Instant) -> Result<IndexEntries, GitReadError> {
        let object_name_len = self.object_name_len()?;
        let read = |path: &Path| {
            let bytes = read_until(path, until)?;
            let parse =
                |bytes: Vec<u8>| parse_index(&bytes, object_name_len, LARGEST as usize, until);
            bytes.map(parse).transpose()
        };
        let none = IndexEntries {
            names: Vec::new(),
            shared: None,
        };
        let mut own = read(&self.git_dir.join("index"))?.unwrap_or(none);
        let Some(shared) = own.shared.take() else {
            return Ok(own);
        };
        own.names.retain(|name| !name.is_empty());
        if shared.digest.iter().all(|byte| *byte == 0) {
            return Ok(own);
        }
        let digest: String = shared
            .digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let base = read(&self.git_dir.join(format!("sharedindex.{digest}")))?
            .filter(|base| base.shared.is_none())
            .ok_or(GitReadError::Index("its shared index is not there"))?;
        let deleted = shared.deleted(base.names.len())?;
        let kept = base
            .names
            .into_iter()
            .zip(deleted)
            .filter(|(_, deleted)| !deleted);
        own.names.extend(kept.map(|(name, _)| name));
        Ok(own)
    }
}

/// The bytes of a file that may be large; `None` if there is none.
fn read_until(path: &Path, until: Instant) -> Result<Option<Vec<u8>>, GitReadError> {
    let failed = |source| GitReadError::File {
        path: path.to_owned(),
        source,
    };
    let too_large = || GitReadError::TooLarge {
        path: path.to_owned(),
        limit: LARGEST,
    };
    let mut file: File = match regular::open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let len = file.metadata().map_err(failed)?.len();
    if len > LARGEST {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    loop {
        if Instant::now() >= until {
            return Err(GitReadError::TooSlow);
        }
        let piece = file.by_ref().take(PIECE).read_to_end(&mut bytes);
        if piece.map_err(failed)? == 0 {
            return Ok(Some(bytes));
        }
        // A length is only a promise.
        if bytes.len() as u64 > LARGEST {
            return Err(too_large());
        }
    }
}
