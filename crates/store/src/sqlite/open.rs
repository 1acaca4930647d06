//! Opens the SQLite file and creates or migrates its schema. Every hook opens the store, so
//! settings that the file already holds (WAL mode, schema) are not set again.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::StoreError;
use crate::sqlite::busy_timeout::BusyTimeout;
use crate::sqlite::{folder, sqlite_error, wal};

/// The file in the store's folder.
pub(crate) const FILE_NAME: &str = "store.db";

/// The schema version that this build creates, and the newest that it reads.
const SCHEMA: u32 = 6;
/// The oldest schema version whose readers do not misread what this build writes.
const MIN_READER: u32 = 3;

/// Opens the store in `folder` for writing, and creates it if there is none.
pub(crate) fn open_connection_for_writing(
    folder: &Path,
    patience: BusyTimeout,
) -> Result<Connection, StoreError> {
    let file = folder.join(FILE_NAME);
    // Without `CREATE`, because SQLite would make the file with the umask's mode. A mutex of
    // SQLite's own is not needed: the connection is behind one of ours.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || Connection::open_with_flags(&file, flags);
    let mut conn = match open() {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            // The file does not exist, or did not exist a moment ago.
            folder::create_store_file(folder, &file)
                .map_err(|error| StoreError::from_io_error("create store", &file, error))?;
            open()
        }
        opened => opened,
    }
    .map_err(|error| store_open_error(&file, error))?;
    // SQLite silently falls back to read-only. It also does so if the file did not exist at first
    // and another process created it a moment later, so the second attempt decides.
    let reads_only = |conn: &Connection| {
        conn.is_readonly("main")
            .map_err(|error| sqlite_error::sqlite_to_store_error(&file, error))
    };
    if reads_only(&conn)? {
        conn = open().map_err(|error| store_open_error(&file, error))?;
        if reads_only(&conn)? {
            return Err(StoreError::ReadOnly { path: file });
        }
    }
    // Other processes create and remove files here, so a file may vanish meanwhile. That needs no
    // action.
    let _ = folder::make_store_private(folder, &file);
    // Waiting and checkpoints are done by our own code: see `busy_timeout` and `wal`.
    let set = |conn: &Connection| {
        conn.busy_timeout(std::time::Duration::ZERO)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.set_prepared_statement_cache_capacity(64);
        conn.pragma_update(None, "wal_autocheckpoint", 0)
    };
    set(&conn).map_err(|error| sqlite_error::sqlite_to_store_error(&file, error))?;
    match read_schema_state(&conn, &file, patience)? {
        DatabaseSchemaState::Current => {}
        DatabaseSchemaState::Older(_) => migrate_schema(&conn, &file, patience)?,
        DatabaseSchemaState::Absent => {
            create_schema(&conn, &file, patience)?;
            read_schema_state(&conn, &file, patience)?;
        }
    }
    Ok(conn)
}

/// Opens the store in `folder` for reading, even where nothing can be written.
pub(crate) fn open_connection_for_reading(
    folder: &Path,
    patience: BusyTimeout,
) -> Result<Connection, StoreError> {
    let file = folder.join(FILE_NAME);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if !file
        .try_exists()
        .map_err(|error| StoreError::from_io_error("find store", &file, error))?
    {
        return Err(StoreError::Missing { path: file });
    }
    let open = |path: &Path, flags| {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(std::time::Duration::ZERO)?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    };
    let mut conn = open(&file, flags).map_err(|error| store_open_error(&file, error))?;
    let mut found = read_schema_state(&conn, &file, patience);
    if found.is_err() && wal::is_wal_empty(&file) {
        // Without a WAL file and without permission to create one, SQLite reads nothing unless it
        // is told that the file is immutable. It is: whoever changes it creates a WAL file first.
        conn = open(
            &immutable_sqlite_uri(&file),
            flags | OpenFlags::SQLITE_OPEN_URI,
        )
        .map_err(|error| store_open_error(&file, error))?;
        found = read_schema_state(&conn, &file, patience);
    }
    match found? {
        DatabaseSchemaState::Current => Ok(conn),
        // An older schema is migrated once, by any process that may write, and then read.
        DatabaseSchemaState::Older(_) => {
            drop(conn);
            drop(open_connection_for_writing(folder, patience)?);
            open(&file, flags).map_err(|error| store_open_error(&file, error))
        }
        // A file without a schema is a store that another process is about to create.
        DatabaseSchemaState::Absent => Err(StoreError::Missing { path: file }),
    }
}

/// The schema state of a database file.
enum DatabaseSchemaState {
    /// A schema that this build reads and writes.
    Current,
    /// An older schema that must be migrated first.
    Older(u32),
    /// A new file.
    Absent,
}

fn read_schema_state(
    conn: &Connection,
    file: &Path,
    patience: BusyTimeout,
) -> Result<DatabaseSchemaState, StoreError> {
    let meta = || {
        conn.query_row("SELECT schema, min_reader FROM meta", [], |row| {
            Ok(Some((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?)))
        })
    };
    let read = || match meta() {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
            // There is no such table: the file is new, its tables were created just now, or it is
            // damaged.
            let (tables, metas) = conn.query_row(
                "SELECT count(*), count(*) FILTER (WHERE name = 'meta') FROM sqlite_schema",
                [],
                |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?)),
            )?;
            match (tables, metas) {
                (0, _) => Ok(None),
                (_, 0) => Err(error),
                // The table appeared between the two queries: another process has just created the
                // schema.
                (_, _) => meta(),
            }
        }
        answer => answer,
    };
    match patience.retry_while_busy(file, read)? {
        // A newer schema is readable as long as its `min_reader` allows it.
        Some((_, needs)) if needs > SCHEMA => Err(StoreError::TooNew {
            path: file.to_owned(),
            needs,
            reads: SCHEMA,
        }),
        Some((schema, _)) if schema < SCHEMA => Ok(DatabaseSchemaState::Older(schema)),
        Some(_) => Ok(DatabaseSchemaState::Current),
        None => Ok(DatabaseSchemaState::Absent),
    }
}

/// Migrations from each older schema to the next.
const MIGRATIONS: &[(u32, &str)] = &[
    (1, include_str!("schema_1_to_2.sql")),
    (2, include_str!("schema_2_to_3.sql")),
    (3, include_str!("schema_3_to_4.sql")),
    (4, include_str!("schema_4_to_5.sql")),
    (5, include_str!("schema_5_to_6.sql")),
];

/// Migrates an older schema in one transaction. A process that dies meanwhile leaves the older
/// schema. Many may try at once; one of them does it.
fn migrate_schema(conn: &Connection, file: &Path, patience: BusyTimeout) -> Result<(), StoreError> {
    let tx = patience.retry_while_busy(file, || {
        rusqlite::Transaction::new_unchecked(conn, TransactionBehavior::Immediate)
    })?;
    // Read again under the write lock: another process may have migrated it while this one waited.
    if let DatabaseSchemaState::Older(schema) = read_schema_state(&tx, file, patience)? {
        for (from, change) in MIGRATIONS {
            if schema <= *from {
                tx.execute_batch(change)
                    .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
            }
        }
    }
    tx.commit()
        .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))
}

/// Creates the schema, after setting WAL mode, so whoever sees the schema finds the mode set. Many
/// processes may do this at once: one creates it, the others find it created.
fn create_schema(conn: &Connection, file: &Path, patience: BusyTimeout) -> Result<(), StoreError> {
    let mode = patience.retry_while_busy(file, || {
        conn.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        })
    })?;
    // SQLite answers with the old mode if it cannot switch, for example on a network file system.
    if mode != "wal" {
        let source = io::Error::other("this file system has no shared memory for SQLite's log");
        return Err(StoreError::from_io_error("make store", file, source));
    }
    // Empty tables can be created again, so this commit need not be synced. The first commit that
    // must survive a power cut syncs them, too.
    conn.pragma_update(None, "synchronous", "NORMAL")
        .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
    let behavior = TransactionBehavior::Immediate;
    let tx = patience.retry_while_busy(file, || {
        rusqlite::Transaction::new_unchecked(conn, behavior)
    })?;
    let make = || {
        let tables = tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| {
            row.get::<_, u32>(0)
        })?;
        if tables == 0 {
            tx.execute_batch(include_str!("schema.sql"))?;
            tx.execute("INSERT INTO meta VALUES (?1, ?2)", [SCHEMA, MIN_READER])?;
        }
        Ok(())
    };
    make().map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
    tx.commit()
        .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))
}

/// Returns the error of a failed open. SQLite says only that it failed; the operating system may
/// say why. The file must not be opened to find out: closing it would drop the POSIX locks of this
/// process's other connections.
fn store_open_error(file: &Path, error: rusqlite::Error) -> StoreError {
    match std::fs::metadata(file) {
        Err(source) => StoreError::from_io_error("open store", file, source),
        Ok(_) => sqlite_error::sqlite_to_store_error(file, error),
    }
}

/// Returns the file as a URI that tells SQLite that nobody writes it.
fn immutable_sqlite_uri(file: &Path) -> PathBuf {
    let mut uri = String::from("file:");
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    PathBuf::from(uri)
}
