//! The hash chain over a session's log. Each row's link covers the row and the link before it, so a
//! changed, missing or moved row is found at its position.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};

/// The result of verifying a session's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashChainStatus {
    /// Every link is correct.
    Whole {
        /// The newest event; `EventSeq(0)` for a session without events.
        last: EventSeq,
        /// Link of the newest event. Compared with a copy kept elsewhere, it also shows a lost end
        /// or a rewritten log.
        head: Digest,
    },
    /// The first place where a row is missing or not what was appended.
    Broken {
        /// That place.
        at: EventSeq,
    },
}

/// A row as the chain covers it.
pub(crate) struct HashChainRowContent<'a> {
    pub(crate) seq: EventSeq,
    pub(crate) kind: &'a str,
    pub(crate) payload: &'a [u8],
    pub(crate) key: Option<&'a str>,
}

/// Returns the digest that the first link follows. It contains the session, so that rows of one log
/// are no valid chain in another.
pub(crate) fn hash_chain_origin(session: &SessionId) -> Digest {
    Digest::hash_parts([b"checkrein log 1".as_slice(), session.as_str().as_bytes()])
}

/// Returns the link of `row` after `previous`.
pub(crate) fn next_hash_chain_link(previous: &Digest, row: &HashChainRowContent<'_>) -> Digest {
    let seq = row.seq.0.to_le_bytes();
    let parts = [
        previous.as_bytes().as_slice(),
        &seq,
        row.kind.as_bytes(),
        row.payload,
    ];
    // A row without a key has one part fewer, which no key can imitate, because each part is hashed
    // with its length.
    Digest::hash_parts(parts.into_iter().chain(row.key.map(str::as_bytes)))
}

/// Verifies rows in log order.
pub(crate) struct HashChainWalk {
    last: EventSeq,
    head: Digest,
    broken: Option<EventSeq>,
}

impl HashChainWalk {
    pub(crate) fn new(session: &SessionId) -> Self {
        Self {
            last: EventSeq(0),
            head: hash_chain_origin(session),
            broken: None,
        }
    }

    /// Takes the next row and the link stored with it; false once the chain is broken.
    pub(crate) fn verify_next_hash_chain_row(
        &mut self,
        row: &HashChainRowContent<'_>,
        stored: &[u8],
    ) -> bool {
        let place = self.last.successor_seq();
        let head = next_hash_chain_link(&self.head, row);
        // The expected position is reported, so a missing row shows at its own place and not at the
        // next row's.
        if row.seq != place || stored != head.as_bytes().as_slice() {
            self.mark_chain_broken();
            return false;
        }
        self.last = place;
        self.head = head;
        true
    }

    /// The next row is not what was appended.
    pub(crate) fn mark_chain_broken(&mut self) {
        self.broken = Some(self.last.successor_seq());
    }

    pub(crate) fn into_hash_chain_status(self) -> HashChainStatus {
        match self.broken {
            Some(at) => HashChainStatus::Broken { at },
            None => HashChainStatus::Whole {
                last: self.last,
                head: self.head,
            },
        }
    }
}
