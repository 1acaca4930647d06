//! Test runners, linters, compilers, task runners: they run what the project says, and write
//! into its tree.

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
    Row::does(
        &[
            "make",
            "gmake",
            "bmake",
            "ninja",
            "samu",
            "just",
            "task",
            "go-task",
            "mage",
            "rake",
            "invoke",
            "inv",
            "doit",
            "waf",
            "scons",
            "bazel",
            "bazelisk",
            "buck",
            "buck2",
            "pants",
            "please",
            "b2",
            "bjam",
            "earthly",
            "meson",
            "cmake",
            "xmake",
            "premake",
            "autoconf",
            "automake",
            "autoreconf",
            "libtool",
            "aclocal",
            "configure",
            "ant",
            "mvn",
            "mvnw",
            "gradle",
            "gradlew",
            "sbt",
            "mill",
            "lein",
            "clj",
            "boot",
            "leiningen",
            "kotlin",
            "scala-cli",
            "msbuild",
            "xbuild",
            "nx",
            "turbo",
            "lerna",
            "rush",
            "moon",
            "grunt",
            "gulp",
            "webpack",
            "webpack-cli",
            "rollup",
            "vite",
            "parcel",
            "esbuild",
            "tsup",
            "swc",
            "babel",
            "rspack",
            "snowpack",
            "next",
            "nuxt",
            "astro",
            "remix",
            "svelte-kit",
            "gatsby",
            "ng",
            "vue-cli-service",
            "vue-tsc",
            "react-scripts",
            "expo",
            "storybook",
            "sphinx-build",
            "mkdocs",
            "jekyll",
            "hugo",
            "zola",
            "mdbook",
            "docusaurus",
            "eleventy",
            "doxygen",
            "javadoc",
            "rustdoc",
            "typedoc",
            "pre-commit",
            "lefthook",
            "husky",
            "lint-staged",
            "nodemon",
            "hyperfine",
            "tsx",
            "ts-node",
            "concurrently",
            "wireit",
            "zx",
            "alembic",
            "flask",
            "django-admin",
            "manage.py",
            "uvicorn",
            "gunicorn",
            "hypercorn",
            "celery",
            "streamlit",
            "jupyter",
            "scrapy",
            "airflow",
            "dbt",
            "rails",
            "rackup",
            "puma",
            "artisan",
            "symfony",
            "mix",
            "rebar3",
            "stack",
            "cabal",
            "dune",
            "opam-exec",
            "elm",
            "elm-test",
            "spago",
            "gleam",
            "crystal",
            "shards",
            "nimble",
            "vlang",
            "cargo-nextest",
            "wasm-pack",
            "trunk",
            "maturin",
            "setup.py",
            "build",
            "pyproject-build",
            "flit",
            "pdm-run",
            "prisma",
            "drizzle-kit",
            "knex",
            "sequelize",
            "typeorm",
            "graphql-codegen",
            "openapi-generator",
            "protoc",
            "buf",
            "thrift",
            "flatc",
            "swig",
            "cython",
            "cythonize",
            "mypyc",
            "nuitka",
            "pyinstaller",
            "depcheck",
            "knip",
            "ts-prune",
            "madge",
            "size-limit",
            "webpack-bundle-analyzer",
            "xcodebuild",
            "xcrun",
            "swift",
            "flutter",
            "dart",
            "gst-launch",
            "create-react-app",
            "create-vite",
            "create-next-app",
            "degit",
            "ponyc",
            "serve",
            "http-server",
            "live-server",
            "json-server",
            "changeset",
            "commitlint",
            "hatch",
            "pipx-run",
        ],
        RUNS,
    )
    .more(made),
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
    Row::of(&[
        "gcc",
        "g++",
        "cc",
        "c++",
        "clang",
        "clang++",
        "tcc",
        "icc",
        "nvcc",
        "gfortran",
        "f77",
        "f95",
        "gdc",
        "ldc",
        "dmd",
        "mingw-gcc",
        "emcc",
        "em++",
        "zig-cc",
        "ccache",
        "sccache",
        "distcc",
        "cl",
    ])
    .values("DUILlxuTWO-")
    .on(&[
        ("o", On::Writes),
        ("I", On::Value),
        ("L", On::Value),
        ("B", On::With(Deed::Code)),
        ("wrapper", On::With(Deed::Code)),
        ("MF", On::Writes),
    ])
    .more(compiled),
    Row::of(&[
        "ld",
        "lld",
        "gold",
        "mold",
        "ar",
        "ranlib",
        "as",
        "nasm",
        "yasm",
        "strip",
        "objcopy",
        "patchelf",
        "install_name_tool",
        "lipo",
        "windres",
        "dlltool",
    ])
    .more(last_written),
    Row::reads(&[
        "rustc",
        "javac",
        "kotlinc",
        "scalac",
        "ghc",
        "ocaml",
        "ocamlc",
        "ocamlopt",
        "fpc",
        "nim",
        "valac",
        "csc",
        "mcs",
        "fsc",
        "vbc",
        "swiftc",
        "elixirc",
        "erlc",
        "solc",
        "gobjc",
        "sass",
        "lessc",
        "tailwindcss",
        "postcss",
        "stylus",
        "coffee",
        "pug",
        "asc",
        "flex",
        "bison",
        "yacc",
        "lex",
        "m4",
        "cpp",
        "moc",
        "uic",
        "rcc",
        "glslc",
        "pdflatex",
        "latex",
        "xelatex",
        "lualatex",
        "latexmk",
        "bibtex",
        "typst",
        "pandoc",
        "asciidoctor",
        "rst2html",
        "dot",
        "plantuml",
        "mmdc",
        "groff",
        "troff",
        "nroff",
        "makeinfo",
        "gettext",
        "xgettext",
        "msgfmt",
        "msgmerge",
    ])
    .values("LClidT")
    .longs(&[
        "edition",
        "crate-type",
        "crate-name",
        "target",
        "out-dir",
        "emit",
        "extern",
        "cfg",
        "from",
        "to",
        "template",
        "css",
        "config",
        "input",
    ])
    .on(&[
        ("o", On::Writes),
        ("output", On::Writes),
        ("out-dir", On::Writes),
        ("shell-escape", On::Does(Deed::Code)),
        ("filter", On::With(Deed::Code)),
        ("F", On::With(Deed::Code)),
        ("lua-filter", On::With(Deed::Code)),
    ])
    .more(escaped),
    Row::of(&[
        "gdb", "lldb", "valgrind", "perf", "rr", "cgdb", "pdb", "dlv", "jdb", "jstack", "jmap",
        "jps", "jcmd", "jstat", "jshell", "py-spy", "austin", "scalene", "memray",
    ])
    .more(debugger),
    Row::of(&[
        "rustup",
        "corepack",
        "nvm",
        "fnm",
        "volta",
        "asdf",
        "mise",
        "rtx",
        "pyenv",
        "rbenv",
        "nodenv",
        "jenv",
        "sdkman",
        "sdk",
        "goenv",
        "tfenv",
        "n",
        "direnv",
        "conda-env",
    ])
    .more(toolchain),
    Row::of(&["go"]).values("C").subs(GO),
    Row::of(&[
        "gopls",
        "rust-analyzer",
        "clangd",
        "pylsp",
        "typescript-language-server",
    ]),
    Row::of(&["cargo"])
        .longs(&["color", "config", "manifest-path"])
        .on(&[
            ("C", On::At),
            ("Z", On::Value),
            ("config", On::With(Deed::Unclear)),
        ])
        .subs(CARGO)
        .others(&[Deed::Opaque]),
    Row::of(&["dotnet"])
        .subs(&[
            Row::does(
                &[
                    "build",
                    "test",
                    "run",
                    "clean",
                    "publish",
                    "pack",
                    "msbuild",
                    "vstest",
                    "watch",
                    "format",
                    "ef",
                    "exec",
                    "fsi",
                    "script",
                    "build-server",
                    "sln",
                    "new",
                    "list",
                    "help",
                    "tool",
                    "workload",
                    "dev-certs",
                    "user-jwts",
                ],
                &[Deed::Opaque],
            ),
            Row::does(&["restore", "add", "remove", "package"], &[Deed::Installs]),
            Row::does(&["user-secrets"], &[Deed::Secret]),
            Row::does(&["nuget"], &[Deed::Publishes]),
        ])
        .others(&[Deed::Opaque]),
    Row::of(&["zig", "v"])
        .others(&[Deed::Opaque])
        .subs(&[Row::does(
            &[
                "build",
                "test",
                "run",
                "fmt",
                "version",
                "cc",
                "c++",
                "build-exe",
                "build-lib",
                "build-obj",
                "init",
                "ast-check",
                "env",
                "fetch",
            ],
            &[Deed::Opaque],
        )]),
];

const GO: &[Row] = &[
    Row::does(
        &[
            "build", "test", "run", "generate", "vet", "tool", "fix", "bug", "work",
        ],
        &[Deed::Opaque],
    )
    .one_dash()
    .longs(&[
        "run",
        "bench",
        "benchtime",
        "count",
        "timeout",
        "tags",
        "ldflags",
        "gcflags",
        "p",
        "cpu",
        "mod",
        "C",
        "asmflags",
        "fuzz",
        "fuzztime",
        "skip",
        "covermode",
        "coverpkg",
        "parallel",
        "vet",
        "buildmode",
        "shuffle",
        "list",
    ])
    .on(&[
        ("o", On::Writes),
        ("coverprofile", On::Writes),
        ("cpuprofile", On::Writes),
        ("memprofile", On::Writes),
        ("blockprofile", On::Writes),
        ("mutexprofile", On::Writes),
        ("trace", On::Writes),
        ("outputdir", On::Writes),
        ("exec", On::Runs),
        ("toolexec", On::Runs),
        ("vettool", On::Runs),
        ("modfile", On::Writes),
        ("overlay", On::With(Deed::Unclear)),
    ]),
    Row::of(&["list", "doc", "version", "help", "fmt", "telemetry"])
        .one_dash()
        .longs(&["f", "mod", "tags", "C"])
        .on(&[("toolexec", On::Runs)]),
    Row::of(&["env"]).one_dash().on(&[
        ("w", On::Does(Deed::Persists)),
        ("u", On::Does(Deed::Persists)),
    ]),
    Row::does(&["mod", "get", "install"], &[Deed::Installs])
        .one_dash()
        .on(&[("toolexec", On::Runs), ("modfile", On::Writes)]),
    Row::of(&["clean"]),
];

const CARGO: &[Row] = &[
    Row::does(
        &[
            "build",
            "b",
            "check",
            "c",
            "test",
            "t",
            "bench",
            "run",
            "r",
            "doc",
            "d",
            "clippy",
            "nextest",
            "miri",
            "llvm-cov",
            "tarpaulin",
            "expand",
            "rustc",
            "rustdoc",
            "fix",
            "fmt",
            "watch",
            "make",
            "xtask",
            "hack",
            "udeps",
            "machete",
            "insta",
            "mutants",
            "fuzz",
            "criterion",
            "leptos",
            "tauri",
            "component",
            "zigbuild",
            "cross",
            "semver-checks",
            "bloat",
            "asm",
            "flamegraph",
        ],
        &[Deed::Opaque],
    )
    .values("pjFZ")
    .longs(&[
        "package",
        "bin",
        "example",
        "test",
        "bench",
        "features",
        "target",
        "profile",
        "jobs",
        "color",
        "message-format",
        "manifest-path",
        "exclude",
    ])
    .on(&[
        ("target-dir", On::Writes),
        ("out-dir", On::Writes),
        ("artifact-dir", On::Writes),
        ("config", On::With(Deed::Unclear)),
        ("x", On::Runs),
        ("s", On::Runs),
    ]),
    Row::does(
        &[
            "add",
            "update",
            "fetch",
            "generate-lockfile",
            "install",
            "binstall",
            "vendor",
            "upgrade",
        ],
        &[Deed::Installs],
    )
    .on(&[("config", On::With(Deed::Unclear))]),
    Row::of(&[
        "remove",
        "rm",
        "tree",
        "metadata",
        "search",
        "info",
        "version",
        "help",
        "locate-project",
        "pkgid",
        "read-manifest",
        "verify-project",
        "deny",
        "audit",
        "outdated",
        "license",
        "about",
        "init",
        "new",
        "clean",
        "package",
        "uninstall",
        "report",
        "config",
        "geiger",
        "depgraph",
        "sort",
        "edit",
        "set-version",
        "crev",
    ])
    .on(&[("config", On::With(Deed::Unclear))]),
    Row::does(
        &[
            "publish",
            "yank",
            "owner",
            "release",
            "dist",
            "smart-release",
        ],
        &[Deed::Publishes],
    )
    .on(&[("dry-run", On::Inert), ("n", On::Inert)]),
    Row::does(&["login", "logout"], &[Deed::Secret]),
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

/// `make SHELL=...`, `make --eval`: code in the words.
fn made(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call
        .words
        .first()
        .map_or("", |word| crate::rules::basename(&word.text));
    let code = |word: &crate::shell::Word| {
        let text = word.text.as_str();
        text.starts_with("SHELL=")
            || text.starts_with(".SHELLFLAGS=")
            || text.starts_with("--eval")
            || text.starts_with("MAKEFLAGS=")
            || (text.contains("=$(shell") || text.contains("!="))
    };
    let make = matches!(name, "make" | "gmake" | "bmake");
    if make && (call.words.iter().skip(1).any(code) || call.has(&["E", "eval"])) {
        out.push(Effect::Deed(Deed::Code));
    }
    // `cmake -E rm x`, `cmake -P FILE`.
    if name == "cmake"
        && let Some(at) = call
            .words
            .iter()
            .position(|word| word.as_fixed() == Some("-E"))
    {
        let rest = call.words.get(at + 1..).unwrap_or(&[]);
        let plain = matches!(
            rest.first().and_then(|word| word.as_fixed()),
            Some(
                "echo"
                    | "capabilities"
                    | "cat"
                    | "compare_files"
                    | "environment"
                    | "md5sum"
                    | "sha256sum"
                    | "sleep"
                    | "true"
                    | "false"
                    | "touch"
                    | "make_directory"
            )
        );
        if !plain {
            out.push(Effect::Deed(Deed::Code));
        }
    }
    if matches!(name, "nodemon" | "concurrently" | "zx" | "watch")
        && call.has(&["x", "exec", "e", "eval", "c"])
    {
        out.extend(
            call.words
                .iter()
                .skip(1)
                .filter(|word| !word.text.starts_with('-'))
                .map(|word| Effect::Runs(word.clone())),
        );
    }
    if name == "concurrently" || name == "hyperfine" {
        out.extend(
            call.operands
                .iter()
                .map(|word| Effect::Runs((*word).clone())),
        );
    }
    if name == "just" && call.has(&["c", "command", "shell"])
        || name == "gradle" && call.has(&["I", "init-script"])
    {
        out.push(Effect::Deed(Deed::Code));
    }
    if matches!(name, "xcrun" | "swift" | "dart" | "flutter")
        && matches!(call.operand(0), Some("publish" | "altool" | "notarytool"))
    {
        out.push(Effect::Deed(Deed::Publishes));
    }
    if matches!(
        name,
        "mvn"
            | "mvnw"
            | "gradle"
            | "gradlew"
            | "sbt"
            | "lerna"
            | "nx"
            | "changeset"
            | "mix"
            | "ant"
    ) && call.operands.iter().any(|word| {
        matches!(
            word.text.as_str(),
            "deploy"
                | "publish"
                | "release:perform"
                | "hex.publish"
                | "publishToMavenCentral"
                | "nexus-staging:release"
        )
    }) {
        out.push(Effect::Deed(Deed::Publishes));
    }
}

/// Formatters write what they are given; `-i`, `-w`, `--write`, `--fix`, `format`.
fn formats(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call
        .words
        .first()
        .map_or("", |word| crate::rules::basename(&word.text));
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

/// `-oFILE`; a plugin is code.
fn compiled(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::File(Act::Read, (*word).clone())),
    );
    let plugin = |word: &&crate::shell::Word| {
        word.text.starts_with("-fplugin")
            || word.text.starts_with("-wrapper")
            || word.text.starts_with("-load")
            || word.text.starts_with("@")
    };
    if call.words.iter().skip(1).any(|word| plugin(&word)) {
        out.push(Effect::Deed(Deed::Code));
    }
}

fn last_written(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::File(Act::Write, (*word).clone())),
    );
    out.extend(
        call.values_of(&["o"])
            .map(|word| Effect::File(Act::Write, word.clone())),
    );
}

/// TeX with `-shell-escape` runs commands.
fn escaped(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.words.iter().any(|word| {
        word.text.contains("shell-escape")
            || word.text.contains("write18")
            || word.text.contains("syscmd")
            || word.text.contains("-pdflatex=")
    }) {
        out.push(Effect::Deed(Deed::Code));
    }
}

/// Debuggers run a program of the project; commands in their words are code.
fn debugger(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call
        .words
        .first()
        .map_or("", |word| crate::rules::basename(&word.text));
    if matches!(name, "gdb" | "lldb") {
        let plain = |text: &str| {
            matches!(
                text.split_whitespace().next().unwrap_or(""),
                "bt" | "run"
                    | "r"
                    | "quit"
                    | "q"
                    | "where"
                    | "info"
                    | "frame"
                    | "thread"
                    | "backtrace"
                    | "b"
                    | "break"
                    | "c"
                    | "continue"
                    | "disassemble"
                    | "x"
                    | "set-pagination"
                    | "up"
                    | "down"
                    | "list"
                    | "l"
            ) && !text.contains(['(', '!', '|', '=', '$'])
        };
        let commands = call
            .words
            .iter()
            .zip(call.words.iter().skip(1))
            .filter(|(flag, _)| {
                matches!(
                    flag.text.as_str(),
                    "-ex"
                        | "--ex"
                        | "-eval-command"
                        | "--eval-command"
                        | "-iex"
                        | "-o"
                        | "-O"
                        | "--one-line"
                        | "-k"
                )
            });
        if commands
            .clone()
            .any(|(_, text)| !text.as_fixed().is_some_and(plain))
            || call.words.iter().any(|word| {
                matches!(
                    word.text.as_str(),
                    "-x" | "-s" | "-p" | "--command" | "--python" | "-P"
                )
            })
        {
            out.push(Effect::Deed(Deed::Code));
        }
        return out.push(Effect::Deed(Deed::Opaque));
    }
    if name == "valgrind"
        && let Some(first) = call.operands.first()
    {
        let at = call
            .words
            .iter()
            .position(|word| std::ptr::eq(word, *first))
            .unwrap_or(0);
        out.push(Effect::Tool(call.words.get(at..).unwrap_or(&[]).to_vec()));
        return;
    }
    out.push(Effect::Deed(Deed::Opaque));
}

fn toolchain(call: &Call<'_>, out: &mut Vec<Effect>) {
    match call.operand(0) {
        Some("exec" | "run" | "x") => {
            let skip = match call
                .words
                .iter()
                .position(|word| word.as_fixed() == Some("--"))
            {
                Some(at) => at + 1,
                None => call
                    .words
                    .iter()
                    .position(|word| matches!(word.as_fixed(), Some("exec" | "run" | "x")))
                    .map_or(1, |at| at + 2),
            };
            out.push(Effect::Tool(call.words.get(skip..).unwrap_or(&[]).to_vec()));
            out.push(Effect::Deed(Deed::Opaque));
        }
        Some("uninstall" | "self" | "implode") => out.push(Effect::Deed(Deed::Destroys)),
        _ => out.push(Effect::Deed(Deed::Installs)),
    }
}
