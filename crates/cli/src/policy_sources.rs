//! Chooses the texts that a new session's policy is compiled from: what lies in the repo, what a
//! person approved, or what is held since it was edited while a task was open.

use checkrein_runtime::config::{
    ConfigError, ConfigWithNamedFiles, NamedConfigText, PolicySourceTexts,
};
use checkrein_runtime::held_config;

use crate::locate::{self, CONFIG, ProjectLocation};
use crate::trust;

/// Texts, and notes for a person about where they come from.
pub(crate) struct EffectivePolicySources {
    pub(crate) sources: PolicySourceTexts,
    /// What lies there now, if older texts stay in force in its place.
    pub(crate) edited: Option<PolicySourceTexts>,
    pub(crate) notes: Vec<String>,
}

/// Returns what lies there now, whether or not anybody has approved it.
pub(crate) fn policy_sources_on_disk(
    located: &ProjectLocation,
) -> Result<PolicySourceTexts, ConfigError> {
    Ok(PolicySourceTexts {
        repo: existing_repo_config_or_approved(located)?,
        person: load_personal_config(located)?,
    })
}

/// Returns what a session that begins now is sealed with.
pub(crate) fn effective_policy_sources(
    located: &ProjectLocation,
) -> Result<EffectivePolicySources, ConfigError> {
    let mut notes = Vec::new();
    // Three cases: no trust is needed (`None`), nothing is approved (`Some(None)`), a digest is
    // approved.
    let approved = located
        .require_trust
        .then(|| trust::approved_config_digest(located));
    let trusted = |repo: &ConfigWithNamedFiles| match &approved {
        None => true,
        Some(approved) => *approved == Some(repo.config_digest()),
    };
    let person = load_personal_config(located)?;
    let repo = match existing_repo_config_or_approved(located) {
        Ok(Some(repo)) if trusted(&repo) => Some(repo),
        Ok(None) => None,
        // A config that a person approved and that is broken now must not make a session looser.
        Err(error) if matches!(approved, Some(Some(_))) => return Err(error),
        // A config that nobody approved is not used, so its mistakes do not matter.
        Ok(Some(_)) | Err(_) if located.require_trust => {
            notes.push(trust::config_not_approved_notice(located));
            None
        }
        Ok(repo) => repo,
        Err(error) => return Err(error),
    };
    let sources = PolicySourceTexts { repo, person };
    let state = &located.place.state;
    let kept = |source| located.held_config_io_error(source);
    let Some(held) = located.config_held_despite_edit().map_err(kept)? else {
        return Ok(EffectivePolicySources {
            sources,
            edited: None,
            notes,
        });
    };
    if held.sources == sources {
        // The edit was taken back, so nothing is held any more.
        held_config::release_held_configs(state, &held.root, &held.root).map_err(kept)?;
        return Ok(EffectivePolicySources {
            sources,
            edited: None,
            notes,
        });
    }
    // Held texts that nobody approved do not come back by being held.
    if !held.sources.repo.as_ref().is_none_or(trusted) {
        return Ok(EffectivePolicySources {
            sources,
            edited: None,
            notes,
        });
    }
    notes.push(format!(
        "{} edited while a task was open: the older policy goes on. To take the edit up, a person runs: checkrein seal",
        join_paths_with_was_or_were(&held.paths)
    ));
    Ok(EffectivePolicySources {
        sources: held.sources,
        edited: Some(sources),
        notes,
    })
}

/// Returns whether a session that begins here may be sealed with texts that counted before.
pub(crate) fn are_config_sources_trusted(
    located: &ProjectLocation,
    texts: &PolicySourceTexts,
) -> bool {
    let approved = |repo: &ConfigWithNamedFiles| {
        trust::approved_config_digest(located) == Some(repo.config_digest())
    };
    !located.require_trust || texts.repo.as_ref().is_some_and(approved)
}

/// Returns whether what lies in the repo is what a person approved; `None` if the repo has no
/// config.
pub(crate) fn is_repo_config_approved(located: &ProjectLocation) -> Option<bool> {
    match existing_repo_config_or_approved(located) {
        Ok(repo) => {
            repo.map(|repo| trust::approved_config_digest(located) == Some(repo.config_digest()))
        }
        Err(_) => Some(false),
    }
}

/// `checkrein.toml was`, `checkrein.toml, a.rules were`
fn join_paths_with_was_or_were(paths: &[String]) -> String {
    let verb = if paths.len() == 1 { "was" } else { "were" };
    format!("{} {verb}", paths.join(", "))
}

/// Returns the repo's config, or the one that a person approved for a repo that has none.
fn existing_repo_config_or_approved(
    located: &ProjectLocation,
) -> Result<Option<ConfigWithNamedFiles>, ConfigError> {
    if let Some(source) = read_optional_config_source(located.repo_config.as_deref())? {
        return ConfigWithNamedFiles::gather_files_named_by_config(source).map(Some);
    }
    Ok(trust::approved_config_text(located).map(|text| {
        ConfigWithNamedFiles::config_naming_no_files(NamedConfigText {
            name: located.place.root.join(CONFIG),
            text,
        })
    }))
}

/// Returns the person's own config.
fn load_personal_config(
    located: &ProjectLocation,
) -> Result<Option<ConfigWithNamedFiles>, ConfigError> {
    let source = read_optional_config_source(located.person_config.as_deref())?;
    source
        .map(ConfigWithNamedFiles::gather_files_of_personal_config)
        .transpose()
}

fn read_optional_config_source(
    file: Option<&std::path::Path>,
) -> Result<Option<NamedConfigText>, ConfigError> {
    Ok(file.map(locate::read_config_source).transpose()?.flatten())
}
