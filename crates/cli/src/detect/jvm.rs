//! Detects tests of Gradle and Maven, run through the repo's own wrapper where it has one.

use super::repo_files::RepoFilesForDetection;
use super::{CheckDetectedInFolder, DetectedCheckPurpose, FolderDetectedChecks, ToolchainDetector};

pub(super) const FAMILY: ToolchainDetector = ToolchainDetector {
    name: "jvm",
    detect: detect_jvm_checks,
};

const GRADLE: &[&str] = &[
    "settings.gradle",
    "settings.gradle.kts",
    "build.gradle",
    "build.gradle.kts",
];

fn detect_jvm_checks(tree: &RepoFilesForDetection, folder: &str) -> Option<FolderDetectedChecks> {
    let (wrapper, program, arguments, why) =
        if let Some(file) = tree.first_present_file(folder, GRADLE) {
            ("gradlew", "gradle", "test", file)
        } else if tree.has_file(folder, "pom.xml") {
            ("mvnw", "mvn", "-B test", "pom.xml")
        } else {
            return None;
        };
    // The wrapper pins the tool's version, so it is preferred to one on the PATH.
    let run = if tree.has_file(folder, wrapper) {
        format!("./{wrapper} {arguments}")
    } else {
        format!("{program} {arguments}")
    };
    let mut hit = CheckDetectedInFolder::new(DetectedCheckPurpose::Tests, run, why);
    hit.timeout = Some("20m");
    Some(FolderDetectedChecks {
        checks: vec![hit],
        covers_subfolders: true,
    })
}
