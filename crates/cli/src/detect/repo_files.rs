//! Reads what detection looks at: the names of a repo's files, and the text of those that matter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use checkrein_runtime::durable_file;
use ignore::WalkBuilder;

/// Levels of folders that are searched for files.
const MAX_DEPTH: usize = 6;
/// Files that are looked at; of a larger tree only a part is seen.
const MAX_FILES: usize = 50_000;
/// Largest manifest that is read, in bytes.
const MAX_FILE_SIZE: u64 = 512 * 1024;
/// Test files whose text is read.
const MAX_TEST_FILES: usize = 40;

/// Folders in which a manifest is somebody else's, or an example.
const SKIPPED_FOLDERS: &[&str] = &[
    "bench",
    "benches",
    "benchmarks",
    "build",
    "dist",
    "doc",
    "docs",
    "example",
    "examples",
    "fixtures",
    "fuzz",
    "node_modules",
    "out",
    "samples",
    "target",
    "template",
    "templates",
    "testdata",
    "third_party",
    "vendor",
];

/// Names of files, by their path from the root with `/`, and the text of some.
#[derive(Debug, Default)]
pub(crate) struct RepoFilesForDetection {
    files: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl RepoFilesForDetection {
    /// Reads a folder on disk. What git ignores is left out.
    pub(crate) fn read_files_to_detect_checks(root: &Path) -> Self {
        let mut tree = Self::default();
        let walk = WalkBuilder::new(root)
            .max_depth(Some(MAX_DEPTH))
            // Hidden files are wanted, such as `.github/workflows` and `.ruff.toml`. Ignore files
            // count without a `.git` too, so that a folder before its first `git init` is not read
            // with all its build output.
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| {
                entry.file_name() != ".git" && entry.file_name() != "node_modules"
            })
            .build();
        let mut looked_into = 0;
        // A folder that cannot be read is skipped: `init` shows what it found, and a person can add
        // the rest.
        for entry in walk.filter_map(Result::ok).take(MAX_FILES) {
            let Ok(path) = entry.path().strip_prefix(root) else {
                continue;
            };
            let Some(name) = to_slash_path(path).filter(|name| !name.is_empty()) else {
                continue;
            };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let test = is_python_test_file(&name);
            looked_into += usize::from(test);
            if (is_manifest_or_ci_file(&name) || test && looked_into <= MAX_TEST_FILES)
                && let Ok(Some(text)) =
                    durable_file::read_limited_text_file(entry.path(), MAX_FILE_SIZE)
            {
                tree.texts.insert(name.clone(), text);
            }
            tree.files.insert(name);
        }
        // Virtual environments are ignored by git, but show how Python is started here.
        for folder in tree.folders_down_two_levels() {
            for name in [
                ".venv/bin/python",
                ".venv/Scripts/python.exe",
                "venv/bin/python",
            ] {
                let file = join_path(&folder, name);
                if root.join(&file).exists() {
                    tree.files.insert(file);
                }
            }
        }
        tree
    }

    /// Creates a tree from paths and texts.
    #[cfg(test)]
    pub(crate) fn repo_files_from_texts(files: &[(&str, &str)]) -> Self {
        Self {
            files: files.iter().map(|(name, _)| (*name).to_owned()).collect(),
            texts: files
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect(),
        }
    }

    /// Returns whether a folder has this file.
    pub(crate) fn has_file(&self, folder: &str, name: &str) -> bool {
        self.files.contains(&join_path(folder, name))
    }

    /// Returns the first of these files that a folder has.
    pub(crate) fn first_present_file<'a>(
        &self,
        folder: &str,
        names: &[&'a str],
    ) -> Option<&'a str> {
        names
            .iter()
            .copied()
            .find(|name| self.has_file(folder, name))
    }

    /// Returns the text of a folder's file; empty if there is none.
    pub(crate) fn project_file_text(&self, folder: &str, name: &str) -> &str {
        self.texts
            .get(&join_path(folder, name))
            .map_or("", String::as_str)
    }

    /// Returns the files below a folder, by their path from it.
    pub(crate) fn files_below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let prefix = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        self.files
            .iter()
            .filter_map(move |file| file.strip_prefix(prefix.as_str()))
    }

    /// Returns the texts below a folder, by their path from it.
    pub(crate) fn file_texts_below_folder(
        &self,
        folder: &str,
    ) -> impl Iterator<Item = (&str, &str)> {
        let prefix = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        self.texts.iter().filter_map(move |(file, text)| {
            Some((file.strip_prefix(prefix.as_str())?, text.as_str()))
        })
    }

    /// Returns the root, then folders one level down, then two.
    pub(crate) fn folders_down_two_levels(&self) -> Vec<String> {
        // The depth is the first part of the key, which sorts folders above others before them.
        let mut folders = BTreeSet::from([(0, String::new())]);
        for file in &self.files {
            let parts: Vec<&str> = file.split('/').collect();
            for depth in 1..=2.min(parts.len().saturating_sub(1)) {
                let folder: Vec<&str> = parts.iter().take(depth).copied().collect();
                let strange = |part: &&str| part.starts_with('.') || SKIPPED_FOLDERS.contains(part);
                if !folder.iter().any(strange) {
                    folders.insert((depth, folder.join("/")));
                }
            }
        }
        folders.into_iter().map(|(_, folder)| folder).collect()
    }
}

/// Joins a path to a folder, `""` being the root.
pub(super) fn join_path(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// Returns whether pytest or unittest would collect the file.
pub(super) fn is_python_test_file(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.ends_with(".py") && (name.starts_with("test") || name.ends_with("_test.py"))
}

/// Returns whether a file's text can say something about checks.
fn is_manifest_or_ci_file(file: &str) -> bool {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let lower = name.to_lowercase();
    matches!(
        lower.as_str(),
        "cargo.toml"
            | "clippy.toml"
            | ".clippy.toml"
            | "package.json"
            | "pnpm-workspace.yaml"
            | "pyproject.toml"
            | "setup.cfg"
            | "setup.py"
            | "tox.ini"
            | "pytest.ini"
            | "mypy.ini"
            | "go.mod"
            | "go.work"
            | "makefile"
            | "gnumakefile"
            | "justfile"
            | ".justfile"
    ) || lower.starts_with("requirements") && lower.ends_with(".txt")
        || lower.ends_with("proj") && lower.contains('.')
        || folder.ends_with(".github/workflows")
}

fn to_slash_path(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/"))
}
