//! Builds the HTTP client: TLS with the certificates that the system trusts, proxies from the given
//! environment, and no redirects, which would take the key along.

use std::error::Error as _;
use std::time::Duration;

use reqwest::{Client, NoProxy, Proxy};

use crate::providers::{EnvVarMap, first_set_variable};

/// Hosts that are never reached through a proxy.
const HERE: &str = "localhost,127.0.0.0/8,::1";

/// Builds a client for one base URL.
pub(crate) fn build_http_client(
    base: &str,
    environment: &EnvVarMap,
    connect: Duration,
) -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread, or the program that embeds this library, may have installed a provider
        // first.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let mut builder = Client::builder()
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("checkrein/", env!("CARGO_PKG_VERSION")))
        // reqwest would otherwise read the proxies of the process's environment.
        .no_proxy();
    if base.starts_with("http:") {
        // Plain HTTP checks no certificate, so none need be loaded. A system may have none.
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = proxy_from_environment(base, environment)? {
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(describe_error_chain)
}

/// Reads the usual proxy variables, lower case first as other programs do.
fn proxy_from_environment(base: &str, environment: &EnvVarMap) -> Result<Option<Proxy>, String> {
    let variables: &[_] = if base.starts_with("https:") {
        &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        // `HTTP_PROXY` is ignored: a CGI server sets it from the `Proxy` header of a stranger's
        // request (httpoxy).
        &["http_proxy", "all_proxy", "ALL_PROXY"]
    };
    let Some((variable, address)) = first_set_variable(environment, variables) else {
        return Ok(None);
    };
    let except = first_set_variable(environment, &["no_proxy", "NO_PROXY"])
        .map_or_else(|| HERE.to_owned(), |(_, others)| format!("{HERE},{others}"));
    // The address is not shown, because it may contain a password.
    let proxy = Proxy::all(&address).map_err(|_| format!("{variable} is no URL of a proxy"))?;
    Ok(Some(proxy.no_proxy(NoProxy::from_string(&except))))
}

/// Returns the error with all its causes, without the URL, which may contain a password.
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
