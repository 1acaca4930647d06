//! Decides which folder a session is judged in: the one in which its policy was sealed, wherever
//! its agent works by now and whatever configs and repos are created there. A session that begins
//! is judged where the nearest config lies.
//!
//! A session is looked for in the folder that its agent works in, further up, and then by its id.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::ids::SessionId;
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::{Deadline, RuntimeError};
use checkrein_store::{SqliteStore, Store as _, StoreError};

use crate::commands::engine;
use crate::locate::{self, ProjectLocation};
use crate::session_index;

/// A place with its store.
pub(crate) struct LocatedProjectWithStore {
    pub(crate) located: ProjectLocation,
    pub(crate) store: Arc<SqliteStore>,
}

impl LocatedProjectWithStore {
    fn with_project_root(self, root: &Path) -> Self {
        Self {
            located: self.located.with_project_root(root),
            ..self
        }
    }
}

/// Returns where a session is judged whose agent works in this place. `quick`: its newest row is
/// enough. `by_id`: no other session, in whatever folder, has its id.
pub(crate) fn locate_session_store(
    located: ProjectLocation,
    session: &SessionId,
    (quick, by_id): (bool, bool),
    busy: Duration,
    patience: Deadline<'_>,
) -> Result<LocatedProjectWithStore, RuntimeError> {
    // Without a state folder no session has begun here. It is created only for one that does.
    let mut here = None;
    if located.place.state.is_dir() {
        // The usual case first: the session is known here. `quick` spares a hook the reading of its
        // events.
        let store = engine::open_store_with_timeout(&located.place, busy)?;
        if quick && is_newest_task_root(&located, &store, session)? {
            return Ok(LocatedProjectWithStore { located, store });
        }
        let runtime =
            engine::build_checkrein_runtime(&located, store.clone(), TaskDriverKind::Hook);
        if let Some(sealed) = runtime.root_and_profile_at_seal(session)? {
            let located = match sealed.root.filter(|root| is_same_checkout(&located, root)) {
                Some(root) => located.with_project_root(&root),
                None => located,
            };
            return Ok(LocatedProjectWithStore { located, store });
        }
        here = Some(store);
    }
    if let Some(settled) = find_session_in_parent_folders(&located, session, busy)? {
        return Ok(settled);
    }
    if by_id && let Some(settled) = locate_session_in_other_folder(&located, session, busy)? {
        return Ok(settled);
    }
    // No place knows the session, so it begins here. The index is written first: a second hook of
    // the same session then finds this place.
    session_index::add_session_index_entry(&located.place.state, session);
    let store = match here {
        Some(store) => store,
        None => engine::open_store_with_timeout(&located.place, busy)?,
    };
    engine::build_checkrein_runtime(&located, store.clone(), TaskDriverKind::Hook)
        .make_other_sessions_detect_edits(session, patience)?;
    // Only now, since open sessions have just recorded the edits that this depends on.
    let located = located.location_for_new_session()?;
    Ok(LocatedProjectWithStore { located, store })
}

/// Returns where a session is judged that begins in this place without a hook.
pub(crate) fn project_location_for_new_session(
    located: ProjectLocation,
    session: &SessionId,
) -> Result<ProjectLocation, RuntimeError> {
    if let Err(StoreError::Missing { .. }) = SqliteStore::open_store_read_only(&located.place.state)
    {
        return Ok(located);
    }
    let store = engine::open_store(&located.place)?;
    let never = std::sync::atomic::AtomicBool::new(false);
    let patience = Deadline {
        due_at: None,
        cancelled: &never,
    };
    engine::build_checkrein_runtime(&located, store, TaskDriverKind::Hook)
        .make_other_sessions_detect_edits(session, patience)?;
    Ok(located.location_for_new_session()?)
}

fn is_newest_task_root(
    located: &ProjectLocation,
    store: &SqliteStore,
    session: &SessionId,
) -> Result<bool, StoreError> {
    let newest = store.newest_task_summaries(Some(session), 1)?;
    Ok(newest
        .first()
        .is_some_and(|row| Path::new(&row.root) == located.place.root))
}

/// Returns whether a root belongs to this checkout. A session that goes on in another checkout is
/// judged there.
fn is_same_checkout(located: &ProjectLocation, root: &Path) -> bool {
    located.start_folder.starts_with(root) || root.starts_with(&located.top)
}

/// Finds a session that is known further up, or here without git, and in whose folder this one
/// lies: creating a repo in it, or removing the one above it, is no way to a new policy.
fn find_session_in_parent_folders(
    located: &ProjectLocation,
    session: &SessionId,
    busy: Duration,
) -> Result<Option<LocatedProjectWithStore>, RuntimeError> {
    for above in locate::ancestor_state_locations(located) {
        let known = find_session_in_state_folder(above, session, busy)?;
        if let Some((known, root)) =
            known.filter(|(_, root)| located.start_folder.starts_with(root))
        {
            return Ok(Some(known.with_project_root(&root)));
        }
    }
    Ok(None)
}

/// Finds a session, by its id, that began in another folder: its agent has moved.
fn locate_session_in_other_folder(
    located: &ProjectLocation,
    session: &SessionId,
    busy: Duration,
) -> Result<Option<LocatedProjectWithStore>, RuntimeError> {
    let Some(state) =
        session_index::find_other_state_folder_of_session(&located.place.state, session)
    else {
        return Ok(None);
    };
    let mut other = located.clone();
    other.place.state = state;
    let known = find_session_in_state_folder(other, session, busy)?;
    // A folder that is gone cannot be judged, so the session begins anew here.
    let there = known.filter(|(_, root)| root.is_dir());
    Ok(there.map(|(known, root)| known.with_project_root(&root)))
}

/// Returns the session in this state folder and the folder that its policy was sealed for, if both
/// are known.
fn find_session_in_state_folder(
    located: ProjectLocation,
    session: &SessionId,
    busy: Duration,
) -> Result<Option<(LocatedProjectWithStore, PathBuf)>, RuntimeError> {
    let knows = match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(store) => store.has_session(session)?,
        // A store that cannot be opened knows nobody. An error here would stop a session that is
        // not its own.
        Err(_) => false,
    };
    if !knows {
        return Ok(None);
    }
    let store = engine::open_store_with_timeout(&located.place, busy)?;
    let runtime = engine::build_checkrein_runtime(&located, store.clone(), TaskDriverKind::Hook);
    let sealed = runtime
        .root_and_profile_at_seal(session)?
        .unwrap_or_default();
    let settled = LocatedProjectWithStore { located, store };
    Ok(sealed.root.map(|root| (settled, root)))
}
