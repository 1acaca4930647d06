//! Describes the package managers of JavaScript. A call that runs a program of a package is judged
//! by that program.

use super::packages::add_package_runner_effects;
use crate::effects::CommandEffect;
use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::shell::CommandWord;

const INSTALLS: &[NonFileEffectKind] = &[NonFileEffectKind::Installs];
const RUNS: &[NonFileEffectKind] = &[NonFileEffectKind::Opaque];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["npm", "pnpm", "yarn", "yarnpkg", "cnpm"])
        .with_short_value_options("CFw")
        .with_long_value_options(&[
            "prefix",
            "filter",
            "workspace",
            "registry",
            "loglevel",
            "dir",
            "cwd",
        ])
        .with_option_meanings(&[
            ("C", OptionMeaning::WorkingDir),
            ("prefix", OptionMeaning::WorkingDir),
            ("dir", OptionMeaning::WorkingDir),
            ("cwd", OptionMeaning::WorkingDir),
            (
                // npm runs every script with this program.
                "script-shell",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "node-options",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
        ])
        .with_subcommands(NODE)
        // `yarn NAME` runs a script of the project.
        .with_unlisted_subcommand_effects(RUNS),
    ProgramEffectSpec::new(&["npx", "pnpx", "bunx"])
        .with_short_value_options("pwc")
        .with_long_value_options(&["package", "workspace"])
        .with_extra_effects_fn(npx_effects),
    ProgramEffectSpec::new(&["bun"])
        .with_long_value_options(&["cwd", "filter", "env-file"])
        .with_option_meanings(&[
            ("cwd", OptionMeaning::WorkingDir),
            // Inline code; that of Bun is not analyzed.
            (
                "e",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "p",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "eval",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "print",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
        ])
        .with_subcommands(NODE)
        .with_unlisted_subcommand_effects(RUNS),
    ProgramEffectSpec::new(&["deno"]).with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "test", "task", "run", "fmt", "lint", "check", "bench", "compile", "bundle", "doc",
                "info", "types", "serve", "coverage",
            ],
            RUNS,
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "install",
                "add",
                "remove",
                "cache",
                "upgrade",
                "uninstall",
                "outdated",
                "init",
            ],
            INSTALLS,
        ),
        // `deno eval` takes code with all permissions.
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["eval", "repl"],
            &[NonFileEffectKind::UnreadableCode],
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["publish", "deploy"],
            &[NonFileEffectKind::Publishes],
        ),
    ]),
    ProgramEffectSpec::new(&["ncu", "npm-check-updates", "npm-check", "bower", "jspm"])
        .with_extra_effects_fn(package_install_effects),
];

const NODE: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "install",
            "i",
            "in",
            "ci",
            "add",
            "remove",
            "rm",
            "uninstall",
            "un",
            "update",
            "up",
            "upgrade",
            "dedupe",
            "prune",
            "audit",
            "rebuild",
            "link",
            "unlink",
            "ls",
            "list",
            "la",
            "ll",
            "outdated",
            "view",
            "info",
            "show",
            "why",
            "explain",
            "search",
            "pack",
            "fund",
            "root",
            "bin",
            "prefix",
            "help",
            "init",
            "create",
            "version",
            "doctor",
            "cache",
            "store",
            "ping",
            "docs",
            "repo",
            "bugs",
            "set-script",
            "query",
            "sbom",
            "config",
            "c",
            "get",
            "pkg",
            "licenses",
            "import",
            "fetch",
            "patch",
            "patch-commit",
            "constraints",
            "plugin",
            "set",
            "node",
            "whoami",
            "pm",
            "shrinkwrap",
            "clean-install",
            "install-test",
            "it",
            "approve-builds",
            "self-update",
            "env",
            "deploy-files",
            "diff",
        ],
        INSTALLS,
    )
    .with_long_value_options(&[
        "registry",
        "prefix",
        "filter",
        "workspace",
        "omit",
        "save-prefix",
        "loglevel",
        "depth",
        "cache",
    ])
    .with_option_meanings(&[
        ("prefix", OptionMeaning::Writes),
        (
            "script-shell",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
    ])
    .with_extra_effects_fn(npm_config_effects),
    ProgramEffectSpec::new(&["exec", "dlx", "x"])
        .with_short_value_options("pwc")
        .with_long_value_options(&["package", "workspace", "filter"])
        .with_extra_effects_fn(npx_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "run",
            "run-script",
            "test",
            "t",
            "tst",
            "start",
            "stop",
            "restart",
            "build",
            "dev",
            "lint",
            "workspaces",
            "foreach",
            "recursive",
        ],
        RUNS,
    )
    .with_short_value_options("w")
    .with_long_value_options(&["workspace", "prefix", "filter"])
    .with_option_meanings(&[(
        "script-shell",
        OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
    )]),
    ProgramEffectSpec::new(&["workspace"]).with_extra_effects_fn(yarn_workspace_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "publish",
            "unpublish",
            "deprecate",
            "dist-tag",
            "owner",
            "access",
            "team",
            "org",
            "hook",
            "star",
            "stage",
            "npm",
        ],
        &[NonFileEffectKind::Publishes],
    )
    .with_option_meanings(&[("dry-run", OptionMeaning::Inert(&inert::PACKAGES))]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["login", "logout", "adduser", "token", "profile"],
        &[NonFileEffectKind::ExposesSecret],
    ),
];

/// Judges `npm config`: a setting applies to all later calls, and `_auth` settings are secrets.
fn npm_config_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.words.first().map_or("", |word| word.text.as_str());
    let settles = matches!(name, "config" | "c" | "set")
        && (name == "set"
            || matches!(
                call.literal_operand(0),
                Some("set" | "edit" | "delete" | "fix")
            ));
    if settles {
        out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
    }
    if matches!(name, "config" | "c" | "get")
        && call.operands.iter().any(|word| word.text.contains("_auth"))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::ExposesSecret));
    }
}

fn npx_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Only options before the tool are its own.
    let first = call.operands.first().copied();
    for (at, word) in call.words.iter().enumerate().skip(1) {
        if first.is_some_and(|first| std::ptr::eq(first, word)) {
            break;
        }
        match word.text.as_str() {
            // `npx -c TEXT` hands the text to a shell.
            "-c" | "--call" | "--shell-mode" => {
                out.extend(
                    call.words
                        .get(at + 1)
                        .map(|word| CommandEffect::RunsScript(word.clone())),
                );
                return;
            }
            text if text.starts_with("--call=") => {
                out.extend(word.suffix_after_char('=').map(CommandEffect::RunsScript));
                return;
            }
            _ => {}
        }
    }
    // The tool keeps its own options, so the words are passed on from its name.
    add_package_runner_effects(&call.words_from_first_operand(), out);
}

/// Judges `yarn workspace NAME SCRIPT` as `yarn SCRIPT`.
fn yarn_workspace_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    let rest = call.words_from_first_operand();
    // The script may be any yarn command, `publish` among them.
    let mut words = vec![CommandWord::new_literal_word("yarn")];
    words.extend(rest.iter().skip(1).cloned());
    out.push(CommandEffect::ProjectTool(words));
}

fn package_install_effects(_: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::Installs));
}
