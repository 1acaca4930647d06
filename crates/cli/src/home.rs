//! Which folder a session is judged in: that in which its policy was sealed, wherever its agent
//! works by now and whatever configs lie there. One that begins is judged where the nearest
//! config lies, but for one that was made or edited while another session's task was open.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::ids::{Seq, SessionId};
use checkrein_runtime::config::Driver;
use checkrein_runtime::{Patience, RuntimeError};
use checkrein_store::{SqliteStore, Store as _, StoreError};

use crate::commands::engine;
use crate::locate::{self, Located};

/// A place, and its store.
pub(crate) struct Settled {
    pub(crate) located: Located,
    pub(crate) store: Arc<SqliteStore>,
}

/// Where a session is judged whose agent works in this place. `quick`: what its newest row says
/// is enough.
pub(crate) fn of_session(
    located: Located,
    session: &SessionId,
    quick: bool,
    busy: Duration,
    patience: Patience<'_>,
) -> Result<Settled, RuntimeError> {
    let store = engine::store_within(&located.place, busy)?;
    if quick && says_here(&located, &store, session)? {
        return Ok(Settled { located, store });
    }
    let runtime = engine::runtime(&located, store.clone(), Driver::Hook);
    let located = match runtime.sealed_as(session)? {
        Some(sealed) => match sealed.root.filter(|root| stays(&located, root)) {
            Some(root) => located.at(&root),
            None => located,
        },
        None => match further_up(&located, session, busy)? {
            Some(settled) => return Ok(settled),
            None => {
                runtime.ask_others(session, patience)?;
                located.settled()?
            }
        },
    };
    Ok(Settled { located, store })
}

/// Where a session is judged that begins in this place without a hook.
pub(crate) fn of_new(located: Located, session: &SessionId) -> Result<Located, RuntimeError> {
    if let Err(StoreError::Missing { .. }) = SqliteStore::open_read_only(&located.place.state) {
        return Ok(located);
    }
    let store = engine::store(&located.place)?;
    let never = std::sync::atomic::AtomicBool::new(false);
    let patience = Patience {
        deadline: None,
        cancelled: &never,
    };
    engine::runtime(&located, store, Driver::Hook).ask_others(session, patience)?;
    Ok(located.settled()?)
}

fn says_here(
    located: &Located,
    store: &SqliteStore,
    session: &SessionId,
) -> Result<bool, StoreError> {
    let newest = store.tasks(Some(session), 1)?;
    Ok(newest
        .first()
        .is_some_and(|row| Path::new(&row.root) == located.place.root))
}

/// Whoever goes on in another checkout is judged in that one.
fn stays(located: &Located, root: &Path) -> bool {
    located.from.starts_with(root) || root.starts_with(&located.top)
}

/// A session that is known further up, of whose folder this one is a part: a repo that was made
/// inside of it, or taken away above it, is no way to a new policy.
fn further_up(
    located: &Located,
    session: &SessionId,
    busy: Duration,
) -> Result<Option<Settled>, RuntimeError> {
    for above in locate::with_states_above(located) {
        let knows = match SqliteStore::open_read_only(&above.place.state) {
            Ok(store) => !store.events(session, Seq(0))?.is_empty(),
            Err(_) => false,
        };
        if !knows {
            continue;
        }
        let store = engine::store_within(&above.place, busy)?;
        let runtime = engine::runtime(&above, store.clone(), Driver::Hook);
        let sealed = runtime.sealed_as(session)?.unwrap_or_default();
        if let Some(root) = sealed.root.filter(|root| located.from.starts_with(root)) {
            return Ok(Some(Settled {
                located: above.at(&root),
                store,
            }));
        }
    }
    Ok(None)
}
