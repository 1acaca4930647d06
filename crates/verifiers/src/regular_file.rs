//! Opens files that anybody may have created: regular files only, and without blocking. Opening a
//! pipe blocks until the other end is opened, and a device may never end.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Opens the file at `path` for reading, through links.
///
/// # Errors
/// If it is no regular file, or cannot be opened.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    // Opening a device can have an effect in itself, so the type is checked before.
    if !std::fs::metadata(path)?.is_file() {
        return Err(not_regular_file_error());
    }
    open_nonblocking(path)
}

/// Opens the file at `path` for reading, if the last component of the path is not a link.
///
/// # Errors
/// As [`open_regular_file`], and if it is a link.
pub fn open_no_follow(path: &Path) -> io::Result<File> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(not_regular_file_error());
    }
    open_nonblocking_no_follow(path)
}

/// Opens a file that was a regular file when its folder was listed a moment ago, and saves the
/// check by path.
///
/// # Errors
/// As [`open_no_follow`].
pub(crate) fn open_file_listed_as_regular(path: &Path) -> io::Result<File> {
    open_nonblocking_no_follow(path)
}

/// Opens the file at `path`, which must not be a link, for writing. Creates it, for its owner only,
/// if there is none.
///
/// # Errors
/// As [`open_no_follow`], and if it cannot be created.
pub fn open_or_create_private_file(path: &Path) -> io::Result<File> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(not_regular_file_error()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => open_or_create_nonblocking(path),
    }
}

/// Opens without blocking and checks the type again: the file may have been replaced since it was
/// looked at.
#[cfg(unix)]
fn open_nonblocking(path: &Path) -> io::Result<File> {
    open_nonblocking_with_flags(path, rustix::fs::OFlags::RDONLY)
}

#[cfg(unix)]
fn open_nonblocking_no_follow(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    open_nonblocking_with_flags(path, OFlags::RDONLY | OFlags::NOFOLLOW)
}

#[cfg(unix)]
fn open_or_create_nonblocking(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    open_nonblocking_with_flags(path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW)
}

#[cfg(unix)]
fn open_nonblocking_with_flags(path: &Path, how: rustix::fs::OFlags) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // `NONBLOCK` keeps the open of a pipe from waiting, and `NOCTTY` keeps a terminal from becoming
    // ours.
    let flags = how | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // The mode applies only if the file is created.
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    require_regular_file(file)
}

#[cfg(not(unix))]
fn open_nonblocking(path: &Path) -> io::Result<File> {
    require_regular_file(File::open(path)?)
}

#[cfg(not(unix))]
fn open_nonblocking_no_follow(path: &Path) -> io::Result<File> {
    require_regular_file(File::open(path)?)
}

#[cfg(not(unix))]
fn open_or_create_nonblocking(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    require_regular_file(
        options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?,
    )
}

fn require_regular_file(file: File) -> io::Result<File> {
    // `fstat` on the open file: this answer cannot be outdated by a replaced path.
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular_file_error()),
    }
}

fn not_regular_file_error() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidInput,
        "it is no regular file (a pipe, a device or a folder); take it away",
    )
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn fifo_swapped_in_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let put = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(put.unwrap().success());
        for opened in [
            open_regular_file(&pipe),
            open_nonblocking(&pipe),
            open_no_follow(&pipe),
            open_nonblocking_no_follow(&pipe),
            open_or_create_private_file(&pipe),
            open_or_create_nonblocking(&pipe),
        ] {
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn symlink_swapped_in_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "abc").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for opened in [
            open_no_follow,
            open_nonblocking_no_follow,
            open_or_create_private_file,
            open_or_create_nonblocking,
        ] {
            assert!(opened(&link).is_err());
            assert!(opened(&file).is_ok());
        }
    }

    #[test]
    fn test_symlinked_regular_file_opens() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "abc").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut text = String::new();
        open_regular_file(&link)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "abc");
        assert_eq!(
            open_regular_file(&folder.path().join("gone"))
                .unwrap_err()
                .kind(),
            ErrorKind::NotFound
        );
    }
}
