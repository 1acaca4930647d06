//! Waits for several verifiers at once, with whatever executor the caller has.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::VerificationResult;
use super::verifier::StartedVerifier;

/// Their results, in their order.
pub(super) async fn await_all_verifications(
    mut checks: Vec<StartedVerifier<'_>>,
) -> Vec<VerificationResult> {
    let mut results: Vec<Option<VerificationResult>> = checks.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut waiting = false;
        for (check, result) in checks.iter_mut().zip(&mut results) {
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
    // Each has one: the loop above ends no sooner.
    results.into_iter().flatten().collect()
}
