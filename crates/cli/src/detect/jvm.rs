//! Gradle and Maven, through the repo's own wrapper where it has one.

use super::tree::Tree;
use super::{Family, Found, Hit, Kind};

pub(super) const FAMILY: Family = Family { name: "jvm", look };

const GRADLE: &[&str] = &[
    "settings.gradle",
    "settings.gradle.kts",
    "build.gradle",
    "build.gradle.kts",
];

fn look(tree: &Tree, folder: &str) -> Option<Found> {
    let (wrapper, program, arguments, why) = if let Some(file) = tree.first(folder, GRADLE) {
        ("gradlew", "gradle", "test", file)
    } else if tree.has(folder, "pom.xml") {
        ("mvnw", "mvn", "-B test", "pom.xml")
    } else {
        return None;
    };
    let run = if tree.has(folder, wrapper) {
        format!("./{wrapper} {arguments}")
    } else {
        format!("{program} {arguments}")
    };
    let mut hit = Hit::new(Kind::Tests, run, why);
    hit.timeout = Some("20m");
    Some(Found {
        hits: vec![hit],
        covers: true,
    })
}
