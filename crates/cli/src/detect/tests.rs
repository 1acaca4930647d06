//! Detection on listings: what is found, and what must not be.

use super::{PlannedInitCheck, RepoFilesForDetection, detect_checks, render_starter_config};

/// `name: run [inputs]` of each check.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    detect_checks(&RepoFilesForDetection::repo_files_from_texts(files))
        .into_iter()
        .map(|check| {
            let inputs = check.inputs.join(" ");
            let inputs = if inputs.is_empty() {
                inputs
            } else {
                format!(" [{inputs}]")
            };
            format!("{}: {}{inputs}", check.name, check.run)
        })
        .collect()
}

fn check(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(found(files), expected, "{files:?}");
}

const PYTEST: &str = "import pytest\n\ndef test_it():\n    assert True\n";
const UNITTEST: &str =
    "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self): pass\n";

#[test]
fn rust() {
    check(&[("Cargo.toml", "[package]\n")], &["tests: cargo test"]);
    check(
        &[
            ("Cargo.toml", "[workspace]\n"),
            ("a/Cargo.toml", "[package]\n"),
            ("clippy.toml", ""),
        ],
        &[
            "tests: cargo test --workspace",
            "lint: cargo clippy --workspace --all-targets -- -D warnings",
        ],
    );
    check(
        &[
            ("core/Cargo.toml", "[package]\n"),
            ("cli/Cargo.toml", "core = { path = \"../core\" }\n"),
        ],
        &[
            "cli-tests: cd cli && cargo test",
            "core-tests: cd core && cargo test [core/**]",
        ],
    );
}

#[test]
fn javascript() {
    let package = |scripts: &str| format!(r#"{{"scripts":{{{scripts}}}}}"#);
    let stub = package(r#""test":"echo \"Error: no test specified\" && exit 1""#);
    check(&[("package.json", &stub)], &[]);
    let full = package(r#""test":"jest","lint":"eslint .","typecheck":"tsc""#);
    check(
        &[("package.json", &full)],
        &[
            "tests: npm test",
            "lint: npm run lint",
            "typecheck: npm run typecheck",
        ],
    );
    for (lock, tests) in [
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn run test"),
        ("bun.lock", "bun run test"),
        ("package-lock.json", "npm test"),
    ] {
        let tests = format!("tests: {tests}");
        check(
            &[("package.json", &package(r#""test":"vitest""#)), (lock, "")],
            &[&tests],
        );
    }
    // What mends or waits is no check.
    let eager = package(r#""test":"jest --watch","lint":"eslint --fix .""#);
    check(&[("package.json", &eager)], &[]);
    check(
        &[
            ("package.json", r#"{"devDependencies":{"typescript":"5"}}"#),
            ("tsconfig.json", ""),
        ],
        &["typecheck: npx --no-install tsc --noEmit"],
    );
    check(
        &[
            ("package.json", r#"{"workspaces":["packages/*"]}"#),
            ("packages/a/package.json", &package(r#""test":"jest""#)),
            ("packages/b/package.json", &stub),
        ],
        &["tests: npm run test --workspaces --if-present"],
    );
    // The package manager of the repo is that of a part of it as well.
    check(
        &[
            ("pnpm-lock.yaml", ""),
            ("web/package.json", &package(r#""test":"vitest run""#)),
        ],
        &["web-tests: cd web && pnpm test [web/**]"],
    );
    check(&[("package.json", "{ not json")], &[]);
}

#[test]
fn python() {
    let python = if cfg!(windows) { "python" } else { "python3" };
    let run = |rest: &str| format!("tests: {python} -m {rest}");
    check(
        &[
            ("pyproject.toml", "[project]\n"),
            ("tests/test_a.py", PYTEST),
        ],
        &[&run("pytest")],
    );
    check(&[("test_a.py", UNITTEST)], &[&run("unittest discover")]);
    check(
        &[("tests/test_a.py", UNITTEST)],
        &[&run("unittest discover -s tests")],
    );
    check(
        &[("tests/test_a.py", UNITTEST), ("tests/__init__.py", "")],
        &[&run("unittest discover")],
    );
    check(
        &[
            (
                "pyproject.toml",
                "[tool.ruff]\n[tool.mypy]\nfiles = \"src\"\n",
            ),
            ("uv.lock", ""),
            ("tests/test_a.py", PYTEST),
        ],
        &[
            "tests: uv run pytest",
            "lint: uv run ruff check .",
            "typecheck: uv run mypy",
        ],
    );
    check(
        &[
            ("requirements.txt", "pytest\n"),
            ("tests/test_a.py", ""),
            (".venv/bin/python", ""),
        ],
        &["tests: .venv/bin/python -m pytest"],
    );
    check(
        &[("tox.ini", "[testenv]\n"), ("ruff.toml", "")],
        &["tests: tox", "lint: ruff check ."],
    );
    check(
        &[
            ("pyproject.toml", "[tool.poetry]\n"),
            ("test_a.py", UNITTEST),
        ],
        &["tests: poetry run python -m unittest discover"],
    );
    // A manifest without tests has nothing to run, and a stray script is no project.
    check(&[("pyproject.toml", "[project]\n")], &[]);
    check(&[("tools/deep/test_speed.py", "print(1)\n")], &[]);
}

#[test]
fn others() {
    check(
        &[("go.mod", "module m\n")],
        &["tests: go test ./...", "lint: go vet ./..."],
    );
    check(
        &[("go.mod", ""), (".golangci.yml", "")],
        &["tests: go test ./...", "lint: golangci-lint run"],
    );
    check(
        &[("build.gradle.kts", ""), ("gradlew", "")],
        &["tests: ./gradlew test"],
    );
    check(
        &[("settings.gradle", ""), ("app/build.gradle", "")],
        &["tests: gradle test"],
    );
    check(
        &[("pom.xml", ""), ("core/pom.xml", "")],
        &["tests: mvn -B test"],
    );
    check(
        &[("service/mvnw", ""), ("service/pom.xml", "")],
        &["service-tests: cd service && ./mvnw -B test [service/**]"],
    );
    let sdk = "<PackageReference Include=\"Microsoft.NET.Test.Sdk\" />";
    check(
        &[("All.sln", ""), ("Lib.Tests/Lib.Tests.csproj", sdk)],
        &["tests: dotnet test All.sln"],
    );
    check(&[("Lib.csproj", "<Project/>")], &[]);
}

#[test]
fn recipes_count_where_nothing_else_does() {
    let make = "CC := cc\n.PHONY: test\ntest: build\n\t./run\nlint:\n\ttrue\n";
    check(
        &[("Makefile", make)],
        &["tests: make test", "lint: make lint"],
    );
    check(&[("Makefile", "check: all\n")], &["tests: make check"]);
    check(
        &[("justfile", "@test *args:\n  x\n")],
        &["tests: just test"],
    );
    check(&[("Makefile", "test := 1\ntest_all:\n\tx\n# test:\n")], &[]);
    check(
        &[("Makefile", make), ("Cargo.toml", "[package]\n")],
        &["tests: cargo test", "lint: make lint"],
    );
}

#[test]
fn monorepos() {
    let package = r#"{"scripts":{"test":"node --test"}}"#;
    check(
        &[
            ("Makefile", "test:\n\tx\n"),
            ("api/go.mod", ""),
            ("services/auth/pyproject.toml", "[project]\n"),
            ("services/auth/tests/test_a.py", PYTEST),
            ("web/package.json", package),
            ("web/node_modules/x/package.json", package),
            ("examples/demo/package.json", package),
            ("docs/Cargo.toml", "[package]\n"),
        ],
        &[
            "web-tests: cd web && npm test [web/**]",
            if cfg!(windows) {
                "services-auth-tests: cd services/auth && python -m pytest [services/auth/**]"
            } else {
                "services-auth-tests: cd services/auth && python3 -m pytest [services/auth/**]"
            },
            "api-tests: cd api && go test ./... [api/**]",
            "api-lint: cd api && go vet ./... [api/**]",
        ],
    );
    check(
        &[("Cargo.toml", "[package]\n"), ("package.json", package)],
        &["rust-tests: cargo test", "js-tests: npm test"],
    );
    check(
        &[("it's/go.mod", "")],
        &[
            "it-s-tests: cd 'it'\\''s' && go test ./... [it's/**]",
            "it-s-lint: cd 'it'\\''s' && go vet ./... [it's/**]",
        ],
    );
}

#[test]
fn names_are_never_given_twice() {
    let checks = detect_checks(&RepoFilesForDetection::repo_files_from_texts(&[
        ("a-b/go.mod", ""),
        ("a b/go.mod", ""),
        ("a/b/go.mod", ""),
    ]));
    let mut names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), checks.len(), "{checks:?}");
}

#[test]
fn the_file_says_why_and_compiles() {
    let checks = detect_checks(&RepoFilesForDetection::repo_files_from_texts(&[
        ("it's \"a\"/go.mod", ""),
        ("Cargo.toml", "[package]\n"),
        ("pom.xml", ""),
    ]));
    let planned: Vec<PlannedInitCheck> = checks
        .into_iter()
        .enumerate()
        .map(|(at, check)| PlannedInitCheck {
            check,
            advisory: (at == 0).then(|| "it fails\non this tree".to_owned()),
        })
        .collect();
    for planned in [planned, Vec::new()] {
        let text = render_starter_config(&planned);
        let source = checkrein_runtime::config::NamedConfigText {
            name: "checkrein.toml".into(),
            text: text.clone(),
        };
        let compiled = checkrein_runtime::config::compile_repo_and_personal_config(
            Some(&source),
            None,
            checkrein_runtime::config::TaskDriverKind::Hook,
        )
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(compiled.warnings, Vec::<String>::new(), "{text}");
        assert_eq!(compiled.policy.verifiers.len(), planned.len());
        let required = compiled
            .policy
            .verifiers
            .iter()
            .filter(|spec| compiled.policy.is_required_verifier(&spec.name))
            .count();
        assert_eq!(required, planned.len().saturating_sub(1), "{text}");
    }
}
