//! Opens files that anybody may have put there: regular ones only, and without waiting. A pipe
//! waits for whoever opens its other end, and a device may never end.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Opens the file at `path` for reading, through links.
///
/// # Errors
/// If it is no regular file, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device can be an act in itself.
    if !std::fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    open_what_is_there(path)
}

/// The same, if the last part of the path is no link.
///
/// # Errors
/// As `open`, and if it is a link.
pub fn open_itself(path: &Path) -> io::Result<File> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(no_file());
    }
    itself(path)
}

/// The same, for what was a regular file when its folder was listed a moment ago.
///
/// # Errors
/// As `open_itself`.
pub(crate) fn open_listed(path: &Path) -> io::Result<File> {
    itself(path)
}

/// Opens the file at `path`, which is no link, for writing, and makes it for its owner if there
/// is none.
///
/// # Errors
/// As `open_itself`, and if it cannot be made.
pub fn open_or_make(path: &Path) -> io::Result<File> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(no_file()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => made(path),
    }
}

/// By now another file may be there than the one that was looked at.
#[cfg(unix)]
fn open_what_is_there(path: &Path) -> io::Result<File> {
    without_waiting(path, rustix::fs::OFlags::RDONLY)
}

#[cfg(unix)]
fn itself(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    without_waiting(path, OFlags::RDONLY | OFlags::NOFOLLOW)
}

#[cfg(unix)]
fn made(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    without_waiting(path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW)
}

#[cfg(unix)]
fn without_waiting(path: &Path, how: rustix::fs::OFlags) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = how | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    regular(file)
}

#[cfg(not(unix))]
fn open_what_is_there(path: &Path) -> io::Result<File> {
    regular(File::open(path)?)
}

#[cfg(not(unix))]
fn itself(path: &Path) -> io::Result<File> {
    regular(File::open(path)?)
}

#[cfg(not(unix))]
fn made(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    regular(
        options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?,
    )
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(no_file()),
    }
}

fn no_file() -> io::Error {
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
    fn a_pipe_in_the_place_of_the_file_that_was_looked_at_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let put = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(put.unwrap().success());
        for opened in [
            open(&pipe),
            open_what_is_there(&pipe),
            open_itself(&pipe),
            itself(&pipe),
            open_or_make(&pipe),
            made(&pipe),
        ] {
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_file_itself_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "abc").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for opened in [open_itself, itself, open_or_make, made] {
            assert!(opened(&link).is_err());
            assert!(opened(&file).is_ok());
        }
    }

    #[test]
    fn a_regular_file_is_read_as_ever_also_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "abc").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut text = String::new();
        open(&link).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
        assert_eq!(
            open(&folder.path().join("gone")).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}
