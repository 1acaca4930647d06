//! The HTTP client: TLS with the certificates that the system trusts, proxies as the
//! environment names them, and no redirect, which would take the key along.

use std::error::Error as _;
use std::time::Duration;

use reqwest::{Client, NoProxy, Proxy};

use crate::providers::{EnvVarMap, first_set_variable};

/// Never behind a proxy.
const HERE: &str = "localhost,127.0.0.0/8,::1";

/// A client for one base URL.
pub(crate) fn build_http_client(
    base: &str,
    environment: &EnvVarMap,
    connect: Duration,
) -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread, or the program that we are built into, may have been quicker.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let mut builder = Client::builder()
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("checkrein/", env!("CARGO_PKG_VERSION")))
        .no_proxy();
    if base.starts_with("http:") {
        // No certificate is looked at: none need be read, and a system may have none.
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = proxy_from_environment(base, environment)? {
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(describe_error_chain)
}

/// The usual variables, in lower case first as other programs have it.
fn proxy_from_environment(base: &str, environment: &EnvVarMap) -> Result<Option<Proxy>, String> {
    let variables: &[_] = if base.starts_with("https:") {
        &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        // A CGI server sets HTTP_PROXY from a header of a stranger.
        &["http_proxy", "all_proxy", "ALL_PROXY"]
    };
    let Some((variable, address)) = first_set_variable(environment, variables) else {
        return Ok(None);
    };
    let except = first_set_variable(environment, &["no_proxy", "NO_PROXY"])
        .map_or_else(|| HERE.to_owned(), |(_, others)| format!("{HERE},{others}"));
    // The address may hold a password.
    let proxy = Proxy::all(&address).map_err(|_| format!("{variable} is no URL of a proxy"))?;
    Ok(Some(proxy.no_proxy(NoProxy::from_string(&except))))
}

/// What went wrong, down to its first cause; without the URL, which may hold a password.
pub(crate) fn describe_error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}
