//! Programs that reach other machines. Bringing something here is ordinary; sending files away,
//! and running something there, is not.

use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect, Language};
use crate::shell::Word;

const NET: &[Deed] = &[Deed::Network];

pub(super) const ROWS: &[Row] = &[
    Row::does(&["aria2c", "axel", "lynx", "w3m", "links", "elinks"], NET)
        .on(&[
            ("o", On::Writes),
            ("d", On::Writes),
            ("dir", On::Writes),
            ("out", On::Writes),
            ("conf-path", On::With(Deed::Unclear)),
            ("cmd_script", On::With(Deed::Code)),
        ])
        .more(hooks),
    Row::does(&["youtube-dl", "yt-dlp", "gallery-dl"], NET).on(&[
        ("exec", On::With(Deed::Code)),
        ("o", On::Writes),
        ("P", On::Writes),
        ("external-downloader", On::With(Deed::Code)),
    ]),
    Row::does(
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
    Row::of(&["ssh"]).more(ssh),
    Row::of(&[
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
    .more(pipes),
    Row::of(&["scp", "rcp"])
        .values("cFiJloPSD")
        .on(&[
            ("S", On::With(Deed::Code)),
            ("o", On::With(Deed::Unclear)),
            ("F", On::With(Deed::Unclear)),
            ("i", On::Value),
        ])
        .more(copies),
    Row::of(&["rsync"])
        .values("eBTfM@")
        .longs(&[
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
        .on(&[
            ("e", On::With(Deed::Unclear)),
            ("rsh", On::With(Deed::Unclear)),
            ("rsync-path", On::With(Deed::Code)),
            ("log-file", On::Writes),
            ("backup-dir", On::Writes),
            ("write-batch", On::Writes),
            ("daemon", On::Does(Deed::Persists)),
            ("config", On::With(Deed::Unclear)),
        ])
        .more(rsync),
    Row::of(&[
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
    .more(keys),
];

fn hooks(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call
        .options
        .iter()
        .any(|(name, _)| name.starts_with("on-") || name.starts_with("cmd"))
    {
        out.push(Effect::Deed(Deed::Code));
    }
}

/// What runs there is found by the grammar; options can run something here.
fn ssh(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.words.iter().any(|word| word.as_fixed() == Some("-V")) && call.words.len() == 2 {
        return;
    }
    out.push(Effect::Deed(Deed::Elsewhere));
}

fn pipes(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    let looks = match name {
        "nc" | "ncat" | "netcat" => {
            let runs = ["e", "c", "exec", "sh-exec", "lua-exec", "l", "listen"];
            // Without `-z`, which only looks whether a port is open, it sends what it reads.
            if !call.has(&runs) && !call.has(&["z"]) {
                return out.push(Effect::Fed(Language::Sent));
            }
            !call.has(&runs)
        }
        "tailscale" => matches!(call.operand(0), Some("status" | "ip" | "ping" | "version")),
        "wg" => matches!(call.operand(0), None | Some("show")),
        "rclone" => matches!(
            call.operand(0),
            Some("ls" | "lsd" | "lsl" | "listremotes" | "version" | "size" | "about")
        ),
        "iperf3" => false,
        _ => false,
    };
    if !looks {
        out.push(Effect::Deed(Deed::Uploads));
    }
    if name == "rclone" {
        removed_locally(call, out);
    }
}

/// `rclone` knows folders of this machine by their paths, and others by `REMOTE:PATH`.
fn removed_locally(call: &Call<'_>, out: &mut Vec<Effect>) {
    let (act, place) = match call.operand(0) {
        Some("purge" | "delete" | "deletefile") => (Act::Remove, call.operands.get(1)),
        Some("sync") => (Act::Clear, call.operands.get(2)),
        Some("move") => (Act::Clear, call.operands.get(1)),
        _ => return,
    };
    let local = place.filter(|word| !remote(word));
    out.extend(local.map(|word| Effect::File(act, (*word).clone())));
}

/// `HOST:PATH`, not a path.
fn remote(word: &Word) -> bool {
    let text = word.text.as_str();
    text.contains("://")
        || text
            .split_once(':')
            .is_some_and(|(host, _)| !host.contains('/') && !host.is_empty())
}

fn copies(call: &Call<'_>, out: &mut Vec<Effect>) {
    let Some((target, sources)) = call.operands.split_last() else {
        return;
    };
    transfer(sources, target, out);
}

fn transfer(sources: &[&Word], target: &Word, out: &mut Vec<Effect>) {
    for word in sources.iter().filter(|word| !remote(word)) {
        out.push(Effect::File(Act::ReadBelow, (*word).clone()));
    }
    if remote(target) {
        out.push(Effect::Deed(Deed::Uploads));
    } else {
        out.push(Effect::File(Act::Write, target.clone()));
        out.push(Effect::PutInto(
            target.clone(),
            sources.iter().map(|word| (*word).clone()).collect(),
        ));
    }
}

fn rsync(call: &Call<'_>, out: &mut Vec<Effect>) {
    if inert::holds(
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
    if sources.is_empty() {
        return;
    }
    transfer(sources, target, out);
    let deletes = call
        .options
        .iter()
        .any(|(name, _)| name.starts_with("del") || name.starts_with("remove-s"));
    if deletes {
        out.push(Effect::File(Act::Remove, (*target).clone()));
        out.extend(
            sources
                .iter()
                .filter(|_| call.has(&["remove-source-files"]))
                .map(|word| Effect::File(Act::Remove, (*word).clone())),
        );
    } else if !remote(target) {
        out.push(Effect::File(Act::WriteBelow, (*target).clone()));
    }
}

/// Key stores: asking for versions, certificates and digests is harmless, the rest is not.
fn keys(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    let first = call.operand(0).unwrap_or("");
    let plain = match name {
        "openssl" => {
            let file = |names: &[&str]| {
                call.words
                    .iter()
                    .zip(call.words.iter().skip(1))
                    .filter(|(flag, _)| names.contains(&flag.text.as_str()))
                    .map(|(_, file)| file.clone())
                    .collect::<Vec<Word>>()
            };
            out.extend(
                file(&["-in", "-key", "-inkey"])
                    .into_iter()
                    .map(|word| Effect::File(Act::Read, word)),
            );
            out.extend(
                file(&["-out", "-keyout"])
                    .into_iter()
                    .map(|word| Effect::File(Act::Write, word)),
            );
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
                        Effect::File(
                            if call.has(&["l", "lf"]) {
                                Act::List
                            } else {
                                Act::Write
                            },
                            file.clone(),
                        )
                    }),
            );
            call.has(&["l", "lf", "F", "lv"]) && !call.has(&["D"])
        }
        "ssh-add" => call.has(&["l", "L"]),
        "ssh-keyscan" | "klist" => true,
        "gpg" | "gpg2" => call.has(&[
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
        out.push(Effect::Deed(Deed::Secret));
    }
}
