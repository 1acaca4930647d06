//! Paths that cannot leave the root: plain names between slashes, no `.`, no `..`, no
//! beginning of a disk, nothing of git's own.

use std::fmt;

/// A path below the root. It names no link as far as it was walked when it was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathBelowRoot(Vec<String>);

impl PathBelowRoot {
    /// The root itself.
    pub fn tree_root_path() -> Self {
        Self::default()
    }

    /// Reads a path that is written as [`fmt::Display`] writes it; `None` for any other, so that
    /// what comes back from a file cannot lead out.
    pub fn parse_path_inside_tree(text: &str) -> Option<Self> {
        let parts: Vec<String> = match text {
            "" => Vec::new(),
            text => text.split('/').map(str::to_owned).collect(),
        };
        parts
            .iter()
            .all(|part| is_portable_file_name(part))
            .then_some(Self(parts))
    }

    /// Its names, from the root on.
    pub fn path_components(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Its folder and its last name; `None` for the root.
    pub fn parent_and_name(&self) -> Option<(PathBelowRoot, &str)> {
        let (last, before) = self.0.split_last()?;
        Some((PathBelowRoot(before.to_vec()), last))
    }

    /// Whether it is `folder`, or lies in it.
    pub fn is_at_or_below_folder(&self, folder: &PathBelowRoot) -> bool {
        self.0.starts_with(&folder.0)
    }

    /// Whether a name of it is git's own, however it is spelled.
    pub fn has_dot_git_component(&self) -> bool {
        self.0.iter().any(|name| is_dot_git_spelling(name))
    }

    /// The same path where upper and lower case are one.
    pub(crate) fn lowercase_path(&self) -> Self {
        Self(self.0.iter().map(|name| name.to_lowercase()).collect())
    }

    pub(crate) fn push_path_component(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    pub(crate) fn pop_path_name(&mut self) -> bool {
        self.0.pop().is_some()
    }
}

impl fmt::Display for PathBelowRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

/// A name that every system takes for one name in a folder.
pub(crate) fn is_portable_file_name(name: &str) -> bool {
    let special = matches!(name, "" | "." | "..") || name.contains(['/', '\0']);
    let on_windows = cfg!(windows) && name.contains(['\\', ':']);
    !special && !on_windows
}

/// `.git`, and what some file system takes for it: other case, blanks and dots behind it
/// (Windows), its short name there, characters that macOS passes over, a stream of it.
fn is_dot_git_spelling(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|char| {
            !matches!(char, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
        })
        .flat_map(char::to_lowercase)
        .collect();
    let plain = plain.split(':').next().unwrap_or_default();
    let plain = plain.trim_end_matches(['.', ' ']);
    plain == ".git" || plain == "git~1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_cannot_lead_out() {
        for text in ["..", "a/../b", "/a", "a//b", "a/", ".", "a/.", "a\0b"] {
            assert_eq!(
                PathBelowRoot::parse_path_inside_tree(text),
                None,
                "{text:?}"
            );
        }
        for text in ["", "a", "a/b", ".hidden", "..a", " a "] {
            let path = PathBelowRoot::parse_path_inside_tree(text).map(|path| path.to_string());
            assert_eq!(path.as_deref(), Some(text));
        }
    }

    #[test]
    fn git_however_it_is_spelled() {
        let in_git = |text: &str| {
            PathBelowRoot::parse_path_inside_tree(text)
                .is_some_and(|path| path.has_dot_git_component())
        };
        for text in [
            ".git",
            ".git/hooks/pre-commit",
            "sub/.GIT/config",
            ".Git ",
            ".git.",
            ".g\u{200c}it/config",
            "GIT~1/config",
            ".git::$INDEX_ALLOCATION/x",
        ] {
            assert!(in_git(text), "{text:?}");
        }
        for text in [".gitignore", ".github/x", "git", "a.git/x"] {
            assert!(!in_git(text), "{text:?}");
        }
    }
}
