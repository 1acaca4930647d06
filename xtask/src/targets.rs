//! `targets`: type-checks the whole workspace for Windows, and `core` and `adapters` for wasm32.
//! What this machine lacks for that is named (exit status 2); `--install` gets it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::toolchain::{RequiredCCompiler, RequiredCrossCompileTools};

/// One target, and what must type-check there.
struct CrossCompileTargetCheck {
    toolchain: RequiredCrossCompileTools,
    /// Packages to check; if there are none, the workspace.
    packages: &'static [&'static str],
}

const TARGETS: &[CrossCompileTargetCheck] = &[
    CrossCompileTargetCheck {
        toolchain: RequiredCrossCompileTools {
            triple: "x86_64-pc-windows-gnu",
            c_compiler: Some(RequiredCCompiler {
                program: "x86_64-w64-mingw32-gcc",
                debian_package: "gcc-mingw-w64-x86-64",
            }),
        },
        packages: &[],
    },
    // The two crates that are pure must not come to need an operating system.
    CrossCompileTargetCheck {
        toolchain: RequiredCrossCompileTools {
            triple: "wasm32-unknown-unknown",
            c_compiler: None,
        },
        packages: &["checkrein-core", "checkrein-adapters"],
    },
];

/// Checks all targets.
pub(crate) fn check_all_cross_compile_targets(arguments: &[String]) -> Result<ExitCode, String> {
    let install = match arguments {
        [] => false,
        [flag] if flag == "--install" => true,
        _ => return Err("usage: cargo xtask targets [--install]".to_owned()),
    };
    let mut worst = PlatformTypeCheckOutcome::Checks;
    for target in TARGETS {
        let missing = target.toolchain.find_or_install_missing_tools(install)?;
        let outcome = if missing.is_empty() {
            run_cargo_check_for_target(target)?
        } else {
            for what in missing {
                println!("{}: not checked: {what}", target.toolchain.triple);
            }
            PlatformTypeCheckOutcome::Missing
        };
        // Every target is checked, and the worst outcome decides.
        worst = worst.max(outcome);
    }
    Ok(match worst {
        PlatformTypeCheckOutcome::Checks => ExitCode::SUCCESS,
        PlatformTypeCheckOutcome::Fails => ExitCode::from(1),
        PlatformTypeCheckOutcome::Missing => ExitCode::from(2),
    })
}

/// Ordered by severity: a target that was not checked may hide failures as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PlatformTypeCheckOutcome {
    Checks,
    Fails,
    Missing,
}

fn run_cargo_check_for_target(
    target: &CrossCompileTargetCheck,
) -> Result<PlatformTypeCheckOutcome, String> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(cargo);
    // `--locked`: a check must not change the lock file.
    command.args(["check", "--locked", "--target", target.toolchain.triple]);
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
    println!("{}: {what} {verb}", target.toolchain.triple);
    Ok(if checks {
        PlatformTypeCheckOutcome::Checks
    } else {
        PlatformTypeCheckOutcome::Fails
    })
}
