//! Defines paths that cannot leave the root: plain names between slashes, without `.`, `..` and
//! drive prefixes. Whether a path belongs to git is a separate question.

use std::fmt;

/// A path below the root. When it was made, none of its steps was a link, as far as they were
/// checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathBelowRoot(Vec<String>);

impl PathBelowRoot {
    /// The root itself.
    pub fn tree_root_path() -> Self {
        Self::default()
    }

    /// Parses a path as [`fmt::Display`] writes it; `None` for any other, so that a path read from
    /// a file cannot lead out of the root.
    pub fn parse_path_inside_tree(text: &str) -> Option<Self> {
        let parts: Vec<String> = match text {
            "" => Vec::new(),
            text => text.split('/').map(str::to_owned).collect(),
        };
        parts
            .iter()
            .all(|part| is_single_file_name(part))
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

    /// Returns whether one of its names is `.git`, in any spelling.
    pub fn has_dot_git_component(&self) -> bool {
        self.0.iter().any(|name| is_dot_git_spelling(name))
    }

    /// Returns the path in lower case, for trees that ignore case.
    pub(crate) fn lowercase_path(&self) -> Self {
        Self(self.0.iter().map(|name| name.to_lowercase()).collect())
    }

    pub(crate) fn push_path_component(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    pub(crate) fn pop_last_component(&mut self) -> bool {
        self.0.pop().is_some()
    }
}

impl fmt::Display for PathBelowRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

/// Returns whether a name is a single file name on this system.
pub(crate) fn is_single_file_name(name: &str) -> bool {
    let special = matches!(name, "" | "." | "..") || name.contains(['/', '\0']);
    // `\` separates names and `:` names drives and streams there; elsewhere both are ordinary.
    let on_windows = cfg!(windows) && name.contains(['\\', ':']);
    !special && !on_windows
}

/// Returns whether a name is `.git` or a spelling that some file system takes for it: another case,
/// trailing blanks and dots (Windows), its Windows short name, characters that macOS ignores, and a
/// stream of it.
fn is_dot_git_spelling(name: &str) -> bool {
    let plain: String = name
        .chars()
        // HFS+ ignores these characters in names (CVE-2014-9390 in git).
        .filter(|char| {
            !matches!(char, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
        })
        .flat_map(char::to_lowercase)
        .collect();
    let plain = plain.split(':').next().unwrap_or_default();
    let plain = plain.trim_end_matches(['.', ' ']);
    // All systems refuse all spellings: a tree may be on a foreign file system.
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
