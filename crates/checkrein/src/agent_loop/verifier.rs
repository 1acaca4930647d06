//! Turns functions of the host into required verifiers: nothing is accepted before they pass.

use std::sync::{Arc, Mutex, PoisonError};

use checkrein_models::ChatMessage;
use checkrein_runtime::config::ConfigError;
use checkrein_runtime::{HostFunctionVerdict, HostVerifiers};

use super::settings::agent_loop_setting_error;

/// The state of a run at a claim of done, as a verifier sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DoneClaimContext {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// What the model said last.
    pub output: String,
    /// Model answers so far.
    pub rounds: u32,
}

type AgentLoopVerifierFn = dyn Fn(&DoneClaimContext) -> HostFunctionVerdict + Send + Sync;

/// A named function that is called at every claim of done, on a thread where it may block. A panic
/// counts as inconclusive and blocks the stop.
pub struct HardVerifier {
    name: String,
    check: Box<AgentLoopVerifierFn>,
}

impl HardVerifier {
    /// Creates a verifier. A failure sends its name and its reason back to the agent.
    pub fn new(
        name: &str,
        check: impl Fn(&DoneClaimContext) -> HostFunctionVerdict + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: Box::new(check),
        }
    }

    /// Returns a passing verdict.
    pub fn passed() -> HostFunctionVerdict {
        HostFunctionVerdict {
            passed: true,
            reason: String::new(),
            can_retry: true,
        }
    }

    /// Returns a failing verdict. Without `can_retry` the run ends with
    /// `verifier_failed_unrecoverable`.
    pub fn failed(reason: impl Into<String>, can_retry: bool) -> HostFunctionVerdict {
        HostFunctionVerdict {
            passed: false,
            reason: reason.into(),
            can_retry,
        }
    }
}

/// The state of a run, shared with its verifiers.
#[derive(Clone, Default)]
pub(super) struct RunStateForVerifiers(Arc<Mutex<Arc<DoneClaimContext>>>);

impl RunStateForVerifiers {
    pub(super) fn publish_run_state_to_verifiers(&self, state: DoneClaimContext) {
        // A new `Arc` each time: a verifier that still runs keeps the state that it was called
        // with.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    fn current_done_claim_context(&self) -> Arc<DoneClaimContext> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

pub(super) fn collect_library_host_verifiers(
    verifiers: &[Arc<HardVerifier>],
    view: &RunStateForVerifiers,
) -> Result<HostVerifiers, ConfigError> {
    let mut hosts = HostVerifiers::default();
    for (at, verifier) in verifiers.iter().enumerate() {
        let before = verifiers.iter().take(at);
        if verifier.name.trim().is_empty() {
            return Err(agent_loop_setting_error("verifier", "has no name"));
        }
        // Verdicts are stored by name: two verifiers with one name would answer for each other.
        if before.clone().any(|other| other.name == verifier.name) {
            let key = format!("verifier '{}'", verifier.name);
            return Err(agent_loop_setting_error(
                &key,
                "is there twice; give one another name",
            ));
        }
        let (of, view) = (verifier.clone(), view.clone());
        hosts = hosts.with_host_verifier(&verifier.name, move || {
            (of.check)(&view.current_done_claim_context())
        });
    }
    Ok(hosts)
}
