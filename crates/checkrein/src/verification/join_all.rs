//! Awaits several verifiers at once, on any executor.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::VerificationResult;
use super::verifier::StartedVerifier;

/// Awaits all checks and returns their results in the same order.
pub(super) async fn await_all_verifications(
    mut checks: Vec<StartedVerifier<'_>>,
) -> Vec<VerificationResult> {
    let mut results: Vec<Option<VerificationResult>> = checks.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut waiting = false;
        for (check, result) in checks.iter_mut().zip(&mut results) {
            // A future must not be polled again after it was ready.
            if result.is_some() {
                continue;
            }
            match Pin::new(check).poll(context) {
                Poll::Ready(done) => *result = Some(done),
                Poll::Pending => waiting = true,
            }
        }
        if waiting {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    // Every check has a result: the future above is not ready before.
    results.into_iter().flatten().collect()
}
