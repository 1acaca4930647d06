//! Reviews of hooks in Codex's `config.toml`: added at its end, taken out by name. Every other
//! byte stays.

use checkrein_adapters::codex_trust;
use toml_edit::{DocumentMut, Item, Table, value};

use super::{Edited, Trouble, insert, without};

/// A handler's name in the config, and the digest of its definition.
pub(crate) type Review = (String, String);

/// Writes reviews down. One that is there with another digest is renewed in its place.
pub(crate) fn install(text: &str, reviews: &[Review]) -> Result<Edited, Trouble> {
    parse(text)?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let config = codex_trust::parse_codex_config(text).map_err(trouble)?;
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
        Edited {
            text: text.to_owned(),
            inserted: Vec::new(),
        }
    } else {
        insert(text, vec![(text.len(), piece)])
    };
    // `hooks` written as an inline table takes no table below it, and old reviews are renewed
    // where they are: the careful way for both.
    let all = |text: &str| {
        codex_trust::parse_codex_config(text).is_ok_and(|config| {
            let written =
                |(key, hash): &Review| config.reviewed_hook_digest(key) == Some(hash.as_str());
            reviews.iter().all(written)
        })
    };
    if all(&edited.text) {
        return Ok(edited);
    }
    let mut document = parse(text)?;
    let state = document
        .entry("hooks")
        .or_insert_with(hidden)
        .as_table_like_mut()
        .map(|hooks| hooks.entry("state").or_insert_with(hidden));
    let Some(state) = state.and_then(Item::as_table_like_mut) else {
        return Err(trouble("hooks.state is no table".to_owned()));
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
        Ok(Edited { text, inserted })
    } else {
        Err(trouble("the reviews could not be written down".to_owned()))
    }
}

/// Takes reviews out.
pub(crate) fn remove(text: &str, inserted: &[String], keys: &[String]) -> Result<String, Trouble> {
    if let Some(kept) = without(text, inserted) {
        return Ok(kept);
    }
    let mut document = parse(text)?;
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

fn parse(text: &str) -> Result<DocumentMut, Trouble> {
    text.parse::<DocumentMut>()
        .map_err(|error| trouble(error.to_string()))
}

fn trouble(what: String) -> Trouble {
    Trouble {
        place: "config.toml".to_owned(),
        what: what.lines().next().unwrap_or_default().to_owned(),
    }
}

fn hidden() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}
