//! Describes tools that build, test and manage packages of a language behind one name (`cargo`,
//! `go`, `dotnet`), and managers of toolchains. Publishing is hard to take back.

use crate::effects::CommandEffect;
use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(version_manager_effects),
    ProgramEffectSpec::new(&["go"])
        .with_short_value_options("C")
        .with_subcommands(GO),
    ProgramEffectSpec::new(&[
        "gopls",
        "rust-analyzer",
        "clangd",
        "pylsp",
        "typescript-language-server",
    ]),
    ProgramEffectSpec::new(&["cargo"])
        .with_long_value_options(&["color", "config", "manifest-path"])
        .with_option_meanings(&[
            ("C", OptionMeaning::WorkingDir),
            ("Z", OptionMeaning::Value),
            (
                // `--config KEY=VALUE` can set a linker, a runner or an alias.
                "config",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
        ])
        .with_subcommands(CARGO)
        .with_unlisted_subcommand_effects(&[NonFileEffectKind::Opaque]),
    ProgramEffectSpec::new(&["dotnet"])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
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
                &[NonFileEffectKind::Opaque],
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["restore", "add", "remove", "package"],
                &[NonFileEffectKind::Installs],
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                // Sets and lists secrets that are kept outside of the project.
                &["user-secrets"],
                &[NonFileEffectKind::ExposesSecret],
            ),
            // `dotnet nuget` pushes and deletes packages.
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["nuget"],
                &[NonFileEffectKind::Publishes],
            ),
        ])
        .with_unlisted_subcommand_effects(&[NonFileEffectKind::Opaque]),
    ProgramEffectSpec::new(&["zig", "v"])
        .with_unlisted_subcommand_effects(&[NonFileEffectKind::Opaque])
        .with_subcommands(&[ProgramEffectSpec::program_spec_with_fixed_effects(
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
            &[NonFileEffectKind::Opaque],
        )]),
];

const GO: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "build", "test", "run", "generate", "vet", "tool", "fix", "bug", "work",
        ],
        &[NonFileEffectKind::Opaque],
    )
    .with_single_dash_long_options()
    .with_long_value_options(&[
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
    .with_option_meanings(&[
        ("o", OptionMeaning::Writes),
        ("coverprofile", OptionMeaning::Writes),
        ("cpuprofile", OptionMeaning::Writes),
        ("memprofile", OptionMeaning::Writes),
        ("blockprofile", OptionMeaning::Writes),
        ("mutexprofile", OptionMeaning::Writes),
        ("trace", OptionMeaning::Writes),
        ("outputdir", OptionMeaning::Writes),
        ("exec", OptionMeaning::Command),
        // `go` runs it instead of each tool of the toolchain; `-exec` runs the built program.
        ("toolexec", OptionMeaning::Command),
        ("vettool", OptionMeaning::Command),
        ("modfile", OptionMeaning::Writes),
        (
            // Replaces sources by other files, which the build then compiles.
            "overlay",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
        ),
    ]),
    ProgramEffectSpec::new(&["list", "doc", "version", "help", "fmt", "telemetry"])
        .with_single_dash_long_options()
        .with_long_value_options(&["f", "mod", "tags", "C"])
        .with_option_meanings(&[("toolexec", OptionMeaning::Command)]),
    ProgramEffectSpec::new(&["env"])
        .with_single_dash_long_options()
        .with_option_meanings(&[
            // `go env -w` changes settings such as `CC` for all later calls.
            ("w", OptionMeaning::FlagEffect(NonFileEffectKind::Persists)),
            ("u", OptionMeaning::FlagEffect(NonFileEffectKind::Persists)),
        ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["mod", "get", "install"],
        &[NonFileEffectKind::Installs],
    )
    .with_single_dash_long_options()
    .with_option_meanings(&[
        ("toolexec", OptionMeaning::Command),
        ("modfile", OptionMeaning::Writes),
    ]),
    ProgramEffectSpec::new(&["clean"]),
];

const CARGO: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::Opaque],
    )
    .with_short_value_options("pjFZ")
    .with_long_value_options(&[
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
    .with_option_meanings(&[
        // Builds write below these folders, which can lie anywhere.
        ("target-dir", OptionMeaning::Writes),
        ("out-dir", OptionMeaning::Writes),
        ("artifact-dir", OptionMeaning::Writes),
        (
            "config",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
        ),
        // `cargo watch -x` and `-s` take commands to run on each change.
        ("x", OptionMeaning::Command),
        ("s", OptionMeaning::Command),
    ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::Installs],
    )
    .with_option_meanings(&[(
        "config",
        OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
    )]),
    ProgramEffectSpec::new(&[
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
    .with_option_meanings(&[(
        "config",
        OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
    )]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "publish",
            "yank",
            "owner",
            "release",
            "dist",
            "smart-release",
        ],
        &[NonFileEffectKind::Publishes],
    )
    .with_option_meanings(&[
        ("dry-run", OptionMeaning::Inert(&inert::CARGO)),
        ("n", OptionMeaning::Inert(&inert::CARGO)),
    ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["login", "logout"],
        &[NonFileEffectKind::ExposesSecret],
    ),
];

fn version_manager_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    match call.literal_operand(0) {
        Some("exec" | "run" | "x") => {
            let skip = match call
                .words
                .iter()
                .position(|word| word.as_literal() == Some("--"))
            {
                Some(at) => at + 1,
                None => call
                    .words
                    .iter()
                    .position(|word| matches!(word.as_literal(), Some("exec" | "run" | "x")))
                    .map_or(1, |at| {
                        // `rustup run VERSION COMMAND`: the others name a version first.
                        let plain = matches!(
                            call.command_name(),
                            "asdf"
                                | "rbenv"
                                | "pyenv"
                                | "goenv"
                                | "nodenv"
                                | "volta"
                                | "jenv"
                                | "plenv"
                        );
                        at + if plain { 1 } else { 2 }
                    }),
            };
            out.push(CommandEffect::ProjectTool(
                call.words.get(skip..).unwrap_or(&[]).to_vec(),
            ));
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
        }
        // A toolchain may be in use by other projects.
        Some("uninstall" | "self" | "implode") => {
            out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData))
        }
        _ => out.push(CommandEffect::Kind(NonFileEffectKind::Installs)),
    }
}
