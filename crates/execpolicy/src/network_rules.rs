//! `network_rule`: what a file says about a host. It is kept for code that controls connections;
//! commands are not judged by it.

use checkrein_core::input::RuleDecision;
use serde::{Deserialize, Serialize};

/// One `network_rule` call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkRule {
    /// Lower case, without port, brackets and trailing dots.
    pub host: String,
    /// How it is reached.
    pub protocol: NetworkProtocol,
    /// What the rule says.
    pub decision: RuleDecision,
    /// Why.
    pub justification: Option<String>,
}

/// How a host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkProtocol {
    /// Plain HTTP.
    Http,
    /// HTTP in TLS.
    Https,
    /// SOCKS5, a connection.
    Socks5Tcp,
    /// SOCKS5, datagrams.
    Socks5Udp,
}

impl NetworkProtocol {
    /// As it is written in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5Tcp => "socks5_tcp",
            Self::Socks5Udp => "socks5_udp",
        }
    }

    pub(crate) fn parse_network_rule_protocol(word: &str) -> Result<Self, String> {
        match word {
            "http" => Ok(Self::Http),
            "https" | "https_connect" | "http-connect" => Ok(Self::Https),
            "socks5_tcp" => Ok(Self::Socks5Tcp),
            "socks5_udp" => Ok(Self::Socks5Udp),
            _ => Err(format!(
                "network_rule protocol must be one of http, https, socks5_tcp, socks5_udp (got {word})"
            )),
        }
    }
}

/// Returns a host in lower case, without port, brackets and trailing dots.
pub(crate) fn parse_network_rule_host(text: &str) -> Result<String, String> {
    let wrong = |what: &str| Err(format!("network_rule host {what}"));
    let text = text.trim();
    if text.is_empty() {
        return wrong("cannot be empty");
    }
    if text.contains(['/', '?', '#']) {
        return wrong("must be a hostname or IP literal (without scheme or path)");
    }
    let host = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((inner, after)) = rest.split_once(']') else {
                return wrong("has an invalid bracketed IPv6 literal");
            };
            if !(after.is_empty() || after.strip_prefix(':').is_some_and(is_port)) {
                return wrong(&format!("contains an unsupported suffix: {text}"));
            }
            inner
        }
        // More than one colon makes an IPv6 address, which has no port here.
        None => match text.split_once(':') {
            Some((host, port)) if !host.is_empty() && is_port(port) => host,
            _ => text,
        },
    };
    // `example.com.` is the absolute spelling of the same host.
    let host = host.trim_end_matches('.').trim();
    if host.is_empty() {
        return wrong("cannot be empty");
    }
    if host.contains('*') {
        return wrong("must be a specific host; wildcards are not allowed");
    }
    if host.contains(char::is_whitespace) {
        return wrong("cannot contain whitespace");
    }
    Ok(host.to_lowercase())
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_in_one_way() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                parse_network_rule_host(text).as_deref(),
                Ok(expected),
                "{text:?}"
            );
        };
        check(" Example.COM. ", "example.com");
        check("example.com:443", "example.com");
        check("example.com..:443", "example.com");
        check("[2001:DB8::1]:443", "2001:db8::1");
        check("[::1]", "::1");
        check("::1", "::1");
        check("1.2.3.4", "1.2.3.4");
        check("a .", "a");
        check("a:port", "a:port");
        check(":80", ":80");
    }

    #[test]
    fn invalid_hosts_are_refused() {
        let check = |text: &str, fragment: &str| {
            let said = parse_network_rule_host(text).unwrap_err();
            assert!(said.contains(fragment), "{text:?}: {said}");
        };
        for text in ["", " ", "\u{a0}", ".", " . ", "[]", "[ ]", "[.]"] {
            check(text, "cannot be empty");
        }
        for text in ["http://a", "a/b", "a?b", "a#b", "a*/b", "[a/]x"] {
            check(text, "without scheme or path");
        }
        for text in ["*", "*.b", "a*", "*:80", "[*]", "[* b]", "* a"] {
            check(text, "wildcards are not allowed");
        }
        for text in ["a b", "a\tb", "a b:80", "a: 80", "[a b]"] {
            check(text, "cannot contain whitespace");
        }
        for text in ["[", "[a", "[:80", "[*"] {
            check(text, "invalid bracketed IPv6 literal");
        }
        for text in [
            "[a]x",
            "[a]:",
            "[a].",
            "[a]:1:2",
            "[[a]]",
            "[a]: 80",
            "[a]:\u{ff18}",
        ] {
            check(text, "unsupported suffix");
        }
    }

    #[test]
    fn protocol_aliases_are_parsed() {
        for word in ["https", "https_connect", "http-connect"] {
            assert_eq!(
                NetworkProtocol::parse_network_rule_protocol(word),
                Ok(NetworkProtocol::Https)
            );
        }
        for protocol in [
            NetworkProtocol::Http,
            NetworkProtocol::Https,
            NetworkProtocol::Socks5Tcp,
            NetworkProtocol::Socks5Udp,
        ] {
            assert_eq!(
                NetworkProtocol::parse_network_rule_protocol(protocol.as_str()),
                Ok(protocol)
            );
        }
        for word in [
            "",
            "HTTP",
            " http",
            "https-connect",
            "http_connect",
            "socks5",
        ] {
            assert!(
                NetworkProtocol::parse_network_rule_protocol(word).is_err(),
                "{word:?}"
            );
        }
    }
}
