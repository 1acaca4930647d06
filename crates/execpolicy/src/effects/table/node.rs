//! The package managers of JavaScript. What runs a program of a package is judged by that program.

use super::packages::tool;
use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Row};
use crate::shell::Word;

const INSTALLS: &[Deed] = &[Deed::Installs];
const RUNS: &[Deed] = &[Deed::Opaque];

pub(super) const ROWS: &[Row] = &[
    Row::of(&["npm", "pnpm", "yarn", "yarnpkg", "cnpm"])
        .values("CFw")
        .longs(&[
            "prefix",
            "filter",
            "workspace",
            "registry",
            "loglevel",
            "dir",
            "cwd",
        ])
        .on(&[
            ("C", On::At),
            ("prefix", On::At),
            ("dir", On::At),
            ("cwd", On::At),
            ("script-shell", On::With(Deed::Code)),
            ("node-options", On::With(Deed::Code)),
        ])
        .subs(NODE)
        .others(RUNS),
    Row::of(&["npx", "pnpx", "bunx"])
        .values("pwc")
        .longs(&["package", "workspace"])
        .more(npx),
    Row::of(&["bun"])
        .longs(&["cwd", "filter", "env-file"])
        .on(&[
            ("cwd", On::At),
            ("e", On::With(Deed::Code)),
            ("p", On::With(Deed::Code)),
            ("eval", On::With(Deed::Code)),
            ("print", On::With(Deed::Code)),
        ])
        .subs(NODE)
        .others(RUNS),
    Row::of(&["deno"]).subs(&[
        Row::does(
            &[
                "test", "task", "run", "fmt", "lint", "check", "bench", "compile", "bundle", "doc",
                "info", "types", "serve", "coverage",
            ],
            RUNS,
        ),
        Row::does(
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
        Row::does(&["eval", "repl"], &[Deed::Code]),
        Row::does(&["publish", "deploy"], &[Deed::Publishes]),
    ]),
    Row::of(&["ncu", "npm-check-updates", "npm-check", "bower", "jspm"]).more(installs),
];

const NODE: &[Row] = &[
    Row::does(
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
    .longs(&[
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
    .on(&[
        ("prefix", On::Writes),
        ("script-shell", On::With(Deed::Code)),
    ])
    .more(node_settings),
    Row::of(&["exec", "dlx", "x"])
        .values("pwc")
        .longs(&["package", "workspace", "filter"])
        .more(npx),
    Row::does(
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
    .values("w")
    .longs(&["workspace", "prefix", "filter"])
    .on(&[("script-shell", On::With(Deed::Code))]),
    Row::of(&["workspace"]).more(workspace),
    Row::does(
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
        &[Deed::Publishes],
    )
    .on(&[("dry-run", On::Inert(&inert::PACKAGES))]),
    Row::does(
        &["login", "logout", "adduser", "token", "profile"],
        &[Deed::Secret],
    ),
];

/// A registry, a shell or a script that is set for all later calls.
fn node_settings(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.words.first().map_or("", |word| word.text.as_str());
    let settles = matches!(name, "config" | "c" | "set")
        && (name == "set" || matches!(call.operand(0), Some("set" | "edit" | "delete" | "fix")));
    if settles {
        out.push(Effect::Deed(Deed::Persists));
    }
    if matches!(name, "config" | "c" | "get")
        && call.operands.iter().any(|word| word.text.contains("_auth"))
    {
        out.push(Effect::Deed(Deed::Secret));
    }
}

fn npx(call: &Call<'_>, out: &mut Vec<Effect>) {
    // Only options before the tool are its own.
    let first = call.operands.first().copied();
    for (at, word) in call.words.iter().enumerate().skip(1) {
        if first.is_some_and(|first| std::ptr::eq(first, word)) {
            break;
        }
        match word.text.as_str() {
            "-c" | "--call" | "--shell-mode" => {
                out.extend(
                    call.words
                        .get(at + 1)
                        .map(|word| Effect::Runs(word.clone())),
                );
                return;
            }
            text if text.starts_with("--call=") => {
                out.extend(word.after('=').map(Effect::Runs));
                return;
            }
            _ => {}
        }
    }
    tool(&call.behind(), out);
}

/// `yarn workspace NAME SCRIPT`.
fn workspace(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Opaque));
    let rest = call.behind();
    let mut words = vec![Word::fixed("yarn")];
    words.extend(rest.iter().skip(1).cloned());
    out.push(Effect::Tool(words));
}

fn installs(_: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Installs));
}
