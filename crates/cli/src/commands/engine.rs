//! Opens the store and builds the runtime for a place.

use std::sync::Arc;
use std::time::Duration;

use checkrein::{Engine, VerificationProgress};
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::{
    FallbackPoliciesForBrokenConfig, FrontEndMiddlewareStages, GuardedFilesReader, PolicyCompileFn,
    Runtime, TreeAndStateFolder,
};
use checkrein_store::{SqliteStore, SqliteStoreOptions, StoreError};

use crate::locate::ProjectLocation;
use crate::{guarded_files, policy_sources, signals};

/// Opens the store of this place, and makes it if it is missing.
pub(crate) fn open_store(place: &TreeAndStateFolder) -> Result<Arc<SqliteStore>, StoreError> {
    SqliteStore::open_store_in_folder(&place.state).map(Arc::new)
}

/// Opens the store for callers that cannot wait long while others keep it busy.
pub(crate) fn open_store_with_timeout(
    place: &TreeAndStateFolder,
    patience: Duration,
) -> Result<Arc<SqliteStore>, StoreError> {
    SqliteStore::open_store_with_options(
        &place.state,
        SqliteStoreOptions {
            busy_timeout: patience,
        },
    )
    .map(Arc::new)
}

/// Builds a runtime that seals new sessions with this place's config.
pub(crate) fn build_checkrein_runtime(
    located: &ProjectLocation,
    store: Arc<SqliteStore>,
    driver: TaskDriverKind,
) -> Runtime {
    let from = located.clone();
    // Called only when a session is sealed: later hooks of it read neither TOML nor rules.
    let seal = move || from.compile_policy_for_new_session(driver);
    let runtime = Runtime::new(store, located.place.clone(), Box::new(seal))
        .with_guarded_files(guarded_files_hasher(located));
    match driver {
        TaskDriverKind::Hook => {
            runtime.with_earlier_policy_fallback(config_failure_fallback(located))
        }
        // `run` does not start with a config that cannot be used, so it needs no fallback.
        TaskDriverKind::Run => runtime,
    }
}

/// Returns what a session that begins here uses if the config cannot be used.
fn config_failure_fallback(located: &ProjectLocation) -> FallbackPoliciesForBrokenConfig {
    let (held, counts) = (located.clone(), located.clone());
    FallbackPoliciesForBrokenConfig {
        profile: located.profile_for_new_session(),
        require_trust: located.require_trust,
        held: Box::new(move || held.compile_config_held_despite_edit()),
        may_use: Box::new(move |texts| policy_sources::are_config_sources_trusted(&counts, texts)),
    }
}

fn guarded_files_hasher(located: &ProjectLocation) -> Box<GuardedFilesReader> {
    let located = located.clone();
    Box::new(move |root| guarded_files::hash_guarded_files(&located, root))
}

/// Builds a runtime for a hook of an agent that `run` has started: it seals as `run` would.
pub(crate) fn build_hook_runtime_under_run(
    located: &ProjectLocation,
    store: Arc<SqliteStore>,
    attempts: Option<u32>,
) -> Runtime {
    Runtime::new(
        store,
        located.place.clone(),
        policy_compiler_for_run(located, attempts),
    )
    .with_guarded_files(guarded_files_hasher(located))
}

/// Builds a runtime for an MCP server's tools. Nothing tells where a prompt begins and a stop ends,
/// so the time between them is unknown and `wall_clock` is not applied.
pub(crate) fn build_proxy_runtime(located: &ProjectLocation, store: Arc<SqliteStore>) -> Runtime {
    let from = located.clone();
    let seal = move || {
        let mut compiled = from.compile_policy_for_new_session(TaskDriverKind::Hook)?;
        compiled.policy.caps.wall_clock_ms = None;
        Ok(compiled)
    };
    Runtime::new(store, located.place.clone(), Box::new(seal))
        .with_guarded_files(guarded_files_hasher(located))
        .with_middleware_stages(FrontEndMiddlewareStages::PROXY)
}

/// Builds the library's engine for `run`: exactly one task, tighter caps, and the attempts of the
/// command line.
pub(crate) fn build_run_engine(
    located: &ProjectLocation,
    store: Arc<SqliteStore>,
    seal: Box<PolicyCompileFn>,
    level: &'static str,
    progress: Arc<dyn Fn(VerificationProgress) + Send + Sync>,
) -> Engine {
    Engine::new(store, located.place.clone(), seal)
        .with_guarded_files(guarded_files_hasher(located))
        // An agent's tools are called through its hooks.
        .with_middleware_stages(FrontEndMiddlewareStages::HOOKS)
        .with_protection_level(level)
        .with_progress_callback(move |news| progress(news))
        .with_cancel_flag(&signals::CANCELLED)
}

/// Returns the policy of a run, with the attempts of the command line.
pub(crate) fn policy_compiler_for_run(
    located: &ProjectLocation,
    attempts: Option<u32>,
) -> Box<PolicyCompileFn> {
    let from = located.clone();
    Box::new(move || {
        let mut compiled = from.compile_policy_for_new_session(TaskDriverKind::Run)?;
        // The command line counts only for a session that begins: the policy is sealed with it.
        if let Some(attempts) = attempts {
            compiled.policy.caps.attempts = attempts;
        }
        Ok(compiled)
    })
}
