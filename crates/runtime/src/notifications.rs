//! Finds approval requests that somebody has to be notified of, and records the outcome. The
//! command that notifies is the one of the policy that the session is sealed with, whoever asks for
//! it.

use checkrein_store::{AppendBatch, Store, StoreError, StoredApprovalRequest};

use crate::error::RuntimeError;
use crate::{clock, log_reader};

/// Returns requests that wait and that nobody was notified of, oldest first, each with its command.
///
/// # Errors
/// If the store or a log cannot be read.
pub fn approvals_awaiting_notification(
    store: &dyn Store,
) -> Result<Vec<(StoredApprovalRequest, String)>, RuntimeError> {
    let now = clock::now_millis();
    let mut rows = store.list_approvals()?;
    rows.retain(|row| row.approval_needs_notification(now));
    // The store lists the newest first.
    rows.reverse();
    let mut found = Vec::new();
    for row in rows {
        // A question of a damaged session must not keep the others from being told.
        match approval_notify_command(store, &row) {
            Ok(Some(command)) => found.push((row, command)),
            Ok(None) | Err(RuntimeError::Log { .. } | RuntimeError::Policy { .. }) => {}
            Err(RuntimeError::Store(StoreError::Corrupt { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn approval_notify_command(
    store: &dyn Store,
    row: &StoredApprovalRequest,
) -> Result<Option<String>, RuntimeError> {
    let notify = log_reader::query_session_view_and_state(store, &row.session, |tail, state| {
        let policy = log_reader::load_recorded_policy(&row.session, &state, |digest| {
            tail.read_stored_blob(digest)
        })?;
        Ok(policy.approvals.notify)
    })?;
    Ok(notify.flatten())
}

/// Records that a person was notified of these.
///
/// # Errors
/// If the store cannot be written.
pub fn mark_approvals_notified(
    store: &dyn Store,
    rows: &[StoredApprovalRequest],
) -> Result<(), RuntimeError> {
    let now = clock::now_millis();
    record_notification_outcomes(store, rows, &|row| StoredApprovalRequest {
        notified_at: Some(now),
        ..row
    })
}

/// Records why nobody could be notified of these.
///
/// # Errors
/// If the store cannot be written.
pub fn record_approval_notify_failure(
    store: &dyn Store,
    rows: &[StoredApprovalRequest],
    why: &str,
) -> Result<(), RuntimeError> {
    record_notification_outcomes(store, rows, &|row| StoredApprovalRequest {
        notification_error: Some(why.to_owned()),
        ..row
    })
}

fn record_notification_outcomes(
    store: &dyn Store,
    rows: &[StoredApprovalRequest],
    noted: &dyn Fn(StoredApprovalRequest) -> StoredApprovalRequest,
) -> Result<(), RuntimeError> {
    for row in rows {
        store.transact_on_session(&row.session, &mut |tail| {
            let known = tail.newest_approval_request_for_key(&row.key)?;
            // The question may have been asked anew meanwhile: then this outcome is about an older
            // one.
            let known = known.filter(|known| known.nth == row.nth);
            Ok(known.map(|known| AppendBatch {
                approvals: vec![noted(known)],
                durable: true,
                ..AppendBatch::default()
            }))
        })?;
    }
    Ok(())
}
