//! Creates files and folders that only their owner can use, whatever the umask is. Existing ones
//! with looser permissions are tightened when they are used.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::TempDir;

/// Creates a folder, and its parents if they are missing.
///
/// # Errors
/// If it cannot be made.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    restrict_file_to_owner(&File::open(folder));
    Ok(())
}

/// Opens a file with `options`, and creates it if it is missing.
///
/// # Errors
/// If it cannot be opened.
pub fn open_private_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let file = options.create(true).open(path);
    restrict_file_to_owner(&file);
    file
}

/// Replaces the content of the file.
///
/// # Errors
/// If it cannot be written.
pub fn write_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    open_private_file(path, File::options().write(true).truncate(true))?.write_all(bytes)
}

/// Creates a folder that is removed when the returned value is dropped.
///
/// # Errors
/// If it cannot be made.
pub fn create_private_temp_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}

/// Removes the permissions of everybody else. A file of another owner stays as it is.
#[cfg(unix)]
fn restrict_file_to_owner(opened: &io::Result<File>) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(file) = opened else { return };
    let Ok(metadata) = file.metadata() else {
        return;
    };
    // `mode` at creation does nothing for a file that existed.
    let mut permissions = metadata.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(permissions.mode() & !0o077);
        // Through the open file, not the path, which may lead to another file by now.
        let _ = file.set_permissions(permissions);
    }
}

#[cfg(not(unix))]
fn restrict_file_to_owner(_: &io::Result<File>) {}
