//! What a command is known to be, by its words: a test runner, a checker, something that
//! runs a script of the project, or a program like any other.

use checkrein_core::exit_status::{CommandKind, TestRunner};

use crate::rules::basename;

/// What a command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recognised {
    /// It prints, moves files about or waits: whether it fails says nothing of the project.
    Idle,
    /// It is of this kind.
    Known(CommandKind),
    /// It runs the command that begins at this word.
    Wraps(usize),
    /// Scripts of a `package.json`.
    PackageScripts(PackageScripts),
    /// Targets of a makefile.
    Make(RecipeCall),
    /// Recipes of a justfile.
    Just(RecipeCall),
}

/// A call like `npm run build`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PackageScripts {
    /// Their names.
    pub(super) names: Vec<String>,
    /// The folder of the package, where one is given.
    pub(super) folder: Option<String>,
    /// `--if-present`: that there is no such script is no failure.
    pub(super) optional: bool,
    /// Whether `preNAME` and `postNAME` run, too.
    pub(super) hooks: bool,
    /// Whether a failure of one of them is passed over.
    pub(super) passed_over: Option<&'static str>,
}

/// A call like `make -C dir test`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RecipeCall {
    /// Targets; empty for the first one.
    pub(super) targets: Vec<String>,
    /// `-C DIR`.
    pub(super) folder: Option<String>,
    /// `-f FILE`.
    pub(super) file: Option<String>,
    /// The option with which failures are passed over.
    pub(super) passed_over: Option<&'static str>,
}

/// Commands that decide nothing about a project.
const IDLE: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "alias",
    "awk",
    "basename",
    "bg",
    "break",
    "builtin",
    "cat",
    "cd",
    "chmod",
    "chown",
    "clear",
    "column",
    "command",
    "continue",
    "cp",
    "cut",
    "date",
    "declare",
    "df",
    "dirname",
    "du",
    "echo",
    "env",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fg",
    "fold",
    "getopts",
    "hash",
    "head",
    "hostname",
    "id",
    "install",
    "jobs",
    "kill",
    "killall",
    "let",
    "ln",
    "local",
    "logger",
    "ls",
    "mkdir",
    "mkfifo",
    "mktemp",
    "mv",
    "nl",
    "nproc",
    "open",
    "paste",
    "pkill",
    "popd",
    "printenv",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "rev",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "set",
    "shift",
    "shopt",
    "sleep",
    "sort",
    "source",
    "stdbuf",
    "stty",
    "sync",
    "tac",
    "tail",
    "tee",
    "test",
    "times",
    "touch",
    "tput",
    "tr",
    "trap",
    "true",
    "truncate",
    "tsort",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "uname",
    "uniq",
    "unset",
    "uptime",
    "wait",
    "wc",
    "which",
    "whoami",
    "xargs",
    "yes",
];

/// Test runners, each with what prints its counts.
const TEST_RUNNERS: &[(&str, Option<TestRunner>)] = &[
    ("pytest", Some(TestRunner::Pytest)),
    ("py.test", Some(TestRunner::Pytest)),
    ("unittest", Some(TestRunner::Unittest)),
    ("jest", Some(TestRunner::Jest)),
    ("vitest", Some(TestRunner::Vitest)),
    ("mocha", Some(TestRunner::Mocha)),
    ("rspec", Some(TestRunner::Rspec)),
    ("phpunit", Some(TestRunner::Phpunit)),
    ("pest", Some(TestRunner::Phpunit)),
    ("ctest", Some(TestRunner::Ctest)),
    ("ava", None),
    ("bats", None),
    ("behave", None),
    ("behat", None),
    ("busted", None),
    ("c8", None),
    ("codecept", None),
    ("cucumber", None),
    ("cucumber-js", None),
    ("ginkgo", None),
    ("gotestsum", None),
    ("jasmine", None),
    ("karma", None),
    ("minitest", None),
    ("nose2", None),
    ("nosetests", None),
    ("nox", None),
    ("prove", None),
    ("react-scripts", None),
    ("robot", None),
    ("tap", None),
    ("tape", None),
    ("tox", None),
    ("trial", None),
    ("uvu", None),
    ("wtr", None),
];

/// Programs that judge without a count of tests, whatever they are given.
const CHECKERS: &[&str] = &[
    "actionlint",
    "ansible-lint",
    "bandit",
    "biome",
    "c++",
    "cargo-clippy",
    "cc",
    "checkov",
    "clang",
    "clang++",
    "clang-tidy",
    "clippy-driver",
    "cmakelint",
    "codespell",
    "commitlint",
    "cppcheck",
    "cpplint",
    "credo",
    "depcheck",
    "dependency-cruiser",
    "detekt",
    "dialyzer",
    "djlint",
    "dprint",
    "erb_lint",
    "esbuild",
    "eslint",
    "eslint_d",
    "flake8",
    "g++",
    "gcc",
    "golangci-lint",
    "golint",
    "govulncheck",
    "hadolint",
    "html-validate",
    "htmlhint",
    "import-linter",
    "javac",
    "jshint",
    "knip",
    "ktlint",
    "lint-imports",
    "lint-staged",
    "luacheck",
    "madge",
    "markdownlint",
    "markdownlint-cli2",
    "mypy",
    "ninja",
    "npm-check",
    "oxlint",
    "parcel",
    "phan",
    "phpcs",
    "phpstan",
    "pre-commit",
    "prek",
    "proselint",
    "psalm",
    "publint",
    "pycodestyle",
    "pydocstyle",
    "pyflakes",
    "pylint",
    "pyre",
    "pyright",
    "pytype",
    "reek",
    "revive",
    "rollup",
    "rubocop",
    "rustc",
    "scalafix",
    "selene",
    "semgrep",
    "shellcheck",
    "sorbet",
    "spectral",
    "standard",
    "staticcheck",
    "steep",
    "stylelint",
    "svelte-check",
    "swiftlint",
    "taplo",
    "tflint",
    "tsc",
    "tslint",
    "tsup",
    "ty",
    "typos",
    "vale",
    "vue-tsc",
    "vulture",
    "webpack",
    "xo",
    "yamllint",
    "zizmor",
];

/// Programs that judge only with one of these words among theirs.
const CHECKERS_WITH: &[(&str, &[&str])] = &[
    ("astro", &["check", "build"]),
    ("autopep8", &["--diff", "--exit-code"]),
    ("autoflake", &["--check", "-c"]),
    ("bazel", &["build"]),
    ("black", &["--check"]),
    ("buf", &["lint", "breaking", "build"]),
    ("clang-format", &["--dry-run", "-n", "--Werror"]),
    ("cmake", &["--build"]),
    ("helm", &["lint"]),
    ("isort", &["--check", "--check-only", "-c"]),
    ("lerna", &["build", "lint"]),
    ("meson", &["compile"]),
    ("mix", &["compile", "credo", "dialyzer", "format"]),
    ("next", &["build", "lint"]),
    ("ng", &["build", "lint"]),
    ("npm", &["audit"]),
    ("nuxt", &["build", "typecheck"]),
    ("prettier", &["--check", "-c", "--list-different", "-l"]),
    ("ruff", &["check", "--check", "--diff"]),
    ("rustfmt", &["--check"]),
    ("shfmt", &["-d", "-l", "--diff", "--list"]),
    ("swift", &["build"]),
    ("terraform", &["validate", "-check"]),
    ("tofu", &["validate", "-check"]),
    ("turbo", &["build", "lint", "typecheck"]),
    ("vite", &["build"]),
    ("yapf", &["--diff", "-d"]),
    ("zig", &["build"]),
];

/// Programs that run tests only with one of these words among theirs.
const TESTERS_WITH: &[(&str, &[&str], Option<TestRunner>)] = &[
    ("bazel", &["test"], None),
    ("buck2", &["test"], None),
    ("bun", &["test"], Some(TestRunner::Bun)),
    ("cabal", &["test"], None),
    ("cypress", &["run"], None),
    ("dart", &["test"], None),
    ("deno", &["test"], Some(TestRunner::Deno)),
    ("django-admin", &["test"], Some(TestRunner::Unittest)),
    ("dotnet", &["test"], Some(TestRunner::Dotnet)),
    ("flutter", &["test"], None),
    ("go", &["test"], Some(TestRunner::Go)),
    ("gradle", &["test", "check", "build"], None),
    ("gradlew", &["test", "check", "build"], None),
    ("hatch", &["test"], None),
    ("lein", &["test"], None),
    ("lerna", &["test"], None),
    ("meson", &["test"], None),
    ("mix", &["test"], None),
    (
        "mvn",
        &["test", "verify", "package", "install"],
        Some(TestRunner::Maven),
    ),
    (
        "mvnw",
        &["test", "verify", "package", "install"],
        Some(TestRunner::Maven),
    ),
    ("ng", &["test"], None),
    ("nx", &["test", "run", "run-many", "affected"], None),
    ("playwright", &["test"], None),
    ("rails", &["test"], None),
    ("rake", &["test", "spec"], None),
    ("sbt", &["test"], None),
    ("stack", &["test"], None),
    ("swift", &["test"], None),
    ("turbo", &["test", "run"], None),
    ("xcodebuild", &["test"], None),
    ("zig", &["test"], None),
];

/// Programs whose next words are a command: `npx jest`. With the words that stand between, if
/// any must.
const RUNNERS_OF_COMMANDS: &[(&str, &[&str])] = &[
    ("arch", &[]),
    ("bundle", &["exec"]),
    ("bunx", &[]),
    ("coverage", &["run"]),
    ("cross-env", &[]),
    ("cross-env-shell", &[]),
    ("dotenv", &[]),
    ("doppler", &["run"]),
    ("hatch", &["run"]),
    ("mise", &["exec"]),
    ("nix-shell", &["--run"]),
    ("npm", &["exec"]),
    ("npx", &[]),
    ("nyc", &[]),
    ("op", &["run"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pipx", &["run"]),
    ("pnpm", &["dlx"]),
    ("pnpm", &["exec"]),
    ("pnpx", &[]),
    ("poetry", &["run"]),
    ("rye", &["run"]),
    ("uv", &["run"]),
    ("uvx", &[]),
    ("xvfb-run", &[]),
    ("yarn", &["dlx"]),
    ("yarn", &["exec"]),
];

/// Options with which no runner runs anything.
const ONLY_SHOWS: &[&str] = &[
    "--version",
    "--help",
    "-V",
    "-h",
    "--collect-only",
    "--co",
    "--list-tests",
    "--listTests",
    "--showConfig",
];

/// What the command of these words is.
pub(super) fn recognise(words: &[&str]) -> Recognised {
    let Some((first, rest)) = words.split_first() else {
        return Recognised::Idle;
    };
    let program = basename(first);
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let named = match plain {
        "python" | "pypy" => "python",
        _ => program,
    };
    if rest.iter().any(|word| ONLY_SHOWS.contains(word)) {
        return Recognised::Known(CommandKind::Program);
    }
    match named {
        "cargo" => return cargo(rest),
        "python" => return python(rest, 1),
        "go" if rest.first() == Some(&"run") => return project_script(),
        "node" | "nodejs" | "ruby" | "php" | "perl" | "lua" | "tsx" | "ts-node" | "deno"
        | "bun"
            if runs_file(named, rest) =>
        {
            return match rest.contains(&"--test") && matches!(named, "node" | "nodejs") {
                true => Recognised::Known(CommandKind::Tests(Some(TestRunner::Node))),
                false => project_script(),
            };
        }
        "make" | "gmake" => return Recognised::Make(make_call(rest)),
        "just" => return Recognised::Just(just_call(rest)),
        "npm" | "pnpm" | "yarn" | "bun" => {
            if let Some(scripts) = package_scripts(named, rest) {
                return Recognised::PackageScripts(scripts);
            }
        }
        "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
            return Recognised::PackageScripts(PackageScripts {
                names: operands(rest),
                hooks: true,
                ..PackageScripts::default()
            });
        }
        _ => {}
    }
    if let Some(at) = command_behind(named, rest) {
        return Recognised::Wraps(at);
    }
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(word));
    let kind = if let Some((_, runner)) = TEST_RUNNERS.iter().find(|(name, _)| *name == named) {
        CommandKind::Tests(*runner)
    } else if let Some((.., runner)) = TESTERS_WITH
        .iter()
        .find(|(name, wanted, _)| *name == named && has(wanted))
    {
        CommandKind::Tests(*runner)
    } else if CHECKERS.contains(&named)
        || CHECKERS_WITH
            .iter()
            .any(|(name, wanted)| *name == named && has(wanted))
        || named == "go" && has(&["build", "vet"])
        || named == "deno" && has(&["lint", "check"])
        || named == "dotnet" && has(&["build", "publish"])
    {
        CommandKind::Checker
    } else if IDLE.contains(&named) {
        return Recognised::Idle;
    } else {
        CommandKind::Program
    };
    Recognised::Known(kind)
}

fn project_script() -> Recognised {
    Recognised::Known(CommandKind::ProjectScript)
}

/// Where the command of `npx COMMAND` and the like begins.
fn command_behind(program: &str, rest: &[&str]) -> Option<usize> {
    let fits = |(name, between): &&(&str, &[&str])| *name == program && rest.starts_with(between);
    let (_, between) = RUNNERS_OF_COMMANDS.iter().find(fits)?;
    let mut at = between.len();
    while let Some(word) = rest.get(at) {
        if *word == "--" {
            at += 1;
            break;
        }
        let assigns = program.starts_with("cross-env") && word.contains('=');
        if !word.starts_with('-') && !assigns {
            break;
        }
        // Values of options that are known to take one.
        let valued = [
            "-p",
            "--package",
            "--with",
            "--python",
            "--extra",
            "--group",
            "--project",
            "-e",
            "-s",
        ];
        at += if valued.contains(word) { 2 } else { 1 };
        // `coverage run -m pytest`
        if program == "coverage" && *word == "-m" {
            break;
        }
    }
    (at < rest.len()).then_some(at + 1)
}

fn cargo(rest: &[&str]) -> Recognised {
    let mut rest = rest.iter().skip_while(|word| word.starts_with('+'));
    let sub = loop {
        match rest.next() {
            Some(&("--config" | "-C" | "-Z" | "--color" | "--manifest-path")) => {
                rest.next();
            }
            Some(word) if word.starts_with('-') => {}
            other => break other.copied(),
        }
    };
    let rest: Vec<&str> = rest.copied().collect();
    let kind = match sub {
        Some("test" | "t" | "bench") if rest.contains(&"--no-run") => CommandKind::Checker,
        Some("test" | "t" | "bench") => CommandKind::Tests(Some(TestRunner::Cargo)),
        Some("nextest") if rest.first() == Some(&"run") => {
            CommandKind::Tests(Some(TestRunner::Nextest))
        }
        Some("llvm-cov" | "tarpaulin" | "miri" | "mutants" | "careful" | "insta") => {
            CommandKind::Tests(None)
        }
        Some(
            "build" | "b" | "check" | "c" | "clippy" | "doc" | "d" | "deny" | "audit" | "hack"
            | "machete" | "udeps" | "semver-checks" | "publish" | "package" | "spellcheck" | "vet",
        ) => CommandKind::Checker,
        Some("fmt") if rest.contains(&"--check") => CommandKind::Checker,
        Some("run" | "r" | "xtask" | "make") => CommandKind::ProjectScript,
        _ => CommandKind::Program,
    };
    Recognised::Known(kind)
}

/// `python -m pytest`, `python manage.py test`. `at`: where `rest` begins.
fn python(rest: &[&str], at: usize) -> Recognised {
    let mut place = 0;
    while let Some(word) = rest.get(place) {
        match *word {
            "-m" if rest.get(place + 1).is_some() => return Recognised::Wraps(at + place + 1),
            "-W" | "-X" => place += 2,
            "-c" => return project_script(),
            "-" => return project_script(),
            word if word.starts_with('-') => place += 1,
            file => {
                let tests = rest.get(place + 1) == Some(&"test") && file.ends_with(".py");
                return match tests {
                    true => Recognised::Known(CommandKind::Tests(Some(TestRunner::Unittest))),
                    false => project_script(),
                };
            }
        }
    }
    project_script()
}

/// Whether an interpreter is given code or a file, and not a command of its own.
fn runs_file(program: &str, rest: &[&str]) -> bool {
    let first = rest.iter().find(|word| !word.starts_with('-'));
    match program {
        "deno" => first == Some(&"run"),
        "bun" => first.is_some_and(|word| word.contains('.') && !word.contains(' ')),
        "ruby" | "php" | "perl" | "lua" | "node" | "nodejs" | "tsx" | "ts-node" => !rest.is_empty(),
        _ => false,
    }
}

fn operands(rest: &[&str]) -> Vec<String> {
    let words = rest.iter().take_while(|word| **word != "--");
    let names = words.filter(|word| !word.starts_with('-'));
    names.map(|word| (*word).to_owned()).collect()
}

fn package_scripts(program: &str, rest: &[&str]) -> Option<PackageScripts> {
    let mut scripts = PackageScripts {
        hooks: program == "npm" || program == "bun",
        ..PackageScripts::default()
    };
    let mut words: Vec<&str> = Vec::new();
    let mut all = rest.iter();
    while let Some(word) = all.next() {
        match *word {
            "--" => break,
            "--prefix" | "-C" | "--dir" | "--cwd" => {
                scripts.folder = all.next().map(|word| (*word).to_owned());
            }
            "--if-present" => scripts.optional = true,
            "-w" | "--workspace" | "--filter" | "-F" => {
                // Which package that is, only the tool knows.
                all.next();
                scripts.folder = Some("\0".to_owned());
            }
            "-ws" | "--workspaces" | "-r" | "--recursive" => {
                scripts.folder = Some("\0".to_owned());
            }
            "--no-bail" => scripts.passed_over = Some("--no-bail"),
            option if option.starts_with("--prefix=") || option.starts_with("--cwd=") => {
                scripts.folder = option.split_once('=').map(|(_, folder)| folder.to_owned());
            }
            option if option.starts_with('-') => {}
            word => words.push(word),
        }
    }
    let name = match (program, words.as_slice()) {
        ("bun", ["test", ..]) => return None,
        (_, ["run" | "run-script" | "rum" | "urn", name, ..]) => *name,
        (_, ["run" | "run-script"]) => return None,
        ("npm" | "pnpm" | "yarn", ["test" | "t" | "tst", ..]) => "test",
        ("npm" | "pnpm" | "yarn", [name @ ("start" | "stop" | "restart"), ..]) => *name,
        // Other words are names of scripts, or programs of packages, to these alone.
        ("pnpm" | "yarn", [name, ..]) if !PACKAGE_COMMANDS.contains(name) => *name,
        _ => return None,
    };
    scripts.names.push(name.to_owned());
    Some(scripts)
}

/// Commands of pnpm and yarn that are no scripts.
const PACKAGE_COMMANDS: &[&str] = &[
    "add",
    "audit",
    "cache",
    "config",
    "create",
    "dedupe",
    "deploy",
    "dlx",
    "exec",
    "fetch",
    "i",
    "import",
    "info",
    "init",
    "install",
    "link",
    "list",
    "ls",
    "node",
    "outdated",
    "pack",
    "patch",
    "prune",
    "publish",
    "rebuild",
    "remove",
    "set",
    "store",
    "unlink",
    "up",
    "update",
    "upgrade",
    "version",
    "why",
    "workspace",
    "workspaces",
];

fn make_call(rest: &[&str]) -> RecipeCall {
    let mut call = RecipeCall::default();
    let mut all = rest.iter();
    while let Some(word) = all.next() {
        match *word {
            "-C" | "--directory" => call.folder = all.next().map(|word| (*word).to_owned()),
            "-f" | "--file" | "--makefile" => call.file = all.next().map(|word| (*word).to_owned()),
            "-j" | "-l" | "-o" | "-W" | "-I" => {
                let number = all.clone().next();
                if number.is_some_and(|word| word.parse::<u32>().is_ok()) {
                    all.next();
                }
            }
            "--ignore-errors" => call.passed_over = Some("--ignore-errors"),
            option if option.starts_with("--") => {}
            option if option.starts_with('-') => {
                if option.contains('i') {
                    call.passed_over = Some("make -i");
                }
                if option.contains('n') || option.contains('q') {
                    call.passed_over = Some("make -n");
                }
            }
            assignment if assignment.contains('=') => {}
            target => call.targets.push(target.to_owned()),
        }
    }
    call
}

fn just_call(rest: &[&str]) -> RecipeCall {
    let mut call = RecipeCall::default();
    let mut all = rest.iter();
    while let Some(word) = all.next() {
        match *word {
            "-d" | "--working-directory" => call.folder = all.next().map(|word| (*word).to_owned()),
            "-f" | "--justfile" => call.file = all.next().map(|word| (*word).to_owned()),
            option if option.starts_with('-') => {}
            assignment if assignment.contains('=') => {}
            // What follows may be arguments of the first one: no such recipe, nothing to read.
            recipe => call.targets.push(recipe.to_owned()),
        }
    }
    call
}
