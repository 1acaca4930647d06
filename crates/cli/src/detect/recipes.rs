//! make and just: targets that are named for what they check.

use super::tree::Tree;
use super::{Family, Found, Hit, Kind};

pub(super) const FAMILY: Family = Family {
    name: "recipes",
    look,
};

fn look(tree: &Tree, folder: &str) -> Option<Found> {
    let files = [
        ("just", ["justfile", "Justfile", ".justfile"]),
        ("make", ["GNUmakefile", "makefile", "Makefile"]),
    ];
    let (program, file) = files
        .iter()
        .find_map(|(program, names)| Some((*program, tree.first(folder, names)?)))?;
    let text = tree.text(folder, file);
    let has = |target: &str| text.lines().any(|line| defines(line, target));
    let wanted = [
        (Kind::Tests, &["test", "tests", "check"][..]),
        (Kind::Lint, &["lint"]),
        (Kind::Typecheck, &["typecheck"]),
    ];
    let hits = wanted
        .iter()
        .filter_map(|(kind, targets)| {
            let target = targets.iter().find(|target| has(target))?;
            Some(Hit::new(
                *kind,
                format!("{program} {target}"),
                format!("target {target} of {file}"),
            ))
        })
        .map(|mut hit| {
            // What a recipe reads, only its author knows.
            hit.reaches_out = true;
            hit
        })
        .collect();
    Some(Found { hits, covers: true })
}

/// `test:`, `test: build`, `a test b:` of make; `test *args:` of just. Not `test := x`.
fn defines(line: &str, target: &str) -> bool {
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
