//! Which folder a session is judged in: that in which its policy was sealed, wherever its agent
//! works by now and whatever configs and repos are made there. One that begins is judged where
//! the nearest config lies.
//!
//! A session is looked for in the folder that its agent works in, further up, and then by its id.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::ids::SessionId;
use checkrein_runtime::config::TaskDriver;
use checkrein_runtime::{Deadline, RuntimeError};
use checkrein_store::{SqliteStore, Store as _, StoreError};

use crate::commands::engine;
use crate::locate::{self, Located};
use crate::session_index;

/// A place, and its store.
pub(crate) struct Settled {
    pub(crate) located: Located,
    pub(crate) store: Arc<SqliteStore>,
}

impl Settled {
    fn at(self, root: &Path) -> Self {
        Self {
            located: self.located.at(root),
            ..self
        }
    }
}

/// Where a session is judged whose agent works in this place. `quick`: what its newest row says
/// is enough. `by_id`: its id is no other session's, in whatever folder.
pub(crate) fn of_session(
    located: Located,
    session: &SessionId,
    (quick, by_id): (bool, bool),
    busy: Duration,
    patience: Deadline<'_>,
) -> Result<Settled, RuntimeError> {
    // Nobody has begun here where there is no state: it is made for one that does.
    let mut here = None;
    if located.place.state.is_dir() {
        let store = engine::store_within(&located.place, busy)?;
        if quick && says_here(&located, &store, session)? {
            return Ok(Settled { located, store });
        }
        let runtime = engine::runtime(&located, store.clone(), TaskDriver::Hook);
        if let Some(sealed) = runtime.seal_origin(session)? {
            let located = match sealed.root.filter(|root| stays(&located, root)) {
                Some(root) => located.at(&root),
                None => located,
            };
            return Ok(Settled { located, store });
        }
        here = Some(store);
    }
    if let Some(settled) = further_up(&located, session, busy)? {
        return Ok(settled);
    }
    if by_id && let Some(settled) = elsewhere(&located, session, busy)? {
        return Ok(settled);
    }
    session_index::enter(&located.place.state, session);
    let store = match here {
        Some(store) => store,
        None => engine::store_within(&located.place, busy)?,
    };
    engine::runtime(&located, store.clone(), TaskDriver::Hook)
        .make_other_sessions_detect_edits(session, patience)?;
    let located = located.settled()?;
    Ok(Settled { located, store })
}

/// Where a session is judged that begins in this place without a hook.
pub(crate) fn of_new(located: Located, session: &SessionId) -> Result<Located, RuntimeError> {
    if let Err(StoreError::Missing { .. }) = SqliteStore::open_store_read_only(&located.place.state)
    {
        return Ok(located);
    }
    let store = engine::store(&located.place)?;
    let never = std::sync::atomic::AtomicBool::new(false);
    let patience = Deadline {
        due_at: None,
        cancelled: &never,
    };
    engine::runtime(&located, store, TaskDriver::Hook)
        .make_other_sessions_detect_edits(session, patience)?;
    Ok(located.settled()?)
}

fn says_here(
    located: &Located,
    store: &SqliteStore,
    session: &SessionId,
) -> Result<bool, StoreError> {
    let newest = store.newest_task_summaries(Some(session), 1)?;
    Ok(newest
        .first()
        .is_some_and(|row| Path::new(&row.root) == located.place.root))
}

/// Whoever goes on in another checkout is judged in that one.
fn stays(located: &Located, root: &Path) -> bool {
    located.from.starts_with(root) || root.starts_with(&located.top)
}

/// A session that is known further up, or here without git, of whose folder this one is a part:
/// a repo that was made of it or inside of it, or taken away above it, is no way to a new policy.
fn further_up(
    located: &Located,
    session: &SessionId,
    busy: Duration,
) -> Result<Option<Settled>, RuntimeError> {
    for above in locate::with_states_above(located) {
        let known = known_in(above, session, busy)?;
        if let Some((known, root)) = known.filter(|(_, root)| located.from.starts_with(root)) {
            return Ok(Some(known.at(&root)));
        }
    }
    Ok(None)
}

/// A session that began in a folder which this one is no part of: its agent has moved.
fn elsewhere(
    located: &Located,
    session: &SessionId,
    busy: Duration,
) -> Result<Option<Settled>, RuntimeError> {
    let Some(state) = session_index::find(&located.place.state, session) else {
        return Ok(None);
    };
    let mut other = located.clone();
    other.place.state = state;
    let known = known_in(other, session, busy)?;
    // A folder that is gone cannot be judged.
    let there = known.filter(|(_, root)| root.is_dir());
    Ok(there.map(|(known, root)| known.at(&root)))
}

/// The session in this state folder, and the folder that its policy was sealed for, if both are
/// known.
fn known_in(
    located: Located,
    session: &SessionId,
    busy: Duration,
) -> Result<Option<(Settled, PathBuf)>, RuntimeError> {
    let knows = match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(store) => store.has_session(session)?,
        Err(_) => false,
    };
    if !knows {
        return Ok(None);
    }
    let store = engine::store_within(&located.place, busy)?;
    let runtime = engine::runtime(&located, store.clone(), TaskDriver::Hook);
    let sealed = runtime.seal_origin(session)?.unwrap_or_default();
    let settled = Settled { located, store };
    Ok(sealed.root.map(|root| (settled, root)))
}
