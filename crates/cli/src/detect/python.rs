//! Detects Python checks: pytest, unittest or tox, and ruff and mypy where they are configured.
//! They are started through uv, poetry or pdm where the project uses one, else by its own virtual
//! environment.

use super::repo_files::{RepoFilesForDetection, is_python_test_file};
use super::{CheckDetectedInFolder, DetectedCheckPurpose, FolderDetectedChecks, ToolchainDetector};

pub(super) const FAMILY: ToolchainDetector = ToolchainDetector {
    name: "python",
    detect: detect_python_checks,
};

const MANIFESTS: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pytest.ini",
    "tox.ini",
    "requirements.txt",
    "Pipfile",
    "conftest.py",
    "ruff.toml",
    ".ruff.toml",
    "mypy.ini",
    ".mypy.ini",
];

fn detect_python_checks(
    tree: &RepoFilesForDetection,
    folder: &str,
) -> Option<FolderDetectedChecks> {
    let manifest = tree.first_present_file(folder, MANIFESTS);
    let tests = tree.files_below(folder).any(|file| {
        is_python_test_file(file) && (manifest.is_some() || is_test_file_near_root(file))
    });
    if manifest.is_none() && !tests {
        return None;
    }
    let project = PythonProjectFolder { tree, folder };
    let mut hits = Vec::new();
    hits.extend(project.python_tests_check(tests));
    hits.extend(project.detect_ruff_check());
    hits.extend(project.detect_mypy_check());
    for hit in &mut hits {
        hit.reaches_out = project
            .python_config_texts()
            .any(|text| text.contains("../"));
    }
    let covers = !hits.is_empty();
    Some(FolderDetectedChecks {
        checks: hits,
        covers_subfolders: covers,
    })
}

/// Returns whether a test lies in the folder itself or its test folder. Without a manifest only
/// such tests count: a script somewhere below is no project.
fn is_test_file_near_root(file: &str) -> bool {
    match file.rsplit_once('/') {
        None => true,
        Some((folder, _)) => matches!(folder, "test" | "tests"),
    }
}

struct PythonProjectFolder<'a> {
    tree: &'a RepoFilesForDetection,
    folder: &'a str,
}

impl PythonProjectFolder<'_> {
    fn project_file_text(&self, name: &str) -> &str {
        self.tree.project_file_text(self.folder, name)
    }

    /// Returns the texts in which tools are configured or required.
    fn python_config_texts(&self) -> impl Iterator<Item = &str> {
        self.tree
            .file_texts_below_folder(self.folder)
            .filter(|(file, _)| {
                let name = file.rsplit('/').next().unwrap_or(file);
                let here = !file.contains('/');
                (here && MANIFESTS.contains(&name))
                    || (name.starts_with("requirements") && name.ends_with(".txt"))
            })
            .map(|(_, text)| text)
    }

    fn python_settings_mention_tool(&self, tool: &str) -> bool {
        self.python_config_texts().any(|text| text.contains(tool))
    }

    fn has_pyproject_table(&self, name: &str) -> bool {
        let table = format!("[{name}");
        self.project_file_text("pyproject.toml")
            .lines()
            .any(|line| line.trim().starts_with(&table))
    }

    /// Returns how a module is started, e.g. by `uv run` or `python3 -m`.
    fn command_to_run_module(&self, module: &str) -> String {
        let has = |name: &str| self.tree.has_file(self.folder, name);
        if has("uv.lock") || self.has_pyproject_table("tool.uv") {
            return format!("uv run {module}");
        }
        if has("poetry.lock") || self.has_pyproject_table("tool.poetry") {
            return format!("poetry run {module}");
        }
        if has("pdm.lock") || self.has_pyproject_table("tool.pdm") {
            return format!("pdm run {module}");
        }
        // The interpreter is named by its path: the activated environment of whoever runs `init`
        // may be another one.
        let own = [
            ".venv/bin/python",
            "venv/bin/python",
            ".venv/Scripts/python.exe",
        ];
        match self.tree.first_present_file(self.folder, &own) {
            Some(python) => format!("{python} -m {module}"),
            None => format!(
                "{} -m {module}",
                if cfg!(windows) { "python" } else { "python3" }
            ),
        }
    }

    fn python_tests_check(&self, there: bool) -> Option<CheckDetectedInFolder> {
        let files = || {
            let texts = self.tree.file_texts_below_folder(self.folder);
            texts.filter(|(file, _)| is_python_test_file(file))
        };
        let configured = self
            .tree
            .first_present_file(self.folder, &["pytest.ini", "conftest.py"]);
        // A test function outside of a class is collected by pytest and not by unittest.
        let written_for_pytest = files().any(|(_, text)| {
            text.contains("import pytest") || text.lines().any(|line| line.starts_with("def test_"))
        });
        let unittest = files().any(|(_, text)| text.contains("unittest"));
        // pytest comes before unittest, since it runs tests of both kinds.
        if there
            && (configured.is_some()
                || written_for_pytest
                || self.python_settings_mention_tool("pytest"))
        {
            let why = match configured {
                Some(file) => file.to_owned(),
                None if self.python_settings_mention_tool("pytest") => {
                    "pytest in the project's settings".to_owned()
                }
                None => "tests written for pytest".to_owned(),
            };
            return Some(CheckDetectedInFolder::new(
                DetectedCheckPurpose::Tests,
                self.command_to_run_module("pytest"),
                why,
            ));
        }
        if there && unittest {
            // The discovery of unittest descends from its start folder into packages only, so a
            // folder of tests without `__init__.py` has to be named as the start.
            let below: Option<&str> = files().find_map(|(file, _)| {
                let (folder, _) = file.split_once('/')?;
                (!self
                    .tree
                    .has_file(self.folder, &format!("{folder}/__init__.py")))
                .then_some(folder)
            });
            let start = below.map_or_else(String::new, |folder| {
                format!(" -s {}", crate::shell::quote_shell_word(folder))
            });
            let run = self.python_dash_m_command(&format!("unittest discover{start}"));
            return Some(CheckDetectedInFolder::new(
                DetectedCheckPurpose::Tests,
                run,
                "tests written for unittest",
            ));
        }
        // tox is the last choice: it builds environments first, hence the longer timeout below.
        let tox = self.project_file_text("tox.ini").contains("[testenv")
            || self.has_pyproject_table("tool.tox");
        tox.then(|| {
            let mut hit =
                CheckDetectedInFolder::new(DetectedCheckPurpose::Tests, "tox", "tox settings");
            hit.timeout = Some("20m");
            hit
        })
    }

    /// Returns how a module of the standard library is started.
    fn python_dash_m_command(&self, arguments: &str) -> String {
        let run = self.command_to_run_module(arguments);
        // `uv run unittest` would look for a program of that name; `python -m` finds the module.
        match run.split_once(" run ") {
            Some((program, _)) => format!("{program} run python -m {arguments}"),
            None => run,
        }
    }

    fn detect_ruff_check(&self) -> Option<CheckDetectedInFolder> {
        let file = self
            .tree
            .first_present_file(self.folder, &["ruff.toml", ".ruff.toml"]);
        let why = match file {
            Some(file) => file,
            None if self.has_pyproject_table("tool.ruff") => "[tool.ruff] in pyproject.toml",
            None => return None,
        };
        Some(CheckDetectedInFolder::new(
            DetectedCheckPurpose::Lint,
            self.python_tool_command("ruff", "check ."),
            why,
        ))
    }

    fn detect_mypy_check(&self) -> Option<CheckDetectedInFolder> {
        let file = self
            .tree
            .first_present_file(self.folder, &["mypy.ini", ".mypy.ini"]);
        let in_setup = self
            .project_file_text("setup.cfg")
            .lines()
            .any(|line| line.trim() == "[mypy]");
        let (why, settings) = match file {
            Some(file) => (file, self.project_file_text(file)),
            None if self.has_pyproject_table("tool.mypy") => (
                "[tool.mypy] in pyproject.toml",
                self.project_file_text("pyproject.toml"),
            ),
            None if in_setup => ("[mypy] in setup.cfg", self.project_file_text("setup.cfg")),
            None => return None,
        };
        // mypy without arguments takes its targets from these keys, and fails if none of them is
        // set.
        let named = settings.lines().any(|line| {
            let key = line.split('=').next().unwrap_or_default().trim();
            matches!(key, "files" | "packages" | "modules")
        });
        let what = if named { "" } else { "." };
        Some(CheckDetectedInFolder::new(
            DetectedCheckPurpose::Typecheck,
            self.python_tool_command("mypy", what),
            why,
        ))
    }

    /// Returns how a tool is started that is installed beside the project, or with it.
    fn python_tool_command(&self, name: &str, arguments: &str) -> String {
        let run = self.command_to_run_module(name);
        // Without an environment of the project's own the tool is a program on the PATH, as pipx
        // installs it.
        let run = if run.starts_with("python") {
            name.to_owned()
        } else {
            run
        };
        format!("{run} {arguments}").trim_end().to_owned()
    }
}
