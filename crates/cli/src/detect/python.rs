//! Python: pytest, unittest or tox, and ruff and mypy where they are configured; through uv,
//! poetry or pdm where the project is kept by one, else by its own virtual environment.

use super::tree::{Tree, is_python_test};
use super::{Family, Found, Hit, Kind};

pub(super) const FAMILY: Family = Family {
    name: "python",
    look,
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

fn look(tree: &Tree, folder: &str) -> Option<Found> {
    let manifest = tree.first(folder, MANIFESTS);
    let tests = tree
        .below(folder)
        .any(|file| is_python_test(file) && (manifest.is_some() || near(file)));
    if manifest.is_none() && !tests {
        return None;
    }
    let project = Project { tree, folder };
    let mut hits = Vec::new();
    hits.extend(project.tests(tests));
    hits.extend(project.lint());
    hits.extend(project.types());
    for hit in &mut hits {
        hit.reaches_out = project.settings().any(|text| text.contains("../"));
    }
    let covers = !hits.is_empty();
    Some(Found { hits, covers })
}

/// Without a manifest only tests that lie there count: a script somewhere below is no project.
fn near(file: &str) -> bool {
    match file.rsplit_once('/') {
        None => true,
        Some((folder, _)) => matches!(folder, "test" | "tests"),
    }
}

struct Project<'a> {
    tree: &'a Tree,
    folder: &'a str,
}

impl Project<'_> {
    fn text(&self, name: &str) -> &str {
        self.tree.text(self.folder, name)
    }

    /// Texts in which tools are configured or asked for.
    fn settings(&self) -> impl Iterator<Item = &str> {
        self.tree
            .texts_below(self.folder)
            .filter(|(file, _)| {
                let name = file.rsplit('/').next().unwrap_or(file);
                let here = !file.contains('/');
                (here && MANIFESTS.contains(&name))
                    || (name.starts_with("requirements") && name.ends_with(".txt"))
            })
            .map(|(_, text)| text)
    }

    fn mentions(&self, tool: &str) -> bool {
        self.settings().any(|text| text.contains(tool))
    }

    fn has_table(&self, name: &str) -> bool {
        let table = format!("[{name}");
        self.text("pyproject.toml")
            .lines()
            .any(|line| line.trim().starts_with(&table))
    }

    /// How a module is started, e.g. `uv run` or `python3 -m`.
    fn runner(&self, module: &str) -> String {
        let has = |name: &str| self.tree.has(self.folder, name);
        if has("uv.lock") || self.has_table("tool.uv") {
            return format!("uv run {module}");
        }
        if has("poetry.lock") || self.has_table("tool.poetry") {
            return format!("poetry run {module}");
        }
        if has("pdm.lock") || self.has_table("tool.pdm") {
            return format!("pdm run {module}");
        }
        let own = [
            ".venv/bin/python",
            "venv/bin/python",
            ".venv/Scripts/python.exe",
        ];
        match self.tree.first(self.folder, &own) {
            Some(python) => format!("{python} -m {module}"),
            None => format!(
                "{} -m {module}",
                if cfg!(windows) { "python" } else { "python3" }
            ),
        }
    }

    fn tests(&self, there: bool) -> Option<Hit> {
        let files = || {
            let texts = self.tree.texts_below(self.folder);
            texts.filter(|(file, _)| is_python_test(file))
        };
        let configured = self.tree.first(self.folder, &["pytest.ini", "conftest.py"]);
        let written_for_pytest = files().any(|(_, text)| {
            text.contains("import pytest") || text.lines().any(|line| line.starts_with("def test_"))
        });
        let unittest = files().any(|(_, text)| text.contains("unittest"));
        if there && (configured.is_some() || written_for_pytest || self.mentions("pytest")) {
            let why = match configured {
                Some(file) => file.to_owned(),
                None if self.mentions("pytest") => "pytest in the project's settings".to_owned(),
                None => "tests written for pytest".to_owned(),
            };
            return Some(Hit::new(Kind::Tests, self.runner("pytest"), why));
        }
        if there && unittest {
            // Discovery goes down from the root into packages only.
            let below: Option<&str> = files().find_map(|(file, _)| {
                let (folder, _) = file.split_once('/')?;
                (!self.tree.has(self.folder, &format!("{folder}/__init__.py"))).then_some(folder)
            });
            let start = below.map_or_else(String::new, |folder| {
                format!(" -s {}", super::quoted(folder))
            });
            let run = self.python(&format!("unittest discover{start}"));
            return Some(Hit::new(Kind::Tests, run, "tests written for unittest"));
        }
        let tox = self.text("tox.ini").contains("[testenv") || self.has_table("tool.tox");
        tox.then(|| {
            let mut hit = Hit::new(Kind::Tests, "tox", "tox settings");
            hit.timeout = Some("20m");
            hit
        })
    }

    /// A module of Python's own.
    fn python(&self, arguments: &str) -> String {
        let run = self.runner(arguments);
        match run.split_once(" run ") {
            Some((program, _)) => format!("{program} run python -m {arguments}"),
            None => run,
        }
    }

    fn lint(&self) -> Option<Hit> {
        let file = self.tree.first(self.folder, &["ruff.toml", ".ruff.toml"]);
        let why = match file {
            Some(file) => file,
            None if self.has_table("tool.ruff") => "[tool.ruff] in pyproject.toml",
            None => return None,
        };
        Some(Hit::new(Kind::Lint, self.tool("ruff", "check ."), why))
    }

    fn types(&self) -> Option<Hit> {
        let file = self.tree.first(self.folder, &["mypy.ini", ".mypy.ini"]);
        let in_setup = self
            .text("setup.cfg")
            .lines()
            .any(|line| line.trim() == "[mypy]");
        let (why, settings) = match file {
            Some(file) => (file, self.text(file)),
            None if self.has_table("tool.mypy") => {
                ("[tool.mypy] in pyproject.toml", self.text("pyproject.toml"))
            }
            None if in_setup => ("[mypy] in setup.cfg", self.text("setup.cfg")),
            None => return None,
        };
        let named = settings.lines().any(|line| {
            let key = line.split('=').next().unwrap_or_default().trim();
            matches!(key, "files" | "packages" | "modules")
        });
        let what = if named { "" } else { "." };
        Some(Hit::new(Kind::Typecheck, self.tool("mypy", what), why))
    }

    /// A tool that is installed beside the project, or with it.
    fn tool(&self, name: &str, arguments: &str) -> String {
        let run = self.runner(name);
        let run = if run.starts_with("python") {
            name.to_owned()
        } else {
            run
        };
        format!("{run} {arguments}").trim_end().to_owned()
    }
}
