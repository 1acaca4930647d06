//! Masks the ids of the markers between which OpenClaw puts text from outside: they are drawn anew for
//! each result.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;

const BEGIN: &str = "<<<EXTERNAL_UNTRUSTED_CONTENT id=";
/// Made once: making it takes longer than searching most texts.
static BEGIN_FINDER: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(BEGIN));
const END: &str = "<<<END_EXTERNAL_UNTRUSTED_CONTENT id=";
/// The name in both markers, and what stands before it.
const NAME: &str = "EXTERNAL_UNTRUSTED_CONTENT";
const MARKER_BEGINNINGS: [&str; 2] = ["<<<END_", "<<<"];
static NAME_FINDER: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(NAME));
/// A shorter text holds no wrapper: two markers, each with an id, two quotes and three brackets.
const MIN_WRAPPER_LEN: usize = BEGIN.len() + END.len() + 2 * (ID_LEN + 5);
const ID_LEN: usize = 16;
const MASKED_ID: &str = "0000000000000000";

/// Returns the text with the ids of all complete wrappers masked.
pub(super) fn mask_external_content_ids(text: &str) -> Cow<'_, str> {
    if text.len() < MIN_WRAPPER_LEN {
        return Cow::Borrowed(text);
    }
    let mut masked: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text
        .as_bytes()
        .get(at..)
        .and_then(|rest| BEGIN_FINDER.find(rest))
    {
        let begin = at + found;
        let Some(wrapper) = wrapper_at(text, begin) else {
            at = begin + 1;
            continue;
        };
        at = wrapper.end;
        if !wrapper.is_canonical(text) {
            continue;
        }
        let out = masked.get_or_insert_with(|| String::with_capacity(text.len()));
        for id in wrapper.ids {
            out.push_str(text.get(copied..id).unwrap_or_default());
            out.push_str(MASKED_ID);
            copied = id + ID_LEN;
        }
    }
    match masked {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// A pair of markers with the same id.
struct ContentWrapper {
    /// Where its two ids begin.
    ids: [usize; 2],
    /// Where the text between the markers begins and ends.
    inner: [usize; 2],
    /// Backslashes before each of the markers' quotes.
    escapes: usize,
    end: usize,
}

impl ContentWrapper {
    /// Returns whether the quotes are those of a text that was encoded as JSON some number of times.
    fn is_canonical(&self, text: &str) -> bool {
        let unit = self.escapes + 1;
        if !unit.is_power_of_two() {
            return false;
        }
        let inner = text.get(self.inner[0]..self.inner[1]).unwrap_or_default();
        let mut backslashes = 0;
        inner.bytes().all(|byte| match byte {
            b'\\' => {
                backslashes += 1;
                true
            }
            b'"' => (std::mem::take(&mut backslashes) + 1) % unit == 0,
            _ => {
                backslashes = 0;
                true
            }
        })
    }
}

/// Returns the wrapper that begins here, if it is complete.
fn wrapper_at(text: &str, begin: usize) -> Option<ContentWrapper> {
    let rest = text.get(begin + BEGIN.len()..)?;
    let escapes = rest.bytes().take_while(|byte| *byte == b'\\').count();
    // The quote with its backslashes, as it stands around both ids.
    let quote = rest.get(..=escapes).filter(|quote| quote.ends_with('"'))?;
    let first_id = begin + BEGIN.len() + quote.len();
    let id = text.get(first_id..first_id + ID_LEN)?;
    if !id
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    let closing = |at: usize| {
        let rest = text.get(at..)?.strip_prefix(quote)?.strip_prefix(">>>")?;
        Some(text.len() - rest.len())
    };
    let inner = closing(first_id + ID_LEN)?;
    let marker = next_marker(text, inner)?;
    let rest = text.get(marker..)?.strip_prefix(END)?.strip_prefix(quote)?;
    let second_id = text.len() - rest.len();
    rest.starts_with(id).then_some(())?;
    Some(ContentWrapper {
        ids: [first_id, second_id],
        inner: [inner, marker],
        escapes,
        end: closing(second_id + ID_LEN)?,
    })
}

/// Returns where the next marker begins, complete or not. The nearest one is found first, whichever it
/// is, so that many openings without an end are not searched to the end of the text each time.
fn next_marker(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let found = at + NAME_FINDER.find(text.as_bytes().get(at..)?)?;
        let before = text.get(from..found)?;
        let begin = MARKER_BEGINNINGS
            .iter()
            .find(|beginning| before.ends_with(**beginning));
        if let Some(beginning) = begin {
            return Some(found - beginning.len());
        }
        at = found + NAME.len();
    }
}
