//! Functions of the host that have to be content before anything is accepted.

use std::sync::{Arc, Mutex, PoisonError};

use checkrein_models::ChatMessage;
use checkrein_runtime::config::ConfigError;
use checkrein_runtime::{HostFunctionVerdict, HostVerifiers};

use super::settings::agent_loop_setting_error;

/// What such a function sees of a run that says it is done.
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

/// A function with a name. It is called at every claim of done, on a thread where it may block; its
/// panic is inconclusive and blocks.
pub struct HardVerifier {
    name: String,
    check: Box<AgentLoopVerifierFn>,
}

impl HardVerifier {
    /// The agent is told the name, and the reason of what fails.
    pub fn new(
        name: &str,
        check: impl Fn(&DoneClaimContext) -> HostFunctionVerdict + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: Box::new(check),
        }
    }

    /// It is as it should be.
    pub fn passed() -> HostFunctionVerdict {
        HostFunctionVerdict {
            passed: true,
            reason: String::new(),
            can_retry: true,
        }
    }

    /// It is not. If the agent cannot mend it the run ends `verifier_failed_unrecoverable`.
    pub fn failed(reason: impl Into<String>, can_retry: bool) -> HostFunctionVerdict {
        HostFunctionVerdict {
            passed: false,
            reason: reason.into(),
            can_retry,
        }
    }
}

/// The state of a run, as its verifiers see it.
#[derive(Clone, Default)]
pub(super) struct SharedLoopState(Arc<Mutex<Arc<DoneClaimContext>>>);

impl SharedLoopState {
    pub(super) fn publish_loop_state_to_verifiers(&self, state: DoneClaimContext) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    fn current_agent_loop_state(&self) -> Arc<DoneClaimContext> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

pub(super) fn collect_library_host_verifiers(
    verifiers: &[Arc<HardVerifier>],
    view: &SharedLoopState,
) -> Result<HostVerifiers, ConfigError> {
    let mut hosts = HostVerifiers::default();
    for (at, verifier) in verifiers.iter().enumerate() {
        let before = verifiers.iter().take(at);
        if verifier.name.trim().is_empty() {
            return Err(agent_loop_setting_error("verifier", "has no name"));
        }
        if before.clone().any(|other| other.name == verifier.name) {
            let key = format!("verifier '{}'", verifier.name);
            return Err(agent_loop_setting_error(
                &key,
                "is there twice; give one another name",
            ));
        }
        let (of, view) = (verifier.clone(), view.clone());
        hosts = hosts.with_host_verifier(&verifier.name, move || {
            (of.check)(&view.current_agent_loop_state())
        });
    }
    Ok(hosts)
}
