//! The texts that a new session's policy is compiled from: what lies in the repo, what a
//! person approved, or what is held since it was edited while a task was open.

use checkrein_runtime::config::{ConfigError, ConfigSource, ConfigWithNamedFiles, PolicySources};
use checkrein_runtime::held;

use crate::locate::{self, CONFIG, Located};
use crate::trust;

/// Texts, and what a person should know about where they come from.
pub(crate) struct InForce {
    pub(crate) sources: PolicySources,
    /// What lies there now, where older texts go on in its place.
    pub(crate) edited: Option<PolicySources>,
    pub(crate) notes: Vec<String>,
}

/// What lies there now, whether or not anybody has approved it.
pub(crate) fn now(located: &Located) -> Result<PolicySources, ConfigError> {
    Ok(PolicySources {
        repo: repo_now(located)?,
        person: person_now(located)?,
    })
}

/// What a session that begins now is sealed with.
pub(crate) fn in_force(located: &Located) -> Result<InForce, ConfigError> {
    let mut notes = Vec::new();
    let approved = located.require_trust.then(|| trust::approved(located));
    let trusted = |repo: &ConfigWithNamedFiles| match &approved {
        None => true,
        Some(approved) => *approved == Some(repo.config_digest()),
    };
    let person = person_now(located)?;
    let repo = match repo_now(located) {
        Ok(Some(repo)) if trusted(&repo) => Some(repo),
        Ok(None) => None,
        // What a person approved and what is broken now does not make a session looser.
        Err(error) if matches!(approved, Some(Some(_))) => return Err(error),
        // What nobody approved may be as broken as it likes.
        Ok(Some(_)) | Err(_) if located.require_trust => {
            notes.push(trust::words(located));
            None
        }
        Ok(repo) => repo,
        Err(error) => return Err(error),
    };
    let sources = PolicySources { repo, person };
    let state = &located.place.state;
    let kept = |source| located.kept(source);
    let Some(held) = located.held().map_err(kept)? else {
        return Ok(InForce {
            sources,
            edited: None,
            notes,
        });
    };
    if held.sources == sources {
        // Taken back: nothing is different any more.
        held::remove_configs_held_despite_edit(state, &held.root, &held.root).map_err(kept)?;
        return Ok(InForce {
            sources,
            edited: None,
            notes,
        });
    }
    if !held.sources.repo.as_ref().is_none_or(trusted) {
        return Ok(InForce {
            sources,
            edited: None,
            notes,
        });
    }
    notes.push(format!(
        "{} edited while a task was open: the older policy goes on. To take the edit up, a person runs: checkrein seal",
        was(&held.paths)
    ));
    Ok(InForce {
        sources: held.sources,
        edited: Some(sources),
        notes,
    })
}

/// Whether a session that begins here may be sealed with texts that counted before.
pub(crate) fn may_count(located: &Located, texts: &PolicySources) -> bool {
    let approved =
        |repo: &ConfigWithNamedFiles| trust::approved(located) == Some(repo.config_digest());
    !located.require_trust || texts.repo.as_ref().is_some_and(approved)
}

/// Whether what lies in the repo is what a person approved; `None` if nothing does.
pub(crate) fn repo_counts(located: &Located) -> Option<bool> {
    match repo_now(located) {
        Ok(repo) => repo.map(|repo| trust::approved(located) == Some(repo.config_digest())),
        Err(_) => Some(false),
    }
}

/// `checkrein.toml was`, `checkrein.toml, a.rules were`
fn was(paths: &[String]) -> String {
    let verb = if paths.len() == 1 { "was" } else { "were" };
    format!("{} {verb}", paths.join(", "))
}

/// The repo's config; the one that a person approved for a repo that has none.
fn repo_now(located: &Located) -> Result<Option<ConfigWithNamedFiles>, ConfigError> {
    if let Some(source) = source(located.repo.as_deref())? {
        return ConfigWithNamedFiles::gather_files_named_by_config(source).map(Some);
    }
    Ok(trust::text(located).map(|text| {
        ConfigWithNamedFiles::from_config_naming_no_files(ConfigSource {
            name: located.place.root.join(CONFIG),
            text,
        })
    }))
}

/// The person's own config.
fn person_now(located: &Located) -> Result<Option<ConfigWithNamedFiles>, ConfigError> {
    let source = source(located.person.as_deref())?;
    source
        .map(ConfigWithNamedFiles::read_person_config)
        .transpose()
}

fn source(file: Option<&std::path::Path>) -> Result<Option<ConfigSource>, ConfigError> {
    Ok(file.map(locate::read).transpose()?.flatten())
}
