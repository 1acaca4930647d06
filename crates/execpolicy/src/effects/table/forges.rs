//! `gh` and `glab`: to look at a forge is ordinary, to propose is the work itself; what changes
//! a repo for others, or deletes, is not.

use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Row};

const NET: &[Deed] = &[Deed::Network];

pub(super) const ROWS: &[Row] = &[Row::of(&["gh", "glab"])
    .values("R")
    .longs(&["repo"])
    .on(&[("R", On::Value)])
    .subs(GH)];

const GH: &[Row] = &[
    Row::of(&["pr", "mr"]).values("R").subs(&[
        Row::does(
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
        .values("RbBtFlarHqjLm")
        .longs(&[
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
        .on(&[("w", On::Value), ("F", On::Reads), ("body-file", On::Reads)]),
        // A merge is a push to a branch, and taken back by another one; not past its checks.
        Row::does(&["merge"], &[Deed::Speaks]).on(&[("admin", On::Does(Deed::Publishes))]),
        Row::does(&["close", "revert", "approve"], &[Deed::Speaks]),
    ]),
    Row::of(&["issue", "discussion"]).values("R").subs(&[
        Row::does(
            &[
                "list", "view", "create", "status", "comment", "edit", "reopen", "develop", "pin",
                "unpin",
            ],
            NET,
        )
        .values("RbtFlaqjLm")
        .on(&[("F", On::Reads), ("body-file", On::Reads)]),
        Row::does(&["close", "lock", "unlock"], &[Deed::Speaks]),
        Row::does(&["delete", "transfer"], &[Deed::Forces]),
    ]),
    Row::of(&["run", "workflow", "ci", "pipeline", "cache"])
        .values("R")
        .subs(&[
            Row::does(
                &[
                    "list", "view", "watch", "download", "status", "trace", "get", "lint",
                ],
                NET,
            )
            .on(&[("D", On::Writes), ("dir", On::Writes)]),
            Row::does(&["rerun", "cancel", "run", "retry", "trigger"], NET),
            Row::does(&["delete", "enable", "disable"], &[Deed::Forces]),
        ]),
    Row::of(&["repo", "project"]).values("R").subs(&[
        Row::does(
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
        .on(&[("force", On::Does(Deed::Forces))]),
        Row::does(
            &[
                "create",
                "item-add",
                "item-create",
                "item-edit",
                "deploy-key",
                "edit",
                "autolink",
            ],
            &[Deed::Publishes],
        ),
        Row::does(
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
            &[Deed::Forces],
        ),
    ]),
    Row::of(&["release", "gist", "snippet"]).values("R").subs(&[
        Row::does(&["list", "view", "download", "clone"], NET).on(&[
            ("D", On::Writes),
            ("dir", On::Writes),
            ("O", On::Writes),
            ("output", On::Writes),
        ]),
        Row::of(&["create"])
            .values("tnFR")
            .longs(&[
                "title",
                "notes",
                "notes-file",
                "notes-start-tag",
                "target",
                "discussion-category",
                "repo",
            ])
            .more(release),
        Row::does(
            &["upload", "edit", "rename", "delete", "delete-asset"],
            &[Deed::Publishes],
        ),
    ]),
    Row::does(
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
    .more(deletes),
    Row::of(&["api"]).more(api),
    Row::of(&["auth"]).subs(&[
        Row::of(&["status"]).on(&[
            ("t", On::Does(Deed::Secret)),
            ("show-token", On::Does(Deed::Secret)),
        ]),
        Row::does(
            &["token", "login", "logout", "refresh", "setup-git", "switch"],
            &[Deed::Secret],
        ),
    ]),
    Row::does(
        &[
            "secret",
            "variable",
            "ssh-key",
            "gpg-key",
            "token",
            "deploy-key",
        ],
        &[Deed::Secret],
    ),
    Row::does(
        &[
            "extension",
            "ext",
            "alias",
            "codespace",
            "cs",
            "config",
            "copilot",
        ],
        &[Deed::Code],
    ),
];

/// A draft is seen by those alone who can publish it.
fn release(call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut drafts = call
        .options
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "d" | "draft"))
        .map(|(_, value)| {
            value
                .as_ref()
                .is_none_or(|word| word.as_fixed() == Some("true"))
        })
        .peekable();
    let draft = drafts.peek().is_some() && drafts.all(|draft| draft);
    out.push(Effect::Deed(match draft {
        true => Deed::Uploads,
        false => Deed::Publishes,
    }));
}

fn deletes(call: &Call<'_>, out: &mut Vec<Effect>) {
    match call.operand(0) {
        Some("delete") => out.push(Effect::Deed(Deed::Forces)),
        Some("edit" | "create" | "clone") => out.push(Effect::Deed(Deed::Speaks)),
        _ => {}
    }
}

/// `gh api`: what only asks, asks; what adds, speaks, unless it adds a release; a merge is a push.
fn api(call: &Call<'_>, out: &mut Vec<Effect>) {
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
    let sends = call.has(&["f", "F", "field", "raw-field", "input"]) && method.is_none();
    let any = |parts: &[&str]| {
        let holds = |word: &&str| parts.iter().any(|part| word.contains(part));
        words.iter().any(holds)
    };
    let graphql = words.contains(&"graphql");
    let deed = match method.as_deref() {
        _ if graphql && !any(&["mutation"]) => Deed::Network,
        _ if graphql && any(&["delete", "remove", "archive", "transfer", "update"]) => Deed::Forces,
        _ if graphql && any(&["publish"]) => Deed::Publishes,
        _ if graphql => Deed::Speaks,
        _ if get && !sends => Deed::Network,
        None | Some("POST") if any(&["/releases", "/dispatches", "/deployments"]) => {
            Deed::Publishes
        }
        None | Some("POST") => Deed::Speaks,
        Some("PUT") if words.iter().any(|word| word.ends_with("/merge")) => Deed::Speaks,
        Some(_) => Deed::Forces,
    };
    out.push(Effect::Deed(deed));
}
