//! Tools that are all of a language's at once: builds, tests and packages behind one name. What is
//! published is hard to take back.

use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Row};

pub(super) const ROWS: &[Row] = &[
    Row::of(&[
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
    .more(toolchain),
    Row::of(&["go"]).values("C").subs(GO),
    Row::of(&[
        "gopls",
        "rust-analyzer",
        "clangd",
        "pylsp",
        "typescript-language-server",
    ]),
    Row::of(&["cargo"])
        .longs(&["color", "config", "manifest-path"])
        .on(&[
            ("C", On::At),
            ("Z", On::Value),
            ("config", On::With(Deed::Unclear)),
        ])
        .subs(CARGO)
        .others(&[Deed::Opaque]),
    Row::of(&["dotnet"])
        .subs(&[
            Row::does(
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
                &[Deed::Opaque],
            ),
            Row::does(&["restore", "add", "remove", "package"], &[Deed::Installs]),
            Row::does(&["user-secrets"], &[Deed::Secret]),
            Row::does(&["nuget"], &[Deed::Publishes]),
        ])
        .others(&[Deed::Opaque]),
    Row::of(&["zig", "v"])
        .others(&[Deed::Opaque])
        .subs(&[Row::does(
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
            &[Deed::Opaque],
        )]),
];

const GO: &[Row] = &[
    Row::does(
        &[
            "build", "test", "run", "generate", "vet", "tool", "fix", "bug", "work",
        ],
        &[Deed::Opaque],
    )
    .one_dash()
    .longs(&[
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
    .on(&[
        ("o", On::Writes),
        ("coverprofile", On::Writes),
        ("cpuprofile", On::Writes),
        ("memprofile", On::Writes),
        ("blockprofile", On::Writes),
        ("mutexprofile", On::Writes),
        ("trace", On::Writes),
        ("outputdir", On::Writes),
        ("exec", On::Runs),
        ("toolexec", On::Runs),
        ("vettool", On::Runs),
        ("modfile", On::Writes),
        ("overlay", On::With(Deed::Unclear)),
    ]),
    Row::of(&["list", "doc", "version", "help", "fmt", "telemetry"])
        .one_dash()
        .longs(&["f", "mod", "tags", "C"])
        .on(&[("toolexec", On::Runs)]),
    Row::of(&["env"]).one_dash().on(&[
        ("w", On::Does(Deed::Persists)),
        ("u", On::Does(Deed::Persists)),
    ]),
    Row::does(&["mod", "get", "install"], &[Deed::Installs])
        .one_dash()
        .on(&[("toolexec", On::Runs), ("modfile", On::Writes)]),
    Row::of(&["clean"]),
];

const CARGO: &[Row] = &[
    Row::does(
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
        &[Deed::Opaque],
    )
    .values("pjFZ")
    .longs(&[
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
    .on(&[
        ("target-dir", On::Writes),
        ("out-dir", On::Writes),
        ("artifact-dir", On::Writes),
        ("config", On::With(Deed::Unclear)),
        ("x", On::Runs),
        ("s", On::Runs),
    ]),
    Row::does(
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
        &[Deed::Installs],
    )
    .on(&[("config", On::With(Deed::Unclear))]),
    Row::of(&[
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
    .on(&[("config", On::With(Deed::Unclear))]),
    Row::does(
        &[
            "publish",
            "yank",
            "owner",
            "release",
            "dist",
            "smart-release",
        ],
        &[Deed::Publishes],
    )
    .on(&[
        ("dry-run", On::Inert(&inert::CARGO)),
        ("n", On::Inert(&inert::CARGO)),
    ]),
    Row::does(&["login", "logout"], &[Deed::Secret]),
];

fn toolchain(call: &Call<'_>, out: &mut Vec<Effect>) {
    match call.operand(0) {
        Some("exec" | "run" | "x") => {
            let skip = match call
                .words
                .iter()
                .position(|word| word.as_fixed() == Some("--"))
            {
                Some(at) => at + 1,
                None => call
                    .words
                    .iter()
                    .position(|word| matches!(word.as_fixed(), Some("exec" | "run" | "x")))
                    .map_or(1, |at| {
                        // Some name a version first.
                        let plain = matches!(
                            call.name(),
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
            out.push(Effect::Tool(call.words.get(skip..).unwrap_or(&[]).to_vec()));
            out.push(Effect::Deed(Deed::Opaque));
        }
        Some("uninstall" | "self" | "implode") => out.push(Effect::Deed(Deed::Destroys)),
        _ => out.push(Effect::Deed(Deed::Installs)),
    }
}
