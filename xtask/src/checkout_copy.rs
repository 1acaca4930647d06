//! Keeps a copy of the checkout for commands that break something on purpose.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A copy of the checkout with a target folder of its own. Both stay from run to run, so that only
/// what has changed is built.
pub(crate) struct CheckoutCopy {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
}

impl CheckoutCopy {
    pub(crate) fn create_checkout_copy(root: &Path, name: &str) -> Result<Self, String> {
        let base = crate::build::cargo_build_folder(root).join(name);
        let copy = Self {
            root: root.to_owned(),
            tree: base.join("tree"),
            target: base.join("target"),
        };
        std::fs::create_dir_all(&copy.tree).map_err(|error| io_error_text(&copy.tree, &error))?;
        copy.refresh_copy()?;
        Ok(copy)
    }

    /// Brings the copy up to date. Files that are equal are not written: they keep their times, and
    /// cargo does not build them again.
    fn refresh_copy(&self) -> Result<(), String> {
        // Files as they stand in the working tree, new ones too, so that work in progress can be
        // tested; ignored ones such as `target` are left out.
        let mut git = Command::new("git");
        git.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = git
            .current_dir(&self.root)
            .output()
            .map_err(|error| format!("git ls-files: {error}"))?;
        if !listed.status.success() {
            return Err("git ls-files failed; laws are broken in a git checkout only".to_owned());
        }
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let wanted: BTreeSet<&str> = listed
            .split('\0')
            // `--cached` also lists files that are deleted in the working tree.
            .filter(|path| !path.is_empty() && self.root.join(path).is_file())
            .collect();
        for path in &wanted {
            self.recopy_file_from_checkout(path)?;
        }
        // The list of the last run tells which files are gone since.
        let list = self.tree.with_file_name("files");
        let before = std::fs::read_to_string(&list).unwrap_or_default();
        for gone in before.lines().filter(|path| !wanted.contains(path)) {
            // It may be gone already, which is the goal.
            let _ = std::fs::remove_file(self.tree.join(gone));
        }
        let names: Vec<&str> = wanted.into_iter().collect();
        std::fs::write(&list, names.join("\n")).map_err(|error| io_error_text(&list, &error))
    }

    fn recopy_file_from_checkout(&self, path: &str) -> Result<(), String> {
        let (from, to) = (self.root.join(path), self.tree.join(path));
        let bytes = std::fs::read(&from).map_err(|error| io_error_text(&from, &error))?;
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder).map_err(|error| io_error_text(folder, &error))?;
        }
        std::fs::write(&to, bytes).map_err(|error| io_error_text(&to, &error))
    }

    /// Returns the root of the copy.
    pub(crate) fn checkout_copy_root(&self) -> &Path {
        &self.tree
    }

    /// Returns the folder in which the copy is built.
    pub(crate) fn cargo_target_of_copy(&self) -> &Path {
        &self.target
    }

    /// Reverts a patch by restoring the files that it changes.
    pub(crate) fn revert_patch(&self, patch: &str) -> Result<(), String> {
        patched_files(patch)
            .into_iter()
            .try_for_each(|path| self.recopy_file_from_checkout(path))
    }

    /// Applies a patch. The inner error says why it does not apply.
    pub(crate) fn apply_patch_to_copy(&self, patch: &str) -> Result<Result<(), String>, String> {
        let file = self.tree.with_file_name("applied.patch");
        std::fs::write(&file, patch).map_err(|error| io_error_text(&file, &error))?;
        let applied = Command::new("git")
            .arg("apply")
            .arg(&file)
            .current_dir(&self.tree)
            // The copy may lie inside the checkout. If git found that repository, it would take the
            // paths as outside of this folder and skip them silently.
            .env(
                "GIT_CEILING_DIRECTORIES",
                self.tree.parent().unwrap_or(&self.tree),
            )
            .output()
            .map_err(|error| format!("git apply: {error}"))?;
        if !applied.status.success() {
            let why = String::from_utf8_lossy(&applied.stderr);
            return Ok(Err(why.lines().next().unwrap_or_default().to_owned()));
        }
        // git ends with status 0 also if it has skipped every path, so the files themselves are
        // compared.
        let changed = |path: &&str| {
            std::fs::read(self.tree.join(path)).ok() != std::fs::read(self.root.join(path)).ok()
        };
        let touched = patched_files(patch);
        Ok(if !touched.is_empty() && touched.iter().all(changed) {
            Ok(())
        } else {
            Err("it changes nothing".to_owned())
        })
    }

    /// Runs `cargo test` with these arguments and returns whether it passes.
    pub(crate) fn run_cargo_tests_in_copy(&self, arguments: &[String]) -> Result<bool, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .arg("test")
            .args(["--quiet"])
            .args(arguments)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        Ok(status.success())
    }
}

/// Returns the files that a patch changes.
fn patched_files(patch: &str) -> Vec<&str> {
    patch
        .lines()
        .filter_map(|line| line.strip_prefix("+++ b/"))
        .map(str::trim_end)
        .collect()
}

fn io_error_text(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
