//! Holds whose turn it is to tell a person, and when they were told last: a file's lock, which the
//! kernel frees on death, and the time in that file.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use checkrein_core::ids::UnixMillis;
use checkrein_verifiers::private_file::open_private_file;

const LOCK_FILE: &str = "notify.lock";
/// Least milliseconds between two messages to a person.
const MIN_INTERVAL_MS: u64 = 10_000;

pub(super) struct NotifyLock {
    file: File,
}

impl NotifyLock {
    /// `None` while another process has it.
    pub(super) fn try_take_notify_lock(state: &Path) -> std::io::Result<Option<Self>> {
        let mut options = File::options();
        options.read(true).write(true).truncate(false);
        let file = open_private_file(&state.join(LOCK_FILE), &mut options)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Waits until a person may be told again.
    pub(super) fn wait_for_notify_interval(&mut self) {
        let mut text = String::new();
        // An empty or unreadable file means that nobody was told yet.
        let _ = (&self.file).take(32).read_to_string(&mut text);
        let last = UnixMillis(text.trim().parse().unwrap_or_default());
        let since = checkrein_runtime::now_millis().millis_since(last);
        std::thread::sleep(Duration::from_millis(MIN_INTERVAL_MS.saturating_sub(since)));
    }

    /// Records that a person was told now.
    pub(super) fn record_notify_time(&mut self) {
        let now = checkrein_runtime::now_millis().0.to_string();
        // If this fails, the next message may come sooner.
        let _ = self
            .file
            .rewind()
            .and_then(|()| self.file.set_len(0))
            .and_then(|()| self.file.write_all(now.as_bytes()));
    }
}
