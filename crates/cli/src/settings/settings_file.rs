//! Reads a settings file as text, and writes it whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use checkrein_runtime::durable_file;

use crate::ui::errors::CommandError;

/// Returns the text of a file; `None` if there is none.
pub(crate) fn read_text_if_present(path: &Path) -> Result<Option<String>, CommandError> {
    let wrong = |what: String| {
        CommandError::usage_error(
            format!("{}: {what}", path.display()),
            "nothing was changed in it",
        )
    };
    durable_file::read_limited_text_file(path, durable_file::MAX_CONFIG_BYTES).map_err(|error| {
        match error.kind() {
            io::ErrorKind::InvalidData => wrong("this is not UTF-8".to_owned()),
            _ => wrong(error.to_string()),
        }
    })
}

/// Returns where a path really leads; the file itself need not exist. A file of a repo must not
/// lead out of it.
pub(crate) fn resolve_settings_symlinks(
    path: &Path,
    within: Option<&Path>,
) -> Result<PathBuf, CommandError> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(_) => {
            // The nearest folder that exists shows where the rest will be.
            let above = path.ancestors().skip(1).find_map(|above| {
                let real = above.canonicalize().ok()?;
                Some(real.join(path.strip_prefix(above).ok()?))
            });
            above.unwrap_or_else(|| path.to_owned())
        }
    };
    // Writing through a link that leads nowhere would replace the link by a file, and a link out of
    // the repo would change settings of other projects.
    let dangling = fs::symlink_metadata(path).is_ok() && !path.exists();
    let outside = within
        .and_then(|root| root.canonicalize().ok())
        .is_some_and(|root| !real.starts_with(root));
    if dangling || outside {
        return Err(CommandError::usage_error(
            format!(
                "{} is a link that leads {}",
                path.display(),
                if dangling {
                    "nowhere"
                } else {
                    "out of this repo"
                }
            ),
            "take the link away, or install for all repos: checkrein init --user",
        ));
    }
    Ok(real)
}

/// Checks that [`write_atomically`] would find a place for this file.
pub(crate) fn ensure_settings_file_writable(path: &Path) -> Result<(), CommandError> {
    let folder = path.ancestors().skip(1).find(|above| above.exists());
    let folder = folder.unwrap_or(Path::new("."));
    // Tried out, since permissions do not tell (read-only mounts, full disks). Checked before the
    // first file is written, so that `init` does not stop half way.
    match tempfile::tempfile_in(folder) {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandError::usage_error(
            format!("{} cannot be written: {error}", path.display()),
            format!("nothing was changed; mind {}", folder.display()),
        )),
    }
}

/// Writes a file whole: to a temporary file beside it, which is synced and renamed into its place,
/// with the permissions it had. Returns the folders that had to be created, the outermost first.
pub(crate) fn write_atomically(path: &Path, text: &str) -> io::Result<Vec<PathBuf>> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // Noted before they are created: an undo removes only these.
    let mut made: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|above| !above.as_os_str().is_empty() && !above.exists())
        .map(Path::to_owned)
        .collect();
    made.reverse();
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    match fs::metadata(path) {
        Ok(data) => file.as_file().set_permissions(data.permissions())?,
        // A temporary file is readable by its owner only, which would be odd for a file that is
        // committed.
        Err(_) => set_default_permissions(file.as_file())?,
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(made)
}

/// Makes a new file as readable as one that an editor creates.
#[cfg(unix)]
fn set_default_permissions(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_default_permissions(_: &fs::File) -> io::Result<()> {
    Ok(())
}

/// Removes a file, and folders that are empty without it.
pub(crate) fn remove_file_and_empty_folders(path: &Path, folders: &[PathBuf]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_not_found_error(&error) => return Err(error),
        _ => {}
    }
    for folder in folders.iter().rev() {
        // A folder with somebody else's file in it stays.
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

fn is_not_found_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
