//! Describes build tools and task runners. They run what the project's files say and write into its
//! tree, which is ordinary; code that stands in their arguments is not the project's.

use crate::effects::CommandEffect;
use crate::effects::code;
use crate::effects::dangerous_variables;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, ProgramEffectSpec};
use crate::shell::CommandWord;

const RUNS: &[NonFileEffectKind] = &[NonFileEffectKind::Opaque];

pub(super) const SPECS: &[ProgramEffectSpec] =
    &[ProgramEffectSpec::program_spec_with_fixed_effects(
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
    .with_extra_effects_fn(build_system_call_effects)];

fn build_system_call_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    // Rules that a script has just written, or that come from a pipe, are not the project's.
    if matches!(name, "make" | "gmake" | "bmake") {
        add_make_file_option_effects(call, out);
    }
    if make_call_has_inline_code(name, call)
        || has_inline_code_option(name, call)
        || name == "cmake" && is_unsafe_cmake_tool_call(call)
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    // It sends the app to Apple to be notarized.
    if name == "xcrun" && call.literal_operand(0) == Some("notarytool") {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
    if is_publish_command(name, call) {
        out.push(CommandEffect::Kind(NonFileEffectKind::Publishes));
    }
    add_commands_in_runner_arguments(name, call, out);
}

/// Whether a `make` call carries code in its words: `SHELL=...`, `--eval`, `NAME!=COMMAND`.
fn make_call_has_inline_code(name: &str, call: &ParsedArgs<'_>) -> bool {
    let code = |word: &CommandWord| {
        let text = word.text.as_str();
        let set = |(name, value): (&str, &str)| {
            // `NAME!=COMMAND` runs the command, and `$(shell ...)` does when the variable is used.
            name.ends_with('!')
                || dangerous_variables::build_variable_runs_program(name, value)
                || value.contains("$(shell")
        };
        ["SHELL=", ".SHELLFLAGS=", "--eval", "MAKEFLAGS="]
            .iter()
            .any(|begin| text.starts_with(begin))
            || text.split_once('=').is_some_and(set)
    };
    matches!(name, "make" | "gmake" | "bmake")
        && (call.words.iter().skip(1).any(code) || call.has_option(&["E", "eval"]))
}

/// Adds the files that `make` reads its rules from; `-f -` is standard input.
fn add_make_file_option_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let mut words = call.words.iter().skip(1);
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let file = match text {
            "--file" | "--makefile" => words.next().cloned(),
            _ if text.starts_with("--file=") || text.starts_with("--makefile=") => {
                word.suffix_after_char('=')
            }
            _ if text.starts_with("--") || !text.starts_with('-') => None,
            // `-kf FILE` and `-fFILE`: the letter may stand in a cluster, with its value attached.
            _ => match text.find('f').map(|at| at + 1) {
                Some(at) if at == text.len() => words.next().cloned(),
                Some(at) => Some(word.word_suffix_from_byte(at)),
                None => None,
            },
        };
        let Some(file) = file else { continue };
        out.push(code::runs_file_or_unreadable_effect(&file));
    }
}

/// Whether an option of the runner takes code or a script.
fn has_inline_code_option(name: &str, call: &ParsedArgs<'_>) -> bool {
    name == "just" && call.has_option(&["c", "command", "shell"])
        || name == "gradle" && call.has_option(&["I", "init-script"])
}

/// Whether `cmake -E TOOL` is other than harmless: `cmake -E rm x` removes files.
fn is_unsafe_cmake_tool_call(call: &ParsedArgs<'_>) -> bool {
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
    let mut words = call.words.iter().map(CommandWord::as_literal);
    // An option instead of a tool, or an unknown word, counts as unsafe.
    let tool = words.find(|word| *word == Some("-E")).map(|_| words.next());
    tool.is_some_and(|tool| !tool.flatten().is_some_and(|tool| HARMLESS.contains(&tool)))
}

fn is_publish_command(name: &str, call: &ParsedArgs<'_>) -> bool {
    match name {
        "xcrun" | "swift" | "dart" | "flutter" => {
            matches!(call.literal_operand(0), Some("publish" | "altool"))
        }
        // Goals and tasks stand anywhere among the operands.
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

/// Adds the words that a runner hands to a shell.
fn add_commands_in_runner_arguments(
    name: &str,
    call: &ParsedArgs<'_>,
    out: &mut Vec<CommandEffect>,
) {
    let runs = |word: &CommandWord| CommandEffect::RunsScript(word.clone());
    // Which word belongs to the option is not told apart, so all of them are judged.
    if matches!(name, "nodemon" | "concurrently" | "zx" | "watch")
        && call.has_option(&["x", "exec", "e", "eval", "c"])
    {
        let words = call.words.iter().skip(1);
        out.extend(words.filter(|word| !word.text.starts_with('-')).map(runs));
    }
    // Each of their operands is a command line.
    if matches!(name, "concurrently" | "hyperfine") {
        out.extend(call.operands.iter().map(|word| runs(word)));
    }
}
