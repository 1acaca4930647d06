//! Guards files whose edits could loosen how sessions are judged (law 10). They are read when a
//! session is sealed, at prompts and at stops, never at tool events. A difference while a task is
//! open is recorded as an input, and the texts that the session was sealed with hold for later
//! sessions (`held.json`) until a person seals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_core::event::Event;
use checkrein_core::ids::{SessionId, UnixMillis, VerifierName};
use checkrein_core::input::{ConfigEdited, Input};
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_store::{AppendBatch, NewEvent, StoreError};
use serde::{Deserialize, Serialize};

use crate::await_decision::new_runtime_event_delivery;
use crate::config::{CompiledPolicy, PolicySourceTexts, RequestedConfigProfile};
use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, EventDelivery};
use crate::policy_fallback::PolicySealReuseConditions;
use crate::runtime::Runtime;
use crate::{clock, exit_statuses, log_reader};

/// Reads the guarded files that apply in this folder.
pub type GuardedFilesReader = dyn Fn(&Path) -> GuardedFileDigests + Send + Sync;

/// The state of the guarded files: each by the name that a person is told, with the digest of the
/// part of it that counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedFileDigests {
    /// What a policy is compiled from: config, rules, the person's own file.
    pub policy: BTreeMap<String, Digest>,
    /// Other files that decide whether and on what an agent is judged: hook settings, ignore files.
    pub others: BTreeMap<String, Digest>,
}

/// The guarded files at some time, and the texts and folder that the session was sealed with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionPolicySealRecord {
    pub(crate) sealed: PolicySourceTexts,
    seen: GuardedFileDigests,
    #[serde(default)]
    pub(crate) root: Option<PathBuf>,
    #[serde(default)]
    pub(crate) profile: Option<RequestedConfigProfile>,
    /// Under which terms another session may use this seal; `None` for sessions that none may use,
    /// and for those of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terms: Option<PolicySealReuseConditions>,
}

/// Where and how a session was sealed, as far as that is known: older builds did not record it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RootAndProfileOfSession {
    /// The folder whose tree is judged as long as it lasts.
    pub root: Option<PathBuf>,
    /// Under which profile.
    pub profile: Option<RequestedConfigProfile>,
}

/// A policy that a session is about to be sealed with.
pub(crate) struct PolicyToSeal {
    pub(crate) compiled: CompiledPolicy,
    /// The blob with the digests of the guarded files.
    pub(crate) guard: Option<Vec<u8>>,
    /// The verifiers whose programs can all be found.
    pub(crate) equipped: Vec<VerifierName>,
}

/// The texts that stay in force although they were edited, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigHeldDespiteEdit {
    /// The texts that stay in force.
    pub sources: PolicySourceTexts,
    /// The folder that holds the config; everything below it is included.
    pub root: PathBuf,
    /// The names of the edited files.
    pub paths: Vec<String>,
    /// The session whose task was open.
    pub session: SessionId,
    /// When that was noticed.
    pub at: UnixMillis,
}

/// How many sessions with an open task are looked at before another one begins.
const MAX_OTHERS: usize = 20;

/// `held.json` of a state folder.
pub mod held_config {
    use std::io;
    use std::path::{Path, PathBuf};

    use super::ConfigHeldDespiteEdit;
    use crate::durable_file;

    /// The largest `held.json`: it holds whole configs and their rules, for several folders.
    pub const MAX_HELD_BYTES: u64 = 64 << 20;

    fn held_configs_file_path(state: &Path) -> PathBuf {
        state.join("held.json")
    }

    /// Reads everything that is held in this repo. Sub-folders with a config of their own and
    /// linked worktrees share the file, but nothing that one of them holds applies to another.
    fn read_configs_held_despite_edit(state: &Path) -> io::Result<Vec<ConfigHeldDespiteEdit>> {
        match durable_file::read_regular_file(&held_configs_file_path(state), MAX_HELD_BYTES)? {
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the config that is held for `root`.
    ///
    /// # Errors
    /// If there is something that cannot be read: what was held must not be forgotten.
    pub fn read_config_held_despite_edit(
        state: &Path,
        root: &Path,
    ) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        nearest_config_held_despite_edit(state, root, root)
    }

    /// Returns the config that is held nearest to `from`, up to `root`: a config that was removed
    /// while a task was open stays in force in its folder.
    ///
    /// # Errors
    /// As [`read_config_held_despite_edit`].
    pub fn nearest_config_held_despite_edit(
        state: &Path,
        from: &Path,
        root: &Path,
    ) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        let all = read_configs_held_despite_edit(state)?;
        // The nearest folder wins.
        let folders = from
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        // The root comes last, also where `from` does not lie below it.
        let mut folders = folders.chain([root]);
        Ok(folders.find_map(|folder| all.iter().find(|held| held.root == folder).cloned()))
    }

    /// Holds a config. What was held first stays: later edits do not loosen it.
    pub(super) fn add_config_held_despite_edit(
        state: &Path,
        news: &ConfigHeldDespiteEdit,
    ) -> io::Result<()> {
        // Read and written under the lock: two hooks may notice an edit at once.
        let _lock = durable_file::acquire_file_lock(&held_configs_file_path(state))?;
        let mut all = read_configs_held_despite_edit(state)?;
        if all.iter().all(|held| held.root != news.root) {
            all.push(news.clone());
            durable_file::write_atomically(
                &held_configs_file_path(state),
                &serde_json::to_vec_pretty(&all)?,
            )?;
        }
        Ok(())
    }

    /// Releases what is held in these folders, and whatever cannot be read.
    ///
    /// # Errors
    /// If the file system does not let us.
    pub fn release_held_configs(state: &Path, from: &Path, root: &Path) -> io::Result<()> {
        if !held_configs_file_path(state).exists() {
            return Ok(());
        }
        // An unreadable file counts as empty here: a person is sealing and decides anew.
        let _lock = durable_file::acquire_file_lock(&held_configs_file_path(state))?;
        let mut all = read_configs_held_despite_edit(state).unwrap_or_default();
        all.retain(|held| {
            !(held.root == root || held.root.starts_with(root) && from.starts_with(&held.root))
        });
        if all.is_empty() {
            durable_file::remove_file_if_present(&held_configs_file_path(state))?;
            return Ok(());
        }
        durable_file::write_atomically(
            &held_configs_file_path(state),
            &serde_json::to_vec_pretty(&all)?,
        )
    }
}

impl GuardedFileDigests {
    /// Names whose content differs, and whether a policy is compiled from any of them.
    fn changed_guarded_files<'a>(&'a self, before: &'a Self) -> (Vec<String>, bool) {
        let policy = changed_guarded_file_names(&before.policy, &self.policy);
        let edited = !policy.is_empty();
        let others = changed_guarded_file_names(&before.others, &self.others);
        let names = policy.into_iter().chain(others);
        (names.map(str::to_owned).collect(), edited)
    }
}

fn changed_guarded_file_names<'a>(
    before: &'a BTreeMap<String, Digest>,
    now: &'a BTreeMap<String, Digest>,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = before
        .keys()
        .chain(now.keys())
        .filter(|name| before.get(*name) != now.get(*name))
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Runtime {
    /// Compiles the policy that a new session is sealed with.
    pub(crate) fn compile_session_policy(&self) -> Result<PolicyToSeal, RuntimeError> {
        let compiled = match (self.policy_compiler)() {
            Ok(compiled) => compiled,
            Err(error) => self.fallback_policy(error)?,
        };
        let guard = self.encode_policy_seal_record(&compiled);
        let equipped = exit_statuses::verifiers_with_programs_found(&self.place, &compiled.policy);
        Ok(PolicyToSeal {
            compiled,
            guard,
            equipped,
        })
    }

    fn encode_policy_seal_record(&self, compiled: &CompiledPolicy) -> Option<Vec<u8>> {
        let root = &self.place.root;
        let guard = SessionPolicySealRecord {
            sealed: compiled.sources.clone(),
            seen: (self.guarded_reader.as_ref()?)(root),
            root: Some(root.clone()),
            profile: Some(compiled.profile.clone()),
            terms: self
                .fallback
                .as_ref()
                .map(|fallback| PolicySealReuseConditions {
                    require_trust: fallback.require_trust,
                    at: clock::now_millis(),
                }),
        };
        serde_json::to_vec(&guard).ok()
    }

    /// Returns where and how this session was sealed; `None` if it has no log here.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn root_and_profile_at_seal(
        &self,
        session: &SessionId,
    ) -> Result<Option<RootAndProfileOfSession>, RuntimeError> {
        self.read_session_at_one_moment(session, |tail, state| {
            let guard = state.guarded.map(|(_, blob)| tail.read_stored_blob(&blob));
            let guard = guard.transpose()?.flatten();
            let sealed = guard.and_then(|guard| serde_json::from_slice(&guard).ok());
            Ok(sealed.unwrap_or_default())
        })
    }

    /// Has sessions with an open task look for edits, if they work in this folder, above or below
    /// it. What they find is held for the session that begins. Call this before choosing that
    /// session's folder: a held config can change it.
    ///
    /// # Errors
    /// If the store cannot be written, or `held.json`.
    pub fn make_other_sessions_detect_edits(
        &self,
        session: &SessionId,
        patience: Deadline<'_>,
    ) -> Result<(), RuntimeError> {
        if self.guarded_reader.is_none() {
            return Ok(());
        }
        let root = &self.place.root;
        let mut others: Vec<(SessionId, PathBuf)> = self
            // A session may have many tasks, and most of them have ended, so more rows than
            // sessions are read.
            .store
            .newest_task_summaries(None, 10 * MAX_OTHERS)?
            .into_iter()
            .filter(|row| row.ended_at.is_none() && row.session != *session)
            .map(|row| (row.session, PathBuf::from(row.root)))
            .filter(|(_, other)| other.starts_with(root) || root.starts_with(other))
            .collect();
        others.dedup();
        for (other, root) in others.iter().take(MAX_OTHERS) {
            match self.record_config_edits(other, root, patience) {
                // Damage in another session is no reason to judge nothing; listings report it.
                Ok(_) | Err(RuntimeError::Log { .. } | RuntimeError::Policy { .. }) => {}
                Err(RuntimeError::Store(StoreError::Corrupt { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Looks for edits before a prompt, a stop, an ending or a start of a session is taken in.
    /// Returns the session and its policy, so that they are not loaded a second time.
    pub(crate) fn record_config_edits_on_delivery(
        &self,
        delivery: &EventDelivery<'_>,
        patience: Deadline<'_>,
    ) -> Result<Option<(SessionState, Policy)>, RuntimeError> {
        let looks = match &delivery.input {
            Input::SessionStarted(_)
            | Input::PromptSubmitted(_)
            | Input::SessionEnded(_)
            | Input::ProcessFailed(_)
            | Input::Interrupted => true,
            // A sub-agent's stop is not the task's.
            Input::StopRequested(stop) => stop.scope.is_main_scope(),
            Input::StopFailed(failed) => failed.scope.is_main_scope(),
            _ => false,
        };
        match looks && self.guarded_reader.is_some() {
            true => self.record_config_edits(&delivery.session, &self.place.root, patience),
            false => Ok(None),
        }
    }

    /// Records in this session's log what was edited since the last look. The session is judged in
    /// `root`, unless its seal says otherwise. Returns the session as it stood, and its policy.
    fn record_config_edits(
        &self,
        session: &SessionId,
        root: &Path,
        patience: Deadline<'_>,
    ) -> Result<Option<(SessionState, Policy)>, RuntimeError> {
        let Some((state, policy)) = self.load_session_state_and_policy(session)? else {
            return Ok(None);
        };
        self.record_guarded_file_edits(session, &state, root, patience)?;
        Ok(Some((state, policy)))
    }

    fn record_guarded_file_edits(
        &self,
        session: &SessionId,
        state: &SessionState,
        root: &Path,
        patience: Deadline<'_>,
    ) -> Result<(), RuntimeError> {
        let Some(look) = &self.guarded_reader else {
            return Ok(());
        };
        // A session without a readable record of its guarded files has nothing to be compared with.
        let Some((since, blob)) = state.guarded else {
            return Ok(());
        };
        let Some(before) = self.store.read_blob(&blob)? else {
            return Ok(());
        };
        let Ok(before) = serde_json::from_slice::<SessionPolicySealRecord>(&before) else {
            return Ok(());
        };
        let root = before.root.unwrap_or_else(|| root.to_owned());
        let now = look(&root);
        let (paths, policy) = now.changed_guarded_files(&before.seen);
        if paths.is_empty() {
            return Ok(());
        }
        let at = clock::now_millis();
        // A task that was idle for too long counts as over and holds nothing.
        let open = state.current_open_task().is_some() && !state.is_session_idle_too_long(at);
        if open && policy {
            // Held for the folder of the config: sub-folders with a config of their own share
            // `held.json`.
            let config = before.sealed.repo.as_ref().map(|repo| &repo.config.name);
            let config = config.and_then(|config| config.parent());
            self.record_config_held_despite_edit(&ConfigHeldDespiteEdit {
                root: config.unwrap_or(&root).to_owned(),
                sources: before.sealed.clone(),
                paths: paths.clone(),
                session: session.clone(),
                at,
            })?;
        }
        // With no task open, an edit is the person's own, and the next edit is compared with it.
        let sealed = match policy && !open && root == self.place.root {
            true => (self.policy_compiler)().map_or(before.sealed, |compiled| compiled.sources),
            false => before.sealed,
        };
        let guard = SessionPolicySealRecord {
            sealed,
            seen: now,
            root: Some(root),
            profile: before.profile,
            terms: before.terms,
        };
        let guard = serde_json::to_vec(&guard).unwrap_or_default();
        let guarded = self.store.put_blob(&guard)?;
        let input = Input::ConfigEdited(ConfigEdited { paths, guarded });
        // Two installed entries may notice the same edit at once.
        let key = format!("edited:{since}:{guarded}");
        self.transact_event(
            new_runtime_event_delivery(session, Some(key), input),
            patience,
        )?;
        Ok(())
    }

    fn record_config_held_despite_edit(
        &self,
        news: &ConfigHeldDespiteEdit,
    ) -> Result<(), RuntimeError> {
        held_config::add_config_held_despite_edit(&self.place.state, news)
            .map_err(|source| RuntimeError::HeldConfig { source })
    }

    /// Seals a session anew with the policy that the config gives now, as a person wants. Returns
    /// `None` if that is its policy already, or if it is not known.
    ///
    /// # Errors
    /// If the config has a mistake, or the store cannot be written.
    pub fn reseal_session_with_current_policy(
        &self,
        session: &SessionId,
        by: &str,
    ) -> Result<Option<Digest>, RuntimeError> {
        let compiled = (self.policy_compiler)()?;
        let blob = compiled.policy.to_policy_blob();
        let policy = Digest::hash_bytes(&blob);
        let guard = self.encode_policy_seal_record(&compiled);
        let mut renewed = Ok(None);
        self.store.transact_on_session(session, &mut |tail| {
            let loaded = match log_reader::load_session_state(session, tail) {
                Ok(loaded) => loaded,
                Err(error) => {
                    renewed = Err(error);
                    return Ok(None);
                }
            };
            // A session without a policy has no log here, and one with the same policy needs no
            // event.
            if loaded.state.policy.is_none_or(|sealed| sealed == policy) {
                renewed = Ok(None);
                return Ok(None);
            }
            let event = Event::PolicyRenewed {
                policy,
                guarded: guard.as_deref().map(Digest::hash_bytes),
                by: by.to_owned(),
            };
            renewed = Ok(Some(policy));
            Ok(Some(AppendBatch {
                events: vec![NewEvent {
                    kind: event.log_event_kind(),
                    payload: checkrein_core::event::encode_event(&event),
                    key: None,
                }],
                blobs: std::iter::once(blob.clone()).chain(guard.clone()).collect(),
                durable: true,
                ..AppendBatch::default()
            }))
        })?;
        renewed
    }
}
