//! `targets`: the whole workspace type-checks for Windows, `core` and `adapters` for
//! wasm32. What this machine lacks for that is named (exit 2); `--install` gets it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// One target, and what must hold there.
struct Target {
    triple: &'static str,
    /// Packages to check; none = the workspace.
    packages: &'static [&'static str],
    /// The compiler that C dependencies (SQLite, the bash grammar) are built with.
    c_compiler: Option<CCompiler>,
}

struct CCompiler {
    program: &'static str,
    debian_package: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-pc-windows-gnu",
        packages: &[],
        c_compiler: Some(CCompiler {
            program: "x86_64-w64-mingw32-gcc",
            debian_package: "gcc-mingw-w64-x86-64",
        }),
    },
    Target {
        triple: "wasm32-unknown-unknown",
        packages: &["checkrein-core", "checkrein-adapters"],
        c_compiler: None,
    },
];

/// The command.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let install = match arguments {
        [] => false,
        [flag] if flag == "--install" => true,
        _ => return Err("usage: cargo xtask targets [--install]".to_owned()),
    };
    let mut worst = Outcome::Checks;
    for target in TARGETS {
        let missing = missing(target, install)?;
        let outcome = if missing.is_empty() {
            check(target)?
        } else {
            for what in missing {
                println!("{}: not checked: {what}", target.triple);
            }
            Outcome::Missing
        };
        worst = worst.max(outcome);
    }
    Ok(match worst {
        Outcome::Checks => ExitCode::SUCCESS,
        Outcome::Fails => ExitCode::from(1),
        Outcome::Missing => ExitCode::from(2),
    })
}

/// By severity: what was not looked at may hide failures as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Checks,
    Fails,
    Missing,
}

fn missing(target: &Target, install: bool) -> Result<Vec<String>, String> {
    let mut missing = Vec::new();
    if !has_std(target.triple)? {
        let mut add = Command::new("rustup");
        add.args(["target", "add", target.triple]);
        if !(install && succeeds(&mut add) && has_std(target.triple)?) {
            missing.push(format!(
                "its standard library; `rustup target add {}`",
                target.triple
            ));
        }
    }
    if let Some(compiler) = &target.c_compiler
        && !is_on_path(compiler.program)
    {
        let mut add = Command::new("apt-get");
        add.args([
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
            compiler.debian_package,
        ]);
        add.env("DEBIAN_FRONTEND", "noninteractive");
        if !(install && succeeds(&mut add) && is_on_path(compiler.program)) {
            missing.push(format!(
                "the C compiler {}; on Debian `apt-get install {}`",
                compiler.program, compiler.debian_package
            ));
        }
    }
    Ok(missing)
}

/// rustc is asked, not rustup: a distribution's rustc has its targets elsewhere.
fn has_std(triple: &str) -> Result<bool, String> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    let folder = Path::new(folder.trim());
    let has_core = std::fs::read_dir(folder).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
    });
    Ok(output.status.success() && has_core)
}

fn check(target: &Target) -> Result<Outcome, String> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(cargo);
    command.args(["check", "--locked", "--target", target.triple]);
    if target.packages.is_empty() {
        command.arg("--workspace");
    }
    for package in target.packages {
        command.args(["--package", package]);
    }
    let checks = command
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?
        .success();
    let what = if target.packages.is_empty() {
        "the workspace".to_owned()
    } else {
        target.packages.join(", ")
    };
    let verb = if checks { "checks" } else { "DOES NOT CHECK" };
    println!("{}: {what} {verb}", target.triple);
    Ok(if checks {
        Outcome::Checks
    } else {
        Outcome::Fails
    })
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
