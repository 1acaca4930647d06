//! Waits for other processes, up to a bound. SQLite's own busy handler sleeps in growing steps
//! without jitter, so hooks that were woken together would collide again.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use crate::StoreError;
use crate::sqlite::sqlite_error;

/// The first pause. A tool event holds the lock for about 0.1 ms, a synced one for a few ms.
const FIRST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(4);

#[derive(Debug, Clone, Copy)]
pub(crate) struct BusyTimeout {
    pub(crate) limit: Duration,
}

impl BusyTimeout {
    /// Retries `attempt` until it is not busy or the limit is reached. `attempt` must leave nothing
    /// behind when it is busy.
    pub(crate) fn retry_while_busy<T>(
        self,
        path: &Path,
        mut attempt: impl FnMut() -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut began = None;
        let mut pause = FIRST;
        loop {
            match attempt() {
                Err(error) if is_sqlite_busy(&error) => {
                    // The clock is first read after a failed attempt: the usual attempt succeeds at
                    // once.
                    let waited = began.get_or_insert_with(Instant::now).elapsed();
                    if waited >= self.limit {
                        return Err(StoreError::Locked {
                            path: path.to_owned(),
                            waited,
                        });
                    }
                    // The last pause ends at the limit, so there is one more attempt right before
                    // giving up.
                    thread::sleep(with_jitter(pause).min(self.limit - waited));
                    pause = (pause * 2).min(LONGEST);
                }
                answer => {
                    return answer
                        .map_err(|error| sqlite_error::sqlite_to_store_error(path, error));
                }
            }
        }
    }
}

/// Returns whether SQLite was busy. `FileLockingProtocolFailed` means that it gave up a race for
/// the WAL index.
fn is_sqlite_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// Returns a duration between half and all of `pause`.
fn with_jitter(pause: Duration) -> Duration {
    // A fresh `RandomState` is the standard library's only source of randomness.
    let share = RandomState::new().hash_one(()) % 512;
    pause * (512 + u32::try_from(share).unwrap_or(0)) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)
    }

    #[test]
    fn gives_up_at_the_limit_and_says_how_long_it_waited() {
        let limit = Duration::from_millis(20);
        let denied =
            BusyTimeout { limit }.retry_while_busy(Path::new("s"), || Err::<(), _>(busy()));
        assert!(matches!(denied, Err(StoreError::Locked { waited, .. }) if waited >= limit));
    }

    #[test]
    fn goes_on_once_it_is_free() {
        let mut left = 5;
        let patience = BusyTimeout {
            limit: Duration::from_secs(60),
        };
        let answer = patience.retry_while_busy(Path::new("s"), || {
            left -= 1;
            if left == 0 { Ok("free") } else { Err(busy()) }
        });
        assert_eq!(answer.unwrap(), "free");
    }

    #[test]
    fn jitter_stays_between_half_and_all() {
        for _ in 0..1000 {
            let pause = with_jitter(Duration::from_micros(1024));
            assert!((512..1024).contains(&pause.as_micros()), "{pause:?}");
        }
    }
}
