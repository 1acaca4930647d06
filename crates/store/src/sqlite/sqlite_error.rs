//! Translates SQLite's errors into [`StoreError`].

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::StoreError;

/// Returns the store error for `error` at `path`.
pub(crate) fn sqlite_to_store_error(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly { path },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) => {
            // `Unknown` is rusqlite's code for SQL that does not fit the schema, which means that a
            // table is gone.
            StoreError::Corrupt {
                path,
                what: error.to_string(),
            }
        }
        Some(_) => StoreError::Io {
            doing: "use store",
            path,
            source: io::Error::other(error),
        },
        // The error came from reading a row: a column holds another type.
        None => StoreError::Corrupt {
            path,
            what: error.to_string(),
        },
    }
}
