//! Describes HTTP clients. Fetching is ordinary work; sending files or secrets and changing things
//! on a server are not, unless the server is local.

use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CodeLanguage, CommandEffect, FileAccess};
use crate::shell::CommandWord;

const NET: &[NonFileEffectKind] = &[NonFileEffectKind::Network];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(&["curl"], NET)
        .with_short_value_options("AbCDEeHhKmoPQrTtuUwxXYyzFd")
        .with_long_value_options(&[
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
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            ("output-dir", OptionMeaning::Writes),
            ("D", OptionMeaning::Writes),
            ("dump-header", OptionMeaning::Writes),
            ("c", OptionMeaning::Writes),
            ("cookie-jar", OptionMeaning::Writes),
            ("trace", OptionMeaning::Writes),
            ("trace-ascii", OptionMeaning::Writes),
            ("stderr", OptionMeaning::Writes),
            ("hsts", OptionMeaning::Writes),
            ("alt-svc", OptionMeaning::Writes),
            ("etag-save", OptionMeaning::Writes),
            ("libcurl", OptionMeaning::Writes),
            ("T", OptionMeaning::ValueEffect(NonFileEffectKind::Uploads)),
            (
                "upload-file",
                OptionMeaning::ValueEffect(NonFileEffectKind::Uploads),
            ),
            // A config file can hold any option, an upload among them.
            (
                "K",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "config",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            // Commands for an FTP server, such as `DELE`.
            (
                "Q",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "quote",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            ("n", OptionMeaning::Value),
            ("netrc-file", OptionMeaning::Reads),
            ("E", OptionMeaning::Reads),
            ("cert", OptionMeaning::Reads),
            ("key", OptionMeaning::Reads),
            ("u", OptionMeaning::Value),
            ("user", OptionMeaning::Value),
        ])
        .with_extra_effects_fn(curl_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["wget", "wget2"], NET)
        .with_short_value_options("aeitTwQPBADRIXlnUo")
        .with_long_value_options(&[
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
        .with_option_meanings(&[
            ("O", OptionMeaning::Writes),
            ("output-document", OptionMeaning::Writes),
            ("o", OptionMeaning::Writes),
            ("output-file", OptionMeaning::Writes),
            ("a", OptionMeaning::Writes),
            ("append-output", OptionMeaning::Writes),
            ("P", OptionMeaning::Writes),
            ("directory-prefix", OptionMeaning::Writes),
            ("save-cookies", OptionMeaning::Writes),
            ("i", OptionMeaning::Reads),
            ("input-file", OptionMeaning::Reads),
            // `-e` is a line of `.wgetrc`, so it can set any option.
            (
                "e",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "execute",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "config",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                // A program that wget runs to ask for a password.
                "use-askpass",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "post-file",
                OptionMeaning::ValueEffect(NonFileEffectKind::Uploads),
            ),
            (
                "body-file",
                OptionMeaning::ValueEffect(NonFileEffectKind::Uploads),
            ),
        ])
        .with_extra_effects_fn(wget_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["http", "https", "xh", "xhs", "httpie", "curlie"],
        NET,
    )
    .with_short_value_options("oabA")
    .with_long_value_options(&[
        "auth", "timeout", "proxy", "verify", "session", "print", "style",
    ])
    .with_option_meanings(&[
        ("o", OptionMeaning::Writes),
        ("output", OptionMeaning::Writes),
    ])
    .with_extra_effects_fn(httpie_effects),
];

/// Judges what curl sends (`@FILE`, forms, computed text), changes (`-X DELETE`) and writes (`-O`).
fn curl_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Three spellings of a file: `@FILE` in data, `NAME@FILE` with `--data-urlencode`, `NAME=@FILE`
    // and `NAME=<FILE` in forms. `@-` is standard input.
    let file = |word: &CommandWord| {
        word.text.trim_start_matches('=').starts_with('@') && !word.text.ends_with("@-")
            || word.text.split_once('@').is_some_and(|(name, file)| {
                !file.is_empty()
                    && file != "-"
                    && !name.is_empty()
                    && name.chars().all(char::is_alphanumeric)
            }) && call.has_option(&["data-urlencode", "url-query"])
            || word.text.contains("=@")
            || word.text.contains("=<")
    };
    let sent = call
        .option_values(&[
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
    let input = |word: &CommandWord| word.text.ends_with("@-");
    let fed = call
        .options
        .iter()
        .filter_map(|(_, value)| value.as_ref())
        .any(input);
    // Requests to a local server are part of development.
    let local = call
        .operands
        .iter()
        .chain(&call.option_values(&["url"]).collect::<Vec<_>>())
        .all(|word| is_url_of_this_machine(&word.text));
    // A header, a cookie or a variable that is read from a file sends that file.
    let config = call.options.iter().any(|(name, value)| {
        matches!(
            name.as_str(),
            "H" | "header" | "b" | "cookie" | "w" | "write-out" | "variable"
        ) && value
            .as_ref()
            .is_some_and(|word| word.text.starts_with('@'))
    });
    // `telnet:` connects standard input to any port.
    let telnet = call
        .operands
        .iter()
        .any(|word| word.text.starts_with("telnet:"));
    if (sent || telnet || call.has_option(&["variable"])) && !local {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
    if fed && !local {
        out.push(CommandEffect::StdinCode(CodeLanguage::RemoteInput));
    }
    if config {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions));
    }
    // Output of a command may be a secret; curl sends it in data or in the URL.
    let secret = |word: &CommandWord| word.text.contains("$(") || word.text.contains('`');
    let sends = call
        .option_values(&[
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
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
    let method = call
        .option_values(&["X", "request"])
        .next()
        .map(|word| word.text.to_ascii_uppercase());
    if method.is_some_and(|method| matches!(method.as_str(), "DELETE" | "PUT" | "PATCH")) && !local
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::OverwritesShared));
    }
    for word in call
        .operands
        .iter()
        .filter(|word| word.text.to_ascii_lowercase().starts_with("file:"))
    {
        out.push(CommandEffect::File(FileAccess::Read, (*word).clone()));
    }
    if call.has_option(&["O", "remote-name", "remote-name-all", "J"]) {
        out.push(CommandEffect::File(
            FileAccess::Write,
            // The server chooses the name, but not the folder.
            CommandWord::new_literal_word("?*"),
        ));
    }
}

/// Whether this is a server of this machine or of one of its containers, which have names without a
/// dot. Private addresses do not count, because a company's own servers have them.
pub(in crate::effects) fn is_url_of_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    // `http://localhost@evil.com` goes to evil.com: before the `@` stands the user.
    let host = host.rsplit('@').next().unwrap_or(host);
    let name = host.strip_prefix('[').map_or_else(
        || host.split(':').next().unwrap_or(host),
        |v6| v6.split(']').next().unwrap_or(v6),
    );
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // Containers mostly serve plain HTTP. With TLS a name of one part may be a company server.
    let container = url.starts_with("http://")
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(plain);
    matches!(
        name,
        "localhost" | "0.0.0.0" | "::1" | "host.docker.internal"
    ) || name
        .parse::<std::net::Ipv4Addr>()
        .is_ok_and(|address| address.is_loopback())
        || name.ends_with(".localhost")
        || name.ends_with(".test")
        || container
}

fn wget_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Without `-O` the file is named like the last part of the URL.
    if !call.has_option(&["O", "output-document"]) {
        let last = |word: &&&CommandWord| word.text.rsplit('/').next().map(str::to_owned);
        let names = call.operands.iter().filter_map(|word| last(&word));
        let named = names.filter(|name| !name.is_empty() && name.contains('.'));
        out.extend(named.map(|name| {
            CommandEffect::File(FileAccess::Write, CommandWord::new_literal_word(name))
        }));
    }
    let method = call
        .option_values(&["method"])
        .next()
        .is_some_and(|word| !matches!(word.text.as_str(), "GET" | "HEAD"));
    let changes = call.option_values(&["method"]).any(|word| {
        let method = word.text.to_ascii_uppercase();
        matches!(method.as_str(), "DELETE" | "PUT" | "PATCH")
    });
    if changes
        && !call
            .operands
            .iter()
            .all(|word| is_url_of_this_machine(&word.text))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::OverwritesShared));
    }
    if method
        || call.has_option(&["post-data", "body-data"])
            && !call
                .operands
                .iter()
                .all(|word| is_url_of_this_machine(&word.text))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
}

fn httpie_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // HTTPie sends its standard input as the body.
    out.push(CommandEffect::StdinCode(CodeLanguage::Unread));
    let first = call.literal_operand(0).unwrap_or("");
    let local = call
        .operands
        .iter()
        .take(2)
        .any(|word| is_url_of_this_machine(&word.text) || word.text.starts_with(':'));
    let changes = matches!(first, "DELETE" | "PUT" | "PATCH");
    // `field@FILE` sends the file.
    let file = call
        .operands
        .iter()
        .any(|word| word.text.contains('@') && !word.text.contains("://"));
    if (changes || file) && !local {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
    if changes && !local {
        out.push(CommandEffect::Kind(NonFileEffectKind::OverwritesShared));
    }
}
