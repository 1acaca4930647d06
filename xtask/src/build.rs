//! Builds the `checkrein` command in one of three ways.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::toolchain::{RequiredCCompiler, RequiredCrossCompileTools};

/// How the command is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildProfile {
    Dev,
    Dist,
    /// `dist`, linked statically at a fixed address where the target allows it: without a dynamic
    /// linker and 35,000 relocations a hook costs a third less.
    Static,
}

impl BuildProfile {
    pub(crate) fn build_profile_label(self) -> &'static str {
        match self {
            BuildProfile::Dev => "dev profile: NOT A MEASUREMENT",
            BuildProfile::Dist => "dist profile, linked dynamically",
            BuildProfile::Static => "dist profile, as installed",
        }
    }

    /// Returns the target and the flags of the last link.
    fn build_target_and_link_flags(self) -> Result<BuildTargetAndLinkFlags, String> {
        const STATIC: &[&str] = &["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];
        let here = BuildTargetAndLinkFlags {
            triple: None,
            flags: &[],
        };
        // Only Linux hosts with glibc are linked statically; elsewhere cargo's own defaults apply.
        if self != BuildProfile::Static || !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return Ok(here);
        }
        let triple = if cfg!(target_arch = "x86_64") {
            Some(MUSL.triple)
        } else {
            None
        };
        let Some(triple) = triple else {
            return Ok(BuildTargetAndLinkFlags {
                flags: STATIC,
                ..here
            });
        };
        // Without musl the program works as well, only slower: this is announced and is no error.
        let missing = MUSL.find_or_install_missing_tools(true)?;
        for what in &missing {
            eprintln!("linked with glibc, which makes each hook slower; {triple} lacks {what}");
        }
        Ok(BuildTargetAndLinkFlags {
            triple: missing.is_empty().then_some(triple),
            flags: STATIC,
        })
    }
}

/// The result of [`BuildProfile::build_target_and_link_flags`].
struct BuildTargetAndLinkFlags {
    triple: Option<&'static str>,
    flags: &'static [&'static str],
}

/// The target musl. At each start glibc asks the processor for its caches, which takes a quarter of
/// a millisecond in a virtual machine, and touches a hundred pages more.
const MUSL: RequiredCrossCompileTools = RequiredCrossCompileTools {
    triple: "x86_64-unknown-linux-musl",
    c_compiler: Some(RequiredCCompiler {
        program: "musl-gcc",
        debian_package: "musl-tools",
    }),
};

/// Flags of the bundled SQLite. They leave out extensions that register themselves each time a
/// database is opened and that nobody here uses, and put small allocations into one block, which
/// musl would ask of the system one by one. They concern speed only: any SQLite does.
const SQLITE: &str = "-USQLITE_ENABLE_FTS3 -USQLITE_ENABLE_FTS3_PARENTHESIS \
    -USQLITE_ENABLE_FTS5 -USQLITE_ENABLE_RTREE -USQLITE_ENABLE_DBSTAT_VTAB \
    -DSQLITE_DEFAULT_LOOKASIDE=1200,60";

/// Builds the command and returns its path.
pub(crate) fn build_checkrein_binary(profile: BuildProfile) -> Result<PathBuf, String> {
    let name = if profile == BuildProfile::Dev {
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
    let link = profile.build_target_and_link_flags()?;
    let mut command = cargo_command();
    // `rustc` instead of `build`: the flags are those of the last link only, and nothing else is
    // built again.
    command.arg("rustc");
    command
        .args(args)
        .arg("--message-format=json-render-diagnostics");
    if let Some(triple) = link.triple {
        command.args(["--target", triple]);
    }
    if profile == BuildProfile::Static {
        command.env("LIBSQLITE3_FLAGS", SQLITE);
    }
    command.arg("--").args(link.flags);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo cannot build {}", args.join(" ")));
    }
    // cargo tells the path, which depends on profile, target and target folder.
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .next_back()
        .ok_or_else(|| "cargo built no executable".to_owned())
}

pub(crate) fn cargo_command() -> Command {
    let mut cargo = Command::new(
        std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from),
    );
    cargo.current_dir(checkout_root());
    cargo
}

/// Returns the root of the checkout.
pub(crate) fn checkout_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Returns the folder in which cargo builds this checkout.
pub(crate) fn cargo_build_folder(root: &Path) -> PathBuf {
    // cargo runs in the root, so a relative `CARGO_TARGET_DIR` counts from there.
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |set| root.join(set))
}
