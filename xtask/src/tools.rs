//! What it takes to build for another target: its standard library, and a C compiler.

use std::path::Path;
use std::process::Command;

/// The tools of a target.
pub(crate) struct Tools {
    pub(crate) triple: &'static str,
    /// The compiler that C dependencies (SQLite, the bash grammar) are built with.
    pub(crate) c_compiler: Option<CCompiler>,
}

pub(crate) struct CCompiler {
    pub(crate) program: &'static str,
    pub(crate) debian_package: &'static str,
}

impl Tools {
    /// What this machine lacks; `install` gets it where it can.
    pub(crate) fn missing(&self, install: bool) -> Result<Vec<String>, String> {
        let mut missing = Vec::new();
        if !has_std(self.triple)? {
            let mut add = Command::new("rustup");
            add.args(["target", "add", self.triple]);
            if !(install && succeeds(&mut add) && has_std(self.triple)?) {
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

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
