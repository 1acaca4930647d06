//! Detects .NET checks: `dotnet test` on a solution, or on a project that holds tests.

use super::repo_files::RepoFilesForDetection;
use super::{CheckDetectedInFolder, DetectedCheckPurpose, FolderDetectedChecks, ToolchainDetector};
use crate::shell::quote_shell_word;

pub(super) const FAMILY: ToolchainDetector = ToolchainDetector {
    name: "dotnet",
    detect: detect_dotnet_checks,
};

fn detect_dotnet_checks(
    tree: &RepoFilesForDetection,
    folder: &str,
) -> Option<FolderDetectedChecks> {
    let here = |endings: &[&str]| {
        let mut files = tree.files_below(folder).filter(|file| {
            let ending = file.rsplit('.').next().unwrap_or_default();
            !file.contains('/') && endings.contains(&ending)
        });
        files.next().map(str::to_owned)
    };
    let solution = here(&["sln", "slnx"]);
    let project = here(&["csproj", "fsproj", "vbproj"]);
    let file = solution.or(project)?;
    // A solution's projects lie below it; a project alone has to test by itself.
    let tests = tree.file_texts_below_folder(folder).any(|(file, text)| {
        file.ends_with("proj")
            && (text.contains("Microsoft.NET.Test.Sdk")
                || text.contains("MSTest.Sdk")
                || text.contains("TUnit"))
    });
    let hits = if tests {
        vec![CheckDetectedInFolder::new(
            DetectedCheckPurpose::Tests,
            format!("dotnet test {}", quote_shell_word(&file)),
            file,
        )]
    } else {
        Vec::new()
    };
    // Without tests here, a test project further down counts by itself.
    let covers = !hits.is_empty();
    Some(FolderDetectedChecks {
        checks: hits,
        covers_subfolders: covers,
    })
}
