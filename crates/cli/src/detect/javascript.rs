//! Detects checks of JavaScript and TypeScript: the scripts of package.json, run by the package
//! manager whose lock file is there.

use serde_json::Value;

use super::repo_files::RepoFilesForDetection;
use super::{CheckDetectedInFolder, DetectedCheckPurpose, FolderDetectedChecks, ToolchainDetector};

pub(super) const FAMILY: ToolchainDetector = ToolchainDetector {
    name: "js",
    detect: detect_javascript_checks,
};

/// Usual names of scripts of each kind, the most usual first.
const SCRIPTS: &[(DetectedCheckPurpose, &[&str])] = &[
    (DetectedCheckPurpose::Tests, &["test"]),
    (DetectedCheckPurpose::Lint, &["lint"]),
    (
        DetectedCheckPurpose::Typecheck,
        &["typecheck", "type-check", "check-types", "types", "tsc"],
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

impl PackageManager {
    fn detect_package_manager(tree: &RepoFilesForDetection, folder: &str, package: &Value) -> Self {
        let named = package.get("packageManager").and_then(Value::as_str);
        let named = named.and_then(|text| text.split('@').next());
        match named {
            // The field `packageManager` is a declaration and beats lock files, of which an old one
            // may be left over.
            Some("pnpm") => return PackageManager::Pnpm,
            Some("yarn") => return PackageManager::Yarn,
            Some("bun") => return PackageManager::Bun,
            _ => {}
        }
        // A workspace's lock file lies above its members.
        let mut place = Some(folder);
        while let Some(folder) = place {
            for (manager, files) in [
                (
                    PackageManager::Pnpm,
                    &["pnpm-lock.yaml", "pnpm-workspace.yaml"][..],
                ),
                (PackageManager::Yarn, &["yarn.lock"]),
                (PackageManager::Bun, &["bun.lock", "bun.lockb"]),
                (PackageManager::Npm, &["package-lock.json"]),
            ] {
                if tree.first_present_file(folder, files).is_some() {
                    return manager;
                }
            }
            place = match folder.rsplit_once('/') {
                Some((above, _)) => Some(above),
                None if folder.is_empty() => None,
                None => Some(""),
            };
        }
        PackageManager::Npm
    }

    fn package_script_command(self, name: &str) -> String {
        match (self, name) {
            (PackageManager::Npm, "test") => "npm test".to_owned(),
            (PackageManager::Npm, _) => format!("npm run {name}"),
            (PackageManager::Pnpm, "test") => "pnpm test".to_owned(),
            (PackageManager::Pnpm, _) => format!("pnpm run {name}"),
            (PackageManager::Yarn, _) => format!("yarn run {name}"),
            (PackageManager::Bun, _) => format!("bun run {name}"),
        }
    }

    /// Returns a command for the script of every member of a workspace that has one.
    fn script_command_for_all_workspaces(self, name: &str) -> Option<String> {
        match self {
            PackageManager::Npm => Some(format!("npm run {name} --workspaces --if-present")),
            PackageManager::Pnpm => Some(format!("pnpm -r --if-present run {name}")),
            PackageManager::Bun => Some(format!("bun run --filter '*' {name}")),
            // Yarn Classic and Yarn Berry have no form in common.
            PackageManager::Yarn => None,
        }
    }
}

fn detect_javascript_checks(
    tree: &RepoFilesForDetection,
    folder: &str,
) -> Option<FolderDetectedChecks> {
    let package: Value =
        serde_json::from_str(tree.project_file_text(folder, "package.json")).ok()?;
    let manager = PackageManager::detect_package_manager(tree, folder, &package);
    let workspace =
        package.get("workspaces").is_some() || tree.has_file(folder, "pnpm-workspace.yaml");
    let members: Vec<Value> = tree
        .file_texts_below_folder(folder)
        .filter(|(file, _)| workspace && file.ends_with("/package.json"))
        .filter_map(|(_, text)| serde_json::from_str(text).ok())
        .collect();
    let mut hits = Vec::new();
    for (kind, names) in SCRIPTS {
        // A script of the root comes first: in a workspace it usually runs the members' scripts
        // itself.
        if let Some(name) = names
            .iter()
            .find(|name| is_check_only_package_script(&package, name))
        {
            let why = format!("script {name} of package.json");
            hits.push(CheckDetectedInFolder::new(
                *kind,
                manager.package_script_command(name),
                why,
            ));
            continue;
        }
        let within = names.iter().find(|name| {
            members
                .iter()
                .any(|member| is_check_only_package_script(member, name))
        });
        if let Some(name) = within
            && let Some(run) = manager.script_command_for_all_workspaces(name)
        {
            let why = format!("script {name} of the workspace's packages");
            hits.push(CheckDetectedInFolder::new(*kind, run, why));
        }
    }
    if !hits
        .iter()
        .any(|hit| hit.kind == DetectedCheckPurpose::Typecheck)
        && tree.has_file(folder, "tsconfig.json")
        && depends_on_package(&package, "typescript")
    {
        let run = match manager {
            // `--no-install`: a check must not download a compiler of its own choice.
            PackageManager::Npm => "npx --no-install tsc --noEmit",
            PackageManager::Pnpm => "pnpm exec tsc --noEmit",
            PackageManager::Yarn => "yarn run tsc --noEmit",
            PackageManager::Bun => "bunx --no-install tsc --noEmit",
        };
        hits.push(CheckDetectedInFolder::new(
            DetectedCheckPurpose::Typecheck,
            run,
            "tsconfig.json",
        ));
    }
    if !hits.iter().any(|hit| hit.kind == DetectedCheckPurpose::Tests)
        // Only Bun has a test runner that needs no script.
        && manager == PackageManager::Bun
        && tree.files_below(folder).any(is_bun_test_file)
    {
        hits.push(CheckDetectedInFolder::new(
            DetectedCheckPurpose::Tests,
            "bun test",
            "*.test.* files",
        ));
    }
    let text = tree.project_file_text(folder, "package.json");
    for hit in &mut hits {
        // Packages that are installed above the folder, or linked from beside it, are inputs as
        // well.
        hit.reaches_out = text.contains("workspace:") || text.contains(":../");
    }
    let covers = hits
        .iter()
        .any(|hit| hit.kind == DetectedCheckPurpose::Tests);
    Some(FolderDetectedChecks {
        checks: hits,
        covers_subfolders: covers,
    })
}

/// Returns whether a script only looks: it is not npm's stub, does not wait for changes and does
/// not fix what it finds.
fn is_check_only_package_script(package: &Value, name: &str) -> bool {
    let script = package
        .pointer(&format!("/scripts/{name}"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    !script.trim().is_empty()
        && !script.contains("no test specified")
        && !script
            .split_whitespace()
            .any(|word| matches!(word, "--watch" | "--watchAll" | "-w" | "--fix" | "--write"))
}

fn depends_on_package(package: &Value, name: &str) -> bool {
    ["dependencies", "devDependencies"].iter().any(|table| {
        package
            .get(table)
            .is_some_and(|table| table.get(name).is_some())
    })
}

fn is_bun_test_file(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let code = [".ts", ".tsx", ".js", ".jsx", ".mjs"]
        .iter()
        .any(|ending| name.ends_with(ending));
    code && (name.contains(".test.") || name.contains("_test.") || name.contains(".spec."))
}
