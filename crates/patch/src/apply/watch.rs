//! Every write, rename and removal goes by here, so that a test can kill the process at each.

use std::fs::File;
use std::io::{self, Write as _};

/// Told what is about to happen.
pub(super) struct Ops<'o>(&'o dyn Fn(&'static str));

impl<'o> Ops<'o> {
    /// Nobody looks on.
    pub(super) fn plain() -> Ops<'static> {
        Ops(&|_| {})
    }

    #[cfg(test)]
    pub(super) fn watched(by: &'o dyn Fn(&'static str)) -> Self {
        Ops(by)
    }

    pub(super) fn before(&self, what: &'static str) {
        (self.0)(what);
    }

    /// In two pieces: a write may be cut anywhere.
    pub(super) fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        let (head, tail) = bytes.split_at(bytes.len() / 2);
        self.before("write");
        file.write_all(head)?;
        self.before("write on");
        file.write_all(tail)
    }
}
