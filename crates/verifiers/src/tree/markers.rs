//! Collects markers of ignored files that checks read all the same: installed packages and `.env`
//! files. Package folders hold tens of thousands of files and tools write into them themselves, so
//! a few small files and the names of the packages stand for the rest.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;

use checkrein_core::digest::Digest;

use crate::file_system::{ReadOnlyFileSystem, SymlinkMode};

/// Markers kept of one tree, nearest the root first.
const MOST: usize = 200;
/// Bytes of a file that are hashed.
const LARGEST: u64 = 4 << 20;
/// What package managers leave in `node_modules` after an install.
const INSTALLED: &[&str] = &[".package-lock.json", ".modules.yaml", ".yarn-state.yml"];
/// Usual names of a Python environment.
const ENVIRONMENTS: &[&str] = &[".venv", "venv", "env"];

/// A path and the digest of what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledPackageMarker {
    pub(crate) path: String,
    pub(crate) digest: Digest,
}

/// Adds the markers that an ignored entry is or holds. `path` is relative to the root.
pub(crate) fn collect_installed_package_markers(
    file_system: &dyn ReadOnlyFileSystem,
    full: &Path,
    path: &str,
    is_folder: bool,
    marks: &mut Vec<InstalledPackageMarker>,
) {
    let file = |full: &Path, path: &str| hash_file_as_package_marker(file_system, full, path);
    let name = path.rsplit('/').next().unwrap_or(path);
    match (is_folder, name) {
        // Also `.env.local` and the like, which frameworks read beside `.env`.
        (false, name) if name.starts_with(".env") => marks.extend(file(full, path)),
        // The files of the package manager name the versions; the folder names show a package that
        // was added or removed by hand.
        (true, "node_modules") => {
            marks.extend(installed_package_marker_of_folder(
                file_system,
                full,
                path,
                |name| !name.starts_with('.'),
            ));
            marks.extend(
                INSTALLED
                    .iter()
                    .filter_map(|inside| file(&full.join(inside), &format!("{path}/{inside}"))),
            );
        }
        (true, "vendor") => {
            marks.extend(file(
                &full.join("modules.txt"),
                &format!("{path}/modules.txt"),
            ));
        }
        (true, name) if ENVIRONMENTS.contains(&name) => {
            collect_site_package_markers(file_system, full, path, marks)
        }
        _ => {}
    }
}

/// Keeps at most [`MOST`] markers, nearest the root first.
pub(crate) fn keep_shallowest_package_markers(
    mut marks: Vec<InstalledPackageMarker>,
) -> Vec<InstalledPackageMarker> {
    let depth = |mark: &InstalledPackageMarker| mark.path.matches('/').count();
    marks.sort_by(|a, b| (depth(a), &a.path).cmp(&(depth(b), &b.path)));
    // Sorting before cutting makes the choice the same in every reading, whichever order the
    // threads found them in.
    marks.truncate(MOST);
    marks
}

fn collect_site_package_markers(
    file_system: &dyn ReadOnlyFileSystem,
    environment: &Path,
    path: &str,
    marks: &mut Vec<InstalledPackageMarker>,
) {
    // The layout of venv on POSIX: `lib/pythonX.Y/site-packages`.
    for version in entry_names_in_folder(file_system, &environment.join("lib")).unwrap_or_default()
    {
        let below = format!("lib/{}/site-packages", version.to_string_lossy());
        // Python writes `__pycache__` at the first import, which is no change of the packages.
        let is_package = |name: &str| name != "__pycache__";
        marks.extend(installed_package_marker_of_folder(
            file_system,
            &environment.join(&below),
            &format!("{path}/{below}"),
            is_package,
        ));
    }
}

fn hash_file_as_package_marker(
    file_system: &dyn ReadOnlyFileSystem,
    full: &Path,
    path: &str,
) -> Option<InstalledPackageMarker> {
    let mut bytes = Vec::new();
    let opened = file_system
        // Links are followed: packages may be linked from another checkout, and the check reads the
        // target.
        .open_file_for_reading(full, SymlinkMode::Follow)
        .ok()?;
    opened.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(InstalledPackageMarker {
        path: path.to_owned(),
        digest: Digest::hash_bytes(&bytes),
    })
}

/// Makes a marker of the names in a folder. Times are left out: installing a package again changes
/// them and nothing else.
fn installed_package_marker_of_folder(
    file_system: &dyn ReadOnlyFileSystem,
    full: &Path,
    path: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<InstalledPackageMarker> {
    let listed = entry_names_in_folder(file_system, full)?;
    let names = listed
        .iter()
        .map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| counts(name)).collect();
    // File systems list in any order.
    names.sort_unstable();
    Some(InstalledPackageMarker {
        path: path.to_owned(),
        digest: Digest::hash_parts(names.iter().map(String::as_bytes)),
    })
}

/// Returns the names in a folder as far as they can be listed; `None` if there is no folder.
fn entry_names_in_folder(
    file_system: &dyn ReadOnlyFileSystem,
    folder: &Path,
) -> Option<Vec<OsString>> {
    let mut names = Vec::new();
    let mut folder = file_system.open_folder_for_listing(folder).ok()?;
    let _ = folder.for_each_folder_entry(&mut |name, _| names.push(name.to_owned()));
    Some(names)
}
