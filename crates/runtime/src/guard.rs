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

use crate::config::{Asked, Compiled, Sources};
use crate::delivery::{Delivery, Patience};
use crate::driver::Runtime;
use crate::error::RuntimeError;
use crate::last_good::SealTerms;
use crate::settle::own;
use crate::{clock, exit_statuses, load};

/// Looks at the guarded files of who is judged in this folder.
pub type Look = dyn Fn(&Path) -> Guarded + Send + Sync;

/// How the guarded files are: each by the name that a person is told, with the digest of what
/// counts of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    /// What a policy is compiled from: config, rules, the person's own file.
    pub policy: BTreeMap<String, Digest>,
    /// What else decides whether and of what anybody is judged: hook settings, ignore files.
    pub others: BTreeMap<String, Digest>,
}

/// How they were at some time, what the session was sealed with, and where.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Guard {
    pub(crate) sealed: Sources,
    seen: Guarded,
    #[serde(default)]
    pub(crate) root: Option<PathBuf>,
    #[serde(default)]
    pub(crate) profile: Option<Asked>,
    /// `None` for sessions that no other one goes on with, and for those of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terms: Option<SealTerms>,
}

/// Where and how a session was sealed, as far as that was taken down: older builds did not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct SealedAs {
    /// The folder whose tree is judged as long as it lasts.
    pub root: Option<PathBuf>,
    /// Under which profile.
    pub profile: Option<Asked>,
}

/// A session's policy in the making.
pub(crate) struct Sealing {
    pub(crate) compiled: Compiled,
    /// The blob that says how the guarded files are.
    pub(crate) guard: Option<Vec<u8>>,
    /// Verifiers whose programs are all there.
    pub(crate) equipped: Vec<VerifierName>,
}

/// The texts that go on although they were edited, and how that came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What goes on.
    pub sources: Sources,
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
pub mod held {
    use std::io;
    use std::path::{Path, PathBuf};

    use super::Held;
    use crate::whole;

    /// Larger it is not: it holds whole configs and their rules, of some folders.
    pub const LARGEST: u64 = 64 << 20;

    fn file(state: &Path) -> PathBuf {
        state.join("held.json")
    }

    /// All that is held in this repo: sub-folders with a config of their own and linked
    /// worktrees share the file, and nothing of one of them goes on in another.
    fn all(state: &Path) -> io::Result<Vec<Held>> {
        match whole::read(&file(state), LARGEST)? {
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
            None => Ok(Vec::new()),
        }
    }

    /// What is held for who is judged in `root`.
    ///
    /// # Errors
    /// If there is something that cannot be read: what was held must not be forgotten.
    pub fn read(state: &Path, root: &Path) -> io::Result<Option<Held>> {
        nearest(state, root, root)
    }

    /// What is held nearest to `from`, up to `root`: a config that was taken away while a task
    /// was open goes on in its folder.
    ///
    /// # Errors
    /// As `read`.
    pub fn nearest(state: &Path, from: &Path, root: &Path) -> io::Result<Option<Held>> {
        let all = all(state)?;
        let folders = from
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        let mut folders = folders.chain([root]);
        Ok(folders.find_map(|folder| all.iter().find(|held| held.root == folder).cloned()))
    }

    /// What was held first goes on: later edits do not loosen it.
    pub(super) fn add(state: &Path, news: &Held) -> io::Result<()> {
        let _lock = whole::lock(&file(state))?;
        let mut all = all(state)?;
        if all.iter().all(|held| held.root != news.root) {
            all.push(news.clone());
            whole::write(&file(state), &serde_json::to_vec_pretty(&all)?)?;
        }
        Ok(())
    }

    /// Lets go of what is held in these folders, and of what cannot be read.
    ///
    /// # Errors
    /// If the file system does not let us.
    pub fn remove(state: &Path, from: &Path, root: &Path) -> io::Result<()> {
        if !file(state).exists() {
            return Ok(());
        }
        let _lock = whole::lock(&file(state))?;
        let mut all = all(state).unwrap_or_default();
        all.retain(|held| {
            !(held.root == root || held.root.starts_with(root) && from.starts_with(&held.root))
        });
        if all.is_empty() {
            whole::remove(&file(state))?;
            return Ok(());
        }
        whole::write(&file(state), &serde_json::to_vec_pretty(&all)?)
    }
}

impl Guarded {
    /// Names whose content differs, and whether a policy is compiled from any of them.
    fn edited_since<'a>(&'a self, before: &'a Self) -> (Vec<String>, bool) {
        let policy = differing(&before.policy, &self.policy);
        let edited = !policy.is_empty();
        let others = differing(&before.others, &self.others);
        let names = policy.into_iter().chain(others);
        (names.map(str::to_owned).collect(), edited)
    }
}

fn differing<'a>(
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
    pub(crate) fn compile(&self) -> Result<Sealing, RuntimeError> {
        let compiled = match (self.seal)() {
            Ok(compiled) => compiled,
            Err(error) => self.compile_instead(error)?,
        };
        let guard = self.guard(&compiled);
        let equipped = exit_statuses::equipped(&self.place, &compiled.policy);
        Ok(Sealing {
            compiled,
            guard,
            equipped,
        })
    }

    fn guard(&self, compiled: &Compiled) -> Option<Vec<u8>> {
        let root = &self.place.root;
        let guard = Guard {
            sealed: compiled.sources.clone(),
            seen: (self.look.as_ref()?)(root),
            root: Some(root.clone()),
            profile: Some(compiled.profile.clone()),
            terms: self.fallback.as_ref().map(|fallback| SealTerms {
                require_trust: fallback.require_trust,
                at: clock::now(),
            }),
        };
        serde_json::to_vec(&guard).ok()
    }

    /// Where and how this session was sealed; `None` if it has no log here.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn sealed_as(&self, session: &SessionId) -> Result<Option<SealedAs>, RuntimeError> {
        self.read_session(session, |tail, state| {
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
    pub fn ask_others(
        &self,
        session: &SessionId,
        patience: Patience<'_>,
    ) -> Result<(), RuntimeError> {
        if self.look.is_none() {
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
            match self.record_edits(other, root, patience) {
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
    pub(crate) fn look_for_edits(
        &self,
        delivery: &Delivery<'_>,
        patience: Patience<'_>,
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
        match looks && self.look.is_some() {
            true => self.record_edits(&delivery.session, &self.place.root, patience),
            false => Ok(None),
        }
    }

    /// Records in this session's log what was edited since it was looked at last. It is
    /// judged in `root`, unless its seal says otherwise. Gives back the session as it stood, and the policy that it
    /// is judged by.
    fn record_edits(
        &self,
        session: &SessionId,
        root: &Path,
        patience: Patience<'_>,
    ) -> Result<Option<(SessionState, Policy)>, RuntimeError> {
        let Some((state, policy)) = self.peek(session)? else {
            return Ok(None);
        };
        self.record_edits_since(session, &state, root, patience)?;
        Ok(Some((state, policy)))
    }

    fn record_edits_since(
        &self,
        session: &SessionId,
        state: &SessionState,
        root: &Path,
        patience: Patience<'_>,
    ) -> Result<(), RuntimeError> {
        let Some(look) = &self.look else {
            return Ok(());
        };
        let Some((since, blob)) = state.guarded else {
            return Ok(());
        };
        let Some(before) = self.store.read_blob(&blob)? else {
            return Ok(());
        };
        let Ok(before) = serde_json::from_slice::<Guard>(&before) else {
            return Ok(());
        };
        let root = before.root.unwrap_or_else(|| root.to_owned());
        let now = look(&root);
        let (paths, policy) = now.edited_since(&before.seen);
        if paths.is_empty() {
            return Ok(());
        }
        let at = clock::now();
        let open = state.task_if_open().is_some() && !state.is_idle_too_long(at);
        if open && policy {
            let config = before.sealed.repo.as_ref().map(|repo| &repo.config.name);
            let config = config.and_then(|config| config.parent());
            self.hold(&Held {
                root: config.unwrap_or(&root).to_owned(),
                sources: before.sealed.clone(),
                paths: paths.clone(),
                session: session.clone(),
                at,
            })?;
        }
        // What a person edited with no task open is what the next edit is held against.
        let sealed = match policy && !open && root == self.place.root {
            true => (self.seal)().map_or(before.sealed, |compiled| compiled.sources),
            false => before.sealed,
        };
        let guard = Guard {
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
        self.handle(own(session, Some(key), input), patience)?;
        Ok(())
    }

    fn hold(&self, news: &Held) -> Result<(), RuntimeError> {
        held::add(&self.place.state, news).map_err(|source| RuntimeError::Held { source })
    }

    /// Seals a session anew with what is compiled now, as a person wants. `None`: it is
    /// judged by exactly that already, or is not known.
    ///
    /// # Errors
    /// If the config has a mistake, or the store cannot be written.
    pub fn renew(&self, session: &SessionId, by: &str) -> Result<Option<Digest>, RuntimeError> {
        let compiled = (self.seal)()?;
        let blob = compiled.policy.to_policy_blob();
        let policy = Digest::hash_bytes(&blob);
        let guard = self.guard(&compiled);
        let mut renewed = Ok(None);
        self.store.transact_on_session(session, &mut |tail| {
            let loaded = match load::state(session, tail) {
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
