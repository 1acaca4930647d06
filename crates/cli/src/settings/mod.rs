//! Edits agents' settings as text: only our entries are inserted or removed, every other byte
//! stays. Inserting never removes a byte, so that removing the same text restores the file exactly.

pub(crate) mod install_record;
pub(crate) mod json;
mod json_tree;
mod new_json;
pub(crate) mod settings_file;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "a test fails by panicking")]
mod tests;
pub(crate) mod toml;

use install_record::{InitWrittenFile, InitWrittenFileKind};
pub(crate) use new_json::OrderedJson;

/// A text with our entries in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditedSettingsText {
    pub(crate) text: String,
    /// The inserted texts, from top to bottom.
    pub(crate) inserted: Vec<String>,
}

/// Why a text is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingsEditError {
    /// `line 3, column 7`, or `hooks.Stop`.
    pub(crate) place: String,
    pub(crate) what: String,
}

/// Removes inserted texts, if they are all still there, in order.
pub(crate) fn remove_inserted_settings_texts(text: &str, inserted: &[String]) -> Option<String> {
    if inserted.is_empty() {
        return None;
    }
    let mut kept = String::new();
    let mut rest = text;
    // Each search begins behind the last piece, so that equal pieces are found one by one.
    for piece in inserted {
        let (before, after) = rest.split_once(piece.as_str())?;
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    Some(kept)
}

/// Returns a file's text without our entries; `None` if nothing would be left of a file that was
/// not there before.
pub(crate) fn without_checkrein_entries(
    written: &InitWrittenFile,
    now: &str,
) -> Result<Option<String>, SettingsEditError> {
    let inserted = &written.inserted;
    let (text, empty) = match &written.what {
        InitWrittenFileKind::Hooks => {
            let text = json::remove_hook_entries(now, inserted)?;
            let empty = json::is_blank_or_empty_json(&text);
            (text, empty)
        }
        InitWrittenFileKind::Reviews(keys) => {
            let text = toml::remove_hook_reviews(now, inserted, keys)?;
            let empty = text.trim().is_empty();
            (text, empty)
        }
        InitWrittenFileKind::Lines => {
            let text = remove_inserted_settings_texts(now, inserted).unwrap_or_else(|| {
                // Somebody edited the file since, so our lines are looked for one by one.
                let ours = |line: &&str| !inserted.iter().any(|piece| piece.trim() == line.trim());
                now.split_inclusive('\n').filter(ours).collect()
            });
            let empty = text.trim().is_empty();
            (text, empty)
        }
        // These hold no entries: the caller removes them as a whole or not at all.
        InitWrittenFileKind::Config | InitWrittenFileKind::Reports => (now.to_owned(), false),
    };
    // A file that was empty before `init` stays, as an empty one.
    Ok((written.before.is_some() || !empty).then_some(text))
}

/// Inserts texts at places, all of which are places in the old text.
fn splice_texts_into_settings(text: &str, mut splices: Vec<(usize, String)>) -> EditedSettingsText {
    splices.sort_by_key(|(at, _)| *at);
    let mut out = String::new();
    let mut from = 0;
    for (at, piece) in &splices {
        out.push_str(text.get(from..*at).unwrap_or_default());
        out.push_str(piece);
        from = *at;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    EditedSettingsText {
        text: out,
        inserted: splices.into_iter().map(|(_, piece)| piece).collect(),
    }
}

/// Appends a line to a text of lines.
pub(crate) fn settings_text_with_line_appended(text: &str, line: &str) -> EditedSettingsText {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let before = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        newline
    };
    splice_texts_into_settings(text, vec![(text.len(), format!("{before}{line}{newline}"))])
}
