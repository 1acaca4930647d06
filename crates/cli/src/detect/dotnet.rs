//! .NET: `dotnet test` on a solution, or on a project that holds tests.

use super::tree::Tree;
use super::{Family, Found, Hit, Kind};
use crate::shell::quoted;

pub(super) const FAMILY: Family = Family {
    name: "dotnet",
    look,
};

fn look(tree: &Tree, folder: &str) -> Option<Found> {
    let here = |endings: &[&str]| {
        let mut files = tree.below(folder).filter(|file| {
            let ending = file.rsplit('.').next().unwrap_or_default();
            !file.contains('/') && endings.contains(&ending)
        });
        files.next().map(str::to_owned)
    };
    let solution = here(&["sln", "slnx"]);
    let project = here(&["csproj", "fsproj", "vbproj"]);
    let file = solution.or(project)?;
    // A solution's projects lie below it; a project alone has to test by itself.
    let tests = tree.texts_below(folder).any(|(file, text)| {
        file.ends_with("proj")
            && (text.contains("Microsoft.NET.Test.Sdk")
                || text.contains("MSTest.Sdk")
                || text.contains("TUnit"))
    });
    let hits = if tests {
        vec![Hit::new(
            Kind::Tests,
            format!("dotnet test {}", quoted(&file)),
            file,
        )]
    } else {
        Vec::new()
    };
    let covers = !hits.is_empty();
    Some(Found { hits, covers })
}
