//! `laws`: prints the laws with the tests that keep them. `laws --break`: a law whose test cannot
//! go red is no law, so every `laws/NN-slug.patch` breaks one in a copy of the checkout; the test
//! that its header names must fail there, and pass without the patch.
//!
//! A patch begins with `# law: N` and `# test: ARGUMENTS OF cargo test`. A law may have any number
//! of patches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::checkout_copy::CheckoutCopy;
use crate::refresh;

/// The laws, in the order and words of the design.
const LAWS: &[&str] = &[
    "no accept without evidence",
    "it ends",
    "replay",
    "order-free",
    "a verifier's failure is data",
    "stances are explicit",
    "the second ask changes nothing",
    "sessions share nothing mutable",
    "nothing decided is lost",
    "loosening is ineffective by the ordinary ways",
    "Checkrein only tightens",
];

/// A patch that breaks a law.
struct DesignLawBreakingPatch {
    law: usize,
    name: String,
    /// Arguments of `cargo test`.
    test: Vec<String>,
    text: String,
}

/// What testing a patch has shown.
#[derive(PartialEq, Eq)]
enum LawBreachTestOutcome {
    Red,
    Green,
    RedUnbroken,
    DoesNotApply(String),
    DoesNotCompile,
}

impl LawBreachTestOutcome {
    fn law_test_outcome_text(&self) -> String {
        match self {
            LawBreachTestOutcome::Red => "red".to_owned(),
            LawBreachTestOutcome::Green => "GREEN: the test does not notice".to_owned(),
            LawBreachTestOutcome::RedUnbroken => "RED WITHOUT IT: the test fails anyway".to_owned(),
            LawBreachTestOutcome::DoesNotApply(why) => format!("DOES NOT APPLY: {why}"),
            LawBreachTestOutcome::DoesNotCompile => "DOES NOT COMPILE: shows nothing".to_owned(),
        }
    }
}

/// Runs the command.
pub(crate) fn run_laws_command(arguments: &[String]) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("xtask has no parent folder")?
        .to_owned();
    let breaches = read_law_breach_patches(&root)?;
    match arguments.split_first() {
        None => {
            print_tests_of_each_law(&breaches);
            Ok(ExitCode::SUCCESS)
        }
        Some((flag, laws)) if flag == "--break" => {
            let wanted = laws
                .iter()
                .map(|law| {
                    law.parse()
                        .map_err(|_| format!("'{law}' is no law's number"))
                })
                .collect::<Result<BTreeSet<usize>, String>>()?;
            let chosen: Vec<DesignLawBreakingPatch> = breaches
                .into_iter()
                .filter(|breach| wanted.is_empty() || wanted.contains(&breach.law))
                .collect();
            check_tests_catch_law_breaches(&root, &chosen)
        }
        Some((flag, revision)) if flag == "--refresh" => {
            refresh::rebase_fault_patches(&root, revision.first().map_or("HEAD", String::as_str))
        }
        Some((other, _)) => Err(format!(
            "unknown argument '{other}'; there are --break [LAW]... and --refresh [REV]"
        )),
    }
}

fn read_law_breach_patches(root: &Path) -> Result<Vec<DesignLawBreakingPatch>, String> {
    let folder = root.join("laws");
    let entries = std::fs::read_dir(&folder).map_err(|error| io_error_text(&folder, &error))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "patch"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| read_law_breaking_patch(path))
        .collect()
}

fn read_law_breaking_patch(path: &Path) -> Result<DesignLawBreakingPatch, String> {
    let text = std::fs::read_to_string(path).map_err(|error| io_error_text(path, &error))?;
    let header = |key: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(key));
        found.ok_or_else(|| format!("{}: no line '{key}...'", path.display()))
    };
    let law: usize = header("# law: ")?
        .trim()
        .parse()
        .map_err(|_| format!("{}: its law is no number", path.display()))?;
    if law == 0 || law > LAWS.len() {
        return Err(format!("{}: there is no law {law}", path.display()));
    }
    let test = header("# test: ")?;
    Ok(DesignLawBreakingPatch {
        law,
        name: path
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        test: test.split_whitespace().map(str::to_owned).collect(),
        text,
    })
}

fn print_tests_of_each_law(breaches: &[DesignLawBreakingPatch]) {
    for (at, name) in LAWS.iter().enumerate() {
        println!("{:>3}  {name}", at + 1);
        let own: Vec<&DesignLawBreakingPatch> =
            breaches.iter().filter(|own| own.law == at + 1).collect();
        let homes: BTreeSet<String> = own.iter().map(|own| own.test.join(" ")).collect();
        for home in &homes {
            println!("     cargo test {home}");
        }
        match own.len() {
            0 => println!("     no breach patch"),
            _ => {
                let names: Vec<&str> = own.iter().map(|own| own.name.as_str()).collect();
                println!("     broken by {}", names.join(", "));
            }
        }
    }
}

fn check_tests_catch_law_breaches(
    root: &Path,
    breaches: &[DesignLawBreakingPatch],
) -> Result<ExitCode, String> {
    let copy = CheckoutCopy::create_checkout_copy(root, "laws")?;
    // Many patches share a test, so each is run only once without a patch.
    let mut green: BTreeMap<&[String], bool> = BTreeMap::new();
    let mut rows = Vec::new();
    for breach in breaches {
        let is_green = match green.get(breach.test.as_slice()) {
            Some(known) => *known,
            None => {
                eprintln!("unbroken: cargo test {}", breach.test.join(" "));
                let passes = copy.run_cargo_tests_in_copy(&breach.test)?;
                green.insert(&breach.test, passes);
                passes
            }
        };
        // A test that fails without the patch as well says nothing about the patch.
        let outcome = if is_green {
            eprintln!("broken by {}", breach.name);
            run_test_with_law_breaking_patch(&copy, breach)?
        } else {
            LawBreachTestOutcome::RedUnbroken
        };
        rows.push((breach, outcome));
    }
    println!("law  {:<28} {:<52} outcome", "patch", "cargo test");
    for (breach, outcome) in &rows {
        println!(
            "{:>3}  {:<28} {:<52} {}",
            breach.law,
            breach.name,
            breach.test.join(" "),
            outcome.law_test_outcome_text()
        );
    }
    let all = rows
        .iter()
        .all(|(_, outcome)| *outcome == LawBreachTestOutcome::Red);
    // No rows are no success: a law without patches, or a wrong number, would pass unnoticed.
    Ok(if all && !rows.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Applies a patch to the copy, runs its test and reverts the patch.
fn run_test_with_law_breaking_patch(
    copy: &CheckoutCopy,
    breach: &DesignLawBreakingPatch,
) -> Result<LawBreachTestOutcome, String> {
    let outcome = match copy.apply_patch_to_copy(&breach.text)? {
        Err(why) => LawBreachTestOutcome::DoesNotApply(why),
        // `cargo test` fails for a patch that does not compile too, which must not count as red.
        Ok(()) if !does_law_test_compile(copy, &breach.test)? => {
            LawBreachTestOutcome::DoesNotCompile
        }
        Ok(()) if copy.run_cargo_tests_in_copy(&breach.test)? => LawBreachTestOutcome::Green,
        Ok(()) => LawBreachTestOutcome::Red,
    };
    copy.revert_patch(&breach.text)?;
    Ok(outcome)
}

fn does_law_test_compile(copy: &CheckoutCopy, test: &[String]) -> Result<bool, String> {
    // What follows `--` is for the test binary; `--no-run` is for cargo.
    let own: Vec<String> = test
        .iter()
        .take_while(|word| *word != "--")
        .cloned()
        .collect();
    copy.run_cargo_tests_in_copy(&[own, vec!["--no-run".to_owned()]].concat())
}

fn io_error_text(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Breaking them all takes an hour and is rarely done, so a patch that no longer applies would
    /// be noticed late.
    #[test]
    fn every_breach_still_applies() -> Result<(), String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .ok_or("xtask has no parent folder")?;
        let mut rotten = Vec::new();
        for breach in read_law_breach_patches(root)? {
            let patch = root.join("laws").join(format!("{}.patch", breach.name));
            let applied = Command::new("git")
                .args(["apply", "--check"])
                .arg(&patch)
                .current_dir(root)
                .output()
                .map_err(|error| format!("git apply: {error}"))?;
            if !applied.status.success() {
                rotten.push(String::from_utf8_lossy(&applied.stderr).into_owned());
            }
        }
        assert!(rotten.is_empty(), "{}", rotten.concat());
        Ok(())
    }
}
