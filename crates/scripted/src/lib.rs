//! Provides models with scripted answers. They listen on loopback, speak the wire formats of real
//! agents, and record what they are asked. `checkrein doctor` and the probes of this repository use
//! them to test real agents without a login and without the network. They never open a connection
//! to another host.

mod anthropic;
pub mod coder;
mod http;
mod model;
mod responses;
pub mod reviewer;
mod script;

pub use coder::{ScriptedCoderServer, ScriptedCoderTurn};
pub use model::{ScriptedModel, ScriptedModelApiKind, ScriptedModelRequestLog};
pub use reviewer::ScriptedReviewer;
pub use script::{
    ScriptedModelAction, ScriptedModelFn, ScriptedModelRequest, model_script_from_rounds,
    output_tokens_of_nth_response,
};
