//! Detects which checks a repo has already, from its manifests and test files. It looks and never
//! runs anything. There is one file per family of tools; a new one is one file and one line in
//! [`FAMILIES`].

mod cargo;
mod dotnet;
mod go;
mod javascript;
mod jvm;
mod python;
mod recipes;
mod render;
mod repo_files;
#[cfg(test)]
mod tests;

pub(crate) use render::{PlannedInitCheck, render_starter_config};
pub(crate) use repo_files::RepoFilesForDetection;

use crate::shell::quote_shell_word;

/// The kind of a check, which is also its name where it is the only one of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DetectedCheckPurpose {
    Tests,
    Lint,
    Typecheck,
}

impl DetectedCheckPurpose {
    fn as_str(self) -> &'static str {
        match self {
            DetectedCheckPurpose::Tests => "tests",
            DetectedCheckPurpose::Lint => "lint",
            DetectedCheckPurpose::Typecheck => "typecheck",
        }
    }
}

/// A check that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetectedCheck {
    /// Its name as a verifier.
    pub(crate) name: String,
    /// The command, for a shell in the repo's root.
    pub(crate) run: String,
    /// Globs of the files that it depends on; empty = the whole tree.
    pub(crate) inputs: Vec<String>,
    /// Its timeout, if not the default.
    pub(crate) timeout: Option<&'static str>,
    /// The program that has to be installed. A path is one of the repo's own.
    pub(crate) needs: String,
    /// What it was detected by, for a comment in the config.
    pub(crate) why: String,
}

/// What a family finds in one folder.
#[derive(Debug, Default)]
struct FolderDetectedChecks {
    checks: Vec<CheckDetectedInFolder>,
    /// Manifests of the same family further down belong to this one.
    covers_subfolders: bool,
}

/// One check of one folder.
#[derive(Debug)]
struct CheckDetectedInFolder {
    kind: DetectedCheckPurpose,
    run: String,
    program: String,
    why: String,
    timeout: Option<&'static str>,
    /// It reads files outside of its folder.
    reaches_out: bool,
}

impl CheckDetectedInFolder {
    /// `run` begins with the program that it needs.
    fn new(kind: DetectedCheckPurpose, run: impl Into<String>, why: impl Into<String>) -> Self {
        let run = run.into();
        let needs = run.split(' ').next().unwrap_or_default().to_owned();
        Self {
            kind,
            run,
            program: needs,
            why: why.into(),
            timeout: None,
            reaches_out: false,
        }
    }
}

/// A family of tools: its name, and what it finds in a folder; `None` if the folder has no manifest
/// of the family.
struct ToolchainDetector {
    name: &'static str,
    detect: fn(&RepoFilesForDetection, &str) -> Option<FolderDetectedChecks>,
}

/// All families. Recipes are last: they count where nothing else was found.
const FAMILIES: &[ToolchainDetector] = &[
    cargo::FAMILY,
    javascript::FAMILY,
    python::FAMILY,
    go::FAMILY,
    jvm::FAMILY,
    dotnet::FAMILY,
    recipes::FAMILY,
];

/// Returns the checks of a tree: of its root, and of projects up to two levels down.
pub(crate) fn detect_checks(tree: &RepoFilesForDetection) -> Vec<DetectedCheck> {
    let mut placed: Vec<(&'static str, String, CheckDetectedInFolder)> = Vec::new();
    for family in FAMILIES {
        // Folders come from the root down, so a folder that covers others is seen before them. Each
        // family has its own list: a Python project inside of a Rust workspace is no part of it.
        let mut covered: Vec<String> = Vec::new();
        for folder in tree.folders_down_two_levels() {
            let below =
                |above: &String| above.is_empty() || folder.starts_with(&format!("{above}/"));
            if covered.iter().any(below) {
                continue;
            }
            let Some(found) = (family.detect)(tree, &folder) else {
                continue;
            };
            if found.covers_subfolders {
                covered.push(folder.clone());
            }
            for hit in found.checks {
                // A recipe that wraps what was found already would run it twice.
                let known = |(_, place, other): &(&str, String, CheckDetectedInFolder)| {
                    other.kind == hit.kind
                        && (*place == folder
                            || place.starts_with(&format!("{folder}/"))
                            || folder.is_empty())
                };
                if family.name != recipes::FAMILY.name || !placed.iter().any(known) {
                    placed.push((family.name, folder.clone(), hit));
                }
            }
        }
    }
    name_detected_checks(placed)
}

/// Names the checks: `tests`, or `api-tests` for the folder `api`, or `rust-tests` where a root has
/// several.
fn name_detected_checks(
    placed: Vec<(&'static str, String, CheckDetectedInFolder)>,
) -> Vec<DetectedCheck> {
    let alone = |folder: &str, kind: DetectedCheckPurpose| {
        let same = |(_, place, hit): &&(&str, String, CheckDetectedInFolder)| {
            place == folder && hit.kind == kind
        };
        placed.iter().filter(same).count() == 1
    };
    let mut checks: Vec<DetectedCheck> = Vec::new();
    let names: Vec<String> = placed
        .iter()
        .map(|(family, folder, hit)| {
            let mut parts = Vec::new();
            if !folder.is_empty() {
                parts.push(verifier_name_part_for_folder(folder));
            }
            if !alone(folder, hit.kind) {
                parts.push((*family).to_owned());
            }
            parts.push(hit.kind.as_str().to_owned());
            parts.join("-")
        })
        .collect();
    for ((_, folder, hit), name) in placed.into_iter().zip(names) {
        // Two folders can give the same name, as `a/b` and `a-b` do.
        let taken = |name: &str| checks.iter().any(|check| check.name == name);
        let mut candidates = (2..).map(|number| format!("{name}-{number}"));
        let name = match taken(&name) {
            true => candidates.find(|name| !taken(name)).unwrap_or_default(),
            false => name.clone(),
        };
        let quoted = quote_shell_word(&folder);
        checks.push(DetectedCheck {
            name,
            run: if folder.is_empty() {
                hit.run
            } else {
                format!("cd {quoted} && {}", hit.run)
            },
            // Inputs that are too narrow would keep an outdated pass alive, so in doubt the whole
            // tree counts.
            inputs: if folder.is_empty() || hit.reaches_out || folder.contains(GLOB) {
                Vec::new()
            } else {
                vec![format!("{folder}/**")]
            },
            timeout: hit.timeout,
            // A path such as `./gradlew` is relative to the folder, a bare name is looked up on the
            // PATH.
            needs: match hit.program.contains('/') {
                true => repo_files::join_path(&folder, hit.program.trim_start_matches("./")),
                false => hit.program,
            },
            why: if folder.is_empty() {
                hit.why
            } else {
                format!("{} in {folder}", hit.why)
            },
        });
    }
    checks
}

/// Characters that mean something in a glob. A folder with one is not scoped at all.
const GLOB: [char; 6] = ['*', '?', '[', ']', '{', '\\'];

/// Returns a folder as a part of a verifier's name.
fn verifier_name_part_for_folder(folder: &str) -> String {
    let word = |c: char| {
        if c.is_alphanumeric() || matches!(c, '_' | '.') {
            c
        } else {
            '-'
        }
    };
    folder
        .chars()
        .map(word)
        .collect::<String>()
        .trim_matches(['-', '.'])
        .to_owned()
}
