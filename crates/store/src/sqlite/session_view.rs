//! The [`SessionTransactionView`] of the SQLite store, inside a transaction.

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId};
use rusqlite::Connection;

use crate::sqlite::{approvals, queries, scopes, sqlite_error};
use crate::{
    CachedSessionState, EvidenceBytesWithFinality, ScopeRow, SessionTransactionView, StoreError,
    StoredApprovalRequest, StoredCheckRequest, UndecodedEvent, chain,
};

pub(crate) struct SqliteSessionView<'a> {
    conn: &'a Connection,
    file: &'a Path,
    session: &'a SessionId,
    /// Row id of the session, once it has events.
    pub(crate) id: Option<i64>,
    pub(crate) last: EventSeq,
    pub(crate) head: Digest,
    cache: Option<(EventSeq, CachedSessionState)>,
}

impl<'a> SqliteSessionView<'a> {
    /// Reads the head of the session. `conn` must be in a transaction.
    pub(crate) fn session_view_in_transaction(
        conn: &'a Connection,
        file: &'a Path,
        session: &'a SessionId,
    ) -> rusqlite::Result<Self> {
        let tail = Self {
            conn,
            file,
            session,
            id: None,
            last: EventSeq(0),
            head: chain::hash_chain_origin(session),
            cache: None,
        };
        Ok(match queries::read_session_head(conn, session)? {
            Some(stand) => Self {
                id: Some(stand.id),
                last: stand.last,
                head: stand.head,
                cache: stand.cache,
                ..tail
            },
            // A session without events may still have a row, made by a batch that had none.
            None => Self {
                id: queries::session_row_id(conn, session)?,
                ..tail
            },
        })
    }

    fn query_session_row_or_default<T>(
        &self,
        none: T,
        query: impl FnOnce(&Connection, i64) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        match self.id {
            Some(id) => query(self.conn, id)
                .map_err(|error| sqlite_error::sqlite_to_store_error(self.file, error)),
            // A session without a row has nothing to query.
            None => Ok(none),
        }
    }
}

impl SessionTransactionView for SqliteSessionView<'_> {
    fn last_seq(&self) -> EventSeq {
        self.last
    }

    fn newest_state_cache(&self) -> Result<Option<(EventSeq, CachedSessionState)>, StoreError> {
        Ok(self.cache.clone())
    }

    fn events_after(&self, after: EventSeq) -> Result<Vec<UndecodedEvent>, StoreError> {
        self.query_session_row_or_default(Vec::new(), |conn, id| {
            queries::read_events(conn, id, after)
        })
    }

    fn find_seq_by_idempotency_key(&self, key: &str) -> Result<Option<EventSeq>, StoreError> {
        self.query_session_row_or_default(None, |conn, id| {
            queries::find_seq_by_idempotency_key(conn, id, key)
        })
    }

    fn pending_effects(&self) -> Result<Vec<StoredCheckRequest>, StoreError> {
        self.query_session_row_or_default(Vec::new(), queries::pending_effects)
    }

    fn read_scope_row(&self, scope: &ScopeId) -> Result<Option<ScopeRow>, StoreError> {
        // Scopes are keyed by the session's name and not by its row id, which an older build may
        // give to another session.
        scopes::find_scope_row(self.conn, self.session, scope)
            .map_err(|error| sqlite_error::sqlite_to_store_error(self.file, error))
    }

    fn newest_approval_request_for_key(
        &self,
        key: &Digest,
    ) -> Result<Option<StoredApprovalRequest>, StoreError> {
        approvals::newest_approval_with_key(self.conn, key)
            .map_err(|error| sqlite_error::sqlite_to_store_error(self.file, error))
    }

    fn read_stored_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = queries::read_blob_from_store(self.conn, digest)
            .map_err(|error| sqlite_error::sqlite_to_store_error(self.file, error))?;
        queries::blob_if_digest_matches(self.file, digest, bytes)
    }

    fn read_evidence(&self, key: &Digest) -> Result<Option<EvidenceBytesWithFinality>, StoreError> {
        queries::read_evidence(self.conn, key)
            .map_err(|error| sqlite_error::sqlite_to_store_error(self.file, error))
    }
}
