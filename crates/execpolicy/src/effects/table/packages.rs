//! Package managers: installing is ordinary work, handing out is not. What runs a program of a
//! package is judged by that program.

use crate::effects::Effect;
use crate::effects::call::Call;
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
        .values("CPp")
        .longs(&["directory", "project"])
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
            Row::does(&["publish"], &[Deed::Publishes]).on(&[("dry-run", On::Inert)]),
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
    // They change the machine, and mostly ask for the rights to: that is `sudo`'s row.
    Row::of(&[
        "apt",
        "apt-get",
        "aptitude",
        "dnf",
        "yum",
        "apk",
        "zypper",
        "brew",
        "port",
        "pkg",
        "snap",
        "flatpak",
        "nix-env",
        "choco",
        "winget",
        "scoop",
        "tdnf",
        "microdnf",
        "opkg",
        "emerge",
        "xbps-install",
    ])
    .values("oct")
    .longs(&["option", "config-file", "target-release"])
    .on(&[
        ("o", On::With(Deed::Unclear)),
        ("option", On::With(Deed::Unclear)),
        ("c", On::With(Deed::Unclear)),
        ("config-file", On::With(Deed::Unclear)),
    ])
    .subs(&[
        Row::does(
            &[
                "install",
                "update",
                "upgrade",
                "add",
                "search",
                "show",
                "list",
                "info",
                "download",
                "policy",
                "depends",
                "rdepends",
                "reinstall",
                "build-dep",
                "source",
                "fetch",
                "outdated",
                "check-update",
                "makecache",
                "refresh",
                "tap",
                "deps",
                "leaves",
                "doctor",
                "config",
                "--prefix",
                "index",
                "check",
                "repolist",
                "provides",
                "home",
                "cat",
                "desc",
                "uses",
                "bundle",
                "test",
                "help",
                "moo",
                "clean",
                "autoclean",
                "cleanup",
                "link",
                "unlink",
                "pin",
                "log",
                "formulae",
                "casks",
                "services-list",
                "group",
                "groupinstall",
                "module",
                "full-upgrade",
                "in",
                "se",
                "satisfy",
                "changelog",
            ],
            INSTALLS,
        ),
        Row::does(
            &[
                "remove",
                "purge",
                "autoremove",
                "uninstall",
                "erase",
                "rm",
                "del",
                "dist-upgrade",
                "zap",
                "delete",
                "distro-sync",
            ],
            &[Deed::Destroys],
        ),
        Row::does(&["services", "enable", "start"], &[Deed::Persists]),
    ]),
    Row::of(&["pacman", "yay", "paru"]).more(pacman),
    Row::of(&[
        "dpkg",
        "rpm",
        "apt-key",
        "add-apt-repository",
        "update-alternatives",
        "alternatives",
        "dpkg-reconfigure",
        "apt-mark",
    ])
    .more(dpkg),
    Row::of(&[
        "apt-cache",
        "dpkg-query",
        "dpkg-deb",
        "rpmquery",
        "pkg-config",
        "pkgconf",
        "brew-list",
        "apt-file",
        "apt-config",
        "deborphan",
        "debconf-show",
        "dpkg-architecture",
        "lsb_release",
        "repoquery",
    ]),
    Row::of(&["nix", "nix-shell", "nix-build", "devbox", "devenv", "guix"]).more(nix),
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
    Row::of(&["ncu", "npm-check-updates", "npm-check", "bower", "jspm"]).more(installs),
    Row::of(&["virtualenv", "pyvenv", "venv"]),
    Row::does(&["activate", "deactivate"], &[]),
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
    .on(&[("dry-run", On::Inert)]),
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

/// A program of a package, with its words.
fn tool(words: &[Word], out: &mut Vec<Effect>) {
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

/// The words behind the options, `at` the first that could be one.
fn behind(call: &Call<'_>) -> Vec<Word> {
    let Some(first) = call.operands.first() else {
        return Vec::new();
    };
    let at = call
        .words
        .iter()
        .position(|word| std::ptr::eq(word, *first))
        .unwrap_or(call.words.len());
    call.words.get(at..).unwrap_or(&[]).to_vec()
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
    tool(&behind(call), out);
}

fn after_sub(call: &Call<'_>, out: &mut Vec<Effect>) {
    tool(&behind(call), out);
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

/// `yarn workspace NAME SCRIPT`.
fn workspace(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Opaque));
    let rest = behind(call);
    let mut words = vec![Word::fixed("yarn")];
    words.extend(rest.iter().skip(1).cloned());
    out.push(Effect::Tool(words));
}

fn pacman(call: &Call<'_>, out: &mut Vec<Effect>) {
    let removes = call
        .options
        .iter()
        .any(|(name, _)| matches!(name.as_str(), "R" | "remove"));
    out.push(Effect::Deed(if removes {
        Deed::Destroys
    } else {
        Deed::Installs
    }));
}

fn dpkg(call: &Call<'_>, out: &mut Vec<Effect>) {
    let asks = call.has(&[
        "l",
        "L",
        "s",
        "S",
        "list",
        "listfiles",
        "status",
        "search",
        "q",
        "qa",
        "ql",
        "qi",
        "query",
        "print-architecture",
        "get-selections",
        "display",
        "audit",
        "V",
        "verify",
        "I",
        "info",
        "c",
        "contents",
        "showhold",
        "showauto",
        "showmanual",
    ]);
    if !asks && !matches!(call.operand(0), Some("list" | "showhold")) {
        out.push(Effect::Deed(Deed::Machine));
    }
}

fn nix(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Opaque));
    for name in ["run", "command", "c"] {
        out.extend(
            call.options
                .iter()
                .filter(|(option, _)| option == name)
                .filter_map(|(_, value)| value.clone())
                .map(Effect::Runs),
        );
    }
    for (at, word) in call.words.iter().enumerate() {
        if matches!(word.text.as_str(), "--run" | "--command") {
            out.extend(
                call.words
                    .get(at + 1)
                    .map(|word| Effect::Runs(word.clone())),
            );
        }
        if matches!(word.text.as_str(), "-c")
            && call
                .words
                .first()
                .is_some_and(|first| !first.text.ends_with("nix-shell"))
        {
            out.push(Effect::Tool(
                call.words.get(at + 1..).unwrap_or(&[]).to_vec(),
            ));
        }
        if matches!(word.text.as_str(), "-E" | "--expr") {
            out.push(Effect::Deed(Deed::Code));
        }
    }
    if call.operands.iter().any(|word| {
        matches!(
            word.text.as_str(),
            "collect-garbage" | "gc" | "delete" | "copy" | "wipe-history" | "upgrade-nix"
        )
    }) {
        out.push(Effect::Deed(Deed::Destroys));
    }
}

fn checks(call: &Call<'_>, out: &mut Vec<Effect>) {
    if matches!(call.operand(0), Some("check" | "build" | "package"))
        || call.has(&["dry-run", "snapshot"])
    {
        out.retain(|effect| *effect != Effect::Deed(Deed::Publishes));
    }
}

fn installs(_: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Installs));
}
