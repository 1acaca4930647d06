//! Build tools and task runners: they run what the project says, and write into its tree.

use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::code;
use crate::effects::row::{Deed, Row};
use crate::effects::variables;
use crate::shell::Word;

const RUNS: &[Deed] = &[Deed::Opaque];

pub(super) const ROWS: &[Row] = &[Row::does(
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
        "pipx-run",
    ],
    RUNS,
)
.more(made)];

fn made(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    if matches!(name, "make" | "gmake" | "bmake") {
        rules_of(call, out);
    }
    if makes(name, call) || scripts(name, call) || name == "cmake" && acts(call) {
        out.push(Effect::Deed(Deed::Code));
    }
    if name == "xcrun" && call.operand(0) == Some("notarytool") {
        out.push(Effect::Deed(Deed::Uploads));
    }
    if publishes(name, call) {
        out.push(Effect::Deed(Deed::Publishes));
    }
    commands(name, call, out);
}

/// `make SHELL=...`, `make --eval`, `make -f -`: code in the words, or on its input.
fn makes(name: &str, call: &Call<'_>) -> bool {
    let code = |word: &Word| {
        let text = word.text.as_str();
        let set = |(name, value): (&str, &str)| {
            name.ends_with('!') || variables::runs(name, value) || value.contains("$(shell")
        };
        ["SHELL=", ".SHELLFLAGS=", "--eval", "MAKEFLAGS="]
            .iter()
            .any(|begin| text.starts_with(begin))
            || text.split_once('=').is_some_and(set)
    };
    matches!(name, "make" | "gmake" | "bmake")
        && (call.words.iter().skip(1).any(code) || call.has(&["E", "eval"]))
}

/// The files that `make` reads its rules from.
fn rules_of(call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut words = call.words.iter().skip(1);
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let file = match text {
            "--file" | "--makefile" => words.next().cloned(),
            _ if text.starts_with("--file=") || text.starts_with("--makefile=") => word.after('='),
            _ if text.starts_with("--") || !text.starts_with('-') => None,
            _ => match text.find('f').map(|at| at + 1) {
                Some(at) if at == text.len() => words.next().cloned(),
                Some(at) => Some(word.from(at)),
                None => None,
            },
        };
        let Some(file) = file else { continue };
        out.push(code::file_of(&file));
    }
}

/// Runners with an option whose value is code.
fn scripts(name: &str, call: &Call<'_>) -> bool {
    name == "just" && call.has(&["c", "command", "shell"])
        || name == "gradle" && call.has(&["I", "init-script"])
}

/// `cmake -E rm x`: a tool of its own, and only some of those do nothing.
fn acts(call: &Call<'_>) -> bool {
    const HARMLESS: &[&str] = &[
        "echo",
        "capabilities",
        "cat",
        "compare_files",
        "environment",
        "md5sum",
        "sha256sum",
        "sleep",
        "true",
        "false",
        "touch",
        "make_directory",
    ];
    let mut words = call.words.iter().map(Word::as_fixed);
    let tool = words.find(|word| *word == Some("-E")).map(|_| words.next());
    tool.is_some_and(|tool| !tool.flatten().is_some_and(|tool| HARMLESS.contains(&tool)))
}

fn publishes(name: &str, call: &Call<'_>) -> bool {
    match name {
        "xcrun" | "swift" | "dart" | "flutter" => {
            matches!(call.operand(0), Some("publish" | "altool"))
        }
        "mvn" | "mvnw" | "gradle" | "gradlew" | "sbt" | "lerna" | "nx" | "changeset" | "mix"
        | "ant" => call.operands.iter().any(|word| {
            matches!(
                word.text.as_str(),
                "deploy"
                    | "publish"
                    | "release:perform"
                    | "hex.publish"
                    | "publishToMavenCentral"
                    | "nexus-staging:release"
            )
        }),
        _ => false,
    }
}

/// Words that a runner hands to a shell.
fn commands(name: &str, call: &Call<'_>, out: &mut Vec<Effect>) {
    let runs = |word: &Word| Effect::Runs(word.clone());
    if matches!(name, "nodemon" | "concurrently" | "zx" | "watch")
        && call.has(&["x", "exec", "e", "eval", "c"])
    {
        let words = call.words.iter().skip(1);
        out.extend(words.filter(|word| !word.text.starts_with('-')).map(runs));
    }
    if matches!(name, "concurrently" | "hyperfine") {
        out.extend(call.operands.iter().map(|word| runs(word)));
    }
}
