//! Drives the runtime over a machine in memory. A seed decides which process runs next, time is
//! virtual, agents, checks, neighbours and persons write files at any moment, and processes are
//! killed. The simulation looks for violations of invariants; a failing seed is shrunk and printed
//! as a story. Never shipped.

mod agent;
#[cfg(target_os = "linux")]
mod cpu_pin;
mod link;
mod plan;
mod run;
mod scheduler;
mod shrink;
mod simulated_machine;
mod store;
mod system;

pub use plan::SimulationPlan;
pub use run::{SimulationOutcome, run_simulation_plan};
pub use scheduler::VirtualTime;
pub use shrink::shrink_failing_simulation_plan;
