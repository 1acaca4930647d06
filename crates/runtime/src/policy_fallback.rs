//! Falls back to an older policy where a config cannot be used: the one that was sealed last in the
//! same folder, under the same profile and the same trust. Breaking a config is no way to a looser
//! policy (law 10).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use checkrein_core::ids::{EventSeq, SessionId, UnixMillis};
use checkrein_core::policy::Policy;
use checkrein_store::SessionTransactionView;
use serde::{Deserialize, Serialize};

use crate::config::{
    CompiledPolicy, ConfigError, PolicySourceTexts, RequestedConfigProfile, RetentionLimits,
};
use crate::error::RuntimeError;
use crate::guarded_files::SessionPolicySealRecord;
use crate::log_reader;
use crate::runtime::Runtime;

/// How many sessions are looked through at most.
const MAX_SESSIONS: usize = 40;
/// How many tasks are looked through at most.
const MAX_TASKS: usize = 1000;
/// How much of the mistake is repeated at endings.
const MAX_ERROR_CHARS: usize = 400;

/// How a policy was sealed, as far as it decides whether another session can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PolicySealReuseConditions {
    /// Whether only approved configs of the repo counted.
    pub(crate) require_trust: bool,
    /// When it was sealed.
    pub(crate) at: UnixMillis,
}

/// The policies that a new session may use where the config cannot be used.
pub struct FallbackPoliciesForBrokenConfig {
    /// The profile in use.
    pub profile: RequestedConfigProfile,
    /// Whether only what a person approved counts.
    pub require_trust: bool,
    /// The config that was held because of an edit during a task, compiled.
    pub held: Box<dyn Fn() -> Option<CompiledPolicy> + Send + Sync>,
    /// Whether these texts may be used here.
    pub may_use: Box<dyn Fn(&PolicySourceTexts) -> bool + Send + Sync>,
}

/// A policy that was sealed before, and when.
struct EarlierSealedPolicy {
    at: Option<UnixMillis>,
    policy: Policy,
    sources: PolicySourceTexts,
}

impl Runtime {
    /// Goes on with an older policy where the config of a new session cannot be used.
    #[must_use]
    pub fn with_earlier_policy_fallback(
        mut self,
        fallback: FallbackPoliciesForBrokenConfig,
    ) -> Self {
        self.fallback = Some(fallback);
        self
    }

    /// The policy that a session is sealed with instead: a held one, or the newest that was sealed.
    pub(crate) fn fallback_policy(
        &self,
        error: ConfigError,
    ) -> Result<CompiledPolicy, RuntimeError> {
        let Some(fallback) = self
            .fallback
            .as_ref()
            // Damage in what Checkrein itself keeps is no mistake of a person, and is not covered
            // up.
            .filter(|_| error.is_mistake_in_config())
        else {
            return Err(error.into());
        };
        // What is held comes first: a person has not sealed the edit that it was held against.
        let instead = match (fallback.held)() {
            Some(held) => Some(held),
            None => self.last_policy_sealed_in_root(fallback)?,
        };
        let Some(mut compiled) = instead else {
            return Err(error.into());
        };
        let told = error.to_string();
        compiled.warnings.push(format!(
            "{told}\nThe config cannot be used; the policy that was sealed before goes on. Mend the file; the next session takes it up"
        ));
        let first = told.lines().next().unwrap_or_default();
        compiled.policy.config_error = Some(first.chars().take(MAX_ERROR_CHARS).collect());
        Ok(compiled)
    }

    fn last_policy_sealed_in_root(
        &self,
        fallback: &FallbackPoliciesForBrokenConfig,
    ) -> Result<Option<CompiledPolicy>, RuntimeError> {
        let root = &self.place.root;
        let rows = self
            .store
            .newest_task_summaries(None, MAX_TASKS)?
            .into_iter();
        let here = rows.filter(|row| Path::new(&row.root) == root);
        let mut seen = BTreeSet::new();
        let mut newest: Option<EarlierSealedPolicy> = None;
        for row in here {
            // Each session counts once; its newest task comes first.
            if seen.len() == MAX_SESSIONS || !seen.insert(row.session.clone()) {
                continue;
            }
            let Some(sealed) = self.reusable_sealed_session_policy(&row.session, fallback)? else {
                continue;
            };
            // Rows are listed newest first, so among seals without a time the first one is the
            // newest.
            if newest.as_ref().is_none_or(|newest| sealed.at > newest.at) {
                newest = Some(sealed);
            }
        }
        Ok(newest.map(|sealed| CompiledPolicy {
            policy: Policy {
                config_error: None,
                ..sealed.policy
            },
            retention: RetentionLimits::default(),
            warnings: Vec::new(),
            sources: sealed.sources,
            profile: fallback.profile.clone(),
        }))
    }

    /// The policy that this session is sealed with, if a session here would be sealed under the
    /// same terms.
    fn reusable_sealed_session_policy(
        &self,
        session: &SessionId,
        fallback: &FallbackPoliciesForBrokenConfig,
    ) -> Result<Option<EarlierSealedPolicy>, RuntimeError> {
        let mut found = None;
        self.store
            .with_session_read_transaction(session, &mut |tail| {
                // Damage in another session is no reason to judge nothing.
                found = sealed_policy_with_seal_record(session, tail).ok().flatten();
                Ok(())
            })?;
        Ok(found.and_then(|(policy, guard)| {
            reuse_policy_seal_if_same_terms(policy, guard, fallback, &self.place.root)
        }))
    }
}

fn sealed_policy_with_seal_record(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
) -> Result<Option<(Policy, SessionPolicySealRecord)>, RuntimeError> {
    if tail.last_seq() == EventSeq(0) {
        return Ok(None);
    }
    let state = log_reader::load_session_state(session, tail)?.state;
    let policy =
        log_reader::load_recorded_policy(session, &state, |digest| tail.read_stored_blob(digest))?;
    let guard = state
        .guarded
        .map(|(_, blob)| tail.read_stored_blob(&blob))
        .transpose()?;
    let guard = guard
        .flatten()
        .and_then(|guard| serde_json::from_slice(&guard).ok());
    Ok(guard.map(|guard| (policy, guard)))
}

/// Returns the seal if it was made in the same folder, by the same kind of hook, and under the same
/// profile and trust.
fn reuse_policy_seal_if_same_terms(
    policy: Policy,
    guard: SessionPolicySealRecord,
    fallback: &FallbackPoliciesForBrokenConfig,
    root: &PathBuf,
) -> Option<EarlierSealedPolicy> {
    let trust = match guard.terms {
        Some(terms) => terms.require_trust == fallback.require_trust,
        // Older builds did not record it. Without a config of the repo it is unknown whether none
        // was there or none was approved; and seals of `run` and of proxies have other caps.
        None => {
            !fallback.require_trust
                && guard.sealed.repo.is_some()
                && !policy.single_task
                && policy.caps.wall_clock_ms.is_some()
        }
    };
    let same = trust
        && guard.root.as_ref() == Some(root)
        && guard.profile.as_ref() == Some(&fallback.profile)
        && (fallback.may_use)(&guard.sealed);
    same.then(|| EarlierSealedPolicy {
        at: guard.terms.map(|terms| terms.at),
        policy,
        sources: guard.sealed,
    })
}
