//! Rust: `cargo test`, and clippy where the project uses it already.

use super::tree::Tree;
use super::{Family, Found, Hit, Kind};

pub(super) const FAMILY: Family = Family { name: "rust", look };

fn look(tree: &Tree, folder: &str) -> Option<Found> {
    if !tree.has(folder, "Cargo.toml") {
        return None;
    }
    let manifest = tree.text(folder, "Cargo.toml");
    let workspace = manifest
        .lines()
        .any(|line| line.trim() == "[workspace]" || line.trim().starts_with("[workspace."));
    let mut tests = Hit::new(
        Kind::Tests,
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
    tests.reaches_out = manifest.contains("\"../");
    let mut hits = vec![tests];
    if let Some(why) = clippy(tree, folder, manifest) {
        let scope = if workspace { " --workspace" } else { "" };
        let run = format!("cargo clippy{scope} --all-targets -- -D warnings");
        let mut lint = Hit::new(Kind::Lint, run, why);
        lint.needs = "cargo-clippy".to_owned();
        lint.reaches_out = manifest.contains("\"../");
        hits.push(lint);
    }
    Some(Found { hits, covers: true })
}

/// What shows that somebody keeps this code free of clippy's warnings.
fn clippy(tree: &Tree, folder: &str, manifest: &str) -> Option<String> {
    if let Some(file) = tree.first(folder, &["clippy.toml", ".clippy.toml"]) {
        return Some(file.to_owned());
    }
    if manifest.contains("lints.clippy]") {
        return Some("[lints.clippy] in Cargo.toml".to_owned());
    }
    tree.texts_below("")
        .find(|(file, text)| {
            file.starts_with(".github/workflows/") && text.contains("cargo clippy")
        })
        .map(|(file, _)| format!("clippy in {file}"))
}
