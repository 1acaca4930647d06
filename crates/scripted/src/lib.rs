//! A model whose answers are written down: it listens on loopback, speaks the wire formats of
//! real agents, and keeps what it was asked. `checkrein doctor` and the probes of this
//! repository use it to see real agents obey without a login and without the network.
//! It never opens a connection of its own.

mod anthropic;
pub mod coder;
mod http;
mod model;
mod responses;
pub mod reviewer;
mod script;

pub use coder::{CoderTurn, ScriptedCoderServer};
pub use model::{RequestLog, ScriptedModel, ScriptedModelApi};
pub use reviewer::ScriptedReviewer;
pub use script::{
    ModelScript, ScriptedModelAction, ScriptedModelRequest, model_script_from_rounds,
    scripted_output_tokens,
};
