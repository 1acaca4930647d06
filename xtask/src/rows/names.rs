//! Names of tests, and whether the sources have a test of that name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A test binary of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestBinaryName {
    package: String,
    pub(super) name: String,
}

/// A test, written `PACKAGE::SUITE MODULE::NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestName {
    pub(super) suite: TestBinaryName,
    pub(super) name: String,
}

impl FromStr for TestName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(' ').and_then(|(suite, name)| {
            let (package, suite) = suite.split_once("::")?;
            Some((TestBinaryName::new(package, suite), name.trim()))
        });
        match parts {
            Some((suite, name)) if !name.is_empty() => Ok(Self {
                suite,
                name: name.to_owned(),
            }),
            _ => Err(format!("'{text}' is not PACKAGE::SUITE MODULE::NAME")),
        }
    }
}

impl fmt::Display for TestBinaryName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}::{}", self.package, self.name)
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.suite, self.name)
    }
}

impl TestName {
    /// Returns whether its file has such a function, marked as a test.
    pub(super) fn test_exists_in_sources(&self, root: &Path) -> bool {
        let head = match self.name.rsplit_once("::") {
            None => format!("fn {}(", self.name),
            Some((_, function)) => format!("fn {function}("),
        };
        let holds = |path: PathBuf| {
            // Only one of the candidates exists; the other reads as empty and has no test.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            lines.iter().enumerate().any(|(at, line)| {
                // A helper may have the name of a test, so one of the attributes right above must
                // be `#[test]`.
                let above = lines.iter().take(at).rev();
                let mut attributes = above.take_while(|line| line.starts_with("#["));
                line.starts_with(&head) && attributes.any(|line| *line == "#[test]")
            })
        };
        self.candidate_test_source_files(root)
            .into_iter()
            .any(holds)
    }

    /// Returns the files in which its module may be: cargo and Rust have two places for each.
    fn candidate_test_source_files(&self, root: &Path) -> Vec<PathBuf> {
        let name = &self.suite.name;
        let tests = self.suite.test_suite_package_folder(root).join("tests");
        match self.name.rsplit_once("::") {
            None => vec![
                tests.join(format!("{name}.rs")),
                tests.join(name).join("main.rs"),
            ],
            Some((module, _)) => {
                let module = tests.join(name).join(module.replace("::", "/"));
                vec![module.with_extension("rs"), module.join("mod.rs")]
            }
        }
    }
}

impl TestBinaryName {
    pub(super) fn new(package: &str, name: &str) -> Self {
        Self {
            package: package.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the folder of its package: `checkrein-X` is in `crates/X`, `checkrein` in a folder
    /// of its own name.
    pub(super) fn test_suite_package_folder(&self, root: &Path) -> PathBuf {
        let folder = self.package.strip_prefix("checkrein-");
        root.join("crates").join(folder.unwrap_or(&self.package))
    }
}
