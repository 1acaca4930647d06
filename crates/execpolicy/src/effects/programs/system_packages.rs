//! Describes package managers of operating systems, and Nix. Installing is ordinary work; removing
//! packages or changing package sources is not.

use crate::effects::CommandEffect;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};

const INSTALLS: &[NonFileEffectKind] = &[NonFileEffectKind::Installs];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    // They mostly need root. The rights are judged by the row of `sudo`, not here.
    ProgramEffectSpec::new(&[
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
    .with_short_value_options("oct")
    .with_long_value_options(&["option", "config-file", "target-release"])
    .with_option_meanings(&[
        // An option of apt can name a command to run: `-o APT::Update::Pre-Invoke::=...`.
        (
            "o",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
        ),
        (
            "option",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
        ),
        (
            "c",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
        ),
        (
            "config-file",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
        ),
    ])
    .with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
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
        ProgramEffectSpec::program_spec_with_fixed_effects(
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
            &[NonFileEffectKind::DestroysData],
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["services", "enable", "start"],
            &[NonFileEffectKind::Persists],
        ),
    ]),
    ProgramEffectSpec::new(&["pacman", "yay", "paru"]).with_extra_effects_fn(pacman_effects),
    ProgramEffectSpec::new(&[
        "dpkg",
        "rpm",
        "apt-key",
        "add-apt-repository",
        "update-alternatives",
        "alternatives",
        "dpkg-reconfigure",
        "apt-mark",
    ])
    .with_extra_effects_fn(dpkg_effects),
    ProgramEffectSpec::new(&[
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
    ProgramEffectSpec::new(&["nix", "nix-shell", "nix-build", "devbox", "devenv", "guix"])
        .with_extra_effects_fn(nix_effects),
];

fn pacman_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // pacman has its verbs as capital letters: `-R` removes, `-S` installs.
    let removes = call
        .options
        .iter()
        .any(|(name, _)| matches!(name.as_str(), "R" | "remove"));
    out.push(CommandEffect::Kind(if removes {
        NonFileEffectKind::DestroysData
    } else {
        NonFileEffectKind::Installs
    }));
}

fn dpkg_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // The programs of this row share these letters for queries.
    let asks = call.has_option(&[
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
    if !asks && !matches!(call.literal_operand(0), Some("list" | "showhold")) {
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
    }
}

fn nix_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    for name in ["run", "command", "c"] {
        out.extend(
            call.options
                .iter()
                .filter(|(option, _)| option == name)
                .filter_map(|(_, value)| value.clone())
                .map(CommandEffect::RunsScript),
        );
    }
    for (at, word) in call.words.iter().enumerate() {
        if matches!(word.text.as_str(), "--run" | "--command") {
            out.extend(
                call.words
                    .get(at + 1)
                    .map(|word| CommandEffect::RunsScript(word.clone())),
            );
        }
        // `nix develop -c COMMAND ARGS`: the rest of the words is the command.
        if matches!(word.text.as_str(), "-c")
            && call
                .words
                .first()
                .is_some_and(|first| !first.text.ends_with("nix-shell"))
        {
            out.push(CommandEffect::ProjectTool(
                call.words.get(at + 1..).unwrap_or(&[]).to_vec(),
            ));
        }
        // A Nix expression can define a build, and so any command.
        if matches!(word.text.as_str(), "-E" | "--expr") {
            out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        }
    }
    if call.operands.iter().any(|word| {
        matches!(
            word.text.as_str(),
            "collect-garbage" | "gc" | "delete" | "copy" | "wipe-history" | "upgrade-nix"
        )
    }) {
        out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData));
    }
}
