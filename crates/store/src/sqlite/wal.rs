//! SQLite's write-ahead log, kept short by ourselves.
//!
//! `wal_autocheckpoint` does not do it for hooks: what it moved is remembered in shared
//! memory only, and the next process to come alone starts that anew. It reads the whole
//! log again, moves it again with every commit, and never begins it from the front.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// Reading the log costs a process that comes alone about 1 µs a page of 4 KiB; moving it
/// costs two syncs.
const LONGEST: u64 = 256 * 1024;

/// Moves the log into the database and empties it, if it is long. Nothing waits for
/// this: if others are reading or writing, the next commit tries again, and if it fails
/// what was committed is still in the log.
pub(crate) fn checkpoint_wal_if_long(conn: &Connection, file: &Path) {
    if wal_length(file).is_ok_and(|len| len > LONGEST) {
        let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// Whether everything is in the database.
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
