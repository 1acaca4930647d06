//! Describes programs that reach other machines, and key stores. Fetching something is ordinary
//! work; sending files away, running something remotely and showing secrets are not.

use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CodeLanguage, CommandEffect, FileAccess};
use crate::shell::CommandWord;

const NET: &[NonFileEffectKind] = &[NonFileEffectKind::Network];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["aria2c", "axel", "lynx", "w3m", "links", "elinks"],
        NET,
    )
    .with_option_meanings(&[
        ("o", OptionMeaning::Writes),
        ("d", OptionMeaning::Writes),
        ("dir", OptionMeaning::Writes),
        ("out", OptionMeaning::Writes),
        (
            "conf-path",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
        ),
        (
            // A Lynx script of keystrokes, which can run commands.
            "cmd_script",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
    ])
    .with_extra_effects_fn(downloader_hook_option_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["youtube-dl", "yt-dlp", "gallery-dl"],
        NET,
    )
    .with_option_meanings(&[
        (
            "exec",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
        ("o", OptionMeaning::Writes),
        ("P", OptionMeaning::Writes),
        (
            "external-downloader",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
    ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "ping",
            "ping6",
            "fping",
            "traceroute",
            "tracepath",
            "mtr",
            "dig",
            "nslookup",
            "host",
            "whois",
            "drill",
            "kdig",
            "resolvectl",
            "getent",
            "arping",
            "ipcalc",
            "speedtest",
            "grpcurl",
            "wscat",
            "hey",
            "ab",
            "wrk",
            "vegeta",
            "siege",
            "httping",
        ],
        NET,
    ),
    ProgramEffectSpec::new(&["ssh"]).with_extra_effects_fn(ssh_effects),
    ProgramEffectSpec::new(&[
        "mosh",
        "sshpass",
        "autossh",
        "telnet",
        "rlogin",
        "rsh",
        "ftp",
        "sftp",
        "lftp",
        "tftp",
        "ncftp",
        "nc",
        "ncat",
        "netcat",
        "socat",
        "websocat",
        "iperf3",
        "cloudflared",
        "ngrok",
        "lt",
        "localtunnel",
        "bore",
        "frpc",
        "mail",
        "mailx",
        "sendmail",
        "mutt",
        "msmtp",
        "rclone",
        "croc",
        "magic-wormhole",
        "wormhole",
        "transfer",
        "openvpn",
        "wg",
        "wg-quick",
        "tailscale",
    ])
    .with_extra_effects_fn(netcat_and_rclone_effects),
    ProgramEffectSpec::new(&["scp", "rcp"])
        .with_short_value_options("cFiJloPSD")
        .with_option_meanings(&[
            // `-S` names the program to run instead of ssh; `-o` can set a `ProxyCommand`.
            (
                "S",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "o",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "F",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            ("i", OptionMeaning::Value),
        ])
        .with_extra_effects_fn(scp_effects),
    ProgramEffectSpec::new(&["rsync"])
        .with_short_value_options("eBTfM@")
        .with_long_value_options(&[
            "exclude",
            "include",
            "exclude-from",
            "include-from",
            "files-from",
            "filter",
            "chmod",
            "chown",
            "bwlimit",
            "timeout",
            "contimeout",
            "port",
            "info",
            "debug",
            "max-size",
            "min-size",
            "out-format",
            "suffix",
            "compare-dest",
            "link-dest",
            "copy-dest",
            "partial-dir",
            "temp-dir",
            "block-size",
            "modify-window",
            "iconv",
        ])
        .with_option_meanings(&[
            // `-e` names the remote shell, and `--rsync-path` what runs on the other side.
            (
                "e",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "rsh",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "rsync-path",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            ("log-file", OptionMeaning::Writes),
            ("backup-dir", OptionMeaning::Writes),
            ("write-batch", OptionMeaning::Writes),
            (
                "daemon",
                OptionMeaning::FlagEffect(NonFileEffectKind::Persists),
            ),
            (
                "config",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
        ])
        .with_extra_effects_fn(rsync_effects),
    ProgramEffectSpec::new(&[
        "ssh-keygen",
        "ssh-add",
        "ssh-copy-id",
        "ssh-agent",
        "ssh-keyscan",
        "gpg",
        "gpg2",
        "pass",
        "op",
        "bw",
        "vault",
        "keyring",
        "secret-tool",
        "security",
        "kinit",
        "klist",
        "age",
        "sops",
        "gpgconf",
        "pinentry",
        "keychain",
        "cmdkey",
        "doppler",
        "infisical",
        "lpass",
        "ykman",
        "step",
        "certbot",
        "mkcert",
        "openssl",
        "htpasswd",
        "certtool",
        "keytool",
    ])
    .with_extra_effects_fn(key_store_effects),
];

fn downloader_hook_option_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // aria2 runs a command on events: `--on-download-complete=COMMAND`.
    if call
        .options
        .iter()
        .any(|(name, _)| name.starts_with("on-") || name.starts_with("cmd"))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

/// Adds that something runs on another machine. The grammar finds and judges the remote command.
fn ssh_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call
        .words
        .iter()
        .any(|word| word.as_literal() == Some("-V"))
        && call.words.len() == 2
    {
        return;
    }
    out.push(CommandEffect::Kind(NonFileEffectKind::RemoteExecution));
}

fn netcat_and_rclone_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    let looks = match name {
        "nc" | "ncat" | "netcat" => {
            // `-e` and `-c` run a program for each connection; `-l` lets others connect.
            let runs = ["e", "c", "exec", "sh-exec", "lua-exec", "l", "listen"];
            // Without `-z`, which only looks whether a port is open, it sends what it reads.
            if !call.has_option(&runs) && !call.has_option(&["z"]) {
                return out.push(CommandEffect::StdinCode(CodeLanguage::RemoteInput));
            }
            !call.has_option(&runs)
        }
        "tailscale" => matches!(
            call.literal_operand(0),
            Some("status" | "ip" | "ping" | "version")
        ),
        "wg" => matches!(call.literal_operand(0), None | Some("show")),
        "rclone" => matches!(
            call.literal_operand(0),
            Some("ls" | "lsd" | "lsl" | "listremotes" | "version" | "size" | "about")
        ),
        "iperf3" => false,
        _ => false,
    };
    if !looks {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
    if name == "rclone" {
        add_rclone_removals(call, out);
    }
}

/// Adds what `rclone` removes on this machine: a path without `REMOTE:` is local.
fn add_rclone_removals(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let (act, place) = match call.literal_operand(0) {
        Some("purge" | "delete" | "deletefile") => (FileAccess::Remove, call.operands.get(1)),
        // A sync deletes in the target what the source does not have.
        Some("sync") => (FileAccess::ClearContents, call.operands.get(2)),
        Some("move") => (FileAccess::ClearContents, call.operands.get(1)),
        _ => return,
    };
    let local = place.filter(|word| !is_remote_path(word));
    out.extend(local.map(|word| CommandEffect::File(act, (*word).clone())));
}

/// Whether the word is `HOST:PATH` or a URL, and not a local path.
fn is_remote_path(word: &CommandWord) -> bool {
    let text = word.text.as_str();
    text.contains("://")
        || text
            .split_once(':')
            .is_some_and(|(host, _)| !host.contains('/') && !host.is_empty())
}

fn scp_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let Some((target, sources)) = call.operands.split_last() else {
        return;
    };
    add_remote_copy_effects(sources, target, out);
}

fn add_remote_copy_effects(
    sources: &[&CommandWord],
    target: &CommandWord,
    out: &mut Vec<CommandEffect>,
) {
    for word in sources.iter().filter(|word| !is_remote_path(word)) {
        out.push(CommandEffect::File(FileAccess::ReadBelow, (*word).clone()));
    }
    // From one remote to another also sends, so only the target decides.
    if is_remote_path(target) {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    } else {
        out.push(CommandEffect::File(FileAccess::Write, target.clone()));
        out.push(CommandEffect::PutInto(
            target.clone(),
            sources.iter().map(|word| (*word).clone()).collect(),
        ));
    }
}

fn rsync_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // A dry run is only trusted if it is certain, as `--delete` may stand beside it.
    if inert::has_certain_dry_run_option(
        call.words,
        &["n", "dry-run", "list-only"],
        &inert::RSYNC,
        "eBTMf",
        false,
    ) {
        return;
    }
    let Some((target, sources)) = call.operands.split_last() else {
        return;
    };
    // With one operand rsync only lists it.
    if sources.is_empty() {
        return;
    }
    add_remote_copy_effects(sources, target, out);
    let deletes = call
        .options
        .iter()
        .any(|(name, _)| name.starts_with("del") || name.starts_with("remove-s"));
    if deletes {
        // `--delete` can empty the target, so it counts as removed.
        out.push(CommandEffect::File(FileAccess::Remove, (*target).clone()));
        out.extend(
            sources
                .iter()
                .filter(|_| call.has_option(&["remove-source-files"]))
                .map(|word| CommandEffect::File(FileAccess::Remove, (*word).clone())),
        );
    } else if !is_remote_path(target) {
        out.push(CommandEffect::File(
            FileAccess::WriteBelow,
            (*target).clone(),
        ));
    }
}

/// Judges key stores: versions, certificates and digests are harmless, everything else may show or
/// change a secret.
fn key_store_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    let first = call.literal_operand(0).unwrap_or("");
    let plain = match name {
        "openssl" => {
            let file = |names: &[&str]| {
                call.words
                    .iter()
                    .zip(call.words.iter().skip(1))
                    .filter(|(flag, _)| names.contains(&flag.text.as_str()))
                    .map(|(_, file)| file.clone())
                    .collect::<Vec<CommandWord>>()
            };
            out.extend(
                file(&["-in", "-key", "-inkey"])
                    .into_iter()
                    .map(|word| CommandEffect::File(FileAccess::Read, word)),
            );
            out.extend(
                file(&["-out", "-keyout"])
                    .into_iter()
                    .map(|word| CommandEffect::File(FileAccess::Write, word)),
            );
            // An engine or a provider is a shared library; a config file can load one.
            let code = call.words.iter().any(|word| {
                matches!(
                    word.text.as_str(),
                    "-engine" | "-provider" | "-config" | "-provider-path"
                )
            });
            matches!(
                first,
                "x509"
                    | "dgst"
                    | "sha256"
                    | "md5"
                    | "rand"
                    | "version"
                    | "verify"
                    | "req"
                    | "ciphers"
                    | "base64"
                    | "enc"
                    | "asn1parse"
                    | "genrsa"
                    | "genpkey"
                    | "ecparam"
                    | "dhparam"
                    | "rsa"
                    | "pkey"
                    | "pkcs12"
                    | "crl"
                    | "list"
                    | "prime"
                    | "passwd"
                    | "speed"
                    | "ca"
                    | "ec"
                    | "sha1"
                    | "sha512"
                    | "help"
            ) && !code
        }
        "ssh-keygen" => {
            out.extend(
                call.words
                    .iter()
                    .zip(call.words.iter().skip(1))
                    .filter(|(flag, _)| flag.text == "-f")
                    .map(|(_, file)| {
                        CommandEffect::File(
                            if call.has_option(&["l", "lf"]) {
                                FileAccess::List
                            } else {
                                FileAccess::Write
                            },
                            file.clone(),
                        )
                    }),
            );
            // Fingerprints are public. `-D` loads a PKCS#11 library.
            call.has_option(&["l", "lf", "F", "lv"]) && !call.has_option(&["D"])
        }
        "ssh-add" => call.has_option(&["l", "L"]),
        // They show public keys of hosts, and names of tickets.
        "ssh-keyscan" | "klist" => true,
        "gpg" | "gpg2" => call.has_option(&[
            "version",
            "verify",
            "list-keys",
            "k",
            "fingerprint",
            "show-keys",
            "list-packets",
            "print-md",
        ]),
        "vault" | "step" | "certbot" | "mkcert" | "age" | "sops" | "doppler" => {
            matches!(first, "version" | "status" | "help" | "certificates")
        }
        "keytool" | "certtool" => call
            .words
            .iter()
            .any(|word| matches!(word.text.as_str(), "-list" | "-printcert")),
        "ssh-agent" => false,
        _ => false,
    };
    if !plain {
        out.push(CommandEffect::Kind(NonFileEffectKind::ExposesSecret));
    }
}
