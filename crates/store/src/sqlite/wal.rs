//! Keeps SQLite's write-ahead log (WAL) short.
//!
//! `wal_autocheckpoint` does not do so for hooks: how far it has copied is remembered in shared
//! memory only, and the next process that comes alone starts anew. That process reads the whole WAL
//! again, copies it again with every commit, and never restarts it from the front.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// The longest WAL in bytes. Reading it costs a process that comes alone about 1 µs per page of 4
/// KiB; a checkpoint costs two syncs.
const LONGEST: u64 = 256 * 1024;

/// Copies the WAL into the database and empties it, if it is long. Nothing depends on its success:
/// if others are reading or writing, the next commit tries again, and until then the committed data
/// is in the WAL.
pub(crate) fn checkpoint_wal_if_long(conn: &Connection, file: &Path) {
    if wal_length(file).is_ok_and(|len| len > LONGEST) {
        let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// Returns whether the WAL is empty, so that everything is in the database file.
pub(crate) fn is_wal_empty(file: &Path) -> bool {
    match wal_length(file) {
        Ok(len) => len == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn wal_length(file: &Path) -> io::Result<u64> {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(PathBuf::from(log)).map(|log| log.len())
}
