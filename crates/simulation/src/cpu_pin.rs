//! All threads of a simulation on one processor. One of them runs at a time, and to wake one on another processor takes
//! four times as long.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The calling thread, and those that it starts, stay on the processor that it is on, until this is dropped. A machine
/// that does not allow it is only slower.
pub(crate) struct CpuPin {
    before: Option<CpuSet>,
}

impl CpuPin {
    pub(crate) fn pin_current_thread() -> Self {
        let before = sched_getaffinity(None).ok();
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        let _ = sched_setaffinity(None, &one);
        Self { before }
    }
}

impl Drop for CpuPin {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}
