//! Programs that reach other machines. Bringing something here is ordinary; sending files away,
//! and running something there, is not.

use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect, Language};
use crate::shell::Word;

const NET: &[Deed] = &[Deed::Network];

pub(super) const ROWS: &[Row] = &[
    Row::does(&["curl"], NET)
        .values("AbCDEeHhKmoPQrTtuUwxXYyzFd")
        .longs(&[
            "data",
            "data-binary",
            "data-raw",
            "data-ascii",
            "json",
            "form",
            "url",
            "header",
            "request",
            "user-agent",
            "referer",
            "cookie",
            "max-time",
            "connect-timeout",
            "retry",
            "retry-delay",
            "retry-max-time",
            "proxy",
            "write-out",
            "range",
            "interface",
            "resolve",
            "cacert",
            "capath",
            "cert-type",
            "ciphers",
            "data-urlencode",
            "limit-rate",
            "max-redirs",
            "max-filesize",
            "url-query",
            "unix-socket",
            "abstract-unix-socket",
            "connect-to",
            "dns-servers",
            "doh-url",
            "proto",
            "proto-redir",
            "tls-max",
            "rate",
            "request-target",
            "service-name",
            "time-cond",
            "speed-limit",
            "speed-time",
            "continue-at",
            "local-port",
            "form-string",
            "variable",
            "expand-url",
            "aws-sigv4",
            "oauth2-bearer",
            "happy-eyeballs-timeout-ms",
            "keepalive-time",
            "proxy-user",
            "engine",
            "delegation",
            "noproxy",
            "preproxy",
            "socks5",
            "socks5-hostname",
            "login-options",
            "mail-from",
            "mail-rcpt",
            "ftp-port",
            "pinnedpubkey",
        ])
        .on(&[
            ("o", On::Writes),
            ("output", On::Writes),
            ("output-dir", On::Writes),
            ("D", On::Writes),
            ("dump-header", On::Writes),
            ("c", On::Writes),
            ("cookie-jar", On::Writes),
            ("trace", On::Writes),
            ("trace-ascii", On::Writes),
            ("stderr", On::Writes),
            ("hsts", On::Writes),
            ("alt-svc", On::Writes),
            ("etag-save", On::Writes),
            ("libcurl", On::Writes),
            ("T", On::With(Deed::Uploads)),
            ("upload-file", On::With(Deed::Uploads)),
            ("K", On::With(Deed::Unclear)),
            ("config", On::With(Deed::Unclear)),
            ("Q", On::With(Deed::Unclear)),
            ("quote", On::With(Deed::Unclear)),
            ("n", On::Value),
            ("netrc-file", On::Reads),
            ("E", On::Reads),
            ("cert", On::Reads),
            ("key", On::Reads),
            ("u", On::Value),
            ("user", On::Value),
        ])
        .more(curl),
    Row::does(&["wget", "wget2"], NET)
        .values("aeitTwQPBADRIXlnUo")
        .longs(&[
            "tries",
            "timeout",
            "wait",
            "header",
            "user-agent",
            "user",
            "password",
            "quota",
            "level",
            "accept",
            "reject",
            "domains",
            "cut-dirs",
            "limit-rate",
            "max-redirect",
            "referer",
            "method",
            "dns-timeout",
            "connect-timeout",
            "read-timeout",
            "waitretry",
            "ca-certificate",
            "base",
            "progress",
            "include-directories",
            "exclude-directories",
        ])
        .on(&[
            ("O", On::Writes),
            ("output-document", On::Writes),
            ("o", On::Writes),
            ("output-file", On::Writes),
            ("a", On::Writes),
            ("append-output", On::Writes),
            ("P", On::Writes),
            ("directory-prefix", On::Writes),
            ("save-cookies", On::Writes),
            ("i", On::Reads),
            ("input-file", On::Reads),
            ("e", On::With(Deed::Unclear)),
            ("execute", On::With(Deed::Unclear)),
            ("config", On::With(Deed::Unclear)),
            ("use-askpass", On::With(Deed::Code)),
            ("post-file", On::With(Deed::Uploads)),
            ("body-file", On::With(Deed::Uploads)),
        ])
        .more(wget),
    Row::does(&["http", "https", "xh", "xhs", "httpie", "curlie"], NET)
        .values("oabA")
        .longs(&[
            "auth", "timeout", "proxy", "verify", "session", "print", "style",
        ])
        .on(&[("o", On::Writes), ("output", On::Writes)])
        .more(httpie),
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
    Row::of(&["gh", "glab"])
        .values("R")
        .longs(&["repo"])
        .on(&[("R", On::Value)])
        .subs(GH),
];

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
        Row::does(&["merge", "close", "revert", "approve"], &[Deed::Forces]),
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
        Row::does(
            &["close", "delete", "transfer", "lock", "unlock"],
            &[Deed::Forces],
        ),
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
        Row::does(
            &[
                "create",
                "upload",
                "edit",
                "rename",
                "delete",
                "delete-asset",
            ],
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

fn deletes(call: &Call<'_>, out: &mut Vec<Effect>) {
    if matches!(
        call.operand(0),
        Some("delete" | "edit" | "create" | "clone")
    ) {
        out.push(Effect::Deed(Deed::Forces));
    }
}

/// `gh api`: what only asks, asks.
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
    let get = matches!(method.or(attached), None | Some("GET" | "HEAD"));
    let sends =
        call.has(&["f", "F", "field", "raw-field", "input"]) && method.or(attached).is_none();
    let graphql = words.contains(&"graphql") && !words.iter().any(|word| word.contains("mutation"));
    out.push(Effect::Deed(if get && (!sends || graphql) {
        Deed::Network
    } else {
        Deed::Forces
    }));
}

/// `@FILE` and a file for a form are sent; what is written without a name is called like the URL.
fn curl(call: &Call<'_>, out: &mut Vec<Effect>) {
    let file = |word: &Word| {
        word.text.trim_start_matches('=').starts_with('@') && !word.text.ends_with("@-")
            || word.text.split_once('@').is_some_and(|(name, file)| {
                !file.is_empty()
                    && file != "-"
                    && !name.is_empty()
                    && name.chars().all(char::is_alphanumeric)
            }) && call.has(&["data-urlencode", "url-query"])
            || word.text.contains("=@")
            || word.text.contains("=<")
    };
    let sent = call
        .values_of(&[
            "d",
            "data",
            "data-binary",
            "data-ascii",
            "data-urlencode",
            "json",
            "F",
            "form",
        ])
        .any(file);
    let input = |word: &Word| word.text.ends_with("@-");
    let fed = call
        .options
        .iter()
        .filter_map(|(_, value)| value.as_ref())
        .any(input);
    // Local services are where they are developed.
    let local = call
        .operands
        .iter()
        .chain(&call.values_of(&["url"]).collect::<Vec<_>>())
        .all(|word| is_local(&word.text));
    let config = call.options.iter().any(|(name, value)| {
        matches!(
            name.as_str(),
            "H" | "header" | "b" | "cookie" | "w" | "write-out" | "variable"
        ) && value
            .as_ref()
            .is_some_and(|word| word.text.starts_with('@'))
    });
    let telnet = call
        .operands
        .iter()
        .any(|word| word.text.starts_with("telnet:"));
    if (sent || telnet || call.has(&["variable"])) && !local {
        out.push(Effect::Deed(Deed::Uploads));
    }
    if fed && !local {
        out.push(Effect::Fed(Language::Sent));
    }
    if config {
        out.push(Effect::Deed(Deed::Unclear));
    }
    let secret = |word: &Word| word.text.contains("$(") || word.text.contains('`');
    let sends = call
        .values_of(&[
            "d",
            "data",
            "data-binary",
            "data-raw",
            "data-ascii",
            "data-urlencode",
            "json",
            "F",
            "form",
        ])
        .any(secret);
    let asks = call.operands.iter().any(|word| secret(word));
    if (sends || asks) && !local {
        out.push(Effect::Deed(Deed::Uploads));
    }
    let method = call
        .values_of(&["X", "request"])
        .next()
        .map(|word| word.text.to_ascii_uppercase());
    if method.is_some_and(|method| matches!(method.as_str(), "DELETE" | "PUT" | "PATCH")) && !local
    {
        out.push(Effect::Deed(Deed::Forces));
    }
    for word in call
        .operands
        .iter()
        .filter(|word| word.text.to_ascii_lowercase().starts_with("file:"))
    {
        out.push(Effect::File(Act::Read, (*word).clone()));
    }
    if call.has(&["O", "remote-name", "remote-name-all", "J"]) {
        out.push(Effect::File(Act::Write, Word::fixed("?*")));
    }
}

fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = host.rsplit('@').next().unwrap_or(host);
    let name = host.strip_prefix('[').map_or_else(
        || host.split(':').next().unwrap_or(host),
        |v6| v6.split(']').next().unwrap_or(v6),
    );
    matches!(
        name,
        "localhost" | "127.0.0.1" | "0.0.0.0" | "::1" | "host.docker.internal"
    ) || name.ends_with(".localhost")
}

fn wget(call: &Call<'_>, out: &mut Vec<Effect>) {
    // It is called as it is there.
    if !call.has(&["O", "output-document"]) {
        let last = |word: &&&Word| word.text.rsplit('/').next().map(str::to_owned);
        let names = call.operands.iter().filter_map(|word| last(&word));
        let named = names.filter(|name| !name.is_empty() && name.contains('.'));
        out.extend(named.map(|name| Effect::File(Act::Write, Word::fixed(name))));
    }
    let method = call
        .values_of(&["method"])
        .next()
        .is_some_and(|word| !matches!(word.text.as_str(), "GET" | "HEAD"));
    if method
        || call.has(&["post-data", "body-data"])
            && !call.operands.iter().all(|word| is_local(&word.text))
    {
        out.push(Effect::Deed(Deed::Uploads));
    }
}

fn httpie(call: &Call<'_>, out: &mut Vec<Effect>) {
    // What is piped in is sent.
    out.push(Effect::Fed(Language::Other));
    let first = call.operand(0).unwrap_or("");
    let local = call
        .operands
        .iter()
        .take(2)
        .any(|word| is_local(&word.text) || word.text.starts_with(':'));
    let changes = matches!(first, "DELETE" | "PUT" | "PATCH");
    let file = call
        .operands
        .iter()
        .any(|word| word.text.contains('@') && !word.text.contains("://"));
    if (changes || file) && !local {
        out.push(Effect::Deed(Deed::Uploads));
    }
}

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
        // Whether a port is open.
        "nc" | "ncat" | "netcat" => {
            call.has(&["z"]) && !call.has(&["e", "c", "exec", "sh-exec", "l"])
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
    if call.has(&["n", "dry-run", "list-only"]) {
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
