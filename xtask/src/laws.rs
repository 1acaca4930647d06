//! `laws`: the table of laws and their homes. `laws --break`: a law whose test cannot go
//! red is no law, so every `laws/NN-slug.patch` breaks one in a copy of the checkout, and
//! the test that its header names must fail there, and pass without the patch.
//!
//! A patch begins with `# law: N` and `# test: ARGUMENTS OF cargo test`. More patches per
//! law are welcome.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::copy::Copy;
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

/// A way to break a law.
struct Breach {
    law: usize,
    name: String,
    /// Arguments of `cargo test`.
    test: Vec<String>,
    text: String,
}

/// What became of a breach.
#[derive(PartialEq, Eq)]
enum Outcome {
    Red,
    Green,
    RedWithout,
    DoesNotApply(String),
    DoesNotCompile,
}

impl Outcome {
    fn words(&self) -> String {
        match self {
            Outcome::Red => "red".to_owned(),
            Outcome::Green => "GREEN: the test does not notice".to_owned(),
            Outcome::RedWithout => "RED WITHOUT IT: the test fails anyway".to_owned(),
            Outcome::DoesNotApply(why) => format!("DOES NOT APPLY: {why}"),
            Outcome::DoesNotCompile => "DOES NOT COMPILE: shows nothing".to_owned(),
        }
    }
}

/// The command.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("xtask has no parent folder")?
        .to_owned();
    let breaches = read_breaches(&root)?;
    match arguments.split_first() {
        None => {
            print_homes(&breaches);
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
            let chosen: Vec<Breach> = breaches
                .into_iter()
                .filter(|breach| wanted.is_empty() || wanted.contains(&breach.law))
                .collect();
            break_all(&root, &chosen)
        }
        Some((flag, revision)) if flag == "--refresh" => {
            refresh::run(&root, revision.first().map_or("HEAD", String::as_str))
        }
        Some((other, _)) => Err(format!(
            "unknown argument '{other}'; there are --break [LAW]... and --refresh [REV]"
        )),
    }
}

fn read_breaches(root: &Path) -> Result<Vec<Breach>, String> {
    let folder = root.join("laws");
    let entries = std::fs::read_dir(&folder).map_err(|error| said(&folder, &error))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "patch"))
        .collect();
    paths.sort();
    paths.iter().map(|path| read_breach(path)).collect()
}

fn read_breach(path: &Path) -> Result<Breach, String> {
    let text = std::fs::read_to_string(path).map_err(|error| said(path, &error))?;
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
    Ok(Breach {
        law,
        name: path
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        test: test.split_whitespace().map(str::to_owned).collect(),
        text,
    })
}

fn print_homes(breaches: &[Breach]) {
    for (at, name) in LAWS.iter().enumerate() {
        println!("{:>3}  {name}", at + 1);
        let own: Vec<&Breach> = breaches.iter().filter(|own| own.law == at + 1).collect();
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

fn break_all(root: &Path, breaches: &[Breach]) -> Result<ExitCode, String> {
    let copy = Copy::make(root, "laws")?;
    let mut green: BTreeMap<&[String], bool> = BTreeMap::new();
    let mut rows = Vec::new();
    for breach in breaches {
        let is_green = match green.get(breach.test.as_slice()) {
            Some(known) => *known,
            None => {
                eprintln!("unbroken: cargo test {}", breach.test.join(" "));
                let passes = copy.test(&breach.test)?;
                green.insert(&breach.test, passes);
                passes
            }
        };
        let outcome = if is_green {
            eprintln!("broken by {}", breach.name);
            suffer(&copy, breach)?
        } else {
            Outcome::RedWithout
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
            outcome.words()
        );
    }
    let all = rows.iter().all(|(_, outcome)| *outcome == Outcome::Red);
    Ok(if all && !rows.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Applies a breach to a copy, sees what its test says, and takes it back.
fn suffer(copy: &Copy, breach: &Breach) -> Result<Outcome, String> {
    let outcome = match copy.apply(&breach.text)? {
        Err(why) => Outcome::DoesNotApply(why),
        Ok(()) if !compiles(copy, &breach.test)? => Outcome::DoesNotCompile,
        Ok(()) if copy.test(&breach.test)? => Outcome::Green,
        Ok(()) => Outcome::Red,
    };
    copy.take_back(&breach.text)?;
    Ok(outcome)
}

fn compiles(copy: &Copy, test: &[String]) -> Result<bool, String> {
    let own: Vec<String> = test
        .iter()
        .take_while(|word| *word != "--")
        .cloned()
        .collect();
    copy.test(&[own, vec!["--no-run".to_owned()]].concat())
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// To break them all takes an hour, so rot would be noticed late.
    #[test]
    fn every_breach_still_applies() -> Result<(), String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .ok_or("xtask has no parent folder")?;
        let mut rotten = Vec::new();
        for breach in read_breaches(root)? {
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
