//! Reads and writes small files of the state folder, and configs. They are written whole, so that a
//! reader sees the old one or the new one, also after a power cut; and read with a bound, so that a
//! pipe or a device in a file's place cannot keep a hook waiting.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use checkrein_verifiers::regular_file::open_or_create_private_file;
pub use checkrein_verifiers::regular_file::open_regular_file;

/// The largest file that holds a few values.
pub const MAX_SMALL_BYTES: u64 = 1 << 20;
/// The largest config or rules file.
pub const MAX_CONFIG_BYTES: u64 = 8 << 20;

/// The longest wait for a lock: nobody takes longer to write such a file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause between two attempts to lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Whether anything is at `path`, even a link that leads nowhere. What may not be looked at counts
/// as present.
pub fn is_path_present(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !is_not_found_error(&error),
    }
}

/// Reads the file at `path`; `None` if there is none. The error does not name the file; the caller
/// does.
///
/// # Errors
/// If it is no regular file, a link that leads nowhere, larger than `limit`, or cannot be read.
pub fn read_regular_file(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular_file(path) {
        Ok(file) => file,
        // A link that leads nowhere is an error: somebody meant a file to be here.
        Err(error) if is_not_found_error(&error) && !is_path_present(path) => return Ok(None),
        Err(error) => return Err(add_remedy_to_error(path, error)),
    };
    let mut bytes = Vec::new();
    // A length is only a promise: what grows meanwhile ends here as well.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(file_too_large_error(limit));
    }
    Ok(Some(bytes))
}

/// Reads the file at `path` as text; `None` if there is none.
///
/// # Errors
/// As [`read_regular_file`], and if it is not UTF-8.
pub fn read_limited_text_file(path: &Path, limit: u64) -> io::Result<Option<String>> {
    let Some(bytes) = read_regular_file(path, limit)? else {
        return Ok(None);
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        // The two byte order marks of UTF-16, the usual reason on Windows.
        let what = match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16; save it as UTF-8".to_owned(),
            _ => {
                let before = bytes.iter().take(valid);
                let line = before.filter(|byte| **byte == b'\n').count() + 1;
                format!("line {line} is not UTF-8; save it as UTF-8")
            }
        };
        io::Error::new(ErrorKind::InvalidData, what)
    })
}

fn is_not_found_error(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Adds a remedy to the system's error about a file that is there.
fn add_remedy_to_error(path: &Path, error: io::Error) -> io::Error {
    // Errors of our own have no number of the system, and name a remedy already.
    if error.raw_os_error().is_none() {
        return error;
    }
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    let what = match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("{error}; make it readable for this account, or take it away")
        }
        _ if is_link => {
            format!("it is a link that leads nowhere ({error}); make it a file, or take it away")
        }
        _ => return error,
    };
    io::Error::new(ErrorKind::InvalidData, what)
}

fn file_too_large_error(limit: u64) -> io::Error {
    io::Error::new(
        ErrorKind::FileTooLarge,
        format!(
            "it is larger than {} MiB; make it smaller, or take it away",
            limit >> 20
        ),
    )
}

/// Writes `bytes` as the file at `path`; folders above it are made for their owner only.
///
/// # Errors
/// If the file system does not let us.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_private_folder(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // Synced before the rename: after a power cut the new name must not lead to an empty file.
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The folder as well, since the rename itself is an entry of it.
    sync_folder(folder)
}

/// Locks the file at `path` for reading and writing it anew, until the returned lock is dropped.
/// Readers need no lock. It must be held only briefly: everybody else waits, and gives up after a
/// few seconds.
///
/// # Errors
/// If the file system does not let us, or another process does not let go of it.
pub fn acquire_file_lock(path: &Path) -> io::Result<File> {
    lock_file_with_timeout(path, LOCK_TIMEOUT)
}

fn lock_file_with_timeout(path: &Path, longest: Duration) -> io::Result<File> {
    make_private_folder(path.parent().unwrap_or(Path::new(".")))?;
    // A file of its own is locked, since the rename replaces the one that is written.
    let path = path.with_extension("lock");
    let said = |kind, what: String| io::Error::new(kind, format!("{}: {what}", path.display()));
    let lock = open_or_create_private_file(&path)
        .map_err(|error| said(error.kind(), error.to_string()))?;
    let until = Instant::now() + longest;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(LOCK_RETRY_INTERVAL)
            }
            Err(TryLockError::WouldBlock) => {
                let seconds = longest.as_secs();
                let what = format!(
                    "another process has held this lock for more than {seconds} s; end it, then try again"
                );
                return Err(said(ErrorKind::TimedOut, what));
            }
            Err(TryLockError::Error(error)) => {
                return Err(said(error.kind(), error.to_string()));
            }
        }
    }
}

/// Removes the file at `path`; returns whether there was one.
///
/// # Errors
/// If the file system does not let us.
pub fn remove_file_if_present(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => {
            if let Some(folder) = path.parent() {
                sync_folder(folder)?;
            }
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_irregular_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert_eq!(read_regular_file(&file, 3).unwrap(), None);
        assert_eq!(read_regular_file(&file.join("below"), 3).unwrap(), None);
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(
            read_limited_text_file(&file, 3).unwrap().as_deref(),
            Some("abc")
        );
        assert_eq!(read_regular_file(&file.join("below"), 3).unwrap(), None);
        assert_eq!(
            read_regular_file(&file, 2).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );
        let folder = read_regular_file(folder.path(), 3).unwrap_err();
        assert_eq!(folder.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn a_lock_that_another_holds_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("held.json");
        let first = acquire_file_lock(&file).unwrap();
        let error = lock_file_with_timeout(&file, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().contains("held.lock"), "{error}");
        drop(first);
        lock_file_with_timeout(&file, Duration::ZERO).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn what_never_ends_is_not_begun() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert_eq!(
            read_regular_file(&link, 3).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_link_that_leads_nowhere_is_there() {
        let folder = tempfile::tempdir().unwrap();
        for target in ["nowhere", "link"] {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(is_path_present(&link));
            let error = read_regular_file(&link, 3).unwrap_err().to_string();
            assert!(error.contains("leads nowhere"), "{error}");
            std::fs::remove_file(&link).unwrap();
            assert!(!is_path_present(&link));
        }
    }
}
