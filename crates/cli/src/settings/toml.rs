//! Edits reviews of hooks in Codex's `config.toml`: they are added at its end and removed by name.
//! Every other byte stays.

use checkrein_adapters::codex_trust;
use toml_edit::{DocumentMut, Item, Table, value};

use super::{
    EditedSettingsText, SettingsEditError, remove_inserted_settings_texts,
    splice_texts_into_settings,
};

/// A handler's name in the config, and the digest of its definition.
pub(crate) type ReviewedHookDigest = (String, String);

/// Writes reviews. One that is there with another digest is renewed in its place.
pub(crate) fn write_codex_hook_reviews(
    text: &str,
    reviews: &[ReviewedHookDigest],
) -> Result<EditedSettingsText, SettingsEditError> {
    // A broken file is refused before anything is appended to it.
    parse_toml_document(text)?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let config = codex_trust::parse_codex_config(text).map_err(settings_edit_error)?;
    let known = |key: &str| config.reviewed_hook_digest(key).is_some();
    let mut piece = String::new();
    for (key, hash) in reviews.iter().filter(|(key, _)| !known(key)) {
        if !text.is_empty() || !piece.is_empty() {
            piece.push_str(newline);
        }
        let key = toml_edit::Key::new(key);
        // A path has no characters that a bare key could hold, so this is always quoted.
        let key = key.display_repr();
        piece.push_str(&format!(
            "[hooks.state.{key}]{newline}trusted_hash = \"{hash}\"{newline}"
        ));
    }
    if !text.is_empty() && !text.ends_with('\n') && !piece.is_empty() {
        piece.insert_str(0, newline);
    }
    let edited = if piece.is_empty() {
        EditedSettingsText {
            text: text.to_owned(),
            inserted: Vec::new(),
        }
    } else {
        splice_texts_into_settings(text, vec![(text.len(), piece)])
    };
    // A `hooks` that is written as an inline table takes no table below it, and old reviews are
    // renewed where they are. Both need the parsed document, and are undone by their keys.
    let all = |text: &str| {
        codex_trust::parse_codex_config(text).is_ok_and(|config| {
            let written = |(key, hash): &ReviewedHookDigest| {
                config.reviewed_hook_digest(key) == Some(hash.as_str())
            };
            reviews.iter().all(written)
        })
    };
    if all(&edited.text) {
        return Ok(edited);
    }
    let mut document = parse_toml_document(text)?;
    let state = document
        .entry("hooks")
        .or_insert_with(implicit_toml_table)
        .as_table_like_mut()
        .map(|hooks| hooks.entry("state").or_insert_with(implicit_toml_table));
    let Some(state) = state.and_then(Item::as_table_like_mut) else {
        return Err(settings_edit_error("hooks.state is no table".to_owned()));
    };
    for (key, hash) in reviews {
        let one = state
            .entry(key)
            .or_insert_with(|| Item::Table(Table::new()));
        if let Some(one) = one.as_table_like_mut() {
            one.insert("trusted_hash", value(hash.as_str()));
        }
    }
    let text = document.to_string();
    if all(&text) {
        let inserted = Vec::new();
        Ok(EditedSettingsText { text, inserted })
    } else {
        Err(settings_edit_error(
            "the reviews could not be written down".to_owned(),
        ))
    }
}

/// Removes reviews.
pub(crate) fn remove_hook_reviews(
    text: &str,
    inserted: &[String],
    keys: &[String],
) -> Result<String, SettingsEditError> {
    // The exact text first; else the keys are removed one by one.
    if let Some(kept) = remove_inserted_settings_texts(text, inserted) {
        return Ok(kept);
    }
    let mut document = parse_toml_document(text)?;
    let hooks = document.get_mut("hooks").and_then(Item::as_table_like_mut);
    let state = hooks
        .and_then(|hooks| hooks.get_mut("state"))
        .and_then(Item::as_table_like_mut);
    let Some(state) = state else {
        return Ok(text.to_owned());
    };
    let mut found = false;
    for key in keys {
        found |= state.remove(key).is_some();
    }
    Ok(if found {
        document.to_string()
    } else {
        text.to_owned()
    })
}

fn parse_toml_document(text: &str) -> Result<DocumentMut, SettingsEditError> {
    text.parse::<DocumentMut>()
        .map_err(|error| settings_edit_error(error.to_string()))
}

fn settings_edit_error(what: String) -> SettingsEditError {
    SettingsEditError {
        place: "config.toml".to_owned(),
        what: what.lines().next().unwrap_or_default().to_owned(),
    }
}

fn implicit_toml_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}
