//! Detects Go checks: `go test` and `go vet`, or golangci-lint where it is configured.

use super::repo_files::RepoFilesForDetection;
use super::{CheckDetectedInFolder, DetectedCheckPurpose, FolderDetectedChecks, ToolchainDetector};

pub(super) const FAMILY: ToolchainDetector = ToolchainDetector {
    name: "go",
    detect: detect_go_checks,
};

fn detect_go_checks(tree: &RepoFilesForDetection, folder: &str) -> Option<FolderDetectedChecks> {
    if !tree.has_file(folder, "go.mod") {
        return None;
    }
    let module = tree.project_file_text(folder, "go.mod");
    let linter = tree.first_present_file(
        folder,
        &[
            ".golangci.yml",
            ".golangci.yaml",
            ".golangci.toml",
            ".golangci.json",
        ],
    );
    let lint = match linter {
        Some(file) => {
            CheckDetectedInFolder::new(DetectedCheckPurpose::Lint, "golangci-lint run", file)
        }
        None => CheckDetectedInFolder::new(DetectedCheckPurpose::Lint, "go vet ./...", "go.mod"),
    };
    let mut hits = vec![
        CheckDetectedInFolder::new(DetectedCheckPurpose::Tests, "go test ./...", "go.mod"),
        lint,
    ];
    for hit in &mut hits {
        // A `replace` directive or a workspace reads modules outside of the folder.
        hit.reaches_out = module.contains("=> ../") || tree.has_file("", "go.work");
    }
    Some(FolderDetectedChecks {
        checks: hits,
        covers_subfolders: true,
    })
}
