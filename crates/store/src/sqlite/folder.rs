//! Creates the store's folder and files for their owner only, and syncs the folder before the first
//! event is written.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// What group and others may do.
#[cfg(unix)]
const GROUP_AND_OTHERS: u32 = 0o077;

/// Creates a folder and its missing parents, for their owner only. An existing folder keeps its
/// mode.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Removes the permissions that older versions left to group and others. The store's file is
/// changed last: if it is private, later processes know that nothing is left to do.
#[cfg(unix)]
pub(crate) fn make_store_private(folder: &Path, file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = file.symlink_metadata()?;
    let mut permissions = metadata.permissions();
    // A link leads to a file that a person placed elsewhere. Its mode is theirs.
    if metadata.is_symlink() || permissions.mode() & GROUP_AND_OTHERS == 0 {
        return Ok(());
    }
    restrict_permissions_below(folder, file)?;
    permissions.set_mode(permissions.mode() & !GROUP_AND_OTHERS);
    std::fs::set_permissions(file, permissions)
}

/// Removes permissions in `folder` and in every folder below it that others may enter.
#[cfg(unix)]
fn restrict_permissions_below(folder: &Path, last: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // `DirEntry::metadata` does not follow links, which lead to files that are not ours.
        let metadata = entry.metadata()?;
        let mut permissions = metadata.permissions();
        if metadata.is_symlink()
            || permissions.mode() & GROUP_AND_OTHERS == 0
            || entry.path() == last
        {
            continue;
        }
        permissions.set_mode(permissions.mode() & !GROUP_AND_OTHERS);
        std::fs::set_permissions(entry.path(), permissions)?;
        if metadata.is_dir() {
            restrict_permissions_below(&entry.path(), last)?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn make_store_private(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes `options` create files for their owner only.
pub(crate) fn set_open_options_owner_only(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// Creates an empty file in a new folder and syncs both to disk. SQLite gives the files that it
/// creates beside it the same mode. A file that exists by now is not opened: closing it would drop
/// the locks of another connection in this process.
pub(crate) fn create_store_file(folder: &Path, file: &Path) -> io::Result<()> {
    create_private_folder(folder)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    set_open_options_owner_only(&mut options);
    match options.open(file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(_) | Err(_) => {}
    }
    for place in [Some(folder), folder.parent()].into_iter().flatten() {
        sync_folder(place)?;
    }
    Ok(())
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    // A folder that cannot be opened, or the empty path for the working directory, is not ours to
    // sync.
    std::fs::File::open(folder).map_or(Ok(()), |folder| folder.sync_all())
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
