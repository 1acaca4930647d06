//! Detects checks of make and just: targets that are named for what they check.

use super::repo_files::RepoFilesForDetection;
use super::{CheckDetectedInFolder, DetectedCheckPurpose, FolderDetectedChecks, ToolchainDetector};

pub(super) const FAMILY: ToolchainDetector = ToolchainDetector {
    name: "recipes",
    detect: detect_make_and_just_checks,
};

fn detect_make_and_just_checks(
    tree: &RepoFilesForDetection,
    folder: &str,
) -> Option<FolderDetectedChecks> {
    let files = [
        ("just", ["justfile", "Justfile", ".justfile"]),
        ("make", ["GNUmakefile", "makefile", "Makefile"]),
    ];
    let (program, file) = files
        .iter()
        .find_map(|(program, names)| Some((*program, tree.first_present_file(folder, names)?)))?;
    let text = tree.project_file_text(folder, file);
    let has = |target: &str| text.lines().any(|line| line_defines_target(line, target));
    let wanted = [
        (DetectedCheckPurpose::Tests, &["test", "tests", "check"][..]),
        (DetectedCheckPurpose::Lint, &["lint"]),
        (DetectedCheckPurpose::Typecheck, &["typecheck"]),
    ];
    let hits = wanted
        .iter()
        .filter_map(|(kind, targets)| {
            let target = targets.iter().find(|target| has(target))?;
            Some(CheckDetectedInFolder::new(
                *kind,
                format!("{program} {target}"),
                format!("target {target} of {file}"),
            ))
        })
        .map(|mut hit| {
            // Only its author knows what a recipe reads.
            hit.reaches_out = true;
            hit
        })
        .collect();
    Some(FolderDetectedChecks {
        checks: hits,
        covers_subfolders: true,
    })
}

/// Returns whether a line defines a target: `test:`, `test: build`, `a test b:` of make; `test
/// *args:` of just. `test := x` does not.
fn line_defines_target(line: &str, target: &str) -> bool {
    // Recipe lines are indented, comments begin with `#`, and `.PHONY: test` only names a target.
    if line.starts_with([' ', '\t', '#', '.']) {
        return false;
    }
    let Some((head, rest)) = line.split_once(':') else {
        return false;
    };
    let named = head
        .trim_start_matches('@')
        .split_whitespace()
        .any(|word| word == target);
    named && !head.contains('=') && !rest.starts_with('=') && !rest.starts_with(":=")
}
