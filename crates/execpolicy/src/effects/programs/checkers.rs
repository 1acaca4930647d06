//! Describes test runners, linters and formatters. Test runners run the project's code; reports are
//! written where an option says so; formatters write their operands.

use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CommandEffect, FileAccess};

const RUNS: &[NonFileEffectKind] = &[NonFileEffectKind::Opaque];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
    // Options that take a value, so that it is not taken for an operand.
    .with_long_value_options(&["junitxml", "rootdir", "basetemp", "confcutdir"])
    .with_extra_effects_fn(test_report_option_effects),
    ProgramEffectSpec::program_spec_reading_operands(&[
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
    .with_short_value_options("cpkf")
    .with_long_value_options(&[
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
    .with_option_meanings(&[
        ("o", OptionMeaning::Writes),
        ("output-file", OptionMeaning::Writes),
        ("report-file", OptionMeaning::Writes),
        ("resolve-plugins-relative-to", OptionMeaning::Value),
        ("fix", OptionMeaning::Edits),
        ("write", OptionMeaning::Edits),
    ])
    .with_extra_effects_fn(formatter_effects),
];

/// Adds the files and folders that test reports are written to.
fn test_report_option_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
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
            .map(|word| CommandEffect::File(FileAccess::Write, word)),
    );
}

/// Adds that formatters write their operands, always or if an option or sub-command asks for it.
fn formatter_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    // These rewrite files unless an option tells them not to; the others print or check by default.
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
    let asked = call.has_option(&[
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
        .any(|word| matches!(word.as_literal(), Some("format" | "-i" | "fmt" | "fix")));
    // With one of these nothing is written.
    let checks = call.has_option(&[
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
                .map(|word| CommandEffect::File(FileAccess::WriteBelow, (*word).clone())),
        );
    }
}
