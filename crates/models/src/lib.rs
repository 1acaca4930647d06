//! Language models of several providers behind one trait. What a model says is testimony: the
//! caller weighs it, bounds it and counts what it costs. Nothing here decides anything.

pub mod answers;
mod api_key;
mod backoff;
mod connection;
mod error;
mod executor;
mod limits;
mod prices;
mod providers;
pub mod quoted;
mod remote;
mod reply;
mod request;
mod wires;

use std::future::Future;
use std::pin::Pin;

pub use error::ModelError;
pub use executor::{block_on, block_on_unless_cancelled};
pub use limits::ModelRequestLimits;
pub use prices::{ModelPrice, PriceList};
pub use providers::without_endpoint_variables;
pub use remote::RemoteModel;
pub use reply::{AnswerTokenUsage, FinishReason, ModelReply};
pub use request::{
    ChatMessage, ModelRequest, RequestedToolCall, StructuredAnswerSchema, ToolDefinition,
};
pub use wires::{WireFormat, decode_recorded_model_reply};

/// Checks whether a model of this name, `provider/model`, can be asked at all. Nothing is looked
/// up.
///
/// # Errors
/// What is wrong with the name, and what would be right.
pub fn validate_model_name(name: &str) -> Result<(), ModelError> {
    providers::parse_model_name(name).map(drop)
}

/// A future that can be sent between threads. The caller chooses the executor.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A model that can be asked. Dropping the future cancels the request.
pub trait LanguageModel: Send + Sync {
    /// `provider/model`, as configs name it.
    fn model_name(&self) -> &str;

    /// The output limit in tokens of a request that sets none; `None` if there is none.
    fn default_max_tokens(&self) -> Option<u32> {
        None
    }

    /// Asks once. Retries, time and size limits are the implementation's; the caller only waits.
    fn ask_model<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;
}
