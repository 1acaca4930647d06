//! Describes `gh` and `glab`. Looking at a forge is ordinary and proposing a change is the work
//! itself; whatever changes a repository for others or deletes something is not.

use crate::effects::CommandEffect;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};

const NET: &[NonFileEffectKind] = &[NonFileEffectKind::Network];

pub(super) const SPECS: &[ProgramEffectSpec] = &[ProgramEffectSpec::new(&["gh", "glab"])
    .with_short_value_options("R")
    .with_long_value_options(&["repo"])
    .with_option_meanings(&[("R", OptionMeaning::Value)])
    .with_subcommands(GH)];

const GH: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["pr", "mr"])
        .with_short_value_options("R")
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "list",
                    "view",
                    "diff",
                    "checks",
                    "status",
                    "create",
                    "checkout",
                    "ready",
                    "edit",
                    "comment",
                    "review",
                    "reopen",
                    "update-branch",
                    "show",
                    "note",
                    "lock",
                    "unlock",
                ],
                NET,
            )
            .with_short_value_options("RbBtFlarHqjLm")
            .with_long_value_options(&[
                "body",
                "base",
                "title",
                "body-file",
                "label",
                "assignee",
                "reviewer",
                "head",
                "json",
                "jq",
                "limit",
                "state",
                "template",
                "search",
                "author",
                "milestone",
            ])
            .with_option_meanings(&[
                ("w", OptionMeaning::Value),
                ("F", OptionMeaning::Reads),
                ("body-file", OptionMeaning::Reads),
            ]),
            // A merge can be reverted by another one, so it speaks for the person and is no hazard.
            // `--admin` merges past the required checks.
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["merge"],
                &[NonFileEffectKind::SpeaksForPerson],
            )
            .with_option_meanings(&[(
                "admin",
                OptionMeaning::FlagEffect(NonFileEffectKind::Publishes),
            )]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["close", "revert", "approve"],
                &[NonFileEffectKind::SpeaksForPerson],
            ),
        ]),
    ProgramEffectSpec::new(&["issue", "discussion"])
        .with_short_value_options("R")
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "list", "view", "create", "status", "comment", "edit", "reopen", "develop",
                    "pin", "unpin",
                ],
                NET,
            )
            .with_short_value_options("RbtFlaqjLm")
            .with_option_meanings(&[
                ("F", OptionMeaning::Reads),
                ("body-file", OptionMeaning::Reads),
            ]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["close", "lock", "unlock"],
                &[NonFileEffectKind::SpeaksForPerson],
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["delete", "transfer"],
                &[NonFileEffectKind::OverwritesShared],
            ),
        ]),
    ProgramEffectSpec::new(&["run", "workflow", "ci", "pipeline", "cache"])
        .with_short_value_options("R")
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "list", "view", "watch", "download", "status", "trace", "get", "lint",
                ],
                NET,
            )
            .with_option_meanings(&[("D", OptionMeaning::Writes), ("dir", OptionMeaning::Writes)]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                // Runs of a workflow can be repeated; nothing is lost.
                &["rerun", "cancel", "run", "retry", "trigger"],
                NET,
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["delete", "enable", "disable"],
                &[NonFileEffectKind::OverwritesShared],
            ),
        ]),
    ProgramEffectSpec::new(&["repo", "project"])
        .with_short_value_options("R")
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "view",
                    "list",
                    "clone",
                    "fork",
                    "sync",
                    "set-default",
                    "gitignore",
                    "license",
                    "item-list",
                    "field-list",
                ],
                NET,
            )
            .with_option_meanings(&[(
                // `gh repo sync --force` resets the target branch.
                "force",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            )]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "create",
                    "item-add",
                    "item-create",
                    "item-edit",
                    "deploy-key",
                    "edit",
                    "autolink",
                ],
                &[NonFileEffectKind::Publishes],
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "delete",
                    "archive",
                    "rename",
                    "unarchive",
                    "item-delete",
                    "close",
                    "transfer",
                    "unlink",
                    "mirror",
                ],
                &[NonFileEffectKind::OverwritesShared],
            ),
        ]),
    ProgramEffectSpec::new(&["release", "gist", "snippet"])
        .with_short_value_options("R")
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["list", "view", "download", "clone"],
                NET,
            )
            .with_option_meanings(&[
                ("D", OptionMeaning::Writes),
                ("dir", OptionMeaning::Writes),
                ("O", OptionMeaning::Writes),
                ("output", OptionMeaning::Writes),
            ]),
            ProgramEffectSpec::new(&["create"])
                .with_short_value_options("tnFR")
                .with_long_value_options(&[
                    "title",
                    "notes",
                    "notes-file",
                    "notes-start-tag",
                    "target",
                    "discussion-category",
                    "repo",
                ])
                .with_extra_effects_fn(forge_release_effects),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["upload", "edit", "rename", "delete", "delete-asset"],
                &[NonFileEffectKind::Publishes],
            ),
        ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "search",
            "status",
            "browse",
            "label",
            "ruleset",
            "org",
            "version",
            "help",
            "completion",
            "attestation",
            "user",
            "job",
            "incident",
        ],
        NET,
    )
    .with_extra_effects_fn(forge_object_effects),
    ProgramEffectSpec::new(&["api"]).with_extra_effects_fn(forge_api_effects),
    ProgramEffectSpec::new(&["auth"]).with_subcommands(&[
        ProgramEffectSpec::new(&["status"]).with_option_meanings(&[
            (
                "t",
                OptionMeaning::FlagEffect(NonFileEffectKind::ExposesSecret),
            ),
            (
                "show-token",
                OptionMeaning::FlagEffect(NonFileEffectKind::ExposesSecret),
            ),
        ]),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["token", "login", "logout", "refresh", "setup-git", "switch"],
            &[NonFileEffectKind::ExposesSecret],
        ),
    ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "secret",
            "variable",
            "ssh-key",
            "gpg-key",
            "token",
            "deploy-key",
        ],
        &[NonFileEffectKind::ExposesSecret],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            // An extension or an alias runs as a program from then on; a codespace is a remote
            // shell.
            "extension",
            "ext",
            "alias",
            "codespace",
            "cs",
            "config",
            "copilot",
        ],
        &[NonFileEffectKind::UnreadableCode],
    ),
];

/// Judges `release create`: a draft is visible only to those who can publish it.
fn forge_release_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // `--draft=false` publishes, so every such option must say true.
    let mut drafts = call
        .options
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "d" | "draft"))
        .map(|(_, value)| {
            value
                .as_ref()
                .is_none_or(|word| word.as_literal() == Some("true"))
        })
        .peekable();
    let draft = drafts.peek().is_some() && drafts.all(|draft| draft);
    out.push(CommandEffect::Kind(match draft {
        true => NonFileEffectKind::Uploads,
        false => NonFileEffectKind::Publishes,
    }));
}

fn forge_object_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    match call.literal_operand(0) {
        Some("delete") => out.push(CommandEffect::Kind(NonFileEffectKind::OverwritesShared)),
        Some("edit" | "create" | "clone") => {
            out.push(CommandEffect::Kind(NonFileEffectKind::SpeaksForPerson))
        }
        _ => {}
    }
}

/// Judges `gh api` by its method and path. Queries are ordinary, additions speak for the person,
/// releases and deployments publish, and other changes overwrite what others have.
fn forge_api_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let words: Vec<&str> = call.words.iter().map(|word| word.text.as_str()).collect();
    let method = words
        .iter()
        .zip(words.iter().skip(1))
        .find(|(flag, _)| matches!(**flag, "-X" | "--method"))
        .map(|(_, value)| *value);
    let attached = words.iter().find_map(|word| {
        word.strip_prefix("-X")
            .filter(|value| !value.is_empty())
            .or_else(|| word.strip_prefix("--method="))
    });
    let method = method.or(attached).map(str::to_ascii_uppercase);
    let get = matches!(method.as_deref(), None | Some("GET" | "HEAD"));
    // With fields and without a method `gh api` sends a POST.
    let sends = call.has_option(&["f", "F", "field", "raw-field", "input"]) && method.is_none();
    let any = |parts: &[&str]| {
        let holds = |word: &&str| parts.iter().any(|part| word.contains(part));
        words.iter().any(holds)
    };
    let graphql = words.contains(&"graphql");
    let deed = match method.as_deref() {
        // GraphQL is always a POST; only the text tells what it does.
        _ if graphql && !any(&["mutation"]) => NonFileEffectKind::Network,
        _ if graphql && any(&["delete", "remove", "archive", "transfer", "update"]) => {
            NonFileEffectKind::OverwritesShared
        }
        _ if graphql && any(&["publish"]) => NonFileEffectKind::Publishes,
        _ if graphql => NonFileEffectKind::SpeaksForPerson,
        _ if get && !sends => NonFileEffectKind::Network,
        None | Some("POST") if any(&["/releases", "/dispatches", "/deployments"]) => {
            NonFileEffectKind::Publishes
        }
        None | Some("POST") => NonFileEffectKind::SpeaksForPerson,
        Some("PUT") if words.iter().any(|word| word.ends_with("/merge")) => {
            NonFileEffectKind::SpeaksForPerson
        }
        Some(_) => NonFileEffectKind::OverwritesShared,
    };
    out.push(CommandEffect::Kind(deed));
}
