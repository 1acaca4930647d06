//! `rows`: what the documents that Checkrein was asked for with say, row by row, each beside a test that observes
//! it from outside: requests that a model on loopback got, text that was delivered, an exit code. A row that is not
//! built yet names the issue that builds it instead. A row with neither is red. `rows --run` runs exactly these tests.

mod binaries;
mod counts;
mod names;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use binaries::{Binaries, Outcome};
use names::Suite;
use table::{Observation, Row, RowStatus};

/// The command.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let root = root()?;
    let (rows, mut wrong) = table::read(table::TEXT);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    wrong.extend(unwritten(&rows, root));
    match (words.as_slice(), wrong.is_empty()) {
        ([], sound) => {
            for (row, observation) in held(&rows) {
                print(row, observation, &observation.sees);
            }
            // Nothing is built for a list that is wrong.
            if sound {
                wrong.extend(absent(&rows, root)?);
            }
        }
        (["--run"], true) => wrong.extend(played(&rows, root)?),
        (["--run"], false) => {}
        _ => return Err(format!("'{}' is nothing; there is --run", words.join(" "))),
    }
    print_later(&rows);
    let tests: BTreeSet<_> = held(&rows)
        .map(|(_, observation)| &observation.test)
        .collect();
    println!("\n{} rows, {} tests", rows.len(), tests.len());
    print!("{}", counts::by_document(&rows));
    wrong.iter().for_each(|what| eprintln!("RED: {what}"));
    Ok(match wrong.is_empty() && !rows.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn root() -> Result<&'static Path, String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent()
        .ok_or_else(|| "xtask has no parent folder".to_owned())
}

/// Rows that hold, each with what observes it.
fn held(rows: &[Row]) -> impl Iterator<Item = (&Row, &Observation)> {
    rows.iter()
        .filter_map(|row| row.observation().map(|observation| (row, observation)))
}

fn print(row: &Row, observation: &Observation, last: &str) {
    print_promise(row);
    println!("{:<34} → {}", "", observation.test);
    println!("{:<34} → {last}", "");
}

fn print_promise(row: &Row) {
    println!("{:<34} {}", row.id, row.says);
    if !row.here.is_empty() {
        println!("{:<34} here: {}", "", row.here);
    }
}

/// Rows that are not built yet, apart from the others.
fn print_later(rows: &[Row]) {
    println!("\nnot built yet:");
    for row in rows {
        if let RowStatus::Later(issue) = &row.status {
            print_promise(row);
            println!("{:<34} → later: {issue}", "");
        }
    }
}

/// A row beside what observes it.
type HeldRow<'r> = (&'r Row, &'r Observation);

/// Rows by the suite of their test.
type BySuite<'r> = BTreeMap<&'r Suite, Vec<HeldRow<'r>>>;

fn built<'r>(rows: &'r [Row], root: &Path) -> Result<(Binaries, BySuite<'r>), String> {
    let mut suites = BTreeMap::<_, Vec<HeldRow<'r>>>::new();
    for (row, observation) in held(rows) {
        let suite = suites.entry(&observation.test.suite).or_default();
        suite.push((row, observation));
    }
    let binaries = Binaries::build(root, &suites.keys().copied().collect())?;
    Ok((binaries, suites))
}

/// Rows whose test is not in the sources, told without building anything.
fn unwritten(rows: &[Row], root: &Path) -> Vec<String> {
    let gone = held(rows).filter(|(_, observation)| !observation.test.is_in_sources(root));
    gone.map(|(row, observation)| format!("{}: {} is not in the sources", row.id, observation.test))
        .collect()
}

/// Rows whose test is not in its suite, or would not be run.
fn absent(rows: &[Row], root: &Path) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    let (binaries, suites) = built(rows, root)?;
    for (suite, rows) in suites {
        let there = binaries.tests(suite)?;
        let gone = rows
            .into_iter()
            .filter(|(_, observation)| !there.contains(&observation.test.name));
        wrong.extend(gone.map(|(row, observation)| {
            format!("{}: there is no test {}", row.id, observation.test)
        }));
    }
    Ok(wrong)
}

/// Runs the tests, and prints what came of each row.
fn played(rows: &[Row], root: &Path) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    let (binaries, suites) = built(rows, root)?;
    for (suite, rows) in suites {
        let names = rows
            .iter()
            .map(|(_, observation)| observation.test.name.as_str())
            .collect();
        let outcomes = binaries.run(suite, &names)?;
        for (row, observation) in rows {
            let outcome = outcomes.get(&observation.test.name).copied();
            let words = match outcome {
                Some(Outcome::Passed) => "passed",
                Some(Outcome::Failed) => "FAILED",
                None => "DID NOT RUN",
            };
            print(row, observation, &format!("{words}: {}", observation.sees));
            if outcome != Some(Outcome::Passed) {
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
        let (rows, wrong) = table::read(table::TEXT);
        assert_eq!(wrong, Vec::<String>::new());
        assert!(!rows.is_empty());
        assert_eq!(unwritten(&rows, root().unwrap()), Vec::<String>::new());
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
            let (rows, wrong) = table::read(&row(test));
            assert_eq!((rows.len(), wrong.len()), (1, 0));
            assert_eq!(unwritten(&rows, root().unwrap()).len(), gone, "{test}");
        }
    }
}
