//! Package managers of languages: installing is ordinary work, handing out is not. What runs a
//! program of a package is judged by that program.

use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Row};
use crate::shell::Word;

const INSTALLS: &[Deed] = &[Deed::Installs];
const RUNS: &[Deed] = &[Deed::Opaque];

pub(super) const ROWS: &[Row] = &[
    Row::of(&["pip", "pipx"])
        .longs(&["python", "log", "proxy", "retries", "timeout", "cache-dir"])
        .subs(&[
            Row::does(
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
            .values("rctei")
            .longs(&[
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
            .on(&[
                ("t", On::Writes),
                ("target", On::Writes),
                ("prefix", On::Writes),
                ("root", On::Writes),
                ("d", On::Writes),
                ("dest", On::Writes),
                ("r", On::Reads),
            ]),
            Row::of(&[
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
            Row::of(&["cache", "config"]),
            Row::of(&["run", "runpip"]).more(after_sub),
        ]),
    Row::of(&["uv"])
        .longs(&["directory", "project", "cache-dir", "color", "config-file"])
        .on(&[("directory", On::At), ("project", On::At)])
        .subs(&[
            Row::does(
                &[
                    "sync", "add", "remove", "lock", "venv", "init", "export", "tree", "python",
                    "cache", "self", "build", "version", "help", "format",
                ],
                INSTALLS,
            )
            .on(&[
                ("o", On::Writes),
                ("output-file", On::Writes),
                ("out-dir", On::Writes),
            ]),
            Row::of(&["run"]).more(uv_run),
            Row::of(&["tool"]).subs(&[
                Row::of(&["run"]).more(uv_run),
                Row::does(
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
            Row::of(&["pip"]).subs(&[Row::does(
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
            .on(&[
                ("o", On::Writes),
                ("output-file", On::Writes),
                ("t", On::Writes),
                ("target", On::Writes),
                ("prefix", On::Writes),
            ])]),
            Row::does(&["publish"], &[Deed::Publishes]),
        ]),
    Row::of(&["uvx"]).more(uv_run),
    Row::of(&["poetry", "pipenv", "pdm", "hatch", "rye", "pixi"])
        .values("CPpe")
        .longs(&["directory", "project", "env"])
        .on(&[("C", On::At), ("directory", On::At), ("project", On::At)])
        .subs(&[
            Row::does(
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
            .on(&[("o", On::Writes), ("output", On::Writes)]),
            Row::of(&["run"]).more(after_sub),
            Row::does(&["shell"], RUNS),
            Row::does(&["config"], &[Deed::Persists]),
            Row::does(&["publish"], &[Deed::Publishes])
                .on(&[("dry-run", On::Inert(&inert::PACKAGES))]),
        ])
        .others(RUNS),
    Row::of(&["conda", "mamba", "micromamba"]).subs(&[
        Row::does(
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
        Row::of(&["run"])
            .values("np")
            .longs(&["name", "prefix"])
            .more(after_sub),
        Row::does(&["init"], &[Deed::Persists]),
    ]),
    Row::of(&["gem"]).subs(&[
        Row::does(
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
        Row::does(&["push", "yank", "owner"], &[Deed::Publishes]),
        Row::of(&["exec"]).more(after_sub),
        Row::does(&["signin", "signout"], &[Deed::Secret]),
    ]),
    Row::of(&["bundle", "bundler"])
        .subs(&[
            Row::does(
                &[
                    "install", "update", "add", "remove", "lock", "list", "show", "info",
                    "outdated", "check", "config", "init", "clean", "cache", "binstubs",
                    "platform", "version", "package",
                ],
                INSTALLS,
            ),
            Row::of(&["exec", "e"]).more(after_sub),
        ])
        .others(RUNS),
    Row::of(&["composer"])
        .values("d")
        .longs(&["working-dir"])
        .subs(&[
            Row::does(
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
            Row::of(&["exec"]).more(after_sub),
            Row::does(&["run", "run-script", "test"], RUNS),
            Row::does(&["global"], INSTALLS),
        ])
        .others(RUNS),
    Row::does(
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
    Row::does(
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
        &[Deed::Publishes],
    )
    .more(checks),
    Row::of(&["virtualenv", "pyvenv", "venv"]),
    Row::does(&["activate", "deactivate"], &[]),
];

/// A program of a package, with its words.
pub(super) fn tool(words: &[Word], out: &mut Vec<Effect>) {
    let Some(first) = words.first() else { return };
    let mut words = words.to_vec();
    // `create-vite@latest`, `@scope/name`: the program is called like the package.
    if let (Some(name), Some(word)) = (first.as_fixed(), words.first_mut()) {
        let bare = name.strip_prefix('@').map_or(name, |scoped| {
            scoped.split_once('/').map_or(scoped, |(_, name)| name)
        });
        let bare = bare.split('@').next().unwrap_or(bare);
        if !bare.contains('/') && !name.contains("://") && !name.contains(':') {
            *word = Word::fixed(bare);
        }
    }
    out.push(Effect::Deed(Deed::Opaque));
    out.push(Effect::Tool(words));
}

fn after_sub(call: &Call<'_>, out: &mut Vec<Effect>) {
    tool(&call.behind(), out);
}

/// Options of `uv run` before the command, with those that take a word.
fn uv_run(call: &Call<'_>, out: &mut Vec<Effect>) {
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
                let mut words = vec![Word::fixed("python")];
                words.extend(call.words.iter().skip(at).cloned());
                out.push(Effect::Deed(Deed::Opaque));
                out.push(Effect::Tool(words));
                return;
            }
            "-" => return out.push(Effect::Deed(Deed::Code)),
            text if VALUES.contains(&text) => at += 2,
            text if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    tool(call.words.get(at..).unwrap_or(&[]), out);
}

fn checks(call: &Call<'_>, out: &mut Vec<Effect>) {
    if matches!(call.operand(0), Some("check" | "build" | "package"))
        || inert::holds(
            call.words,
            &["dry-run", "snapshot"],
            &inert::PACKAGES,
            "",
            false,
        )
    {
        out.retain(|effect| *effect != Effect::Deed(Deed::Publishes));
    }
}
