//! Describes Git, one row per sub-command. Reading history and committing are ordinary work. What
//! drops uncommitted work, moves refs, rewrites what others have, skips hooks or runs a program
//! that an option or a setting names is not.

use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{
    NonFileEffectKind, OperandRole, OptionMeaning, ProgramEffectSpec,
};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["git", "hub"])
        .with_option_meanings(&[
            ("C", OptionMeaning::WorkingDir),
            ("c", OptionMeaning::Value),
            ("git-dir", OptionMeaning::Value),
            ("work-tree", OptionMeaning::WorkingDir),
            ("namespace", OptionMeaning::Value),
            // `--exec-path=FOLDER` is where Git looks for its own programs; alone it prints that
            // folder.
            ("exec-path", OptionMeaning::Edits),
            (
                // It takes the value of a setting from the environment, where it cannot be seen.
                "config-env",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            ("super-prefix", OptionMeaning::Value),
        ])
        .with_subcommands(SUBS)
        .with_extra_effects_fn(git_config_option_effects),
    ProgramEffectSpec::new(&["git-lfs"]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["git-filter-repo", "bfg"],
        &[NonFileEffectKind::RewritesHistory],
    ),
    ProgramEffectSpec::program_spec_reading_operands(&["tig", "gitk", "lazygit", "git-cola"]),
];

const SHOWS: &[(&str, OptionMeaning)] = &[
    ("output", OptionMeaning::Writes),
    // `-O` and `-U` take their values attached: an order file, a number of lines.
    ("O", OptionMeaning::Edits),
    (
        // An external diff program is named by a setting or by `.gitattributes`.
        "ext-diff",
        OptionMeaning::FlagEffect(NonFileEffectKind::UnreadableCode),
    ),
    ("S", OptionMeaning::Value),
    ("G", OptionMeaning::Value),
    ("L", OptionMeaning::Value),
    ("n", OptionMeaning::Value),
    ("U", OptionMeaning::Edits),
    ("o", OptionMeaning::Value),
];

const SUBS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&[
        "status",
        "log",
        "show",
        "diff",
        "whatchanged",
        "shortlog",
        "range-diff",
        "diff-tree",
        "diff-index",
        "diff-files",
        "cherry",
        "rev-list",
        "show-branch",
    ])
    .with_long_value_options(&[
        "author",
        "since",
        "until",
        "after",
        "before",
        "grep",
        "format",
        "max-count",
        "skip",
        "word-diff-regex",
        "inter-hunk-context",
        "diff-algorithm",
    ])
    .with_option_meanings(SHOWS)
    .with_extra_effects_fn(git_operand_file_read_effects),
    ProgramEffectSpec::new(&[
        "describe",
        "rev-parse",
        "ls-files",
        "ls-tree",
        "cat-file",
        "name-rev",
        "merge-base",
        "for-each-ref",
        "show-ref",
        "count-objects",
        "check-ignore",
        "check-attr",
        "check-ref-format",
        "check-mailmap",
        "version",
        "help",
        "fsck",
        "verify-commit",
        "verify-tag",
        "verify-pack",
        "blame",
        "annotate",
        "diff-pairs",
        "stripspace",
        "patch-id",
        "get-tar-commit-id",
        "request-pull",
        "var",
        "column",
        "unpack-file",
        "merge-tree",
        "fmt-merge-msg",
        "show-index",
        "bugreport",
        "diagnose",
        "backfill",
        "hash-object",
        "mktree",
        "write-tree",
        "commit-tree",
        "rerere",
        "update-server-info",
        "pack-refs",
    ])
    .with_short_value_options("LSCMe")
    .with_long_value_options(&[
        "format",
        "exclude",
        "match",
        "abbrev",
        "contents",
        "sort",
        "points-at",
    ])
    .with_extra_effects_fn(git_operand_file_read_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["ls-remote"],
        &[NonFileEffectKind::Network],
    )
    .with_option_meanings(&[
        (
            // `--upload-pack` and `--exec` name the program to run on the side of the remote,
            // which is this machine for a local path.
            "upload-pack",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
        (
            "exec",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
    ])
    .with_extra_effects_fn(git_remote_url_effects),
    ProgramEffectSpec::new(&["grep"])
        .with_short_value_options("ABCmef")
        .with_long_value_options(&["max-depth", "threads", "max-count"])
        .with_option_meanings(&[
            // Opens the found files in a pager, which can be any command: `-O"rm x"`.
            (
                "O",
                OptionMeaning::FlagEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "open-files-in-pager",
                OptionMeaning::FlagEffect(NonFileEffectKind::UnreadableCode),
            ),
        ]),
    ProgramEffectSpec::new(&["init"])
        .with_option_meanings(&[
            (
                // The hooks of a template are copied into the new repository and run later.
                "template",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            ("separate-git-dir", OptionMeaning::Writes),
        ])
        .with_operand_role(OperandRole::Write),
    ProgramEffectSpec::new(&["add", "stage", "notes", "sparse-checkout", "update-index"])
        .with_long_value_options(&["chmod", "pathspec-from-file"])
        .with_option_meanings(&[("p", OptionMeaning::Value)]),
    ProgramEffectSpec::new(&["commit"])
        .with_short_value_options("mCcFtuS")
        .with_long_value_options(&[
            "message",
            "file",
            "author",
            "date",
            "template",
            "fixup",
            "squash",
            "reuse-message",
            "cleanup",
            "trailer",
        ])
        .with_option_meanings(&[
            (
                // Both skip the hooks `pre-commit` and `commit-msg`.
                "no-verify",
                OptionMeaning::FlagEffect(NonFileEffectKind::SkipsChecks),
            ),
            (
                "n",
                OptionMeaning::FlagEffect(NonFileEffectKind::SkipsChecks),
            ),
            (
                "no-post-rewrite",
                OptionMeaning::FlagEffect(NonFileEffectKind::SkipsChecks),
            ),
        ]),
    ProgramEffectSpec::new(&["branch"])
        .with_short_value_options("u")
        .with_long_value_options(&["set-upstream-to", "format", "sort", "points-at"])
        .with_option_meanings(&[
            // `-d` refuses to delete unmerged branches, so it is ordinary; `-D` and the other
            // forced forms do not.
            ("D", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
            ("f", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
            (
                "force",
                OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
            ),
            ("M", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
            ("C", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
        ]),
    ProgramEffectSpec::new(&["tag"])
        .with_short_value_options("mFun")
        .with_long_value_options(&[
            "message",
            "file",
            "local-user",
            "sort",
            "format",
            "points-at",
            "contains",
            "merged",
        ])
        .with_option_meanings(&[
            ("d", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
            (
                "delete",
                OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
            ),
            ("f", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
            (
                "force",
                OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
            ),
        ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["checkout"],
        &[NonFileEffectKind::MovesTree],
    )
    .with_short_value_options("b")
    .with_long_value_options(&["orphan", "conflict"])
    .with_option_meanings(&[
        // `-b` makes a branch, `-B` also moves one that exists.
        (
            "B",
            OptionMeaning::ValueEffect(NonFileEffectKind::MovesRefs),
        ),
        (
            "f",
            OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
        ),
        (
            "force",
            OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
        ),
        (
            "pathspec-from-file",
            OptionMeaning::ValueEffect(NonFileEffectKind::DiscardsWork),
        ),
    ])
    .with_extra_effects_fn(git_checkout_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["switch"],
        &[NonFileEffectKind::MovesTree],
    )
    .with_short_value_options("c")
    .with_long_value_options(&["create", "orphan", "conflict"])
    .with_option_meanings(&[
        (
            "C",
            OptionMeaning::ValueEffect(NonFileEffectKind::MovesRefs),
        ),
        (
            "force-create",
            OptionMeaning::ValueEffect(NonFileEffectKind::MovesRefs),
        ),
        (
            "f",
            OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
        ),
        (
            "force",
            OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
        ),
        (
            "discard-changes",
            OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
        ),
    ]),
    ProgramEffectSpec::new(&["restore"])
        .with_short_value_options("s")
        .with_long_value_options(&["source", "conflict"])
        .with_option_meanings(&[(
            // The files to restore stand in another file, so any of them may be meant.
            "pathspec-from-file",
            OptionMeaning::ValueEffect(NonFileEffectKind::DiscardsWork),
        )])
        .with_extra_effects_fn(git_restore_effects),
    ProgramEffectSpec::new(&["reset"])
        .with_option_meanings(&[("pathspec-from-file", OptionMeaning::Value)])
        .with_extra_effects_fn(git_reset_effects),
    ProgramEffectSpec::new(&["clean"])
        .with_short_value_options("e")
        .with_long_value_options(&["exclude"])
        .with_extra_effects_fn(git_clean_effects),
    ProgramEffectSpec::new(&["stash"]).with_extra_effects_fn(git_stash_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["merge", "cherry-pick", "revert"],
        &[NonFileEffectKind::MovesTree],
    )
    .with_short_value_options("msSXF")
    .with_long_value_options(&[
        "message",
        "strategy",
        "strategy-option",
        "mainline",
        "file",
        "into-name",
        "cleanup",
    ])
    .with_option_meanings(&[(
        "no-verify",
        OptionMeaning::FlagEffect(NonFileEffectKind::SkipsChecks),
    )]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["rebase"],
        &[NonFileEffectKind::MovesTree],
    )
    .with_short_value_options("sXC")
    .with_long_value_options(&["onto", "strategy", "strategy-option", "empty"])
    .with_option_meanings(&[
        // Runs the command after each commit.
        ("x", OptionMeaning::Command),
        ("exec", OptionMeaning::Command),
        // Without a person, the todo list is edited by a program that may drop or squash
        // commits.
        ("i", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
        (
            "interactive",
            OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
        ),
        (
            "root",
            OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
        ),
        (
            "edit-todo",
            OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
        ),
        (
            "no-verify",
            OptionMeaning::FlagEffect(NonFileEffectKind::SkipsChecks),
        ),
    ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["fetch"], &[NonFileEffectKind::Network])
        .with_short_value_options("jo")
        .with_long_value_options(&[
            "depth",
            "deepen",
            "shallow-since",
            "shallow-exclude",
            "jobs",
            "refmap",
            "server-option",
            "negotiation-tip",
            "filter",
        ])
        .with_option_meanings(&[
            (
                "upload-pack",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            ("f", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
            (
                "force",
                OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
            ),
            ("multiple", OptionMeaning::Value),
        ])
        .with_extra_effects_fn(git_remote_url_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["pull"],
        &[NonFileEffectKind::Network, NonFileEffectKind::MovesTree],
    )
    .with_short_value_options("sXjo")
    .with_long_value_options(&[
        "depth",
        "strategy",
        "strategy-option",
        "jobs",
        "server-option",
    ])
    .with_option_meanings(&[
        (
            "upload-pack",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
        ("f", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
        (
            "force",
            OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
        ),
    ])
    .with_extra_effects_fn(git_remote_url_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["push"], &[NonFileEffectKind::Network])
        .with_short_value_options("o")
        .with_long_value_options(&["push-option"])
        .with_option_meanings(&[
            (
                "f",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            ),
            (
                "force",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            ),
            (
                // The lease only compares with what was fetched last; what others pushed is still
                // replaced.
                "force-with-lease",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            ),
            (
                // Also deletes every remote ref that is missing here.
                "mirror",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            ),
            (
                "delete",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            ),
            (
                "d",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            ),
            (
                "prune",
                OptionMeaning::FlagEffect(NonFileEffectKind::OverwritesShared),
            ),
            (
                "no-verify",
                OptionMeaning::FlagEffect(NonFileEffectKind::SkipsChecks),
            ),
            (
                "receive-pack",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "exec",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            // `--repo` names the target without an operand, so the address is not looked at
            // further.
            (
                "repo",
                OptionMeaning::ValueEffect(NonFileEffectKind::Uploads),
            ),
        ])
        .with_extra_effects_fn(git_push_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["clone"], &[NonFileEffectKind::Network])
        .with_short_value_options("bojc")
        .with_long_value_options(&[
            "branch",
            "depth",
            "origin",
            "jobs",
            "filter",
            "shallow-since",
            "reference",
            "server-option",
        ])
        .with_option_meanings(&[
            // The settings apply to the new repository, and are kept in it.
            (
                "c",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "config",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "u",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "upload-pack",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "template",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            ("separate-git-dir", OptionMeaning::Writes),
        ])
        .with_extra_effects_fn(git_clone_effects),
    ProgramEffectSpec::new(&["remote"]).with_subcommands(&[
        ProgramEffectSpec::new(&[
            "show",
            "get-url",
            "rename",
            "prune",
            "update",
            "set-head",
            "set-branches",
            "remove",
            "rm",
        ]),
        // A later plain `git push` would go to the new address.
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["add", "set-url"],
            &[NonFileEffectKind::Uploads],
        )
        .with_short_value_options("tm"),
    ]),
    ProgramEffectSpec::new(&["config"])
        .with_short_value_options("f")
        .with_long_value_options(&["file", "blob", "type", "default", "value", "comment"])
        .with_extra_effects_fn(git_config_effects),
    ProgramEffectSpec::new(&["submodule"])
        .with_option_meanings(&[("quiet", OptionMeaning::Value)])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &[
                    "status",
                    "init",
                    "summary",
                    "sync",
                    "set-branch",
                    "absorbgitdirs",
                ],
                &[],
            ),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["update"],
                &[NonFileEffectKind::Network],
            )
            .with_long_value_options(&["reference", "depth", "jobs"])
            .with_option_meanings(&[
                (
                    "f",
                    OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
                ),
                (
                    "force",
                    OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
                ),
            ]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["add", "set-url"],
                &[NonFileEffectKind::Network],
            )
            .with_short_value_options("b")
            .with_long_value_options(&["branch", "name", "reference", "depth"]),
            ProgramEffectSpec::program_spec_with_fixed_effects(&["deinit"], &[])
                .with_option_meanings(&[
                    (
                        "f",
                        OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
                    ),
                    (
                        "force",
                        OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
                    ),
                ])
                .with_operand_role(OperandRole::Remove),
            ProgramEffectSpec::new(&["foreach"])
                .with_extra_effects_fn(git_submodule_foreach_effects),
        ]),
    ProgramEffectSpec::new(&["worktree"]).with_subcommands(&[
        ProgramEffectSpec::new(&["list", "prune", "lock", "unlock", "repair"])
            .with_long_value_options(&["reason", "expire"]),
        ProgramEffectSpec::new(&["add"])
            .with_short_value_options("bB")
            .with_long_value_options(&["reason"])
            .with_extra_effects_fn(git_worktree_effects),
        ProgramEffectSpec::new(&["move"]).with_operand_role(OperandRole::Move),
        ProgramEffectSpec::new(&["remove"]).with_option_meanings(&[
            (
                "f",
                OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
            ),
            (
                "force",
                OptionMeaning::FlagEffect(NonFileEffectKind::DiscardsWork),
            ),
        ]),
    ]),
    ProgramEffectSpec::new(&["bisect"]).with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "start",
                "good",
                "bad",
                "new",
                "old",
                "skip",
                "reset",
                "log",
                "visualize",
                "view",
                "terms",
                "replay",
                "next",
            ],
            &[NonFileEffectKind::MovesTree],
        ),
        ProgramEffectSpec::new(&["run"]).with_extra_effects_fn(git_bisect_effects),
    ]),
    ProgramEffectSpec::new(&["apply"])
        .with_short_value_options("pC")
        .with_long_value_options(&["whitespace", "exclude", "include"])
        .with_option_meanings(&[
            ("check", OptionMeaning::Inert(&inert::GIT_APPLY)),
            ("stat", OptionMeaning::Inert(&inert::GIT_APPLY)),
            ("numstat", OptionMeaning::Inert(&inert::GIT_APPLY)),
            ("summary", OptionMeaning::Inert(&inert::GIT_APPLY)),
            (
                // Lets a patch write outside of the working tree.
                "unsafe-paths",
                OptionMeaning::FlagEffect(NonFileEffectKind::UnknownOptions),
            ),
            ("directory", OptionMeaning::Value),
        ])
        .with_extra_effects_fn(git_apply_effects),
    ProgramEffectSpec::new(&["am"])
        .with_short_value_options("pC")
        .with_long_value_options(&["whitespace", "exclude", "include", "patch-format"])
        .with_option_meanings(&[(
            "no-verify",
            OptionMeaning::FlagEffect(NonFileEffectKind::SkipsChecks),
        )])
        .with_extra_effects_fn(git_apply_effects),
    ProgramEffectSpec::new(&["rm"])
        .with_option_meanings(&[
            // `git rm --cached` only changes the index; the file stays.
            ("cached", OptionMeaning::Inert(&inert::GIT_FILES)),
            ("n", OptionMeaning::Inert(&inert::GIT_FILES)),
            ("dry-run", OptionMeaning::Inert(&inert::GIT_FILES)),
        ])
        .with_operand_role(OperandRole::Remove),
    ProgramEffectSpec::new(&["mv"]).with_operand_role(OperandRole::Move),
    ProgramEffectSpec::new(&["archive", "bundle"])
        .with_long_value_options(&["format", "prefix"])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            (
                // The program that makes the archive on the side of the remote.
                "exec",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "remote",
                OptionMeaning::ValueEffect(NonFileEffectKind::Network),
            ),
        ]),
    ProgramEffectSpec::new(&["format-patch"])
        .with_short_value_options("nv")
        .with_long_value_options(&[
            "start-number",
            "subject-prefix",
            "reroll-count",
            "to",
            "cc",
            "in-reply-to",
            "base",
            "suffix",
        ])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output-directory", OptionMeaning::Writes),
        ]),
    ProgramEffectSpec::new(&["fast-export"]),
    ProgramEffectSpec::new(&["reflog"]).with_extra_effects_fn(git_reflog_effects),
    ProgramEffectSpec::new(&[
        "gc",
        "repack",
        "multi-pack-index",
        "commit-graph",
        "maintenance",
    ])
    .with_extra_effects_fn(git_gc_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["filter-branch", "filter-repo", "prune"],
        &[NonFileEffectKind::RewritesHistory],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["replace", "update-ref", "fast-import"],
        &[NonFileEffectKind::MovesRefs],
    ),
    ProgramEffectSpec::new(&["symbolic-ref"])
        .with_short_value_options("m")
        .with_option_meanings(&[
            ("d", OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs)),
            (
                "delete",
                OptionMeaning::FlagEffect(NonFileEffectKind::MovesRefs),
            ),
        ])
        .with_extra_effects_fn(git_symbolic_ref_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        // Plumbing that overwrites the index or files without a look at uncommitted changes.
        &["read-tree", "checkout-index"],
        &[NonFileEffectKind::DiscardsWork],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        // They run tools or hooks that settings name.
        &["difftool", "mergetool", "hook", "instaweb", "gui", "citool"],
        &[NonFileEffectKind::UnreadableCode],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["credential", "credential-store", "credential-cache"],
        &[NonFileEffectKind::ExposesSecret],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["send-email", "imap-send", "p4", "svn", "cvsserver"],
        &[NonFileEffectKind::Uploads],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        // Both keep running in the background.
        &["daemon", "fsmonitor--daemon"],
        &[NonFileEffectKind::Persists],
    ),
    ProgramEffectSpec::new(&["lfs"]).with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "pull", "fetch", "checkout", "ls-files", "status", "env", "version", "track",
                "untrack", "install", "logs", "fsck", "pointer", "locks",
            ],
            &[NonFileEffectKind::Network],
        )
        .with_short_value_options("IX"),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["push"],
            &[NonFileEffectKind::Network],
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["migrate"],
            &[NonFileEffectKind::RewritesHistory],
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["prune"],
            &[NonFileEffectKind::MovesRefs],
        ),
    ]),
    ProgramEffectSpec::new(&["flow"]),
];

/// Settings that name no program and skip no check. A final `.` or `=` marks a prefix.
const PLAIN: &[&str] = &[
    "user.",
    "color.",
    "core.pager=cat",
    "core.pager=",
    "core.autocrlf",
    "core.quotepath",
    "core.filemode",
    "core.abbrev",
    "core.whitespace",
    "core.ignorecase",
    "core.longpaths",
    "core.eol",
    "core.safecrlf",
    "diff.renames",
    "diff.renamelimit",
    "diff.algorithm",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "merge.conflictstyle",
    "merge.renamelimit",
    "merge.ff",
    "log.",
    "advice.",
    "init.defaultbranch",
    "pull.",
    "push.default",
    "push.autosetupremote",
    "rebase.autostash",
    "rebase.autosquash",
    "fetch.prune",
    "fetch.parallel",
    "http.lowspeed",
    "http.postbuffer",
    "http.version",
    "gc.auto",
    "column.",
    "status.",
    "format.pretty",
    "commit.gpgsign=false",
    "tag.gpgsign=false",
    "commit.verbose",
    "branch.",
    "submodule.recurse",
    "submodule.fetchjobs",
    "safe.directory",
    "pack.",
    "index.",
    "feature.",
    "help.autocorrect=0",
    "tag.sort",
    "grep.",
    "blame.",
    "rerere.enabled",
    "stash.",
    "protocol.version",
    "core.compression",
    "core.editor=true",
    "core.editor=:",
    "sequence.editor=true",
    "sequence.editor=:",
    "core.editor=cat",
    "pager.",
];

fn is_harmless_git_setting(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    PLAIN
        .iter()
        .any(|plain| match plain.strip_suffix(['.', '=']) {
            // `pager.CMD` may name a program, so only switching it off is harmless.
            Some("pager") => setting.starts_with("pager.") && setting.ends_with("false"),
            Some("core.pager") => setting == "core.pager=",
            Some(_) => setting.starts_with(plain),
            None if plain.contains('=') => setting == *plain,
            // An entry without a value allows any value of exactly this setting.
            None => setting.split('=').next() == Some(plain),
        })
}

/// Judges `-c NAME=VALUE`, which can set a program to run (`core.sshCommand`, an alias).
fn git_config_option_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // The name must be known; of a harmless setting the value may be open.
    let open = call.option_values(&["c"]).any(|word| {
        !is_harmless_git_setting(word.literal_prefix_of_word())
            || (word.knowledge != WordKnowledge::Literal
                && !word.literal_prefix_of_word().contains('='))
    });
    if open
        || call.has_option(&["exec-path"]) && call.option_values(&["exec-path"]).next().is_some()
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

fn git_config_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let reads = call.has_option(&[
        "get",
        "get-all",
        "get-regexp",
        "get-urlmatch",
        "l",
        "list",
        "name-only",
        "get-color",
        "get-colorbool",
    ]);
    let first = call.literal_operand(0).unwrap_or("");
    if reads || matches!(first, "get" | "list") {
        return;
    }
    // Since Git 2.46 there are sub-commands (`git config set NAME VALUE`); before, a second operand
    // sets.
    let modern = matches!(
        first,
        "set" | "unset" | "edit" | "remove-section" | "rename-section"
    );
    let at = usize::from(modern);
    // `git config NAME` only reads.
    if call.operands.len() <= at + 1
        && !modern
        && !call.has_option(&[
            "unset",
            "unset-all",
            "e",
            "edit",
            "remove-section",
            "rename-section",
            "add",
            "replace-all",
        ])
    {
        return;
    }
    let name = call.literal_operand(at).unwrap_or("");
    // An unknown value must not equal a harmless one such as `core.pager=cat`.
    let value = call.literal_operand(at + 1).unwrap_or("\u{1}");
    // Such a setting outlives the repository, and applies to others.
    if call.has_option(&["global", "system", "f", "file"]) {
        out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
    }
    if !is_harmless_git_setting(&format!("{name}={value}")) {
        out.push(CommandEffect::Kind(NonFileEffectKind::SkipsChecks));
    }
}

/// `git diff --no-index` and `git hash-object` read files by name.
fn git_operand_file_read_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.has_option(&["no-index"])
        || call
            .words
            .first()
            .is_some_and(|word| word.text == "hash-object")
    {
        out.extend(
            call.operands
                .iter()
                .map(|word| CommandEffect::File(FileAccess::Read, (*word).clone())),
        );
    }
}

/// Whether a pathspec names a folder, or may, so that all changes in it are meant.
fn is_folder_pathspec(word: &CommandWord) -> bool {
    let text = word.text.as_str();
    let name = text.rsplit('/').next().unwrap_or(text);
    word.knowledge == WordKnowledge::Unbounded
        || text.starts_with(':')
        || name.is_empty()
        // A name without an extension is more often a folder than a file.
        || !name.trim_start_matches('.').contains('.')
}

/// Adds the effects of restoring these paths: their uncommitted changes are lost.
fn add_git_discard_effects(words: &[&CommandWord], out: &mut Vec<CommandEffect>) {
    for word in words {
        if is_folder_pathspec(word) {
            out.push(CommandEffect::Kind(NonFileEffectKind::DiscardsWork));
        }
        out.push(CommandEffect::File(FileAccess::WriteBelow, (*word).clone()));
    }
}

fn add_whole_tree_write_effect(out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::File(
        FileAccess::WriteBelow,
        CommandWord::new_literal_word("."),
    ));
}

fn double_dash_index(call: &ParsedArgs<'_>) -> Option<usize> {
    call.words
        .iter()
        .position(|word| word.as_literal() == Some("--"))
}

fn git_checkout_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.has_option(&["f", "force", "pathspec-from-file"]) {
        add_whole_tree_write_effect(out);
    }
    // With these the operand is a branch or a start point, never a path.
    if call.has_option(&["b", "B", "orphan", "t", "track", "detach", "d"]) {
        return;
    }
    if let Some(at) = double_dash_index(call) {
        let paths: Vec<&CommandWord> = call.words.iter().skip(at + 1).collect();
        add_git_discard_effects(&paths, out);
        return;
    }
    match call.operands.as_slice() {
        // `git checkout X` is a branch or a path; only what looks like a path is taken for one.
        [one] => {
            let text = one.text.as_str();
            if matches!(text, "." | "./" | "*" | ":/" | "..")
                || text.ends_with('/')
                || text.starts_with(':')
                || one.text.contains('*')
            {
                add_git_discard_effects(&[one], out);
            } else if text.contains('.') {
                out.push(CommandEffect::File(FileAccess::WriteBelow, (*one).clone()));
            }
        }
        [_, paths @ ..] => add_git_discard_effects(paths, out),
        [] if call.has_option(&["ours", "theirs"]) => add_whole_tree_write_effect(out),
        [] => {}
    }
}

fn git_restore_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // `--staged` alone only resets the index.
    let staged = call.has_option(&["staged", "S"]) && !call.has_option(&["worktree", "W"]);
    if !staged {
        add_git_discard_effects(&call.operands, out);
    }
}

fn git_reset_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call
        .options
        .iter()
        .any(|(name, _)| name.starts_with('h') || name.starts_with("merg") || name.starts_with('k'))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::DiscardsWork));
        add_whole_tree_write_effect(out);
    }
}

fn git_clean_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if !inert::has_certain_dry_run_option(
        call.words,
        &["n", "dry-run"],
        &inert::GIT_FILES,
        "e",
        false,
    ) {
        out.push(CommandEffect::Kind(NonFileEffectKind::DiscardsWork));
        add_whole_tree_write_effect(out);
        let here = CommandWord::new_literal_word(".");
        let folders = match call.operands.as_slice() {
            [] => &[&here][..],
            folders => folders,
        };
        for word in folders {
            out.push(CommandEffect::File(
                FileAccess::ClearContents,
                (*word).clone(),
            ));
            out.push(CommandEffect::File(FileAccess::WriteBelow, (*word).clone()));
        }
    }
}

fn git_stash_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let behind = double_dash_index(call).map(|at| call.words.iter().skip(at + 1).collect());
    let named: Vec<&CommandWord> = match (behind, call.operands.as_slice()) {
        (Some(paths), _) => paths,
        (None, [push, paths @ ..]) if push.as_literal() == Some("push") => paths.to_vec(),
        (None, _) => Vec::new(),
    };
    out.extend(
        named
            .iter()
            .map(|word| CommandEffect::File(FileAccess::WriteBelow, (*word).clone())),
    );
    // `git stash -- PATHS` has no sub-command: the first operand is a path already.
    match call.literal_operand(0) {
        Some(_) if double_dash_index(call) == Some(1) => add_whole_tree_write_effect(out),
        Some("list" | "show" | "create" | "store") => {}
        Some("drop" | "clear") => out.push(CommandEffect::Kind(NonFileEffectKind::DiscardsWork)),
        None | Some("push" | "save" | "pop" | "apply" | "branch") => {
            add_whole_tree_write_effect(out)
        }
        Some(_) => out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions)),
    }
}

fn git_apply_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| CommandEffect::File(FileAccess::Read, (*word).clone())),
    );
    out.push(CommandEffect::Patch(
        call.option_values(&["directory"]).next().cloned(),
    ));
}

/// Whether the word is a URL or a path and not the name of a remote.
fn is_git_remote_url_or_path(word: &CommandWord) -> bool {
    word.text.contains("://")
        || word.text.starts_with(['/', '~'])
        || word
            .text
            .split('/')
            .next()
            .is_some_and(|host| host.contains(':') && host.contains(['@', '.']))
}

fn git_push_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call
        .operands
        .first()
        .is_some_and(|word| is_git_remote_url_or_path(word))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
    git_remote_url_effects(call, out);
    // `+REF` forces, `:REF` deletes; an unquoted variable can be either.
    let forces = |word: &&&CommandWord| {
        word.text.starts_with(['+', ':']) || word.knowledge == WordKnowledge::Unbounded
    };
    if call.operands.iter().skip(1).any(|word| forces(&word)) {
        out.push(CommandEffect::Kind(NonFileEffectKind::OverwritesShared));
    }
    if inert::has_certain_dry_run_option(
        call.words,
        &["n", "dry-run"],
        &inert::GIT_PUSH,
        "o",
        false,
    ) {
        // A dry run overwrites nothing, but the other effects stay: it connects to the remote.
        out.retain(|effect| *effect != CommandEffect::Kind(NonFileEffectKind::OverwritesShared));
    }
}

/// Judges remote addresses: `ext::COMMAND` runs the command, `fd::` takes open descriptors.
fn git_remote_url_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call
        .operands
        .iter()
        .any(|word| word.text.starts_with("ext::") || word.text.starts_with("fd::"))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    // `+SRC:DST` makes a fetch overwrite a local ref.
    let own = call
        .operands
        .iter()
        .skip(1)
        .any(|word| word.text.starts_with('+'));
    if own {
        out.push(CommandEffect::Kind(NonFileEffectKind::MovesRefs));
    }
}

fn git_clone_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    git_remote_url_effects(call, out);
    if let Some(folder) = call.operands.get(1) {
        out.push(CommandEffect::File(FileAccess::Write, (*folder).clone()));
    }
}

fn git_worktree_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // A linked tree beside this one (`../x`) is usual, so only absolute places are judged.
    if let Some(folder) = call
        .operands
        .first()
        .filter(|word| word.text.starts_with(['/', '~', '$']))
    {
        out.push(CommandEffect::File(FileAccess::Write, (*folder).clone()));
    }
    if call.has_option(&["B", "f", "force"]) {
        out.push(CommandEffect::Kind(NonFileEffectKind::MovesRefs));
    }
}

fn git_submodule_foreach_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| CommandEffect::RunsScript((*word).clone())),
    );
    if call.operands.len() > 1 {
        out.push(CommandEffect::Command(
            call.operands.iter().map(|word| (*word).clone()).collect(),
        ));
    }
}

fn git_bisect_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Command(
        call.words.iter().skip(1).cloned().collect(),
    ));
}

fn git_reflog_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if matches!(call.literal_operand(0), Some("expire" | "delete" | "drop")) {
        out.push(CommandEffect::Kind(NonFileEffectKind::RewritesHistory));
    }
}

fn git_gc_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Unreachable commits are kept for two weeks by default; `--prune=now` drops them at once, and
    // with them the way back from a bad reset.
    let drops = call.options.iter().any(|(name, value)| {
        name == "prune"
            && value
                .as_ref()
                .is_none_or(|word| !word.text.contains("weeks"))
            || name.starts_with("cruft-exp")
    });
    if drops {
        out.push(CommandEffect::Kind(NonFileEffectKind::RewritesHistory));
    }
    // `git maintenance start` adds jobs to the scheduler of the system.
    if call.literal_operand(0) == Some("start") || call.literal_operand(0) == Some("register") {
        out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
    }
}

fn git_symbolic_ref_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.operands.len() > 1 {
        out.push(CommandEffect::Kind(NonFileEffectKind::MovesRefs));
    }
}
