//! Checkrein's core decides when an agent is really done and when it goes in circles.
//!
//! It knows no clock, disk, network, process or environment, and no agent, verifier or store by
//! name. Inputs arrive as [`input::StampedInput`], [`event::Event`]s go into the log,
//! [`state::SessionState`] is their fold, and [`step::apply_input_and_decide`] is the one function
//! that decides. It never fails and keeps no queue.

#![deny(clippy::float_arithmetic)]

pub mod accept;
pub mod approval;
pub mod budget;
mod cascade;
pub mod decision;
pub mod detectors;
pub mod digest;
pub mod effect;
pub mod event;
pub mod evidence;
pub mod exit_status;
pub mod explain;
pub mod feedback;
pub mod ids;
pub mod input;
pub mod middleware;
pub mod policy;
mod round_end;
pub mod state;
pub mod step;
pub mod tool_action;
pub mod tool_outcome;
pub mod tool_request;
pub mod transition;
