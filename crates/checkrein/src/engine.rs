//! Provides [`Engine`], which judges agents that work in one folder and opens their sessions.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, SessionId};
use checkrein_core::input::{Input, SessionStartKind, SessionStarted};
use checkrein_runtime::config::{
    self, CompiledPolicy, ConfigError, NamedConfigText, TaskDriverKind,
};
use checkrein_runtime::{
    Deadline, FrontEndMiddlewareStages, GuardedFilesReader, HostVerifiers, MiddlewareRegistry,
    PolicyCompileFn, Runtime, RuntimeError, TreeAndStateFolder, VerificationProgress,
};
use checkrein_store::{MemoryStore, Store};

use crate::Session;

/// Called with the progress of checks that run.
pub(crate) type CheckProgressHandler = dyn Fn(VerificationProgress) + Send + Sync;

/// Judges agents that work in one folder. Cheap to share; see the crate's example.
pub struct Engine {
    runtime: Runtime,
    progress_handler: Box<CheckProgressHandler>,
    cancel_flag: CancelFlag,
    sessions: AtomicU64,
    layers: MiddlewareRegistry,
}

/// A flag that cancels running checks when it is set.
enum CancelFlag {
    OfProcess(&'static AtomicBool),
    Shared(Arc<AtomicBool>),
}

/// The flag of an engine that was given none; it is never set.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Engine {
    /// An engine over a store; `seal` compiles the policy of each new session.
    pub fn new(
        store: Arc<dyn Store>,
        place: TreeAndStateFolder,
        seal: Box<PolicyCompileFn>,
    ) -> Self {
        let layers = MiddlewareRegistry::default();
        let runtime = Runtime::new(store, place, seal)
            .with_middleware_stages(FrontEndMiddlewareStages::LIBRARY);
        Self {
            runtime: runtime.with_middleware(layers.clone()),
            layers,
            progress_handler: Box::new(|_| {}),
            cancel_flag: CancelFlag::OfProcess(&NEVER),
            sessions: AtomicU64::new(0),
        }
    }

    /// Creates an engine whose store lives in memory. `config` is the text of a `checkrein.toml`; a
    /// mistake in it is reported when the first session begins.
    pub fn in_memory(root: &Path, config: Option<&str>) -> Self {
        let place = TreeAndStateFolder::new_with_per_process_state_folder(root);
        let root = place.root.clone();
        let source = config.map(|text| NamedConfigText {
            name: root.join("checkrein.toml"),
            text: text.to_owned(),
        });
        let seal = move || {
            config::compile_repo_and_personal_config(source.as_ref(), None, TaskDriverKind::Run)
        };
        Self::new(Arc::new(MemoryStore::new()), place, Box::new(seal))
    }

    /// Watches files whose edits could loosen what sessions are judged by.
    #[must_use]
    pub fn with_guarded_files(mut self, look: Box<GuardedFilesReader>) -> Self {
        self.runtime = self.runtime.with_guarded_files(look);
        self
    }

    /// Calls `watch` while checks run, from several threads.
    #[must_use]
    pub fn with_progress_callback(
        mut self,
        watch: impl Fn(VerificationProgress) + Send + Sync + 'static,
    ) -> Self {
        self.progress_handler = Box::new(watch);
        self
    }

    /// Sets the protection level that listings show.
    #[must_use]
    pub fn with_protection_level(mut self, level: &'static str) -> Self {
        self.runtime = self.runtime.with_protection_level(level);
        self
    }

    /// Checks are killed, and errors returned, once the flag is set.
    #[must_use]
    pub fn with_cancel_flag(mut self, flag: &'static AtomicBool) -> Self {
        self.cancel_flag = CancelFlag::OfProcess(flag);
        self
    }

    /// Like [`Self::with_cancel_flag`], for a flag that does not live as long as the process.
    #[must_use]
    pub fn with_shared_cancel_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel_flag = CancelFlag::Shared(flag);
        self
    }

    pub(crate) fn with_policy_override(
        mut self,
        change: impl Fn(&mut CompiledPolicy) -> Result<(), ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.runtime = self.runtime.with_new_session_policy_modifier(change);
        self
    }

    /// The layers of middleware beside those of its config: register and remove them at any time.
    pub fn middleware_registry(&self) -> &MiddlewareRegistry {
        &self.layers
    }

    /// Adds the layers of this registry.
    #[must_use]
    pub fn with_middleware(mut self, layers: MiddlewareRegistry) -> Self {
        self.runtime = self.runtime.with_middleware(layers);
        self
    }

    /// Sets the stages at which layers are asked, for a host that cannot carry out their answers at
    /// every stage.
    #[must_use]
    pub fn with_middleware_stages(mut self, stages: FrontEndMiddlewareStages) -> Self {
        self.runtime = self.runtime.with_middleware_stages(stages);
        self
    }

    pub(crate) fn with_host_verifiers(mut self, hosts: HostVerifiers) -> Self {
        self.runtime = self.runtime.with_host_verifiers(hosts);
        self
    }

    /// Begins a session and seals its policy; with it come warnings about the config.
    ///
    /// # Errors
    /// If the config has a mistake, or the store cannot be written.
    pub fn session(&self, agent: &str) -> Result<(Session<'_>, Vec<String>), RuntimeError> {
        self.begin_or_resume_session_by_id(agent, self.new_session_id(), SessionStartKind::Startup)
    }

    /// Begins or resumes the session that an agent knows by an id of its own.
    ///
    /// # Errors
    /// If the config has a mistake, or the store cannot be written.
    pub fn begin_or_resume_session_by_id(
        &self,
        agent: &str,
        id: SessionId,
        how: SessionStartKind,
    ) -> Result<(Session<'_>, Vec<String>), RuntimeError> {
        let patience = Deadline {
            due_at: None,
            cancelled: self.cancel_flag(),
        };
        // Edits of guarded files during open tasks must be found before the new session seals its
        // policy.
        self.runtime
            .make_other_sessions_detect_edits(&id, patience)?;
        let session = Session::new(self, id);
        let started = session.submit_agent_event(Input::SessionStarted(SessionStarted {
            agent: AgentName::new(agent),
            how,
            parent: None,
            tokens: None,
        }))?;
        Ok((session, started.warnings))
    }

    pub(crate) fn inner_runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn progress_handler(&self) -> &CheckProgressHandler {
        &*self.progress_handler
    }

    pub(crate) fn cancel_flag(&self) -> &AtomicBool {
        match &self.cancel_flag {
            CancelFlag::OfProcess(flag) => flag,
            CancelFlag::Shared(flag) => flag,
        }
    }

    fn new_session_id(&self) -> SessionId {
        let nth = self.sessions.fetch_add(1, Ordering::Relaxed);
        // Unique among processes and engines: time, process id, counter and the address of this
        // engine.
        let seed = format!(
            "{} {} {nth} {self:p}",
            checkrein_runtime::now_millis().0,
            std::process::id()
        );
        let mut id = Digest::hash_bytes(seed.as_bytes()).to_hex();
        // 80 bits: short enough for people, and enough to be unique in a store.
        id.truncate(20);
        SessionId::new(id)
    }
}
