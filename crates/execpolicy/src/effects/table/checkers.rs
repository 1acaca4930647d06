//! Test runners, linters and formatters: they run what the project says; reports are written where
//! an option says so, and formatters write what they are given.

use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect};

const RUNS: &[Deed] = &[Deed::Opaque];

pub(super) const ROWS: &[Row] = &[
    Row::does(
        &[
            "pytest",
            "py.test",
            "tox",
            "nox",
            "nose2",
            "nosetests",
            "unittest",
            "behave",
            "robot",
            "jest",
            "vitest",
            "mocha",
            "ava",
            "tap",
            "karma",
            "jasmine",
            "cypress",
            "playwright",
            "c8",
            "nyc",
            "phpunit",
            "pest",
            "rspec",
            "minitest",
            "cucumber",
            "ctest",
            "bats",
            "shellspec",
            "busted",
            "prove",
            "nextest",
            "gotestsum",
            "ginkgo",
            "lit",
            "llvm-lit",
            "hatch-test",
            "coverage",
            "mutmut",
            "stryker",
            "k6",
            "locust",
            "hspec",
            "trial",
            "green",
        ],
        RUNS,
    )
    .longs(&["junitxml", "rootdir", "basetemp", "confcutdir"])
    .more(reports),
    Row::reads(&[
        "eslint",
        "tsc",
        "prettier",
        "ruff",
        "black",
        "flake8",
        "pylint",
        "mypy",
        "pyright",
        "basedpyright",
        "pyre",
        "isort",
        "autopep8",
        "yapf",
        "autoflake",
        "pyupgrade",
        "bandit",
        "pydocstyle",
        "pycodestyle",
        "vulture",
        "radon",
        "pyflakes",
        "ty",
        "rubocop",
        "standardrb",
        "biome",
        "oxlint",
        "dprint",
        "stylelint",
        "htmlhint",
        "markdownlint",
        "markdownlint-cli2",
        "remark",
        "vale",
        "shellcheck",
        "shfmt",
        "hadolint",
        "actionlint",
        "yamlfmt",
        "taplo",
        "sqlfluff",
        "golangci-lint",
        "staticcheck",
        "gofmt",
        "goimports",
        "gofumpt",
        "golint",
        "revive",
        "govulncheck",
        "clang-format",
        "clang-tidy",
        "cppcheck",
        "cpplint",
        "iwyu",
        "include-what-you-use",
        "rustfmt",
        "clippy-driver",
        "ktlint",
        "detekt",
        "checkstyle",
        "spotless",
        "pmd",
        "swiftlint",
        "swiftformat",
        "phpcs",
        "phpcbf",
        "phpstan",
        "psalm",
        "php-cs-fixer",
        "buildifier",
        "terraform-fmt",
        "tflint",
        "tfsec",
        "checkov",
        "semgrep",
        "codespell",
        "typos",
        "cspell",
        "ansible-lint",
        "nixfmt",
        "alejandra",
        "scalafmt",
        "cmake-format",
        "djlint",
        "curlylint",
        "erb_lint",
        "haml-lint",
        "slim-lint",
        "credo",
        "dialyzer",
        "hlint",
        "ormolu",
        "fourmolu",
        "stylish-haskell",
        "elm-format",
        "luacheck",
        "stylua",
        "perltidy",
        "perlcritic",
        "pgformatter",
        "lychee",
        "linkchecker",
        "publint",
        "attw",
        "trivy",
        "grype",
        "syft",
        "gitleaks",
        "detect-secrets",
        "trufflehog",
        "nancy",
        "pip-audit",
        "safety",
        "license-checker",
    ])
    .values("cpkf")
    .longs(&[
        "ext",
        "config",
        "project",
        "select",
        "ignore",
        "exclude",
        "max-line-length",
        "line-length",
        "format",
        "max-warnings",
        "parser",
        "rulesdir",
        "target-version",
        "python-version",
        "python-executable",
        "module",
        "package",
        "outDir",
        "target",
        "severity",
        "shell",
    ])
    .on(&[
        ("o", On::Writes),
        ("output-file", On::Writes),
        ("report-file", On::Writes),
        ("resolve-plugins-relative-to", On::Value),
        ("fix", On::Edits),
        ("write", On::Edits),
    ])
    .more(formats),
];

/// Reports are written where an option says so.
fn reports(call: &Call<'_>, out: &mut Vec<Effect>) {
    let names = [
        "junitxml",
        "junit-xml",
        "outputFile",
        "basetemp",
        "output",
        "html",
        "coverageDirectory",
        "report",
        "resultlog",
    ];
    out.extend(
        call.options
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.clone())
            .map(|word| Effect::File(Act::Write, word)),
    );
}

/// Formatters write what they are given; `-i`, `-w`, `--write`, `--fix`, `format`.
fn formats(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    let always = matches!(
        name,
        "black"
            | "isort"
            | "rustfmt"
            | "php-cs-fixer"
            | "phpcbf"
            | "swiftformat"
            | "stylua"
            | "buildifier"
            | "yamlfmt"
    );
    let asked = call.has(&[
        "i",
        "w",
        "write",
        "fix",
        "in-place",
        "a",
        "A",
        "autocorrect",
        "autocorrect-all",
        "unsafe-fixes",
    ]) || call
        .words
        .iter()
        .skip(1)
        .any(|word| matches!(word.as_fixed(), Some("format" | "-i" | "fmt" | "fix")));
    let checks = call.has(&[
        "check",
        "diff",
        "check-only",
        "dry-run",
        "l",
        "list-different",
        "fix-dry-run",
    ]);
    if (always || asked) && !checks {
        out.extend(
            call.operands
                .iter()
                .map(|word| Effect::File(Act::WriteBelow, (*word).clone())),
        );
    }
}
