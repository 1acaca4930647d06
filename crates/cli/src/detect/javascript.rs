//! JavaScript and TypeScript: the scripts of package.json, by the package manager whose lock
//! file is there.

use serde_json::Value;

use super::tree::Tree;
use super::{Family, Found, Hit, Kind};

pub(super) const FAMILY: Family = Family { name: "js", look };

/// Names that scripts of a kind go by, the usual one first.
const SCRIPTS: &[(Kind, &[&str])] = &[
    (Kind::Tests, &["test"]),
    (Kind::Lint, &["lint"]),
    (
        Kind::Typecheck,
        &["typecheck", "type-check", "check-types", "types", "tsc"],
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

impl Manager {
    fn of(tree: &Tree, folder: &str, package: &Value) -> Self {
        let named = package.get("packageManager").and_then(Value::as_str);
        let named = named.and_then(|text| text.split('@').next());
        match named {
            Some("pnpm") => return Manager::Pnpm,
            Some("yarn") => return Manager::Yarn,
            Some("bun") => return Manager::Bun,
            _ => {}
        }
        // A workspace's lock file lies above its members.
        let mut place = Some(folder);
        while let Some(folder) = place {
            for (manager, files) in [
                (
                    Manager::Pnpm,
                    &["pnpm-lock.yaml", "pnpm-workspace.yaml"][..],
                ),
                (Manager::Yarn, &["yarn.lock"]),
                (Manager::Bun, &["bun.lock", "bun.lockb"]),
                (Manager::Npm, &["package-lock.json"]),
            ] {
                if tree.first(folder, files).is_some() {
                    return manager;
                }
            }
            place = match folder.rsplit_once('/') {
                Some((above, _)) => Some(above),
                None if folder.is_empty() => None,
                None => Some(""),
            };
        }
        Manager::Npm
    }

    fn script(self, name: &str) -> String {
        match (self, name) {
            (Manager::Npm, "test") => "npm test".to_owned(),
            (Manager::Npm, _) => format!("npm run {name}"),
            (Manager::Pnpm, "test") => "pnpm test".to_owned(),
            (Manager::Pnpm, _) => format!("pnpm run {name}"),
            (Manager::Yarn, _) => format!("yarn run {name}"),
            (Manager::Bun, _) => format!("bun run {name}"),
        }
    }

    /// The script of every member of a workspace that has one.
    fn everywhere(self, name: &str) -> Option<String> {
        match self {
            Manager::Npm => Some(format!("npm run {name} --workspaces --if-present")),
            Manager::Pnpm => Some(format!("pnpm -r --if-present run {name}")),
            Manager::Bun => Some(format!("bun run --filter '*' {name}")),
            // Classic and berry have no form in common.
            Manager::Yarn => None,
        }
    }
}

fn look(tree: &Tree, folder: &str) -> Option<Found> {
    let package: Value = serde_json::from_str(tree.text(folder, "package.json")).ok()?;
    let manager = Manager::of(tree, folder, &package);
    let workspace = package.get("workspaces").is_some() || tree.has(folder, "pnpm-workspace.yaml");
    let members: Vec<Value> = tree
        .texts_below(folder)
        .filter(|(file, _)| workspace && file.ends_with("/package.json"))
        .filter_map(|(_, text)| serde_json::from_str(text).ok())
        .collect();
    let mut hits = Vec::new();
    for (kind, names) in SCRIPTS {
        if let Some(name) = names.iter().find(|name| is_check(&package, name)) {
            let why = format!("script {name} of package.json");
            hits.push(Hit::new(*kind, manager.script(name), why));
            continue;
        }
        let within = names
            .iter()
            .find(|name| members.iter().any(|member| is_check(member, name)));
        if let Some(name) = within
            && let Some(run) = manager.everywhere(name)
        {
            let why = format!("script {name} of the workspace's packages");
            hits.push(Hit::new(*kind, run, why));
        }
    }
    if !hits.iter().any(|hit| hit.kind == Kind::Typecheck)
        && tree.has(folder, "tsconfig.json")
        && depends_on(&package, "typescript")
    {
        let run = match manager {
            Manager::Npm => "npx --no-install tsc --noEmit",
            Manager::Pnpm => "pnpm exec tsc --noEmit",
            Manager::Yarn => "yarn run tsc --noEmit",
            Manager::Bun => "bunx --no-install tsc --noEmit",
        };
        hits.push(Hit::new(Kind::Typecheck, run, "tsconfig.json"));
    }
    if !hits.iter().any(|hit| hit.kind == Kind::Tests)
        && manager == Manager::Bun
        && tree.below(folder).any(is_bun_test)
    {
        hits.push(Hit::new(Kind::Tests, "bun test", "*.test.* files"));
    }
    let text = tree.text(folder, "package.json");
    for hit in &mut hits {
        // What is installed above the folder, or linked from beside it, is an input as well.
        hit.reaches_out = text.contains("workspace:") || text.contains(":../");
    }
    let covers = hits.iter().any(|hit| hit.kind == Kind::Tests);
    Some(Found { hits, covers })
}

/// A script that looks and changes nothing: not npm's stub, nothing that waits for changes or
/// mends what it finds.
fn is_check(package: &Value, name: &str) -> bool {
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

fn depends_on(package: &Value, name: &str) -> bool {
    ["dependencies", "devDependencies"].iter().any(|table| {
        package
            .get(table)
            .is_some_and(|table| table.get(name).is_some())
    })
}

fn is_bun_test(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let code = [".ts", ".tsx", ".js", ".jsx", ".mjs"]
        .iter()
        .any(|ending| name.ends_with(ending));
    code && (name.contains(".test.") || name.contains("_test.") || name.contains(".spec."))
}
