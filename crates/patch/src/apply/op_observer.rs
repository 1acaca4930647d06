//! Announces every write, rename and removal, so that a test can kill the process at each of them.

use std::fs::File;
use std::io::{self, Write as _};

/// A callback that is told what is about to happen.
pub(super) struct PatchStepObserver<'o>(&'o dyn Fn(&'static str));

impl<'o> PatchStepObserver<'o> {
    /// Returns an observer that does nothing.
    pub(super) fn no_patch_step_observer() -> PatchStepObserver<'static> {
        PatchStepObserver(&|_| {})
    }

    #[cfg(test)]
    pub(super) fn observer_with_step_callback(by: &'o dyn Fn(&'static str)) -> Self {
        PatchStepObserver(by)
    }

    pub(super) fn call_hook_before_disk_operation(&self, what: &'static str) {
        (self.0)(what);
    }

    /// Writes in two halves, so that a test can kill the process in the middle of a write.
    pub(super) fn write_in_two_observed_halves(
        &self,
        mut file: &File,
        bytes: &[u8],
    ) -> io::Result<()> {
        let (head, tail) = bytes.split_at(bytes.len() / 2);
        self.call_hook_before_disk_operation("write");
        file.write_all(head)?;
        self.call_hook_before_disk_operation("write on");
        file.write_all(tail)
    }
}
