//! What is said of keys: those that are not known, and those that this build does not act on.

use std::path::Path;

use super::file::{KNOWN, NOT_YET};
use super::{ConfigError, value};

/// Notes every key that is not known, in profiles too.
pub(super) fn check(
    name: &Path,
    table: &toml::Table,
    unknown: &mut Vec<String>,
) -> Result<(), ConfigError> {
    below(name, "", "", table, unknown)?;
    for (profile, inner) in profiles(table) {
        let within = format!("profile.{profile}.");
        if inner.contains_key("profile") {
            let what = "cannot hold another profile".to_owned();
            return Err(value(name, &within, what));
        }
        below(name, &within, "", inner, unknown)?;
    }
    Ok(())
}

/// `[verifier]` and `[middleware]` are one table where a list of them is meant.
pub(super) fn one_bracket(name: &Path, table: &toml::Table) -> Result<(), ConfigError> {
    let profiles = profiles(table).map(|(profile, inner)| (format!("profile.{profile}."), inner));
    for (within, table) in std::iter::once((String::new(), table)).chain(profiles) {
        for list in ["verifier", "middleware"] {
            if table.get(list).is_some_and(toml::Value::is_table) {
                let key = format!("[{within}{list}]:");
                let a = if list == "verifier" {
                    "a verifier"
                } else {
                    list
                };
                let what = format!("{a} is written with two brackets: [[{within}{list}]]");
                return Err(value(name, &key, what));
            }
        }
    }
    Ok(())
}

/// An error with what was said of keys before it.
pub(super) fn beside(error: ConfigError, unknown: Vec<String>) -> ConfigError {
    if unknown.is_empty() || matches!(error, ConfigError::Misspelt { .. }) {
        return error;
    }
    ConfigError::Misspelt {
        error: Box::new(error),
        unknown,
    }
}

fn profiles(table: &toml::Table) -> impl Iterator<Item = (&String, &toml::Table)> {
    let profiles = table.get("profile").and_then(toml::Value::as_table);
    profiles
        .into_iter()
        .flatten()
        .filter_map(|(name, inner)| Some((name, inner.as_table()?)))
}

fn below(
    name: &Path,
    within: &str,
    prefix: &str,
    table: &toml::Table,
    unknown: &mut Vec<String>,
) -> Result<(), ConfigError> {
    for (key, value) in table {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        if NOT_YET.contains(&path.as_str()) {
            return Err(ConfigError::NotYet {
                name: name.to_owned(),
                key: format!("{within}{path}"),
            });
        }
        // Its tables are looked at as if they stood here.
        if path == "profile" {
            continue;
        }
        if !KNOWN.contains(&path.as_str()) {
            unknown.push(not_known(name, within, prefix, key));
            continue;
        }
        match value {
            toml::Value::Table(inner) => below(name, within, &path, inner, unknown)?,
            toml::Value::Array(items) => {
                for inner in items.iter().filter_map(toml::Value::as_table) {
                    below(name, within, &path, inner, unknown)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn not_known(name: &Path, within: &str, prefix: &str, key: &str) -> String {
    let dot = if prefix.is_empty() { "" } else { "." };
    let near = KNOWN
        .iter()
        .map(|known| known.rsplit_once('.').unwrap_or(("", known)))
        .filter(|(table, _)| *table == prefix)
        .map(|(_, known)| (strsim::damerau_levenshtein(known, key), known))
        .min()
        // Of a short word hardly anything is left after three changes.
        .filter(|(distance, known)| *distance <= 3 && 2 * distance <= known.len());
    match near {
        Some((_, known)) => format!(
            "{}: unknown key '{within}{prefix}{dot}{key}'; did you mean '{prefix}{dot}{known}'?",
            name.display()
        ),
        None => format!(
            "{}: unknown key '{within}{prefix}{dot}{key}' is ignored",
            name.display()
        ),
    }
}
