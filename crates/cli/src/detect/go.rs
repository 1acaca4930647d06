//! Go: `go test` and `go vet`, or golangci-lint where it is configured.

use super::tree::Tree;
use super::{Family, Found, Hit, Kind};

pub(super) const FAMILY: Family = Family { name: "go", look };

fn look(tree: &Tree, folder: &str) -> Option<Found> {
    if !tree.has(folder, "go.mod") {
        return None;
    }
    let module = tree.text(folder, "go.mod");
    let linter = tree.first(
        folder,
        &[
            ".golangci.yml",
            ".golangci.yaml",
            ".golangci.toml",
            ".golangci.json",
        ],
    );
    let lint = match linter {
        Some(file) => Hit::new(Kind::Lint, "golangci-lint run", file),
        None => Hit::new(Kind::Lint, "go vet ./...", "go.mod"),
    };
    let mut hits = vec![Hit::new(Kind::Tests, "go test ./...", "go.mod"), lint];
    for hit in &mut hits {
        hit.reaches_out = module.contains("=> ../") || tree.has("", "go.work");
    }
    Some(Found { hits, covers: true })
}
