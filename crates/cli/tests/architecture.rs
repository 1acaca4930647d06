//! The walls of the house, as tests: who may depend on whom, where printing lives, what
//! every file begins with. ARCHITECTURE.md says why each wall is there; a change that needs
//! one of these lists changed is a design decision, so say it in the same commit.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Package → packages of ours that it may name, for building, testing or anything else.
const ARROWS: &[(&str, &[&str])] = &[
    ("checkrein-core", &[]),
    ("checkrein-adapters", &["checkrein-core"]),
    ("checkrein-execpolicy", &["checkrein-core"]),
    ("checkrein-patch", &["checkrein-core"]),
    ("checkrein-redaction", &[]),
    ("checkrein-models", &["checkrein-core"]),
    (
        "checkrein-verifiers",
        // The last is for its tests: judges ask a model on loopback.
        &["checkrein-core", "checkrein-models", "checkrein-scripted"],
    ),
    ("checkrein-store", &["checkrein-core"]),
    ("checkrein-scripted", &[]),
    (
        "checkrein-runtime",
        &[
            "checkrein-core",
            "checkrein-execpolicy",
            "checkrein-patch",
            "checkrein-redaction",
            "checkrein-verifiers",
            "checkrein-store",
        ],
    ),
    // The façade speaks in the core's words and opens stores: the runtime's own interface
    // names both, so these two arrows hide nothing. Its tests ask a model on loopback.
    (
        "checkrein",
        &[
            "checkrein-scripted",
            "checkrein-runtime",
            "checkrein-models",
            "checkrein-core",
            "checkrein-store",
        ],
    ),
    // Never shipped: it stands in for the front doors and for the machine.
    (
        "checkrein-simulation",
        &[
            "checkrein-adapters",
            "checkrein-core",
            "checkrein-runtime",
            "checkrein-store",
            "checkrein-verifiers",
        ],
    ),
    (
        "checkrein-cli",
        &[
            "checkrein",
            "checkrein-adapters",
            "checkrein-core",
            "checkrein-execpolicy",
            "checkrein-models",
            "checkrein-patch",
            "checkrein-runtime",
            "checkrein-scripted",
            "checkrein-store",
            "checkrein-verifiers",
        ],
    ),
];

/// Heavy or worldly packages → the only packages of ours that may build on them.
/// `deny.toml` says the same to cargo-deny; this test needs no extra program.
const HOMES: &[(&str, &[&str])] = &[
    ("clap", &["checkrein-cli"]),
    ("ctrlc", &["checkrein-cli"]),
    ("diffy", &["checkrein-patch"]),
    ("indicatif", &["checkrein-cli"]),
    ("jsonschema", &["checkrein-verifiers"]),
    ("libc", &["checkrein-verifiers"]),
    ("pulldown-cmark", &["checkrein-verifiers"]),
    ("reqwest", &["checkrein-models"]),
    ("rmcp", &["checkrein-cli"]),
    ("rusqlite", &["checkrein-store"]),
    ("rustls", &["checkrein-models"]),
    ("starlark", &["checkrein-execpolicy"]),
    // The SDK of `checkrein mcp` runs on it; nothing else of the command does.
    ("tokio", &["checkrein-cli", "checkrein-models"]),
    // Our own config, and Codex's.
    ("toml", &["checkrein-adapters", "checkrein-runtime"]),
    ("tree-sitter", &["checkrein-execpolicy"]),
    ("tree-sitter-bash", &["checkrein-execpolicy"]),
];

/// Packages whose decisions depend on their arguments only, so that they build on nothing
/// that could bring the world in.
const PURE: &[(&str, &[&str])] = &[
    (
        "checkrein-core",
        &[
            "blake3",
            "memchr",
            "postcard",
            "serde",
            "serde_json",
            "thiserror",
            "xxhash-rust",
        ],
    ),
    (
        "checkrein-adapters",
        &[
            "regex",
            "regress",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "toml",
        ],
    ),
    (
        "checkrein-redaction",
        &["memchr", "regex", "serde", "serde_json"],
    ),
];

/// Files of shipped code that start programs. Each is a decision: what it starts must be what a
/// person named, or a part of Checkrein, and never what a repository's own settings name.
const STARTERS: &[&str] = &[
    "crates/cli/src/check_owner.rs",
    "crates/cli/src/commands/demo.rs",
    "crates/cli/src/commands/doctor/binary.rs",
    "crates/cli/src/commands/doctor/canary/mod.rs",
    "crates/cli/src/commands/doctor/mod.rs",
    "crates/cli/src/commands/doctor/shell.rs",
    "crates/cli/src/commands/mcp_proxy/mod.rs",
    "crates/cli/src/confine/mod.rs",
    "crates/cli/src/confine/namespace_exec.rs",
    "crates/cli/src/notify/command_environment.rs",
    "crates/cli/src/notify/mod.rs",
    "crates/models/src/api_key.rs",
    "crates/verifiers/src/command/process/mod.rs",
    "crates/verifiers/src/command/process/windows.rs",
    "crates/verifiers/src/plugin.rs",
];

/// Packages in the lock file, ours included.
const LOCK_BUDGET: usize = 450;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Name → (dependency, kind), for every package of the workspace.
fn packages() -> BTreeMap<String, Vec<(String, Option<String>)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let metadata: Value = serde_json::from_slice(&out.stdout).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            let dependencies = dependencies
                .iter()
                .map(|one| (text(&one["name"]).unwrap(), text(&one["kind"])))
                .collect();
            (text(&package["name"]).unwrap(), dependencies)
        })
        .collect()
}

/// Tracked files, and new ones that git would track; everything below the root outside
/// `target` where there is no git.
fn files() -> Vec<PathBuf> {
    let root = root();
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(&root)
        .output()
        .ok()
        .filter(|out| out.status.success() && !out.stdout.is_empty());
    let mut found: Vec<PathBuf> = match listed {
        Some(out) => String::from_utf8_lossy(&out.stdout)
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            .collect(),
        None => {
            let mut found = Vec::new();
            walk(&root, &root, &mut found);
            found
        }
    };
    // Deleted and not yet committed.
    found.retain(|file| root.join(file).is_file());
    found.sort();
    assert!(
        found.len() > 50,
        "found only {} files below {}",
        found.len(),
        root.display()
    );
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let hidden_or_built = matches!(entry.file_name().to_str(), Some(".git" | "target"));
        if path.is_dir() && !hidden_or_built {
            walk(root, &path, found);
        } else if path.is_file() {
            found.push(path.strip_prefix(root).unwrap().to_owned());
        }
    }
}

fn rust_files() -> Vec<PathBuf> {
    files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|ending| ending == "rs"))
        .collect()
}

fn nothing_wrong(wall: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{wall}:\n  {}", wrong.join("\n  "));
}

#[test]
fn arrows_point_downwards() {
    let packages = packages();
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, dependencies) in packages.iter().filter(|(name, _)| *name != "xtask") {
        let Some(allowed) = allowed.get(name.as_str()) else {
            wrong.push(format!("{name} is not in the arrow table"));
            continue;
        };
        for (dependency, _) in dependencies {
            if packages.contains_key(dependency)
                && dependency != name
                && !allowed.contains(&dependency.as_str())
            {
                wrong.push(format!("{name} -> {dependency}"));
            }
        }
    }
    nothing_wrong(
        "these arrows are not in the table of ARCHITECTURE.md",
        &wrong,
    );
}

#[test]
fn the_world_enters_through_its_own_door() {
    let mut wrong = Vec::new();
    for (name, dependencies) in packages() {
        for (dependency, kind) in dependencies.iter().filter(|_| name != "xtask") {
            // Tests may use what they like, as long as it is not shipped.
            if kind.as_deref() == Some("dev") {
                continue;
            }
            if let Some((_, homes)) = HOMES.iter().find(|(heavy, _)| heavy == dependency)
                && !homes.contains(&name.as_str())
            {
                wrong.push(format!(
                    "{name} builds on {dependency}, whose home is {}",
                    homes.join(", ")
                ));
            }
            if let Some((_, few)) = PURE.iter().find(|(pure, _)| *pure == name)
                && !few.contains(&dependency.as_str())
                && !dependency.starts_with("checkrein")
            {
                wrong.push(format!("{name} is pure and builds on {dependency}"));
            }
        }
    }
    nothing_wrong("dependencies in the wrong house", &wrong);
}

#[test]
fn the_lock_file_keeps_its_budget() {
    let lock = read(&root().join("Cargo.lock"));
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(count > 0, "Cargo.lock lists nothing");
    assert!(
        count <= LOCK_BUDGET,
        "{count} packages in Cargo.lock; the budget is {LOCK_BUDGET}"
    );
}

#[test]
fn every_file_says_what_it_is() {
    let root = root();
    let mut wrong = Vec::new();
    for file in rust_files() {
        let text = read(&root.join(&file));
        // A shebang or a crate attribute of a fuzz target may come first.
        let first = text
            .lines()
            .find(|line| !line.is_empty() && !line.starts_with("#!["));
        if !first.is_some_and(|line| line.starts_with("//! ")) {
            wrong.push(file.display().to_string());
        }
    }
    nothing_wrong(
        "these files do not open with a module doc (`//! ...`)",
        &wrong,
    );
}

#[test]
fn only_the_front_door_prints() {
    let root = root();
    let mut wrong = Vec::new();
    for file in rust_files() {
        // Chores and manual measurements speak to whoever started them.
        let in_crate_source = file.starts_with("crates")
            && file
                .components()
                .nth(2)
                .is_some_and(|part| part.as_os_str() == "src");
        let speaks = ["crates/cli/src/ui", "crates/simulation/src/main.rs"];
        if !in_crate_source || speaks.iter().any(|door| file.starts_with(door)) {
            continue;
        }
        for (number, line) in read(&root.join(&file)).lines().enumerate() {
            let code = line.trim_start();
            if !code.starts_with("//") && prints(code) {
                wrong.push(format!("{}:{}: {}", file.display(), number + 1, code));
            }
        }
    }
    nothing_wrong("printing outside crates/cli/src/ui", &wrong);
}

fn prints(code: &str) -> bool {
    ["print!(", "println!(", "eprint!(", "eprintln!(", "dbg!("]
        .iter()
        .any(|call| {
            code.match_indices(call).any(|(at, _)| {
                let before = code.split_at(at).0.chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        })
}

#[test]
fn prints_is_not_fooled() {
    for (code, expected) in [
        ("println!(\"x\");", true),
        ("std::eprintln!(\"x\")", true),
        ("my_println!(\"x\")", false),
        ("blueprint!(x)", false),
        ("let println = 3;", false),
    ] {
        assert_eq!(prints(code), expected, "{code}");
    }
}

/// Public types that are defined once for each operating system; only one of them is compiled.
const ONE_PER_SYSTEM: &[&str] = &[
    "PatchRootFolder",
    "ProcessTreeKillHandle",
    "ProcessTreeWaiter",
    "RunningWorker",
];

#[test]
fn public_types_have_names_of_their_own() {
    let root = root();
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in rust_files() {
        let is_source = file.starts_with("crates")
            && file
                .components()
                .nth(2)
                .is_some_and(|part| part.as_os_str() == "src");
        if !is_source || file.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        for line in read(&root.join(&file)).lines() {
            if let Some(name) = public_type(line) {
                homes
                    .entry(name.to_owned())
                    .or_default()
                    .push(file.display().to_string());
            }
        }
    }
    assert!(homes.len() > 300, "found only {} public types", homes.len());
    let wrong: Vec<String> = homes
        .iter()
        .filter(|(name, homes)| homes.len() > 1 && !ONE_PER_SYSTEM.contains(&name.as_str()))
        .map(|(name, homes)| format!("{name}: {}", homes.join(", ")))
        .collect();
    nothing_wrong("public types of the same name", &wrong);
}

/// The type that a line defines, if it is seen outside its module.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(visibility) => visibility.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let is_type = ["struct", "enum", "trait", "union", "type"].contains(&kind);
    (is_type && name.starts_with(char::is_uppercase)).then_some(name)
}

#[test]
fn public_type_is_not_fooled() {
    for (line, expected) in [
        ("pub struct Store {", Some("Store")),
        ("    pub(super) enum Cause<'a> {", Some("Cause")),
        ("pub fn type_name() {", None),
        ("struct Private;", None),
        ("publish struct Odd", None),
    ] {
        assert_eq!(public_type(line), expected, "{line}");
    }
}

/// Git runs what a repository's config names, so nothing shipped starts it: repositories are
/// read by `checkrein_verifiers::git`.
#[test]
fn nothing_shipped_starts_git() {
    let root = root();
    let mut wrong = Vec::new();
    let mut starters = Vec::new();
    for file in rust_files() {
        let name = file.display().to_string();
        // The scripted models and agents are for tests and demonstrations.
        let is_shipped = name.starts_with("crates/")
            && name.split('/').nth(2) == Some("src")
            && !name.starts_with("crates/scripted/")
            && !name.ends_with("/tests.rs");
        if !is_shipped {
            continue;
        }
        let text = read(&root.join(&file));
        for (number, line) in shipped_lines(&text) {
            // Rules, effects and names of tools speak of programs; `STARTERS` keeps them from starting any.
            let speaks = ["crates/execpolicy/", "crates/core/src/tool_action/"];
            if names_git(line) && !speaks.iter().any(|folder| name.starts_with(folder)) {
                wrong.push(format!("{name}:{number} names git: {}", line.trim()));
            }
            if starts_a_program(line) && starters.last() != Some(&name) {
                starters.push(name.clone());
            }
        }
    }
    assert_eq!(starters, STARTERS, "the files that start programs");
    nothing_wrong("git as a program", &wrong);
}

/// What `{:?}` prints is nobody's promise, and these crates digest and store what they print.
#[test]
fn nothing_recorded_is_debug_text() {
    // The name of a temporary file.
    const OTHERWISE: &[&str] = &["crates/verifiers/src/command/tool_versions.rs"];
    const RECORDING: &[&str] = &[
        "crates/core/src",
        "crates/patch/src",
        "crates/runtime/src",
        "crates/store/src",
        "crates/verifiers/src",
    ];
    let root = root();
    let mut wrong = Vec::new();
    for name in rust_files() {
        let tests = name.ends_with("tests.rs")
            || name
                .components()
                .any(|part| part.as_os_str() == "conformance");
        let otherwise = OTHERWISE.iter().any(|file| name == Path::new(file));
        if tests || otherwise || !RECORDING.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let text = read(&root.join(&name));
        for (number, line) in shipped_lines(&text).filter(|(_, line)| is_debug(line)) {
            wrong.push(format!("{}:{number}: {}", name.display(), line.trim()));
        }
    }
    nothing_wrong("debug text on its way into a digest or the store", &wrong);
}

fn is_debug(line: &str) -> bool {
    line.contains(":?}") || line.contains(":#?}")
}

/// Numbered lines of code before the tests of a file.
fn shipped_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    lines
        .take_while(|(_, line)| !(line.starts_with("#[cfg(") && line.contains("test")))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// A literal that is git's name as a program: alone, with an ending, or at the end of a path.
fn names_git(line: &str) -> bool {
    line.split('"').skip(1).step_by(2).any(|literal| {
        let name = literal.rsplit(['/', '\\']).next().unwrap();
        let is_program = name == "git" || name.starts_with("git{") || name == "git.exe";
        is_program || literal.starts_with("git ") && line.contains("sh")
    })
}

fn starts_a_program(line: &str) -> bool {
    ["Command::new(", ".exec()", "libc::exec", "posix_spawn("]
        .iter()
        .any(|call| line.contains(call))
}

#[test]
fn a_start_of_git_is_seen() {
    for (line, expected) in [
        ("Command::new(\"git\")", true),
        ("programs::outside(\"git\", root)", true),
        ("folder.join(format!(\"git{}\", EXE_SUFFIX))", true),
        ("Command::new(\"/usr/bin/git\")", true),
        ("shell(\"git status\")", true),
        ("folder.join(\".git\")", false),
        ("home.join(\".config/git/config\")", false),
    ] {
        assert_eq!(names_git(line), expected, "{line}");
    }
}

/// Whose home folder recorded payloads and examples may name.
const NOBODY: &[&str] = &["dev", "user", "you"];

#[test]
fn no_file_names_a_home_folder() {
    let root = root();
    let mut wrong = Vec::new();
    for file in files() {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if let Some(path) = home_path(line) {
                wrong.push(format!("{}:{}: {path}", file.display(), number + 1));
            }
        }
    }
    nothing_wrong("absolute paths of somebody's machine", &wrong);
}

/// The first absolute path below a home folder, but for those of nobody.
fn home_path(line: &str) -> Option<&str> {
    let homes = [
        concat!("/ho", "me/"),
        concat!("/Us", "ers/"),
        concat!("/ro", "ot/"),
    ];
    homes.iter().find_map(|home| {
        line.match_indices(home).find_map(|(at, _)| {
            let (before, path) = line.split_at(at);
            // What begins with a variable, or in a folder, is no path of a machine.
            let part = |c: char| c.is_alphanumeric() || "/._-}~$*".contains(c);
            let absolute = !before.chars().next_back().is_some_and(part);
            let rest = path.strip_prefix(home)?;
            let end = rest.find(|c: char| !c.is_alphanumeric() && !"._-".contains(c));
            let name = rest.split_at(end.unwrap_or(rest.len())).0;
            (absolute && !name.is_empty() && !NOBODY.contains(&name)).then_some(path)
        })
    })
}

#[test]
fn home_paths_are_seen() {
    let home = concat!("/ho", "me/");
    for (line, expected) in [
        (format!("cd {home}alice/repo"), true),
        (format!("\"{home}alice\""), true),
        (concat!("see /ro", "ot/.cache").to_owned(), true),
        ("\"cwd\":\"/home/dev/repo\"".to_owned(), false),
        ("\"cwd\":\"/home/dev\"".to_owned(), false),
        (format!("target{home}alice"), false),
        (format!("below {home}"), false),
    ] {
        assert_eq!(home_path(&line).is_some(), expected, "{line}");
    }
}

#[test]
fn lint_files_are_complete() {
    // The nearest clippy.toml wins as a whole, so a crate's own must repeat the root's lines.
    let root = root();
    let common: Vec<String> = read(&root.join("clippy.toml"))
        .lines()
        .filter(|line| line.contains(" = "))
        .map(str::to_owned)
        .collect();
    let mut wrong = Vec::new();
    for file in files()
        .iter()
        .filter(|file| file.ends_with("clippy.toml") && file.starts_with("crates"))
    {
        let text = read(&root.join(file));
        for line in common
            .iter()
            .filter(|line| !text.lines().any(|own| own == line.as_str()))
        {
            wrong.push(format!("{} lacks `{line}`", file.display()));
        }
    }
    let [core, adapters] = ["core", "adapters"].map(|name| {
        let text = read(&root.join("crates").join(name).join("clippy.toml"));
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .collect::<Vec<_>>()
            .join("\n")
    });
    if core != adapters {
        wrong.push("crates/core and crates/adapters ban different things".to_owned());
    }
    nothing_wrong("lint files", &wrong);
}
