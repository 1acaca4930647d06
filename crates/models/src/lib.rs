//! Language models of several providers behind one trait. What a model says is testimony: whoever
//! asks weighs it, bounds it and counts what it costs; nothing here decides anything.

mod connection;
mod error;
mod executor;
mod key;
mod limits;
mod pauses;
mod prices;
mod providers;
pub mod quoted;
pub mod reading;
mod remote;
mod reply;
mod request;
mod wires;

use std::future::Future;
use std::pin::Pin;

pub use error::ModelError;
pub use executor::{wait, wait_unless};
pub use limits::Limits;
pub use prices::{Price, Prices};
pub use providers::without_addresses;
pub use remote::Remote;
pub use reply::{Ended, Reply, Usage};
pub use request::{Call, Message, Request, Shape, Tool};
pub use wires::{Wire, read};

/// Whether a model of this name, `provider/model`, can be asked at all. Nothing is looked up.
///
/// # Errors
/// What is wrong with the name, and what would be right.
pub fn check(name: &str) -> Result<(), ModelError> {
    providers::parse(name).map(drop)
}

/// A future that can be sent between threads; who waits for it chooses the executor.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A model that can be asked. Dropping the future cancels the request.
pub trait Model: Send + Sync {
    /// `provider/model`, as configs name it.
    fn name(&self) -> &str;

    /// Asks once. Retries, time and size limits are the implementation's; the caller only waits.
    fn ask<'a>(&'a self, request: &'a Request) -> Pending<'a, Result<Reply, ModelError>>;
}
