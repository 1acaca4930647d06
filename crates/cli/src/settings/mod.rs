//! Edits agents' settings as text: only our entries are put in or taken out, every other byte
//! stays. Putting in never removes a byte, so that taking out the same text is exact.

pub(crate) mod file;
mod fresh;
pub(crate) mod json;
mod parsed;
pub(crate) mod record;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "a test fails by panicking")]
mod tests;
pub(crate) mod toml;

pub(crate) use fresh::Fresh;
use record::{What, Written};

/// A text with our entries in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// What was put in, from top to bottom.
    pub(crate) inserted: Vec<String>,
}

/// Why a text is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// `line 3, column 7`, or `hooks.Stop`.
    pub(crate) place: String,
    pub(crate) what: String,
}

/// Takes texts out again that were put in, if they are all still there, in order.
pub(crate) fn without(text: &str, inserted: &[String]) -> Option<String> {
    if inserted.is_empty() {
        return None;
    }
    let mut kept = String::new();
    let mut rest = text;
    for piece in inserted {
        let (before, after) = rest.split_once(piece.as_str())?;
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    Some(kept)
}

/// A file's text without anything of ours in it; `None` if nothing would be left of a file
/// that was not there before.
pub(crate) fn without_ours(written: &Written, now: &str) -> Result<Option<String>, Trouble> {
    let inserted = &written.inserted;
    let (text, empty) = match &written.what {
        What::Hooks => {
            let text = json::remove(now, inserted)?;
            let empty = json::is_bare(&text);
            (text, empty)
        }
        What::Reviews(keys) => {
            let text = toml::remove(now, inserted, keys)?;
            let empty = text.trim().is_empty();
            (text, empty)
        }
        What::Lines => {
            let text = without(now, inserted).unwrap_or_else(|| {
                let ours = |line: &&str| !inserted.iter().any(|piece| piece.trim() == line.trim());
                now.split_inclusive('\n').filter(ours).collect()
            });
            let empty = text.trim().is_empty();
            (text, empty)
        }
        What::Config | What::Reports => (now.to_owned(), false),
    };
    Ok((written.before.is_some() || !empty).then_some(text))
}

/// Texts put in at places, all of them places of the old text.
fn insert(text: &str, mut splices: Vec<(usize, String)>) -> Edited {
    splices.sort_by_key(|(at, _)| *at);
    let mut out = String::new();
    let mut from = 0;
    for (at, piece) in &splices {
        out.push_str(text.get(from..*at).unwrap_or_default());
        out.push_str(piece);
        from = *at;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Edited {
        text: out,
        inserted: splices.into_iter().map(|(_, piece)| piece).collect(),
    }
}

/// A line put in at the end of a text of lines.
pub(crate) fn with_line(text: &str, line: &str) -> Edited {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let before = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        newline
    };
    insert(text, vec![(text.len(), format!("{before}{line}{newline}"))])
}
