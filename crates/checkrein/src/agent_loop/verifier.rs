//! Functions of the host that have to be content before anything is accepted.

use std::sync::{Arc, Mutex, PoisonError};

use checkrein_models::ChatMessage;
use checkrein_runtime::config::ConfigError;
use checkrein_runtime::{HostFunctionVerdict, HostVerifiers};

use super::settings::wrong;

/// What such a function sees of a run that says it is done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoopState {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// What the model said last.
    pub output: String,
    /// Model answers so far.
    pub rounds: u32,
}

type Check = dyn Fn(&LoopState) -> HostFunctionVerdict + Send + Sync;

/// A function with a name. It is called at every claim of done, on a thread where it may block; its
/// panic is inconclusive and blocks.
pub struct HardVerifier {
    name: String,
    check: Box<Check>,
}

impl HardVerifier {
    /// The agent is told the name, and the reason of what fails.
    pub fn new(
        name: &str,
        check: impl Fn(&LoopState) -> HostFunctionVerdict + Send + Sync + 'static,
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
pub(super) struct View(Arc<Mutex<Arc<LoopState>>>);

impl View {
    pub(super) fn show(&self, state: LoopState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    fn now(&self) -> Arc<LoopState> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

pub(super) fn hosts(
    verifiers: &[Arc<HardVerifier>],
    view: &View,
) -> Result<HostVerifiers, ConfigError> {
    let mut hosts = HostVerifiers::default();
    for (at, verifier) in verifiers.iter().enumerate() {
        let before = verifiers.iter().take(at);
        if verifier.name.trim().is_empty() {
            return Err(wrong("verifier", "has no name"));
        }
        if before.clone().any(|other| other.name == verifier.name) {
            let key = format!("verifier '{}'", verifier.name);
            return Err(wrong(&key, "is there twice; give one another name"));
        }
        let (of, view) = (verifier.clone(), view.clone());
        hosts = hosts.with_host_verifier(&verifier.name, move || (of.check)(&view.now()));
    }
    Ok(hosts)
}
