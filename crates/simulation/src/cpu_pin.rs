//! Pins all threads of a simulation to one processor. Only one thread runs at a time, and waking a
//! thread on another processor takes four times as long.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Keeps the calling thread, and the threads it starts, on the current processor until dropped.
/// Errors are ignored: a machine that does not allow this is only slower.
pub(crate) struct SimulationCpuPin {
    before: Option<CpuSet>,
}

impl SimulationCpuPin {
    pub(crate) fn pin_current_thread() -> Self {
        // Restored on drop: the calling thread may belong to a test runner.
        let before = sched_getaffinity(None).ok();
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        let _ = sched_setaffinity(None, &one);
        Self { before }
    }
}

impl Drop for SimulationCpuPin {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}
