//! `fuzz [TARGET]... [--seconds N]`: runs libFuzzer over everything that parses a stranger's bytes.
//! Coverage counters are stable compiler flags, so neither nightly nor cargo-fuzz is needed.
//! Address checking would need nightly and is left out: there is no unsafe code of ours to check.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The flags that cargo-fuzz passes as well, without the sanitizer.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg",
    "fuzzing",
];

/// Runs the fuzz targets that are named, or all.
pub(crate) fn run_fuzz_targets(arguments: &[String]) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."));
    let folder = root.join("fuzz");
    let known = fuzz_target_names(&folder)?;
    let mut seconds = 60;
    let mut chosen = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--seconds" {
            let number = words.next().and_then(|text| text.parse::<u32>().ok());
            seconds = number
                .filter(|number| *number > 0)
                .ok_or("--seconds takes a number above 0")?;
        } else if known.contains(word) {
            chosen.push(word.clone());
        } else {
            return Err(format!("no target '{word}'; known: {}", known.join(", ")));
        }
    }
    if chosen.is_empty() {
        chosen = known;
    }
    let binaries = build_fuzz_targets(root, &folder, &chosen)?;
    let mut failed = Vec::new();
    for target in &chosen {
        let kept = folder.join("artifacts").join(target);
        // libFuzzer writes what it finds into the first folder; the others (seeds) are only read.
        let grown = folder.join("corpus").join(target);
        for made in [&kept, &grown] {
            std::fs::create_dir_all(made)
                .map_err(|error| format!("{}: {error}", made.display()))?;
        }
        println!("fuzz {target}: {seconds} s");
        let status = Command::new(binaries.join(target))
            .arg(&grown)
            .args(fuzz_seed_folders(root, target))
            .arg(format!("-artifact_prefix={}/", kept.display()))
            // An input that takes ten seconds or two gigabytes is a finding too.
            .args([
                &format!("-max_total_time={seconds}"),
                "-timeout=10",
                "-rss_limit_mb=2048",
                "-max_len=16384",
            ])
            // `-close_fd_mask=1` drops what a target prints to stdout; libFuzzer reports on stderr.
            .args([
                "-print_final_stats=1",
                "-verbosity=0",
                "-print_funcs=0",
                "-close_fd_mask=1",
            ])
            .status()
            .map_err(|error| format!("{target}: {error}"))?;
        if !status.success() {
            failed.push(format!("{target} (inputs in fuzz/artifacts/{target})"));
        }
    }
    if failed.is_empty() {
        println!("fuzz: nothing found");
        Ok(ExitCode::SUCCESS)
    } else {
        println!("fuzz: FOUND in {}", failed.join(", "));
        Ok(ExitCode::from(1))
    }
}

/// Returns folders of good examples: the target's own, and what other tests have recorded.
fn fuzz_seed_folders(root: &Path, target: &str) -> Vec<PathBuf> {
    let recorded: &[&str] = match target {
        "read" | "usage" | "trace" => &["crates/adapters/fixtures"],
        "event" => &["crates/core/tests/golden"],
        _ => &[],
    };
    let own = root.join("fuzz/seeds").join(target);
    let folders = recorded.iter().map(|folder| root.join(folder)).chain([own]);
    folders.filter(|folder| folder.is_dir()).collect()
}

/// Returns the names of the targets, one for each file.
fn fuzz_target_names(folder: &Path) -> Result<Vec<String>, String> {
    let sources = folder.join("fuzz_targets");
    let entries =
        std::fs::read_dir(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds the targets and returns the folder with their programs. A target triple is named so that
/// build scripts and macros, which link no fuzzer, get none of the flags.
fn build_fuzz_targets(root: &Path, folder: &Path, chosen: &[String]) -> Result<PathBuf, String> {
    let triple = host_triple()?;
    // A folder of its own: with other flags every crate would be built again in the common one.
    let into = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), PathBuf::from)
        .join("fuzz");
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--target", &triple])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&into)
        // cargo separates these flags by 0x1f, so that a flag may contain blanks.
        .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
    for target in chosen {
        command.args(["--bin", target]);
    }
    let status = command
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(into.join(triple).join("release"))
    } else {
        Err("the fuzz targets do not build".to_owned())
    }
}

fn host_triple() -> Result<String, String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| "rustc does not say its host".to_owned())
}
