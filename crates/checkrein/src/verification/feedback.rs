//! Renders the message that sends an agent back with its failures.

use std::fmt::Write;

use checkrein_models::quoted::{KeepTextStartOrEnd, clip_text};

use super::{FailedVerifiers, VerificationResult, Verifier};

/// Longest message of one verifier in bytes; of a longer one the end is kept.
const MAX_MESSAGE: usize = 8 * 1024;

pub(super) fn failure_feedback<M>(
    verifiers: &[Verifier<M>],
    failing: &FailedVerifiers,
    retry: u32,
    most: u32,
) -> String {
    let mut text = format!("Verification failed (attempt {retry} of {most}). These checks fail:\n");
    for (at, result) in failing {
        let name = verifiers.get(*at).map_or("", Verifier::name);
        if let VerificationResult::Failed(message) = result {
            let message = clip_text(message.trim_end(), MAX_MESSAGE, KeepTextStartOrEnd::End);
            // Writing to a string does not fail.
            let _ = writeln!(text, "- {name}: {message}");
        }
    }
    text.push_str("Fix only these, and change nothing else.");
    text
}
