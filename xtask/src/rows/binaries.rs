//! Asks test binaries which tests they hold, and runs some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::names::TestBinaryName;

/// Test binaries that are built.
pub(super) struct TestBinaries(BTreeMap<TestBinaryName, TestBinary>);

struct TestBinary {
    program: PathBuf,
    folder: PathBuf,
}

/// The outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestOutcome {
    Passed,
    Failed,
}

impl TestBinaries {
    /// Builds the binaries as `cargo test --workspace` does, so that after it there is nothing to
    /// build.
    pub(super) fn build_test_binaries(
        root: &Path,
        suites: &BTreeSet<&TestBinaryName>,
    ) -> Result<Self, String> {
        let names: BTreeSet<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            // The whole workspace even for one suite: a selection of packages may have other
            // features and be built anew.
            .args(["test", "--quiet", "--workspace", "--no-run"])
            .arg("--message-format=json-render-diagnostics")
            .args(names.into_iter().flat_map(|name| ["--test", name]))
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        if !built.status.success() {
            return Err("the tests do not compile".to_owned());
        }
        let text = String::from_utf8_lossy(&built.stdout);
        let find = |suite: &&TestBinaryName| {
            let binary = text
                .lines()
                .find_map(|line| suite.binary_from_cargo_message(root, line));
            let binary = binary.ok_or_else(|| format!("there is no suite {suite}"))?;
            Ok(((*suite).clone(), binary))
        };
        suites.iter().map(find).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the tests that a suite would run; ignored ones are left out.
    pub(super) fn list_non_ignored_tests(
        &self,
        suite: &TestBinaryName,
    ) -> Result<BTreeSet<String>, String> {
        // `--list` names ignored tests too; with `--ignored` it names only these.
        let ignored =
            parse_test_list(&self.run_test_suite_binary(suite, &["--list", "--ignored"])?);
        let all = parse_test_list(&self.run_test_suite_binary(suite, &["--list"])?);
        Ok(all.difference(&ignored).cloned().collect())
    }

    /// Runs these tests of a suite.
    pub(super) fn run_named_tests_of_suite(
        &self,
        suite: &TestBinaryName,
        names: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, TestOutcome>, String> {
        // Without `--exact` a name would also run every test whose name contains it.
        let exactly = ["--exact"].into_iter().chain(names.iter().copied());
        let arguments: Vec<&str> = exactly.collect();
        Ok(parse_test_outcomes(
            &self.run_test_suite_binary(suite, &arguments)?,
        ))
    }

    fn run_test_suite_binary(
        &self,
        suite: &TestBinaryName,
        arguments: &[&str],
    ) -> Result<String, String> {
        let binary = self.0.get(suite).ok_or("it was not built")?;
        // cargo runs tests in the folder of their package, and they may open files relative to it.
        // The exit status is not checked: a failed test makes it fail, and the output says which.
        let output = Command::new(&binary.program)
            .args(arguments)
            .current_dir(&binary.folder)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("{}: {error}", binary.program.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl TestBinaryName {
    /// Returns the suite's binary, if this message of cargo is about it.
    fn binary_from_cargo_message(&self, root: &Path, line: &str) -> Option<TestBinary> {
        let told: Value = serde_json::from_str(line).ok()?;
        let text = |place: &str| told.pointer(place).and_then(Value::as_str);
        // Several packages have a suite of the same name (`it`), so the package is compared as
        // well.
        let folder = self.test_suite_package_folder(root);
        let own = text("/target/name")? == self.name
            && text("/target/kind/0")? == "test"
            && Path::new(text("/manifest_path")?) == folder.join("Cargo.toml");
        let program = PathBuf::from(text("/executable")?);
        own.then_some(TestBinary { program, folder })
    }
}

/// Parses a list of tests: lines `NAME: test`.
fn parse_test_list(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_owned).collect()
}

/// Parses the outcomes of tests: lines `test NAME ... ok`.
fn parse_test_outcomes(text: &str) -> BTreeMap<String, TestOutcome> {
    let outcome = |line: &str| {
        let (name, word) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let outcome = match word {
            "ok" => TestOutcome::Passed,
            "FAILED" => TestOutcome::Failed,
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
        let names = parse_test_list("a::b: test\nc: benchmark\nd: test\n\n2 tests, 1 benchmark\n");
        assert_eq!(names, ["a::b", "d"].map(str::to_owned).into());
        let text = "\nrunning 3 tests\ntest a::b ... ok\ntest d ... FAILED\ntest e ... ignored\n";
        let expected = [("a::b", TestOutcome::Passed), ("d", TestOutcome::Failed)];
        let expected = expected.map(|(name, outcome)| (name.to_owned(), outcome));
        assert_eq!(parse_test_outcomes(text), expected.into());
    }

    #[test]
    fn which_binary_is_whose() {
        let line = |folder: &str, kind: &str| {
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": format!("/r/crates/{folder}/Cargo.toml"),
                "target": { "kind": [kind], "name": "it" }, "executable": "/t/it-1",
            })
            .to_string()
        };
        let suite = TestBinaryName::new("checkrein-cli", "it");
        let built = |line: &str| suite.binary_from_cargo_message(Path::new("/r"), line);
        let binary = built(&line("cli", "test")).unwrap();
        assert_eq!(binary.program, Path::new("/t/it-1"));
        assert_eq!(binary.folder, Path::new("/r/crates/cli"));
        assert!(built(&line("checkrein", "test")).is_none());
        assert!(built(&line("cli", "bin")).is_none());
        assert!(built("no JSON").is_none());
    }
}
