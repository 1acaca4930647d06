//! `rows`: checks what the documents behind Checkrein promise, row by row. Each row names a test
//! that observes it from outside: requests that a model on loopback got, text that was delivered,
//! an exit code. A row that is not built yet names the issue that builds it instead. A row with
//! neither is red. `rows --run` runs exactly these tests.

mod binaries;
mod counts;
mod names;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use binaries::{TestBinaries, TestOutcome};
use names::TestBinaryName;
use table::{DocumentedPromise, PromiseObservingTest, RequirementRowStatus};

/// Runs the command.
pub(crate) fn check_document_promises(arguments: &[String]) -> Result<ExitCode, String> {
    let root = checkout_root()?;
    let (rows, mut wrong) = table::parse_promise_rows(table::TEXT);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    wrong.extend(promise_rows_with_missing_test(&rows, root));
    match (words.as_slice(), wrong.is_empty()) {
        ([], sound) => {
            for (row, observation) in promise_rows_backed_by_test(&rows) {
                print_promise_with_test(row, observation, &observation.observed);
            }
            // Nothing is built for a list that is wrong.
            if sound {
                wrong.extend(requirement_rows_with_missing_test(&rows, root)?);
            }
        }
        (["--run"], true) => wrong.extend(run_promise_row_tests(&rows, root)?),
        (["--run"], false) => {}
        _ => return Err(format!("'{}' is nothing; there is --run", words.join(" "))),
    }
    print_unimplemented_requirements(&rows);
    let tests: BTreeSet<_> = promise_rows_backed_by_test(&rows)
        .map(|(_, observation)| &observation.test)
        .collect();
    println!("\n{} rows, {} tests", rows.len(), tests.len());
    print!("{}", counts::promise_count_lines_by_document(&rows));
    wrong.iter().for_each(|what| eprintln!("RED: {what}"));
    // An empty list is no success: nothing would have been checked.
    Ok(match wrong.is_empty() && !rows.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn checkout_root() -> Result<&'static Path, String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent()
        .ok_or_else(|| "xtask has no parent folder".to_owned())
}

/// Returns the rows that hold, each with the test that observes it.
fn promise_rows_backed_by_test(
    rows: &[DocumentedPromise],
) -> impl Iterator<Item = (&DocumentedPromise, &PromiseObservingTest)> {
    rows.iter().filter_map(|row| {
        row.promise_backing_test()
            .map(|observation| (row, observation))
    })
}

fn print_promise_with_test(
    row: &DocumentedPromise,
    observation: &PromiseObservingTest,
    last: &str,
) {
    print_promise_and_deviation(row);
    println!("{:<34} → {}", "", observation.test);
    println!("{:<34} → {last}", "");
}

fn print_promise_and_deviation(row: &DocumentedPromise) {
    println!("{:<34} {}", row.id, row.promise);
    if !row.deviation.is_empty() {
        println!("{:<34} here: {}", "", row.deviation);
    }
}

/// Prints the rows that are not built yet, apart from the others.
fn print_unimplemented_requirements(rows: &[DocumentedPromise]) {
    println!("\nnot built yet:");
    for row in rows {
        if let RequirementRowStatus::Later(issue) = &row.status {
            print_promise_and_deviation(row);
            println!("{:<34} → later: {issue}", "");
        }
    }
}

/// A row with the test that observes it.
type PromiseWithObservingTest<'r> = (&'r DocumentedPromise, &'r PromiseObservingTest);

/// Rows by the suite of their test.
type PromisesByTestSuite<'r> = BTreeMap<&'r TestBinaryName, Vec<PromiseWithObservingTest<'r>>>;

fn compile_test_suites_of_promises<'r>(
    rows: &'r [DocumentedPromise],
    root: &Path,
) -> Result<(TestBinaries, PromisesByTestSuite<'r>), String> {
    let mut suites = BTreeMap::<_, Vec<PromiseWithObservingTest<'r>>>::new();
    for (row, observation) in promise_rows_backed_by_test(rows) {
        let suite = suites.entry(&observation.test.suite).or_default();
        suite.push((row, observation));
    }
    let binaries = TestBinaries::build_test_binaries(root, &suites.keys().copied().collect())?;
    Ok((binaries, suites))
}

/// Reports rows whose test is not in the sources. Nothing is built for it.
fn promise_rows_with_missing_test(rows: &[DocumentedPromise], root: &Path) -> Vec<String> {
    let gone = promise_rows_backed_by_test(rows)
        .filter(|(_, observation)| !observation.test.test_exists_in_sources(root));
    gone.map(|(row, observation)| format!("{}: {} is not in the sources", row.id, observation.test))
        .collect()
}

/// Reports rows whose test is not in its suite, or would not be run.
fn requirement_rows_with_missing_test(
    rows: &[DocumentedPromise],
    root: &Path,
) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    let (binaries, suites) = compile_test_suites_of_promises(rows, root)?;
    for (suite, rows) in suites {
        let there = binaries.list_non_ignored_tests(suite)?;
        let gone = rows
            .into_iter()
            .filter(|(_, observation)| !there.contains(&observation.test.name));
        wrong.extend(gone.map(|(row, observation)| {
            format!("{}: there is no test {}", row.id, observation.test)
        }));
    }
    Ok(wrong)
}

/// Runs the tests and prints the outcome of each row. Returns the rows that are wrong.
fn run_promise_row_tests(rows: &[DocumentedPromise], root: &Path) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    let (binaries, suites) = compile_test_suites_of_promises(rows, root)?;
    for (suite, rows) in suites {
        let names = rows
            .iter()
            .map(|(_, observation)| observation.test.name.as_str())
            .collect();
        let outcomes = binaries.run_named_tests_of_suite(suite, &names)?;
        for (row, observation) in rows {
            let outcome = outcomes.get(&observation.test.name).copied();
            let words = match outcome {
                Some(TestOutcome::Passed) => "passed",
                Some(TestOutcome::Failed) => "FAILED",
                // Not in the output: the test is ignored, or its binary ended before it.
                None => "DID NOT RUN",
            };
            print_promise_with_test(
                row,
                observation,
                &format!("{words}: {}", observation.observed),
            );
            if outcome != Some(TestOutcome::Passed) {
                wrong.push(format!("{}: {} {words}", row.id, observation.test));
            }
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cheaper than the command: nothing is built.
    #[test]
    fn every_row_has_a_test_in_the_sources() {
        let (rows, wrong) = table::parse_promise_rows(table::TEXT);
        assert_eq!(wrong, Vec::<String>::new());
        assert!(!rows.is_empty());
        assert_eq!(
            promise_rows_with_missing_test(&rows, checkout_root().unwrap()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_row_whose_test_is_gone_is_red() {
        let row = |test: &str| format!("000.a\tsays\t\tcheckrein-cli::it {test}\tone request");
        for (test, gone) in [
            ("judge::stops::by_default_the_third_answer_is_accepted", 0),
            ("judge::stops::the_fourth_answer_stands", 1),
            ("judge::nowhere::by_default_the_third_answer_is_accepted", 1),
            // There, and not a test.
            ("judge::judged", 1),
        ] {
            let (rows, wrong) = table::parse_promise_rows(&row(test));
            assert_eq!((rows.len(), wrong.len()), (1, 0));
            assert_eq!(
                promise_rows_with_missing_test(&rows, checkout_root().unwrap()).len(),
                gone,
                "{test}"
            );
        }
    }
}
