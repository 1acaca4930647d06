//! Describes package managers of languages. Installing is ordinary work, publishing is not. A call
//! that runs a program of a package is judged by that program.

use crate::effects::CommandEffect;
use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::shell::CommandWord;

const INSTALLS: &[NonFileEffectKind] = &[NonFileEffectKind::Installs];
const RUNS: &[NonFileEffectKind] = &[NonFileEffectKind::Opaque];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["pip", "pipx"])
        .with_long_value_options(&["python", "log", "proxy", "retries", "timeout", "cache-dir"])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "install",
                    "download",
                    "wheel",
                    "uninstall",
                    "upgrade",
                    "inject",
                    "upgrade-all",
                    "reinstall",
                    "ensurepath",
                    "sync",
                    "compile",
                    "tree",
                    "venv",
                ],
                INSTALLS,
            )
            .with_short_value_options("rctei")
            .with_long_value_options(&[
                "requirement",
                "constraint",
                "target",
                "editable",
                "index-url",
                "extra-index-url",
                "find-links",
                "prefix",
                "root",
                "python",
            ])
            .with_option_meanings(&[
                // `--target`, `--prefix` and `--root` install into any folder.
                ("t", OptionMeaning::Writes),
                ("target", OptionMeaning::Writes),
                ("prefix", OptionMeaning::Writes),
                ("root", OptionMeaning::Writes),
                ("d", OptionMeaning::Writes),
                ("dest", OptionMeaning::Writes),
                ("r", OptionMeaning::Reads),
            ]),
            ProgramEffectSpec::new(&[
                "list",
                "show",
                "freeze",
                "check",
                "index",
                "search",
                "help",
                "debug",
                "inspect",
                "hash",
                "environment",
                "completion",
            ]),
            ProgramEffectSpec::new(&["cache", "config"]),
            ProgramEffectSpec::new(&["run", "runpip"])
                .with_extra_effects_fn(package_manager_exec_effects),
        ]),
    ProgramEffectSpec::new(&["uv"])
        .with_long_value_options(&["directory", "project", "cache-dir", "color", "config-file"])
        .with_option_meanings(&[
            ("directory", OptionMeaning::WorkingDir),
            ("project", OptionMeaning::WorkingDir),
        ])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "sync", "add", "remove", "lock", "venv", "init", "export", "tree", "python",
                    "cache", "self", "build", "version", "help", "format",
                ],
                INSTALLS,
            )
            .with_option_meanings(&[
                ("o", OptionMeaning::Writes),
                ("output-file", OptionMeaning::Writes),
                ("out-dir", OptionMeaning::Writes),
            ]),
            ProgramEffectSpec::new(&["run"]).with_extra_effects_fn(uv_run_effects),
            ProgramEffectSpec::new(&["tool"]).with_subcommands(&[
                ProgramEffectSpec::new(&["run"]).with_extra_effects_fn(uv_run_effects),
                ProgramEffectSpec::program_spec_with_fixed_effects(
                    &[
                        "install",
                        "list",
                        "upgrade",
                        "uninstall",
                        "update-shell",
                        "dir",
                    ],
                    INSTALLS,
                ),
            ]),
            ProgramEffectSpec::new(&["pip"]).with_subcommands(&[
                ProgramEffectSpec::program_spec_with_fixed_effects(
                    &[
                        "install",
                        "uninstall",
                        "sync",
                        "compile",
                        "tree",
                        "check",
                        "list",
                        "show",
                        "freeze",
                    ],
                    INSTALLS,
                )
                .with_option_meanings(&[
                    ("o", OptionMeaning::Writes),
                    ("output-file", OptionMeaning::Writes),
                    ("t", OptionMeaning::Writes),
                    ("target", OptionMeaning::Writes),
                    ("prefix", OptionMeaning::Writes),
                ]),
            ]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["publish"],
                &[NonFileEffectKind::Publishes],
            ),
        ]),
    ProgramEffectSpec::new(&["uvx"]).with_extra_effects_fn(uv_run_effects),
    ProgramEffectSpec::new(&["poetry", "pipenv", "pdm", "hatch", "rye", "pixi"])
        .with_short_value_options("CPpe")
        .with_long_value_options(&["directory", "project", "env"])
        .with_option_meanings(&[
            ("C", OptionMeaning::WorkingDir),
            ("directory", OptionMeaning::WorkingDir),
            ("project", OptionMeaning::WorkingDir),
        ])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "install",
                    "add",
                    "remove",
                    "update",
                    "lock",
                    "sync",
                    "show",
                    "init",
                    "new",
                    "env",
                    "check",
                    "version",
                    "export",
                    "build",
                    "list",
                    "graph",
                    "info",
                    "outdated",
                    "about",
                    "search",
                    "self",
                    "uninstall",
                    "clean",
                    "import",
                    "use",
                    "venv",
                    "fmt",
                    "test",
                    "lint",
                    "status",
                    "tree",
                    "dep",
                ],
                INSTALLS,
            )
            .with_option_meanings(&[
                ("o", OptionMeaning::Writes),
                ("output", OptionMeaning::Writes),
            ]),
            ProgramEffectSpec::new(&["run"]).with_extra_effects_fn(package_manager_exec_effects),
            ProgramEffectSpec::program_spec_with_fixed_effects(&["shell"], RUNS),
            // Settings, tokens among them, are kept for the user.
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["config"],
                &[NonFileEffectKind::Persists],
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["publish"],
                &[NonFileEffectKind::Publishes],
            )
            .with_option_meanings(&[("dry-run", OptionMeaning::Inert(&inert::PACKAGES))]),
        ])
        .with_unlisted_subcommand_effects(RUNS),
    ProgramEffectSpec::new(&["conda", "mamba", "micromamba"]).with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "install",
                "create",
                "update",
                "env",
                "list",
                "info",
                "search",
                "activate",
                "deactivate",
                "remove",
                "uninstall",
                "config",
                "clean",
                "export",
            ],
            INSTALLS,
        ),
        ProgramEffectSpec::new(&["run"])
            .with_short_value_options("np")
            .with_long_value_options(&["name", "prefix"])
            .with_extra_effects_fn(package_manager_exec_effects),
        // `conda init` writes into the startup files of the shell.
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["init"],
            &[NonFileEffectKind::Persists],
        ),
    ]),
    ProgramEffectSpec::new(&["gem"]).with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "install",
                "update",
                "uninstall",
                "list",
                "search",
                "info",
                "build",
                "outdated",
                "environment",
                "env",
                "which",
                "contents",
                "specification",
                "cleanup",
                "fetch",
                "dependency",
                "help",
            ],
            INSTALLS,
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["push", "yank", "owner"],
            &[NonFileEffectKind::Publishes],
        ),
        ProgramEffectSpec::new(&["exec"]).with_extra_effects_fn(package_manager_exec_effects),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["signin", "signout"],
            &[NonFileEffectKind::ExposesSecret],
        ),
    ]),
    ProgramEffectSpec::new(&["bundle", "bundler"])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "install", "update", "add", "remove", "lock", "list", "show", "info",
                    "outdated", "check", "config", "init", "clean", "cache", "binstubs",
                    "platform", "version", "package",
                ],
                INSTALLS,
            ),
            ProgramEffectSpec::new(&["exec", "e"])
                .with_extra_effects_fn(package_manager_exec_effects),
        ])
        .with_unlisted_subcommand_effects(RUNS),
    ProgramEffectSpec::new(&["composer"])
        .with_short_value_options("d")
        .with_long_value_options(&["working-dir"])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "install",
                    "update",
                    "require",
                    "remove",
                    "dump-autoload",
                    "dumpautoload",
                    "show",
                    "outdated",
                    "validate",
                    "why",
                    "info",
                    "search",
                    "init",
                    "create-project",
                    "self-update",
                    "diagnose",
                    "licenses",
                    "status",
                    "audit",
                    "config",
                    "clear-cache",
                    "bump",
                    "reinstall",
                    "check-platform-reqs",
                ],
                INSTALLS,
            ),
            ProgramEffectSpec::new(&["exec"]).with_extra_effects_fn(package_manager_exec_effects),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["run", "run-script", "test"],
                RUNS,
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(&["global"], INSTALLS),
        ])
        .with_unlisted_subcommand_effects(RUNS),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "opam",
            "luarocks",
            "cpan",
            "cpanm",
            "raco",
            "ghcup",
            "vcpkg",
            "conan",
            "pod",
            "carthage",
            "mint",
            "tlmgr",
            "easy_install",
            "helm-docs",
            "krew",
            "tpm",
            "haxelib",
            "dub",
            "ansible-galaxy",
        ],
        INSTALLS,
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "twine",
            "vsce",
            "ovsx",
            "np",
            "release-it",
            "semantic-release",
            "goreleaser",
            "fastlane",
            "cargo-release",
            "gh-pages",
            "clasp",
        ],
        &[NonFileEffectKind::Publishes],
    )
    .with_extra_effects_fn(drop_dry_run_publish_effect),
    ProgramEffectSpec::new(&["virtualenv", "pyvenv", "venv"]),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["activate", "deactivate"], &[]),
];

/// Adds a program that a package brings, with its words.
pub(super) fn add_package_runner_effects(words: &[CommandWord], out: &mut Vec<CommandEffect>) {
    let Some(first) = words.first() else { return };
    let mut words = words.to_vec();
    // The program is assumed to be named like the package, without scope and version:
    // `create-vite@latest`, `@scope/name`. An address is no name.
    if let (Some(name), Some(word)) = (first.as_literal(), words.first_mut()) {
        // The scope goes first, because it also begins with `@`.
        let bare = name.strip_prefix('@').map_or(name, |scoped| {
            scoped.split_once('/').map_or(scoped, |(_, name)| name)
        });
        let bare = bare.split('@').next().unwrap_or(bare);
        if !bare.contains('/') && !name.contains("://") && !name.contains(':') {
            *word = CommandWord::new_literal_word(bare);
        }
    }
    out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    out.push(CommandEffect::ProjectTool(words));
}

fn package_manager_exec_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    add_package_runner_effects(&call.words_from_first_operand(), out);
}

/// Finds the command of `uv run` or `uvx` behind its options.
fn uv_run_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    const VALUES: &[&str] = &[
        "--with",
        "--with-editable",
        "--with-requirements",
        "--python",
        "-p",
        "--extra",
        "--group",
        "--env-file",
        "--from",
        "--package",
        "--index",
        "--default-index",
        "--index-url",
        "-w",
        "--project",
        "--directory",
        "--only-group",
        "--no-group",
        "--no-extra",
    ];
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        match word.text.as_str() {
            "--" => {
                at += 1;
                break;
            }
            "-m" | "--module" => {
                // `-m` stays among the words, so this is `python -m MODULE`.
                let mut words = vec![CommandWord::new_literal_word("python")];
                words.extend(call.words.iter().skip(at).cloned());
                out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
                out.push(CommandEffect::ProjectTool(words));
                return;
            }
            // The script is read from standard input.
            "-" => return out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode)),
            text if VALUES.contains(&text) => at += 2,
            text if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    add_package_runner_effects(call.words.get(at..).unwrap_or(&[]), out);
}

fn drop_dry_run_publish_effect(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // These build or check the package and stop before publishing.
    if matches!(call.literal_operand(0), Some("check" | "build" | "package"))
        || inert::has_certain_dry_run_option(
            call.words,
            &["dry-run", "snapshot"],
            &inert::PACKAGES,
            "",
            false,
        )
    {
        out.retain(|effect| *effect != CommandEffect::Kind(NonFileEffectKind::Publishes));
    }
}
