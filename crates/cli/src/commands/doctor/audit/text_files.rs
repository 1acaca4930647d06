//! Reads the files of a folder that may say something about an agent: few and small ones, and none
//! of other people's code.

use std::path::{Path, PathBuf};

use checkrein_runtime::durable_file;

/// Folders of other people's code, of build results, and of files that only look like an agent.
const SKIPPED_FOLDERS: &[&str] = &[
    "test",
    "tests",
    "__tests__",
    "fixtures",
    "samples",
    "docs",
    "node_modules",
    "target",
    "vendor",
    "dist",
    "build",
    "site-packages",
    "__pycache__",
];
const MAX_FILES: usize = 2_000;
const MAX_DEPTH: usize = 5;
const MAX_BYTES: u64 = 256 * 1024;

/// A file, relative to the folder with `/`, and its text.
pub(super) struct AuditedTextFile {
    pub(super) name: String,
    pub(super) text: String,
}

/// Reads the files with one of these endings, sorted by name.
pub(super) fn read_text_files_with_endings(root: &Path, endings: &[&str]) -> Vec<AuditedTextFile> {
    let mut files = Vec::new();
    collect_file_paths_recursively(root, MAX_DEPTH, &mut files);
    // Sorted before the limit applies, so that the same files are read each time.
    files.sort();
    files
        .into_iter()
        .filter(|file| {
            file.extension()
                .and_then(|ending| ending.to_str())
                .is_some_and(|ending| endings.contains(&ending))
        })
        .take(MAX_FILES)
        .filter_map(|file| {
            let name = file.strip_prefix(root).ok()?;
            let name = name.to_string_lossy().replace('\\', "/");
            let text = durable_file::read_limited_text_file(&file, MAX_BYTES).ok()??;
            Some(AuditedTextFile { name, text })
        })
        .collect()
}

fn collect_file_paths_recursively(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    // A folder that cannot be read is skipped: the audit informs and guards nothing.
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        // The walk has a bound of its own, because most files have other endings.
        if files.len() >= 10 * MAX_FILES {
            return;
        }
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // A link may lead anywhere, and a hidden folder belongs to a tool.
        match entry.file_type() {
            Ok(kind) if kind.is_file() => files.push(path),
            Ok(kind)
                if kind.is_dir()
                    && depth > 0
                    && !name.starts_with('.')
                    && !SKIPPED_FOLDERS.contains(&&*name) =>
            {
                collect_file_paths_recursively(&path, depth - 1, files);
            }
            _ => {}
        }
    }
}
