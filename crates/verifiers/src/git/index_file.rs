//! Reads the files that make up an index: the index of a worktree and, if it is split, the shared
//! index that it builds on.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Instant;

use super::config::GitObjectFormat;
use super::repository::{GitRepository, is_not_found_error};
use super::{GitIndex, GitIndexEntry, GitReadError, parse_git_index};
use crate::regular_file;

/// Limit in bytes of an index, and of all its names together.
pub(super) const LARGEST: u64 = 256 << 20;
/// Bytes after which the clock is checked.
const PIECE: u64 = 4 << 20;

impl GitRepository {
    /// Returns the entries of the index, including those it takes from a shared one. A repository
    /// without an index tracks nothing.
    ///
    /// # Errors
    /// If the index cannot be read, its names are longer than `largest` together, or it is not
    /// read by `until`.
    pub(super) fn read_index_entries(
        &self,
        object_format: GitObjectFormat,
        largest: usize,
        until: Instant,
    ) -> Result<Vec<GitIndexEntry>, GitReadError> {
        let object_name_len = object_format.object_id_len();
        let read = |path: &Path| {
            let bytes = read_file_by_deadline(path, until)?;
            let parse = |bytes: Vec<u8>| parse_git_index(&bytes, object_name_len, largest, until);
            bytes.map(parse).transpose()
        };
        let own = read(&self.index)?.unwrap_or_default();
        let Some(shared) = own.shared else {
            return Ok(own.entries);
        };
        let digest: String = shared
            .digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        // A digest of zeros means that there is no shared index.
        let base = match digest.trim_matches('0') {
            "" => Some(GitIndex::default()),
            _ => read(&self.git_dir.join(format!("sharedindex.{digest}")))?,
        };
        // A shared index that is split itself could lead in a circle; git writes none.
        let base = base.filter(|base| base.shared.is_none());
        let base = base.ok_or(GitReadError::Index("its shared index is not there"))?;
        shared.merge_split_git_index_entries(base.entries, own.entries)
    }
}

/// Returns the bytes of a file that may be large; `None` if there is none.
fn read_file_by_deadline(path: &Path, until: Instant) -> Result<Option<Vec<u8>>, GitReadError> {
    let failed = |source| GitReadError::File {
        path: path.to_owned(),
        source,
    };
    let too_large = || GitReadError::TooLarge {
        path: path.to_owned(),
        limit: LARGEST,
    };
    let mut file: File = match regular_file::open_regular_file(path) {
        Ok(file) => file,
        Err(error) if is_not_found_error(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let len = file.metadata().map_err(failed)?.len();
    if len > LARGEST {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    loop {
        // In pieces, because one read of a slow disk could outlast the deadline.
        if Instant::now() >= until {
            return Err(GitReadError::TooSlow);
        }
        let piece = file.by_ref().take(PIECE).read_to_end(&mut bytes);
        if piece.map_err(failed)? == 0 {
            return Ok(Some(bytes));
        }
        // The file may have grown since its length was read.
        if bytes.len() as u64 > LARGEST {
            return Err(too_large());
        }
    }
}
