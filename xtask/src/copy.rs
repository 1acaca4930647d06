//! A copy of the checkout, for chores that break something on purpose.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A copy of the checkout with a target folder of its own. Both stay from run to run, so
/// that only what changed is built.
pub(crate) struct Copy {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
}

impl Copy {
    pub(crate) fn make(root: &Path, name: &str) -> Result<Self, String> {
        let base = crate::build::target_folder(root).join(name);
        let copy = Self {
            root: root.to_owned(),
            tree: base.join("tree"),
            target: base.join("target"),
        };
        std::fs::create_dir_all(&copy.tree).map_err(|error| said(&copy.tree, &error))?;
        copy.refresh()?;
        Ok(copy)
    }

    /// Brings the copy up to date. What is equal is not written, so that it keeps its
    /// time and cargo does not build it again.
    fn refresh(&self) -> Result<(), String> {
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
            .filter(|path| !path.is_empty() && self.root.join(path).is_file())
            .collect();
        for path in &wanted {
            self.restore(path)?;
        }
        // The list of last time says what is gone since.
        let list = self.tree.with_file_name("files");
        let before = std::fs::read_to_string(&list).unwrap_or_default();
        for gone in before.lines().filter(|path| !wanted.contains(path)) {
            // It may be gone already: that is what is wanted.
            let _ = std::fs::remove_file(self.tree.join(gone));
        }
        let names: Vec<&str> = wanted.into_iter().collect();
        std::fs::write(&list, names.join("\n")).map_err(|error| said(&list, &error))
    }

    fn restore(&self, path: &str) -> Result<(), String> {
        let (from, to) = (self.root.join(path), self.tree.join(path));
        let bytes = std::fs::read(&from).map_err(|error| said(&from, &error))?;
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder).map_err(|error| said(folder, &error))?;
        }
        std::fs::write(&to, bytes).map_err(|error| said(&to, &error))
    }

    /// Where it is.
    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Where it is built.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Takes a patch back.
    pub(crate) fn take_back(&self, patch: &str) -> Result<(), String> {
        touched(patch)
            .into_iter()
            .try_for_each(|path| self.restore(path))
    }

    /// Applies a patch; says why it cannot.
    pub(crate) fn apply(&self, patch: &str) -> Result<Result<(), String>, String> {
        let file = self.tree.with_file_name("applied.patch");
        std::fs::write(&file, patch).map_err(|error| said(&file, &error))?;
        let applied = Command::new("git")
            .arg("apply")
            .arg(&file)
            .current_dir(&self.tree)
            // The copy may lie inside the checkout. Were git to find that repository, it
            // would take the paths as outside this folder and skip them without a word.
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
        let changed = |path: &&str| {
            std::fs::read(self.tree.join(path)).ok() != std::fs::read(self.root.join(path)).ok()
        };
        let touched = touched(patch);
        Ok(if !touched.is_empty() && touched.iter().all(changed) {
            Ok(())
        } else {
            Err("it changes nothing".to_owned())
        })
    }

    /// `cargo test` with these arguments: whether it passes.
    pub(crate) fn test(&self, arguments: &[String]) -> Result<bool, String> {
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

/// The files a patch changes.
fn touched(patch: &str) -> Vec<&str> {
    patch
        .lines()
        .filter_map(|line| line.strip_prefix("+++ b/"))
        .map(str::trim_end)
        .collect()
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
