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

/// By now another file may be there than the one that was looked at.
fn open_what_is_there(path: &Path) -> io::Result<File> {
    let file = without_waiting(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(no_file()),
    }
}

#[cfg(unix)]
fn without_waiting(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
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
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for opened in [open(&pipe), open_what_is_there(&pipe)] {
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::InvalidInput);
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
