//! A model behind a provider's API. Asks one question over one connection at a time, and retries as
//! long as that can help.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use crate::api_key::{self, ApiKey};
use crate::providers::{self, EnvVarMap, ModelProvider};
use crate::wires::{self, ModelAnswerDecodeError, StreamedReplyReader};
use crate::{
    BoxFuture, ChatMessage, LanguageModel, ModelError, ModelReply, ModelRequest,
    ModelRequestLimits, backoff, connection, executor,
};

/// Bytes of an error's body that are read.
const MOST_READ: usize = 64 * 1024;
/// Characters of a provider's text that are shown.
const MOST_TOLD: usize = 500;

/// A model of one of the providers. It connects to nothing and looks for no key before it is asked.
#[derive(Clone)]
pub struct RemoteModel(Arc<RemoteModelInner>);

struct RemoteModelInner {
    name: String,
    provider: &'static ModelProvider,
    model: String,
    base: String,
    environment: EnvVarMap,
    limits: ModelRequestLimits,
    client: OnceLock<Result<Client, String>>,
    key: OnceCell<Option<ApiKey>>,
}

impl std::fmt::Debug for RemoteModel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment holds keys, so only the name is printed.
        out.debug_struct("Remote")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

impl RemoteModel {
    /// Returns the model of this name, `provider/model`. Keys, base URLs and proxies are taken from
    /// the given environment; the environment of the process is not read.
    pub fn new(
        name: &str,
        environment: &EnvVarMap,
        limits: ModelRequestLimits,
    ) -> Result<Self, ModelError> {
        let (provider, model) = providers::parse_model_name(name)?;
        Ok(Self(Arc::new(RemoteModelInner {
            name: name.to_owned(),
            provider,
            model: model.to_owned(),
            base: provider.base_url(environment)?,
            environment: environment.clone(),
            limits,
            client: OnceLock::new(),
            key: OnceCell::new(),
        })))
    }
}

impl RemoteModel {
    /// Looks for the key, so that its absence is known before a question is asked.
    ///
    /// # Errors
    /// If there is none and the provider needs one.
    pub fn ensure_api_key(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async move {
            if executor::is_in_tokio_runtime() {
                return self.0.api_key().await.map(drop);
            }
            let inner = Arc::clone(&self.0);
            executor::spawn_on_shared_runtime(async move { inner.api_key().await.map(drop) }).await
        })
    }
}

impl LanguageModel for RemoteModel {
    fn model_name(&self) -> &str {
        &self.0.name
    }

    fn default_max_tokens(&self) -> Option<u32> {
        self.0.provider.wire.default_max_tokens()
    }

    fn ask_model<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            if executor::is_in_tokio_runtime() {
                return self.0.ask_model_with_timeout(request).await;
            }
            // Only a Tokio runtime can drive the connection. Under any other executor the shared
            // runtime does.
            let (inner, request) = (Arc::clone(&self.0), request.clone());
            executor::spawn_on_shared_runtime(async move {
                inner.ask_model_with_timeout(&request).await
            })
            .await
        })
    }
}

/// A failed attempt.
struct ModelRequestFailure {
    error: ModelError,
    retry: RetryHint,
}

/// Whether another try can help.
enum RetryHint {
    No,
    /// Yes, after the delay that the provider asked for, if any.
    After(Option<Duration>),
}

impl RemoteModelInner {
    async fn ask_model_with_timeout(
        &self,
        request: &ModelRequest,
    ) -> Result<ModelReply, ModelError> {
        let whole = self.limits.total_timeout;
        let until = Instant::now().checked_add(whole);
        // The outer timeout bounds everything, including retries and the search for the key.
        match timeout(whole, self.send_with_retries(request, until)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.model_timeout_error(whole)),
        }
    }

    async fn send_with_retries(
        &self,
        request: &ModelRequest,
        until: Option<Instant>,
    ) -> Result<ModelReply, ModelError> {
        let key = self.api_key().await?;
        let client = self.lazy_http_client()?;
        let mut body = self.model_request_body(request);
        // The body without provider state is built once and tried at most once.
        let mut bare =
            request_without_provider_state(request).map(|bare| self.model_request_body(&bare));
        let mut tried = 0;
        loop {
            let failed = match self.send_model_request_once(client, key, &body).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            tried += 1;
            // A provider may refuse (400) thoughts of another model, or thoughts whose conversation
            // was changed. The request is repeated once without them, since an answer without them
            // is better than none.
            if matches!(failed.error, ModelError::Refused { status: 400, .. })
                && let Some(bare) = bare.take()
            {
                body = bare;
                continue;
            }
            let RetryHint::After(asked) = failed.retry else {
                return Err(failed.error);
            };
            let wait = backoff::backoff_delay(tried, self.limits.first_backoff, asked);
            // A wait that would end after the deadline is pointless. The last error says more than
            // a timeout would.
            let late = Instant::now()
                .checked_add(wait)
                .is_none_or(|end| until.is_some_and(|until| end >= until));
            if late || tried >= self.limits.tries {
                return Err(failed.error);
            }
            tokio::time::sleep(wait).await;
        }
    }

    fn model_request_body(&self, request: &ModelRequest) -> String {
        let ModelProvider { wire, dialect, .. } = self.provider;
        wire.request_body(&self.model, request, *dialect)
            .to_string()
    }

    async fn send_model_request_once(
        &self,
        client: &Client,
        key: Option<&ApiKey>,
        body: &str,
    ) -> Result<ModelReply, ModelRequestFailure> {
        let ModelProvider { wire, .. } = self.provider;
        let mut request = client
            .post(format!("{}{}", self.base, wire.endpoint_path(&self.model)))
            .header("content-type", "application/json")
            // Every answer is streamed, so that a stalled provider is noticed by the idle timeout
            // and not only by the total one.
            .header("accept", "text/event-stream")
            .body(body.to_owned());
        if let Some((name, value)) = wire.api_version_header() {
            request = request.header(name, value);
        }
        if let Some(key) = key {
            let (name, before) = wire.api_key_header_name_and_prefix();
            let mut value = format!("{before}{}", key.reveal_secret())
                .parse::<reqwest::header::HeaderValue>()
                .map_err(|_| {
                    self.broken_model_connection_error(
                        "the key does not fit a header",
                        key,
                        RetryHint::No,
                    )
                })?;
            // Marks the header so that it is not printed in debug output.
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let response = match timeout(self.limits.idle_timeout, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(self.model_connection_error(error, key, RetryHint::After(None)));
            }
            Err(_) => return Err(self.model_idle_timeout_error()),
        };
        if !response.status().is_success() {
            return Err(self.request_failure_from_response(response, key).await);
        }
        self.read_model_reply(response, key).await
    }

    async fn read_model_reply(
        &self,
        mut response: Response,
        key: Option<&ApiKey>,
    ) -> Result<ModelReply, ModelRequestFailure> {
        let mut reader = StreamedReplyReader::new(self.provider.wire, self.provider.dialect);
        let mut size = 0_usize;
        // Once a part of the answer has arrived, the tokens are spent. A retry would pay for them
        // again.
        let again = |reader: &StreamedReplyReader| {
            if reader.begun {
                RetryHint::No
            } else {
                RetryHint::After(None)
            }
        };
        loop {
            let piece = match timeout(self.limits.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break,
                // The essential part of the answer has arrived. Some servers close the connection
                // without a proper end.
                Ok(Err(_)) if reader.has_reply_stream_ended() => break,
                Ok(Err(error)) => {
                    return Err(self.model_connection_error(error, key, again(&reader)));
                }
                Err(_) => return Err(self.model_idle_timeout_error()),
            };
            size = size.saturating_add(piece.len());
            // The provider is not trusted to stop: without the limit, an endless stream would fill
            // the memory.
            if size > self.limits.bytes {
                return Err(self.non_retryable_model_error(ModelError::TooLarge {
                    provider: self.provider.name.to_owned(),
                    limit: self.limits.bytes,
                }));
            }
            match reader.feed_reply_chunk(&piece) {
                Ok(false) => {}
                Ok(true) => break,
                Err(fault) => {
                    return Err(self.request_failure_from_decode_error(fault, key, again(&reader)));
                }
            }
        }
        let again = again(&reader);
        reader
            .into_model_reply()
            .map_err(|fault| self.request_failure_from_decode_error(fault, key, again))
    }

    fn request_failure_from_decode_error(
        &self,
        fault: ModelAnswerDecodeError,
        key: Option<&ApiKey>,
        again: RetryHint,
    ) -> ModelRequestFailure {
        match fault {
            ModelAnswerDecodeError::Unreadable(what) => {
                self.non_retryable_model_error(ModelError::Unreadable {
                    provider: self.provider.name.to_owned(),
                    what: sanitize_provider_text(&what, key),
                })
            }
            ModelAnswerDecodeError::CutOff => {
                self.broken_model_connection_error("the answer broke off", key, again)
            }
            ModelAnswerDecodeError::Reported { status, what } => {
                self.http_status_failure(status, &what, key, again)
            }
        }
    }

    /// Reads the error of an unsuccessful response, from its status and body.
    async fn request_failure_from_response(
        &self,
        mut response: Response,
        key: Option<&ApiKey>,
    ) -> ModelRequestFailure {
        let status = response.status();
        let asked = backoff::retry_after_from_headers(response.headers(), SystemTime::now());
        let mut body = Vec::new();
        while body.len() < MOST_READ
            && let Ok(Ok(Some(piece))) = timeout(self.limits.idle_timeout, response.chunk()).await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(MOST_READ);
        let parsed: Option<Value> = serde_json::from_slice(&body).ok();
        let raw = String::from_utf8_lossy(&body);
        let what = parsed
            .as_ref()
            .and_then(wires::find_provider_error_text)
            .unwrap_or(&raw);
        // Google gives the delay in the body instead of a header.
        let asked = asked.or_else(|| backoff::retry_delay_from_body(parsed.as_ref()?));
        // OpenAI answers 429 for an exhausted account as well. Waiting does not help there.
        let spent = parsed.as_ref().and_then(|body| body.pointer("/error/code"))
            == Some(&Value::from("insufficient_quota"));
        if spent {
            return self.provider_refusal_error(status.as_u16(), what, key);
        }
        self.http_status_failure(status.as_u16(), what, key, RetryHint::After(asked))
    }

    /// Returns the failure for a status. `again` applies to statuses that can pass.
    fn http_status_failure(
        &self,
        status: u16,
        what: &str,
        key: Option<&ApiKey>,
        again: RetryHint,
    ) -> ModelRequestFailure {
        // Timeouts, rate limits and server errors can pass. Every other client error would be
        // refused again.
        let passes = matches!(status, 408 | 425 | 429 | 500..);
        if !passes {
            return self.provider_refusal_error(status, what, key);
        }
        let after = match &again {
            RetryHint::After(after) => *after,
            RetryHint::No => None,
        };
        ModelRequestFailure {
            error: ModelError::Busy {
                provider: self.provider.name.to_owned(),
                status,
                after,
                what: sanitize_provider_text(what, key),
            },
            retry: again,
        }
    }

    fn provider_refusal_error(
        &self,
        status: u16,
        what: &str,
        key: Option<&ApiKey>,
    ) -> ModelRequestFailure {
        let what = match sanitize_provider_text(what, key) {
            empty if empty.is_empty() => StatusCode::from_u16(status)
                .ok()
                .and_then(|status| status.canonical_reason())
                .unwrap_or("nothing more")
                .to_owned(),
            words => words,
        };
        self.non_retryable_model_error(ModelError::Refused {
            provider: self.provider.name.to_owned(),
            status,
            what,
        })
    }

    fn model_connection_error(
        &self,
        error: reqwest::Error,
        key: Option<&ApiKey>,
        again: RetryHint,
    ) -> ModelRequestFailure {
        self.broken_model_connection_error(&connection::describe_error_chain(error), key, again)
    }

    fn broken_model_connection_error<'k>(
        &self,
        what: &str,
        key: impl Into<Option<&'k ApiKey>>,
        again: RetryHint,
    ) -> ModelRequestFailure {
        let error = ModelError::Connection {
            provider: self.provider.name.to_owned(),
            what: sanitize_provider_text(what, key.into()),
        };
        ModelRequestFailure {
            error,
            retry: again,
        }
    }

    fn model_idle_timeout_error(&self) -> ModelRequestFailure {
        self.non_retryable_model_error(self.model_timeout_error(self.limits.idle_timeout))
    }

    fn model_timeout_error(&self, limit: Duration) -> ModelError {
        ModelError::Timeout {
            provider: self.provider.name.to_owned(),
            limit,
        }
    }

    fn non_retryable_model_error(&self, error: ModelError) -> ModelRequestFailure {
        ModelRequestFailure {
            error,
            retry: RetryHint::No,
        }
    }

    fn lazy_http_client(&self) -> Result<&Client, ModelError> {
        let made = self.client.get_or_init(|| {
            connection::build_http_client(&self.base, &self.environment, self.limits.connect)
        });
        made.as_ref().map_err(|what| ModelError::Connection {
            provider: self.provider.name.to_owned(),
            what: what.clone(),
        })
    }

    /// Returns the key. A found key is kept; a missing key is looked for again at the next
    /// question.
    async fn api_key(&self) -> Result<Option<&ApiKey>, ModelError> {
        let look = || async {
            let (provider, environment) = (self.provider, self.environment.clone());
            let looked =
                // The keyring's program may take seconds and must not block the runtime's thread.
                tokio::task::spawn_blocking(move || api_key::find_provider_api_key(provider, &environment));
            looked.await.unwrap_or_else(|error| {
                Err(ModelError::NoExecutor {
                    what: error.to_string(),
                })
            })
        };
        Ok(self.key.get_or_try_init(look).await?.as_ref())
    }
}

/// Returns the request without provider state; `None` if it has none.
fn request_without_provider_state(request: &ModelRequest) -> Option<ModelRequest> {
    let mut bare = request.clone();
    let mut found = false;
    for message in &mut bare.messages {
        if let ChatMessage::Assistant { calls, .. } = message {
            for call in calls {
                found |= call.provider_state.take().is_some();
            }
        }
    }
    found.then_some(bare)
}

/// Makes a provider's text printable: without the key, on one line, and bounded.
fn sanitize_provider_text(text: &str, key: Option<&ApiKey>) -> String {
    let text = key.map_or_else(|| text.to_owned(), |key| key.redact_key_in_text(text));
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
        let environment = EnvVarMap::from([("OPENAI_API_KEY".into(), "sk-abcdef".into())]);
        let model =
            RemoteModel::new("openai/gpt-5", &environment, ModelRequestLimits::default()).unwrap();
        let shown = format!("{model:?}");
        assert!(
            shown.contains("openai/gpt-5") && !shown.contains("sk-"),
            "{shown}"
        );
    }

    #[test]
    fn a_strangers_text_is_one_bounded_line() {
        assert_eq!(
            sanitize_provider_text(" a\n\u{1b}[31mb \r\n", None),
            "a [31mb"
        );
        assert_eq!(
            sanitize_provider_text(&"ü".repeat(1000), None)
                .chars()
                .count(),
            MOST_TOLD + 1
        );
    }
}
