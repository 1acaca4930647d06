//! Builds the command in one of three ways.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How the command is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Dist,
    /// `dist`, linked statically at a fixed address where the target allows it: without a
    /// dynamic linker and 35,000 relocations a hook costs a third less.
    Static,
}

impl Profile {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Profile::Dev => "dev profile: NOT A MEASUREMENT",
            Profile::Dist => "dist profile, linked dynamically",
            Profile::Static => "dist profile, as installed",
        }
    }

    /// Flags of the last link.
    fn link(self) -> &'static [&'static str] {
        match self {
            Profile::Static if cfg!(all(target_os = "linux", target_env = "gnu")) => {
                &["-Ctarget-feature=+crt-static", "-Crelocation-model=static"]
            }
            _ => &[],
        }
    }
}

/// Builds the command and says where it is.
pub(crate) fn command(profile: Profile) -> Result<PathBuf, String> {
    let name = if profile == Profile::Dev {
        "dev"
    } else {
        "dist"
    };
    let args = [
        "--package",
        "checkrein-cli",
        "--bin",
        "checkrein",
        "--profile",
        name,
    ];
    let mut command = cargo();
    // `rustc`, not `build`: the flags are of the last link only, nothing else is built again.
    command.arg("rustc");
    command
        .args(args)
        .arg("--message-format=json-render-diagnostics");
    command.arg("--").args(profile.link());
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo cannot build {}", args.join(" ")));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .next_back()
        .ok_or_else(|| "cargo built no executable".to_owned())
}

pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(
        std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from),
    );
    cargo.current_dir(root());
    cargo
}

/// The checkout.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}
