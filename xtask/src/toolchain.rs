//! Finds what a build for another target needs: its standard library and a C compiler.

use std::path::Path;
use std::process::Command;

/// The tools that a target needs.
pub(crate) struct RequiredCrossCompileTools {
    pub(crate) triple: &'static str,
    /// The compiler that C dependencies (SQLite, the bash grammar) are built with.
    pub(crate) c_compiler: Option<RequiredCCompiler>,
}

pub(crate) struct RequiredCCompiler {
    pub(crate) program: &'static str,
    pub(crate) debian_package: &'static str,
}

impl RequiredCrossCompileTools {
    /// Returns what this machine lacks. With `install` it is installed first where that is
    /// possible.
    pub(crate) fn find_or_install_missing_tools(
        &self,
        install: bool,
    ) -> Result<Vec<String>, String> {
        let mut missing = Vec::new();
        if !target_has_standard_library(self.triple)? {
            let mut add = Command::new("rustup");
            add.args(["target", "add", self.triple]);
            // Looked for again after installing: rustup may install for another rustc than the one
            // on `PATH`.
            if !(install && command_succeeds(&mut add) && target_has_standard_library(self.triple)?)
            {
                missing.push(format!(
                    "its standard library; `rustup target add {}`",
                    self.triple
                ));
            }
        }
        if let Some(compiler) = &self.c_compiler
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
            // No package may ask a question: nobody may be there to answer.
            add.env("DEBIAN_FRONTEND", "noninteractive");
            if !(install && command_succeeds(&mut add) && is_on_path(compiler.program)) {
                missing.push(format!(
                    "the C compiler {}; on Debian `apt-get install {}`",
                    compiler.program, compiler.debian_package
                ));
            }
        }
        Ok(missing)
    }
}

/// Asks rustc, not rustup: a distribution's rustc has its targets elsewhere.
fn target_has_standard_library(triple: &str) -> Result<bool, String> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    let folder = Path::new(folder.trim());
    // rustc prints the folder of a target that is not installed as well, so its contents decide.
    let has_core = std::fs::read_dir(folder).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
    });
    Ok(output.status.success() && has_core)
}

fn command_succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
