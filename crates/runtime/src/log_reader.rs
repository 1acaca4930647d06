//! Loads a session's state from its log: the newest usable cache, then the events after it.

use checkrein_core::event::{self, Event};
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_store::{
    CachedSessionState, SessionTransactionView, Store, StoreError, UndecodedEvent,
};

use crate::error::RuntimeError;

/// The version of the state's shape. A cache of another version is not used.
pub(crate) const CORE_VERSION: u32 = 25;

/// The state at the tail, and the place of the cache that it was folded from.
pub(crate) struct LoadedSessionState {
    pub(crate) state: SessionState,
    pub(crate) cached_at: EventSeq,
}

pub(crate) fn load_session_state(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
) -> Result<LoadedSessionState, RuntimeError> {
    // A cache that cannot be used is no error: everything is folded from the start.
    let cached = tail
        .newest_state_cache()?
        .and_then(|(at, cache)| decode_cached_session_state(&cache).map(|state| (at, state)));
    let (cached_at, mut state) = cached.unwrap_or_default();
    for raw in tail.events_after(cached_at)? {
        fold_event(session, &mut state, &raw)?;
    }
    Ok(LoadedSessionState { state, cached_at })
}

/// Reads a session, with its state at one moment; `None` for a session that has no log.
pub(crate) fn query_session_view_and_state<T>(
    store: &dyn Store,
    session: &SessionId,
    find: impl FnOnce(&dyn SessionTransactionView, SessionState) -> Result<T, RuntimeError>,
) -> Result<Option<T>, RuntimeError> {
    // The store takes a closure that it could call again; `find` is called once.
    let (mut find, mut found) = (Some(find), Ok(None));
    store.with_session_read_transaction(session, &mut |tail| {
        if tail.last_seq() > EventSeq(0)
            && let Some(find) = find.take()
        {
            found = load_session_state(session, tail)
                .and_then(|loaded| find(tail, loaded.state).map(Some));
        }
        Ok(())
    })?;
    found
}

/// Folds one row in. An event of a newer version, which is not known here, is passed over.
pub(crate) fn fold_event(
    session: &SessionId,
    state: &mut SessionState,
    raw: &UndecodedEvent,
) -> Result<(), RuntimeError> {
    match decode_event(session, raw)? {
        Some(event) => state.apply_event(&event),
        // It counts as an event all the same, so that the places of later ones are right.
        None => state.last = state.last.successor_seq(),
    }
    Ok(())
}

/// Decodes the event of a row; `None` if its kind is unknown here.
pub(crate) fn decode_event(
    session: &SessionId,
    raw: &UndecodedEvent,
) -> Result<Option<Event>, RuntimeError> {
    match event::decode_event(&raw.payload) {
        Ok(event) => Ok(Some(event)),
        // A known kind that cannot be read is damage, and must not be passed over.
        Err(_) if !event::EVENT_KINDS.contains(&raw.kind.as_str()) => Ok(None),
        Err(source) => Err(RuntimeError::Log {
            session: session.clone(),
            seq: raw.seq,
            source,
        }),
    }
}

fn decode_cached_session_state(cache: &CachedSessionState) -> Option<SessionState> {
    if cache.core_version != CORE_VERSION {
        return None;
    }
    let state: SessionState = postcard::from_bytes(&cache.bytes).ok()?;
    // A cache that was made under another policy is not trusted.
    (state.policy == Some(cache.policy)).then_some(state)
}

/// The largest state that is cached. A larger one, of many stops that are judged at once, is folded
/// from an older cache until they are answered.
const MAX_CACHE_BYTES: usize = 16 * 1024;

pub(crate) fn encode_cached_session_state(state: &SessionState) -> Option<CachedSessionState> {
    let bytes = postcard::to_stdvec(state).ok()?;
    if bytes.len() > MAX_CACHE_BYTES {
        return None;
    }
    Some(CachedSessionState {
        core_version: CORE_VERSION,
        policy: state.policy?,
        bytes,
    })
}

pub(crate) fn load_recorded_policy(
    session: &SessionId,
    state: &SessionState,
    blob: impl FnOnce(&checkrein_core::digest::Digest) -> Result<Option<Vec<u8>>, StoreError>,
) -> Result<Policy, RuntimeError> {
    let broken = |what: String| RuntimeError::Policy {
        session: session.clone(),
        what,
    };
    let digest = state
        .policy
        .ok_or_else(|| broken("was never recorded".to_owned()))?;
    let bytes = blob(&digest)?.ok_or_else(|| broken(format!("({digest}) is not in the store")))?;
    Policy::from_sealed_policy_blob(&bytes)
        .map_err(|error| broken(format!("cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use checkrein_core::digest::Digest;
    use checkrein_core::ids::ScopeId;

    use super::*;

    #[test]
    fn a_state_is_cached_unless_it_is_large() {
        let mut state = SessionState::default();
        state.policy = Some(Digest::hash_bytes(b"policy"));
        let kept = encode_cached_session_state(&state)
            .and_then(|cache| decode_cached_session_state(&cache));
        assert_eq!(kept.as_ref(), Some(&state));
        state.cursors = vec![(ScopeId::main_scope(), "c".repeat(MAX_CACHE_BYTES))];
        assert!(encode_cached_session_state(&state).is_none());
    }
}
