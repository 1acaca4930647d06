//! Resolves paths in output: made relative to the root, `/`-separated, and believed only if the
//! file exists. The output of a check names many things that merely look like paths.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Lookups that are cached: an output names the same few files again and again.
const REMEMBERED: usize = 4_096;

pub(crate) struct FindingPathResolver {
    root: PathBuf,
    real_root: PathBuf,
    known: BTreeMap<String, Option<String>>,
}

impl FindingPathResolver {
    pub(crate) fn new(root: &Path) -> Self {
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self {
            root: root.to_owned(),
            real_root,
            known: BTreeMap::new(),
        }
    }

    /// Returns the file of the tree that `text` names.
    pub(crate) fn tree_file_named_by_text(&mut self, text: &str) -> Option<String> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let found = self.resolve_printed_path_in_tree(text);
        if self.known.len() < REMEMBERED {
            self.known.insert(text.to_owned(), found.clone());
        }
        found
    }

    fn resolve_printed_path_in_tree(&self, text: &str) -> Option<String> {
        let path = Path::new(text.strip_prefix("file://").unwrap_or(text));
        let relative = if path.is_absolute() {
            // Tools print either the path they were started with or the real one: on macOS `/tmp`
            // is a link.
            path.strip_prefix(&self.root)
                .or_else(|_| path.strip_prefix(&self.real_root))
                .ok()?
        } else {
            path
        };
        let mut parts: Vec<&str> = Vec::new();
        for component in relative.components() {
            match component {
                Component::Normal(part) => parts.push(part.to_str()?),
                Component::CurDir => {}
                // A path that leaves the root and comes back is not worth believing.
                Component::ParentDir => {
                    // Resolved as text, not on disk: `..` after a symlink would lead elsewhere.
                    parts.pop()?;
                }
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        let relative = parts.join("/");
        (!relative.is_empty() && self.root.join(&relative).is_file()).then_some(relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_tree() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("src")).unwrap();
        std::fs::write(root.path().join("src/a.rs"), "").unwrap();
        let mut paths = FindingPathResolver::new(root.path());
        let mut check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                paths.tree_file_named_by_text(text).as_deref(),
                expected,
                "{text}"
            );
            assert_eq!(
                paths.tree_file_named_by_text(text).as_deref(),
                expected,
                "{text}, remembered"
            );
        };
        check("src/a.rs", Some("src/a.rs"));
        check("./src/../src/a.rs", Some("src/a.rs"));
        check(
            root.path().join("src/a.rs").to_str().unwrap(),
            Some("src/a.rs"),
        );
        check("src", None);
        check("src/b.rs", None);
        check("../src/a.rs", None);
        check("/etc/passwd", None);
        check("", None);
    }
}
