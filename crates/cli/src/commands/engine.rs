//! Opens store and runtime for a place.

use std::sync::Arc;

use checkrein_runtime::config::{self, Driver};
use checkrein_runtime::{Place, Runtime};
use checkrein_store::{SqliteStore, StoreError};

use crate::locate::Located;

/// The store of this place, made when missing.
pub(crate) fn store(place: &Place) -> Result<Arc<SqliteStore>, StoreError> {
    SqliteStore::open(&place.state).map(Arc::new)
}

/// A runtime whose new sessions are sealed with this place's config.
pub(crate) fn runtime(located: &Located, store: Arc<SqliteStore>, driver: Driver) -> Runtime {
    let (repo, person) = (located.repo.clone(), located.person.clone());
    let seal = move || config::compile(repo.as_ref(), person.as_ref(), driver);
    Runtime::new(store, located.place.clone(), Box::new(seal))
}

/// The same for `run`: exactly one task, tighter caps, and attempts of the command line.
pub(crate) fn run_runtime(located: &Located, store: Arc<SqliteStore>, attempts: Option<u32>) -> Runtime {
    let (repo, person) = (located.repo.clone(), located.person.clone());
    let seal = move || {
        let mut compiled = config::compile(repo.as_ref(), person.as_ref(), Driver::Run)?;
        if let Some(attempts) = attempts {
            compiled.policy.caps.attempts = attempts;
        }
        Ok(compiled)
    };
    Runtime::new(store, located.place.clone(), Box::new(seal))
}
