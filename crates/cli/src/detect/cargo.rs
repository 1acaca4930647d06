//! Detects Rust checks: `cargo test`, and clippy where the project uses it already.

use super::repo_files::RepoFilesForDetection;
use super::{CheckDetectedInFolder, DetectedCheckPurpose, FolderDetectedChecks, ToolchainDetector};

pub(super) const FAMILY: ToolchainDetector = ToolchainDetector {
    name: "rust",
    detect: detect_cargo_checks,
};

fn detect_cargo_checks(tree: &RepoFilesForDetection, folder: &str) -> Option<FolderDetectedChecks> {
    if !tree.has_file(folder, "Cargo.toml") {
        return None;
    }
    let manifest = tree.project_file_text(folder, "Cargo.toml");
    let workspace = manifest
        .lines()
        .any(|line| line.trim() == "[workspace]" || line.trim().starts_with("[workspace."));
    let mut tests = CheckDetectedInFolder::new(
        DetectedCheckPurpose::Tests,
        if workspace {
            "cargo test --workspace"
        } else {
            "cargo test"
        },
        if workspace {
            "Cargo.toml, a workspace"
        } else {
            "Cargo.toml"
        },
    );
    // A path dependency beside the folder is an input that the folder's own glob would miss.
    tests.reaches_out = manifest.contains("\"../");
    let mut hits = vec![tests];
    // Without a sign, `-D warnings` would most likely fail on code that nobody has ever linted.
    if let Some(why) = sign_of_clippy_use(tree, folder, manifest) {
        let scope = if workspace { " --workspace" } else { "" };
        let run = format!("cargo clippy{scope} --all-targets -- -D warnings");
        let mut lint = CheckDetectedInFolder::new(DetectedCheckPurpose::Lint, run, why);
        // `cargo` alone may be installed without the component.
        lint.program = "cargo-clippy".to_owned();
        lint.reaches_out = manifest.contains("\"../");
        hits.push(lint);
    }
    Some(FolderDetectedChecks {
        checks: hits,
        covers_subfolders: true,
    })
}

/// Returns what shows that somebody keeps this code free of clippy's warnings.
fn sign_of_clippy_use(
    tree: &RepoFilesForDetection,
    folder: &str,
    manifest: &str,
) -> Option<String> {
    if let Some(file) = tree.first_present_file(folder, &["clippy.toml", ".clippy.toml"]) {
        return Some(file.to_owned());
    }
    if manifest.contains("lints.clippy]") {
        return Some("[lints.clippy] in Cargo.toml".to_owned());
    }
    tree.file_texts_below_folder("")
        .find(|(file, text)| {
            file.starts_with(".github/workflows/") && text.contains("cargo clippy")
        })
        .map(|(file, _)| format!("clippy in {file}"))
}
