//! Package managers of operating systems, which change the machine, and of nix.

use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Row};

const INSTALLS: &[Deed] = &[Deed::Installs];

pub(super) const ROWS: &[Row] = &[
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
];

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
