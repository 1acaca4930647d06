//! The library's model-based halves at their front door: what a model on loopback is asked, what an agent is told,
//! what is counted.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

mod agent_loop;
mod middleware;
mod replies;
mod scripted;
mod supervisor;
mod tokens;
mod verification;
