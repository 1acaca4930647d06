//! Test suites: which tests they hold, by their own word and by their sources, and what comes of running some.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

/// A test binary of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Suite {
    package: String,
    name: String,
}

/// `PACKAGE::SUITE MODULE::NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) suite: Suite,
    pub(super) name: String,
}

/// What came of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
}

impl FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(' ').and_then(|(suite, name)| {
            let (package, suite) = suite.split_once("::")?;
            Some((Suite::new(package, suite), name.trim()))
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

impl fmt::Display for Test {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Suite { package, name } = &self.suite;
        write!(out, "{package}::{name} {}", self.name)
    }
}

impl Test {
    /// Whether its file has such a function, marked as a test.
    pub(super) fn is_in_sources(&self, root: &Path) -> bool {
        let head = match self.name.rsplit_once("::") {
            None => format!("fn {}(", self.name),
            Some((_, function)) => format!("fn {function}("),
        };
        let holds = |path: PathBuf| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            lines.iter().enumerate().any(|(at, line)| {
                let above = lines.iter().take(at).rev();
                let mut attributes = above.take_while(|line| line.starts_with("#["));
                line.starts_with(&head) && attributes.any(|line| *line == "#[test]")
            })
        };
        self.files(root).into_iter().any(holds)
    }

    /// Where its module may be.
    fn files(&self, root: &Path) -> Vec<PathBuf> {
        let Suite { package, name } = &self.suite;
        let folder = package.strip_prefix("checkrein-").unwrap_or(package);
        let tests = root.join("crates").join(folder).join("tests");
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

impl Suite {
    pub(super) fn new(package: &str, name: &str) -> Self {
        Self {
            package: package.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The tests that it would run; those that are ignored are none of them.
    pub(super) fn tests(&self, root: &Path) -> Result<BTreeSet<String>, String> {
        let list = |more: &[&str]| -> Result<BTreeSet<String>, String> {
            let (text, well) = self.cargo(root, &[&["--list"], more].concat())?;
            match well {
                true => Ok(listed(&text)),
                false => Err(format!("{} cannot be listed", self.name)),
            }
        };
        let ignored = list(&["--ignored"])?;
        let all = list(&[])?;
        Ok(all.difference(&ignored).cloned().collect())
    }

    /// Runs these tests.
    pub(super) fn run(
        &self,
        root: &Path,
        names: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Outcome>, String> {
        let arguments: Vec<&str> = ["--exact"]
            .into_iter()
            .chain(names.iter().copied())
            .collect();
        let (text, _) = self.cargo(root, &arguments)?;
        Ok(outcomes(&text))
    }

    /// What the test binary prints, and whether it ended well.
    fn cargo(&self, root: &Path, arguments: &[&str]) -> Result<(String, bool), String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["test", "-p", &self.package, "--test", &self.name, "--"])
            .args(arguments)
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((text, output.status.success()))
    }
}

/// `NAME: test`, one a line.
fn listed(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_owned).collect()
}

/// `test NAME ... ok`, one a line.
fn outcomes(text: &str) -> BTreeMap<String, Outcome> {
    let outcome = |line: &str| {
        let (name, word) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let outcome = match word {
            "ok" => Outcome::Passed,
            "FAILED" => Outcome::Failed,
            _ => return None,
        };
        Some((name.to_owned(), outcome))
    };
    text.lines().filter_map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_suite_prints() {
        let names = listed("a::b: test\nc: benchmark\nd: test\n\n2 tests, 1 benchmark\n");
        assert_eq!(names, ["a::b", "d"].map(str::to_owned).into());
        let text = "\nrunning 3 tests\ntest a::b ... ok\ntest d ... FAILED\ntest e ... ignored\n";
        let expected = [("a::b", Outcome::Passed), ("d", Outcome::Failed)];
        assert_eq!(
            outcomes(text),
            expected
                .map(|(name, outcome)| (name.to_owned(), outcome))
                .into()
        );
    }
}
