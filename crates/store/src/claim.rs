//! The right to perform an effect, held by living as long as its holder.

use std::fmt;

/// The right to perform one effect; dropping it gives it back. See [`crate::Store::claim`].
#[must_use = "a claim that is not kept is given back at once"]
pub struct Claim {
    _held: Box<dyn Send + Sync>,
}

impl Claim {
    /// A claim that ends when `held` is dropped; for implementations of [`crate::Store`].
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self {
            _held: Box::new(held),
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").finish_non_exhaustive()
    }
}
