//! Law 10: files whose edits could loosen how sessions are judged. They are looked at when a
//! session is sealed, at prompts and at stops, never at tool events. What differs while a task
//! is open is recorded as an input, and the texts that the session was sealed with go on for
//! the next sessions (`held.json`) until a person seals.

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

use crate::await_decision::internal_delivery;
use crate::config::{CompiledPolicy, PolicySources, RequestedConfigProfile};
use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, EventDelivery};
use crate::policy_fallback::SealReuseConditions;
use crate::runtime::Runtime;
use crate::{clock, exit_statuses, log_reader};

/// Looks at the guarded files of who is judged in this folder.
pub type GuardedFilesReader = dyn Fn(&Path) -> GuardedFileDigests + Send + Sync;

/// How the guarded files are: each by the name that a person is told, with the digest of what
/// counts of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedFileDigests {
    /// What a policy is compiled from: config, rules, the person's own file.
    pub policy: BTreeMap<String, Digest>,
    /// What else decides whether and of what anybody is judged: hook settings, ignore files.
    pub others: BTreeMap<String, Digest>,
}

/// How they were at some time, what the session was sealed with, and where.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionSealRecord {
    pub(crate) sealed: PolicySources,
    seen: GuardedFileDigests,
    #[serde(default)]
    pub(crate) root: Option<PathBuf>,
    #[serde(default)]
    pub(crate) profile: Option<RequestedConfigProfile>,
    /// `None` for sessions that no other one goes on with, and for those of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terms: Option<SealReuseConditions>,
}

/// Where and how a session was sealed, as far as that was taken down: older builds did not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct SealedRootAndProfile {
    /// The folder whose tree is judged as long as it lasts.
    pub root: Option<PathBuf>,
    /// Under which profile.
    pub profile: Option<RequestedConfigProfile>,
}

/// A session's policy in the making.
pub(crate) struct PolicyToSeal {
    pub(crate) compiled: CompiledPolicy,
    /// The blob that says how the guarded files are.
    pub(crate) guard: Option<Vec<u8>>,
    /// Verifiers whose programs are all there.
    pub(crate) equipped: Vec<VerifierName>,
}

/// The texts that go on although they were edited, and how that came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigHeldDespiteEdit {
    /// What goes on.
    pub sources: PolicySources,
    /// Where: in the folder that the config lies in, and below it.
    pub root: PathBuf,
    /// What was edited.
    pub paths: Vec<String>,
    /// In which session a task was open.
    pub session: SessionId,
    /// When that was noticed.
    pub at: UnixMillis,
}

/// Sessions with an open task that are looked at before another one begins.
const MAX_OTHERS: usize = 20;

/// `held.json` of a state folder.
pub mod held_config {
    use std::io;
    use std::path::{Path, PathBuf};

    use super::ConfigHeldDespiteEdit;
    use crate::durable_file;

    /// Larger it is not: it holds whole configs and their rules, of some folders.
    pub const MAX_HELD_BYTES: u64 = 64 << 20;

    fn config_held_despite_edit_path(state: &Path) -> PathBuf {
        state.join("held.json")
    }

    /// All that is held in this repo: sub-folders with a config of their own and linked
    /// worktrees share the file, and nothing of one of them goes on in another.
    fn read_held_configs(state: &Path) -> io::Result<Vec<ConfigHeldDespiteEdit>> {
        match durable_file::read_regular_file(
            &config_held_despite_edit_path(state),
            MAX_HELD_BYTES,
        )? {
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
            None => Ok(Vec::new()),
        }
    }

    /// What is held for who is judged in `root`.
    ///
    /// # Errors
    /// If there is something that cannot be read: what was held must not be forgotten.
    pub fn read_held_config(
        state: &Path,
        root: &Path,
    ) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        nearest_config_held_despite_edit(state, root, root)
    }

    /// What is held nearest to `from`, up to `root`: a config that was taken away while a task
    /// was open goes on in its folder.
    ///
    /// # Errors
    /// As `read`.
    pub fn nearest_config_held_despite_edit(
        state: &Path,
        from: &Path,
        root: &Path,
    ) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        let all = read_held_configs(state)?;
        let folders = from
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        let mut folders = folders.chain([root]);
        Ok(folders.find_map(|folder| all.iter().find(|held| held.root == folder).cloned()))
    }

    /// What was held first goes on: later edits do not loosen it.
    pub(super) fn add_config_held_despite_edit(
        state: &Path,
        news: &ConfigHeldDespiteEdit,
    ) -> io::Result<()> {
        let _lock = durable_file::lock_file(&config_held_despite_edit_path(state))?;
        let mut all = read_held_configs(state)?;
        if all.iter().all(|held| held.root != news.root) {
            all.push(news.clone());
            durable_file::write_atomically(
                &config_held_despite_edit_path(state),
                &serde_json::to_vec_pretty(&all)?,
            )?;
        }
        Ok(())
    }

    /// Lets go of what is held in these folders, and of what cannot be read.
    ///
    /// # Errors
    /// If the file system does not let us.
    pub fn remove_configs_held_despite_edit(
        state: &Path,
        from: &Path,
        root: &Path,
    ) -> io::Result<()> {
        if !config_held_despite_edit_path(state).exists() {
            return Ok(());
        }
        let _lock = durable_file::lock_file(&config_held_despite_edit_path(state))?;
        let mut all = read_held_configs(state).unwrap_or_default();
        all.retain(|held| {
            !(held.root == root || held.root.starts_with(root) && from.starts_with(&held.root))
        });
        if all.is_empty() {
            durable_file::remove_file(&config_held_despite_edit_path(state))?;
            return Ok(());
        }
        durable_file::write_atomically(
            &config_held_despite_edit_path(state),
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
        let guard = self.encode_seal_record(&compiled);
        let equipped = exit_statuses::runnable_verifiers(&self.place, &compiled.policy);
        Ok(PolicyToSeal {
            compiled,
            guard,
            equipped,
        })
    }

    fn encode_seal_record(&self, compiled: &CompiledPolicy) -> Option<Vec<u8>> {
        let root = &self.place.root;
        let guard = SessionSealRecord {
            sealed: compiled.sources.clone(),
            seen: (self.guarded_reader.as_ref()?)(root),
            root: Some(root.clone()),
            profile: Some(compiled.profile.clone()),
            terms: self.fallback.as_ref().map(|fallback| SealReuseConditions {
                require_trust: fallback.require_trust,
                at: clock::now_millis(),
            }),
        };
        serde_json::to_vec(&guard).ok()
    }

    /// Where and how this session was sealed; `None` if it has no log here.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn seal_origin(
        &self,
        session: &SessionId,
    ) -> Result<Option<SealedRootAndProfile>, RuntimeError> {
        self.read_session_at_one_moment(session, |tail, state| {
            let guard = state.guarded.map(|(_, blob)| tail.read_stored_blob(&blob));
            let guard = guard.transpose()?.flatten();
            let sealed = guard.and_then(|guard| serde_json::from_slice(&guard).ok());
            Ok(sealed.unwrap_or_default())
        })
    }

    /// Has sessions with an open task, in this folder, above or below it, look for edits: what
    /// they find is held for the one that begins. For whoever begins one to ask, before it is
    /// settled where: what is held can say that as well.
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
                // Another session's damage is no reason to judge nothing: listings say it.
                Ok(_) | Err(RuntimeError::Log { .. } | RuntimeError::Policy { .. }) => {}
                Err(RuntimeError::Store(StoreError::Corrupt { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Before a prompt, a stop, an ending or a start of a session is taken in. Whoever looks finds the policy
    /// of the session, too: it is given back, so that the session is not loaded once more for it.
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
            Input::StopRequested(stop) => stop.scope.is_main_scope(),
            Input::StopFailed(failed) => failed.scope.is_main_scope(),
            _ => false,
        };
        match looks && self.guarded_reader.is_some() {
            true => self.record_config_edits(&delivery.session, &self.place.root, patience),
            false => Ok(None),
        }
    }

    /// Records in this session's log what was edited since it was looked at last. It is
    /// judged in `root`, unless its seal says otherwise. Gives back the session as it stood, and the policy that it
    /// is judged by.
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
        let Some((since, blob)) = state.guarded else {
            return Ok(());
        };
        let Some(before) = self.store.read_blob(&blob)? else {
            return Ok(());
        };
        let Ok(before) = serde_json::from_slice::<SessionSealRecord>(&before) else {
            return Ok(());
        };
        let root = before.root.unwrap_or_else(|| root.to_owned());
        let now = look(&root);
        let (paths, policy) = now.changed_guarded_files(&before.seen);
        if paths.is_empty() {
            return Ok(());
        }
        let at = clock::now_millis();
        let open = state.task_if_open().is_some() && !state.is_idle_too_long(at);
        if open && policy {
            let config = before.sealed.repo.as_ref().map(|repo| &repo.config.name);
            let config = config.and_then(|config| config.parent());
            self.hold_config_despite_edit(&ConfigHeldDespiteEdit {
                root: config.unwrap_or(&root).to_owned(),
                sources: before.sealed.clone(),
                paths: paths.clone(),
                session: session.clone(),
                at,
            })?;
        }
        // What a person edited with no task open is what the next edit is held against.
        let sealed = match policy && !open && root == self.place.root {
            true => (self.policy_compiler)().map_or(before.sealed, |compiled| compiled.sources),
            false => before.sealed,
        };
        let guard = SessionSealRecord {
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
        self.process_event_in_transaction(internal_delivery(session, Some(key), input), patience)?;
        Ok(())
    }

    fn hold_config_despite_edit(&self, news: &ConfigHeldDespiteEdit) -> Result<(), RuntimeError> {
        held_config::add_config_held_despite_edit(&self.place.state, news)
            .map_err(|source| RuntimeError::HeldConfig { source })
    }

    /// Seals a session anew with what is compiled now, as a person wants. `None`: it is
    /// judged by exactly that already, or is not known.
    ///
    /// # Errors
    /// If the config has a mistake, or the store cannot be written.
    pub fn reseal_session(
        &self,
        session: &SessionId,
        by: &str,
    ) -> Result<Option<Digest>, RuntimeError> {
        let compiled = (self.policy_compiler)()?;
        let blob = compiled.policy.to_policy_blob();
        let policy = Digest::hash_bytes(&blob);
        let guard = self.encode_seal_record(&compiled);
        let mut renewed = Ok(None);
        self.store.transact_on_session(session, &mut |tail| {
            let loaded = match log_reader::load_session_state(session, tail) {
                Ok(loaded) => loaded,
                Err(error) => {
                    renewed = Err(error);
                    return Ok(None);
                }
            };
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
