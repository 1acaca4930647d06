//! `targets`: the whole workspace type-checks for Windows, `core` and `adapters` for
//! wasm32. What this machine lacks for that is named (exit 2); `--install` gets it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::tools::{CCompiler, Tools};

/// One target, and what must hold there.
struct Target {
    tools: Tools,
    /// Packages to check; none = the workspace.
    packages: &'static [&'static str],
}

const TARGETS: &[Target] = &[
    Target {
        tools: Tools {
            triple: "x86_64-pc-windows-gnu",
            c_compiler: Some(CCompiler {
                program: "x86_64-w64-mingw32-gcc",
                debian_package: "gcc-mingw-w64-x86-64",
            }),
        },
        packages: &[],
    },
    Target {
        tools: Tools {
            triple: "wasm32-unknown-unknown",
            c_compiler: None,
        },
        packages: &["checkrein-core", "checkrein-adapters"],
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
        let missing = target.tools.missing(install)?;
        let outcome = if missing.is_empty() {
            check(target)?
        } else {
            for what in missing {
                println!("{}: not checked: {what}", target.tools.triple);
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

fn check(target: &Target) -> Result<Outcome, String> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(cargo);
    command.args(["check", "--locked", "--target", target.tools.triple]);
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
    println!("{}: {what} {verb}", target.tools.triple);
    Ok(if checks {
        Outcome::Checks
    } else {
        Outcome::Fails
    })
}
