//! Drives the runtime over a machine in memory: processes take turns as a seed says, time is virtual, files are
//! written by agents, checks, neighbours and persons at any moment, and processes are killed. What must never
//! happen is looked for; a seed that shows it is made smaller and told as a story. Never shipped.

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
pub use shrink::shrink_plan;
