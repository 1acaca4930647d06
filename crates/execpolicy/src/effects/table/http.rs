//! Programs that speak HTTP: what they fetch is ordinary; what they send, and to where, is not.

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
];

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

/// Whether this is a server of this machine, or of its containers: those go by names without a dot.
/// Private addresses are not meant, since a company's own servers have them.
pub(in crate::effects) fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = host.rsplit('@').next().unwrap_or(host);
    let name = host.strip_prefix('[').map_or_else(
        || host.split(':').next().unwrap_or(host),
        |v6| v6.split(']').next().unwrap_or(v6),
    );
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
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
    let changes = call.values_of(&["method"]).any(|word| {
        let method = word.text.to_ascii_uppercase();
        matches!(method.as_str(), "DELETE" | "PUT" | "PATCH")
    });
    if changes && !call.operands.iter().all(|word| is_local(&word.text)) {
        out.push(Effect::Deed(Deed::Forces));
    }
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
    if changes && !local {
        out.push(Effect::Deed(Deed::Forces));
    }
}
