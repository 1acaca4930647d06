//! The claim on an effect, which lasts as long as its holder lives.

use std::fmt;
use std::fs::File;

/// The right to perform one effect. Dropping it gives it back. See
/// [`crate::Store::try_claim_effect`].
#[must_use = "a claim that is not kept is given back at once"]
pub struct EffectClaimGuard {
    lock: Option<File>,
    _held: Box<dyn Send + Sync>,
}

impl EffectClaimGuard {
    /// Creates a claim that ends when `held` is dropped, for implementations of [`crate::Store`].
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self {
            lock: None,
            _held: Box::new(held),
        }
    }

    /// Creates a claim that also stays until every copy of the lock file's handle is closed.
    pub fn new_claim_holding_lock_file(held: impl Send + Sync + 'static, lock: File) -> Self {
        Self {
            lock: Some(lock),
            ..Self::new(held)
        }
    }

    /// Returns the file that a child process must keep open for the claim to live as long as the
    /// child.
    pub fn lock_file_for_child_process(&self) -> Option<&File> {
        self.lock.as_ref()
    }
}

impl fmt::Debug for EffectClaimGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").finish_non_exhaustive()
    }
}
