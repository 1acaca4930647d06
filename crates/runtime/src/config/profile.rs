//! Applies `[profile.NAME]`, which can override any table: its keys replace those of the same name,
//! its verifiers and middleware change or are added to those of the same name, any other list is
//! replaced.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::ConfigError;
use super::config_document::ParsedConfigDocument;

/// The profile that is requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProfileRequest<'a> {
    /// None.
    #[default]
    Plain,
    /// This one, which must exist if there is a config at all.
    Named(&'a str),
    /// This one, if it exists.
    IfThere(&'a str),
}

/// The profile that was requested, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedConfigProfile {
    /// None.
    Plain,
    /// This one, whether or not it existed.
    For(String),
}

impl From<ProfileRequest<'_>> for RequestedConfigProfile {
    fn from(profile: ProfileRequest<'_>) -> Self {
        match profile {
            ProfileRequest::Plain => Self::Plain,
            ProfileRequest::Named(name) | ProfileRequest::IfThere(name) => {
                Self::For(name.to_owned())
            }
        }
    }
}

impl ProfileRequest<'_> {
    /// Its name, whether or not it has to exist.
    pub(super) fn requested_profile_name(&self) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Named(name) | Self::IfThere(name) => Some(name),
        }
    }

    /// Returns `table` as it reads under this profile.
    pub(super) fn apply_config_profile(self, mut table: Table) -> Table {
        // No profile remains in the result, whichever is applied.
        let profiles = table.remove("profile");
        let Some(wanted) = self.requested_profile_name() else {
            return table;
        };
        if let Some(Value::Table(profile)) = profiles.as_ref().and_then(|all| all.get(wanted)) {
            overlay_table(&mut table, profile);
        }
        table
    }
}

/// Requires that a profile which is named exists in the repo's config or in the person's.
pub(super) fn require_existing_config_profile(
    wanted: &str,
    repo: &ParsedConfigDocument,
    person: Option<&ParsedConfigDocument>,
) -> Result<(), ConfigError> {
    let mut known = BTreeSet::new();
    for document in std::iter::once(repo).chain(person) {
        known.extend(document.config_profile_names());
    }
    if known.contains(wanted) {
        return Ok(());
    }
    let known: Vec<String> = known.into_iter().collect();
    let known = match known.as_slice() {
        [] => "there is none".to_owned(),
        known => format!("there is: {}", known.join(", ")),
    };
    let what = format!(
        "'{wanted}' is asked for and not there; {known}. Ask for another one by --profile or CHECKREIN_PROFILE, or write [profile.{wanted}]"
    );
    Err(repo.config_value_mistake("profile", what))
}

/// Lays `profile` over `table`: what it sets replaces what the table says.
pub(super) fn overlay_table(table: &mut Table, profile: &Table) {
    for (key, new) in profile {
        match (table.get_mut(key), new) {
            (Some(Value::Table(old)), Value::Table(new)) => overlay_table(old, new),
            // Only these lists have entries with names. Any other list is replaced as a whole.
            (Some(Value::Array(old)), Value::Array(new))
                if key == "verifier" || key == "middleware" || key == "detector" =>
            {
                overlay_config_lists_by_name(old, new);
            }
            _ => {
                table.insert(key.clone(), new.clone());
            }
        }
    }
}

fn overlay_config_lists_by_name(old: &mut Vec<Value>, new: &[Value]) {
    for one in new {
        let name = one.get("name");
        // A table of a new name is added; one of a known name keeps the keys that the profile does
        // not set.
        let known = old.iter_mut().find(|known| known.get("name") == name);
        match (known, one) {
            (Some(Value::Table(known)), Value::Table(one)) => overlay_table(known, one),
            _ => old.push(one.clone()),
        }
    }
}
