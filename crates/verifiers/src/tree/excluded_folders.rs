//! Names the folders that are never part of what a verdict is about.

/// Caches and installed dependencies, at any depth. `target` is one too, beside a `Cargo.toml`.
/// Tracked files in them count nevertheless.
pub const CACHE_FOLDERS: &[&str] = &[
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".hypothesis",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    "__pycache__",
    "node_modules",
];

/// Version control's own, at any depth: a nested repository is plain files minus this.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".jj", ".svn"];

/// The folder of Checkrein's reports and logs, at the root only.
pub(crate) const OWN_FOLDER: &str = ".checkrein";

/// Whether this name is version control's. As a file, `.git` is a pointer to it.
pub(crate) fn is_version_control_name(name: &[u8]) -> bool {
    VERSION_CONTROL.iter().any(|known| known.as_bytes() == name)
}

/// Whether a folder of this name is a cache, given what stands beside it.
pub(crate) fn is_cache_folder(name: &[u8], beside_cargo_toml: impl FnOnce() -> bool) -> bool {
    CACHE_FOLDERS.iter().any(|known| known.as_bytes() == name)
        || name == b"target" && beside_cargo_toml()
}
