//! A session inside a transaction.

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId};
use rusqlite::Connection;

use crate::sqlite::{approvals, fault, read, scopes};
use crate::{
    Approval, EffectRow, Evidence, RawEvent, ScopeRow, StateCache, StoreError, Tail, chain,
};

pub(crate) struct SqliteTail<'a> {
    conn: &'a Connection,
    file: &'a Path,
    session: &'a SessionId,
    /// Row id of the session, once it has events.
    pub(crate) id: Option<i64>,
    pub(crate) last: EventSeq,
    pub(crate) head: Digest,
    cache: Option<(EventSeq, StateCache)>,
}

impl<'a> SqliteTail<'a> {
    /// Reads where the session stands; `conn` must be in a transaction.
    pub(crate) fn read(
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
            head: chain::origin(session),
            cache: None,
        };
        Ok(match read::stand(conn, session)? {
            Some(stand) => Self {
                id: Some(stand.id),
                last: stand.last,
                head: stand.head,
                cache: stand.cache,
                ..tail
            },
            // Without events there may still be a row, of a batch that had none.
            None => Self {
                id: read::session(conn, session)?,
                ..tail
            },
        })
    }

    fn get<T>(
        &self,
        none: T,
        query: impl FnOnce(&Connection, i64) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        match self.id {
            Some(id) => query(self.conn, id).map_err(|error| fault::of(self.file, error)),
            None => Ok(none),
        }
    }
}

impl Tail for SqliteTail<'_> {
    fn last(&self) -> EventSeq {
        self.last
    }

    fn cache(&self) -> Result<Option<(EventSeq, StateCache)>, StoreError> {
        Ok(self.cache.clone())
    }

    fn events_after(&self, after: EventSeq) -> Result<Vec<RawEvent>, StoreError> {
        self.get(Vec::new(), |conn, id| read::events(conn, id, after))
    }

    fn find_key(&self, key: &str) -> Result<Option<EventSeq>, StoreError> {
        self.get(None, |conn, id| read::find_key(conn, id, key))
    }

    fn pending(&self) -> Result<Vec<EffectRow>, StoreError> {
        self.get(Vec::new(), read::pending)
    }

    fn scope(&self, scope: &ScopeId) -> Result<Option<ScopeRow>, StoreError> {
        scopes::find(self.conn, self.session, scope).map_err(|error| fault::of(self.file, error))
    }

    fn approval(&self, key: &Digest) -> Result<Option<Approval>, StoreError> {
        approvals::newest(self.conn, key).map_err(|error| fault::of(self.file, error))
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = read::blob(self.conn, digest).map_err(|error| fault::of(self.file, error))?;
        read::checked(self.file, digest, bytes)
    }

    fn evidence(&self, key: &Digest) -> Result<Option<Evidence>, StoreError> {
        read::evidence(self.conn, key).map_err(|error| fault::of(self.file, error))
    }
}
