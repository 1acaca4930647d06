//! A model behind a provider's API: one question over one connection at a time, asked again
//! while that can help.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use crate::key::{self, Key};
use crate::providers::{self, Environment, Provider};
use crate::wires::{self, Fault, Reader};
use crate::{
    Limits, Message, Model, ModelError, Pending, Reply, Request, connection, executor, pauses,
};

/// Most of an error's body that is read, in bytes.
const MOST_READ: usize = 64 * 1024;
/// Most of its text that is told, in characters.
const MOST_TOLD: usize = 500;

/// A model of one of the providers. Nothing is connected to, and no key is looked for, before
/// it is asked.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    name: String,
    provider: &'static Provider,
    model: String,
    base: String,
    environment: Environment,
    limits: Limits,
    client: OnceLock<Result<Client, String>>,
    key: OnceCell<Option<Key>>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment holds keys.
        out.debug_struct("Remote")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// The model of this name, `provider/model`. Keys, base URLs and proxies are looked for in
    /// the environment that is given; that of the process is not read.
    pub fn new(name: &str, environment: &Environment, limits: Limits) -> Result<Self, ModelError> {
        let (provider, model) = providers::parse(name)?;
        Ok(Self(Arc::new(Inner {
            name: name.to_owned(),
            provider,
            model: model.to_owned(),
            base: provider.base(environment)?,
            environment: environment.clone(),
            limits,
            client: OnceLock::new(),
            key: OnceCell::new(),
        })))
    }
}

impl Remote {
    /// Looks for the key, so that its absence is known before anything is asked.
    ///
    /// # Errors
    /// If there is none, and the provider wants one.
    pub fn ready(&self) -> Pending<'_, Result<(), ModelError>> {
        Box::pin(async move {
            if executor::is_here() {
                return self.0.key().await.map(drop);
            }
            let inner = Arc::clone(&self.0);
            executor::spawned(async move { inner.key().await.map(drop) }).await
        })
    }
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Pending<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            if executor::is_here() {
                return self.0.ask(request).await;
            }
            // An executor of another kind drives no connection: ours does.
            let (inner, request) = (Arc::clone(&self.0), request.clone());
            executor::spawned(async move { inner.ask(&request).await }).await
        })
    }
}

/// A try that failed.
struct Failed {
    error: ModelError,
    again: Again,
}

/// Whether another try can help.
enum Again {
    No,
    /// Yes, after what the provider asks for.
    After(Option<Duration>),
}

impl Inner {
    async fn ask(&self, request: &Request) -> Result<Reply, ModelError> {
        let whole = self.limits.whole;
        let until = Instant::now().checked_add(whole);
        match timeout(whole, self.try_all(request, until)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.timeout(whole)),
        }
    }

    async fn try_all(
        &self,
        request: &Request,
        until: Option<Instant>,
    ) -> Result<Reply, ModelError> {
        let key = self.key().await?;
        let client = self.client()?;
        let mut body = self.body(request);
        let mut bare = without_kept(request).map(|bare| self.body(&bare));
        let mut tried = 0;
        loop {
            let failed = match self.try_once(client, key, &body).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            tried += 1;
            // Thoughts of another model, or before which the conversation was changed, may be
            // refused. An answer without them is better than none.
            if matches!(failed.error, ModelError::Refused { status: 400, .. })
                && let Some(bare) = bare.take()
            {
                body = bare;
                continue;
            }
            let Again::After(asked) = failed.again else {
                return Err(failed.error);
            };
            let wait = pauses::before(tried, self.limits.pause, asked);
            let late = Instant::now()
                .checked_add(wait)
                .is_none_or(|end| until.is_some_and(|until| end >= until));
            if late || tried >= self.limits.tries {
                return Err(failed.error);
            }
            tokio::time::sleep(wait).await;
        }
    }

    fn body(&self, request: &Request) -> String {
        let Provider { wire, dialect, .. } = self.provider;
        wire.body(&self.model, request, *dialect).to_string()
    }

    async fn try_once(
        &self,
        client: &Client,
        key: Option<&Key>,
        body: &str,
    ) -> Result<Reply, Failed> {
        let Provider { wire, .. } = self.provider;
        let mut request = client
            .post(format!("{}{}", self.base, wire.path(&self.model)))
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(body.to_owned());
        if let Some((name, value)) = wire.version_header() {
            request = request.header(name, value);
        }
        if let Some(key) = key {
            let (name, before) = wire.key_header();
            let mut value = format!("{before}{}", key.reveal())
                .parse::<reqwest::header::HeaderValue>()
                .map_err(|_| self.broken("the key does not fit a header", key, Again::No))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let response = match timeout(self.limits.gap, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unconnected(error, key, Again::After(None))),
            Err(_) => return Err(self.silent()),
        };
        if !response.status().is_success() {
            return Err(self.refusal(response, key).await);
        }
        self.read(response, key).await
    }

    async fn read(&self, mut response: Response, key: Option<&Key>) -> Result<Reply, Failed> {
        let mut reader = Reader::new(self.provider.wire, self.provider.dialect);
        let mut size = 0_usize;
        let again = |reader: &Reader| {
            if reader.begun {
                Again::No
            } else {
                Again::After(None)
            }
        };
        loop {
            let piece = match timeout(self.limits.gap, response.chunk()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break,
                // What matters of the answer may have come before.
                Ok(Err(_)) if reader.is_whole() => break,
                Ok(Err(error)) => return Err(self.unconnected(error, key, again(&reader))),
                Err(_) => return Err(self.silent()),
            };
            size = size.saturating_add(piece.len());
            if size > self.limits.bytes {
                return Err(self.failed(ModelError::TooLarge {
                    provider: self.provider.name.to_owned(),
                    limit: self.limits.bytes,
                }));
            }
            match reader.feed(&piece) {
                Ok(false) => {}
                Ok(true) => break,
                Err(fault) => return Err(self.fault(fault, key, again(&reader))),
            }
        }
        let again = again(&reader);
        reader
            .finish()
            .map_err(|fault| self.fault(fault, key, again))
    }

    fn fault(&self, fault: Fault, key: Option<&Key>, again: Again) -> Failed {
        match fault {
            Fault::Unreadable(what) => self.failed(ModelError::Unreadable {
                provider: self.provider.name.to_owned(),
                what: told(&what, key),
            }),
            Fault::Broken => self.broken("the answer broke off", key, again),
            Fault::Said { status, what } => self.said(status, &what, key, again),
        }
    }

    /// An answer that is none, by its status and words.
    async fn refusal(&self, mut response: Response, key: Option<&Key>) -> Failed {
        let status = response.status();
        let asked = pauses::asked(response.headers(), SystemTime::now());
        let mut body = Vec::new();
        while body.len() < MOST_READ
            && let Ok(Ok(Some(piece))) = timeout(self.limits.gap, response.chunk()).await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(MOST_READ);
        let parsed: Option<Value> = serde_json::from_slice(&body).ok();
        let raw = String::from_utf8_lossy(&body);
        let what = parsed.as_ref().and_then(wires::words).unwrap_or(&raw);
        let asked = asked.or_else(|| pauses::asked_in_body(parsed.as_ref()?));
        // An account without money is not busy.
        let spent = parsed.as_ref().and_then(|body| body.pointer("/error/code"))
            == Some(&Value::from("insufficient_quota"));
        if spent {
            return self.refused(status.as_u16(), what, key);
        }
        self.said(status.as_u16(), what, key, Again::After(asked))
    }

    /// What a status means, if it is one that passes `again` counts.
    fn said(&self, status: u16, what: &str, key: Option<&Key>, again: Again) -> Failed {
        let passes = matches!(status, 408 | 425 | 429 | 500..);
        if !passes {
            return self.refused(status, what, key);
        }
        let after = match &again {
            Again::After(after) => *after,
            Again::No => None,
        };
        Failed {
            error: ModelError::Busy {
                provider: self.provider.name.to_owned(),
                status,
                after,
                what: told(what, key),
            },
            again,
        }
    }

    fn refused(&self, status: u16, what: &str, key: Option<&Key>) -> Failed {
        let what = match told(what, key) {
            empty if empty.is_empty() => StatusCode::from_u16(status)
                .ok()
                .and_then(|status| status.canonical_reason())
                .unwrap_or("nothing more")
                .to_owned(),
            words => words,
        };
        self.failed(ModelError::Refused {
            provider: self.provider.name.to_owned(),
            status,
            what,
        })
    }

    fn unconnected(&self, error: reqwest::Error, key: Option<&Key>, again: Again) -> Failed {
        self.broken(&connection::cause(error), key, again)
    }

    fn broken<'k>(&self, what: &str, key: impl Into<Option<&'k Key>>, again: Again) -> Failed {
        let error = ModelError::Connection {
            provider: self.provider.name.to_owned(),
            what: told(what, key.into()),
        };
        Failed { error, again }
    }

    fn silent(&self) -> Failed {
        self.failed(self.timeout(self.limits.gap))
    }

    fn timeout(&self, limit: Duration) -> ModelError {
        ModelError::Timeout {
            provider: self.provider.name.to_owned(),
            limit,
        }
    }

    fn failed(&self, error: ModelError) -> Failed {
        Failed {
            error,
            again: Again::No,
        }
    }

    fn client(&self) -> Result<&Client, ModelError> {
        let made = self
            .client
            .get_or_init(|| connection::client(&self.base, &self.environment, self.limits.connect));
        made.as_ref().map_err(|what| ModelError::Connection {
            provider: self.provider.name.to_owned(),
            what: what.clone(),
        })
    }

    /// Looked for once; what was not found is looked for again.
    async fn key(&self) -> Result<Option<&Key>, ModelError> {
        let look = || async {
            let (provider, environment) = (self.provider, self.environment.clone());
            let looked = tokio::task::spawn_blocking(move || key::find(provider, &environment));
            looked.await.unwrap_or_else(|error| {
                Err(ModelError::Wait {
                    what: error.to_string(),
                })
            })
        };
        Ok(self.key.get_or_try_init(look).await?.as_ref())
    }
}

/// The same request without what providers want to see again; `None` if there is nothing of it.
fn without_kept(request: &Request) -> Option<Request> {
    let mut bare = request.clone();
    let mut found = false;
    for message in &mut bare.messages {
        if let Message::Assistant { calls, .. } = message {
            for call in calls {
                found |= call.kept.take().is_some();
            }
        }
    }
    found.then_some(bare)
}

/// A stranger's text as it is told: without the key, in one line, and not all of it.
fn told(text: &str, key: Option<&Key>) -> String {
    let text = key.map_or_else(|| text.to_owned(), |key| key.blank(text));
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST_TOLD) {
        Some((end, _)) => format!("{}…", line.split_at(end).0),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_environment_is_printed() {
        let environment = Environment::from([("OPENAI_API_KEY".into(), "sk-abcdef".into())]);
        let model = Remote::new("openai/gpt-5", &environment, Limits::default()).unwrap();
        let shown = format!("{model:?}");
        assert!(
            shown.contains("openai/gpt-5") && !shown.contains("sk-"),
            "{shown}"
        );
    }

    #[test]
    fn a_strangers_text_is_one_bounded_line() {
        assert_eq!(told(" a\n\u{1b}[31mb \r\n", None), "a [31mb");
        assert_eq!(told(&"ü".repeat(1000), None).chars().count(), MOST_TOLD + 1);
    }
}
